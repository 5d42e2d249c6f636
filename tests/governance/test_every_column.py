"""Whatever is altered in the ledger, `recon audit verify` notices, or here it says why not.

One story writes into every table. Then each column of a row is altered, as the owner of the
database can with triggers off, and each row is taken away.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest

from connectors.files.profiles.profile import DEFAULT
from connectors.postgres.accounts import act_as, keep_limit
from connectors.postgres.auditing.audit import verify
from connectors.postgres.database import open_database
from connectors.postgres.heartbeat import in_turn
from connectors.postgres.push.sends import SendDecision
from connectors.postgres.runs.breaks import Decision
from connectors.postgres.runs.signatures import look_at
from connectors.postgres.runs.subscriptions import keep_subscription
from connectors.postgres.schema.completeness import FUNCTIONS, TRIGGER_NAMES, rules
from flows.stages.chosen_sends import ChosenSends
from flows.stages.jobs.work import do_job
from flows.stages.reconcile.breaks import Chosen, decide_breaks
from flows.stages.reconcile.run import Asked, reconcile
from flows.stages.reconcile.scope import Scope
from flows.stages.reconcile.sign import prepare
from flows.stages.resolve import resolve
from flows.stages.sequence import import_delivery, push_batch
from flows.stages.upkeep.restored import go_on_after_restore
from flows.stages.workspace import Workspace
from flows.steps.rules.rules import Rules
from schemas.field import Field, Kind, Table
from schemas.guards.leases import Held
from schemas.jobs import JobKind
from schemas.ledger import LEDGER
from schemas.life import Choice
from tests.accounts.people import ADA, ANNA, BO, OTTO, add, logged_in
from tests.conftest import Once
from tests.push.conftest import deliver, towards
from tests.push.deliveries import tones
from tests.service.faulty_server import LOST, FaultyServer, at
from tests.stages.payments import line, write
from tests.stages.test_jobs import ordered, uploaded

DAY = date(2026, 1, 31)
RULES = Rules(references=())

TIME = "when it was done is what the event says, whose time is the one that is shown"
FENCE = "keeps two runs apart while both are under way; nothing is read from it afterwards"
TURN = "whose turn it is now; without it others wait or are refused, and nothing else reads it"
LANE = "which run sends next; what was sent is in the sends, and from where in the epochs"
MAIL = "a message that says what the report says, sent once more or never"
SHOWN = "only what is shown to the account itself, and how"
WHO_DID_IT = "which process did it; what came of it is held, and in whose name"
UNPROVEN = {
    "batch.lease_owner": FENCE,
    "batch.lease_epoch": FENCE,
    "receipt.epoch": FENCE,
    "receipt.written_at": TIME,
    "extract.cleared_at": "believed with an event alone: `recon archive verify` holds it to that",
    "send.changed_at": TIME,
    "earlier_send.changed_at": TIME,
    "push_lane": LANE,
    "push_epoch.at": TIME,
    "push_restore.at": TIME,
    "chain_turn gone": TURN,
    "lease": TURN,
    "reconciliation.opened_at": TIME,
    "decision.at": TIME,
    "signature.at": TIME,
    "login.ended_at": "that it has ended is held; when, is the time of the event",
    "login gone": "whoever had it logs in again",
    "look": SHOWN,
    "account.show_as": SHOWN,
    "report_mail": MAIL,
    "job.account": WHO_DID_IT,
    "job.flow_run": WHO_DID_IT,
    "job.asked_at": TIME,
    "job.started_at": TIME,
    "job.ended_at": TIME,
}
"""Table or column -> why an alteration of it changes no report, no send and no right."""


def the_ledger(place: Workspace, folder: Path) -> None:
    """Leave a row in every table."""
    with FaultyServer(at({1: LOST})) as server:
        there = towards(place, server.url, concurrency=1)
        deliver(there, tones(folder / "tones.csv", 2))
        in_doubt = ChosenSends(states=("in_doubt",))
        resolve(there, 1, in_doubt, SendDecision.RESEND, by="ann", reason="not there")
        push_batch(there, 1)
        deliver(there, write(folder / "a.csv", line(1), line(2)))
        changes = (line(1, amount="12", day=2), line(3, amount="x"), line(4), line(4))
        deliver(there, write(folder / "b.csv", *changes))
        go_on_after_restore(there, unsent="unsent", by="ann", reason="a new disk")
    gateways = folder / "gateways.csv"
    gateways.write_text("TenantsId,PaymentActionsId,Name\n7,1,Stripe\n7,x,Adyen\n")
    strict = replace(DEFAULT, budget_errors=0, feed="shop", constants={"ServiceKey": "as-stated"})
    import_delivery(place, [str(gateways)], strict)
    first = reconcile(place, Asked(Scope(), DAY, RULES))
    add(place, ANNA, BO, OTTO)
    anna, bo, otto = (logged_in(place, one) for one in (ANNA, BO, OTTO))
    with place.database.connect() as connection:
        keep_limit(connection, "978", Decimal(1000))
        keep_subscription(connection, "anna", first.run.scope, "anna@example.com")
    accepted = Decision(Choice.ACCEPT, "known", until=date(2026, 12, 31))
    decide_breaks(anna, first.run.id, Chosen(state="open"), accepted)
    last = reconcile(place, Asked(Scope(), DAY, RULES))
    with bo.database.connect() as connection:
        look_at(connection, last.run.id, "report")
    prepare(anna, last.run.id, by=None, comment="")
    do_job(place, ordered(otto, JobKind.IMPORT, upload=uploaded(otto, "c.csv", line(7))))


OTHER = {
    Kind.INTEGER: "coalesce({}, 0) + 1000000",
    Kind.INTEGER64: "coalesce({}, 0) + 1000000",
    Kind.DOUBLE: "coalesce({}, 0) + 1",
    Kind.STRING: "coalesce({}, '') || 'x'",
    Kind.INSTANT: "coalesce({}, now()) - interval '1 day'",
    Kind.BOOLEAN: "NOT coalesce({}, FALSE)",
}
"""SQL for another value of a column."""


@contextmanager
def altered(connection: psycopg.Connection, table: Table, field: Field | None) -> Iterator[None]:
    """Alter a column of a row meanwhile, or take the row away: one that has a value, if any has."""
    name, column = f"recon.{table.name}", f'"{field.name}"' if field else "ctid"
    names = ", ".join(f'"{one.name}"' for one in table.fields)
    with as_owner(connection) as run:
        run("DROP TABLE IF EXISTS as_it_was")
        run(
            f"CREATE TEMP TABLE as_it_was AS SELECT *, ctid AS place FROM {name} "
            f"ORDER BY {column} IS NULL, {column} DESC LIMIT 1"
        )
        this = "ctid = (SELECT place FROM as_it_was)"
        if field is None:
            place = run(f"DELETE FROM {name} WHERE {this} RETURNING NULL")
        else:
            other = OTHER[field.kind].format(column)
            place = run(f"UPDATE {name} SET {column} = {other} WHERE {this} RETURNING ctid")
    yield
    with as_owner(connection) as run:
        if place is not None:
            run(f"DELETE FROM {name} WHERE ctid = '{place}' RETURNING NULL")
        run(f"INSERT INTO {name} ({names}) SELECT {names} FROM as_it_was")


@contextmanager
def as_owner(connection: psycopg.Connection) -> Iterator[Callable[[str], Any]]:
    """Statements of the owner of the database, with triggers off."""

    def run(statement: str) -> Any:
        done = connection.execute(statement)  # type: ignore[call-overload]
        assert done.rowcount, statement
        return done.fetchone()[0] if done.description else None

    with connection.transaction():
        connection.execute("SET LOCAL session_replication_role = replica")
        yield run


def is_noticed(connection: psycopg.Connection) -> bool:
    try:
        return verify(connection).broken is not None
    except psycopg.errors.NoDataFound:  # The chain itself cannot be written any more.
        return True


@pytest.mark.long(but=("login",))
@pytest.mark.parametrize("name", LEDGER)
def test_what_is_altered_is_found_or_said_to_prove_nothing(
    workspace: Workspace, tmp_path: Path, once: Once, name: str
) -> None:
    def build() -> None:
        the_ledger(workspace, tmp_path)

    place, table = once(build), LEDGER[name]
    with place.database.connect() as connection, in_turn(connection, Held.EPOCH, "a test"):
        assert verify(connection).broken is None
        for field in (*table.fields, None):
            what = f"{name}.{field.name}" if field else f"{name} gone"
            with altered(connection, table, field):
                found = is_noticed(connection)
            assert found is not bool({name, what} & UNPROVEN.keys()), what
        assert verify(connection).broken is None


def test_what_proves_nothing_is_there_and_its_times_are_told() -> None:
    """Whoever reads a time has to know which is held: the page names the others."""
    columns = {f"{one.name}.{field.name}": field for one in LEDGER.values() for field in one.fields}
    assert UNPROVEN.keys() <= {*columns, *LEDGER, *(f"{name} gone" for name in LEDGER)}
    text = (Path(__file__).parents[2] / "docs" / "governance.md").read_text()
    (left_out,) = re.findall(
        r"^- Not held against events:.*?(?=^- )", text, re.MULTILINE | re.DOTALL
    )
    assert {*re.findall(r"`(\w+\.\w+)`", left_out)} == {
        name
        for name, field in columns.items()
        if field.kind is Kind.INSTANT and {name, name.partition(".")[0]} & UNPROVEN.keys()
    }


BENT = {
    "the function acting": """CREATE OR REPLACE FUNCTION recon.acting() RETURNS recon.account
        LANGUAGE sql STABLE AS 'SELECT a FROM recon.account a WHERE a.name = ''bo'''""",
    "the function altered_rights": """CREATE OR REPLACE FUNCTION recon.altered_rights()
        RETURNS TABLE (fault text) LANGUAGE sql AS 'SELECT NULL WHERE FALSE'""",
    "the function keep_limit": "ALTER FUNCTION recon.keep_limit SECURITY INVOKER",
    "the function sign": "ALTER FUNCTION recon.sign RESET search_path",
    "the function refuse_change": """CREATE OR REPLACE FUNCTION recon.refuse_change()
        RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'""",
    "the trigger event_append_only": """CREATE OR REPLACE TRIGGER event_append_only
        BEFORE TRUNCATE ON recon.event FOR EACH STATEMENT
        EXECUTE FUNCTION recon.refuse_change()""",
    "the trigger corrected_kept": """CREATE OR REPLACE TRIGGER corrected_kept
        BEFORE UPDATE OR DELETE ON recon.outcome FOR EACH ROW WHEN (OLD.verdict = 'none')
        EXECUTE FUNCTION recon.corrected_checked()""",
}


@pytest.mark.long(but=("the function acting",))
@pytest.mark.parametrize("what", BENT)
def test_a_function_or_trigger_that_does_another_thing_is_named(
    workspace: Workspace, what: str
) -> None:
    """What proves the ledger is in the database as well, where its owner can write it anew."""
    with workspace.database.connect() as connection:
        assert verify(connection).broken is None
        connection.execute(BENT[what])  # type: ignore[call-overload]
        told = verify(connection).broken or ""
        assert told.startswith(f"{what} is not what this version has: ")
        (back,) = re.findall("`(COMMENT ON .*?)`", told)
        connection.execute(back)
    open_database(workspace.settings)
    with workspace.database.connect() as connection:
        assert verify(connection).broken is None


def test_every_function_and_trigger_is_looked_at() -> None:
    assert {name for _, name, *_ in rules()} == FUNCTIONS | TRIGGER_NAMES


def test_nobody_does_what_they_had_not_logged_in_for(workspace: Workspace) -> None:
    """A login that somebody wrote into the database and took away again leaves its events."""
    add(workspace, ANNA, ADA)
    with workspace.database.connect() as connection:
        connection.execute(
            "INSERT INTO recon.login VALUES (encode(sha256('guess'), 'hex'), 'ada', 'password', "
            "now(), now() + '1 hour')"
        )
        act_as(connection, "guess")
        keep_limit(connection, "978", Decimal(1000))
        act_as(connection, None)
        assert "the login of 'ada'" in str(verify(connection).broken)
        connection.execute("DELETE FROM recon.login")
        told = str(verify(connection).broken)
    assert "acceptance limit set) is by 'ada', and no link before it says that they had" in told
