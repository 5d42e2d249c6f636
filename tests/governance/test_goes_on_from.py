"""What a run goes on from, and what is signed, is what the trail says of the runs before."""

from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from connectors.errors import EvidenceBroken
from connectors.files.profiles.profile import DEFAULT
from connectors.postgres.accounts import keep_limit
from connectors.postgres.runs.breaks import Decision
from flows.stages.reconcile.breaks import Chosen, decide_breaks
from flows.stages.reconcile.sign import approve, prepare
from flows.stages.sequence import import_delivery
from flows.stages.workspace import Workspace
from schemas.guards.roles import CONTROLLER
from schemas.life import Choice
from tests.accounts.people import ANNA, BO, TESSA, add, logged_in
from tests.conftest import Once
from tests.governance import runs
from tests.governance.test_three_days import accept_open, paid, run, sign
from tests.stages.conftest import As
from tests.stages.conftest import acting as acting  # noqa: PLC0414 -- the fixture.
from tests.stages.payments import line, write

DAYS = [date(2026, 1, day) for day in (28, 29, 30, 31)]


def bent(place: Workspace, *statements: str) -> None:
    """What the owner of the database can do, with triggers off."""
    with place.database.connect() as connection, connection.transaction():
        connection.execute("SET LOCAL session_replication_role = replica")
        for statement in statements:
            assert connection.execute(statement).rowcount, statement  # type: ignore[call-overload]


@pytest.fixture
def place(workspace: Workspace, tmp_path: Path, once: Once) -> Workspace:
    """Three days: a break that is accepted, signed as such, and accepted once more since."""

    def build() -> None:
        lines = [line(number) for number in (1, 2, 3)]
        import_delivery(workspace, [write(tmp_path / "p.csv", *lines)], DEFAULT)
        paid(workspace, 1, "10")
        accept_open(workspace, run(workspace, DAYS[0]))
        sign(workspace, run(workspace, DAYS[1]))
        paid(workspace, 2, "10")
        accept_open(workspace, run(workspace, DAYS[2]))

    return once(build)


def test_an_honest_history_goes_on(place: Workspace) -> None:
    last = run(place, DAYS[3])
    assert last.report.cover.verdict == "RECONCILED_WITH_ACCEPTED"
    sign(place, last)


TAKEN = "WHERE event_id = (SELECT max(event_id) FROM decision)"
BENT = {
    "amount": ("UPDATE break_state SET amount = 0.01 WHERE reconciliation_id = 3", "breaks"),
    "age": (
        "UPDATE break_state SET first_seen = '2026-01-30' WHERE reconciliation_id = 3", "breaks"
    ),
    "who accepted": (
        "UPDATE break_state SET accepted_by = 'boss' WHERE accepted_by IS NOT NULL "
        "AND reconciliation_id = 3", "breaks"
    ),
    "break gone": ("DELETE FROM break_state WHERE reconciliation_id = 3", "breaks"),
    "day": (f"UPDATE decision SET until = '2099-12-31' {TAKEN}", "decisions"),
    "decision gone": (f"DELETE FROM decision {TAKEN}", "decisions"),
    "number": (f"UPDATE decision SET id = id - 1000 {TAKEN}", "numbers of another time"),
    "signature": ("UPDATE signature SET by = 'boss' WHERE role = 'approved'", "signature"),
    "signature gone": ("DELETE FROM signature WHERE role = 'approved'", "signature"),
    "run": ("UPDATE reconciliation SET decided_through = 99 WHERE id = 3", "is not what link"),
    "run gone": ("DELETE FROM reconciliation WHERE id = 3", "tells of was removed"),
    "rules": ("UPDATE reconciliation SET rules_text = 'x' WHERE id = 3", "rules"),
}  # fmt: skip


@pytest.mark.long(but=("day",))
@pytest.mark.parametrize(("statement", "told"), BENT.values(), ids=BENT)
def test_what_was_altered_of_the_run_before_is_carried_no_further(
    place: Workspace, statement: str, told: str
) -> None:
    bent(place, statement)
    with pytest.raises(EvidenceBroken, match=f"{told}.*audit verify"):
        run(place, DAYS[3])


OF_LAST = {
    "reopened": ("DELETE FROM decision WHERE what = 'reopen'", "decisions"),
    "prepared": ("UPDATE signature SET by = 'Eve' WHERE reconciliation_id = 4", "signature"),
    "breaks": ("UPDATE break_state SET amount = 1 WHERE reconciliation_id = 4", "breaks"),
}


@pytest.mark.long(but=("reopened",))
@pytest.mark.parametrize(("statement", "told"), OF_LAST.values(), ids=OF_LAST)
def test_nobody_signs_what_was_altered_since(place: Workspace, statement: str, told: str) -> None:
    last = run(place, DAYS[3])
    prepare(place, last.run.id, by="Ann", comment="")
    decide_breaks(place, last.run.id, Chosen(state="ACCEPTED"), Decision(Choice.REOPEN, "no", "x"))
    bent(place, statement)
    with pytest.raises(EvidenceBroken, match=f"{told}.*audit verify"):
        approve(place, last.run.id, by="Bo", comment="")


WHO = {
    "role": ("UPDATE account SET roles = 'preparer approver' WHERE name = 'anna'", "'anna'"),
    "password": ("UPDATE account SET verifier = salt WHERE name = 'bo'", "'bo'"),
    "account": (
        "INSERT INTO account (name, full_name, roles, disabled, event_id) "
        "VALUES ('eve', 'Eve', 'approver', FALSE, 1)",
        "'eve'",
    ),
    "limit": ("DELETE FROM acceptance_limit", "limit of acceptances of the currency '978'"),
    "login": (
        "INSERT INTO login VALUES (repeat('0', 64), 'bo', 'password', now(), now() + '1 hour')",
        "the login of 'bo'",
    ),
    "login of another": ("UPDATE login SET account = 'bo' WHERE account = 'anna'", "of 'bo'"),
    "login that goes on": ("UPDATE login SET expires_at = now() + '1 year'", "login of 'anna'"),
}


@pytest.mark.long(but=("role",))
@pytest.mark.parametrize(("statement", "told"), WHO.values(), ids=WHO)
def test_nobody_signs_by_rights_that_nobody_gave(
    place: Workspace, statement: str, told: str
) -> None:
    last = run(place, DAYS[3])
    add(place, ANNA, BO)
    with place.database.connect() as connection:
        keep_limit(connection, "978", Decimal(1000))
    prepare(logged_in(place, ANNA), last.run.id, by=None, comment="")
    bo = logged_in(place, BO)
    bent(place, statement)
    with pytest.raises(EvidenceBroken, match=f"{told}.*audit verify"):
        approve(bo, last.run.id, by=None, comment="")


OF_SOME = {
    "run": ("UPDATE reconciliation SET decided_through = 99 WHERE id = 1", "is not what link"),
    "breaks": ("UPDATE break_state SET amount = 1 WHERE reconciliation_id = 1", "breaks"),
    "decision gone": ("DELETE FROM decision", "decisions"),
    "signature": ("UPDATE signature SET by = 'Eve'", "signature"),
    "role of another": (*WHO["role"][:1], "an account, a login or a limit"),
    "limit": (*WHO["limit"][:1], "an account, a login or a limit"),
}


@pytest.mark.long(but=("role of another",))
@pytest.mark.parametrize(("statement", "told"), OF_SOME.values(), ids=OF_SOME)
def test_nor_does_whoever_is_shown_a_part_sign_it(
    workspace: Workspace, acting: As, statement: str, told: str
) -> None:
    """Of accounts that they are not shown they are told that one is another, and not which."""
    tim = replace(TESSA, name="tim", full_name="Tim Roe")
    add(workspace, ANNA, TESSA, tim)
    for scope in ("tenants 8", "tenants 7"):
        done = runs.reconcile(workspace, runs.found("4711", tenant=int(scope[-1])), scope=scope)
    with workspace.database.connect() as connection:
        keep_limit(connection, "978", Decimal(1000))
    user = acting(CONTROLLER)
    accepted = Decision(Choice.COMMENT, "asked the bank")
    decide_breaks(logged_in(user, TESSA), done.id, Chosen(code="AMOUNT"), accepted)
    prepare(logged_in(user, TESSA), done.id, by=None, comment="")
    bent(workspace, statement.replace("id = 1", f"id = {done.id}"))
    with pytest.raises(EvidenceBroken, match=f"{told}.*audit verify") as refused:
        prepare(logged_in(user, tim), done.id, by=None, comment="")
    assert "anna" not in str(refused.value)
