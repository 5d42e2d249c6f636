"""The revisions of the schema: which this version knows, and where a database is."""

import re
from functools import cache
from pathlib import Path
from typing import Literal

import psycopg

from connectors.errors import DatabaseUnusable
from connectors.postgres.query import one_value
from schemas.derived.sql_names import SCHEMA

MIGRATIONS = Path(__file__).parents[1] / "migrations"
TAKEN_OVER, THROUGH = "0018", "2098088"
"""The last revision before the first of ours, with its tables, and a commit that leads to it."""
VERSION_TABLE = "alembic_version"
MARK = "recon derived "
"""What stands in the comment of that table before the hash of what was derived from its tables."""
_DERIVED = re.compile(r'^derived = "([0-9a-f]{64})"$', re.MULTILINE)

Way = Literal["migrate", "follow"]
"""Ways to bring a schema up to date: to the newest revision, and to the record kinds of our own."""


@cache
def revisions() -> tuple[str, ...]:
    """The revisions of the schema that this version knows, which are the numbers of their files.

    Alembic would run every file of a revision to tell: longer than many a command takes.
    """
    return tuple(path.name.partition("_")[0] for path in _files())


@cache
def newest_derived() -> str:
    """The hash of the views, functions and triggers of this version, as its last revision has it.

    To make it anew would take what makes them: SQLAlchemy, and longer than many a command.
    """
    (derived,) = _DERIVED.findall(_files()[-1].read_text(encoding="utf-8"))
    return str(derived)


def _files() -> list[Path]:
    return sorted((MIGRATIONS / "versions").glob("[0-9]*_*.py"))


def revision_of(connection: psycopg.Connection) -> str | None:
    there = "SELECT FROM pg_class WHERE relnamespace = to_regnamespace(%s) AND relname = %s"
    if connection.execute(there, [SCHEMA, VERSION_TABLE]).fetchone() is None:
        return None
    found = connection.execute(f"SELECT version_num FROM {SCHEMA}.{VERSION_TABLE}")
    revision: str | None = one_value(found)
    return revision


def is_behind(connection: psycopg.Connection, current: str | None) -> bool:
    """Whether a schema has to be brought on from there; raises DatabaseUnusable if it cannot be.

    So has one at the newest whose views, functions and triggers are of another form of it: guards
    of before would hold for good.
    """
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
            "It was migrated by a newer version; use that one. If the schema is another "
            "program's, name another database."
        )
    if current != newest:
        return True
    # Whoever connects may read a comment.
    asked = "SELECT obj_description(to_regclass(%s), 'pg_class')"
    comment = one_value(connection.execute(asked, [f"{SCHEMA}.{VERSION_TABLE}"]))
    return not comment or comment.removeprefix(MARK) != newest_derived()
