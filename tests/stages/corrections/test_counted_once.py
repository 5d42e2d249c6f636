"""A row in error that is delivered again, in error too, is one reject, in rows and in money."""

from collections import Counter
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from connectors.files.profiles.profile import DEFAULT
from connectors.postgres.batches.attempts import REPAIRED, later_attempts
from connectors.postgres.batches.corrections import unrepaired
from connectors.postgres.batches.ledger import State
from connectors.postgres.batches.overview import list_overview
from connectors.settings import Limits
from flows.commands.deliver import show_ended
from flows.report.next_step import repaired_text
from flows.stages.reconcile.run import Asked, reconcile
from flows.stages.reconcile.scope import Scope
from flows.stages.rows.rejects import write_rejects
from flows.stages.sequence import import_delivery
from flows.stages.undo import undo_batch
from flows.stages.workspace import Workspace
from flows.steps.rules.rules import Rules
from tests.stages.payments import HEADER, line, write

RULES = Rules()
REPAIRS = f"ReconRow,{HEADER}"


@pytest.fixture
def deliver(workspace: Workspace, tmp_path: Path) -> Any:
    """Deliver rows under the names of those they repair; the first batch has rows 2 and 3 bad."""
    lines = [line(1), line(2, day=99), line(3, amount="x")]
    import_delivery(workspace, [write(tmp_path / "a.csv", *lines)], DEFAULT)

    def repair(corrects: int, **repaired: str) -> Any:
        path = tmp_path / f"repair-{len(list(tmp_path.glob('*.csv')))}.csv"
        rows = [f"{name[1:].replace('_', ':')},{text}" for name, text in repaired.items()]
        path.write_text("\n".join([REPAIRS, *rows]) + "\n")
        return import_delivery(workspace, [str(path)], DEFAULT, corrects=corrects)

    return repair


def rejected(workspace: Workspace) -> tuple[int, str, set[int]]:
    """Rows and paid money that a reconciliation calls rejected, and the batches they are of."""
    done = reconcile(workspace, Asked(Scope(), date(2026, 2, 1), RULES))
    statuses = {one.status: one.rows for one in done.report.statuses}
    money = sum(
        one.amount
        for proof in done.report.proofs
        if proof.field == "PaidAmount"
        for one in proof.lines
        if one.text == "- rejected"
    )
    batches = {one.batch_id for one in done.report.breaks if one.code == "REJECTED"}
    return statuses.get("REJECTED", 0), str(money), batches


def listed(workspace: Workspace) -> dict[int, int]:
    with workspace.database.connect() as connection:
        return {one.id: one.errors for one in list_overview(connection, 20)}


@pytest.mark.long
def test_a_repair_that_fails_counts_once_and_where_it_came_last(
    workspace: Workspace, deliver: Any
) -> None:
    before = rejected(workspace)
    assert before[0] == 2
    deliver(1, r1_2=line(2, day=98), r1_3=line(3, amount="3"))
    assert rejected(workspace) == (1, before[1], {2})
    assert listed(workspace) == {1: 0, 2: 1}


@pytest.mark.long
def test_a_row_in_error_again_is_to_be_corrected_from_its_last_delivery(
    workspace: Workspace, deliver: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is left in its own batch that `recon rejects` would write."""

    def told() -> str:
        ended = import_delivery(workspace, [str(tmp_path / "a.csv")], DEFAULT)
        show_ended(ended, workspace.settings.reports, as_json=False)
        return capsys.readouterr().out

    assert "next: recon rejects 1" in told()
    deliver(1, r1_2=line(2, day=98), r1_3=line(3, amount="3"))
    assert "what is in error there too" in told()
    assert "next:" not in told()
    deliver(1, r1_2=line(2, day=97))
    assert "next:" not in told()
    undo_batch(workspace, 3, by=None, reason="wrong")
    undo_batch(workspace, 2, by=None, reason="wrong")
    assert "next: recon rejects 1" in told()


@pytest.mark.long
def test_the_same_row_twice_and_a_chain_count_once(workspace: Workspace, deliver: Any) -> None:
    before = rejected(workspace)
    deliver(1, r1_2=line(2, day=98))
    deliver(1, r1_2=line(2, day=97))
    deliver(3, r3_1=line(2, day=96))
    assert rejected(workspace) == (2, before[1], {1, 4})
    assert listed(workspace) == {1: 1, 2: 0, 3: 0, 4: 1}
    undo_batch(workspace, 4, by=None, reason="test")
    assert listed(workspace) == {1: 1, 2: 0, 3: 1, 4: 1}
    assert rejected(workspace) == (2, before[1], {1, 3})
    deliver(3, r3_1=line(2, amount="10"))
    # The row is taken in, and no attempt of it is left.
    assert rejected(workspace)[0] == 1
    assert {name: rows for name, rows in listed(workspace).items() if name != 4} == {
        1: 1,
        2: 0,
        3: 0,
        5: 0,
    }


@pytest.mark.long
def test_a_good_repair_that_is_changed_for_the_worse_is_an_error_of_its_own(
    workspace: Workspace, deliver: Any
) -> None:
    """It is counted and offered where it came: the record has not what was delivered last."""
    deliver(1, r1_2=line(2), r1_3=line(3))
    deliver(2, r2_1=line(2, amount="x"))
    with workspace.database.connect() as connection:
        assert later_attempts(connection, 3) == {}
    assert listed(workspace) == {1: 0, 2: 0, 3: 1}
    deliver(3, r3_1=line(2, amount="12", day=2))
    with workspace.database.connect() as connection:
        assert {later.state for later in later_attempts(connection, 3).values()} == {REPAIRED}
    assert listed(workspace) == {1: 0, 2: 0, 3: 0, 4: 0}


def status_of(workspace: Workspace) -> dict[int, str]:
    with workspace.database.connect() as connection:
        return {one.id: repaired_text(one) for one in list_overview(connection, 20)}


@pytest.mark.long
def test_a_batch_whose_rejects_were_all_repaired_says_so(
    workspace: Workspace, deliver: Any
) -> None:
    """Its state is what it ended with, and stays."""
    deliver(1, r1_2=line(2))
    assert status_of(workspace) == {1: "", 2: ""}, "one of two is left"
    deliver(1, r1_3=line(3, amount="y"))
    assert status_of(workspace) == {1: "", 2: "", 3: ""}, "in error again is not repaired"
    deliver(3, r3_1=line(3))
    assert status_of(workspace) == {
        1: "all 2 rejects repaired by batches 2 and 4",
        2: "",
        3: "its reject repaired by batch 4",
        4: "",
    }
    with workspace.database.connect() as connection:
        (first,) = [one for one in list_overview(connection, 20) if one.id == 1]
        assert first.state is State.COMPLETE_WITH_ERRORS
        # The same source as that of `recon rejects`, which writes none of them.
        assert {later.state for later in later_attempts(connection, 1).values()} == {REPAIRED}
    undo_batch(workspace, 4, by=None, reason="wrong")
    assert status_of(workspace) == {1: "", 2: "", 3: "", 4: ""}


@pytest.mark.long
def test_a_repair_without_names_is_one_as_well(workspace: Workspace, deliver: Any) -> None:
    """Rows with the key of those in error, as a corrected file without `ReconRow` has them."""
    deliver(1, r1_2=line(2), r1_3=line(3))
    assert status_of(workspace)[1] == "all 2 rejects repaired by batch 2"
    undo_batch(workspace, 2, by=None, reason="wrong")
    deliver(1, r=line(2), _=line(3))
    assert status_of(workspace)[1] == "all 2 rejects repaired by batch 3"


@pytest.mark.long
def test_a_scope_without_the_first_delivery_counts_the_attempt_it_has(
    workspace: Workspace, deliver: Any
) -> None:
    deliver(1, r1_2=line(2, day=98))
    done = reconcile(workspace, Asked(Scope(batches=(2,)), date(2026, 2, 1), RULES))
    assert {one.status: one.rows for one in done.report.statuses}["REJECTED"] == 1


@pytest.mark.long
def test_scopes_of_some_attempts_come_to_what_everything_comes_to(
    workspace: Workspace, deliver: Any
) -> None:
    """An attempt is none any more once it was delivered again, whichever batches are named."""

    def rows(*batches: int) -> Counter[str]:
        done = reconcile(workspace, Asked(Scope(batches=batches), date(2026, 2, 1), RULES))
        return Counter({one.status: one.rows for one in done.report.statuses if one.rows})

    deliver(1, r1_2=line(2, day=98), r1_3=line(3, amount="y"))
    deliver(2, r2_1=line(2), r2_2=line(3, amount="z"))
    parts = [rows(1), rows(2), rows(3)]
    assert [part["REJECTED"] for part in parts] == [0, 0, 1]
    assert sum(parts, Counter()) == rows()


UNDIVIDED = {
    "StrayQuote": (b'2,1,"open', b'3,1,x"', b'4,1,a "b" c'),
    "UnterminatedQuote": (b'5,1,"never closed', b'5,2,"open'),
    "TooFewFields": (b"6,1", b'7,"a\nb"'),
    "TooManyFields": (b"8,1,a,5", b'9,1,a,"6"'),
    "NulCharacter": (b'10,1,"a\0', b'10,1,a\0"'),
    "Encoding": (b'11,1,"\xff', b'11,1,\xff"'),
    "FieldTooLarge": (b"12,1," + b"a" * 101,),
    "RecordTooLarge": (b"13,1," + b"a" * 950,),
}
"""Lines that cannot be divided into cells, some of which would go on in the next one."""


def test_lines_without_cells_that_are_delivered_again_as_they_were_count_once(
    workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    """Whatever is wrong with a line, it takes no other one with it, and is known again."""
    limits = Limits(strict_bytes=0, field_bytes=100, record_bytes=200, look_ahead_bytes=400)
    workspace = replace(workspace, settings=replace(workspace.settings, limits=limits))
    sound = iter(range(100, 200))
    lines = [b"TenantsId,AvatarsId,Name", *[b"1,1,a", b"1,2,a"] * 4]
    for broken in UNDIVIDED.values():
        for one in broken:
            lines += [b'%d,1,"a ""b"" c"' % next(sound), one]
    (tmp_path / "tones.csv").write_bytes(b"\n".join(lines) + b"\n")
    profile = replace(DEFAULT, feed="tones", record="message_tone")
    import_delivery(workspace, [str(tmp_path / "tones.csv")], profile)
    codes = Counter(
        code
        for (code,) in rows(
            "SELECT error_data::json -> 0 ->> 'ErrorCode' FROM staged_row "
            "WHERE error_data IS NOT NULL"
        )
    )
    assert codes.keys() == UNDIVIDED.keys()
    errors = codes.total()
    assert listed(workspace) == {1: errors}
    for batch in (1, 2):
        folder = tmp_path / str(batch)
        written = write_rejects(workspace, batch, folder, with_secrets=True)
        assert [*written.values()] == [errors]
        import_delivery(workspace, [str(folder)], DEFAULT, corrects=batch)
        read = rows("SELECT count(*) FROM staged_row WHERE batch_id = %s", [batch + 1])
        assert read == [(errors,)]
        assert listed(workspace) == dict.fromkeys(range(1, batch + 1), 0) | {batch + 1: errors}


def test_a_row_that_names_one_of_another_kind_is_no_delivery_of_it(
    workspace: Workspace, tmp_path: Path
) -> None:
    """Nor are two that name what is not there deliveries of one: each is in error by itself."""
    rates = tmp_path / "rates.csv"
    head = "Id,TenantsId,FromCurrenciesId,ToCurrenciesId,ExchangeRate,EffectiveDate"
    rates.write_text(f"{head}\n1,7,1,2,x,2026-01-01\n")
    import_delivery(workspace, [write(tmp_path / "a.csv", line(1)), str(rates)], DEFAULT)
    repairs = tmp_path / "repairs.csv"
    astray = (f"2:1,{line(8)}", f"2:1,{line(9)},more", f"9:9,{line(10)}", f"9:9,{line(11)}")
    repairs.write_text("\n".join([REPAIRS, *astray]) + "\n")
    import_delivery(workspace, [str(repairs)], DEFAULT, corrects=1)
    assert listed(workspace) == {1: 1, 2: 4}
    assert rejected(workspace)[2] == {1, 2}
    for batch, count in ((1, 1), (2, 4)):
        written = write_rejects(workspace, batch, tmp_path / str(batch), with_secrets=False)
        assert [*written.values()] == [count]
    again = tmp_path / "again.csv"
    again.write_text(f"ReconRow,{head}\n2:1,1,7,1,2,1.5,2026-01-01\n")
    import_delivery(workspace, [str(again)], DEFAULT, corrects=1)
    assert listed(workspace) == {1: 0, 2: 4, 3: 0}


def test_what_repairs_a_row_that_named_one_of_another_kind_repairs_that_row_alone(
    workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    """The row of the other kind ended as corrected, and nobody was told to correct it."""
    rates = tmp_path / "rates.csv"
    head = "Id,TenantsId,FromCurrenciesId,ToCurrenciesId,ExchangeRate,EffectiveDate"
    rates.write_text(f"{head}\n1,7,1,2,x,2026-01-01\n")
    import_delivery(workspace, [write(tmp_path / "a.csv", line(1)), str(rates)], DEFAULT)
    for batch, names in ((2, ("2:1", "2:1")), (3, ("3:1", "3:2"))):
        repairs = tmp_path / f"repairs-{batch}.csv"
        # Rejected for what it names, and for a cell, before anybody asks what it names.
        amounts = ("1", "x") if batch == 2 else ("1", "2")
        cells = [line(number, amount=of) for number, of in zip((8, 9), amounts, strict=True)]
        written = map(",".join, zip(names, cells, strict=True))
        repairs.write_text("\n".join([REPAIRS, *written]) + "\n")
        import_delivery(workspace, [str(repairs)], DEFAULT, corrects=batch - 1)
    assert rows(
        "SELECT batch_id, count(*) FROM outcome WHERE verdict = 'corrected' GROUP BY 1"
    ) == [(2, 2)]
    assert listed(workspace) == {1: 1, 2: 0, 3: 0}
    with workspace.database.connect() as connection:
        assert [*unrepaired(connection)] == []


def test_a_repair_that_is_a_line_without_cells_is_repaired_in_part(
    workspace: Workspace, deliver: Any
) -> None:
    """It was corrected by one record of it, and another one is in error still."""
    deliver(1, r1_2=line(2) + ",more", r1_3=line(3, amount="3"))
    repairs = workspace.settings.home / "part.csv"
    repairs.write_text("\n".join([REPAIRS, f"2:1,{line(2)}", f"2:1,{line(4, amount='x')}", ""]))
    import_delivery(workspace, [str(repairs)], DEFAULT, corrects=2)
    assert listed(workspace) == {1: 0, 2: 0, 3: 1}
