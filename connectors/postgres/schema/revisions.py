"""The revisions of the schema: those this version knows, and that of a database."""

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
"""The last revision before our first one, with the same tables, and a commit that leads to it."""
VERSION_TABLE = "alembic_version"
MARK = "recon derived "
"""Text in the comment of that table before the hash of what was derived from the tables."""
_DERIVED = re.compile(r'^derived = "([0-9a-f]{64})"$', re.MULTILINE)

Way = Literal["migrate", "follow"]
"""Ways to update a schema: to the newest revision, or to our own record kinds."""


@cache
def revisions() -> tuple[str, ...]:
    """The schema revisions that this version knows; they are the numbers of their files.

    Alembic would run every revision's file to find out, longer than many a command takes.
    """
    return tuple(path.name.partition("_")[0] for path in _files())


@cache
def newest_derived() -> str:
    """The hash of this version's views, functions and triggers, from its last revision.

    Computing it would need SQLAlchemy and take longer than many a command.
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
    """Whether a schema at this revision must be upgraded; raises DatabaseUnusable if it cannot be.

    So must a schema at the newest revision whose views, functions and triggers are of another form
    of it: else its outdated guards would stay for good.
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
    # A comment can be read by any role that can connect.
    asked = "SELECT obj_description(to_regclass(%s), 'pg_class')"
    comment = one_value(connection.execute(asked, [f"{SCHEMA}.{VERSION_TABLE}"]))
    return not comment or comment.removeprefix(MARK) != newest_derived()
