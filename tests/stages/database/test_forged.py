"""What the functions of the trail let in, `recon audit verify` holds: forged rows are refused."""

import hashlib
import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest

from connectors.errors import (
    AccountRefused,
    ConservationError,
    EvidenceBroken,
    StatementRefused,
)
from connectors.files.profiles.profile import DEFAULT
from connectors.postgres.auditing.audit import verify
from connectors.postgres.auditing.batch_hashes import is_profile_altered, ledger_detail
from connectors.postgres.auditing.removals import KEPT_AGAIN, REMOVED, removed_contents, take_over
from connectors.postgres.batches.batch_reports import noted_reports, owed_by
from connectors.postgres.batches.corrections import unrepaired
from connectors.postgres.batches.digests import recorded
from connectors.postgres.batches.ledger import State, find_batch
from connectors.postgres.heartbeat import in_turn
from connectors.postgres.jobs import done_for, find_job, order_job
from connectors.postgres.runs.breaks import Decision, decisions_since
from connectors.postgres.runs.listings import newest_listings
from connectors.postgres.runs.reconciliations import (
    Reconciliation,
    breaks_hash,
    decisions_hash,
    hold_scope,
    scope_hash,
)
from connectors.postgres.runs.save_run import DRAFTED_BREAKS
from connectors.postgres.trail import add_event, events_of_run
from flows.stages.reconcile.breaks import Chosen, decide_breaks
from flows.stages.reconcile.run import Asked
from flows.stages.reconcile.run import reconcile as reconcile_scope
from flows.stages.reconcile.scope import Scope
from flows.stages.sequence import (
    discard_batch,
    import_delivery,
    push_batch,
    release_batch,
    run_batch,
)
from flows.stages.undo import undo_batch
from flows.stages.workspace import Workspace
from flows.steps.rules.rules import Rules
from schemas.derived.views import LISTING_FEED
from schemas.guards.decisions import DECIDED
from schemas.guards.leases import Held
from schemas.guards.ledger_digests import BEFORE, SERVICE, TABLES, TERMS
from schemas.guards.roles import CONTROLLER, LOADER, MERGER
from schemas.guards.trail_functions import RUN_FACTS
from schemas.guards.trail_rules import chain_hash
from schemas.jobs import JobKind
from schemas.ledger import BREAK_STATE
from schemas.life import Choice
from tests.governance.conftest import recon as recon  # noqa: PLC0414 -- the fixture.
from tests.governance.runs import found, ids, reconcile, tamper
from tests.push.conftest import deliver, towards
from tests.service.faulty_server import FaultyServer
from tests.stages.conftest import As
from tests.stages.payments import line, write

ACCEPT = Decision(Choice.ACCEPT, "agreed", "ann", until=date(2026, 12, 31))


def sign(
    user: Workspace, number: int, role: str, by: str, forged: Mapping[str, object] = {}
) -> None:
    """Sign by hand, as whoever knows the functions can; `forged` is other than it is."""
    with user.database.connect() as connection, connection.transaction():
        (whole,) = connection.execute(
            "SELECT report_hash FROM reconciliation WHERE id = %s", [number]
        ).fetchone() or ("",)
        row = {"reconciliation_id": number, "role": role, "by": by, "report_hash": whole}
        row |= {name: value for name, value in forged.items() if name in row}
        detail = {"reconciliation": number, "role": role, "report_hash": whole} | dict(forged)
        connection.execute("SELECT draft('signature')")
        connection.execute(
            "INSERT INTO draft_signature (reconciliation_id, role, by, comment, report_hash) "
            "VALUES (%(reconciliation_id)s, %(role)s, %(by)s, '', %(report_hash)s)",
            row,
        )
        told = forged.get("detail", json.dumps(detail))
        what = forged.get("what", f"report {role}")
        connection.execute("SELECT sign(%s, %s, '', %s)", [what, by, told])


def intact(workspace: Workspace) -> bool:
    with workspace.database.connect() as connection:
        return verify(connection).broken is None


def test_nobody_approves_from_the_account_that_prepared(acting: As, workspace: Workspace) -> None:
    first, second = acting(CONTROLLER), acting(CONTROLLER)
    run = reconcile(workspace, found())
    sign(first, run.id, "prepared", "ann")
    with pytest.raises(StatementRefused, match=r"the account user_\w+ prepared this report"):
        sign(first, run.id, "approved", "bo")
    sign(second, run.id, "approved", "bo")
    assert intact(workspace)


def test_nobody_approves_first_and_prepares_then(acting: As, workspace: Workspace) -> None:
    """The one who prepares last would be held against nobody."""
    run = reconcile(workspace, found())
    with pytest.raises(StatementRefused, match="prepared by nobody"):
        sign(acting(CONTROLLER), run.id, "approved", "bo")
    assert intact(workspace)


@pytest.mark.long
def test_nobody_approves_by_an_acceptance_that_was_taken_back(
    acting: As, workspace: Workspace
) -> None:
    user, breaks = acting(CONTROLLER), found("1")
    decide_breaks(user, reconcile(workspace, breaks).id, Chosen(ids=ids(breaks)), ACCEPT)
    run = reconcile(workspace, breaks, verdict="RECONCILED_WITH_ACCEPTED")
    sign(user, run.id, "prepared", "ann")
    decide(user, run.id, ids(breaks)[0], {})
    approver = acting(CONTROLLER)
    with pytest.raises(StatementRefused, match="accepted was reopened since"):
        sign(approver, run.id, "approved", "bo")
    decide_breaks(user, run.id, Chosen(ids=ids(breaks)), ACCEPT)
    sign(approver, run.id, "approved", "bo")
    assert intact(workspace)


FORGED_SIGNATURES: list[dict[str, object]] = [
    {"what": "report approved"},
    {"role": "approved"},
    {"role": "checked"},
    {"by": "the chief"},
    {"report_hash": "0" * 64},
    {"reconciliation_id": 999},
    {"reconciliation": 999},
    {"detail": "no json"},
    {"detail": "[]"},
    {"detail": None},
]


@pytest.mark.long
def test_a_signature_is_what_its_event_says(acting: As, workspace: Workspace) -> None:
    run, user = reconcile(workspace, found()), acting(CONTROLLER)
    for forged in FORGED_SIGNATURES:
        with pytest.raises(StatementRefused):
            sign(user, run.id, "prepared", "ann", forged)
    assert intact(workspace)


HUGE, DEEP = "9" * 5000, "[" * 2000 + "]" * 2000
"""JSON to the database, and nothing that readers take."""


@pytest.mark.parametrize("odd", [HUGE, DEEP], ids=["huge", "deep"])
def test_no_event_says_what_no_program_reads(acting: As, workspace: Workspace, odd: str) -> None:
    """What it tells of would be told as forged for ever."""
    run, user = reconcile(workspace, found()), acting(CONTROLLER)
    facts = {"reconciliation": run.id, "role": "prepared", "report_hash": run.report_hash}
    detail = f'{json.dumps(facts)[:-1]}, "odd": {odd}}}'
    with pytest.raises(StatementRefused, match="object that programs can read"):
        sign(user, run.id, "prepared", "ann", {"detail": detail})
    assert intact(workspace)


@pytest.mark.long
def test_only_what_reconciles_is_approved_and_by_another_name(
    acting: As, workspace: Workspace
) -> None:
    first, second = acting(CONTROLLER), acting(CONTROLLER)
    open_breaks = reconcile(workspace, found("1"))
    sign(first, open_breaks.id, "prepared", "ann")
    with pytest.raises(StatementRefused, match="it says NOT_RECONCILED"):
        sign(second, open_breaks.id, "approved", "bo")
    run = reconcile(workspace, found())
    sign(first, run.id, "prepared", "Ann  Lee")
    with pytest.raises(StatementRefused, match="is not to be approved by"):
        sign(second, run.id, "approved", " ann lee")


REOPENED = {"what": "reopen", "by": "ann", "reason": "wrong", "until": None, "side": None}


FORGED_DECISIONS: list[dict[str, object]] = [
    {"break_id": "none"},
    {"what": "accept"},
    {"what": "whatever"},
    {"by": "the chief"},
    {"reason": "another"},
    {"until": "soon"},
    {"side": "nowhere"},
    {"up_to": "NaN"},
    {"reconciliation_id": 999},
    {"rows": 0},
    {"rows": 2},
    {"sha256": "0" * 64},
    {"detail": "no json"},
]


def decide(
    user: Workspace,
    run: int,
    one_break: str,
    forged: Mapping[str, object],
    event: str = "breaks reopened",
) -> None:
    row: dict[str, object] = {
        "reconciliation_id": run,
        "break_id": one_break,
        **REOPENED,
        "owner": None,
    }
    row |= {"up_to": None}
    row |= {name: one for name, one in forged.items() if name in DECISION}
    rows = [row] * int(str(forged.get("rows", 1)))
    sha256 = decisions_hash(tuple(one.values()) for one in rows)
    detail = {"reconciliation": run, "sha256": sha256} | dict(forged)
    names, marks = ", ".join(row), ", ".join(f"%({name})s" for name in row)

    with user.database.connect() as connection, connection.transaction():
        connection.execute("SELECT draft('decision')")
        for one in rows:
            connection.execute(f"INSERT INTO draft_decision ({names}) VALUES ({marks})", one)
        told = forged.get("detail", json.dumps(detail))
        reason = forged.get("reasoned", "wrong")
        connection.execute("SELECT decide(%s, 'ann', %s, %s)", [event, reason, told])


@pytest.mark.long
def test_a_decision_is_what_its_event_says(acting: As, workspace: Workspace) -> None:
    breaks, user = found("1"), acting(CONTROLLER)
    run = reconcile(workspace, breaks)
    for forged in FORGED_DECISIONS:
        with pytest.raises(StatementRefused):
            decide(user, run.id, ids(breaks)[0], forged)
    decide(user, run.id, ids(breaks)[0], {})
    assert intact(workspace)


ODD_DAYS = ["infinity", "-infinity", "10000-01-01", "2026-02-30", "0000-01-01", "today"]
ODD_DAYS += ["2026-1-1", "2026-01-31 BC", "20260131", "2026-01-31\n", ""]
ODD_MONEY = ["NaN", "Infinity", "-1", "1e5", "1" * 21, "1." + "1" * 19, ".5", "1.", "", "1" * 5000]
OF_A_KIND: list[dict[str, object]] = [
    {"what": "accept", "until": "2026-12-31"},
    {"what": "propose", "until": "2026-12-31"},
    {"what": "resolve", "side": "source"},
    {"what": "assign", "owner": "bo"},
    {"what": "comment"},
    {"what": "reopen"},
]
"""The terms that each kind of decision is not without."""


@pytest.mark.long
def test_what_is_decided_can_be_read(acting: As, workspace: Workspace) -> None:
    """PostgreSQL has days that no program reads: one of them would end every later run."""
    breaks, user = found("1"), acting(CONTROLLER)
    run = reconcile(workspace, breaks)
    for terms in OF_A_KIND:
        event = DECIDED[Choice(str(terms["what"]))]
        odd = [{name: None} for name in terms if name != "what"]
        odd += [{name: " "} for name in terms if name == "owner"]
        odd += [{"until": day} for day in ODD_DAYS] + [{"up_to": money} for money in ODD_MONEY]
        odd += [{"side": "nowhere"}, {"reason": " ", "reasoned": " "}]
        for one in odd:
            with pytest.raises(StatementRefused):
                decide(user, run.id, ids(breaks)[0], terms | one, event)
        most = {"up_to": "9" * 20 + "." + "9" * 18, "until": "9999-12-31"}
        decide(user, run.id, ids(breaks)[0], terms | most, event)
    with workspace.database.connect() as connection:
        assert decisions_since(connection, run.scope_hash, 0).height == len(OF_A_KIND)
    reconcile(workspace, breaks)
    assert intact(workspace)


ODD_ACCOUNTS = [
    "keep_limit(NULL, NULL, 'x')",
    "keep_limit('1', 'NaN', 'x')",
    f"keep_account('bo', 'Bo', 'approver', '{'7' * 11}', NULL, false, 'x', NULL)",
    "set_password('ann', NULL, NULL, NULL, 'x')",
]


def test_what_accounts_may_do_can_be_read(workspace: Workspace) -> None:
    terms = {"scope": "s", "code": "A", "currency": "1", "each": "1", "total": "1"}
    with workspace.database.connect() as connection:
        for day in ODD_DAYS:
            rule = json.dumps(terms | {"until": day})
            with pytest.raises(psycopg.Error, match=r"no terms|out of range"):
                connection.execute("SELECT propose_rule('ann', 'x', %s)", [rule])
        keep = "SELECT keep_account('ann', 'Ann', 'approver', %s, NULL, false, 'x', NULL)"
        connection.execute(keep, ["7 -2147483648"])
        for odd in ODD_ACCOUNTS:
            with pytest.raises(psycopg.Error, match=r"no account|no limit|no key"):
                connection.execute(f"SELECT {odd}")  # type: ignore[arg-type]


DECISION = ("reconciliation_id", "break_id", *REOPENED, "owner", "up_to")


FORGED_RUNS: list[tuple[str, object]] = [
    ("id", -3),
    ("id", 2**31 - 1),
    ("previous_id", None),
    ("decided_through", 10**9),
    ("chain_hash", "0" * 64),
    ("scope_hash", "0" * 64),
    ("rules_text", "other"),
    ("version", "1"),
    *(("as_of", day) for day in ("never", *ODD_DAYS)),
    ("verdict", "RECONCILED"),
]
ODD_BREAKS = [
    *(("first_seen", f"'{day}'") for day in ODD_DAYS),
    *(("accepted_until", f"'{day}'") for day in ODD_DAYS),
    *(("amount", f"'{number}'") for number in ("NaN", "-Infinity", "1e20", "1e-19")),
    *(("facts", f"'{facts}'") for facts in ("", "[]", "5", "null", "{")),
]


@pytest.mark.long
def test_a_run_is_what_its_event_says(acting: As, workspace: Workspace) -> None:
    merger = acting(MERGER)
    reconcile(merger, found("1"))
    last = reconcile(merger, found("1"))
    for column, value in FORGED_RUNS:
        with pytest.raises(StatementRefused):
            conclude(merger, last, {column: value})
    for column, odd in ODD_BREAKS:
        with pytest.raises(StatementRefused):
            conclude(merger, last, {}, {column: odd})
    of_rules = {"rules_text": "", "rules_hash": hashlib.sha256(b"").hexdigest()}
    with pytest.raises(StatementRefused):
        conclude(merger, last, {**of_rules, "version": "2", "told_version": 2})
    conclude(merger, last, {**of_rules, "version": "2"})
    assert intact(workspace)


def conclude(
    user: Workspace,
    last: Reconciliation,
    forged: Mapping[str, object],
    bend: Mapping[str, str] = {},
    *,
    told_verdict: bool = False,
) -> None:
    """Save a run behind the last one by hand, with the breaks of that one."""
    with user.database.connect() as connection:
        follow(connection, last, forged, bend, told_verdict=told_verdict)


def follow(
    connection: psycopg.Connection,
    last: Reconciliation,
    forged: Mapping[str, object],
    bend: Mapping[str, str] = {},
    *,
    told_verdict: bool = False,
) -> None:
    """The same on a connection, in a transaction of its own unless there is one."""
    with connection.transaction():
        (detail, number) = connection.execute(
            "SELECT detail, next_reconciliation() FROM event WHERE id = %s", [last.event_id]
        ).fetchone() or ("", 0)
        said = json.loads(detail) | {"id": number, "previous_id": last.id}
        said |= {"chain_hash": chain_hash(last.chain_hash, last.report_hash)}
        row = said | {"scope": last.scope} | dict(forged)
        # Whoever forges a run tells the same in its event, but for one.
        said |= {name: row[name] for name in RUN_FACTS if told_verdict or name != "verdict"}
        said["version"] = forged.get("told_version", row["version"])
        said["signed_through"] = row["signed_through"]
        names = [name for name in (*RUN_FACTS, "scope", "rules_text", "version") if name in row]
        connection.execute("SELECT draft('reconciliation'), draft('break_state')")
        connection.execute(
            f"INSERT INTO draft_reconciliation ({', '.join(names)}) "
            f"VALUES ({', '.join(f'%({name})s' for name in names)})",
            row,
        )
        copied = [field.name for field in BREAK_STATE][1:]
        connection.execute(
            f"INSERT INTO draft_break_state (reconciliation_id, {', '.join(copied)}) "
            f"SELECT %s, {', '.join(bend.get(name, name) for name in copied)} "
            "FROM break_state WHERE reconciliation_id = %s",
            [row["id"], last.id],
        )
        said["breaks_hash"] = breaks_hash(connection, int(str(row["id"])), DRAFTED_BREAKS)
        connection.execute("SELECT conclude('a', %s)", [json.dumps(said)])


@pytest.mark.long
def test_nobody_is_said_to_have_accepted_what_nobody_accepted(
    acting: As, workspace: Workspace
) -> None:
    merger, breaks = acting(MERGER), found("1", "2")
    last = reconcile(merger, breaks)
    accepted = {"state": "'ACCEPTED'", "accepted_by": "'ann'", "accepted_reason": "'agreed'"}
    accepted |= {"accepted_until": "'2026-12-31'"}
    verdicts = ({}, {"verdict": "RECONCILED"}, {"verdict": "RECONCILED_WITH_ACCEPTED"})
    for verdict in verdicts[1:]:
        with pytest.raises(StatementRefused, match="and its breaks do not"):
            conclude(merger, last, verdict, told_verdict=True)
    for verdict in verdicts:
        with pytest.raises(StatementRefused, match="that nobody accepted so"):
            conclude(merger, last, verdict, accepted, told_verdict=True)
    ann = replace(ACCEPT, by="ann")
    decide_breaks(acting(CONTROLLER), last.id, Chosen(ids=ids(breaks)), ann)
    for name, other in (("by", "bo"), ("reason", "other"), ("until", "2026-12-30")):
        forged = accepted | {f"accepted_{name}": f"'{other}'"}
        with pytest.raises(StatementRefused, match="that nobody accepted so"):
            conclude(merger, last, {"decided_through": 2}, forged)
    forged_verdict = {"decided_through": 2, "verdict": "RECONCILED"}
    with pytest.raises(StatementRefused, match="and its breaks do not"):
        conclude(merger, last, forged_verdict, accepted, told_verdict=True)
    conclude(merger, last, {"decided_through": 2}, accepted)
    assert intact(workspace)


@pytest.mark.long
def test_no_run_follows_that_has_not_heard_what_was_decided(
    acting: As, workspace: Workspace
) -> None:
    """Decided behind the back of a run, it would be heard by none, and have numbers of before."""
    merger, controller, breaks = acting(MERGER), acting(CONTROLLER), found("1")
    last = reconcile(merger, breaks)
    decide(controller, last.id, ids(breaks)[0], {})
    with pytest.raises(
        StatementRefused, match=r"has not heard what was decided .* reconcile again"
    ):
        conclude(merger, last, {})
    next_one = reconcile(merger, breaks)
    with pytest.raises(StatementRefused, match=f"has followed reconciliation {last.id}"):
        decide(controller, last.id, ids(breaks)[0], {})
    decide(controller, next_one.id, ids(breaks)[0], {})
    assert intact(workspace)


@pytest.mark.long
def test_page_one_knows_of_no_signature_that_is_yet_to_come(
    acting: As, workspace: Workspace
) -> None:
    """Said to know of all, no approver of some tenants would be held to what is signed after it."""
    merger = acting(MERGER)
    last = reconcile(merger, found("1"))
    for through in (10**9, 2**70, -1, 0.5, "1", None):
        with pytest.raises(StatementRefused, match="knows more of what is signed than there is"):
            conclude(merger, last, {"signed_through": through})
    conclude(merger, last, {"signed_through": 0})
    assert intact(workspace)


FIRST = {"scope": "tenants 8", "scope_hash": scope_hash("tenants 8"), "previous_id": None}


@pytest.mark.long
@pytest.mark.parametrize("forged", [{}, FIRST])
def test_one_run_follows_another_whoever_saves_one_at_the_same_time(
    acting: As, workspace: Workspace, forged: dict[str, object]
) -> None:
    merger = acting(MERGER)
    last = reconcile(merger, found("1"))
    if forged:
        forged = forged | {"chain_hash": chain_hash(None, last.report_hash)}
    said: list[psycopg.Error] = []
    with merger.database.connect() as one, merger.database.connect() as other:

        def second() -> None:
            try:
                follow(other, last, forged)
            except psycopg.Error as error:
                said.append(error)

        thread = threading.Thread(target=second)
        with one.transaction():
            follow(one, last, forged)
            thread.start()
            # Until it waits, or has not waited.
            waits = "SELECT cardinality(pg_blocking_pids(%s)) > 0"
            while thread.is_alive() and one.execute(waits, [other.info.backend_pid]).fetchone() == (
                False,
            ):
                pass
        thread.join()
    assert [*map(str, said)]
    assert "does not follow the last one of its scope" in str(said[0])
    assert intact(workspace)


def test_decisions_and_runs_of_a_scope_take_turns(acting: As, workspace: Workspace) -> None:
    """What one has not committed, the other does not see."""
    merger, controller, breaks = acting(MERGER), acting(CONTROLLER), found("1")
    last = reconcile(merger, breaks)
    with workspace.database.connect() as connection:
        connection.execute(  # As others wait for a minute.
            "ALTER FUNCTION lock_scope(text) SET lock_timeout = '1ms'"
        )
    with merger.database.connect() as connection, connection.transaction():
        follow(connection, last, {})
        with pytest.raises(StatementRefused, match="saved a run of it"):
            decide(controller, last.id, ids(breaks)[0], {})
    assert intact(workspace)


OF_OTHERS = ("released", "undo", "sends reopened", "resolve", "restored", "push asked for")
OF_OTHERS += ("batch complete", "batch failed")
OF_STATES = ("batch received", "batch staged", "batch checked", "batch discarded")


@pytest.mark.long
def test_a_loader_decides_about_no_batch(acting: As, workspace: Workspace, tmp_path: Path) -> None:
    """What is held waits for somebody who may apply rows, or is discarded."""
    loader, merger = acting(LOADER), acting(MERGER)
    path = write(tmp_path / "a.csv", line(1), line(2, amount="x"))
    batch = import_delivery(merger, [path], replace(DEFAULT, budget_errors=0)).batch
    assert batch.state == "held"
    with loader.database.connect() as connection:
        for what in OF_OTHERS:
            with pytest.raises(psycopg.errors.InsufficientPrivilege, match="applies no rows"):
                connection.execute("SELECT add_event(1, %s, 'the chief', 'ok', '{}')", [what])
        for state in ("checked", "received", "discarded", "complete", "merged", "undone"):
            with pytest.raises(
                psycopg.Error, match=r"no event .* says who|does not become|applies"
            ):
                connection.execute("UPDATE batch SET state = %s", [state])
        # No other state leads around the decision.
        for state in ("staged", "failed"):
            with pytest.raises(psycopg.Error, match=f"is held, and does not become {state}"):
                connection.execute("UPDATE batch SET state = %s", [state])
        # Nor does a new start: what is read again is checked by who may decide.
        with connection.transaction(force_rollback=True):
            connection.execute("SELECT add_event(1, 'rewound', 'x', NULL, NULL)")
            for state in ("received", "staged"):
                connection.execute("UPDATE batch SET state = %s", [state])
            with pytest.raises(psycopg.Error, match=r"1 was held, .* applies no rows"):
                connection.execute("UPDATE batch SET state = 'checked'")
        # Nor does another batch take its number.
        for away in ("DELETE FROM batch", "UPDATE batch SET id = 7", "DELETE FROM extract"):
            with pytest.raises(psycopg.Error, match=r"permission denied|batch 1 .* stays as it"):
                connection.execute(away)
        # A listing is read to its end by whoever may load, so that nothing becomes one.
        with pytest.raises(psycopg.Error, match="stays as it was received"):
            connection.execute("UPDATE batch SET feed = %s, state = 'complete'", [LISTING_FEED])
        with pytest.raises(psycopg.Error, match="begins as received"):
            connection.execute(
                "INSERT INTO batch (content_id, feed, profile, state, opened_at, lease_epoch) "
                "VALUES ('x', 'x', '{}', 'checked', now(), 0)"
            )
    with merger.database.connect() as connection, pytest.raises(psycopg.Error, match="no event"):
        connection.execute("UPDATE batch SET state = 'checked'")
    assert intact(workspace)
    with pytest.raises(StatementRefused, match=r"applies no rows.*member of recon_merger"):
        release_batch(loader, 1, by="a", reason="b")
    discard_batch(loader, 1, by="a", reason="b")
    with merger.database.connect() as connection, pytest.raises(psycopg.Error, match="is an end"):
        connection.execute("UPDATE batch SET state = 'checked'")
    # What events say of it, proofs go by for good.
    add_event_of_end = "SELECT add_event(1, 'batch discarded', 'x', NULL, %s)"
    with loader.database.connect() as connection:
        for said in (*TERMS, *TABLES, *BEFORE.values()):
            forged: list[object] = ["2001-01-01T00:00:00.000000Z", "0 " + "0" * 64, "", 7, []]
            for one in (*forged, *([None] if said != SERVICE else [])):
                with pytest.raises(psycopg.Error, match=f"another {said} than|by other hashes"):
                    connection.execute(add_event_of_end, [json.dumps({said: one})])
    assert intact(workspace)


@pytest.mark.long
def test_a_loader_calls_no_applied_batch_failed(
    acting: As, workspace: Workspace, tmp_path: Path
) -> None:
    """It says that the totals of applied rows do not tie, which only those recount who apply."""
    import_delivery(acting(MERGER), [write(tmp_path / "a.csv", line(1))], DEFAULT)
    with (
        acting(LOADER).database.connect() as connection,
        pytest.raises(psycopg.errors.InsufficientPrivilege, match=r"'batch failed'.* applies no"),
    ):
        connection.execute("UPDATE batch SET state = 'failed', ended_at = now()")
    assert intact(workspace)
    with workspace.database.connect() as owner:
        owner.execute('UPDATE payment SET "PaidAmount" = "PaidAmount" + 1')
    # What is wrong is told to whoever finds it, and not which right they lack to write it down.
    with pytest.raises(ConservationError, match="Batch 1 does not tie"):
        run_batch(acting(LOADER), 1)
    with pytest.raises(ConservationError, match="Batch 1 does not tie"):
        run_batch(acting(MERGER), 1)
    with workspace.database.connect() as owner:
        assert find_batch(owner, 1).state is State.FAILED
    with pytest.raises(ConservationError, match="Batch 1 does not tie"):
        run_batch(acting(LOADER), 1)


@pytest.mark.long
def test_the_trail_says_of_a_batch_what_it_is(
    acting: As, workspace: Workspace, tmp_path: Path
) -> None:
    """Else what was altered since a batch was held would look as if it had been so before."""
    path = write(tmp_path / "a.csv", line(1), line(1, amount="2"), line(2, amount="x"))
    import_delivery(acting(MERGER), [path], replace(DEFAULT, budget_errors=0))
    forged = {"files": "1 f", "receipts": "1 r", "outcomes": "0 o"}
    with acting(LOADER).database.connect() as connection:
        assert connection.execute("DELETE FROM outcome").rowcount
        for what in OF_STATES:
            with pytest.raises(psycopg.Error, match=f"no event '{what}' of batch 1: it is held"):
                connection.execute("SELECT add_event(1, %s, 'x', NULL, NULL)", [what])
        for number in (None, 7):
            with pytest.raises(psycopg.Error, match="it is unknown"):
                connection.execute("SELECT add_event(%s, 'batch staged', 'x', '', '{}')", [number])
        for detail in (None, "{}", json.dumps(forged)):
            with pytest.raises(psycopg.Error, match="by other hashes"):
                connection.execute("SELECT add_event(1, 'batch held', 'x', NULL, %s)", [detail])
        # What it has now may be said, and counts for nothing: it was said before.
        now = json.dumps(ledger_detail(connection, 1))
        connection.execute("SELECT add_event(1, 'batch held', 'x', NULL, %s)", [now])
    with pytest.raises(EvidenceBroken, match=r"batch 1 was held, somebody altered the outcomes"):
        release_batch(acting(MERGER), 1, by="a", reason="b")
    assert not intact(workspace)


@pytest.mark.long
def test_a_batch_is_not_released_without_the_event_that_held_it(
    workspace: Workspace, tmp_path: Path
) -> None:
    path = write(tmp_path / "a.csv", line(1), line(2, amount="x"))
    import_delivery(workspace, [path], replace(DEFAULT, budget_errors=0))
    with workspace.database.connect() as connection:
        # As the owner of the schema may, and a version before this let others.
        connection.execute("SELECT new_event(1, 'batch staged', 'x', NULL, NULL)")
    with pytest.raises(EvidenceBroken, match="altered the event by which it was held"):
        release_batch(workspace, 1, by="a", reason="b")


ALTERED = [
    # Each has the amount of the other: no sum of them differs.
    """UPDATE staged_payment s SET "PaidAmount" = o."PaidAmount" FROM staged_payment o
    WHERE s.record_number = 3 - o.record_number""",
    """UPDATE staged_payment SET "DebtsId" = 9""",
    "DELETE FROM staged_payment WHERE record_number = 2",
    "DELETE FROM receipt WHERE stage LIKE 'keep %'",
    "UPDATE receipt SET sha256 = 'x 1' WHERE stage LIKE 'keep %'",
    "UPDATE receipt SET sha256 = split_part(sha256, ' ', 1) || ' x' WHERE stage LIKE 'keep %'",
]


@pytest.mark.long(but=("False",))
@pytest.mark.parametrize("held", [False, True])
def test_what_a_loader_alters_of_staged_rows_is_not_applied(
    acting: As, workspace: Workspace, tmp_path: Path, held: bool
) -> None:
    """Whoever may not apply rows leaves them to somebody who may, and who has not read them."""
    loader, merger = acting(LOADER), acting(MERGER)
    lines = [line(1), line(2, amount="20"), *([line(3, amount="x")] if held else [])]
    path, budget = write(tmp_path / "a.csv", *lines), replace(DEFAULT, budget_errors=0)
    go_on: Callable[[], Any] = partial(run_batch, merger, 1)
    if held:
        import_delivery(loader, [path], budget)
        go_on = partial(release_batch, merger, 1, by="ann", reason="agreed")
    else:
        with pytest.raises(StatementRefused, match="recon_merger"):
            import_delivery(loader, [path], budget)
    with loader.database.connect() as loading, merger.database.connect() as connection:
        (before,) = connection.execute("SELECT state FROM batch").fetchall()
        for statement in ALTERED:
            kept = loading.execute("TABLE staged_payment").fetchall()
            receipts = loading.execute("TABLE receipt").fetchall()
            assert loading.execute(statement).rowcount  # type: ignore[call-overload]
            told = r"batch 1 was (staged|held), somebody altered .*(rows that were|receipt)"
            with pytest.raises(EvidenceBroken, match=told):
                go_on()
            assert connection.execute("SELECT count(*) FROM payment").fetchone() == (0,)
            assert connection.execute("SELECT state FROM batch").fetchall() == [before]
            for name, rows in (("staged_payment", kept), ("receipt", receipts)):
                loading.execute(f"DELETE FROM {name}")  # type: ignore[call-overload]
                marks = ", ".join(["%s"] * len(rows[0]))
                with loading.cursor() as cursor:
                    cursor.executemany(f"INSERT INTO {name} VALUES ({marks})", rows)  # type: ignore[arg-type]
    assert go_on().report.verdict == ("complete_with_errors" if held else "complete")


STAYS = [
    "UPDATE batch SET profile = replace(profile, '\"tenant\": null', '\"tenant\": 7')",
    "UPDATE batch SET content_id = 'x'",
    "UPDATE batch SET corrects = 1",
    "UPDATE batch SET opened_at = now()",
    "UPDATE batch SET service = NULL WHERE id = 2",
    "UPDATE batch SET service = 'http://other' WHERE id = 2",
    "UPDATE batch SET service = 'http://other' WHERE id = 1",
    "UPDATE extract SET refused = 'x'",
    "UPDATE extract SET message = 'x'",
    "UPDATE extract SET name = 'x'",
    "UPDATE extract SET bytes = 7, cleared_at = now()",
    "INSERT INTO extract (batch_id, name) VALUES (1, 'x')",
    "UPDATE batch SET held_because = 'x'",
    "UPDATE batch SET ended_at = '2001-01-01'",
    "UPDATE batch SET ended_at = now()",
]


@pytest.mark.long
@pytest.mark.parametrize("role", [LOADER, MERGER])
def test_what_was_received_stays_what_it_is(
    acting: As, workspace: Workspace, tmp_path: Path, role: str
) -> None:
    """A file that counts as refused, or a batch that goes to no service, is asked for nothing."""
    with FaultyServer() as server:
        place = towards(acting(MERGER), server.url)
        import_delivery(place, [write(tmp_path / "a.csv", line(1))], DEFAULT)
        deliver(place, write(tmp_path / "b.csv", line(2)))
        with acting(role).database.connect() as connection:
            for statement in STAYS:
                told = r"as it was received|staged|no event|is said when|when it ended"
                with pytest.raises(psycopg.Error, match=told):
                    connection.execute(statement)  # type: ignore[call-overload]
            if role == MERGER:
                detail = json.dumps({"service": "http://other", "instead_of": server.url})
                with connection.transaction(force_rollback=True):
                    connection.execute(
                        "SELECT add_event(2, 'push asked for', 'x', NULL, %s)", [detail]
                    )
                    with pytest.raises(psycopg.Error, match="2 stays with service"):
                        connection.execute(STAYS[5])  # type: ignore[call-overload]
            # The mark of housekeeping is believed with its event alone.
            connection.execute("UPDATE extract SET cleared_at = now()")
            connection.execute("UPDATE extract SET cleared_at = NULL")
        push_batch(place, 1)
        with workspace.database.connect() as connection:
            found = connection.execute("SELECT DISTINCT service FROM batch").fetchall()
        assert found == [(server.url,)]
    assert intact(workspace)


@pytest.mark.long
def test_a_loader_lets_no_row_end_as_corrected(
    acting: As, workspace: Workspace, tmp_path: Path
) -> None:
    """It would be no error any more, and nothing of the trail says how many are."""
    twice = (line(1), line(1, amount="2"), line(2, amount="x"))
    import_delivery(acting(MERGER), [write(tmp_path / "a.csv", *twice)], DEFAULT)
    with acting(LOADER).database.connect() as connection:
        for forged in (
            "INSERT INTO outcome VALUES (1, 1, 3, 'corrected')",
            "UPDATE outcome SET verdict = 'corrected'",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege, match="applies no rows"):
                connection.execute(forged)


@pytest.mark.long
def test_a_loader_lets_no_row_that_was_corrected_be_in_error_again(
    acting: As, workspace: Workspace, tmp_path: Path
) -> None:
    merger = acting(MERGER)
    import_delivery(merger, [write(tmp_path / "a.csv", line(1), line(2, amount="x"))], DEFAULT)
    import_delivery(merger, [write(tmp_path / "b.csv", line(2))], DEFAULT, corrects=1)
    with acting(LOADER).database.connect() as connection:
        for forged in (
            "DELETE FROM outcome",
            "UPDATE outcome SET verdict = 'superseded'",
            "UPDATE outcome SET error_data = '[]'",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege, match="applies no rows"):
                connection.execute(forged)  # type: ignore[call-overload]
    assert intact(workspace)
    with workspace.database.connect() as connection, connection.transaction(force_rollback=True):
        connection.execute("DELETE FROM outcome WHERE verdict = 'corrected'")
        assert [*unrepaired(connection)] == [
            "record 2 of a.csv of batch 1 does not count as corrected, and a row that was applied "
            "repairs it"
        ]
    undo_batch(merger, 2, by="ann", reason="a test")
    with workspace.database.connect() as connection:
        assert connection.execute("SELECT count(*) FROM outcome").fetchone() == (0,)
    assert intact(workspace)


BATCH = "INSERT INTO batch (content_id, feed, profile, state, opened_at, lease_epoch"
FORGED_BATCHES = [
    (f"{BATCH}) VALUES ('x', 'x', {profile}, 'received', now(), 0)", "JSON object|type json")
    for profile in ("'no json'", "'[]'", "'5'", "'{\"tenant\": \"7\"}'", "'{\"tenant\": 1.5}'",
                    "'{\"tenant\": [7]}'", "'{\"tenant\": 1e99}'",
                    "'{\"tenant\": ' || repeat('9', 5000) || '}'")
] + [
    (f"{BATCH}, id) VALUES ('x', 'x', '{{}}', 'received', now(), 0, 99)", "the number that"),
    ("INSERT INTO extract (batch_id, name, id) VALUES (1, 'x', 99)", "the number that"),
]  # fmt: skip


def test_what_a_loader_enters_is_what_the_database_can_read(
    acting: As, workspace: Workspace
) -> None:
    """Whose rows an account of some tenants sees is read from the profiles of all batches."""
    with acting(LOADER).database.connect() as connection:
        for statement, told in FORGED_BATCHES[:-1]:
            with pytest.raises(psycopg.Error, match=told):
                connection.execute(statement)  # type: ignore[call-overload]
        for tenant in ('{"tenant": 7}', '{"tenant": null}'):
            entered = connection.execute(
                f"{BATCH}, held_because, ended_at) VALUES ('x', 'x', %s, 'received', '2001-01-01', "
                "0, 'x', '2001-01-01') RETURNING opened_at > '2026-01-01', held_because, ended_at",
                [tenant],
            )
            assert entered.fetchall() == [(True, None, None)]
        (number,) = connection.execute("SELECT max(id) FROM batch").fetchone() or (0,)
        with pytest.raises(psycopg.Error, match=FORGED_BATCHES[-1][1]):
            connection.execute(FORGED_BATCHES[-1][0])  # type: ignore[call-overload]
        connection.execute("INSERT INTO extract (batch_id, name) VALUES (%s, 'x')", [number])
        assert connection.execute("SELECT seen_batches()").fetchall() == [([],)]


@pytest.mark.long
def test_why_a_batch_is_held_and_what_was_found_stay_as_they_were_told(
    acting: As, workspace: Workspace, tmp_path: Path
) -> None:
    """Whoever releases it goes by them."""
    path = write(tmp_path / "a.csv", line(1), line(2, amount="x"))
    import_delivery(acting(MERGER), [path], replace(DEFAULT, budget_errors=0))
    with acting(LOADER).database.connect() as connection:
        for change in (
            "held_because = 'x'",
            "held_because = NULL",
            "state = state, ended_at = now()",
        ):
            with pytest.raises(psycopg.Error, match=r"is said when|when it ended"):
                connection.execute(f"UPDATE batch SET {change}")  # type: ignore[call-overload]
        with connection.transaction(force_rollback=True):
            connection.execute("SELECT add_event(1, 'discarded', 'x', NULL, NULL)")
            with pytest.raises(psycopg.Error, match="when it ended is the time"):
                connection.execute("UPDATE batch SET state = 'discarded', ended_at = '2001-01-01'")
    assert intact(workspace)
    with acting(LOADER).database.connect() as connection:
        connection.execute(
            "INSERT INTO note SELECT 1, id, 1, 'payment', 'Odd', 'PaidAmount', 'x', 77, 'forged' "
            "FROM extract"
        )
    with pytest.raises(EvidenceBroken, match="somebody altered the findings that reject no row"):
        release_batch(acting(MERGER), 1, by="a", reason="b")
    with workspace.database.connect() as connection:
        told = verify(connection).broken
        assert told is not None
        assert "the findings that reject no row (table note) are not what link" in told
        connection.execute("DELETE FROM note WHERE code = 'Odd'")
        assert verify(connection).broken is None
        connection.execute("UPDATE batch SET held_because = 'x'")
        told = verify(connection).broken
        assert told is not None
        assert "batch 1 is held for another reason than link" in told
    discard_batch(workspace, 1, by="a", reason="b")
    with workspace.database.connect() as connection:
        alter = "SET LOCAL session_replication_role = replica; UPDATE batch SET held_because = 'x'"
        with connection.transaction():
            connection.execute(alter)
        told = str(verify(connection).broken)
        assert "batch 1 is discarded, and held_because says why it is held" in told


@pytest.mark.long(but=("no json",))
@pytest.mark.parametrize("detail", ["no json", "[]", "5", "null", '{"a": "\\u0000"}'])
def test_what_an_event_says_is_an_object(acting: As, detail: str) -> None:
    """It is read for ever: a text that nobody can read would end every later reconciliation."""
    with acting(LOADER).database.connect() as connection:
        with pytest.raises(psycopg.Error, match=r"JSON object|syntax for type json|Unicode"):
            connection.execute("SELECT add_event(1, 'pull', 'x', NULL, %s)", [detail])
        assert connection.execute("SELECT count(*) FROM event WHERE what = 'pull'").fetchone() == (
            0,
        )


@pytest.mark.long(but=("5",))
@pytest.mark.parametrize(
    "listings",
    [
        "5",
        '{"a": 5}',
        '{"a": {"kept": 5, "asked_at": 5}}',
        '{"a": {"kept": "x", "asked_at": "no time"}}',
        '{"a": {"kept": "x", "asked_at": "2026-01-01T00:00:00"}}',
    ],
)
def test_what_a_pull_says_ends_no_reconciliation(
    acting: As, workspace: Workspace, tmp_path: Path, listings: str
) -> None:
    import_delivery(workspace, [write(tmp_path / "a.csv", line(1))], DEFAULT)
    with acting(LOADER).database.connect() as connection:
        said = f'{{"service": "http://[", "listings": {listings}}}'
        connection.execute("SELECT add_event(NULL, 'pull', 'x', NULL, %s)", [said])
        assert newest_listings(connection, "http://host") == {}


NEVER_WAS = {
    LOADER: "SELECT add_event(99, 'looked at', 'x', NULL, NULL)",
    CONTROLLER: "SELECT order_job('rerun', '{\"batch\": 99}', 'x')",
}


@pytest.mark.long
def test_no_event_is_about_a_batch_that_never_was(
    acting: As, workspace: Workspace, tmp_path: Path
) -> None:
    """Every reconciliation would say that it is gone, and none could be signed again."""
    import_delivery(workspace, [write(tmp_path / "a.csv", line(1, day=28))], DEFAULT)
    for role, statement in NEVER_WAS.items():
        with (
            pytest.raises((StatementRefused, AccountRefused), match="here is no batch 99"),
            acting(role).database.connect() as connection,
        ):
            connection.execute(statement)  # type: ignore[call-overload]
    done = reconcile_scope(workspace, Asked(Scope(), date(2026, 1, 31), Rules()))
    assert not [one for one in done.report.cover.because if "is gone" in one]


@pytest.mark.long
def test_what_is_said_of_other_batches_and_rows_ends_no_command(
    acting: As, workspace: Workspace, recon: Any, tmp_path: Path
) -> None:
    import_delivery(workspace, [write(tmp_path / "a.csv", line(1))], DEFAULT)
    for user, what, detail in (
        (MERGER, "undo", {"reopened": {HUGE: ["x", "y"], "x": ["x", "y"]}}),
        (LOADER, "rewound", {"named": ["x"], "rows": "x"}),
    ):
        with acting(user).database.connect() as connection:
            connection.execute("SELECT add_event(1, %s, 'x', NULL, %s)", [what, json.dumps(detail)])
    assert intact(workspace)
    with workspace.database.connect() as connection:
        assert owed_by(connection, 1) == []
    code, out, _ = recon("row", "1", "a.csv", "--record", "1")
    assert (code, "rewound by x" in out) == (0, True)


@pytest.mark.long(but=("5",))
@pytest.mark.parametrize("detail", ["5", "[]", "{", HUGE, '{"sha256": 5}', '{"sha256": {"a": 5}}'])
def test_what_an_older_event_says_of_a_batch_ends_no_command(
    workspace: Workspace, recon: Any, tmp_path: Path, detail: str
) -> None:
    """A version before this took any text."""
    import_delivery(workspace, [write(tmp_path / "a.csv", line(1))], DEFAULT)
    of_first = f"UPDATE event SET detail = '{detail}' WHERE what = 'batch received'"
    tamper(workspace, "event", of_first)
    with workspace.database.connect() as connection:
        job = find_job(connection, order_job(connection, JobKind.PUSH, {"batch": 1}, "x"))
        told = ("batch received", "batch staged", "report written", "run began", "undo")
        for what in (*told, REMOVED, KEPT_AGAIN):
            connection.execute(
                "INSERT INTO event (batch_id, at, what, by, detail) VALUES (1, now(), %s, 'x', %s)",
                [what, detail],
            )
        assert recorded(connection, [1]) == {1: None}
        (noted,) = noted_reports(connection, [1])
        assert noted.hashes in ({}, {"a": "5"})
        assert not is_profile_altered(connection, 1)
        assert done_for(connection, job, "undo") is None
        assert events_of_run(connection, "run began", "5") == []
        connection.execute("UPDATE extract SET cleared_at = now()")
        assert removed_contents(connection) == {}
        connection.execute("UPDATE extract SET cleared_at = NULL")
        ((sha256,),) = connection.execute("SELECT sha256 FROM extract").fetchall()
        listed = datetime.now(UTC) + timedelta(days=1)
        assert take_over(connection, {sha256: listed}) == [sha256]
    code, out, _ = recon("audit", "list", "--what", "run began")
    assert code == 0
    assert ("sha256" if "sha256" in detail else detail[:5]) in out


def test_no_other_event_says_what_the_rows_of_a_batch_hash_to(
    workspace: Workspace, tmp_path: Path
) -> None:
    import_delivery(workspace, [write(tmp_path / "a.csv", line(1))], DEFAULT)
    with workspace.database.connect() as connection:
        said = recorded(connection, [1])
        for what in ("batch noted", "rewound", "batch complete"):
            told = '{"rows": "other"}'
            connection.execute("SELECT add_event(1, %s, 'x', NULL, %s)", [what, told])
        assert recorded(connection, [1]) == said
        assert said[1] is not None


@pytest.mark.long
@pytest.mark.parametrize("state", ["complete", "held", "undone"])
def test_a_batch_that_was_moved_by_hand_is_found(
    workspace: Workspace, tmp_path: Path, state: str
) -> None:
    import_delivery(workspace, [write(tmp_path / "a.csv", line(1), line(2, amount="x"))], DEFAULT)
    assert intact(workspace)
    with workspace.database.connect() as connection:
        connection.execute("UPDATE batch SET state = %s", [state])
        told = verify(connection).broken
    assert told is not None
    assert f"batch 1 is {state}, and link " in told
    assert "says 'batch complete_with_errors'" in told


def test_no_event_looks_like_one_that_tells_of_more(acting: As) -> None:
    others = [
        "",
        "Report approved",
        "report approved ",
        "report\u00a0approved",
        "x\n7 report approved",
    ]
    with acting(LOADER).database.connect() as connection:
        for what in (
            *others,
            "report approved again",
            "report approved\u200b",
            "reconciliation taken over",
        ):
            with pytest.raises(psycopg.Error):
                connection.execute("SELECT add_event(NULL, %s, 'the chief', '', '{}')", [what])


EPOCH = """INSERT INTO push_epoch (number, token, home, system, timeline, database_oid, xid, at)
    SELECT {number}, 'x', {home}, system, {timeline}, database_oid, 7, '2001-01-01'
    FROM push_epoch ORDER BY number DESC LIMIT 1"""
FORGED_EPOCHS = [
    {"number": str(2**63 - 1)},
    {"number": "number + 2"},
    {"number": "-1"},
    {"timeline": "'x'"},
]
SAID_LOST = {"unsent": "unsent", "last_batch": 1, "lost_sha256": hashlib.sha256(b"[]").hexdigest()}
RESTORE = "INSERT INTO push_restore VALUES (%s, 'unsent', 1, %s, '2001-01-01')"


@pytest.mark.long
def test_nobody_holds_pushes_or_says_what_was_restored_by_hand(
    acting: As, workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    """An epoch of another number or time is one of a copy, and nothing is ever sent again."""
    with FaultyServer() as server:
        merger, loader = towards(acting(MERGER), server.url), acting(LOADER)
        deliver(merger, write(tmp_path / "a.csv", line(1)))
        own = {"number": "number + 1", "home": "'held'", "timeline": "timeline"}
        with loader.database.connect() as connection:
            for forged in (own, own | {"number": str(2**63 - 1)}):
                with pytest.raises(psycopg.errors.InsufficientPrivilege, match="applies no rows"):
                    connection.execute(EPOCH.format(**forged))
        with merger.database.connect() as connection:
            for forged in FORGED_EPOCHS:
                with pytest.raises(psycopg.Error, match="epoch"):
                    connection.execute(EPOCH.format(**own | forged))
            for number in (0, 2**62):
                with pytest.raises(psycopg.Error, match="no epoch"):
                    connection.execute("INSERT INTO push_seal VALUES (%s, 'x', 7)", [number])
            said = add_event(connection, "restored", detail=SAID_LOST)
            for event, lost in ((999, "[]"), (1, "[]"), (said, '["x"]')):
                with pytest.raises(psycopg.Error, match="not what an event restored says"):
                    connection.execute(RESTORE, [event, lost])
            connection.execute(RESTORE, [said, "[]"])
        deliver(merger, write(tmp_path / "b.csv", line(2)))
        assert rows("SELECT DISTINCT state FROM send") == [("acknowledged",)]
    made = "SELECT min(at) > '2020-01-01' FROM "
    assert rows(f"{made}push_epoch") == rows(f"{made}push_restore") == [(True,)]
    assert intact(workspace)
    tamper(workspace, "push_restore", "UPDATE push_restore SET last_batch = 2, lost = '[1]'")
    with workspace.database.connect() as connection:
        assert f"the restore of event {said} is not" in str(verify(connection).broken)
        again = add_event(connection, "restored", detail=SAID_LOST)
        assert f"the restore that event {again} " in str(verify(connection).broken)


def test_a_lease_ends_whatever_its_taker_says(acting: As, workspace: Workspace, rows: Any) -> None:
    """Neither for how long it asks nor when it says that its session began keeps others away."""
    loader, other = acting(LOADER), acting(MERGER)
    with loader.database.connect() as connection, other.database.connect() as waiting:
        keep = "SELECT pid, started FROM keep_batch('1', 'me', 2000000000, '2001-01-01')"
        (session,) = connection.execute(keep).fetchall()
        within = "SELECT expires_at < now() + interval '1 day 1 minute' FROM lease"
        assert rows(within) == [(True,)]
        renew = "SELECT renew_lease('batch 1', %s, %s, 2000000000)"
        assert connection.execute(renew, session).fetchall() == [(True,)]
        assert rows(within) == [(True,)]
        assert waiting.execute("SELECT end_holder('batch 1')").fetchall() == [(None,)]
        tamper(workspace, "lease", "UPDATE lease SET expires_at = now() - interval '1 s'")
        assert waiting.execute("SELECT end_holder('batch 1')").fetchall() == [("me",)]
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")


def test_a_lease_is_kept_by_one_session(acting: As) -> None:
    """Another one's lease would tell the run that it was taken over, and keep it for ever."""
    merger, other_merger = acting(MERGER), acting(MERGER)
    with (
        merger.database.connect() as ours,
        other_merger.database.connect() as other,
        hold_scope(ours, "s"),
        in_turn(ours, Held.RECEIVE, "It"),
    ):
        for kind, whose in (("scope", scope_hash("s")), ("receive", "")):
            kept = other.execute(f"SELECT keep_{kind}(%s, 'x', 9, now())", [whose]).fetchall()  # type: ignore[arg-type]
            assert kept == [], kind
        (session,) = ours.execute("SELECT pid, started FROM lease LIMIT 1").fetchall()
        name = f"scope {scope_hash('s')}"
        renewed = other.execute("SELECT renew_lease(%s, %s, %s, 9999)", [name, *session])
        assert renewed.fetchall() == [(False,)]
        other.execute("SELECT drop_lease(%s)", [name])
        for forbidden in ("keep_lease('x', 'x', 9, now())", "lease_lives(1, 1)"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                other.execute(f"SELECT {forbidden}")  # type: ignore[arg-type]
        assert ours.execute("SELECT account, count(*) FROM lease GROUP BY 1").fetchall() == [
            (ours.info.user, 2)
        ]
