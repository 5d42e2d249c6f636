"""Our own tables in the grammar of the field tables: what arrived, what became of it, and why.

Nothing here is ever edited except the batch's state and lease: rows, outcomes, receipts, images
and events are only added.
"""

from schemas.field import Field, Kind, Table

INTEGER, INTEGER64, STRING, INSTANT = Kind.INTEGER, Kind.INTEGER64, Kind.STRING, Kind.INSTANT

BATCH = Table(
    name="batch",
    title="One delivery taken through together",
    extract=False,
    key=("id",),
    fields=(
        Field("id", INTEGER, required=True),
        Field("content_id", STRING, required=True, note="hash of feed and extract hashes"),
        Field("feed", STRING, required=True),
        Field("profile", STRING, required=True, note="the feed profile and the budget, JSON"),
        Field("state", STRING, required=True),
        Field("corrects", INTEGER, note="the batch whose rejects this delivery repairs"),
        Field("held_because", STRING),
        Field("opened_at", INSTANT, required=True),
        Field("ended_at", INSTANT),
        Field("lease_owner", STRING, note="host, process and since when"),
        Field("lease_epoch", INTEGER, required=True, note="grows with every take-over"),
    ),
)

EXTRACT = Table(
    name="extract",
    title="One file as delivered",
    extract=False,
    key=("id",),
    fields=(
        Field("id", INTEGER, required=True),
        Field("batch_id", INTEGER, required=True),
        Field("name", STRING, required=True),
        Field("sha256", STRING, note="of the decompressed bytes"),
        Field("bytes", INTEGER64),
        Field("record", STRING, note="record kind"),
        Field("header", STRING, note="column names as delivered, JSON"),
        Field("manifest", STRING, note="what a control manifest says of the file, JSON"),
        Field("refused", STRING, note="refusal code"),
        Field("message", STRING),
    ),
)

RECEIPT = Table(
    name="receipt",
    title="Proof that one chunk of one stage is in the database",
    extract=False,
    key=("extract_id", "stage", "chunk"),
    fields=(
        Field("batch_id", INTEGER, required=True),
        Field("extract_id", INTEGER, required=True),
        Field("stage", STRING, required=True),
        Field("chunk", INTEGER, required=True),
        Field("first_record", INTEGER64, required=True),
        Field("last_record", INTEGER64, required=True),
        Field("byte_start", INTEGER64),
        Field("byte_end", INTEGER64),
        Field("last_line", INTEGER64),
        Field("inside", Kind.BOOLEAN, note="the chunk ends within an oversized line"),
        Field("sha256", STRING, note="of the chunk's bytes"),
        Field("verdict", STRING, note="of every row of the range without an outcome of its own"),
        Field("counts", STRING, required=True, note="rows by verdict, JSON"),
        Field("totals", STRING, required=True, note="control totals by verdict, JSON"),
        Field("epoch", INTEGER, required=True),
        Field("written_at", INSTANT, required=True),
    ),
)

OUTCOME = Table(
    name="outcome",
    title="What became of one staged row, where it is not what its range's receipt says",
    extract=False,
    fields=(
        Field("batch_id", INTEGER, required=True),
        Field("extract_id", INTEGER, required=True),
        Field("record_number", INTEGER64, required=True),
        Field("verdict", STRING, required=True),
        Field("error_data", STRING),
    ),
)

BEFORE_IMAGE = Table(
    name="before_image",
    title="A database row as it was before a batch changed it",
    extract=False,
    fields=(
        Field("batch_id", INTEGER, required=True),
        Field("extract_id", INTEGER, required=True),
        Field("record_number", INTEGER64, required=True),
        Field("record", STRING, required=True),
        Field("image", STRING, required=True, note="the whole row, JSON"),
    ),
)

NOTE = Table(
    name="note",
    title="A finding that rejects no row: a value, how many rows carry it, and the first of them",
    extract=False,
    fields=(
        Field("batch_id", INTEGER, required=True),
        Field("extract_id", INTEGER, required=True, note="of the first row"),
        Field("record_number", INTEGER64, required=True, note="of the first row"),
        Field("record", STRING, required=True),
        Field("code", STRING, required=True),
        Field("field", STRING, required=True),
        Field("value", STRING, required=True),
        Field("rows", INTEGER64, required=True),
        Field("message", STRING, required=True),
    ),
)

EVENT = Table(
    name="event",
    title="Audit trail: who did what, when and why",
    extract=False,
    key=("id",),
    fields=(
        Field("id", INTEGER64, required=True),
        Field("batch_id", INTEGER),
        Field("at", INSTANT, required=True),
        Field("what", STRING, required=True),
        Field("by", STRING, required=True),
        Field("reason", STRING),
        Field("detail", STRING, note="JSON"),
    ),
)

LEDGER: dict[str, Table] = {
    table.name: table for table in (BATCH, EXTRACT, RECEIPT, OUTCOME, BEFORE_IMAGE, NOTE, EVENT)
}
"""Our own tables by name."""

POSITION = Table(
    name="position",
    title="Where a staged row comes from; the first columns of every staged table",
    extract=False,
    fields=(
        Field("batch_id", INTEGER, required=True),
        Field("extract_id", INTEGER, required=True),
        Field("record_number", INTEGER64, required=True, note="from 1 after the header"),
        Field("first_line", INTEGER64, required=True),
        Field("last_line", INTEGER64, required=True),
        Field("byte_start", INTEGER64, required=True),
        Field("byte_end", INTEGER64, required=True),
        Field("source_batch_id", INTEGER, note="BatchId inside insert-batch data"),
        Field("parent", STRING, note="extract:record of the rejected row this one repairs"),
        Field("data", STRING, required=True, note="the record's text as delivered"),
        Field("raw", STRING, note="the record's bytes in hex, where they are no text"),
        Field("error_data", STRING, note="why the row was rejected, JSON"),
        Field("identity", STRING, note="hash of the business key where it is not all integers"),
    ),
)

LINEAGE = Table(
    name="lineage",
    title="Which staged row last wrote a database row",
    extract=False,
    fields=(
        Field("batch_id", INTEGER, required=True),
        Field("extract_id", INTEGER, required=True),
        Field("record_number", INTEGER64, required=True),
    ),
)
