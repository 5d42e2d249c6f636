"""The function that hashes what the ledger says of a batch, for the event that ends a stage.

It runs as the owner, so that everybody comes to the same hash, whatever columns they may read: a
hash tells nothing of what it is over but the number of rows, and that of batches that whoever asks
sees. What the database hands out (numbers of batches and extracts, epochs, times) is left out: the
same delivery has the same hashes whatever went wrong meanwhile. An image is hashed as it stands,
with the numbers of the row that had written it: an undo gives them back. So are the numbers of the
row whose record a send is of.

What is hashed is written down in the audit trail for good. So the columns are listed here, and
one that a table gets later is no part of it, but where a row has a value in it (`_ADDED`).
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
"""What is hashed: what was delivered, the chunks of each stage, what became of rows, what was found
that rejects none, target rows as they were before, what the service said to each, and how each
is sent: for which record, under which key, and with which others; and the secret constants of the
feed profile, with their salts."""
LEDGER = (FILES, RECEIPTS, OUTCOMES, NOTES)
"""What a batch has once its rows are judged."""
APPLIED = (*LEDGER, IMAGES)
"""What it has once they are applied; images are read by an undo alone."""
TABLES: Mapping[str, str] = {
    FILES: "extract", RECEIPTS: "receipt", OUTCOMES: "outcome", NOTES: "note",
    IMAGES: "before_image", ANSWERS: "send", SENT: "send", CONSTANTS: "secret_constant",
}  # fmt: skip
"""Where it is kept."""
BEFORE: Mapping[str, str] = {part: f"{part}_before" for part in (ANSWERS, SENT)}
"""What of sends is hashed -> what an event calls that as it was before what it tells of."""
PROFILE, SERVICE, OPENED_AT, ENDED_AT = "profile", "service", "opened_at", "ended_at"
BIRTH_DATABASE = "database"
TERMS: Mapping[str, str] = {
    PROFILE: "encode(sha256(convert_to(b.profile, 'UTF8')), 'hex')",
    SERVICE: "b.service",
    OPENED_AT: time_text("b.opened_at"),
    ENDED_AT: time_text("b.ended_at"),
    # Which database it was received in: that of the first batch, as long as it is the same one.
    BIRTH_DATABASE: (
        f"(SELECT {epoch_hash('p')} FROM {SCHEMA}.push_epoch p WHERE p.number = {BIRTH})"
    ),
}
"""What events say of a batch itself -> SQL for the same of batch `b`."""
_OF_EXTRACTS = (
    "x JOIN e ON e.id = x.extract_id AND e.batch_id = x.batch_id "
    "WHERE x.extract_id BETWEEN (SELECT min(id) FROM e) AND (SELECT max(id) FROM e)"
)
"""The range of extracts says nothing new, but it is what the block range indexes know."""
_LINES: Mapping[str, tuple[str, str, str]] = {
    # what -> its columns, the rows, their order
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
        # That a row was corrected is said by the batches behind this one, and taken back by them.
        "e.place, x.record_number, x.verdict, x.error_data",
        f"{SCHEMA}.outcome {_OF_EXTRACTS} AND x.verdict <> '{CORRECTED}'",
        'e.place, x.record_number, x.verdict COLLATE "C", x.error_data COLLATE "C"',
    ),
    NOTES: (
        "e.place, x.record_number, x.record, x.code, x.field, x.value, x.rows, x.message",
        # They have an index of batches. What a push notes comes behind the event with the hash.
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
        # Without a salt a hash that everybody may read would tell what a secret is.
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
"""What is hashed behind the columns as it stands: JSON that every row has, which is large."""
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
"""Columns of later, and what is hashed of them: no part of a row that has none of them, whose hash
may be written down."""


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
"""SQL for whether no policy keeps rows from whoever asks."""


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
"""Head -> rest of the definition: rows, a blank, and the SHA-256 of the SHA-256 of each line.

Of many batches all rows are read once; of each batch as many hashes are in memory as it has rows.
Only the statement of what is asked for is planned: all take longer than a small batch does.
"""
