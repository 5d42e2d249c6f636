"""Amounts no exact decimal column can add up end in a verdict that says so, never in a match."""

import json
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest

from connectors.files.profiles.profile import DEFAULT
from connectors.postgres.runs.breaks import Decision
from flows.report.spelling import digits
from flows.stages.finish import build_report
from flows.stages.reconcile.breaks import Chosen, decide_breaks, list_breaks
from flows.stages.reconcile.run import Asked, reconcile
from flows.stages.reconcile.scope import Scope
from flows.stages.sequence import import_delivery
from flows.stages.workspace import Workspace
from flows.steps.breaks.make import make_breaks
from flows.steps.breaks.severity import severities
from flows.steps.frames.beyond import exact_sum, from_both
from flows.steps.rules.rules import Rules
from schemas.amounts import BEYOND, EXACT, spelled
from schemas.frame_types import AMOUNT
from schemas.life import BreakState, Choice
from tests.recon import run
from tests.reconcile.records import new
from tests.report.reconciliation.test_workbook import Book
from tests.stages.payments import HEADER, line, write

TOLD = "too large or too long to be added up exactly"


def test_money_has_twenty_digits_before_its_point_and_eighteen_behind_it() -> None:
    most = Decimal("99999999999999999999.999999999999999999")
    both = [most, most.copy_negate()]
    assert pl.Series(both, dtype=AMOUNT).to_list() == both


@pytest.mark.long(but=("amounts3-True",))
@pytest.mark.parametrize(
    ("amounts", "told"),
    [
        (["9223372036854775807"[:17] + "00"] * 2, False),
        (["90000000000000000000", "90000000000000000000", "1.5"], True),
        (["-9e19", "-9e19"], True),
        (["9e18"] * 20, True),
    ],
)
def test_payments(workspace: Workspace, tmp_path: Path, amounts: list[str], told: bool) -> None:
    lines = [line(number, amount=amount) for number, amount in enumerate(amounts, 1)]
    import_delivery(workspace, [write(tmp_path / "payments.csv", *lines)], DEFAULT)
    report = reconcile(workspace, Asked(Scope(), date(2026, 1, 9), Rules())).report
    assert any(TOLD in because for because in report.cover.because) is told
    assert (report.cover.verdict == "INCOMPLETE") is told
    assert all(proof.unexplained == 0 for proof in report.proofs)


@pytest.mark.long
def test_one_that_no_column_holds_is_a_break(workspace: Workspace, tmp_path: Path) -> None:
    path = write(tmp_path / "payments.csv", line(1, amount="1e300"))
    import_delivery(workspace, [path], DEFAULT)
    report = reconcile(workspace, Asked(Scope(), date(2026, 1, 9), Rules())).report
    assert report.cover.verdict == "NOT_RECONCILED"
    assert "PRECISION" in {one.code for one in report.breaks}


@pytest.mark.long
def test_a_total_that_no_spreadsheet_takes_is_text_in_the_workbook(
    workspace: Workspace, tmp_path: Path
) -> None:
    path = write(tmp_path / "payments.csv", *(line(at, amount="1e308") for at in (1, 2)))
    import_delivery(workspace, [path], DEFAULT)
    with workspace.database.connect() as connection:
        connection.execute('UPDATE payment SET "PaidAmount" = 1e400::numeric WHERE "Id" = 1')
    folder = reconcile(workspace, Asked(Scope(), date(2026, 1, 9), Rules())).written.folder
    book = Book((folder / "report.xlsx").read_bytes())
    totals = book.column("Difference proof", "Amount")
    assert ("text", "2e308") in totals
    assert ("text", "1e400 + 1e308") in totals
    amounts = [cell for cell in book.column("Breaks", "Amount") if cell]
    assert ("text", "1e400") in amounts
    assert {kind for kind, _ in amounts} == {"text"}


@pytest.mark.long
def test_a_plan_whose_amount_cannot_be_held_is_not_reconciled(
    workspace: Workspace, tmp_path: Path
) -> None:
    path = tmp_path / "plans.csv"
    path.write_text(
        "PaymentPlansId,PlannedDate,PlannedAmount,PlannedCurrenciesId,PaymentsId,StatusCodesId\n"
        "1,2026-01-02,1e25,978,,1\n"
    )
    import_delivery(workspace, [str(path)], DEFAULT)
    cover = reconcile(workspace, Asked(Scope(), date(2026, 1, 9), Rules())).report.cover
    assert cover.verdict == "INCOMPLETE"
    assert any(TOLD in because for because in cover.because)


@pytest.mark.long
def test_amounts_around_a_scope_that_cannot_be_added_up_are_told(
    workspace: Workspace, tmp_path: Path
) -> None:
    """Those of another feed: without a word of them a sum of the plans ended the run."""
    import_delivery(workspace, [write(tmp_path / "payments.csv", line(1))], DEFAULT)
    path = tmp_path / "plans.csv"
    path.write_text(
        "PaymentPlansId,PlannedDate,PlannedAmount,PlannedCurrenciesId,PaymentsId,StatusCodesId\n"
        "1,2026-01-01,9e19,1,1,1\n2,2026-01-01,9e19,1,1,1\n"
    )
    import_delivery(workspace, [str(path)], replace(DEFAULT, feed="plans"))
    asked = Asked(Scope(feeds=(DEFAULT.feed,)), date(2026, 1, 9), Rules())
    cover = reconcile(workspace, asked).report.cover
    assert cover.verdict == "INCOMPLETE"
    assert any(TOLD in because for because in cover.because)


SHOWN = [
    # delivered, stored, code, expected, found, the amount of the break
    ("1e308", None, "PRECISION", "1e308", "1e308", Decimal("1e308")),
    ("-1e308", None, "PRECISION", "-1e308", "-1e308", Decimal("1e308")),
    ("1e-320", None, "PRECISION", "1e-320", "1e-320", Decimal("1e-320")),
    ("1e25", "2e25", "PRECISION", "10000000000000000000000000", "20000000000000000000000000",
     Decimal("1e25")),
    ("60000000000000000000", "-60000000000000000000", "PRECISION", "60000000000000000000",
     "-60000000000000000000", Decimal("6e19")),
    ("10", "1e308", "AMOUNT", "10", "1e308", Decimal("1e308")),
    ("10", "1e309", "AMOUNT", "10", "1e309", Decimal("1e309")),
    ("10", "-1e400", "AMOUNT", "10", "-1e400", Decimal("1e400")),
    ("10", "99999999999999999999.9999999999999999999", "PRECISION", "10",
     "99999999999999999999.9999999999999999999", Decimal(10)),
    ("10", "10.0000000000000000001", "PRECISION", "10", "10.0000000000000000001", Decimal(10)),
    ("9007199254740992", "9007199254740993", "AMOUNT", "9007199254740992", "9007199254740993",
     Decimal(1)),
    ("10", "NaN", "PRECISION", "10", "NaN", Decimal(10)),
]  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize(("delivered", "stored", "code", "expected", "found", "amount"), SHOWN)
def test_an_amount_is_shown_as_what_it_is(
    workspace: Workspace,
    tmp_path: Path,
    delivered: str,
    stored: str | None,
    code: str,
    expected: str,
    found: str,
    amount: Decimal,
) -> None:
    path = write(tmp_path / "payments.csv", line(1, amount=delivered), line(2, amount="0.25"))
    import_delivery(workspace, [path], DEFAULT)
    if stored is not None:
        with workspace.database.connect() as connection:
            statement = 'UPDATE payment SET "PaidAmount" = %s::numeric WHERE "Id" = 1'
            connection.execute(statement, [stored])
    done = reconcile(workspace, Asked(Scope(), date(2026, 1, 9), Rules()))
    (one,) = [one for one in done.report.breaks if one.code in ("PRECISION", "AMOUNT")]
    assert (one.code, one.expected, one.found) == (code, expected, found)
    known = code == "AMOUNT" and one.found.lstrip("-").startswith("1e")
    size = EXACT.subtract(Decimal(one.found), Decimal(10)).copy_abs() if known else amount
    assert (one.amount, one.currency) == (size, "1")
    proof = next(one for one in done.report.proofs if one.field == "PaidAmount")
    held = Decimal(delivered if stored in (None, "NaN") else str(stored))
    totals = (proof.lines[0].amount, proof.lines[-1].amount)
    if stored == "NaN":  # It is no number, so nothing can be added: the run says so.
        assert any("or no number" in because for because in done.report.cover.because)
        assert totals == (Decimal("10.25"), Decimal("0.25"))
    else:
        assert totals == (
            EXACT.add(Decimal(delivered), Decimal("0.25")),
            EXACT.add(held, Decimal("0.25")),
        )
    assert (proof.currency, proof.unexplained) == ("1", 0)
    number = digits(one.amount) if one.amount is not None else ""
    for file in ("report.html", "report.txt"):
        text = (done.written.folder / file).read_text(encoding="utf-8")
        assert "".join(number.split()) in "".join(text.split())
    assert spelled(size) in (done.written.folder / "breaks.csv").read_text()
    assert (done.written.folder / "report.xlsx").stat().st_size
    _, listed = list_breaks(workspace, None, Chosen(code=code))
    row = listed.row(0, named=True)
    assert from_both(row["amount"], row["amount_beyond"]) == size
    assert listed["is_now"][0].startswith(f"expected {expected}, found {found}, ")


CHANGED = ["0.1000000000000000001", "9007199254740993", "1e-400"]
"""Delivered, and other when a double keeps them: their rows are rejected."""


@pytest.mark.long
@pytest.mark.parametrize("delivered", CHANGED)
def test_one_that_is_rejected_for_its_digits_is_in_every_sum(
    workspace: Workspace, tmp_path: Path, delivered: str
) -> None:
    path = write(tmp_path / "payments.csv", line(1, amount=delivered), line(2, amount="0.25"))
    batch = import_delivery(workspace, [path], DEFAULT).batch
    exact = Decimal(delivered)
    with workspace.database.connect() as connection:
        batch_report = build_report(workspace, connection, batch.id)
    (chain,) = batch_report.chains
    assert chain.states["rejected"].amounts["1"]["PaidAmount"] == exact
    assert batch_report.unreadable(chain) == ()
    report = reconcile(workspace, Asked(Scope(), date(2026, 1, 9), Rules())).report
    (one,) = [one for one in report.breaks if one.key == "1/7"]
    assert (one.code, one.basis, one.amount) == ("REJECTED", "difference", exact)
    assert not any("readable" in because for because in report.cover.because)
    proof = next(one for one in report.proofs if one.field == "PaidAmount")
    rejected = next(one for one in proof.lines if one.text == "- rejected")
    assert (proof.lines[0].amount, rejected.amount) == (EXACT.add(exact, Decimal("0.25")), -exact)
    assert proof.unexplained == 0


@pytest.mark.parametrize("typo", ["99999999999999999999.01", "-20000000000000000000.3"])
def test_one_that_is_rejected_keeps_no_run_from_its_verdict(
    workspace: Workspace, tmp_path: Path, typo: str
) -> None:
    """It is judged: by the check. Corrected, nothing is left of it that a total would need."""
    path = write(tmp_path / "payments.csv", line(1, amount=typo), line(2))
    import_delivery(workspace, [path], DEFAULT)
    asked = Asked(Scope(), date(2026, 1, 9), Rules(references=frozenset()))
    before = reconcile(workspace, asked).report
    assert (before.cover.verdict, [one.code for one in before.breaks]) == (
        "NOT_RECONCILED", ["REJECTED"],
    )  # fmt: skip
    again = tmp_path / "again.csv"
    again.write_text(f"ReconRow,{HEADER}\n1:1,{line(1)}\n")
    import_delivery(workspace, [str(again)], DEFAULT, corrects=1)
    after = reconcile(workspace, asked).report
    assert (after.cover.verdict, after.cover.because) == ("RECONCILED", ())
    corrected = next(one for one in after.proofs if one.field == "PaidAmount").lines
    assert EXACT.abs(Decimal(typo)) in {EXACT.abs(one.amount) for one in corrected}


@pytest.mark.long
def test_an_accepted_amount_that_grows_beyond_every_column_is_not_accepted(
    workspace: Workspace, tmp_path: Path
) -> None:
    path = write(tmp_path / "payments.csv", line(1, amount="1e300"))
    import_delivery(workspace, [path], DEFAULT)
    asked = Asked(Scope(), date(2026, 1, 9), Rules())
    reconcile(workspace, asked)
    chosen = Chosen(code="PRECISION")
    accept = Decision(Choice.ACCEPT, reason="known", by="anna", until=date(2026, 2, 1))
    decided = decide_breaks(workspace, None, chosen, accept)
    assert decided.gross == {"1": Decimal("1e300")}
    with workspace.database.connect() as connection:
        connection.execute('UPDATE payment SET "PaidAmount" = 1e308::numeric')
    report = reconcile(workspace, asked).report
    (one,) = [one for one in report.breaks if one.code == "PRECISION"]
    assert one.state == BreakState.REOPENED
    assert "accepted by anna" in one.note
    assert "found 1e300" in one.note
    assert "found 1e308" in one.note
    # One record counts once: with its payment as it was delivered, and the rest with its debt.
    assert report.roll_forward[0].lines[-1].gross == Decimal("1e308")
    aged = exact_sum(amount for one in report.ageing for amount in one.amounts)
    assert aged == Decimal("1e308")


def test_a_staged_amount_that_was_altered_does_not_tie(
    workspace: Workspace, tmp_path: Path
) -> None:
    path = write(tmp_path / "payments.csv", line(1, amount="1e300"))
    import_delivery(workspace, [path], DEFAULT)
    with workspace.database.connect() as connection:
        connection.execute('UPDATE staged_payment SET "PaidAmount" = 1e308::numeric')
    cover = reconcile(workspace, Asked(Scope(), date(2026, 1, 9), Rules())).report.cover
    assert cover.verdict == "INCOMPLETE"
    assert any("PaidAmount of 1e308" in because for because in cover.because)


NUMBERS = [
    ("1e308", "1e308"), ("-1e308", "\N{MINUS SIGN}1e308"), ("1e-320", "1e-320"), ("0.1", "0.10"),
    ("1e20", "100 000 000 000 000 000 000.00"), ("1.5e300", "15e299"),
]  # fmt: skip


@pytest.mark.parametrize(("number", "told"), NUMBERS)
def test_a_number_too_long_to_be_read_is_told_by_powers_of_ten(number: str, told: str) -> None:
    assert digits(Decimal(number)).replace("\N{NARROW NO-BREAK SPACE}", " ") == told


def test_a_sum_of_very_different_amounts_is_told_in_its_parts() -> None:
    total = exact_sum([Decimal("1e308"), Decimal("10.50"), Decimal("1e-320")])
    assert digits(total) == "1e308 + 10.50 + 1e-320"
    assert (
        digits(total.copy_negate())
        == "\N{MINUS SIGN}1e308 \N{MINUS SIGN} 10.50 \N{MINUS SIGN} 1e-320"
    )


@pytest.mark.long
def test_the_list_of_breaks_shows_it_in_its_column(workspace: Workspace, tmp_path: Path) -> None:
    path = write(tmp_path / "payments.csv", line(1, amount="1e308"))
    import_delivery(workspace, [path], DEFAULT)
    reconcile(workspace, Asked(Scope(), date(2026, 1, 9), Rules()))
    place = workspace.database.url, workspace.settings.home
    listed = ("breaks", "list", "--code", "PRECISION")
    (one,) = json.loads(run(*place, *listed, "--json").stdout)["breaks"]
    assert (one["amount"], one["expected"], one["counted"]) == ("1e308", "1e308", "1e308")
    assert not [name for name in one if name.endswith("_beyond")]
    assert "1e308" in run(*place, *listed).stdout


def test_a_break_about_a_field_has_its_money_as_text_where_no_exact_column_holds_it() -> None:
    amounts = pl.Series("PaidAmount", [Decimal("-1.50"), None, None], dtype=AMOUNT)
    texts = pl.Series(f"PaidAmount{BEYOND}", [None, "-1e308", None], dtype=pl.String)
    rows = pl.DataFrame([amounts, texts])
    made = make_breaks(
        "RATE_MISSING", "payment", rows, key=pl.lit("1"), amount=pl.col("PaidAmount")
    )
    assert made[f"amount{BEYOND}"].to_list() == [None, "1e308", None]
    given = make_breaks(
        "RATE_MISSING",
        "payment",
        rows,
        key=pl.lit("1"),
        amount=pl.col("PaidAmount"),
        **{f"amount{BEYOND}": pl.lit(None, pl.String)},
    )
    assert given[f"amount{BEYOND}"].to_list() == [None] * 3, "what the caller says counts"


def test_a_limit_is_reached_to_the_last_digit() -> None:
    texts = {
        "9999.9999999999999999999": "medium",
        "-9999.9999999999999999999": "medium",
        "10000.0000000000000000001": "high",
        "-1e400": "high",
        "99.9999999999999999999": "low",
        "1e-400": "low",
    }
    rows = pl.DataFrame(
        [
            pl.Series("PaidAmount", [None] * len(texts), dtype=AMOUNT),
            pl.Series(f"PaidAmount{BEYOND}", [*texts], dtype=pl.String),
        ]
    )
    made = make_breaks("AMOUNT", "payment", rows, key=pl.lit("1"), amount=pl.col("PaidAmount"))
    assert severities(new(made), Rules(), date(2026, 1, 1)).to_list() == [*texts.values()]


def test_a_number_of_sixty_characters_is_spelled_plainly() -> None:
    longest = "1" * 57 + ".25"
    assert spelled(Decimal(longest)) == longest
    assert spelled(Decimal("1" + longest)) == "1" * 58 + "25e-2"
