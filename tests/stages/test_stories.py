"""What happens to a delivery, told as stories over a real database."""

import gzip
import json
import re
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from connectors.errors import BatchHeldElsewhere, BatchStateError, ConservationError
from connectors.files.profiles.profile import DEFAULT
from connectors.postgres.batches import lease, ledger
from connectors.postgres.batches.lease import hold_batch
from connectors.postgres.batches.ledger import State, find_batch
from connectors.postgres.session import Session
from flows.stages.examining.examine import examine
from flows.stages.receive import receive
from flows.stages.receiving.terms import StatedTerms
from flows.stages.rows.rejects import write_rejects
from flows.stages.sequence import (
    discard_batch,
    import_delivery,
    look,
    release_batch,
    run_batch,
)
from flows.stages.undo import undo_batch
from flows.stages.workspace import Workspace
from tests.stages.payments import HEADER, line, write


def states(rows: Any, batch: int) -> dict[int, str]:
    return dict(
        rows("SELECT record_number, state FROM staged_row WHERE batch_id = %s ORDER BY 1", [batch])
    )


def amounts(rows: Any) -> dict[int, str]:
    return {key: str(value) for key, value in rows('SELECT "Id", "PaidAmount" FROM payment')}


@pytest.mark.long
def test_a_later_version_updates_and_an_older_one_is_stale(
    workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    take = lambda name, *lines: import_delivery(  # noqa: E731
        workspace, [write(tmp_path / name, *lines)], DEFAULT
    )
    take("a.csv", line(1, amount="10", day=10), line(2, day=10))
    newer = take("b.csv", line(1, amount="11", day=11), line(2, day=10), line(3))
    assert states(rows, newer.batch.id) == {1: "updated", 2: "unchanged", 3: "inserted"}
    older = take("c.csv", line(1, amount="9", day=9))
    assert states(rows, older.batch.id) == {1: "stale"}
    assert amounts(rows)[1] == "11"


@pytest.mark.long
@pytest.mark.parametrize(
    ("there", "then", "state"),
    [
        ("02:30:00+02:00", "02:15:00+01:00", "updated"),
        ("02:15:00+01:00", "02:30:00+02:00", "stale"),
        ("02:30:00", "02:15:00+01:00", "stale"),
        ("02:15:00+01:00", "02:30:00", "updated"),
    ],
    ids=["later moment", "earlier moment", "one without offset", "other without offset"],
)
def test_of_two_versions_the_later_moment_is_the_newer(
    workspace: Workspace, rows: Any, tmp_path: Path, there: str, then: str, state: str
) -> None:
    """In the hour that clocks repeat, the later one shows less; without an offset clocks tell."""
    for folder, at, rate in (("a", there, "1.1"), ("b", then, "1.2")):
        path = tmp_path / folder / "currency_rates.csv"
        path.parent.mkdir()
        head = "Id,TenantsId,FromCurrenciesId,ToCurrenciesId,ExchangeRate,EffectiveDate"
        path.write_text(f"{head}\n1,7,978,840,{rate},2026-10-25T{at}\n")
        taken = import_delivery(workspace, [str(path)], DEFAULT)
    assert states(rows, taken.batch.id) == {1: state}


@pytest.mark.long
def test_undo_restores_what_was_there(workspace: Workspace, rows: Any, tmp_path: Path) -> None:
    first = import_delivery(workspace, [write(tmp_path / "a.csv", line(1), line(2))], DEFAULT)
    before = rows("SELECT * FROM payment ORDER BY 1")
    second = import_delivery(
        workspace, [write(tmp_path / "b.csv", line(2, amount="99"), line(3))], DEFAULT
    )
    with pytest.raises(BatchStateError, match=f"batch {second.batch.id} has since written 1"):
        undo_batch(workspace, first.batch.id, by=None, reason="too early")
    counts = undo_batch(workspace, second.batch.id, by="A. Meyer", reason="wrong file")
    assert counts == {"deleted": 1, "restored": 1}
    assert rows("SELECT * FROM payment ORDER BY 1") == before
    again = import_delivery(workspace, [str(tmp_path / "b.csv")], DEFAULT)
    assert again.new
    assert amounts(rows) == {1: "10.50", 2: "99", 3: "10.50"}
    trail = rows("SELECT by, reason FROM event WHERE what = 'undo'")
    assert trail == [("A. Meyer", "wrong file")]


@pytest.mark.long
def test_over_budget_nothing_is_visible_until_somebody_decides(
    workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    path = write(tmp_path / "a.csv", line(1), line(2, amount="ten"), line(3, amount="NaN"))
    held = import_delivery(workspace, [path], replace(DEFAULT, budget_errors=1))
    assert held.batch.state is State.HELD
    assert "2 of 3 rows have errors; the budget allows 1 row" in (held.batch.held_because or "")
    assert held.exit_code == 1
    assert amounts(rows) == {}
    released = release_batch(workspace, held.batch.id, by="A. Meyer", reason="agreed")
    assert released.batch.state is State.COMPLETE_WITH_ERRORS
    assert amounts(rows) == {1: "10.50"}


@pytest.mark.long
def test_a_discarded_batch_can_be_delivered_again(
    workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    path = write(tmp_path / "a.csv", line(1), line(2, amount="ten"))
    held = import_delivery(workspace, [path], replace(DEFAULT, budget_rate=0.1))
    discard_batch(workspace, held.batch.id, by=None, reason="wrong month")
    assert amounts(rows) == {}
    again = import_delivery(workspace, [path], DEFAULT)
    assert again.batch.id != held.batch.id
    assert amounts(rows) == {1: "10.50"}
    with pytest.raises(BatchStateError, match="not held"):
        release_batch(workspace, again.batch.id, by=None, reason="late")


@pytest.mark.long
def test_rejects_are_a_valid_delivery_once_corrected(
    workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    path = write(tmp_path / "a.csv", line(1), line(2, amount="ten"), line(3) + ",extra")
    batch = import_delivery(workspace, [path], DEFAULT).batch
    written = write_rejects(workspace, batch.id, tmp_path / "rejects", with_secrets=False)
    ((rejects, count),) = written.items()
    assert count == 2
    header, ten, extra = rejects.read_text().splitlines()
    assert header == "ReconRow," + HEADER
    assert ten.endswith(line(2, amount="ten"))
    rejects.write_text("\n".join([header, ten.replace("ten", "10.5"), extra[: -len(",extra")]]))
    corrected = import_delivery(workspace, [str(rejects)], DEFAULT, corrects=batch.id)
    assert corrected.batch.state is State.COMPLETE
    assert amounts(rows) == {1: "10.50", 2: "10.5", 3: "10.50"}
    parents = rows(
        "SELECT parent FROM staged_payment WHERE batch_id = %s ORDER BY 1", [corrected.batch.id]
    )
    assert [row[0].split(":")[1] for row in parents] == ["2", "3"]


@pytest.mark.long
def test_secrets_are_shown_nowhere_and_left_out_of_rejects(
    workspace: Workspace, tmp_path: Path
) -> None:
    path = tmp_path / "registrations.csv"
    path.write_text(
        "EMail,FirstName,LastName,Password,ConfirmPassword,Company\n"
        "no-address,Ann,Lee,canary-secret,canary-secret,Acme\n"
    )
    ended = import_delivery(workspace, [str(path)], DEFAULT)
    written = write_rejects(workspace, ended.batch.id, tmp_path / "rejects", with_secrets=False)
    told = [file.read_text() for file in workspace.settings.reports.rglob("*") if file.is_file()]
    assert len(told) == 3
    assert not any("canary-secret" in text for text in [*told, *(p.read_text() for p in written)])
    open_ones = write_rejects(workspace, ended.batch.id, tmp_path / "open", with_secrets=True)
    assert all("canary-secret" in path.read_text() for path in open_ones)


@pytest.mark.long
@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ({"rows": 3}, "rows: stated 3, the file has 2"),
        (
            {"sums": {"PaidAmount": {"1": "21.01"}}},
            "sum of PaidAmount in currency 1: stated 21.01, the file has 21",
        ),
        ({"hash_total": "4"}, "hash total: stated 4, the file has 3"),
        ({"hash_total": "three"}, "hash total: stated three, the file has 3"),
        ({"bytes": 1}, "bytes: stated 1"),
    ],
)
def test_a_file_that_is_not_what_its_manifest_says_is_refused(
    workspace: Workspace, rows: Any, tmp_path: Path, statement: dict[str, Any], told: str
) -> None:
    write(tmp_path / "in" / "a.csv", line(1), line(2))
    write(tmp_path / "in" / "b.csv", line(5))
    manifest = {"files": {"a.csv": statement, "b.csv": {"rows": 1}}}
    (tmp_path / "in" / "manifest.json").write_text(json.dumps(manifest))
    ended = import_delivery(workspace, [str(tmp_path / "in")], DEFAULT)
    refused, good = ended.report.files
    assert refused.refused == "incomplete_file"
    assert told in (refused.message or "")
    assert good.refused is None
    assert set(amounts(rows)) == {5}
    assert rows("SELECT count(*) FROM staged_payment WHERE extract_id = 1") == [(0,)]


@pytest.mark.long
def test_other_content_under_a_used_name_is_said_so(workspace: Workspace, tmp_path: Path) -> None:
    import_delivery(workspace, [write(tmp_path / "a.csv", line(1))], DEFAULT)
    second = import_delivery(workspace, [write(tmp_path / "a.csv", line(2))], DEFAULT)
    assert "delivered in batch 1 with other content" in second.messages[0]


@pytest.mark.long
def test_the_same_delivery_again_is_the_batch_that_took_it(
    workspace: Workspace, tmp_path: Path
) -> None:
    """Whether that has ended or not, and whatever its files are called by now."""
    for name, number in (("a.csv", 1), ("b.csv", 2)):
        write(tmp_path / name, line(number))
    files = [str(tmp_path / name) for name in ("a.csv", "b.csv")]
    assert receive(workspace, files, StatedTerms()).new
    again = receive(workspace, files, StatedTerms())
    assert (again.batch_id, again.new, again.ended) == (1, False, False)
    (told,) = again.messages
    assert re.fullmatch(
        r"This delivery was taken in batch 1 on .* and is received; going on with it\.", told
    )
    run_batch(workspace, 1)
    (tmp_path / "a.csv").rename(tmp_path / "c.csv")
    last = receive(workspace, [str(tmp_path / "c.csv"), files[1]], StatedTerms())
    assert (last.batch_id, last.new, last.ended) == (1, False, True)
    assert last.messages[0].endswith("and is complete; nothing to do.")


@pytest.mark.long
def test_the_same_bytes_under_another_name_are_no_news(
    workspace: Workspace, tmp_path: Path
) -> None:
    import_delivery(workspace, [write(tmp_path / "a.csv", line(1))], DEFAULT)
    second = import_delivery(
        workspace,
        [write(tmp_path / "other.csv", line(1)), write(tmp_path / "new.csv", line(2))],
        DEFAULT,
    )
    assert second.batch.id == 2
    assert [file.name for file in second.report.files] == ["new.csv"]
    assert "taken in batch 1 as a.csv" in second.messages[0]


REPLIES = "CommsGuid,CampaignActionsRequestsId,Comments,CampaignActionFiles\n,,one,\n,,two,\n"


def test_the_same_bytes_twice_in_a_delivery_are_one_file(
    workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    """Nothing of a row without a key says that it is there already."""
    delivery = tmp_path / "replies"
    delivery.mkdir()
    (delivery / "replies.csv").write_text(REPLIES)
    (delivery / "replies.csv.gz").write_bytes(gzip.compress(REPLIES.encode()))
    with zipfile.ZipFile(delivery / "all.zip", "w") as packed:
        for name in ("x", "y"):
            packed.writestr(f"{name}/replies.csv", REPLIES)
    told = "the same bytes as all.zip/x/replies.csv in this delivery; nothing to do."
    again = ["all.zip/y/replies.csv", "replies.csv", "replies.csv.gz"]
    first, *others = examine(workspace.settings, [str(delivery)], DEFAULT)
    assert (first.rows_in, first.message) == (2, None)
    assert [(one.name, one.rows_in, one.message) for one in others] == [
        (name, 0, f"{name}: {told}") for name in again
    ]
    ended = import_delivery(workspace, [str(delivery)], DEFAULT)
    assert ended.messages == tuple(f"{name}: {told}" for name in again)
    assert rows('SELECT "Comments" FROM form_reply ORDER BY 1') == [("one",), ("two",)]
    assert rows("SELECT name FROM extract") == [("all.zip/x/replies.csv",)]
    # All of it again, and each by itself: nothing of it is news.
    for path in (delivery, delivery / "replies.csv.gz"):
        known = receive(workspace, [str(path)], StatedTerms())
        assert (known.batch_id, known.new, known.ended) == (1, False, True)


@pytest.mark.long
def test_the_same_bytes_of_which_other_things_are_stated_are_taken_once(
    workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    """A manifest that says more of one than of another is held against what comes."""
    delivery = tmp_path / "replies"
    delivery.mkdir()
    for name in "abcd":
        (delivery / f"{name}.csv").write_text(REPLIES)
    stated = {"a.csv": {"rows": 3, "bytes": 1}, "b.csv": {"rows": 2}, "c.csv": {"rows": 2}}
    files = stated | {"d.csv": {"rows": 9}}
    (delivery / "manifest.json").write_text(json.dumps({"files": files}))
    verdicts = examine(workspace.settings, [str(delivery)], DEFAULT)
    import_delivery(workspace, [str(delivery)], DEFAULT)
    kept = rows("SELECT name, refused FROM extract ORDER BY 1")
    assert kept == [("a.csv", "incomplete_file"), ("b.csv", None), ("d.csv", "incomplete_file")]
    assert [one.name for one in verdicts if one.refused] == ["a.csv", "d.csv"]
    assert "b.csv has the same bytes, of which something else is stated" in verdicts[3].message
    assert rows("SELECT count(*) FROM form_reply") == [(2,)]


def test_known_bytes_are_known_whatever_else_is_wrong_with_them(
    workspace: Workspace, tmp_path: Path
) -> None:
    known, other = write(tmp_path / "a.csv", line(1)), write(tmp_path / "b.csv", line(2))
    import_delivery(workspace, [known], DEFAULT)
    settings = replace(workspace.settings, limits=replace(workspace.settings.limits, columns=2))
    narrow = replace(workspace, settings=settings)
    again = receive(narrow, [known], StatedTerms())
    assert (again.batch_id, again.new, again.ended) == (1, False, True)
    assert again.messages[0].startswith("This delivery was taken in batch 1 ")
    assert "a.csv would be refused now: " in again.messages[0]
    assert "RECON_LIMIT_COLUMNS is 2" in again.messages[0]
    # With what is new: that is refused, and the known one is no part of it.
    both = receive(narrow, [known, other], StatedTerms())
    assert (both.batch_id, both.new) == (2, True)
    assert "these bytes were taken in batch 1" in both.messages[0]
    assert "a.csv would be refused now: " in both.messages[0]


@pytest.mark.long
def test_a_refused_file_beside_a_known_one_is_told(
    workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    known, short = write(tmp_path / "a.csv", line(1)), tmp_path / "b.csv"
    short.write_text("Id,TenantsId\n1,2\n")
    import_delivery(workspace, [known], DEFAULT)
    second = import_delivery(workspace, [known, str(short)], DEFAULT)
    assert second.batch.id == 2
    assert rows("SELECT name, refused IS NULL FROM extract WHERE batch_id = 2") == [
        ("b.csv", False)
    ]
    assert receive(workspace, [known, str(short)], StatedTerms()).batch_id == 2


@pytest.mark.long
@pytest.mark.parametrize("undone", [1, 2])
def test_a_delivery_of_which_a_part_was_undone_brings_that_part_again(
    workspace: Workspace, rows: Any, tmp_path: Path, undone: int
) -> None:
    both = [write(tmp_path / "a.csv", line(1)), write(tmp_path / "b.csv", line(2))]
    import_delivery(workspace, both[:1], DEFAULT)
    import_delivery(workspace, both, DEFAULT)
    undo_batch(workspace, undone, by=None, reason="wrong month")
    again = import_delivery(workspace, both, DEFAULT)
    assert (again.batch.id, again.new) == (3, True)
    assert rows("SELECT name FROM extract WHERE batch_id = 3") == [("ab"[undone - 1] + ".csv",)]
    assert amounts(rows) == {1: "10.50", 2: "10.50"}
    known = receive(workspace, both, StatedTerms())
    assert (known.batch_id, known.new) == (3, False)


@pytest.mark.long
def test_one_run_holds_a_batch_and_the_others_say_who(workspace: Workspace, tmp_path: Path) -> None:
    batch = import_delivery(workspace, [write(tmp_path / "a.csv", line(1))], DEFAULT).batch
    with (
        workspace.database.connect() as connection,
        hold_batch(connection, batch.id),
        pytest.raises(BatchHeldElsewhere, match=r"pid \d+ since"),
    ):
        run_batch(workspace, batch.id)


def test_a_run_that_was_taken_over_writes_nothing(workspace: Workspace, tmp_path: Path) -> None:
    batch = import_delivery(workspace, [write(tmp_path / "a.csv", line(1))], DEFAULT).batch
    with workspace.database.connect() as frozen, hold_batch(frozen, batch.id) as lease:
        with workspace.database.connect() as connection:
            connection.execute("UPDATE batch SET lease_epoch = lease_epoch + 1")
        with pytest.raises(BatchHeldElsewhere, match="taken over"), lease.transaction():
            raise AssertionError("the transaction must not begin")


def test_a_constraint_of_the_database_costs_one_row(
    workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    with workspace.database.connect() as connection:
        connection.execute('ALTER TABLE payment ADD CHECK ("PaidAmount" < 1000)')
    lines = [line(number, amount="5000" if number == 13 else "10") for number in range(1, 41)]
    ended = import_delivery(workspace, [write(tmp_path / "a.csv", *lines)], DEFAULT)
    found = states(rows, ended.batch.id)
    assert [number for number, state in found.items() if state != "inserted"] == [13]
    assert found[13] == "conflict"
    (reason,) = ended.report.reasons
    assert (reason.code, reason.rows, reason.line) == ("Constraint", 1, 14)
    assert all(chain.ties for chain in ended.report.chains)


@pytest.mark.long
def test_a_batch_bound_to_a_tenant_writes_no_other(
    workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    path = write(tmp_path / "a.csv", line(1), line(2, tenant=8), line(3))
    ended = import_delivery(workspace, [path], replace(DEFAULT, tenant=7))
    assert rows('SELECT DISTINCT "TenantsId" FROM payment') == [(7,)]
    assert [(reason.code, reason.line) for reason in ended.report.reasons] == [
        ("TenantNotBound", 3)
    ]


@pytest.mark.long
def test_the_last_one_wins_where_the_feed_says_so(
    workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    last_wins = replace(DEFAULT, duplicate="last_wins")
    path = write(tmp_path / "a.csv", line(1, amount="1"), line(1, amount="2"), line(2))
    ended = import_delivery(workspace, [path], last_wins)
    assert states(rows, ended.batch.id) == {1: "superseded", 2: "inserted", 3: "inserted"}
    assert amounts(rows)[1] == "2"
    # The last one is the newest, wherever it stands: by the moment, and not by the clock.
    newest = line(1, amount="3", day=3)
    east = newest.replace("10:00:00+01:00,3", "11:00:00+03:00,4")
    path = write(tmp_path / "b.csv", line(7, day=2), newest, east, line(1), line(7))
    ended = import_delivery(workspace, [path], last_wins)
    assert states(rows, ended.batch.id) == {
        1: "inserted",
        2: "updated",
        3: "superseded",
        4: "superseded",
        5: "superseded",
    }
    assert amounts(rows)[1] == "3"


@pytest.mark.long
def test_a_missing_reference_is_noted_or_rejects_as_the_feed_says(
    workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    path = write(tmp_path / "a.csv", line(1), line(2))
    noted = import_delivery(workspace, [path], DEFAULT)
    assert [(note.code, note.value, note.rows) for note in noted.report.notes] == [
        ("ReferenceMissing", "9", 2)
    ]
    strict = replace(DEFAULT, feed="strict", reference="reject")
    rejected = import_delivery(workspace, [path], strict)
    assert set(states(rows, rejected.batch.id).values()) == {"rejected"}
    assert all(chain.ties for chain in rejected.report.chains)


def test_no_batch_ends_while_rows_of_it_wait(
    workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    """Held, it stays held; one that is said to have failed before it was applied does not end."""
    path = write(tmp_path / "a.csv", line(1), line(2, amount="x"))
    import_delivery(workspace, [path], replace(DEFAULT, budget_errors=0))
    (receipt,) = rows("SELECT totals FROM receipt WHERE stage = 'stage'")
    set_totals = "UPDATE receipt SET totals = %s WHERE stage = 'stage'"
    with workspace.database.connect() as connection:
        connection.execute(set_totals, [receipt[0].replace('"rows": 1', '"rows": 3')])
        with pytest.raises(ConservationError, match="does not tie"):
            run_batch(workspace, 1)
        assert rows("SELECT state FROM batch") == [("held",)]
        connection.execute(set_totals, receipt)
        connection.execute("UPDATE batch SET state = 'failed'")
    with pytest.raises(ConservationError, match="does not tie"):
        run_batch(workspace, 1)
    assert rows("SELECT state FROM batch") == [("failed",)]
    (applied,) = (one for one in look(workspace, 1).report.chains[0].lines if one.residual.rows)
    assert (applied.stage, applied.explained, applied.residual.rows) == (
        "applied",
        "superseded, stale",
        -1,
    )


@pytest.mark.long
def test_totals_that_do_not_tie_fail_the_run_until_they_do(
    workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    path = write(tmp_path / "a.csv", line(1), line(2))
    batch = import_delivery(workspace, [path], DEFAULT).batch

    def set_amount(value: str) -> None:
        with workspace.database.connect() as connection:
            connection.execute('UPDATE payment SET "PaidAmount" = %s WHERE "Id" = 1', [value])

    set_amount("10.51")
    looked_at = import_delivery(workspace, [path], DEFAULT)
    assert (looked_at.report.verdict, looked_at.exit_code) == ("does_not_tie", 1)
    with pytest.raises(ConservationError, match="does not tie"):
        run_batch(workspace, batch.id)
    assert rows("SELECT state FROM batch") == [("failed",)]
    residual = looked_at.report.chains[0].lines[-1].residual
    assert residual.as_json()["amounts"] == {"1": {"DiscountAmount": "0", "PaidAmount": "0.01"}}
    set_amount("10.5")
    assert run_batch(workspace, batch.id).batch.state is State.COMPLETE


@pytest.mark.long(
    but=(
        'UPDATE payment SET "PaidAmount" = 99 WHERE "Id" = 1',
        'DELETE FROM payment WHERE "Id" = 1',
    )
)
@pytest.mark.parametrize(
    "change",
    [
        'UPDATE payment SET "PaidAmount" = 99 WHERE "Id" = 1',
        'UPDATE payment SET "PaymentDate_offset" = 95 WHERE "Id" = 2',
        'UPDATE payment SET "Id" = 9 WHERE "Id" = 1',
        'DELETE FROM payment WHERE "Id" = 1',
        'DELETE FROM payment WHERE "Id" = 2',
    ],
)
def test_what_somebody_changed_is_not_undone_unseen(
    workspace: Workspace, rows: Any, tmp_path: Path, change: str
) -> None:
    import_delivery(workspace, [write(tmp_path / "a.csv", line(1))], DEFAULT)
    second = [write(tmp_path / "b.csv", line(1, amount="12"), line(2))]
    import_delivery(workspace, second, DEFAULT)
    with workspace.database.connect() as connection:
        connection.execute(change)
    before = rows("SELECT * FROM payment ORDER BY 1")
    # The last batch goes first, or undoing it would bring back a record of one that is undone.
    with pytest.raises(BatchStateError, match="batch 2 has since written 1 of its payment rows"):
        undo_batch(workspace, 1, by=None, reason="test", over_changes=True)
    with pytest.raises(BatchStateError, match=r"\(1 of payment\).*--over-changes"):
        undo_batch(workspace, 2, by=None, reason="test")
    assert rows("SELECT * FROM payment ORDER BY 1") == before
    undo_batch(workspace, 2, by=None, reason="test", over_changes=True)
    assert [(key, str(paid)) for key, paid in rows('SELECT "Id", "PaidAmount" FROM payment')] == [
        (1, "10.50")
    ]
    ((detail,),) = rows("SELECT detail FROM event WHERE what = 'undo'")
    assert json.loads(detail)["changed_by_hand"] == {"payment": 1}


@pytest.mark.long
def test_an_undone_batch_stays_undone(workspace: Workspace, tmp_path: Path) -> None:
    batch = import_delivery(workspace, [write(tmp_path / "a.csv", line(1))], DEFAULT).batch
    undo_batch(workspace, batch.id, by=None, reason="test")
    with pytest.raises(BatchStateError, match=r"is undone\. Import its files again"):
        run_batch(workspace, batch.id)
    assert look(workspace, batch.id).report.verdict == "undone"


@pytest.mark.long
def test_whoever_decides_late_does_not_take_the_batch_from_who_decided(
    workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    """A command that only takes the batch to see that it is too late never stops the one before."""
    paths = [write(tmp_path / "a.csv", line(1), line(2, amount="x"))]
    held = import_delivery(workspace, paths, replace(DEFAULT, budget_errors=0))
    assert held.batch.state is State.HELD
    refused: list[str] = []
    ended = threading.Event()

    def insist() -> None:
        with workspace.database.connect() as connection:
            while find_batch(connection, held.batch.id).state is State.HELD:
                assert not ended.is_set()
            while not ended.is_set():
                with suppress(BatchHeldElsewhere), hold_batch(connection, held.batch.id):
                    pass
        with pytest.raises(BatchStateError, match="not held") as no:
            discard_batch(workspace, held.batch.id, by=None, reason="late")
        refused.append(str(no.value))

    with ThreadPoolExecutor(3) as pool:
        others = [pool.submit(insist) for _ in range(3)]
        try:
            done = release_batch(workspace, held.batch.id, by="A. Meyer", reason="agreed")
        finally:
            ended.set()
        for one in others:
            one.result()
    assert done.batch.state is State.COMPLETE_WITH_ERRORS
    assert len(refused) == 3
    decided = rows("SELECT what FROM event WHERE what IN ('released', 'discarded')")
    assert decided == [("released",)]


@pytest.mark.long
@pytest.mark.parametrize("days", [-1, 1])
def test_batches_are_dated_by_the_database_whatever_the_clock_here_says(
    workspace: Workspace, tmp_path: Path, rows: Any, monkeypatch: pytest.MonkeyPatch, days: int
) -> None:
    """What came after a signed run is told from what came before by these times."""

    class Off(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return datetime.now(tz) + timedelta(days=days)

    for module in (ledger, lease):
        monkeypatch.setattr(module, "datetime", Off, raising=False)
    import_delivery(workspace, [write(tmp_path / "a.csv", line(1))], DEFAULT)
    near = "BETWEEN now() - interval '1 hour' AND now()"
    told = rows(f"SELECT opened_at {near}, ended_at {near}, ended_at >= opened_at FROM batch")
    assert told == [(True, True, True)]


@pytest.mark.long
def test_a_small_delivery_takes_one_session_and_few_statements(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "a.csv", line(1), line(2))
    url, asked = workspace.database.url, list[str]()
    name = psycopg.conninfo.conninfo_to_dict(url)["dbname"]
    connect, execute = Session.connect, psycopg.Cursor.execute

    # Of this database alone: the next one is being made meanwhile.
    def connected(*given: Any, **named: Any) -> Any:
        if given[:1] == (url,):
            asked.append("connect")
        return connect(*given, **named)

    def executed(cursor: Any, *given: Any, **named: Any) -> Any:
        if cursor.connection.info.dbname == name:
            asked.append("execute")
        return execute(cursor, *given, **named)

    monkeypatch.setattr(Session, "connect", connected)
    monkeypatch.setattr(psycopg.Cursor, "execute", executed)
    import_delivery(workspace, [path], DEFAULT)
    assert asked.count("connect") == 1
    # What is asked twice, where the answer cannot have changed, thousands of tests pay for.
    assert 20 < asked.count("execute") <= 115
