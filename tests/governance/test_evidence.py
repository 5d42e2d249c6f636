"""What the ledger says of a batch is held against the audit trail, whoever altered it since."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.errors import InsufficientPrivilege

from connectors.errors import EvidenceBroken
from connectors.files.profiles.profile import DEFAULT
from connectors.postgres.auditing.audit import VerifiedTrail, verify
from connectors.postgres.auditing.evidence import altered_ledger, check_evidence
from connectors.postgres.push.sends import SendDecision
from connectors.postgres.trail import last_detail
from flows.stages.chosen_sends import ChosenSends
from flows.stages.reconcile.run import Asked, reconcile
from flows.stages.reconcile.scope import Scope
from flows.stages.resolve import resolve
from flows.stages.rewind import rewind_batch
from flows.stages.rows.rejects import write_rejects
from flows.stages.sequence import (
    discard_batch,
    import_delivery,
    push_batch,
    release_batch,
    run_batch,
)
from flows.stages.undo import undo_batch, why_not_undone
from flows.stages.upkeep.restored import go_on_after_restore
from flows.stages.upkeep.retention import Retention, sweep
from flows.stages.workspace import Workspace
from flows.steps.rules.rules import Rules
from schemas.guards.ledger_digests import BEFORE
from schemas.guards.roles import MERGER, READER
from schemas.guards.trail_rules import Event
from tests.conftest import Once
from tests.push.conftest import deliver, towards, written_over
from tests.push.deliveries import tones
from tests.service.faulty_server import LOST, FaultyServer, at
from tests.stages.conftest import As
from tests.stages.conftest import acting as acting  # noqa: PLC0414 -- the fixture.
from tests.stages.payments import line, write

SAID: dict[str, Any] = {"by": "ann", "reason": "agreed"}
TIGHT = replace(DEFAULT, budget_errors=0)
CHUNK = "WHERE batch_id = 1 AND stage = 'apply payment'"


def proof(workspace: Workspace) -> VerifiedTrail:
    """What is told of the trail; whoever asks about some batches hears nothing beside that."""
    with workspace.database.connect() as connection:
        found = verify(connection)
        batches = [one for (one,) in connection.execute("SELECT id FROM batch ORDER BY id")]
        for some in (batches, *([one] for one in batches)):
            beside = [
                one for one in altered_ledger(connection, some) if one not in (found.broken or "")
            ]
            assert not beside, some
        return found


def holds(workspace: Workspace) -> bool:
    found = proof(workspace)
    return (found.broken, found.unchecked) == (None, ())


def altered(workspace: Workspace, *statements: str) -> str:
    """What is told once the owner of the database has done this, with triggers off."""
    with workspace.database.connect() as connection, connection.transaction():
        connection.execute("SET LOCAL session_replication_role = replica")
        for statement in statements:
            assert connection.execute(statement).rowcount, statement  # type: ignore[call-overload]
    return proof(workspace).broken or ""


def test_a_batch_is_released_as_what_was_held(workspace: Workspace, tmp_path: Path) -> None:
    """Without its outcome a rejected row would be applied with the clean ones."""
    lines = [line(1), line(2), line(3, amount="x")]
    strict = replace(TIGHT, reference="reject")
    assert import_delivery(workspace, [write(tmp_path / "a.csv", *lines)], strict).batch.state == (
        "held"
    )
    taken = "DELETE FROM outcome WHERE batch_id = 1 AND record_number = 1"
    assert "outcomes" in altered(workspace, taken)
    for _ in range(2):
        with pytest.raises(EvidenceBroken, match=r"altered the outcomes of its rows.*Nothing was"):
            release_batch(workspace, 1, **SAID)
    assert "outcomes" in (proof(workspace).broken or "")
    discard_batch(workspace, 1, **SAID)


@pytest.fixture
def place(workspace: Workspace, tmp_path: Path, once: Once) -> Workspace:
    """Two batches: the second changes a row of the first, and sends twice the same key."""

    def build() -> None:
        import_delivery(workspace, [write(tmp_path / "a.csv", line(1), line(2), line(3))], DEFAULT)
        changes = (line(1, amount="12", day=2), line(4), line(4), line(5, amount="x"))
        import_delivery(workspace, [write(tmp_path / "b.csv", *changes)], DEFAULT)
        assert holds(workspace)

    return once(build)


ALTERED = [
    # batch, table, what the owner does
    (2, "outcome", "UPDATE outcome SET verdict = 'unchanged' WHERE verdict = 'superseded'"),
    (2, "outcome", "DELETE FROM outcome"),
    (1, "outcome", "INSERT INTO outcome VALUES (1, 1, 2, 'conflict', NULL)"),
    (1, "receipt", "DELETE FROM receipt WHERE batch_id = 1 AND stage = 'stage'"),
    (1, "receipt", "UPDATE receipt SET sha256 = 'x' WHERE batch_id = 1 AND stage = 'stage'"),
    (1, "receipt", f"UPDATE receipt SET verdict = 'unchanged' {CHUNK}"),
    (1, "receipt", f"""UPDATE receipt SET counts = '{{"inserted": 2}}' {CHUNK}"""),
    (1, "receipt", f"UPDATE receipt SET last_record = 2 {CHUNK}"),
    (1, "extract", "UPDATE extract SET name = 'other.csv' WHERE id = 1"),
    (1, "extract", "UPDATE batch SET feed = 'other' WHERE id = 1"),
    (1, "extract", "DELETE FROM extract WHERE id = 1"),
]


IDS = [
    "outcome", "outcomes gone", "outcome added", "receipt gone", "receipt", "verdict of a chunk",
    "counts of a chunk", "range of a chunk", "file", "feed", "file gone"
]  # fmt: skip


@pytest.mark.long(but=("counts of a chunk",))
@pytest.mark.parametrize(("batch", "table", "statement"), ALTERED, ids=IDS)
def test_what_the_owner_alters_of_the_ledger_is_found_and_named(
    place: Workspace, batch: int, table: str, statement: str
) -> None:
    told = altered(place, statement)
    assert f"batch {batch}: " in told
    assert f"(table {table}) are not what link" in told
    assert f"batch {3 - batch}: " not in told


def test_all_that_differs_is_told(place: Workspace) -> None:
    told = altered(place, "DELETE FROM outcome", "DELETE FROM receipt WHERE batch_id = 1")
    assert "batch 1: the receipts of its chunks (table receipt)" in told
    assert "batch 2: the outcomes of its rows (table outcome)" in told
    assert "there were" in told
    assert "and there are 0" in told


IMAGE = "UPDATE before_image SET image = replace(image, '\"{0}\":{1}', '\"{0}\":9')"
IMAGES = {
    "altered": IMAGE.format("PaidAmount", "10.5"),
    "of another row": IMAGE.format("extract_id", 1),
    "gone": "DELETE FROM before_image",
    "one more": """INSERT INTO before_image SELECT batch_id, extract_id, 2, record, image
        FROM before_image""",
}


@pytest.mark.long(but=("altered",))
@pytest.mark.parametrize("how", IMAGES)
def test_an_undo_gives_back_what_was_there(place: Workspace, rows: Any, how: str) -> None:
    before = rows("SELECT t::text FROM payment t ORDER BY 1")
    told = altered(place, IMAGES[how])
    assert "batch 2: the database rows that it wrote over (table before_image)" in told
    assert "batch 1: " not in told
    with pytest.raises(EvidenceBroken, match=r"before_image\) are not what they were"):
        undo_batch(place, 2, **SAID)
    assert "before_image" in why_not_undone(place, 2)
    assert rows("SELECT t::text FROM payment t ORDER BY 1") == before


def test_what_chunks_say_of_reasons_is_held_and_not_believed(
    place: Workspace, rows: Any, tmp_path: Path
) -> None:
    """Whoever loads may write receipts, and the report of a batch counts its reasons by them."""
    page = place.settings.reports / "batch-2" / "report.txt"
    before = page.read_text()
    assert "Number, not a number" in before
    told = altered(
        place,
        """UPDATE receipt SET clues = replace(clues, '["Number", "PaidAmount", 1',
        '["NotNull", "PaidAmount", 777') WHERE batch_id = 2 AND stage = 'stage'""",
    )
    assert "777" in rows("SELECT string_agg(clues, '') FROM receipt")[0][0]
    assert "batch 2: the receipts of its chunks (table receipt, column clues) are not" in told
    assert "batch 1: " not in told
    run_batch(place, 2)
    assert page.read_text() == before


TIMES = {
    "batch.opened_at": "when it was opened",
    "batch.ended_at": "when it ended",
    "event.at": "link ",
}
"""What of times is held against the trail, and how it is named where it is another."""


@pytest.mark.parametrize("time", TIMES)
def test_a_time_that_is_altered_is_named(place: Workspace, time: str) -> None:
    table, column = time.split(".")
    told = altered(place, f"UPDATE {table} SET {column} = {column} - interval '1 day' WHERE id = 2")
    assert TIMES[time] in told
    assert "batch 1: " not in told


def test_a_batch_that_goes_on_has_no_end(workspace: Workspace, tmp_path: Path) -> None:
    import_delivery(workspace, [write(tmp_path / "a.csv", line(1), line(2, amount="x"))], TIGHT)
    assert holds(workspace)
    told = altered(workspace, "UPDATE batch SET ended_at = '2020-01-01'")
    assert "batch 1: when it ended (table batch) is not what link" in told


@pytest.mark.long
def test_a_batch_that_is_held_keeps_what_was_read_of_it(
    workspace: Workspace, tmp_path: Path
) -> None:
    path = write(tmp_path / "a.csv", line(1), line(1), line(2, amount="x"))
    import_delivery(workspace, [path], TIGHT)
    assert holds(workspace)
    told = altered(workspace, "DELETE FROM outcome")
    assert "batch 1: the outcomes of its rows (table outcome)" in told
    discard_batch(workspace, 1, **SAID)
    assert proof(workspace).broken == told


OTHERWISE = """UPDATE batch SET profile = replace(profile, '"decimal": "."', '"decimal": ","')"""


@pytest.mark.long
def test_a_batch_is_read_by_the_profile_that_it_was_received_with(
    workspace: Workspace, recon: Any, tmp_path: Path
) -> None:
    """Whoever loads may write the table of batches; an event of later does not make it good."""
    import_delivery(workspace, [write(tmp_path / "a.csv", line(1), line(2, amount="x"))], TIGHT)
    told = "batch 1: its feed profile (table batch) is not what link 1 says"
    assert told in altered(workspace, OTHERWISE)
    for again in (rewind_batch, run_batch):
        with pytest.raises(EvidenceBroken, match=r"profile of batch 1 .* is not the one that it"):
            again(workspace, 1)
    # Where there is no such record, why not would be told of the file as it is read otherwise.
    for asked in (
        *(("row", "1", "a.csv", "--line", number) for number in ("2", "9")),
        ("rejects", "1", "--out", str(tmp_path / "out")),
    ):
        code, out, said = recon(*asked)
        assert (code, out) == (2, "")
        assert "The feed profile of batch 1" in said
    assert not (tmp_path / "out").exists()
    discard_batch(workspace, 1, **SAID)
    assert told in (proof(workspace).broken or "")


FORGED = {
    "altered": "UPDATE secret_constant SET value = 'forged'",
    "with a salt of its own": "UPDATE secret_constant SET value = 'forged', salt = 'other'",
    "without a salt": "UPDATE secret_constant SET value = 'forged', salt = NULL",
    "gone": "DELETE FROM secret_constant",
    "one more": "INSERT INTO secret_constant VALUES (1, 'PasswordHash', 'forged', 'salt')",
}


@pytest.mark.long(but=("with a salt of its own",))
@pytest.mark.parametrize("how", FORGED)
def test_records_get_the_secrets_that_were_stated(
    workspace: Workspace, recon: Any, tmp_path: Path, how: str
) -> None:
    path = tmp_path / "gateways.csv"
    path.write_text("TenantsId,PaymentActionsId,Name\n7,1,Stripe\n7,2,\n7,x,Adyen\n")
    secret = replace(TIGHT, feed="shop", constants={"ServiceKey": "as-stated"})
    assert import_delivery(workspace, [str(path)], secret).batch.state == "held"
    assert holds(workspace)
    told = altered(workspace, FORGED[how])
    assert "batch 1: the secret constants of its feed profile (table secret_constant)" in told
    for again in (rewind_batch, run_batch):
        with pytest.raises(EvidenceBroken, match=r"secret constants of batch 1 .* are not"):
            again(workspace, 1)
    path.write_text("ReconRow,TenantsId,PaymentActionsId,Name\n1:3,7,3,Adyen\n")
    code, _, said = recon("import", str(path), "--corrects", "1")
    assert (code, "forged" in said) == (2, False)
    assert "secret constants of batch 1" in said
    code, _, said = recon("release", "1", "--reason", "agreed")
    assert (code, "secret constants of batch 1" in said) == (2, True)


def test_nobody_who_loads_alters_a_secret(acting: As) -> None:
    with acting(MERGER).database.connect() as connection:
        for statement in (
            "UPDATE secret_constant SET value = 'forged'",
            "DELETE FROM secret_constant",
            "TRUNCATE secret_constant",
        ):
            with pytest.raises(InsufficientPrivilege), connection.transaction():
                connection.execute(statement)  # type: ignore[call-overload]


@pytest.mark.long
def test_a_batch_goes_to_the_service_that_was_said(workspace: Workspace, tmp_path: Path) -> None:
    """Without it, what the service refused or left in doubt would be asked for by nobody."""
    with FaultyServer(at({2: LOST})) as server:
        place = towards(workspace, server.url, concurrency=1)
        deliver(place, write(tmp_path / "a.csv", line(1), line(2)))
        import_delivery(place, [write(tmp_path / "b.csv", line(3))], DEFAULT)
        push_batch(place, 2)
    assert holds(workspace)
    told = altered(workspace, "UPDATE batch SET service = NULL")
    for batch in (1, 2):
        assert f"batch {batch}: the service it goes to (table batch) is not what link" in told
    run = reconcile(workspace, Asked(Scope(), date(2026, 1, 31), Rules(references=())))
    assert run.report.cover.verdict == "INCOMPLETE"
    assert "A" in {truth for one in run.report.cover.truths for truth in one.found}


def test_what_counts_as_corrected_is_repaired(place: Workspace) -> None:
    """That it was corrected is in no hash: the batches behind it say so, and take it back."""
    told = altered(place, "INSERT INTO outcome VALUES (2, 2, 4, 'corrected', NULL)")
    assert told == (
        "record 4 of b.csv of batch 2 counts as corrected, and no row that was applied repairs it"
    )


@pytest.mark.long
def test_an_honest_history_holds(workspace: Workspace, tmp_path: Path) -> None:
    """Held, read again, released, corrected, undone, cleared away: each says what it did."""
    path = write(tmp_path / "a.csv", line(1), line(2, amount="x"), line(3))
    import_delivery(workspace, [path], TIGHT)
    rewind_batch(workspace, 1)
    assert proof(workspace).unchecked == ("the ledger of batch 1, which is under way",)
    run_batch(workspace, 1)
    assert holds(workspace)
    release_batch(workspace, 1, **SAID)
    assert holds(workspace)
    ((rejects, _),) = write_rejects(workspace, 1, tmp_path / "rejects", with_secrets=False).items()
    rejects.write_text(rejects.read_text().replace(",x,", ",7,"))
    corrected = import_delivery(workspace, [str(rejects)], DEFAULT, corrects=1)
    assert holds(workspace)
    undo_batch(workspace, corrected.batch.id, **SAID)
    assert holds(workspace)
    again = import_delivery(workspace, [str(rejects)], DEFAULT, corrects=1)
    later = datetime.now(UTC) + timedelta(days=9999)
    sweep(workspace, Retention(), now=later, dry_run=False)
    undo_batch(workspace, again.batch.id, **SAID)
    undo_batch(workspace, 1, **SAID)
    assert holds(workspace)


def as_told_before(
    connection: psycopg.Connection, after: str | None = None
) -> Iterator[tuple[int, Event]]:
    """The trail as an earlier version wrote it: an undo told of other batches in its own event."""
    said = last_detail(connection, 1, "sends reopened")
    pair = [said["answers_before"], after or said["answers"]]
    columns = ", ".join(Event._fields)
    for row in connection.execute(f"SELECT {columns} FROM event ORDER BY id").fetchall():  # type: ignore[call-overload]
        one = Event(*row)
        if one.what == "undo":
            detail = json.loads(one.detail or "") | {"reopened": {"1": pair}}
            yield one.id, one._replace(detail=json.dumps(detail))
        elif one.what != "sends reopened":
            yield one.id, one


@pytest.mark.long
def test_a_pushed_batch_that_was_undone_leaves_the_others_as_they_were_answered(
    workspace: Workspace, tmp_path: Path
) -> None:
    """The undo lets rows of another batch be sent again, and says so in an event of its own."""
    with FaultyServer() as server:
        place = written_over(workspace, server.url, tmp_path)
        undo_batch(place, 2, **SAID)
        assert holds(place)
        with place.database.connect() as connection:
            said = last_detail(connection, 1, "sends reopened")
            assert {*BEFORE, *BEFORE.values(), "undo"} == {*said}
            assert check_evidence(connection, as_told_before(connection)).faults == ()
            (fault,) = check_evidence(connection, as_told_before(connection, "0" * 64)).faults
        assert "batch 1: the answers of the service (table send) are not what link" in fault
        push_batch(place, 1)
        assert holds(place)
        run = reconcile(place, Asked(Scope(), date(2026, 1, 31), Rules(references=())))
    assert run.report.cover.verdict != "INCOMPLETE"


@pytest.mark.long
def test_what_the_service_answered_is_held_until_it_is_asked_again(
    workspace: Workspace, tmp_path: Path
) -> None:
    with FaultyServer(at({2: LOST})) as server:
        place = towards(workspace, server.url, concurrency=1)
        deliver(place, write(tmp_path / "a.csv", line(1), line(2)))
        deliver(place, write(tmp_path / "b.csv", line(1, amount="2", day=2), line(3)))
        assert holds(place)
        undo_batch(place, 2, **SAID)
        assert holds(place)
        push_batch(place, 1)
        assert holds(place)
    answer = "UPDATE send SET state = 'refused', status = 400 WHERE batch_id = 1"
    told = altered(workspace, f"{answer} AND record_number = 2")
    assert "batch 1: the answers of the service (table send) are not what link" in told


FORGED_ANSWERS = {
    "state": "state = 'acknowledged', error_data = NULL, carried_out = 'yes'",
    "record": "writer_record_number = 2",
}


@pytest.mark.long(but=("state",))
@pytest.mark.parametrize("how", FORGED_ANSWERS)
def test_no_report_says_that_the_service_has_what_it_did_not_say(
    workspace: Workspace, tmp_path: Path, how: str
) -> None:
    with FaultyServer(at({1: LOST})) as server:
        place = towards(workspace, server.url, concurrency=1)
        deliver(place, tones(tmp_path / "a.csv", 2))
    asked = Asked(Scope(), date(2026, 1, 31), Rules(references=()))
    assert reconcile(place, asked).report.breaks.where("code", "IN_DOUBT")
    told = altered(place, f"UPDATE send SET {FORGED_ANSWERS[how]} WHERE record_number = 1")
    cover = reconcile(place, asked).report.cover
    assert cover.verdict == "INCOMPLETE"
    assert any(told in one for one in cover.because)


HIDING: dict[str, Callable[[Workspace], object]] = {
    "undo": lambda place: undo_batch(place, 2, **SAID),
    "resolve": lambda place: resolve(
        place, 1, ChosenSends(states=("refused",)), SendDecision.ABANDON, **SAID
    ),
    "push": lambda place: push_batch(place, 1),
}


@pytest.mark.long
@pytest.mark.parametrize("how", HIDING)
def test_an_answer_that_was_altered_is_not_hidden_by_what_is_done_later(
    workspace: Workspace, tmp_path: Path, how: str
) -> None:
    with FaultyServer() as server:
        place = written_over(workspace, server.url, tmp_path)
        state = "unsent" if how == "push" else "refused"
        altered(place, f"UPDATE send SET state = '{state}' WHERE batch_id = 1")
        HIDING[how](place)
        told = proof(place).broken or ""
    assert "batch 1: the answers of the service (table send) were changed between link" in told


@pytest.mark.long
def test_whose_word_a_state_is_is_held(workspace: Workspace, tmp_path: Path) -> None:
    with FaultyServer(at({1: LOST})) as server:
        place = towards(workspace, server.url)
        deliver(place, tones(tmp_path / "a.csv", 1))
        resolve(place, 1, ChosenSends(states=("in_doubt",)), SendDecision.CONFIRM, **SAID)
    assert holds(place)
    told = altered(place, "UPDATE send SET decision = NULL")
    assert "batch 1: the answers of the service (table send) are not what link" in told


@pytest.mark.long
def test_what_cannot_be_checked_is_said(workspace: Workspace, tmp_path: Path) -> None:
    """A restore puts rows in doubt that were to be sent again; an earlier version said no hash."""
    with FaultyServer() as server:
        place = towards(workspace, server.url)
        deliver(place, write(tmp_path / "a.csv", line(1)))
        deliver(place, write(tmp_path / "b.csv", line(1, amount="2", day=2)))
        undo_batch(place, 2, **SAID)
        go_on_after_restore(place, unsent="in_doubt", **SAID)
    (told,) = proof(workspace).unchecked
    assert told.startswith("what the service answered to batch 1: rows of them were put in doubt")


def test_whoever_reads_no_row_comes_to_the_same(
    workspace: Workspace, acting: As, tmp_path: Path
) -> None:
    """What a reader may not see, such as an echo, is hashed all the same."""
    with FaultyServer() as server:
        deliver(towards(workspace, server.url), write(tmp_path / "a.csv", line(1)))
    assert holds(acting(READER))
    told = altered(workspace, "UPDATE send SET echo = 'x'")
    assert proof(acting(READER)).broken == told


def test_who_is_shown_no_key_of_a_row_in_error_is_told_so(
    workspace: Workspace, acting: As, tmp_path: Path
) -> None:
    """It was corrected by its key, which nobody who only reads is shown: a secret may be there."""
    header = "EMail,FirstName,LastName,Password,ConfirmPassword,Company,PartnerUserID,Roles\n"
    for name, last, corrects in (("a", "", None), ("b", "Li", 1)):
        path = tmp_path / f"client_registration_{name}.csv"
        path.write_text(f"{header}ann@example.com,Ann,{last},secret,secret,Acme,1,\n")
        import_delivery(workspace, [str(path)], DEFAULT, corrects=corrects)
    assert holds(workspace)
    reader = proof(acting(READER))
    assert reader.broken is None
    (told,) = reader.unchecked
    assert told.startswith("what repairs rows of batch 1 that were matched by key")
    altered_by_owner = altered(
        workspace, "UPDATE outcome SET extract_id = 2, batch_id = 2 WHERE verdict = 'corrected'"
    )
    assert "of batch 2 counts as corrected" in altered_by_owner
