"""Subscriptions to the reports of a scope, and which messages wait to be sent.

Functions of the database (`schemas.guards.accounts`) write both, and decide who may see what.
"""

from collections.abc import Collection
from dataclasses import dataclass

import psycopg
from psycopg.rows import class_row

from connectors.postgres.accounts import who
from schemas.derived.sql_names import SCHEMA

DAYS = 7
"""How long later runs still send a waiting message; after that it is sent only on request."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """The address at which an account gets the reports of a scope."""

    account: str
    scope: str
    address: str


def list_subscriptions(connection: psycopg.Connection, account: str) -> list[Subscription]:
    with connection.cursor(row_factory=class_row(Subscription)) as cursor:
        return cursor.execute(
            "SELECT account, scope, address FROM subscription WHERE account = %s "
            'ORDER BY scope COLLATE "C"',
            [account],
        ).fetchall()


def scopes_to_follow(connection: psycopg.Connection) -> list[str]:
    """Scopes of reconciliations that the acting user may see."""
    rows = connection.execute(
        f"SELECT scope FROM (SELECT DISTINCT scope FROM reconciliation) r "
        f'WHERE {SCHEMA}.sees_scope(scope) ORDER BY scope COLLATE "C"'
    ).fetchall()
    return [str(scope) for (scope,) in rows]


def keep_subscription(
    connection: psycopg.Connection, account: str, scope: str, address: str | None
) -> None:
    """Send the reports of a scope to this address from now on; None ends this."""
    connection.execute(
        f"SELECT {SCHEMA}.keep_subscription(%s, %s, %s, %s)",
        [account, scope, address, who(connection, None)],
    )


def runs_to_mail(connection: psycopg.Connection) -> list[int]:
    """Reconciliations of the last `DAYS` days with waiting messages, oldest first."""
    rows = connection.execute(
        "SELECT DISTINCT m.reconciliation_id FROM report_mail m "
        "JOIN reconciliation r ON r.id = m.reconciliation_id WHERE m.sent_at IS NULL "
        "AND r.opened_at > clock_timestamp() - %s * interval '1 day' ORDER BY 1",
        [DAYS],
    ).fetchall()
    return [int(number) for (number,) in rows]


def claim_mail(
    connection: psycopg.Connection, number: int, tried: Collection[str]
) -> tuple[str, str] | None:
    """Claim a waiting message for this transaction; gives its subscriber and address.

    None if no subscriber who may see the run now is left, apart from those tried.
    """
    # Wait for a slow mail server: if the session ended meanwhile, the message would be sent again.
    connection.execute(
        "SELECT set_config(name, '0', TRUE) FROM pg_settings "
        "WHERE name IN ('idle_in_transaction_session_timeout', 'transaction_timeout')"
    )
    row = connection.execute(
        f"SELECT account, address FROM {SCHEMA}.claim_mail(%s, %s)", [number, sorted(tried)]
    ).fetchone()
    return (str(row[0]), str(row[1])) if row else None


def mail_sent(connection: psycopg.Connection, number: int, account: str) -> None:
    """Record that the mail server has accepted the message of a run for this account."""
    connection.execute(f"SELECT {SCHEMA}.mail_sent(%s, %s)", [number, account])
