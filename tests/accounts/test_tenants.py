"""What an account of some tenants reads, whatever it sends: rows of these, by PostgreSQL itself."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext, suppress
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest

from connectors.errors import AccountRefused, ReconciliationUnknown
from connectors.files.profiles.profile import DEFAULT
from connectors.postgres.accounts import BATCH_SEEN, act_as, keep_account, sees_part
from connectors.postgres.auditing.audit import list_events, verify
from connectors.postgres.batches.ledger import State
from connectors.postgres.batches.overview import list_overview
from connectors.postgres.batches.record_rows import target_row
from connectors.postgres.heartbeat import take
from connectors.postgres.runs.acceptance_rules import RuleTerms
from connectors.postgres.runs.breaks import Decision
from connectors.postgres.runs.reconciliations import scope_hash
from connectors.postgres.runs.signatures import why_interested
from connectors.postgres.trail import read_detail
from flows.stages.reconcile.acceptance_rules import propose_rule
from flows.stages.reconcile.breaks import Chosen, decide_breaks, list_breaks
from flows.stages.reconcile.sign import prepare
from flows.stages.sequence import import_delivery
from flows.stages.undo import undo_batch
from flows.stages.workspace import Workspace
from schemas.guards.leases import Held
from schemas.guards.roles import CONTROLLER, DESK, LOADER, MERGER, READER
from schemas.guards.tenants import SEEN, SEEN_OF_TARGETS, sees_event
from schemas.life import Choice
from schemas.tables import PAYMENT
from tests.accounts.people import ANNA, TESSA, Account, add, logged_in
from tests.conftest import Once
from tests.governance.runs import DAY, found, reconcile
from tests.stages.conftest import As
from tests.stages.conftest import acting as acting  # noqa: PLC0414 -- the fixture.
from tests.stages.payments import line, write

STATEMENTS = {
    # what is asked for -> how many rows there are of tenant 8, of tenant 7, and of both or none
    "SELECT FROM batch": (1, 1, 1),
    "SELECT FROM extract": (1, 1, 1),
    "SELECT FROM receipt WHERE stage = 'stage'": (1, 1, 1),
    "SELECT FROM outcome": (1, 1, 1),
    "SELECT FROM shown_row": (3, 3, 3),
    "SELECT FROM payment": (1, 1, 2),
    "SELECT FROM reconciliation WHERE scope <> 'everything'": (1, 1, 0),
    "SELECT FROM break_state WHERE code = 'AMOUNT'": (1, 1, 0),
    "SELECT FROM decision": (1, 1, 0),
    "SELECT FROM event WHERE what = 'batch staged'": (1, 1, 1),
    "SELECT FROM event WHERE what = 'reconciled'": (1, 1, 1),
    "SELECT FROM event WHERE what = 'breaks commented'": (1, 1, 0),
    "SELECT FROM event WHERE what = 'acceptance rule proposed'": (1, 1, 0),
    "SELECT FROM ledger_digests(ARRAY[1, 2, 3], 'files')": (1, 1, 1),
    # Of anna, who is for all, and of tessa
    "SELECT FROM account": (1, 1, 0),
    "SELECT DISTINCT account FROM login": (1, 1, 0),
    "SELECT FROM unnest(ARRAY['anna', 'tessa']) name, refused(name, 'login')": (1, 1, 0),
    # By way of others
    "WITH x AS MATERIALIZED (SELECT * FROM payment) SELECT FROM x": (1, 1, 2),
    "SELECT FROM batch b JOIN extract e ON e.batch_id = b.id": (1, 1, 1),
    "SELECT FROM (SELECT * FROM break_state UNION ALL SELECT * FROM break_state) x "
    "WHERE code = 'AMOUNT'": (2, 2, 0),
    "SELECT FROM event_chain c JOIN event e ON e.id = c.event_id WHERE e.what = 'reconciled'": (
        1, 1, 1
    ),
}  # fmt: skip


def count(place: Workspace, statement: str) -> int:
    with place.database.connect() as connection:
        return len(connection.execute(statement).fetchall())  # type: ignore[call-overload]


@pytest.fixture
def place(workspace: Workspace, tmp_path: Path, once: Once, with_roles: str) -> Workspace:
    """A batch and a run of tenant 7, of tenant 8, and of both; accounts, and the roles."""

    def build() -> None:
        for number, tenant in enumerate((7, 8, None), 1):
            one, other = (tenant, tenant) if tenant else (7, 8)
            rows = (
                line(number * 10, tenant=one),
                line(number * 10, tenant=one),
                line(number * 10 + 1, tenant=other, amount="x" if tenant else "1"),
            )
            import_delivery(
                workspace,
                [write(tmp_path / f"{number}.csv", *rows)],
                replace(DEFAULT, tenant=tenant),
            )
        for scope, tenant in (("tenants 7", 7), ("tenants 8", 8), ("everything", None)):
            run = reconcile(workspace, found("4711", tenant=tenant or 9), scope=scope)
            if tenant:
                terms = RuleTerms(scope, "AMOUNT", 1, Decimal(1), Decimal(1), DAY, "small")
                propose_rule(workspace, run.id, terms, "ann")
                comment = Decision(Choice.COMMENT, "asked the bank", "ann")
                decide_breaks(workspace, run.id, Chosen(code="AMOUNT"), comment)
        add(workspace, ANNA, TESSA)

    return once(build)


ROLES = [READER, CONTROLLER, DESK]


@pytest.mark.long(but=("recon_desk",))
@pytest.mark.parametrize("role", ROLES)
def test_an_account_of_some_tenants_reads_theirs_alone(
    place: Workspace, acting: As, role: str
) -> None:
    user = acting(role)
    tessa, anna = logged_in(user, TESSA), logged_in(user, ANNA)
    for statement, (eight, seven, both) in STATEMENTS.items():
        of_payment = both // 2 if "payment" in statement else 0
        assert count(place, statement) >= eight + seven + both, statement
        assert count(tessa, statement) == seven + of_payment, statement
        assert count(anna, statement) == count(place, statement), statement
        assert count(user, statement) == 0, statement


@pytest.mark.long
def test_the_first_account_of_some_tenants_shuts_the_targets(
    workspace: Workspace, tmp_path: Path, acting: As
) -> None:
    import_delivery(workspace, [write(tmp_path / "a.csv", line(1), line(2, tenant=8))], DEFAULT)
    user, worker = acting(READER), acting(MERGER)
    add(workspace, ANNA)
    assert count(user, "SELECT FROM payment") == 2
    with worker.database.connect() as busy, busy.transaction():
        busy.execute("SELECT FROM payment")
        with pytest.raises(AccountRefused, match="when no batch is being applied"):
            add(workspace, TESSA)
    add(workspace, TESSA)
    assert count(user, "SELECT FROM payment") == 0
    assert count(logged_in(user, TESSA), "SELECT FROM payment") == 1
    assert count(worker, "SELECT FROM payment") == 2


FORGED = ["", "tessa", "anna", "0" * 64, "' OR ''='"]


@pytest.mark.long
def test_a_setting_of_the_session_is_no_login(place: Workspace, acting: As) -> None:
    """Neither a name nor what the table of logins has is what a token is."""
    logged_in(place, ANNA)
    with place.database.connect() as owner:
        (whole,) = owner.execute("SELECT token_hash FROM login").fetchone() or ("",)
    with acting(DESK).database.connect() as connection:
        for token in (*FORGED, whole):
            connection.execute("SELECT set_config('recon.login', %s, false)", [token])
            for role in ("NONE", "recon_reader", "recon_controller", "recon_desk"):
                connection.execute(f"SET ROLE {role}")
                for statement in STATEMENTS:
                    found = connection.execute(statement).fetchall()  # type: ignore[call-overload]
                    assert not found, (token, role, statement)
        for role in (LOADER, MERGER):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(f"SET ROLE {role}")
        connection.execute("SET row_security = off")
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"):
            connection.execute("SELECT FROM batch")


SEEN_BY_NOBODY = {
    "an event": "SELECT FROM event e WHERE " + sees_event("e"),
    "a run": "SELECT FROM reconciliation r WHERE recon.sees_scope(r.scope)",
    "a batch": "SELECT FROM batch b WHERE " + BATCH_SEEN,
    "a row": "SELECT FROM shown_row",
    "a job": "SELECT WHERE recon.sees_job('anna')",
}
"""What a session of an account that no policy holds asks the database for."""


@pytest.mark.long(
    but=(
        "None-an account that was disabled",
        "None-a login that expired",
    )
)
@pytest.mark.parametrize(
    "ended", ["an account that was disabled", "a login that expired", "nobody"]
)
@pytest.mark.parametrize("role", [None, MERGER])
def test_a_login_that_has_ended_sees_nothing_of_anybody(
    place: Workspace, acting: As, role: str | None, ended: str
) -> None:
    """Also where no policy holds whoever connects, and who is logged in nowhere sees all."""
    user = acting(role) if role else place
    anna = logged_in(user, ANNA)
    with anna.database.connect() as connection:

        def seen() -> list[str]:
            return [
                of
                for of, asked in SEEN_BY_NOBODY.items()
                if connection.execute(asked).fetchall()  # type: ignore[call-overload]
            ]

        assert seen() == [*SEEN_BY_NOBODY]
        with place.database.connect() as owner:
            if ended == "a login that expired":
                owner.execute("UPDATE login SET expires_at = clock_timestamp()")
            elif ended != "nobody":
                keep_account(owner, replace(ANNA, disabled=True))
        if ended == "nobody":
            act_as(connection, "x" * 43)
        assert seen() == []
        act_as(connection, None)
        assert seen() == [*SEEN_BY_NOBODY]


def test_a_login_of_another_place_is_nothing_where_there_are_no_accounts(
    workspace: Workspace,
) -> None:
    """A browser gives its cookie to every desk of a machine, whatever its port."""
    reconcile(workspace, found())
    with workspace.as_login("x" * 43).database.connect() as connection:
        for of in ("an event", "a run", "a job"):
            assert connection.execute(SEEN_BY_NOBODY[of]).fetchall(), of  # type: ignore[call-overload]


def test_nothing_of_others_is_told_by_what_a_function_of_theirs_sees(
    place: Workspace, acting: As
) -> None:
    """A function that talks is asked behind the policy, not before."""
    with (
        logged_in(acting(READER), TESSA).database.connect() as connection,
        connection.transaction(force_rollback=True),
    ):
        told: list[str] = []
        connection.add_notice_handler(lambda notice: told.append(notice.message_primary or ""))
        connection.execute(
            "CREATE FUNCTION pg_temp.tell(text) RETURNS boolean LANGUAGE plpgsql COST 0.0001 AS "
            "$$ BEGIN RAISE NOTICE '%', $1; RETURN true; END $$"
        )
        connection.execute("SELECT FROM reconciliation WHERE pg_temp.tell(scope)")
        connection.execute("SELECT FROM shown_row WHERE pg_temp.tell(batch_id::text)")
    assert {*told} == {"tenants 7", "everything", "1"}


@pytest.mark.long
def test_who_stands_for_a_run_is_told_to_those_who_see_it(place: Workspace, acting: As) -> None:
    """What keeps an account from approving a run says who prepared it, and accepted how much."""
    reader = acting(READER)

    def told(user: Workspace, number: int) -> str | None:
        with user.database.connect() as connection:
            return why_interested(connection, "anna", number)

    prepare(logged_in(place, ANNA), 1, by=None, comment="")
    prepare(logged_in(place, ANNA), 2, by=None, comment="")
    for user, seen in ((logged_in(reader, TESSA), [1]), (reader, []), (place, [1, 2])):
        for number in (1, 2):
            if number in seen:
                assert "anna prepared the report" in (told(user, number) or "")
            else:
                with pytest.raises(AccountRefused, match=f"There is no reconciliation {number}"):
                    told(user, number)


@pytest.mark.parametrize(("person", "sees_all"), [(TESSA, False), (ANNA, True)])
def test_what_the_owner_reads_is_not_shown_to_an_account_of_some_tenants(
    place: Workspace, person: Account, sees_all: bool
) -> None:
    """A desk may run as the owner, whom no policy holds."""
    with logged_in(place, person).database.connect() as connection:
        assert sees_part(connection) != sees_all
        for tenant, seen in ((7, True), (8, sees_all)):
            key = {"Id": 10 if tenant == 7 else 20, "TenantsId": tenant}
            assert (target_row(connection, PAYMENT, key=key, by=None) is not None) == seen


LISTS: dict[str, Callable[[Workspace, psycopg.Connection], Iterable[object]]] = {
    "batches": lambda _, connection: (one.id for one in list_overview(connection, 9)),
    "events": lambda _, connection: (one.batch_id for one in list_events(connection, 99)),
    "runs of the trail": lambda _, connection: (
        read_detail(one.detail).get("id") for one in list_events(connection, 99, what="reconciled")
    ),
    "breaks": lambda place, _: runs_with_breaks(place),
}


def runs_with_breaks(place: Workspace) -> Iterator[int]:
    for run in (1, 2, 3):
        with suppress(ReconciliationUnknown):
            if list_breaks(place, run, Chosen(code="AMOUNT"))[1].height:
                yield run


@pytest.mark.parametrize("what", LISTS)
@pytest.mark.parametrize("role", [None, MERGER, READER])
def test_a_login_bounds_what_is_listed_whoever_it_connects_as(
    place: Workspace, acting: As, role: str | None, what: str
) -> None:
    """A login says who one acts as; the owner of the schema and workers are held by no policy."""
    user = acting(role) if role else place

    def listed(who: Account) -> set[object]:
        there = logged_in(user, who)
        with there.database.connect() as connection:
            return {*LISTS[what](there, connection)} - {None}

    assert listed(TESSA) == {1}
    assert listed(ANNA) == {1, 2, 3}


@pytest.mark.parametrize("kind", [Held.SCOPE, Held.DECISION])
def test_who_decides_for_some_tenants_keeps_nobody_from_a_scope_of_others(
    place: Workspace, acting: As, kind: Held
) -> None:
    """Of a run of everything they decide about what is theirs; workers begin scopes."""
    some, worker = logged_in(acting(CONTROLLER), TESSA), logged_in(acting(MERGER), TESSA)
    of_worker = [(worker, "tenants 7; feeds a", True)] if kind is Held.SCOPE else []
    for there, scope, may in (
        (some, "tenants 7", True),
        (some, "everything", True),
        (some, "tenants 8", False),
        (some, "tenants 9", False),
        (acting(CONTROLLER), "tenants 7", False),
        (logged_in(acting(CONTROLLER), ANNA), "tenants 8", True),
        (logged_in(place, TESSA), "tenants 7; feeds a", True),
        *of_worker,
    ):
        refused = pytest.raises(AccountRefused, match="sees no run of that scope")
        with nullcontext() if may else refused, there.database.connect() as connection:
            assert take(connection, kind, scope_hash(scope)) is not None, scope


@pytest.mark.long
def test_only_a_whole_trail_is_proven(place: Workspace, acting: As) -> None:
    reader = acting(READER)
    for some in (reader, logged_in(reader, TESSA), logged_in(place, TESSA)):
        with (
            pytest.raises(AccountRefused, match="see a part of the trail"),
            some.database.connect() as connection,
        ):
            verify(connection)
    with logged_in(reader, ANNA).database.connect() as connection:
        assert verify(connection).broken is None


@pytest.mark.long
def test_workers_read_and_write_all(place: Workspace, acting: As, tmp_path: Path) -> None:
    merger = acting(MERGER)
    for statement in STATEMENTS:
        assert count(merger, statement) == count(place, statement), statement
    many = [line(number, tenant=number % 2 + 7) for number in range(100, 160)]
    ended = import_delivery(merger, [write(tmp_path / "n.csv", *many)], DEFAULT)
    assert ended.batch.state is State.COMPLETE
    undo_batch(merger, ended.batch.id, by=None, reason="test")
    assert count(acting(LOADER), "SELECT FROM payment") == 4


@pytest.mark.long
def test_who_is_not_logged_in(workspace: Workspace, acting: As, tmp_path: Path) -> None:
    """Without accounts all is seen; with any, not by the desk; with one of tenants, by nobody."""
    import_delivery(workspace, [write(tmp_path / "a.csv", line(1))], DEFAULT)
    reader, desk = acting(READER), acting(DESK)

    def seen() -> tuple[int, int]:
        return count(reader, "SELECT FROM batch"), count(desk, "SELECT FROM batch")

    assert seen() == (1, 1)
    add(workspace, ANNA)
    assert seen() == (1, 0)
    add(workspace, TESSA)
    assert seen() == (0, 0)
    assert count(logged_in(desk, ANNA), "SELECT FROM batch") == 1


def test_who_is_acting_is_asked_once_a_statement(place: Workspace, acting: As) -> None:
    with logged_in(acting(DESK), ANNA).database.connect() as connection:
        plan = connection.execute("EXPLAIN SELECT FROM break_state").fetchall()
    told = "\n".join(one for (one,) in plan)
    assert "InitPlan" in told
    assert "sees_all" not in told.partition("Filter:")[2].partition("\n")[0]


def test_every_table_that_a_reader_reads_is_thought_of(place: Workspace, rows: Any) -> None:
    """Those without a policy hold nothing of a tenant's, and are named here."""
    readable = rows(
        "SELECT c.relname, c.relrowsecurity FROM pg_class c WHERE c.relkind IN ('r', 'v') "
        "AND c.relnamespace = 'recon'::regnamespace "
        f"AND has_any_column_privilege('{READER}', c.oid, 'SELECT') ORDER BY 1"
    )
    held = {name for name, secured in readable if secured}
    assert held == {*SEEN, *SEEN_OF_TARGETS}
    assert {name for name, _ in readable} - held == OTHERS


OTHERS = {
    # above what two people decide, what is held, and hashes
    "acceptance_limit", "lease", "chain_turn", "event_chain",
    # the service, whichever batch it is
    "push_lane", "push_epoch", "push_seal", "push_restore",
    # asks who is acting by itself
    "shown_row",
    "alembic_version",
}  # fmt: skip
