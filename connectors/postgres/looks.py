"""What an account has opened of a run at the desk: said by the database, once each."""

import psycopg

from schemas.derived.sql_names import SCHEMA


def look_at(connection: psycopg.Connection, number: int, what: str) -> None:
    """Keep that whoever is logged in opened this: one of `Look`, or a break by its id.

    Where nobody is, or there is no such thing that they see, nothing is kept.
    """
    connection.execute(f"SELECT {SCHEMA}.look_at(%s, %s)", [number, what])


def looked_at(connection: psycopg.Connection, account: str, number: int) -> frozenset[str]:
    """What an account has opened of a run."""
    rows = connection.execute(
        "SELECT what FROM look WHERE account = %s AND reconciliation_id = %s", [account, number]
    ).fetchall()
    return frozenset(str(what) for (what,) in rows)
