"""The names of SQL that follow from the field tables: schema, tables, columns and keys.

Every record has a target table (`payment`) and a staged table (`staged_payment`); the tables
themselves are in `schemas.derived.sql`, which a statement need not wait for.
"""

from collections.abc import Iterable, Iterator, Mapping

from schemas.field import Table
from schemas.kinds import stored_columns
from schemas.ledger import LEDGER, LINEAGE, POSITION
from schemas.tables import EXTRACTS

SCHEMA = "recon"
SHOWN_SCHEMA = "recon_shown"
"""Where staged rows are as readers see them (`schemas.guards.shown_rows`)."""
LOADER, MERGER, READER = "recon_loader", "recon_merger", "recon_reader"
CONTROLLER, DESK = "recon_controller", "recon_desk"
"""Roles of the database (`schemas.guards.roles`)."""
SAFE = "SECURITY DEFINER SET search_path = pg_catalog, pg_temp"
"""A function acts as the owner of the schema, and finds nothing that its caller put in its way."""
HASH_OF = "hashtextextended({}, 0)"
"""SQL for what an index has of a text without a limit; two texts may share it."""
IDENTITY = "identity"
_RECORD_BITS = 40
"""Of a number for a place, those that are the number of the record."""
TARGET_NAMES = tuple(name for name in EXTRACTS if name != "insert_batch_data")
"""Records with a target table; insert-batch data has none: the rows of all batches are it."""


def listed(words: Iterable[str]) -> str:
    """Words as SQL lists them."""
    return ", ".join(f"'{word}'" for word in words)


def function_statements(functions: Mapping[str, str]) -> Iterator[str]:
    """The statements that make functions, by head and rest of each, which nobody may call yet."""
    for head, rest in functions.items():
        yield f"CREATE OR REPLACE FUNCTION {SCHEMA}.{head} {rest}"
        yield f"REVOKE ALL ON FUNCTION {SCHEMA}.{head} FROM PUBLIC"


def place_number(of: str) -> str:
    """SQL for where a row is, as one number; rows have these in the order they were delivered."""
    return f"({of}.extract_id::bigint << {_RECORD_BITS}) + {of}.record_number"


def place_of(number: str) -> str:
    """SQL for the extract_id and record_number that such a number is of."""
    return f"{number} >> {_RECORD_BITS}, {number} & ((1::bigint << {_RECORD_BITS}) - 1)"


def key_columns(table: Table) -> tuple[str, ...]:
    """The columns that tell two target rows apart.

    Keys of required integers are used as they are; any other key by its hash, because texts have
    no length limit (an index entry has) and may be null.
    """
    return table.key if table.has_plain_key else (IDENTITY,)


def staged_name(table: Table) -> str:
    return f"staged_{table.name}"


def staged_columns(table: Table) -> tuple[str, ...]:
    """Columns of the staged table, in order: position, then the record's own."""
    return (*stored_columns(POSITION), *stored_columns(table))


def target_columns(table: Table) -> tuple[str, ...]:
    """Columns of the target table, in order: the record's own, then which staged row wrote them."""
    return (*stored_columns(table), *stored_columns(LINEAGE))


def inserted_columns(table: Table) -> tuple[str, ...]:
    """All columns of a target row: what tells two apart is one of its own, where it is a hash."""
    return (*target_columns(table), *([IDENTITY] if key_columns(table) == (IDENTITY,) else []))


def content_columns(table: Table) -> tuple[str, ...]:
    """The record's own columns beside those that tell two target rows apart."""
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
