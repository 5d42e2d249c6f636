"""The revisions of the schema: which this version knows, and where a database is."""

from functools import cache
from pathlib import Path
from typing import Literal

import psycopg

from connectors.errors import DatabaseUnusable
from schemas.derived.sql_names import SCHEMA

MIGRATIONS = Path(__file__).parent / "migrations"
TAKEN_OVER, THROUGH = "0018", "2098088"
"""The last revision before the first of ours, with its tables, and a commit that leads to it."""
VERSION_TABLE = "alembic_version"

Way = Literal["migrate", "follow"]
"""Ways to bring a schema up to date: to the newest revision, and to the record kinds of our own."""


@cache
def revisions() -> tuple[str, ...]:
    """The revisions of the schema that this version knows, which are the numbers of their files.

    Alembic would run every file of a revision to tell: longer than many a command takes.
    """
    files = (MIGRATIONS / "versions").glob("[0-9]*_*.py")
    return tuple(sorted(path.name.partition("_")[0] for path in files))


def revision_of(connection: psycopg.Connection) -> str | None:
    """The revision of the schema; None where there is none."""
    there = "SELECT FROM pg_class WHERE relnamespace = to_regnamespace(%s) AND relname = %s"
    if connection.execute(there, [SCHEMA, VERSION_TABLE]).fetchone() is None:
        return None
    found = connection.execute(f"SELECT version_num FROM {SCHEMA}.{VERSION_TABLE}").fetchone()
    return found[0] if found else None


def is_behind(current: str | None) -> bool:
    """Whether a schema has to be brought on from there; raises DatabaseUnusable if it cannot be."""
    first, newest = revisions()[0], revisions()[-1]
    if current in (None, TAKEN_OVER):
        return True
    if current < first:
        raise DatabaseUnusable(
            f"The schema {SCHEMA!r} is at revision {current}, and this version goes on from "
            f"revision {TAKEN_OVER} at the earliest. Go through commit {THROUGH} of recon: install "
            "it, run any command, `recon status` for one, once as the owner of the schema, then "
            "install this version again. Nothing was changed."
        )
    if current > newest:
        raise DatabaseUnusable(
            f"The schema {SCHEMA!r} is at revision {current}, which this version does not know. "
            "It was migrated by a newer version; use that one."
        )
    return current != newest
