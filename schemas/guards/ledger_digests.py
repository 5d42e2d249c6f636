"""The function that hashes what the ledger says of a batch, for the event that ends a stage.

It runs as the owner, so that everybody comes to the same hash, whatever they may read: a hash tells
nothing of what it is over. What the database hands out (numbers of batches and extracts, epochs,
times) is left out: the same delivery has the same hashes whatever went wrong meanwhile.

What is hashed is written down in the audit trail for good. So the columns are listed here, and
one that a table gets later is no part of it, but where a row has a value in it (`_ADDED`).
"""

from collections.abc import Mapping

from schemas.derived.sql_names import SCHEMA
from schemas.derived.views import CORRECTED

FILES, RECEIPTS, OUTCOMES, ANSWERS = "files", "receipts", "outcomes", "answers"
"""What is hashed: what was delivered, the chunks of each stage, what became of rows, and what the
service said to each."""
LEDGER = (FILES, RECEIPTS, OUTCOMES)
"""What a batch has once its rows are judged."""
TABLES: Mapping[str, str] = {
    FILES: "extract", RECEIPTS: "receipt", OUTCOMES: "outcome", ANSWERS: "send"
}  # fmt: skip
"""Where it is kept."""
_OF_EXTRACTS = (
    "x JOIN e ON e.id = x.extract_id WHERE x.batch_id = $1 "
    "AND x.extract_id BETWEEN (SELECT min(id) FROM e) AND (SELECT max(id) FROM e)"
)
"""The range of extracts says nothing new, but it is what the block range indexes know."""
_LINES: Mapping[str, tuple[str, str, str]] = {
    # what -> its columns, the rows, their order
    FILES: (
        "e.place, x.name, x.sha256, x.bytes, x.record, x.header, x.manifest, x.refused, x.message, "
        "x.pieces, b.feed, b.profile, b.content_id, b.corrects",
        f"{SCHEMA}.extract x JOIN e ON e.id = x.id JOIN {SCHEMA}.batch b ON b.id = x.batch_id",
        "e.place",
    ),
    RECEIPTS: (
        "e.place, x.stage, x.chunk, x.first_record, x.last_record, x.byte_start, x.byte_end, "
        "x.last_line, x.inside, x.sha256, x.verdict, x.counts, x.totals",
        f"{SCHEMA}.receipt {_OF_EXTRACTS}",
        'e.place, x.stage COLLATE "C", x.chunk',
    ),
    OUTCOMES: (
        # That a row was corrected is said by the batches behind this one, and taken back by them.
        "e.place, x.record_number, x.verdict, x.error_data",
        f"{SCHEMA}.outcome {_OF_EXTRACTS} AND x.verdict <> '{CORRECTED}'",
        'e.place, x.record_number, x.verdict COLLATE "C", x.error_data COLLATE "C"',
    ),
    ANSWERS: (
        "e.place, x.record_number, x.operation, x.number, x.state, x.twin, x.attempts, x.status, "
        "x.error_data, x.echo, x.service_id",
        f"{SCHEMA}.send {_OF_EXTRACTS}",
        "e.place, x.record_number",
    ),
}


_ADDED: Mapping[str, str] = {ANSWERS: "x.carried_out, x.decision"}
"""Columns of later: no part of a row that has none of them, whose hash may be written down."""


def _hashed(what: str) -> str:
    columns, rows, order = _LINES[what]
    text = f"json_build_array({columns})::text"
    if added := _ADDED.get(what):
        text += (
            f" || CASE WHEN num_nonnulls({added}) > 0 "
            f"THEN json_build_array({added})::text ELSE '' END"
        )
    line = f"sha256(convert_to({text}, 'UTF8'))"
    return (
        f"WHEN '{what}' THEN (WITH e AS (SELECT id, row_number() OVER (ORDER BY id) AS place "
        f"FROM {SCHEMA}.extract WHERE batch_id = $1) "
        f"SELECT count(*) || ' ' || encode(sha256(coalesce(string_agg({line}, ''::bytea "
        f"ORDER BY {order}), ''::bytea)), 'hex') FROM {rows})"
    )


LEDGER_DIGESTS_OF: Mapping[str, str] = {
    "ledger_digest(number integer, what text)": f"""RETURNS text LANGUAGE sql STABLE
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
        SELECT CASE $2 {" ".join(_hashed(what) for what in _LINES)} END
    $$""",
}
"""Head -> rest of the definition: rows, a blank, and the SHA-256 of the SHA-256 of each line."""
