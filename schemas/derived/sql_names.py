"""SQL names that follow from the field tables: schema, tables, columns and keys.

Every record has a target table (`payment`) and a staged table (`staged_payment`). The tables
themselves are in `schemas.derived.sql`; statements that need only names need not import it.
"""

from collections.abc import Iterable, Iterator, Mapping

from schemas.field import Table
from schemas.kinds import stored_columns
from schemas.ledger import LEDGER, LINEAGE, POSITION
from schemas.tables import EXTRACTS

SCHEMA = "recon"
SHOWN_SCHEMA = "recon_shown"
"""Schema of staged rows as readers see them (`schemas.guards.shown_rows`)."""
LOADER, MERGER, READER = "recon_loader", "recon_merger", "recon_reader"
CONTROLLER, DESK = "recon_controller", "recon_desk"
"""Roles of the database (`schemas.guards.roles`)."""
SAFE = "SECURITY DEFINER SET search_path = pg_catalog, pg_temp"
"""A function acts as the schema's owner, and resolves no name to an object of its caller."""
HASH_OF = "hashtextextended({}, 0)"
"""SQL for the indexed form of a text without a length limit; two texts may share it."""
IDENTITY = "identity"
_RECORD_BITS = 40
"""The bits of a place number that hold the record number."""
TARGET_NAMES = tuple(name for name in EXTRACTS if name != "insert_batch_data")
"""Records with a target table; insert-batch data has none, since the rows of all batches are it."""


def listed(words: Iterable[str]) -> str:
    """Words as a SQL list of strings."""
    return ", ".join(f"'{word}'" for word in words)


def function_statements(functions: Mapping[str, str]) -> Iterator[str]:
    """The statements that create functions, given as head and rest, which nobody may call yet."""
    for head, rest in functions.items():
        yield f"CREATE OR REPLACE FUNCTION {SCHEMA}.{head} {rest}"
        yield f"REVOKE ALL ON FUNCTION {SCHEMA}.{head} FROM PUBLIC"


def place_number(of: str) -> str:
    """SQL for the place of a row as one number, which grows in the order of delivery."""
    return f"({of}.extract_id::bigint << {_RECORD_BITS}) + {of}.record_number"


def place_of(number: str) -> str:
    """SQL for the extract_id and record_number of such a number."""
    return f"{number} >> {_RECORD_BITS}, {number} & ((1::bigint << {_RECORD_BITS}) - 1)"


def key_columns(table: Table) -> tuple[str, ...]:
    """The columns that tell two target rows apart.

    A key of required integers is used as it is. Any other key is used by its hash, because texts
    may be null and have no length limit, while index entries have one.
    """
    return table.key if table.has_plain_key else (IDENTITY,)


def staged_name(table: Table) -> str:
    return f"staged_{table.name}"


def staged_columns(table: Table) -> tuple[str, ...]:
    """Columns of the staged table, in order: position, then the record's own."""
    return (*stored_columns(POSITION), *stored_columns(table))


def target_columns(table: Table) -> tuple[str, ...]:
    """Columns of the target table, in order: the record's own, then those naming the staged row."""
    return (*stored_columns(table), *stored_columns(LINEAGE))


def inserted_columns(table: Table) -> tuple[str, ...]:
    """All columns that an insert writes, including the hash if rows are told apart by one."""
    return (*target_columns(table), *([IDENTITY] if key_columns(table) == (IDENTITY,) else []))


def content_columns(table: Table) -> tuple[str, ...]:
    """The record's own columns besides those that tell two target rows apart."""
    key = key_columns(table)
    return tuple(name for name in stored_columns(table) if name not in key)


def table_columns() -> dict[str, tuple[str, ...]]:
    """The columns of every table, in order: ledger, targets, staged rows."""
    columns = {name: stored_columns(table) for name, table in LEDGER.items()}
    for name in TARGET_NAMES:
        table = EXTRACTS[name]
        hashed = key_columns(table) == (IDENTITY,)
        columns[name] = (
            *stored_columns(table),
            *([IDENTITY] if hashed else []),
            *stored_columns(LINEAGE),
        )
    return columns | {staged_name(table): staged_columns(table) for table in EXTRACTS.values()}
