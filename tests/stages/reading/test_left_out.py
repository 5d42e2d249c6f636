"""Rows that a feed profile leaves out: kept, counted and told, and neither checked nor applied."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from connectors.errors import ExtractRefused, ProfileError
from connectors.files.layout.header import read_header
from connectors.files.profiles.profile import Profile
from connectors.files.profiles.profile_file import read_profile
from connectors.files.text.content import open_content
from connectors.postgres.batches.ledger import State
from connectors.settings import Limits
from flows.commands.deliver import show_ended
from flows.stages.check import MOST_NAMED, OTHERS
from flows.stages.examining.examine import examine
from flows.stages.reconcile.rules import read_rules
from flows.stages.reconcile.run import Asked, reconcile
from flows.stages.reconcile.scope import Scope
from flows.stages.rows.rejects import write_rejects
from flows.stages.sequence import Ended, import_delivery
from flows.stages.undo import undo_batch
from flows.stages.workspace import Workspace
from flows.steps.validate.budget import over_budget
from schemas.reasons import NOT_SHOWN
from tests.governance.conftest import Ran
from tests.governance.conftest import recon as recon  # noqa: PLC0414 -- the fixture.
from tests.stages.payments import HEADER, line

SHAPE: dict[str, Any] = {
    "feed": "provider",
    "record": "payment",
    "leave_out": {"Status": ["pending", "void"]},
    "keep_only": {"Type": ["", "Charge"]},
}
PROFILE = read_profile(SHAPE)
TOP = f"{HEADER},Status,Type"
ROWS = [
    f"{line(1)},settled,Charge",
    f"{line(2)},pending,Charge",
    f"{line(3, amount='nothing yet')},void,",
    f"{line(4)},settled,Fee",
    f"{line(5, amount='twelve')},settled,",
    f"{line(1)},pending,Charge",  # The key of the first, with the same content.
    f"{line(6)},settled,",
    f"{line(7)},settled",
]


def written(folder: Path, *lines: str) -> str:
    path = folder / "payments.csv"
    path.write_text("\n".join([TOP, *(lines or ROWS)]) + "\n")
    return str(path)


def imported(workspace: Workspace, folder: Path, profile: Profile = PROFILE, *lines: str) -> Ended:
    return import_delivery(workspace, [written(folder, *lines)], profile)


@pytest.mark.long
def test_rows_are_left_out_counted_and_told(
    workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    done = imported(workspace, tmp_path)
    assert done.batch.state is State.COMPLETE_WITH_ERRORS
    states = rows("SELECT record_number, state FROM staged_row ORDER BY 1")
    assert states == [
        (1, "inserted"), (2, "excluded"), (3, "excluded"), (4, "excluded"),
        (5, "rejected"), (6, "excluded"), (7, "inserted"), (8, "rejected"),
    ]  # fmt: skip
    (chain,) = done.report.chains
    assert {state: totals.rows for state, totals in chain.states.items()} == {
        "rejected": 2, "excluded": 4, "inserted": 2,
    }  # fmt: skip
    # Money of a row that is left out counts as far as it can be read.
    assert chain.states["excluded"].amounts["1"]["PaidAmount"] == Decimal("31.50")
    assert all(step.residual.is_zero for step in chain.lines)
    (file,) = done.report.files
    assert (file.rows, file.rejected, file.excluded) == (8, 2, 4)
    notes = [
        (one.field, one.value, one.rows, one.line)
        for one in done.report.notes
        if one.code == "LeftOut"
    ]
    assert notes == [("Status", "pending", 2, 3), ("Status", "void", 1, 4), ("Type", "Fee", 1, 5)]
    report = workspace.settings.home / "reports" / f"batch-{done.batch.id}" / "report.html"
    page = report.read_text()
    assert '<td class="n" data-label="Left out">4</td>' in page
    # They are no rows in error, and nobody is asked to correct them.
    (rejects,) = write_rejects(workspace, done.batch.id, tmp_path / "rejects", with_secrets=False)
    assert len(rejects.read_text().splitlines()) == 3


@pytest.mark.long
def test_what_was_left_out_by_mistake_is_read_anew(
    workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    imported(workspace, tmp_path)
    again = imported(workspace, tmp_path)
    assert [one.endswith("nothing to do.") for one in again.messages] == [True]
    cheaper = replace(PROFILE, keep="reference")
    assert imported(workspace, tmp_path, cheaper).messages == again.messages
    other = replace(PROFILE, leave_out={"Status": ("void",)}, zone="Europe/Berlin")
    told = (
        "It was read by the profile and settings of then, which say something else about "
        "leave_out, zone: to have it read anew, `recon undo 1 --reason ...` and import it again."
    )
    (message,) = imported(workspace, tmp_path, other).messages
    assert message.endswith(told)
    more = tmp_path / "more.csv"
    more.write_text(f"{TOP}\n{line(8)},settled,\n")
    both = import_delivery(workspace, [written(tmp_path), str(more)], replace(other, zone=None))
    assert "something else about leave_out" in both.messages[0]
    undo_batch(workspace, 1, by=None, reason="the profile left out what is wanted")
    done = imported(workspace, tmp_path, replace(PROFILE, leave_out={"Status": ("void",)}))
    states = dict(
        rows(f"SELECT record_number, state FROM staged_row WHERE batch_id = {done.batch.id}")
    )
    assert states[2] == "inserted"


def test_a_check_says_the_same(still: Workspace, tmp_path: Path) -> None:
    (verdict,) = examine(still.settings, [written(tmp_path)], PROFILE)
    assert (verdict.rows_in, verdict.excluded) == (8, 4)
    assert [one.record_number for one in verdict.rejects] == [5, 8]


SEEN = ["pending\u00a0", "\u200bpending", "\ufeffpending", "pen\u00adding", "in\u202ftransit"]


@pytest.mark.parametrize("as_utf_16", [False, True])
def test_what_nobody_sees_in_a_cell_decides_nothing(
    still: Workspace, tmp_path: Path, *, as_utf_16: bool
) -> None:
    """Such a cell looks like one that leaves its row out, or that keeps it: a payment in doubt."""
    lines = [f"{line(at)},{cell}," for at, cell in enumerate(SEEN)]
    lines += [f"{line(8)},,Charge\u200b", f"{line(9)},,\u00a0", f"{line(10)},Pending,x", ""]
    text = "\n".join([f"{HEADER},Status,Type", *lines])
    path = tmp_path / "payments.csv"
    path.write_text(text, "utf-16" if as_utf_16 else "utf-8")
    states = {"leave_out": {"Status": ["pending", "in\u00a0transit"]}}
    (verdict,) = examine(still.settings, [str(path)], read_profile(SHAPE | states))
    assert (verdict.rows_in, verdict.excluded, [*verdict.rejects]) == (8, 6, [])


@pytest.mark.long
def test_chunks_and_reruns_leave_out_the_same(
    workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    small = replace(workspace.settings, limits=replace(workspace.settings.limits, block_bytes=100))
    done = imported(replace(workspace, settings=small), tmp_path)
    assert rows("SELECT count(*) FROM receipt WHERE stage = 'stage'")[0][0] > 3
    notes = {(one.field, one.value): one.rows for one in done.report.notes if one.code == "LeftOut"}
    assert notes == {("Status", "pending"): 2, ("Status", "void"): 1, ("Type", "Fee"): 1}
    assert rows("SELECT count(*) FROM staged_row WHERE state = 'excluded'") == [(4,)]


@pytest.mark.long
def test_a_row_that_is_corrected_into_one_that_is_left_out_is_done(
    workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    batch = imported(workspace, tmp_path, PROFILE, ROWS[4]).batch
    # The provider lists the payment again, as pending: that repairs nothing.
    again = f"{line(5)},pending,"
    path = tmp_path / "again.csv"
    path.write_text(f"{TOP}\n{again}\n")
    import_delivery(workspace, [str(path)], PROFILE)
    states = "SELECT state FROM staged_row WHERE batch_id = %s"
    assert rows(states, [batch.id]) == [("rejected",)]
    (rejects,) = write_rejects(workspace, batch.id, tmp_path / "rejects", with_secrets=False)
    rejects.write_text(rejects.read_text().replace("settled", "void"))
    import_delivery(workspace, [str(rejects)], PROFILE, corrects=batch.id)
    assert rows(states, [batch.id]) == [("corrected",)]
    assert write_rejects(workspace, batch.id, tmp_path / "more", with_secrets=False) == {}


@pytest.mark.long
def test_what_is_left_out_is_not_compared(workspace: Workspace, tmp_path: Path) -> None:
    imported(workspace, tmp_path, PROFILE, *ROWS[:2])
    rules = replace(read_rules(None), references=frozenset())
    done = reconcile(workspace, Asked(Scope(), date(2026, 1, 31), rules))
    assert [one.code for one in done.report.breaks if one.record == "payment"] == []


@pytest.mark.long
@pytest.mark.parametrize(("least", "held"), [(None, False), (0.25, False), (0.26, True)])
def test_a_batch_of_which_too_little_is_read_is_held(
    workspace: Workspace,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    least: float | None,
    held: bool,
) -> None:
    ended = imported(workspace, tmp_path, replace(PROFILE, budget_read=least))
    assert (ended.batch.state is State.HELD) == held
    if held:
        show_ended(ended, tmp_path, as_json=False)
        next_step = "next: recon release 1 --reason ..., or recon discard 1 --reason ..."
        assert next_step in capsys.readouterr().out.splitlines()
        assert ended.batch.held_because == (
            "2 of 8 rows are read (25.00%), 2 have errors and 4 are left out by the feed profile; "
            "at least 26.00% have to be read"
        )


LITTLE_READ = (
    "1 of 2 rows is read (50.00%), 0 have errors and 1 are left out by the feed profile; "
    "at least 90.00% have to be read"
)


@pytest.mark.long(but=("-cells3-held3",))
@pytest.mark.parametrize(
    ("terms", "cells", "held"),
    [
        ("[budget]\nread = 0.9", [f"{line(1)},settled", f"{line(2)},pending"], LITTLE_READ),
        ("[budget]\nerrors = 0", [f"{line(1)},settled", f"{line(2)},pending"], None),
        (
            "[budget]\nerrors = 0",
            [f"{line(1)},settled", f"{line(2, amount='x')},settled"],
            "1 of 2 rows has errors; the budget allows 0 rows",
        ),
        (
            "",
            [f"{line(1)},settled", f"{line(2, amount='x')},pending", "Sum 99.00"],
            "payments.csv cannot be proven to be whole: sum of PaidAmount: stated 99.00, "
            "the file has 10.50, and 1 row has no amount there that can be read",
        ),
    ],
)
def test_what_holds_an_import_is_said_before_it(
    recon: Callable[..., Ran], tmp_path: Path, terms: str, cells: list[str], held: str | None
) -> None:
    feed, path = tmp_path / "feed.toml", tmp_path / "payments.csv"
    footer = "footer = ['Sum (?P<PaidAmount>.*)']\n" if "Sum" in cells[-1] else ""
    left_out = '[leave_out]\nStatus = ["pending"]\n'
    feed.write_text(f'feed = "provider"\nrecord = "payment"\n{footer}{left_out}{terms}\n')
    path.write_text("\n".join([f"{HEADER},Status", *cells, ""]))
    asked = (str(path), "--profile", str(feed))
    for command in (("check",), ("profile", "try")):
        code, out, _ = recon(*command, *asked)
        assert code == (1 if held else 0), out
        assert out.count("held") == (1 if held else 0)
        assert (f"an import would be held: {held}" in " ".join(out.split())) is bool(held)
        assert json.loads(recon(*command, *asked, "--json")[1])["held_because"] == held
    code, out, _ = recon("import", *asked)
    words = " ".join(out.split())
    assert (f"held: {held}" in words) is bool(held)
    assert ("Read the rejects" in words) is bool(held and "has errors" in held)
    assert ("Release the batch" in words) is bool(held and "has errors" not in held)


def test_a_file_without_a_record_is_said(recon: Callable[..., Ran], tmp_path: Path) -> None:
    path = tmp_path / "payments.csv"
    path.write_text(f"{HEADER}\n")
    for command in (("check",), ("profile", "try")):
        assert "payments.csv: 0 rows, a header but no record." in recon(*command, str(path))[1]


@pytest.mark.long
def test_all_rows_may_be_left_out(workspace: Workspace, rows: Any, tmp_path: Path) -> None:
    done = imported(workspace, tmp_path, PROFILE, ROWS[1], ROWS[3])
    assert done.batch.state is State.COMPLETE
    assert rows("SELECT count(*) FROM payment") == [(0,)]


def test_the_command_line_says_how_many(recon: Callable[..., Ran], tmp_path: Path) -> None:
    feed = tmp_path / "feed.toml"
    feed.write_text(
        'feed = "provider"\nrecord = "payment"\n[leave_out]\nStatus = ["pending", "void"]\n'
        '[keep_only]\nType = ["", "Charge"]\n'
    )
    code, out, _ = recon("check", written(tmp_path), "--profile", str(feed))
    first = "payments.csv: payment, 8 rows, 2 with errors, 4 left out"
    assert (code, out.split("\n")[0]) == (1, first)


@pytest.mark.long
def test_a_row_that_is_left_out_is_shown_as_such(recon: Callable[..., Ran], tmp_path: Path) -> None:
    feed = tmp_path / "feed.toml"
    feed.write_text(
        'feed = "provider"\nrecord = "payment"\n[leave_out]\nStatus = ["pending", "void"]\n'
        '[keep_only]\nType = ["", "Charge"]\n'
    )
    asked = ("profile", "try", written(tmp_path), "--profile", str(feed), "--rows", "8")
    told = json.loads(recon(*asked, "--json")[1])["rows"]
    why = [None, "Status is 'pending'", "Status is 'void'", "Type is 'Fee'", None]
    assert [row["left_out"] for row in told] == [*why, "Status is 'pending'", None, None]
    assert all(not (row["left_out"] and row["values"]) for row in told)
    lines = [one for one in recon(*asked)[1].splitlines() if one.strip()]
    of = next(place for place, one in enumerate(lines) if one.startswith("Line 3: "))
    assert (lines[of + 1], lines[of + 2][:7]) == ("  left out: Status is 'pending'", "Line 4:")


REFUSED = [
    ({"leave_out": {"State": ["x"]}}, "missing: State"),
    ({"keep_only": {"State": ["x"]}}, "missing: State"),
    ({"leave_out": {"Twice": ["x"]}, "unknown_columns": "ignore"}, "more than once: Twice"),
    (
        {"fields": {"PaymentDate": {"from": ["Status", "twice"]}}, "unknown_columns": "ignore"},
        "more than once: Twice",
    ),
]


@pytest.mark.parametrize(("keys", "said"), REFUSED)
def test_a_file_without_the_column_or_with_two_of_it_is_refused(
    tmp_path: Path, keys: dict[str, Any], said: str
) -> None:
    profile = read_profile({"feed": "x", "record": "payment", **keys})
    path = Path(written(tmp_path))
    header, *lines = path.read_text().splitlines()
    path.write_text("\n".join([f"{header},Twice,TWICE", *(f"{line},1,2" for line in lines)]))
    content = open_content(path)
    with pytest.raises(ExtractRefused) as caught:
        read_header(content, None, profile, Limits())
    assert said in str(caught.value)


MEANT_TWICE = [
    ({"leave_out": {"Status": []}}, "leave_out.Status is an empty list"),
    ({"leave_out": {"Status": "void"}}, "is not a list of texts"),
    ({"keep_only": {" ": ["x"]}}, "a column without a name"),
    ({"record": "insert_batch_data"}, "not for insert-batch data"),
    ({"budget": {"read": 1.5}}, "is not a share"),
]


@pytest.mark.parametrize(("keys", "said"), MEANT_TWICE)
def test_a_profile_that_cannot_be_meant(keys: dict[str, Any], said: str) -> None:
    with pytest.raises(ProfileError) as caught:
        read_profile({**SHAPE, **keys})
    assert said in str(caught.value)


@pytest.mark.long
def test_of_very_many_cells_the_first_are_named_and_all_are_counted(
    workspace: Workspace, tmp_path: Path
) -> None:
    path = tmp_path / "many.csv"
    rows = [f"{line(number + 1)},state {number}" for number in range(MOST_NAMED + 50)]
    path.write_text("\n".join([f"{HEADER},Status", *rows, ""]))
    keep = {"keep_only": {"Status": [" state 0 "]}, "unknown_columns": "ignore"}
    done = import_delivery(workspace, [str(path)], read_profile({"feed": "x", **keep}))
    notes = {one.value: one.rows for one in done.report.notes if one.code == "LeftOut"}
    assert (len(notes), notes[OTHERS]) == (MOST_NAMED + 1, 49)
    (file,) = done.report.files
    assert (file.rows, file.excluded) == (MOST_NAMED + 50, MOST_NAMED + 49)


@pytest.mark.long
def test_a_cell_that_may_be_a_secret_is_kept_nowhere(
    workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    path = tmp_path / "registrations.csv"
    path.write_text(
        "EMail,FirstName,LastName,Password,ConfirmPassword,Company\n"
        "a@example.com,Ann,Lee,,canary-secret,canary-secret\n"
    )
    keep = {"keep_only": {"Company": ["Acme"]}}
    import_delivery(workspace, [str(path)], read_profile({"feed": "x", **keep}))
    (clues,) = rows("SELECT clues::text FROM receipt WHERE stage = 'stage'")
    assert "canary" not in clues[0]
    assert NOT_SHOWN in clues[0]


@pytest.mark.parametrize(
    ("good", "terms"),
    [(71, {"highest_rate": 0.29}), (7, {"least_read": 0.07, "highest_rate": None})],
)
def test_a_share_of_a_budget_is_what_is_written(good: int, terms: dict[str, float | None]) -> None:
    """0.29 of 100 rows are 29, and not as much less as the binary number that is next to it."""
    given: dict[str, Any] = {"highest_rate": None} | terms
    assert over_budget(100, 100 - good, most_errors=None, **given) is None
    assert over_budget(100, 100 - good + 1, most_errors=None, **given) is not None
