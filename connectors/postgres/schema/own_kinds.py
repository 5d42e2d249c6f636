"""Our own record kinds in a database: their tables, and the definition that it works with.

The definition is in the comment of the target table, so both change in one transaction, and backups
have both. The hashes of former definitions follow it: a machine that defines one of these is
behind, and must not lead the database back.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import psycopg

from connectors.postgres.trail import read_detail
from schemas.derived.sql_names import SCHEMA
from schemas.field import Table
from schemas.own_definition import CHANGED, MADE, Change, changes, definition_of, table_of
from schemas.tables import OWN

MARK = "recon record kind "
FORMER = "former"
THERE = f"""SELECT c.relname::text, obj_description(c.oid, 'pg_class') FROM pg_class c
    WHERE c.relnamespace = to_regnamespace('{SCHEMA}') AND c.relkind = 'r'
    AND obj_description(c.oid, 'pg_class') LIKE '{MARK}%'"""
STATE = f"""(SELECT encode(sha256(convert_to(coalesce(string_agg(
    name || ' ' || comment, E'\\n' ORDER BY name COLLATE "C"), ''), 'UTF8')), 'hex')
    FROM ({THERE}) AS kinds (name, comment))"""
"""SQL for `state_of` the kinds in the database, in one short answer."""


@dataclass(frozen=True, slots=True)
class KeptKind:
    """The definition of a kind that a database works with."""

    definition: str
    former: tuple[str, ...] = ()
    """Hashes of former definitions, oldest first."""

    def followed_by(self, definition: str) -> "KeptKind":
        """The same kind under a new definition, with the present one among the former."""
        return KeptKind(definition, (*self.former, hash_of(self.definition)))

    @property
    def comment(self) -> str:
        """The comment to put on the table."""
        shape = json.loads(self.definition) | ({FORMER: self.former} if self.former else {})
        return MARK + json.dumps(shape, sort_keys=True)

    @classmethod
    def of(cls, comment: str) -> "KeptKind":
        """Parse what `comment` wrote."""
        shape = json.loads(comment.removeprefix(MARK))
        former = tuple(shape.pop(FORMER, ()))
        return cls(json.dumps(shape, sort_keys=True), former)


def hash_of(definition: str) -> str:
    return hashlib.sha256(definition.encode()).hexdigest()[:16]


def kept_kinds(connection: psycopg.Connection) -> dict[str, Table]:
    """The record kinds as the database defines them."""
    kept = kept_of(connection.execute(THERE.replace("%", "%%")).fetchall())
    return {name: table_of(name, one.definition) for name, one in kept.items()}


def defined_so_far(connection: psycopg.Connection, name: str) -> Iterator[Table]:
    """Every definition of a record kind that the audit trail tells of, oldest first."""
    for (detail,) in connection.execute(
        "SELECT detail FROM event WHERE what = ANY(%s) ORDER BY id", [[MADE, CHANGED]]
    ).fetchall():
        kind = read_detail(detail)
        if kind.get("record") == name:
            # An event that this program did not write defines nothing.
            with suppress(KeyError, TypeError, ValueError, AttributeError):
                yield table_of(name, json.dumps(kind["now"]))


def state_as_defined(connection: psycopg.Connection) -> str | None:
    """`state_of` the database if it has this machine's definitions, else None."""
    rows = connection.execute(THERE.replace("%", "%%")).fetchall()
    there = {name: one.definition for name, one in kept_of(rows).items()}
    ours = {name: definition_of(table) for name, table in OWN.tables.items()}
    return state_of(rows) if there == ours else None


def state_of(rows: Sequence[Any]) -> str:
    """A hash of the kinds of a database; any change of a definition changes it."""
    lines = "\n".join(f"{name} {comment}" for name, comment in sorted(rows))
    return hashlib.sha256(lines.encode()).hexdigest()


def differences(there: Mapping[str, Table], name: str) -> list[Change]:
    return [*changes(there[name], OWN.tables[name])]


def kept_of(rows: Sequence[Any]) -> dict[str, KeptKind]:
    return {name: KeptKind.of(comment) for name, comment in rows}
