"""A rule broken behind the row verdicts stops the batch: pandera validates every clean row."""

import math
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from connectors.errors import CleanRowsBroken
from connectors.files.profiles.profile import DEFAULT
from connectors.postgres.batches.ledger import State
from connectors.settings import MOST, Limits
from flows.__main__ import main
from flows.stages.chunks import split_chunk
from flows.stages.sequence import import_delivery, run_batch
from flows.stages.workspace import Workspace
from flows.steps.fast import fast_path
from flows.steps.validate import check, chunk
from schemas.cells.columns import CODE
from schemas.cells.reading import Number
from schemas.kinds import EXACT
from tests.stages.payments import HEADER, line

REGISTRATION = "EMail,FirstName,LastName,Password,ConfirmPassword,Company,PartnerUserID,Roles"
COMMA = replace(DEFAULT, feed="comma", decimal=",", delimiter=";")
GOOD = "a@b.co,Ann,Lee,pw,pw,Acme,1,"
NO_RULES: Callable[[object], tuple[()]] = lambda table: ()  # noqa: E731


def payments(bad: str) -> str:
    return "\n".join([HEADER, line(1), line(2), bad, line(4), ""])


def registrations(bad: str) -> str:
    return "\n".join([REGISTRATION, GOOD, GOOD.replace("a@", "b@"), bad, ""])


def no_rules(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(check, "row_rules", NO_RULES)


def no_rules_and_a_null(patch: pytest.MonkeyPatch) -> None:
    """Among the rows of the fast path too: here the third one lacks a value."""
    patch.setattr(fast_path, "row_rules", NO_RULES)
    change_fast(patch, pl.when(pl.col("Id") != 3).then("DebtsId").alias("DebtsId"))


def change_fast(patch: pytest.MonkeyPatch, *columns: pl.Expr) -> None:
    read = split_chunk.typed_records

    def changed(*given: Any) -> Any:
        typed = read(*given)
        return replace(typed, frame=typed.frame.with_columns(columns))

    patch.setattr(split_chunk, "typed_records", changed)


def change_typed(patch: pytest.MonkeyPatch, *columns: pl.Expr) -> None:
    read = chunk.check

    def changed(*given: Any, **named: Any) -> Any:
        checked = read(*given, **named)
        return replace(checked, typed=checked.typed.with_columns(columns))

    patch.setattr(chunk, "check", changed)


def read_what_is_no_number(patch: pytest.MonkeyPatch) -> None:
    no_rules(patch)
    read, why_unread = check.read, check.why_unread

    def changed(of: Any, text: str, nested: Any) -> Any:
        return Number(math.nan, Decimal("NaN")) if text == "NaN" else read(of, text, nested)

    def unsure(kind: Any, texts: pl.Series) -> pl.DataFrame:
        said = pl.when(pl.lit(texts) != "NaN").then(CODE)
        return why_unread(kind, texts).with_columns(said.alias(CODE))

    patch.setattr(check, "read", changed)
    patch.setattr(check, "why_unread", unsure)


def wrong_type(patch: pytest.MonkeyPatch) -> None:
    change_typed(patch, pl.col("TenantsId").cast(pl.Int64))


def doubles_for_texts(patch: pytest.MonkeyPatch) -> None:
    change_typed(patch, pl.col("PaidAmount").alias("PaidAmount" + EXACT))


def wrong_type_fast(patch: pytest.MonkeyPatch) -> None:
    change_fast(patch, pl.col("TenantsId").cast(pl.Int64))


def doubles_for_millionths(patch: pytest.MonkeyPatch) -> None:
    """What is not finite has no place in millionths: a column that could hold it is not theirs."""
    value = pl.when(pl.col("Id") == 3).then(math.nan).otherwise(pl.col("PaidAmount").cast(float))
    patch.setattr(fast_path, "row_rules", NO_RULES)
    change_fast(patch, value.alias("PaidAmount"))


FAST, STRICT = 0, MOST
NO_DEBT, NO_NUMBER = line(3).replace(",2,", ",,"), line(3, amount="NaN")
CASES = {
    # name: (text, profile, strict_bytes, how it is broken, what is told)
    "NotNull": (payments(NO_DEBT), DEFAULT, STRICT, no_rules, "DebtsId: NotNull"),
    "NotNull, binary": (
        payments(NO_DEBT).replace(",", ";").replace(".", ","),
        COMMA,
        FAST,
        no_rules,
        "DebtsId: NotNull",
    ),
    "NotNull, beside the fast path": (
        payments(NO_DEBT),
        DEFAULT,
        FAST,
        no_rules,
        "DebtsId: NotNull",
    ),
    "NotNull, fast": (payments(line(3)), DEFAULT, FAST, no_rules_and_a_null, "DebtsId: NotNull"),
    "NotFinite": (
        payments(NO_NUMBER),
        DEFAULT,
        STRICT,
        read_what_is_no_number,
        "PaidAmount: NotFinite",
    ),
    "NotFinite, beside the fast path": (
        payments(NO_NUMBER),
        DEFAULT,
        FAST,
        read_what_is_no_number,
        "PaidAmount: NotFinite",
    ),
    "NotFinite, fast": (
        payments(line(3)),
        DEFAULT,
        FAST,
        doubles_for_millionths,
        r"PaidAmount: dtype\('Int64'\), not Float64",
    ),
    "NotEmpty": (
        registrations(GOOD.replace("Ann", '" "')),
        DEFAULT,
        FAST,
        no_rules,
        "FirstName: NotEmpty",
    ),
    "Email": (
        registrations(GOOD.replace("a@b.co", "nobody")),
        DEFAULT,
        FAST,
        no_rules,
        "EMail: Email",
    ),
    "type": (
        payments(line(3)),
        DEFAULT,
        STRICT,
        wrong_type,
        r"TenantsId: dtype\('Int32'\), not Int64",
    ),
    "type of a text": (
        payments(line(3)),
        DEFAULT,
        STRICT,
        doubles_for_texts,
        r"PaidAmount_exact: dtype\('String'\), not Float64",
    ),
    "type, fast": (
        payments(line(3)),
        DEFAULT,
        FAST,
        wrong_type_fast,
        r"TenantsId: dtype\('Int32'\), not Int64",
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("title", CASES)
def test_a_rule_broken_behind_the_verdict_stops_the_batch(
    workspace: Workspace, rows: Any, tmp_path: Path, title: str
) -> None:
    text, profile, strict_bytes, broken, found = CASES[title]
    path = tmp_path / "delivered.csv"
    path.write_text(text)
    settings = replace(workspace.settings, limits=Limits(strict_bytes=strict_bytes))
    ours = replace(workspace, settings=settings)
    count, first = ("4 rows", 2) if "type" in title or title == "NotFinite, fast" else ("1 row", 4)
    told = (
        rf"^delivered\.csv: clean rows of \w+ break its schema\. {found} \({count}, the first on "
    )
    with pytest.MonkeyPatch.context() as patch:
        broken(patch)
        with pytest.raises(CleanRowsBroken, match=rf"{told}line {first}\)\. .*`recon rerun 1`"):
            import_delivery(ours, [str(path)], profile)
    assert rows("SELECT count(*) FROM staged_row") == [(0,)]
    assert rows("SELECT count(*) FROM receipt") == [(0,)]
    assert rows("SELECT state FROM batch") == [("received",)]
    # The program is right again.
    assert run_batch(ours, 1).batch.state in (State.COMPLETE, State.COMPLETE_WITH_ERRORS)


def test_a_run_that_is_stopped_so_says_what_to_do(
    workspace: Workspace,
    rows: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "clients.csv"
    path.write_text(registrations(GOOD.replace("a@b.co", "s3cret")))
    monkeypatch.setenv("RECON_DATABASE_URL", str(workspace.settings.database_url))
    monkeypatch.setenv("RECON_HOME", str(workspace.settings.home))

    def run(*arguments: str) -> tuple[int, str]:
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main(list(arguments))
        return int(end.value.code or 0), capsys.readouterr().err

    with pytest.MonkeyPatch.context() as patch:
        no_rules(patch)
        code, told = run("check", str(path))
        assert (code, "This is a fault of the program, not of the file" in told) == (2, True)
        for again in ("import", str(path)), ("rerun", "1"):
            code, told = run(*again)
            assert code == 2
            assert "recon: clients.csv: clean rows of client_registration" in told
            assert "EMail: Email (1 row, the first on line 4)" in told
            assert "Traceback" not in told
            assert "s3cret" not in told
    code, told = run("rerun", "1")
    assert (code, rows("SELECT state FROM batch")) == (1, [("complete_with_errors",)])


@pytest.mark.long
@pytest.mark.parametrize("strict_bytes", [FAST, STRICT])
def test_every_clean_row_is_validated(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, strict_bytes: int
) -> None:
    path = tmp_path / "delivered.csv"
    path.write_text("\n".join([HEADER, *map(line, range(1, 400)), NO_DEBT, '"400"' + line(4)[1:]]))
    seen: list[int] = []
    validate = chunk.validate

    def counted(table: Any, clean: pl.DataFrame, *given: Any, **named: Any) -> None:
        seen.append(clean.height)
        validate(table, clean, *given, **named)

    monkeypatch.setattr(chunk, "validate", counted)
    monkeypatch.setattr(split_chunk, "validate", counted)
    limits = Limits(block_bytes=4096, strict_bytes=strict_bytes)
    ours = replace(workspace, settings=replace(workspace.settings, limits=limits))
    ended = import_delivery(ours, [str(path)], DEFAULT)
    assert sum(seen) == 400
    assert ended.report.errors == 1
