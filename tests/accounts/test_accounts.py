"""Who acts is shown to the database by the key of a password, and it holds them to their roles."""

import hashlib
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from decimal import Decimal
from threading import Thread
from typing import Any

import psycopg
import pytest

from connectors.errors import AccountRefused, DecisionRefused, LoginRefused, ReconError
from connectors.postgres.accounts import (
    Account,
    acting,
    keep_account,
    keep_limit,
    list_accounts,
    log_in,
    log_out,
    set_password,
    vouch,
)
from connectors.postgres.auditing.audit import list_events, verify
from connectors.postgres.runs.breaks import Decision, add_decisions
from flows.stages.reconcile.breaks import Chosen, decide_breaks
from flows.stages.reconcile.saved_report import latest_seen, saved_report
from flows.stages.reconcile.sign import approve, prepare
from flows.stages.workspace import Workspace
from schemas.accounts import AccountRole, How
from schemas.guards.accounts import LOGIN, OWN_CHANGE
from schemas.guards.logins import TRIES
from schemas.life import Choice
from tests.accounts.people import (
    ADA,
    ANNA,
    BO,
    CLEO,
    OTTO,
    PASSWORD,
    TESSA,
    VERIFIER,
    add,
    logged_in,
)
from tests.governance.runs import found, ids, reconcile, tamper

UNTIL = date(2026, 12, 31)


ACCEPTED = Decision(Choice.ACCEPT, "agreed", None, until=UNTIL)


def accept(workspace: Workspace, breaks: list[str]) -> None:
    decide_breaks(workspace, None, Chosen(tuple(breaks)), ACCEPTED)


def test_a_login_is_a_person_until_it_ends(workspace: Workspace) -> None:
    add(workspace, ANNA)
    place = logged_in(workspace, ANNA)
    with place.database.connect() as connection:
        person = acting(connection)
        assert person is not None
        assert (person.name, person.full_name, person.roles) == (
            "anna", "Anna Meyer", (AccountRole.PREPARER,)
        )  # fmt: skip
        log_out(connection)
        assert acting(connection) is None
    with workspace.database.connect() as connection:
        assert acting(connection) is None


WRONG = [
    ("anna", "wrong"),
    ("nobody", PASSWORD),
    ("Anna", PASSWORD),
    ("", PASSWORD),
    ("dora", PASSWORD),
    ("x" * 10_000, PASSWORD),
    ("anna", "x" * 100_000),
    ("anna' OR 'a'='a", PASSWORD),
]


@pytest.mark.long
def test_a_wrong_login_does_not_tell_what_was_wrong(workspace: Workspace) -> None:
    dora = Account("dora", "Dora Pike", (AccountRole.VIEWER,))
    add(workspace, ANNA, dora)
    with workspace.database.connect() as connection:
        keep_account(connection, replace(dora, disabled=True))
        for name, password in WRONG:
            with pytest.raises(LoginRefused, match=r"Name or password is wrong, or .* disabled"):
                log_in(connection, name, password)


JUST_NOW = "-1 h"
"""The first wait is a second, which a busy machine takes to make a key from a password."""


def last_try(connection: psycopg.Connection, ago: str, asked_for: str = LOGIN) -> None:
    """Make the last try of anna one of some time ago; `JUST_NOW` for as long as a test takes."""
    connection.execute(
        "SELECT setval(recon.tries('anna', %(of)s)::regclass, (SELECT failed::bigint << 42 "
        "FROM recon.refused('anna', %(of)s)) "
        "| (extract(epoch FROM clock_timestamp() - %(ago)s::interval) * 1000)::bigint)",
        {"of": asked_for, "ago": ago},
    )


def refused_tries(connection: psycopg.Connection, asked_for: str = LOGIN) -> int:
    return connection.execute(
        "SELECT failed FROM recon.refused('anna', %s)", [asked_for]
    ).fetchall()[0][0]


def test_tries_are_counted_and_have_to_wait(workspace: Workspace, rows: Any) -> None:
    add(workspace, ANNA)
    with workspace.database.connect() as connection:
        for _ in range(6):
            with pytest.raises(LoginRefused, match="is wrong"):
                log_in(connection, "anna", "guess")
            last_try(connection, "1 h")
        last_try(connection, JUST_NOW)
        said = []
        for name in ("anna", "nobody"):
            with pytest.raises(LoginRefused, match="or it waits: after 5 refused tries") as refused:
                log_in(connection, name, PASSWORD)
            said.append(str(refused.value))
        assert said[0] == said[1], "it says who has an account"
        last_try(connection, "3 s")
        log_in(connection, "anna", PASSWORD)
        assert refused_tries(connection) == 0
    assert rows("SELECT count(*) FROM event WHERE what = 'login refused'") == [(6,)]


def test_a_disabled_account_is_out_at_once(workspace: Workspace) -> None:
    add(workspace, ANNA)
    place = logged_in(workspace, ANNA)
    with place.database.connect() as of_anna, workspace.database.connect() as connection:
        assert acting(of_anna)
        keep_account(connection, replace(ANNA, disabled=True))
        assert acting(of_anna) is None
        keep_account(connection, ANNA)
        assert acting(of_anna) is None, "the login was ended, not paused"


@pytest.mark.long
def test_a_password_is_changed_by_who_knows_it(workspace: Workspace, rows: Any) -> None:
    add(workspace, ANNA)
    place, elsewhere = logged_in(workspace, ANNA), logged_in(workspace, ANNA)
    new = "a staple of batteries"
    for wrong in ("no", None):
        with (
            pytest.raises(LoginRefused, match="not the password of anna"),
            place.database.connect() as connection,
        ):
            set_password(connection, "anna", new, wrong)
    with workspace.database.connect() as owner:
        assert refused_tries(owner, OWN_CHANGE) == 2
        assert refused_tries(owner) == 0, "who is logged in is not kept out by it"
    with place.database.connect() as connection:
        with pytest.raises(LoginRefused, match="12 to 1024 characters; this one has 5"):
            set_password(connection, "anna", "short", PASSWORD)
        set_password(connection, "anna", new, PASSWORD)
        assert acting(connection), "who changed it stays"
    with elsewhere.database.connect() as connection:
        assert acting(connection) is None
        with pytest.raises(LoginRefused):
            log_in(connection, "anna", PASSWORD)
        assert log_in(connection, "anna", new)


@pytest.mark.long
def test_a_login_left_open_is_no_place_to_guess_the_password(workspace: Workspace) -> None:
    add(workspace, ANNA)
    place = logged_in(workspace, ANNA)
    with place.database.connect() as connection:
        for _ in range(TRIES + 1):
            with pytest.raises(LoginRefused):
                set_password(connection, "anna", "a staple of batteries", "guess")
        with pytest.raises(LoginRefused, match="or the account waits: after 5 refused tries"):
            set_password(connection, "anna", "a staple of batteries", PASSWORD)
        log_in(connection, "anna", PASSWORD)  # It keeps nobody out.
        with pytest.raises(LoginRefused):
            set_password(connection, "anna", "a staple of batteries", PASSWORD)


def test_what_is_kept_of_a_password_logs_nobody_in(workspace: Workspace, rows: Any) -> None:
    with workspace.database.connect() as connection:
        keep_account(connection, ANNA)
        set_password(connection, "anna", PASSWORD)
    [(salt, verifier)] = rows("SELECT salt, verifier FROM account")
    assert salt.startswith("argon2id$v=19$m=19456,t=2,p=1$")
    with workspace.database.connect() as connection:
        for key in (verifier, "", "zz", "abc"):
            told = connection.execute(
                "SELECT recon.log_in('anna', %s, %s, 60)", [key, "0" * 64]
            ).fetchone()
            assert told == ("wrong",)
    assert PASSWORD not in str(rows("SELECT * FROM event"))


def told_last(connection: psycopg.Connection) -> str:
    said = "SELECT detail::json ->> 'password' FROM recon.event WHERE what = 'password set'"
    ((told,), *_) = connection.execute(f"{said} ORDER BY id DESC").fetchall()
    return str(told)


@pytest.mark.long
def test_what_the_trail_says_of_a_password_cannot_be_guessed_at(
    workspace: Workspace, controller: str
) -> None:
    """Whoever reads the trail, and the salt that logging in needs, holds no guess against it."""
    add(workspace, CLEO)
    with psycopg.connect(controller) as connection:
        ((salt,),) = connection.execute("SELECT recon.login_salt('cleo')").fetchall()
        told = told_last(connection)
        guessed = hashlib.sha256(f"{salt}|{VERIFIER}".encode()).hexdigest()
        assert (len(told), told == guessed) == (64, False)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("SELECT pepper FROM recon.account")
    add(workspace, CLEO)
    with workspace.database.connect() as connection:
        assert told_last(connection) != told, "the same password, set again"
        assert verify(connection).broken is None


def test_a_provider_or_proxy_vouches_for_whom_an_account_names(workspace: Workspace) -> None:
    known = replace(ANNA, subject="oidc https://id.example.com 4711")
    with workspace.database.connect() as connection:
        keep_account(connection, known)
        assert vouch(connection, "https://id.example.com 4712", How.OIDC) is None
        assert vouch(connection, "https://id.example.com 4711", How.PROXY) is None
        token = vouch(connection, "https://id.example.com 4711", How.OIDC)
    for refused, why in (
        (lambda one: vouch(one, "anna", How.PASSWORD), "Nobody vouches for a password"),
        (lambda one: keep_account(one, replace(BO, subject=known.subject)), "account already"),
    ):
        with (
            pytest.raises(AccountRefused, match=why),
            workspace.database.connect() as connection,
        ):
            refused(connection)
    with workspace.database.as_login(token).connect() as connection:
        person = acting(connection)
        assert person is not None
        assert (person.name, person.own_password) == ("anna", False)
    # Its subject is taken away while the desk vouches for it.
    asked = (known.subject or "").removeprefix("oidc ")
    with workspace.database.connect() as owner, workspace.database.connect() as desk:
        vouched: list[str | None] = []
        thread = Thread(target=lambda: vouched.append(vouch(desk, asked, How.OIDC)))
        with owner.transaction():
            keep_account(owner, replace(known, subject="proxy anna@corp"))
            thread.start()
            waits = "SELECT cardinality(pg_blocking_pids(%s)) > 0"
            while thread.is_alive() and owner.execute(
                waits, [desk.info.backend_pid]
            ).fetchone() == (False,):
                pass
        thread.join()
    assert vouched == [None]


AT_ONCE: dict[str, tuple[Callable[[Any], None], Callable[[Any], None], str]] = {
    "one subject": (
        lambda one: keep_account(one, replace(ANNA, subject="proxy anna"), 0),
        lambda one: keep_account(one, replace(BO, subject="proxy anna"), 0),
        "'proxy anna' is another account already",
    ),
    "one name": (
        lambda one: keep_account(one, ANNA, 0),
        lambda one: keep_account(one, replace(ANNA, roles=BO.roles), 0),
        "Somebody else has changed the account 'anna'",
    ),
    "one limit": (
        lambda one: keep_limit(one, "1", Decimal(10)),
        lambda one: keep_limit(one, "1", Decimal(20)),
        "",
    ),
}


@pytest.mark.parametrize("case", AT_ONCE)
def test_of_two_who_keep_accounts_at_once_the_second_reads_what_the_first_did(
    workspace: Workspace, case: str
) -> None:
    first, second, refused = AT_ONCE[case]
    came: list[str] = []

    def do() -> None:
        try:
            with workspace.database.connect() as other:
                second(other)
            came.append("")
        except ReconError as error:
            came.append(str(error))

    thread = Thread(target=do)
    with workspace.database.connect() as one:
        with one.transaction():
            first(one)
            thread.start()
            waits = (
                "SELECT count(*) FROM pg_locks WHERE NOT granted "
                "AND pg_backend_pid() = ANY (pg_blocking_pids(pid))"
            )
            while thread.is_alive() and one.execute(waits).fetchone() == (0,):
                pass
        thread.join()
        assert verify(one).broken is None
    assert [bool(told) for told in came] == [bool(refused)], came
    assert refused in came[0]


@pytest.mark.parametrize(
    "account",
    [
        replace(ANNA, name="Anna"),
        replace(ANNA, name="anna\nmeyer"),
        replace(ANNA, name=""),
        replace(ANNA, full_name=" "),
        replace(ANNA, full_name="A" * 101),
        replace(ANNA, roles=()),
    ],
)
def test_an_account_that_none_can_have(workspace: Workspace, account: Account) -> None:
    with (
        pytest.raises(AccountRefused, match="No account can be"),
        workspace.database.connect() as connection,
    ):
        keep_account(connection, account)


def test_without_accounts_everybody_is_who_they_say(workspace: Workspace) -> None:
    run = reconcile(workspace, found())
    prepare(workspace, run.id, by="Ann", comment="")
    signed = approve(workspace, run.id, by="Bo", comment="")
    assert signed.approval == "APPROVED_SELF_DECLARED"


@pytest.mark.long
def test_the_story_of_a_month(workspace: Workspace) -> None:
    add(workspace, ANNA, BO, CLEO)
    breaks = found("1", "2")
    run = reconcile(workspace, breaks)
    anna, bo, cleo = (logged_in(workspace, one) for one in (ANNA, BO, CLEO))

    with pytest.raises(AccountRefused, match=r"Nobody is logged in, and accepting .*recon login"):
        accept(workspace, ids(breaks))
    with pytest.raises(AccountRefused, match="Cleo is viewer, and accepting a break takes prep"):
        accept(cleo, ids(breaks))
    accept(anna, ids(breaks)[:1])
    decision = Decision(Choice.ACCEPT, "agreed", "for Bo", until=UNTIL)
    decide_breaks(bo, None, Chosen(tuple(ids(breaks)[1:])), decision)
    run = reconcile(workspace, breaks, verdict="RECONCILED_WITH_ACCEPTED")

    with pytest.raises(AccountRefused, match="Bo is approver, and preparing a report takes prep"):
        prepare(bo, run.id, by=None, comment="")
    prepare(anna, run.id, by="Anna herself", comment="month end")
    with pytest.raises(AccountRefused, match=r"approves a run in which they accepted .*bo accep"):
        approve(bo, run.id, by=None, comment="")
    dan = Account("dan", "Dan Roe", (AccountRole.APPROVER,))
    add(workspace, dan)
    signed = approve(logged_in(workspace, dan), run.id, by=None, comment="")
    assert signed.approval == "APPROVED"
    assert [one.by for one in signed.signatures.values()] == ["anna", "dan"]

    with workspace.database.connect() as connection:
        assert verify(connection).broken is None
        told = [(one.what, one.person) for one in list_events(connection, 100)]
    assert told[0] == ("report approved", "dan")
    assert ("breaks accepted", "bo") in told
    assert ("breaks accepted", "anna") in told


@pytest.mark.long
def test_nobody_approves_what_they_prepared_with_both_roles(workspace: Workspace) -> None:
    both = replace(ANNA, roles=(AccountRole.PREPARER, AccountRole.APPROVER))
    add(workspace, both)
    run = reconcile(workspace, found())
    anna = logged_in(workspace, both)
    prepare(anna, run.id, by=None, comment="")
    with pytest.raises(ReconError, match="anna prepared the report"):
        approve(anna, run.id, by=None, comment="")


@pytest.mark.long
@pytest.mark.parametrize("again", [0, 1, 2])
def test_nobody_approves_by_rules_they_changed_however_often_it_is_run(
    workspace: Workspace, rows: Any, again: int
) -> None:
    both = replace(ANNA, roles=(AccountRole.PREPARER, AccountRole.APPROVER))
    add(workspace, both, BO, replace(both, name="dan"))
    anna, bo, dan = (logged_in(workspace, one) for one in (both, BO, replace(both, name="dan")))
    run = reconcile(workspace, found())
    prepare(dan, run.id, by=None, comment="")
    approve(bo, run.id, by=None, comment="")
    reconcile(anna, found(), rules="1" * 64)
    for _ in range(again):
        reconcile(workspace, found(), rules="1" * 64)
    (last,) = rows("SELECT max(id) FROM reconciliation")[0]
    prepare(dan, last, by=None, comment="")
    asked = "SELECT refuse_interested(%s, %s)"
    with (
        pytest.raises(
            AccountRefused,
            match="if they changed the rules since the last approved one: anna made or ordered "
            "reconciliation 2",
        ),
        workspace.database.connect() as connection,
    ):
        connection.execute(asked, ["anna", last])
    with workspace.database.connect() as connection:
        connection.execute(asked, ["bo", last])


@pytest.mark.long
def test_the_database_holds_to_it_whatever_program_asks(workspace: Workspace, rows: Any) -> None:
    """The same by hand: a signature in another name, or by nobody, is refused."""
    add(workspace, ANNA, BO)
    run = reconcile(workspace, found())
    prepare(logged_in(workspace, ANNA), run.id, by=None, comment="")

    def forge(place: Workspace, by: str) -> None:
        detail = f'{{"reconciliation": {run.id}, "role": "approved", "report_hash": ' + (
            f'"{run.report_hash}"}}'
        )
        with place.database.connect() as connection, connection.transaction():
            connection.execute("SELECT recon.draft('signature')")
            connection.execute(
                "INSERT INTO draft_signature (reconciliation_id, role, by, comment, report_hash) "
                "VALUES (%s, 'approved', %s, '', %s)",
                [run.id, by, run.report_hash],
            )
            connection.execute("SELECT recon.sign('report approved', %s, '', %s)", [by, detail])

    with pytest.raises(AccountRefused, match="Nobody is logged in"):
        forge(workspace, "bo")
    with pytest.raises(AccountRefused, match="Anna is preparer"):
        forge(logged_in(workspace, ANNA), "bo")
    with pytest.raises(AccountRefused, match="Bo is logged in, and cannot act as 'carl'"):
        forge(logged_in(workspace, BO), "carl")
    forge(logged_in(workspace, BO), "bo")
    assert rows("SELECT by FROM signature ORDER BY role") == [("bo",), ("anna",)]


@pytest.mark.long
def test_an_account_of_a_tenant_decides_and_signs_for_it_alone(workspace: Workspace) -> None:
    add(workspace, TESSA)
    tessa = logged_in(workspace, TESSA)
    breaks = found("1")
    others = found("2", tenant=8)
    reconcile(workspace, breaks, scope="tenants 7")
    accept(tessa, ids(breaks))
    run = reconcile(workspace, others, scope="tenants 7, 8")
    with pytest.raises(DecisionRefused, match="no such break"):
        accept(tessa, ids(others))
    with (
        pytest.raises(AccountRefused, match="decides about the tenants 7 alone"),
        tessa.database.connect() as connection,
        connection.transaction(),
    ):
        add_decisions(connection, run.id, ids(others), ACCEPTED)
    with pytest.raises(AccountRefused, match="has no right to 'tenants 7, 8'"):
        prepare(tessa, run.id, by=None, comment="")
    for scope in ("everything", "feeds x; tenants 8", "batches 1", "feeds tenants 7"):
        run = reconcile(workspace, found(), scope=scope)
        with pytest.raises(AccountRefused, match="has no right to"):
            prepare(tessa, run.id, by=None, comment="")
        with pytest.raises(AccountRefused, match="has no right to"):
            saved_report(tessa, run.id)
    run = reconcile(workspace, found(), scope="feeds x; tenants 7")
    prepare(tessa, run.id, by=None, comment="")
    reconcile(workspace, found(), scope="tenants 8")
    with tessa.database.connect() as connection:
        assert latest_seen(connection) == run


KEEPING: dict[str, Callable[[psycopg.Connection], None]] = {
    "add": lambda connection: keep_account(connection, BO),
    "promote": lambda connection: keep_account(
        connection, replace(CLEO, roles=(AccountRole.APPROVER,))
    ),
    "password": lambda connection: set_password(connection, "cleo", "another password"),
}


@pytest.mark.long
@pytest.mark.parametrize("what", KEEPING)
def test_accounts_are_kept_by_administrators(
    workspace: Workspace, what: str, controller: str
) -> None:
    """Whoever owns the schema keeps them too; who only works with it does not."""
    add(workspace, ADA, ANNA, CLEO)
    lesser = replace(workspace, database=type(workspace.database)(controller, 10))
    with pytest.raises(AccountRefused, match="logged in"), lesser.database.connect() as connection:
        KEEPING[what](connection)
    with (
        pytest.raises(AccountRefused, match="takes administrator"),
        logged_in(lesser, ANNA).database.connect() as connection,
    ):
        KEEPING[what](connection)
    with logged_in(lesser, ADA).database.connect() as connection:
        KEEPING[what](connection)
        assert verify(connection).broken is None


def test_the_first_account_is_the_owners(workspace: Workspace, controller: str) -> None:
    lesser = replace(workspace, database=type(workspace.database)(controller, 10))
    with (
        pytest.raises(AccountRefused, match="The first account is added by the owner"),
        lesser.database.connect() as connection,
    ):
        keep_account(connection, ADA)
    with pytest.raises(ReconError, match="recon_desk"), lesser.database.connect() as connection:
        vouch(connection, "x", How.OIDC)
    with pytest.raises(ReconError, match="right"), lesser.database.connect() as connection:
        connection.execute("SELECT verifier FROM account")
    with lesser.database.connect() as connection:
        assert list_accounts(connection) == []


TAMPERED = {
    "UPDATE account SET roles = 'approver' WHERE name = 'cleo'": "account 'cleo' is not what link",
    "UPDATE account SET verifier = repeat('0', 64) WHERE name = 'cleo'": "account 'cleo' is not",
    "DELETE FROM account WHERE name = 'cleo'": "account 'cleo' that event",
    "INSERT INTO account SELECT 'eve', full_name, roles, tenants, subject, salt, verifier, "
    "disabled, event_id FROM account WHERE name = 'cleo'": "'eve' is not what",
    "UPDATE event SET person = 'bo' WHERE what = 'account added'": "was changed after",
}


@pytest.mark.parametrize("statement", TAMPERED)
def test_an_account_that_was_changed_behind_the_trail_is_told(
    workspace: Workspace, statement: str
) -> None:
    add(workspace, CLEO, OTTO)
    tamper(workspace, "event" if "event SET" in statement else "account", statement)
    with workspace.database.connect() as connection:
        broken = verify(connection).broken
    assert broken
    assert TAMPERED[statement] in broken
