"""A place with a run of many records and many breaks, made by the product itself.

Payments are delivered as a file and imported, a share of them with faults; the database is changed
behind the back of the import; and two reconciliations follow each other. Part of what they find is
accepted.
"""

from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import psycopg
from psycopg import sql

from connectors.files.profiles.profile import DEFAULT
from connectors.postgres.database import open_database
from connectors.postgres.runs.breaks import Decision
from connectors.settings import Settings
from data_samples.generate import write_currency_rates, write_payments
from flows.stages.reconcile.breaks import Chosen, decide_breaks
from flows.stages.reconcile.run import Asked, reconcile
from flows.stages.reconcile.scope import Scope
from flows.stages.sequence import import_delivery
from flows.stages.workspace import Workspace
from flows.steps.rules.rules import Rules
from schemas.accounts import AccountRole
from schemas.derived.sql_names import SCHEMA
from schemas.life import Choice
from schemas.tables import PAYMENT
from tests.accounts.people import ANNA, BO, add, logged_in

SEED = 7
DAY = date(2026, 11, 1)
RULES = Rules(references=frozenset({"rates", "plans", "batches"}))
"""No invoice files are delivered, so none is asked for."""
REJECTED, CHANGED, GONE = 0.2, 0.6, 0.2
"""Shares of the breaks: rows with an error, other amounts in the database, records it lost."""
PERSON = replace(
    ANNA, roles=(AccountRole.PREPARER, AccountRole.APPROVER, AccountRole.ADMINISTRATOR)
)


def make_place(home: Path, records: int, breaks: int) -> Workspace:
    """The workspace in `home`, made unless it is there."""
    settings = Settings(home)
    made = home / "made"
    there = f"{records} {breaks}"
    if made.is_file() and made.read_text() == there:
        return Workspace(settings, open_database(settings))
    place = Workspace(settings, open_database(settings))
    delivery = home / "delivery"
    write_currency_rates(delivery)
    write_payments(delivery, records, REJECTED * breaks / records, SEED)
    import_delivery(place, [str(delivery)], replace(DEFAULT, budget_rate=1.0))
    with place.database.connect() as connection:
        _change(connection, records, breaks)
    for day in (DAY, DAY + timedelta(days=1)):
        run = reconcile(place, Asked(Scope(), day, RULES)).run
    add(place, PERSON, BO)
    accept = Decision(Choice.ACCEPT, "bank charges", until=date(2026, 12, 31))
    decide_breaks(logged_in(place, PERSON), run.id, Chosen(code="MISSING_IN_TARGET"), accept)
    made.write_text(there)
    return place


def _change(connection: psycopg.Connection, records: int, breaks: int) -> None:
    """Change and delete payments, spread over all of them."""
    target = sql.Identifier(SCHEMA, PAYMENT.name)
    every = max(2, records // max(1, int(breaks * (CHANGED + GONE))))
    limit = int(breaks * CHANGED)
    with connection.transaction():
        connection.execute(
            sql.SQL(
                "CREATE TEMP TABLE chosen ON COMMIT DROP AS "
                'SELECT "Id", "TenantsId", row_number() OVER (ORDER BY "Id") AS n FROM {} '
                'WHERE "Id" % {} = 0'
            ).format(target, every)
        )
        connection.execute(
            sql.SQL(
                'UPDATE {} t SET "PaidAmount" = t."PaidAmount" + (t."Id" % 100000) / 100.0 + 0.01 '
                'FROM chosen c WHERE (c."Id", c."TenantsId") = (t."Id", t."TenantsId") '
                "AND c.n <= {}"
            ).format(target, limit)
        )
        connection.execute(
            sql.SQL(
                'DELETE FROM {} t USING chosen c WHERE (c."Id", c."TenantsId") = '
                '(t."Id", t."TenantsId") AND c.n > {}'
            ).format(target, limit)
        )
