"""The function that hashes what the ledger says of a batch, for the event that ends a stage.

It runs as the owner, so that everybody gets the same hash, whatever columns they may read. A hash
reveals only the number of rows behind it, and only for batches that the asker may see. Numbers and
times that the database assigns (of batches and extracts, lease epochs) are left out, so the same
delivery has the same hashes whatever went wrong meanwhile. An image is hashed as it is stored, with
the numbers of the row that had written it, because an undo restores them. So are the numbers of the
row whose record a send is for.

The hashes stay in the audit trail for good. So the columns are listed here, and a column added
later counts only for rows that have a value in it (`_ADDED`).
"""

from collections.abc import Mapping

from schemas.derived.sql_names import LOADER, SAFE, SCHEMA
from schemas.derived.views import CORRECTED
from schemas.guards.push_gate import BIRTH, epoch_hash
from schemas.guards.readable import time_text
from schemas.guards.tenants import is_member

FILES, RECEIPTS, OUTCOMES = "files", "receipts", "outcomes"
NOTES, IMAGES, ANSWERS, SENT = "notes", "images", "answers", "sent"
CONSTANTS = "constants"
"""The parts that are hashed: what was delivered; the chunks of each stage; what became of rows;
findings that reject no row; target rows as they were before; what the service said to each row; how
each row is sent (for which record, under which key, and with which others); and the secret
constants of the feed profile, with their salts."""
LEDGER = (FILES, RECEIPTS, OUTCOMES, NOTES)
"""The parts that a batch has once its rows are checked."""
APPLIED = (*LEDGER, IMAGES)
"""The parts that it has once its rows are applied; only an undo reads images."""
TABLES: Mapping[str, str] = {
    FILES: "extract", RECEIPTS: "receipt", OUTCOMES: "outcome", NOTES: "note",
    IMAGES: "before_image", ANSWERS: "send", SENT: "send", CONSTANTS: "secret_constant",
}  # fmt: skip
"""The table that each part is kept in."""
BEFORE: Mapping[str, str] = {part: f"{part}_before" for part in (ANSWERS, SENT)}
"""Keys under which an event has a part of the sends as it was before what the event tells of."""
PROFILE, SERVICE, OPENED_AT, ENDED_AT = "profile", "service", "opened_at", "ended_at"
BIRTH_DATABASE = "database"
TERMS: Mapping[str, str] = {
    PROFILE: "encode(sha256(convert_to(b.profile, 'UTF8')), 'hex')",
    SERVICE: "b.service",
    OPENED_AT: time_text("b.opened_at"),
    ENDED_AT: time_text("b.ended_at"),
    # The database it was received in, told by that of the first batch while it is the same one.
    BIRTH_DATABASE: (
        f"(SELECT {epoch_hash('p')} FROM {SCHEMA}.push_epoch p WHERE p.number = {BIRTH})"
    ),
}
"""SQL for the terms of a batch `b` itself, by their keys in events."""
_OF_EXTRACTS = (
    "x JOIN e ON e.id = x.extract_id AND e.batch_id = x.batch_id "
    "WHERE x.extract_id BETWEEN (SELECT min(id) FROM e) AND (SELECT max(id) FROM e)"
)
"""SQL whose range of extracts is redundant, but usable by block range indexes."""
_LINES: Mapping[str, tuple[str, str, str]] = {
    # part -> its columns, the rows, their order
    FILES: (
        "e.place, x.name, x.sha256, x.bytes, x.record, x.header, x.manifest, x.refused, x.message, "
        "x.pieces, b.feed, b.profile, b.content_id, b.corrects",
        f"{SCHEMA}.extract x JOIN e ON e.id = x.id JOIN {SCHEMA}.batch b ON b.id = x.batch_id "
        "WHERE true",
        "e.place",
    ),
    RECEIPTS: (
        "e.place, x.stage, x.chunk, x.first_record, x.last_record, x.byte_start, x.byte_end, "
        "x.last_line, x.inside, x.sha256, x.verdict, x.counts, x.totals",
        f"{SCHEMA}.receipt {_OF_EXTRACTS}",
        'e.place, x.stage COLLATE "C", x.chunk',
    ),
    OUTCOMES: (
        # Later batches say that a row was corrected, and take it back.
        "e.place, x.record_number, x.verdict, x.error_data",
        f"{SCHEMA}.outcome {_OF_EXTRACTS} AND x.verdict <> '{CORRECTED}'",
        'e.place, x.record_number, x.verdict COLLATE "C", x.error_data COLLATE "C"',
    ),
    NOTES: (
        "e.place, x.record_number, x.record, x.code, x.field, x.value, x.rows, x.message",
        # Notes have an index on batches. What a push notes comes after the event with the hash.
        f"{SCHEMA}.note {_OF_EXTRACTS} AND x.batch_id = ANY ($1) AND x.code <> 'InDoubt'",
        'e.place, x.record_number, x.record COLLATE "C", x.code COLLATE "C", x.field COLLATE "C", '
        'x.value COLLATE "C", x.rows, x.message COLLATE "C"',
    ),
    IMAGES: (
        "e.place, x.record_number, x.record",
        f"{SCHEMA}.before_image {_OF_EXTRACTS}",
        'e.place, x.record_number, x.record COLLATE "C"',
    ),
    CONSTANTS: (
        # Without a salt, a hash that everybody may read would give a secret away.
        "x.field, x.salt, x.value",
        f"{SCHEMA}.secret_constant x JOIN unnest($1) e (batch_id) ON e.batch_id = x.batch_id "
        "WHERE x.salt IS NOT NULL",
        'x.field COLLATE "C"',
    ),
    ANSWERS: (
        "e.place, x.record_number, x.operation, x.number, x.state, x.twin, x.attempts, x.status, "
        "x.error_data, x.echo, x.service_id",
        f"{SCHEMA}.send {_OF_EXTRACTS}",
        "e.place, x.record_number",
    ),
    SENT: (
        "e.place, x.record_number, x.writer_extract_id, x.writer_record_number, x.epoch, "
        "x.own_key, x.follows",
        f"{SCHEMA}.send {_OF_EXTRACTS}",
        "e.place, x.record_number",
    ),
}


_BEHIND: Mapping[str, str] = {IMAGES: "x.image"}
"""What is hashed after the columns as it is stored: large JSON, which every row has."""
_EARLIER = f"""CASE WHEN x.earlier IS NOT NULL THEN (
        SELECT string_agg(json_build_array(h.number, h.state, h.attempts, h.status, h.error_data,
            h.echo, h.service_id, h.epoch, h.carried_out, h.decision, h.decision_number, h.ended_by,
            h.ended_number)::text, '' ORDER BY h.number)
        FROM {SCHEMA}.earlier_send h
        WHERE h.batch_id = x.batch_id
            AND h.extract_id = x.extract_id AND h.record_number = x.record_number) END"""
_ADDED: Mapping[str, tuple[tuple[str, str], ...]] = {
    ANSWERS: (
        ("x.carried_out, x.decision", "x.carried_out, x.decision"),
        ("x.decision_number, x.earlier", f"x.decision_number, x.earlier, {_EARLIER}"),
    )
}
"""Columns added later, and what is hashed of them. Rows without a value in them keep their hash,
which may already be in the trail."""


def _hashed(what: str) -> str:
    columns, rows, order = _LINES[what]
    text = f"json_build_array({columns})::text"
    if what in _BEHIND:
        text += f" || {_BEHIND[what]}"
    for added, hashed in _ADDED.get(what, ()):
        text += (
            f" || CASE WHEN num_nonnulls({added}) > 0 "
            f"THEN json_build_array({hashed})::text ELSE '' END"
        )
    lines = _hex(f"string_agg(sha256(convert_to({text}, 'UTF8')), '' ORDER BY {order})")
    return f"""RETURN QUERY WITH e AS MATERIALIZED (
            SELECT x.id, x.batch_id,
                row_number() OVER (PARTITION BY x.batch_id ORDER BY x.id) AS place
            FROM {SCHEMA}.extract x WHERE x.batch_id = ANY ($1)
        ), d AS (
            SELECT e.batch_id, count(*) || ' ' || {lines} AS digest
            FROM {rows} GROUP BY 1
        )
        SELECT b.id, coalesce(d.digest, '0 ' || {_hex("''")})
        FROM unnest($1) b (id) LEFT JOIN d ON d.batch_id = b.id;"""


_READS_ALL = (
    f"pg_has_role(session_user, current_user, 'MEMBER') OR {is_member(LOADER)} "
    f"OR {SCHEMA}.sees_all()"
)
"""SQL for whether no policy hides rows from whoever asks."""


def _hex(content: str) -> str:
    return f"encode(sha256({content}), 'hex')"


LEDGER_DIGESTS_OF: Mapping[str, str] = {
    "ledger_digests(batches integer[], what text)": f"""
    RETURNS TABLE (batch_id integer, digest text) LANGUAGE plpgsql STABLE
    {SAFE} AS $$
    #variable_conflict use_column
    BEGIN
        -- A hash says how many rows it is over: whoever reads asks of batches that they see.
        IF NOT ({_READS_ALL}) THEN
            batches := ARRAY(SELECT one FROM unnest(batches) one
                WHERE one = ANY ({SCHEMA}.seen_batches()));
        END IF;
        CASE $2 {" ".join(f"WHEN '{what}' THEN {_hashed(what)}" for what in _LINES)}
        END CASE;
    END $$""",
    "ledger_digest(number integer, what text)": f"""RETURNS text LANGUAGE sql STABLE
    {SAFE} AS $$
        SELECT d.digest FROM {SCHEMA}.ledger_digests(ARRAY[$1], $2) d
    $$""",
}
"""Definitions by head. A digest is the number of rows, a blank, and the SHA-256 of the SHA-256 of
each line.

The rows of many batches are read in one pass; memory holds one hash per row of a batch. Only the
statement for the part asked for is planned: planning all takes longer than a small batch.
"""
