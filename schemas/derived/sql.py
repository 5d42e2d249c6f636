"""SQLAlchemy tables derived from the field tables: targets, staged rows and the ledger.

Every record has a target table (`payment`) and a staged table (`staged_payment`) with the same
columns, nullable, behind the row's position. Target rows name the staged row that wrote them.
"""

from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa

from schemas.field import Kind, Table
from schemas.kinds import sql_columns, stored_columns
from schemas.ledger import LEDGER, LINEAGE, POSITION
from schemas.tables import EXTRACTS

SCHEMA = "recon"
IDENTITY = "identity"
_GENERATED = {
    (table, "id") for table in ("batch", "extract", "event", "reconciliation", "decision", "job")
}

METADATA = sa.MetaData(schema=SCHEMA)

# Not summarised by the server as rows arrive: it takes few requests at once and logs every other
# one, which is most of a large load. A batch that ends does it once
# (`connectors.postgres.database`).
BLOCK_RANGES = {"pages_per_range": 32, "autosummarize": "off"}


def key_columns(table: Table) -> tuple[str, ...]:
    """The columns that tell two target rows apart.

    Keys of required integers are used as they are; any other key by its hash, because texts have
    no length limit (an index entry has) and may be null.
    """
    integers = (Kind.INTEGER, Kind.INTEGER64)
    plain = all(
        table.by_name[name].kind in integers and table.by_name[name].required
        for name in table.identity
    )
    return table.key if plain and table.key else (IDENTITY,)


def staged_name(table: Table) -> str:
    """Name of the staged table of a record."""
    return f"staged_{table.name}"


def staged_columns(table: Table) -> tuple[str, ...]:
    """Columns of the staged table, in order: position, then the record's own."""
    return (*stored_columns(POSITION), *stored_columns(table))


def target_columns(table: Table) -> tuple[str, ...]:
    """Columns of the target table, in order: the record's own, then which staged row wrote them."""
    return (*stored_columns(table), *stored_columns(LINEAGE))


def content_columns(table: Table) -> tuple[str, ...]:
    """The record's own columns beside those that tell two target rows apart."""
    key = key_columns(table)
    return tuple(name for name in stored_columns(table) if name not in key)


def _columns(table: Table, *, nullable: bool) -> Iterator[sa.Column[Any]]:
    for field in table.delivered:
        for name, kind in sql_columns(field).items():
            optional = nullable or not field.required or name != field.name
            identity = [sa.Identity(always=False)] if (table.name, name) in _GENERATED else []
            yield sa.Column(name, kind, *identity, nullable=optional)


def _target(table: Table) -> sa.Table:
    key = key_columns(table)
    identity = [sa.Column(IDENTITY, sa.Text(), nullable=False)] if key == (IDENTITY,) else []
    return sa.Table(
        table.name,
        METADATA,
        *_columns(table, nullable=False),
        *identity,
        *_columns(LINEAGE, nullable=False),
        sa.PrimaryKeyConstraint(*key, name=f"{table.name}_key"),
        comment=table.title,
    )


def _staged(table: Table) -> sa.Table:
    staged = sa.Table(
        staged_name(table),
        METADATA,
        *_columns(POSITION, nullable=False),
        *_columns(table, nullable=True),
        comment=f"Rows as delivered: {table.title}",
    )
    # Rows arrive in order, so a block range index finds a chunk and costs next to nothing.
    sa.Index(
        f"{staged.name}_range",
        staged.c.extract_id,
        staged.c.record_number,
        postgresql_using="brin",
        postgresql_with=BLOCK_RANGES,
    )
    sa.Index(
        f"{staged.name}_rejected",
        staged.c.extract_id,
        staged.c.record_number,
        postgresql_where=staged.c.error_data.is_not(None),
    )
    return staged


def _ledger(table: Table) -> sa.Table:
    key = [sa.PrimaryKeyConstraint(*table.key)] if table.key else []
    return sa.Table(
        table.name, METADATA, *_columns(table, nullable=False), *key, comment=table.title
    )


LEDGER_TABLES = {name: _ledger(table) for name, table in LEDGER.items()}
TARGETS = {name: _target(table) for name, table in EXTRACTS.items() if name != "insert_batch_data"}
"""Target tables; insert-batch data has none: the rows of all batches are it (a view)."""
STAGED = {name: _staged(table) for name, table in EXTRACTS.items()}

for _name in ("outcome", "before_image"):
    _table = LEDGER_TABLES[_name]
    sa.Index(
        f"{_name}_range",
        _table.c.extract_id,
        _table.c.record_number,
        postgresql_using="brin",
        postgresql_with=BLOCK_RANGES,
    )
_send = LEDGER_TABLES["send"]
# No index holds a column that a send changes, so a change stays on the row's own page.
sa.Index("send_order", _send.c.batch_id, _send.c.operation, _send.c.number, unique=True)
sa.Index(
    "send_twins",
    _send.c.writer_extract_id,
    _send.c.writer_record_number,
    postgresql_where=sa.text(
        "(writer_extract_id, writer_record_number) <> (extract_id, record_number)"
    ),
)
STORAGE = {
    # Room on every page for the two changes a send goes through.
    "send": "fillfactor = 60",
    # A batch does for its rows what the server would do later, in the way of the next one.
    **dict.fromkeys(
        map(staged_name, EXTRACTS.values()),
        "autovacuum_vacuum_insert_threshold = -1, autovacuum_analyze_threshold = 2000000000",
    ),
}
"""Storage parameters by table."""
sa.Index("note_batch", LEDGER_TABLES["note"].c.batch_id)
sa.Index("batch_content", LEDGER_TABLES["batch"].c.content_id)
sa.Index("extract_batch", LEDGER_TABLES["extract"].c.batch_id)
sa.Index("extract_content", LEDGER_TABLES["extract"].c.sha256)
sa.Index("event_chain_event", LEDGER_TABLES["event_chain"].c.event_id, unique=True)
sa.Index("reconciliation_scope", LEDGER_TABLES["reconciliation"].c.scope_hash)
sa.Index("break_state_break", LEDGER_TABLES["break_state"].c.break_id)
_breaks = LEDGER_TABLES["break_state"].c
sa.Index("break_state_record", _breaks.reconciliation_id, _breaks.key)
sa.Index("decision_reconciliation", LEDGER_TABLES["decision"].c.reconciliation_id)
