"""SQLAlchemy tables derived from the field tables: targets, staged rows and the ledger.

Every record has a target table (`payment`) and a staged table (`staged_payment`) with the same
columns, nullable, after the row's position. Target rows name the staged row that wrote them.
"""

from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as sql
from sqlalchemy.types import TypeEngine

from schemas.derived.sql_names import (
    HASH_OF,
    IDENTITY,
    SCHEMA,
    TARGET_NAMES,
    key_columns,
    listed,
    staged_name,
)
from schemas.derived.views import LISTING_FEED
from schemas.field import Field, Kind, Table
from schemas.kinds import OFFSET, STORED_COMPANIONS
from schemas.ledger import LEDGER, LINEAGE, POSITION
from schemas.tables import EXTRACTS

SQL_TYPES: dict[Kind, TypeEngine[Any]] = {
    Kind.INTEGER: sql.INTEGER(),
    Kind.INTEGER64: sql.BIGINT(),
    Kind.DOUBLE: sql.NUMERIC(),
    Kind.STRING: sql.TEXT(),
    Kind.BOOLEAN: sql.BOOLEAN(),
    Kind.DATETIME: sql.TIMESTAMP(),
    Kind.DATETIME_OFFSET: sql.TIMESTAMP(timezone=True),
    Kind.INSTANT: sql.TIMESTAMP(timezone=True),
    # Nested values are held as canonical JSON text: equal values are equal texts.
    Kind.MAP: sql.TEXT(),
    Kind.LIST: sql.TEXT(),
    Kind.RECORD: sql.TEXT(),
}
_COMPANION_TYPES: dict[str, TypeEngine[Any]] = {OFFSET: sql.SMALLINT()}
_GENERATED = {
    (table, "id") for table in ("batch", "extract", "event", "reconciliation", "decision", "job")
}

METADATA = sa.MetaData(schema=SCHEMA)

# The server does not summarise blocks as rows arrive: it queues only a few requests and logs every
# other one, which is most of a large load. A batch does it once, at its end
# (`connectors.postgres.database`).
BLOCK_RANGES = {"pages_per_range": 32, "autosummarize": "off"}


def sql_columns(field: Field) -> dict[str, TypeEngine[Any]]:
    """The SQL columns of a field: its own and its companion."""
    columns = {field.name: SQL_TYPES[field.kind]}
    if suffix := STORED_COMPANIONS.get(field.kind):
        columns[field.name + suffix] = _COMPANION_TYPES[suffix]
    return columns


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


def _range_index(table: sa.Table) -> None:
    """Rows arrive in order, so a block range index finds a chunk at hardly any cost."""
    sa.Index(
        f"{table.name}_range",
        table.c.extract_id,
        table.c.record_number,
        postgresql_using="brin",
        postgresql_with=BLOCK_RANGES,
    )


def _staged(table: Table) -> sa.Table:
    staged = sa.Table(
        staged_name(table),
        METADATA,
        *_columns(POSITION, nullable=False),
        *_columns(table, nullable=True),
        comment=f"Rows as delivered: {table.title}",
    )
    _range_index(staged)
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
TARGETS = {name: _target(EXTRACTS[name]) for name in TARGET_NAMES}
STAGED = {name: _staged(table) for name, table in EXTRACTS.items()}

for _name in ("outcome", "before_image"):
    _range_index(LEDGER_TABLES[_name])
_send = LEDGER_TABLES["send"]
# No index has a column that a send changes, so updates stay on the row's own page.
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
    # Leaves room on every page for the two updates of a send.
    "send": "fillfactor = 60",
    # A batch analyses its own rows; the server would do it later, in the way of the next batch.
    **dict.fromkeys(
        map(staged_name, EXTRACTS.values()),
        "autovacuum_vacuum_insert_threshold = -1, autovacuum_analyze_threshold = 2000000000",
    ),
}
"""Storage parameters by table."""
sa.Index("note_batch", LEDGER_TABLES["note"].c.batch_id)
sa.Index("batch_content", LEDGER_TABLES["batch"].c.content_id)
# Every run asks for the service's listings, which are a small part of all batches.
sa.Index(
    "batch_listings",
    LEDGER_TABLES["batch"].c.id,
    postgresql_where=sa.text(f"feed = '{LISTING_FEED}'"),
)
# Makes looking up a batch's rows cost the same however many batches came before.
sa.Index("extract_batch", LEDGER_TABLES["extract"].c.batch_id)
sa.Index("receipt_batch", LEDGER_TABLES["receipt"].c.batch_id)
sa.Index("event_batch", LEDGER_TABLES["event"].c.batch_id)
# Events that nearly every batch has are looked up by batch and never by name.
_OF_EVERY_BATCH = (
    *("batch received", "batch staged", "batch checked", "batch merged", "batch complete"),
    *("report written", "run began"),
)
sa.Index(
    "event_what",
    LEDGER_TABLES["event"].c.what,
    postgresql_using="hash",
    postgresql_where=sa.text(f"what NOT IN ({listed(_OF_EVERY_BATCH)})"),
)
sa.Index(
    "batch_corrects",
    LEDGER_TABLES["batch"].c.corrects,
    postgresql_where=sa.text("corrects IS NOT NULL"),
)
# Names may be longer than an entry of any other index allows.
sa.Index("extract_name", LEDGER_TABLES["extract"].c.name, postgresql_using="hash")
sa.Index("extract_content", LEDGER_TABLES["extract"].c.sha256)
sa.Index("event_chain_event", LEDGER_TABLES["event_chain"].c.event_id, unique=True)
sa.Index("reconciliation_scope", LEDGER_TABLES["reconciliation"].c.scope_hash)
sa.Index("break_state_break", LEDGER_TABLES["break_state"].c.break_id)
_breaks = LEDGER_TABLES["break_state"].c
# By the hash of the key, which contains delivered texts: index entries have a size limit.
sa.Index("break_state_record", _breaks.reconciliation_id, sa.text(HASH_OF.format("key")))
sa.Index("decision_reconciliation", LEDGER_TABLES["decision"].c.reconciliation_id)
