"""One scope has one text, however it is typed, and its runs follow each other."""

import gzip
import json
from dataclasses import replace
from datetime import date
from itertools import permutations, product
from pathlib import Path
from zipfile import ZipFile

import pytest

from connectors.errors import DayRefused, SettingsError
from connectors.files.incoming.unpack import PACKED
from connectors.files.profiles.profile import DEFAULT, Profile
from connectors.postgres.batches.overview import called, files_to_deliver, list_overview
from flows.report.next_step import next_step
from flows.report.reconciled.markdown import breaks_table
from flows.report.reconciled.text import render_text
from flows.report.text import TAKEN
from flows.stages.reconcile.held_against import baseline
from flows.stages.reconcile.run import Asked, reconcile
from flows.stages.reconcile.scope import EVERYTHING, Scope, is_one_scope, scope_title
from flows.stages.reconcile.sign import approve, prepare
from flows.stages.reconcile.since_signed import to_accept
from flows.stages.sequence import import_delivery, release_batch
from flows.stages.undo import undo_batch
from flows.stages.workspace import Workspace
from flows.steps.breaks.frame import gather
from flows.steps.reconcile.report import ReconciliationReport
from flows.steps.rules.rules import Rules
from schemas.guards.accounts import tenants_of
from schemas.life import GONE, RESTATED
from tests.governance.runs import DAY, found
from tests.governance.runs import reconcile as saved
from tests.governance.test_three_days import STRICT, accept_open, on_page_one
from tests.stages.payments import HEADER, line, write

APPROVED = [
    "feeds default; tenants 8", "batches 1", "tenants 8", "feeds other", "tenants 7, 8",
    "batches 1; tenants 7", "feeds default", "everything; restated as of 2026-01-02", "batches 2",
    "feeds other, default", "feeds pay, default as of 2026-01-29, restated: late", "everything",
    "tenants 7",
]  # fmt: skip
"""Scopes in the order in which reports of them are approved; batches 1 and 2 are of feed default
and of feed other."""
FIRST, LAST = date(2026, 1, 2), date(2026, 1, 31)

SCOPES = [
    Scope(batches, feeds, tenants)
    for batches, feeds, tenants in product(
        [(), (7,), (12, 2)],
        [(), ("a",), ("pay", "0-x.CSV_2"), ("f" * 64,)],
        [(), (7,), (8, -7)],
    )
]


def test_a_scope_is_read_back_from_its_text() -> None:
    assert [Scope.read(scope.text) for scope in SCOPES] == SCOPES
    assert len({scope.text for scope in SCOPES}) == len(SCOPES)
    assert Scope.read(EVERYTHING) == Scope()


OF_EARLIER = [
    "everything as of 2026-01-29, restated: late; tenants 7",
    "tenants 8 as of 2026-01-29, restated: late; tenants 7",
    "batches 2; feeds pay, file as of 2026-01-29, restated: late; tenants 7; restated as of today",
]
"""Restatements as an earlier version named them: with what somebody typed."""


def test_the_database_reads_of_a_scope_which_tenants_it_is_about(workspace: Workspace) -> None:
    """Who acts for these alone sees it: what somebody typed is none of them."""
    known = {
        one.text + more: [*map(str, one.tenants)] or None
        for one in SCOPES
        for more in ("", f"{RESTATED}2026-01-02")
    } | dict.fromkeys(OF_EARLIER)
    with workspace.database.connect() as connection:
        rows = connection.execute(
            f"SELECT scope, {tenants_of('scope')} FROM unnest(%s::text[]) scope", [[*known]]
        ).fetchall()
    assert dict(rows) == known


def test_a_scope_has_one_text_in_whatever_order_it_is_named() -> None:
    texts = {
        Scope(batches, feeds, tenants).text
        for batches, feeds, tenants in product(
            permutations([10, 9, 9]), permutations(["pay", "file", "pay"]), permutations([8, 7, 8])
        )
    }
    assert texts == {"batches 9, 10; feeds file, pay; tenants 7, 8"}
    # As an earlier version kept them.
    assert Scope.read("batches 10, 9, 9; feeds pay, file; tenants 8, 7") == Scope(
        (9, 10), ("file", "pay"), (7, 8)
    )
    assert is_one_scope("feeds pay, file", "feeds file, pay")
    assert not is_one_scope("feeds pay, file", "feeds file")
    assert is_one_scope(restated := "feeds pay, file as of 2026-01-29, restated: late", restated)
    assert not is_one_scope(restated, "feeds file, pay")


@pytest.mark.parametrize(
    "feed", ["pay, file", "a; tenants 7", "", "-a", "a b", "über", "a\n", "f" * 65]
)
def test_what_is_not_the_name_of_a_feed_is_refused(feed: str) -> None:
    with pytest.raises(SettingsError, match="is not the name of a feed"):
        Scope(feeds=("pay", feed))


@pytest.mark.long
def test_the_database_holds_a_first_run_against_the_same_report_as_its_page_one(
    workspace: Workspace, tmp_path: Path
) -> None:
    """Whatever was approved by then, of its own scope or of another."""
    for number, feed in enumerate(("default", "other"), 1):
        path = write(tmp_path / f"{number}.csv", line(number))
        import_delivery(workspace, [path], replace(DEFAULT, feed=feed))
    runs = [saved(workspace, found(), scope=scope, rules=f"{number:064}")
            for number, scope in enumerate(APPROVED)]  # fmt: skip
    told = set()
    for one in runs:
        prepare(workspace, one.id, by="ann", comment="")
        with workspace.database.connect() as connection:
            named = to_accept(workspace, connection, one).accept or None
        day = DAY if RESTATED in one.scope else None
        approve(workspace, one.id, by="bo", comment="", accept_changes=named, accept_restated=day)
        with workspace.database.connect() as connection:
            for run in runs:
                base = baseline(connection, run.scope, run.id)
                rules = connection.execute("SELECT rules_against(%s)", [run.id]).fetchone()
                expected = base.run.rules_hash if base else None
                assert rules == (expected,), (one.scope, run.scope)
                told.add((run.scope, base and base.run.scope))
    assert len(told) > 2 * len(runs), "they are held against one report after the other"
    with workspace.database.connect() as connection, connection.transaction():
        connection.execute("SELECT rules_against(%s)", [runs[-1].id])
        scans = connection.execute(
            "SELECT seq_scan + idx_scan FROM pg_stat_xact_user_tables WHERE relname = 'batch'"
        ).fetchone()
    assert scans == (1,), "however many scopes of batches are signed"


@pytest.mark.long
def test_runs_follow_those_that_an_earlier_version_kept_in_another_order(
    workspace: Workspace, tmp_path: Path
) -> None:
    """Of several, those of the latest day, before which a run is a restatement."""
    import_delivery(workspace, [write(tmp_path / "p.csv", line(1))], DEFAULT)
    kept, older = "feeds other, default", "feeds default, other, default"
    before = saved(workspace, gather([]), scope=kept, as_of=LAST)
    for text in (older, "everything", "feeds default"):
        saved(workspace, gather([]), scope=text, as_of=FIRST)
    default_and_other = Scope(feeds=("default", "other"))
    rules = Rules(references=frozenset())
    with pytest.raises(DayRefused, match=f"reconciliation {before.id} is as of {LAST}"):
        reconcile(workspace, Asked(default_and_other, FIRST, rules))
    for scope in (default_and_other, Scope(feeds=("other", "default", "other"))):
        after = reconcile(workspace, Asked(scope, LAST, rules)).run
        assert (after.scope, after.previous_id) == (kept, before.id)
        before = after
    restated = reconcile(workspace, Asked(default_and_other, FIRST, rules, restate="late")).run
    assert restated.scope == f"{kept}; restated as of {FIRST}"
    new = reconcile(workspace, Asked(Scope(feeds=("other", "more")), FIRST, rules)).run
    assert (new.scope, new.previous_id) == ("feeds more, other", None)


@pytest.mark.long
def test_a_named_batch_that_was_taken_back_is_left_out(
    workspace: Workspace, tmp_path: Path
) -> None:
    """One of which a receipt speaks, one of which rows have outcomes of their own, one held."""

    def run() -> ReconciliationReport:
        asked = Asked(Scope(batches=(1, 2, 3)), LAST, Rules(references=frozenset()))
        return reconcile(workspace, asked).report

    def rows(report: ReconciliationReport) -> dict[str, int]:
        return {one.status: one.rows for one in report.statuses if one.rows}

    for number, day in enumerate((1, 98, 98)):
        lines = [line(9 * number + of) for of in range(1, 9)]
        lines.append(line(9 * number + 9, day=day))
        profile = replace(DEFAULT, budget_errors=0) if number == 2 else DEFAULT
        import_delivery(workspace, [write(tmp_path / f"{number}.csv", *lines)], profile)
    with workspace.database.connect() as connection:
        connection.execute('UPDATE payment SET "PaidAmount" = 1 WHERE "Id" = 1')
    statuses = {"MATCHED_EXACT": 16, "MISMATCH": 1, "MISSING_IN_TARGET": 8, "REJECTED": 2}
    assert rows(run()) == statuses
    with workspace.database.connect() as connection:
        connection.execute('UPDATE payment SET "PaidAmount" = 10.5 WHERE "Id" = 1')
    for batch in (1, 2, 3):
        undo_batch(workspace, batch, by="ann", reason="the wrong file")
    after = run()
    assert rows(after) == {"EXCLUDED": 27}
    # As in the reports of a feed, or of everything, which do not have these batches any more.
    assert {one.state for one in after.breaks} == {"NOT_LOOKED_AT"}
    assert len(after.breaks) == 11
    told = "; ".join(after.cover.because)
    assert [number for number in (1, 2, 3) if f"batch {number} was undone" in told] == [1, 2, 3]


@pytest.mark.long
def test_files_that_were_refused_are_on_the_first_page_until_they_are_taken(
    workspace: Workspace, tmp_path: Path
) -> None:
    """Both sides lack their rows alike, so that nothing else tells of them."""
    other = tmp_path / "other.csv"
    other.write_text(f"{HEADER.replace('PaidAmount', 'Paid')}\n{line(2)}\n")
    files = [write(tmp_path / "pay.csv", line(1)), str(other)]
    import_delivery(workspace, files, DEFAULT)
    asked = Asked(Scope(), LAST, STRICT)
    done = reconcile(workspace, asked)
    told = (
        "1 delivered file was refused and not taken since, so nothing of it is compared: "
        "other.csv of batch 1 (missing_column)"
    )
    on_page_one(done, [told])
    assert done.run.verdict == "NOT_RECONCILED"
    assert [(one.code, one.key, one.severity) for one in done.report.breaks] == [
        ("FILE_REFUSED", "1/other.csv", "high")
    ]
    assert "; other.csv, batch 1\n" in render_text(done.report)
    (shown,) = breaks_table(done.report)
    assert (shown["Record"], shown["Where"]) == ("1/other.csv", "other.csv, batch 1")
    accept_open(workspace, done)
    accepted = reconcile(workspace, asked)
    assert accepted.run.verdict == "RECONCILED_WITH_ACCEPTED"
    assert told_of_files(accepted.report) == [told], "nothing of it is compared all the same"
    for scope, notes in ((Scope(feeds=("default",)), [told]), (Scope(feeds=("pay",)), [])):
        assert told_of_files(reconcile(workspace, replace(asked, scope=scope)).report) == notes
    named = replace(DEFAULT, feed="bank", columns={"Paid": "PaidAmount"})
    import_delivery(workspace, [str(other)], named)
    taken = reconcile(workspace, asked)
    assert (taken.run.verdict, told_of_files(taken.report)) == ("RECONCILED", [])
    report = workspace.settings.home / "reports" / "batch-1" / "report.txt"
    assert TAKEN in " ".join(report.read_text().split())
    undo_batch(workspace, 2, by="ann", reason="the wrong file")
    assert TAKEN not in " ".join(report.read_text().split())
    assert [one.state for one in reconcile(workspace, asked).report.breaks] == ["REOPENED"]
    undo_batch(workspace, 1, by="ann", reason="another file")
    import_delivery(workspace, files, DEFAULT)
    breaks = reconcile(workspace, asked).report.breaks
    assert [(one.state, one.key) for one in breaks] == [("NEW", "3/other.csv")]


@pytest.mark.long
def test_a_refused_file_has_come_when_a_correction_of_its_batch_brings_it_by_its_name(
    workspace: Workspace, tmp_path: Path
) -> None:
    """Put right it has other bytes; tomorrow's file of that name has nothing to do with it."""

    def bring(name: str, *lines: str, corrects: int | None = None, header: str = HEADER) -> None:
        (tmp_path / name).write_text("\n".join([header, *lines, ""]))
        import_delivery(workspace, [str(tmp_path / name)], DEFAULT, corrects=corrects)

    def left() -> list[str]:
        done = reconcile(workspace, Asked(Scope(), LAST, STRICT))
        with workspace.database.connect() as connection:
            line = list_overview(connection, 9)[-1]
        assert next_step(line) == ("recon import FILE --corrects 1" if line.to_deliver else "")
        report = workspace.settings.home / "reports" / "batch-1" / "report.txt"
        assert (TAKEN in " ".join(report.read_text().split())) is (not line.to_deliver)
        gone = [
            f"{one.rows} {one.text}"
            for forward in done.report.roll_forward
            for one in forward.lines
            if one.text.removeprefix("- ") in GONE.values() and one.rows
        ]
        return [*(f"{one.state} {one.key}" for one in done.report.breaks), *gone]

    unlike = HEADER.replace("PaidAmount", "Paid")
    bring("pay.csv", line(1), header=unlike)
    assert left() == ["NEW 1/pay.csv"]
    bring("pay.csv", line(2))
    bring("late.csv", line(3), corrects=1)
    assert left() == ["OPEN 1/pay.csv"]
    bring("pay.csv", line(1), line(4), header=unlike, corrects=1)
    assert left() == ["OPEN 1/pay.csv", "NEW 4/pay.csv"]
    bring("pay.csv", line(1), line(4), corrects=4)
    assert left() == ["-2 - resolved at the source"]
    undo_batch(workspace, 5, reason="another one", by="ann")
    assert left() == ["REOPENED 1/pay.csv", "REOPENED 4/pay.csv"]


@pytest.mark.long
def test_the_file_of_an_archive_comes_alone_where_no_other_has_its_name(
    workspace: Workspace, tmp_path: Path
) -> None:
    def deliver(*names: str, header: str, corrects: int | None = None) -> list[str]:
        """Files in all.zip, or alone where a name has no folder; gives what is left of batch 1."""
        alone = {str(tmp_path / name) for name in names if "/" not in name}
        with ZipFile(tmp_path / "all.zip", "w") as archive:
            for number, name in enumerate(names):
                text = f"{header}\n{line(10 * len(name) + number)}\n".encode()
                if "/" in name:
                    archive.writestr(name, gzip.compress(text) if name.endswith(".gz") else text)
                else:
                    (tmp_path / name).write_bytes(text)
        files = sorted(alone) or [str(tmp_path / "all.zip")]
        import_delivery(workspace, files, DEFAULT, corrects=corrects)
        with workspace.database.connect() as connection:
            return [one.name.removeprefix("all.zip/") for one in files_to_deliver(connection, [1])]

    unlike = HEADER.replace("PaidAmount", "Paid")
    every = ["x/a.csv", "x/b.csv", "x/c.csv.gz", "y/b.csv"]
    assert deliver(*every, header=unlike) == every
    assert deliver("a.csv", "b.csv", "c.csv", header=HEADER, corrects=1) == ["x/b.csv", "y/b.csv"]
    assert deliver("x/b.csv", header=HEADER, corrects=1) == ["y/b.csv"]


@pytest.mark.long
def test_an_archive_that_could_not_be_read_has_come_when_a_correction_brings_it_whole(
    workspace: Workspace, tmp_path: Path
) -> None:
    path = tmp_path / "All.ZIP"
    for data in (b"PK\3\4 and no end", b""):
        path.write_bytes(data)
        import_delivery(workspace, [str(path)], DEFAULT)
    with workspace.database.connect() as connection:
        assert [one.name for one in files_to_deliver(connection, [1, 2])] == [path.name] * 2
    for corrects in (1, 2):
        with ZipFile(path, "w") as archive:
            archive.writestr("x/pay.csv", f"{HEADER}\n{line(corrects)}\n")
        import_delivery(workspace, [str(path)], DEFAULT, corrects=corrects)
        with workspace.database.connect() as connection:
            left = files_to_deliver(connection, [1, 2])
        assert [one.batch_id for one in left] == ([2] if corrects == 1 else [])


@pytest.mark.long
def test_a_file_of_repairs_stands_for_the_one_that_was_to_repair_and_for_no_other(
    workspace: Workspace, tmp_path: Path
) -> None:
    """It has the name that `corrections` of a reconciliation has, as a refused one may."""

    def bring(folder: str, text: str, corrects: int | None = None) -> list[tuple[int, str]]:
        path = tmp_path / folder / "payment.csv"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        files = [str(path)] if corrects else [str(path), write(tmp_path / "b.csv", line(1, day=98))]
        import_delivery(workspace, files, DEFAULT, corrects=corrects)
        with workspace.database.connect() as connection:
            lines = {one.id: one for one in list_overview(connection, 9)}
            left = files_to_deliver(connection, lines)
        # A correction of the refused correction would repair nothing.
        assert all(next_step(lines[one.batch_id]).endswith("--corrects 1") for one in left)
        return [(one.batch_id, one.name) for one in left]

    unlike = HEADER.replace("PaidAmount", "Paid")
    assert bring("in", f"{unlike}\n{line(2)}\n") == [(1, "payment.csv")]
    with workspace.database.connect() as connection:
        (row,) = connection.execute("SELECT extract_id, record_number FROM staged_row").fetchall()
    repair = f"ReconRow,{HEADER}\n{row[0]}:{row[1]},{line(1)}\n"
    refused = repair.replace("PaidAmount", "Paid")
    assert bring("r", refused, corrects=1) == [(1, "payment.csv"), (2, "payment.csv")]
    assert bring("r", repair, corrects=1) == [(1, "payment.csv")]
    assert bring("in", f"{HEADER}\n{line(2)}\n", corrects=1) == []


def test_a_refused_file_has_come_once_its_rows_are_applied(
    workspace: Workspace, tmp_path: Path
) -> None:
    """A report of its batch alone shows nothing of one that is held and has it.

    What was refused three times is one file: its correction is taken once.
    """
    unlike = HEADER.replace("PaidAmount", "Paid")
    named = replace(DEFAULT, columns={"Paid": "PaidAmount"})

    def left(name: str, header: str, profile: Profile, corrects: int | None = None) -> list[str]:
        (tmp_path / name).write_text(f"{header}\n{line(ord(name[0]))}\n{line(2, day=98)}\n")
        import_delivery(workspace, [str(tmp_path / name)], profile, corrects=corrects)
        with workspace.database.connect() as connection:
            return [one.name for one in files_to_deliver(connection, [1, 2, 3])]

    for name in ("a.csv", "a.csv", "b.csv"):
        every = left(name, unlike, DEFAULT)
    assert left("b.csv", unlike, replace(named, budget_errors=0)) == every
    assert left("a.csv", HEADER, replace(DEFAULT, budget_errors=0), corrects=1) == every
    for held in (4, 5):
        release_batch(workspace, held, by="ann", reason="so be it")
    with workspace.database.connect() as connection:
        assert (every, files_to_deliver(connection, [1, 2, 3])) == (["a.csv", "a.csv", "b.csv"], [])
    report = workspace.settings.home / "reports" / "batch-2" / "report.txt"
    assert TAKEN in " ".join(report.read_text().split())


@pytest.mark.long
def test_what_came_for_another_tenant_has_not_come_for_this_one(
    workspace: Workspace, tmp_path: Path
) -> None:
    """The batch of the other one has none of the rows of this one."""
    path, paid = tmp_path / "a.csv", {"Paid": "PaidAmount"}
    text = "\n".join([HEADER.replace("PaidAmount", "Paid"), line(1), line(2, tenant=8), ""])
    path.write_text(text)
    for tenant, columns, waits in ((7, {}, 1), (8, paid, 1), (7, paid, 0)):
        terms = replace(DEFAULT, feed=f"feed-{tenant}-{waits}", tenant=tenant, columns=columns)
        import_delivery(workspace, [str(path)], terms)
        with workspace.database.connect() as connection:
            assert len(files_to_deliver(connection, [1])) == waits, terms.feed


def test_a_name_is_the_same_however_its_file_is_packed(workspace: Workspace) -> None:
    with workspace.database.connect() as connection:
        for packed in ("", *PACKED, *map(str.upper, PACKED)):
            names = connection.execute(f"SELECT {called('%s')}", [f"all.zip/x/a.csv{packed}"])
            assert names.fetchone() == ("a.csv",), packed


@pytest.mark.long
def test_a_listed_file_that_was_absent_is_on_the_first_page_until_it_came(
    workspace: Workspace, tmp_path: Path
) -> None:
    """It has no content that could come again: its name, and what is stated of it."""

    def bring(rows: int, *names: str) -> None:
        stated = {"files": {"pay.csv": {}, "other.csv": {"rows": rows}}}
        (tmp_path / "manifest.json").write_text(json.dumps(stated))
        for name in names:
            write(tmp_path / name, *(line(number + len(name)) for number in range(rows)))
        import_delivery(workspace, [str(tmp_path)], DEFAULT)

    asked = Asked(Scope(), LAST, STRICT)
    bring(2, "pay.csv")
    (note,) = told_of_files(reconcile(workspace, asked).report)
    assert "1 delivered file was refused" in note
    bring(1, "other.csv")
    assert told_of_files(reconcile(workspace, asked).report) == [note], "it is another one"
    bring(2, "other.csv")
    assert told_of_files(reconcile(workspace, asked).report) == []
    report = workspace.settings.home / "reports" / "batch-1" / "report.txt"
    assert TAKEN in " ".join(report.read_text().split())
    with workspace.database.connect() as connection:
        assert [one.to_deliver for one in list_overview(connection, 9)] == [0, 0, 0]


def test_a_file_of_the_next_day_is_not_one_that_was_empty_or_absent(
    workspace: Workspace, tmp_path: Path
) -> None:
    """It has its name; only what is stated of a file tells that it is the one that was absent."""
    names = ["absent.csv", "empty.csv", "stated.csv"]

    def left() -> list[str]:
        stated = {"files": {name: {"rows": 1} if "stated" in name else {} for name in names}}
        (tmp_path / "manifest.json").write_text(json.dumps(stated))
        import_delivery(workspace, [str(tmp_path)], DEFAULT)
        with workspace.database.connect() as connection:
            return [one.name for one in files_to_deliver(connection, [1, 2])]

    (tmp_path / "empty.csv").touch()
    assert sorted(left()) == names
    for number, name in enumerate(names):
        write(tmp_path / name, line(number))
    assert sorted(left()) == names[:2]


def told_of_files(report: ReconciliationReport) -> list[str]:
    assert report.changes is not None
    return [note for note in report.changes.notes if "refused" in note]


OTHER = "and the scope names other feeds or tenants"
NAMED = [
    # scope, how many records it has, and what its first page says that it does not have
    (Scope(batches=(1,), feeds=("pay",)), 1, []),
    (
        Scope(batches=(1, 2), feeds=("pay",)),
        1,
        [f"batch 2 is not looked at: it is of feed file, bound to tenant 8, {OTHER}"],
    ),
    (
        Scope(batches=(1,), feeds=("file",)),
        0,
        [
            f"batch 1 is not looked at: it is of feed pay, {OTHER}",
            "there is no extract in this scope: nothing to hold the target against",
        ],
    ),
    (
        Scope(batches=(1, 2), tenants=(7,)),
        1,
        [f"batch 2 is not looked at: it is of feed file, bound to tenant 8, {OTHER}"],
    ),
    (
        Scope(feeds=("pay", "fiel")),
        1,
        [
            "nothing was ever delivered of feed fiel: import its delivery, or name the feed as "
            "recon status does"
        ],
    ),
    # All that it brought was undone.
    (Scope(feeds=("pay", "gone")), 1, []),
    (Scope(tenants=(7, 8)), 2, []),
    (Scope(tenants=(8, 99)), 1, []),
]


@pytest.mark.long
def test_what_a_scope_names_and_does_not_have_is_on_its_first_page(
    workspace: Workspace, tmp_path: Path
) -> None:
    """A batch of another feed than those that are named is no part of the scope."""
    for feed, tenant, bound in (("pay", 7, None), ("file", 8, 8), ("gone", 7, None)):
        profile = replace(DEFAULT, feed=feed, tenant=bound)
        file = write(tmp_path / f"{feed}.csv", line(tenant, tenant=tenant))
        import_delivery(workspace, [file], profile)
    undo_batch(workspace, 3, by="ann", reason="the wrong file")
    for scope, rows, lacking in NAMED:
        asked = Asked(scope, LAST, Rules(references=frozenset()))
        report = reconcile(workspace, asked).report
        told = sum(one.rows for one in report.statuses), [*report.cover.because]
        assert told == (rows, lacking), scope.text
        assert report.cover.verdict == ("INCOMPLETE" if lacking else "RECONCILED")
        # Nothing need be missing of a tenant, and nobody is kept from approving that.
        assert report.changes is not None
        notes = [one for one in report.changes.notes if one.startswith("No record names")]
        nobodys = ["No record names tenant 99, and no delivery is bound to it"]
        assert notes == (nobodys if 99 in scope.tenants else []), scope.text


TOLD = [
    ("everything", "everything"),
    ("batches 2", "batch 2"),
    ("batches 1, 2", "batches 1, 2"),
    ("feeds bank; tenants 7", "feed bank; tenant 7"),
    ("batches 2; feeds bank, till; tenants -7", "batch 2; feeds bank, till; tenant -7"),
    ("feeds batches", "feed batches"),
    ("batches 2; restated as of 2026-01-31", "batch 2; restated as of 2026-01-31"),
]


@pytest.mark.parametrize(("text", "told"), TOLD)
def test_a_scope_of_one_is_told_as_one(text: str, told: str) -> None:
    assert scope_title(text) == told
