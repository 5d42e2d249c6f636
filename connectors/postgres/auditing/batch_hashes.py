"""The ledger's hashes in the event that ends a stage, and whether a batch still matches them.

The events of a batch have hashes of its files, receipts and outcomes, and of whatever else is
complete at the end of a stage. `connectors.postgres.auditing.evidence` compares the whole ledger
with them.
"""

import hashlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

import psycopg

from connectors.postgres.batches.digests import STAGED
from connectors.postgres.batches.ledger import State
from connectors.postgres.trail import read_detail
from schemas.derived.sql_names import SCHEMA
from schemas.guards.batch_states import APPLIED_STATES, PREFIX
from schemas.guards.ledger_digests import (
    ANSWERS,
    BEFORE,
    BIRTH_DATABASE,
    CONSTANTS,
    FILES,
    IMAGES,
    LEDGER,
    NOTES,
    OPENED_AT,
    OUTCOMES,
    PROFILE,
    RECEIPTS,
    SENT,
    SERVICE,
    TERMS,
)

RECEIVED, HELD = PREFIX + State.RECEIVED, PREFIX + State.HELD
FINAL = {PREFIX + state for state in APPLIED_STATES}
NAMES = {
    FILES: "the files that were delivered",
    RECEIPTS: "the receipts of its chunks",
    OUTCOMES: "the outcomes of its rows",
    NOTES: "the findings that reject no row",
    IMAGES: "the database rows that it wrote over",
    CONSTANTS: "the secret constants of its feed profile",
    ANSWERS: "the answers of the service",
    SENT: "the records and keys that its rows are sent for",
}


def ledger_detail(
    connection: psycopg.Connection, batch_id: int, parts: Collection[str] = LEDGER
) -> dict[str, object]:
    """The detail of the event that ends a stage; call it inside the transaction that ends it."""
    rows = connection.execute(
        f"SELECT part, digest FROM unnest(%s::text[]) part, {SCHEMA}.ledger_digests(%s, part)",
        [[*parts], [batch_id]],
    )
    return dict(rows.fetchall())


def received_detail(
    connection: psycopg.Connection, batch_id: int, profile: str, service: str | None
) -> dict[str, object]:
    """The detail of the event that receives a batch; call it once its tables are written."""
    row = connection.execute(
        f"SELECT {TERMS[OPENED_AT]}, {TERMS[BIRTH_DATABASE]}, EXISTS (SELECT FROM secret_constant "
        "WHERE batch_id = b.id) FROM batch b WHERE b.id = %s",
        [batch_id],
    ).fetchone()
    assert row is not None
    opened_at, birth, has_constants = row
    return {
        PROFILE: hashlib.sha256(profile.encode()).hexdigest(),
        SERVICE: service,
        OPENED_AT: opened_at,
        BIRTH_DATABASE: birth,
        **({CONSTANTS: _digest(connection, batch_id, CONSTANTS)} if has_constants else {}),
    }


def are_constants_altered(connection: psycopg.Connection, batch_id: int) -> bool:
    """Whether a batch's secret constants differ from those it was received with."""
    return _is_altered(connection, batch_id, CONSTANTS, {RECEIVED})


def are_images_altered(connection: psycopg.Connection, batch_id: int) -> bool:
    """Whether the kept contents of rows that a batch overwrote differ from when it was applied."""
    return _is_altered(connection, batch_id, IMAGES, FINAL)


def _is_altered(
    connection: psycopg.Connection, batch_id: int, part: str, events: Collection[str]
) -> bool:
    """Whether the hash of a part differs from the first that one of these events has of it.

    Events of earlier versions have none, so nothing counts as altered.
    """
    rows = connection.execute(
        "SELECT detail FROM event WHERE batch_id = %s AND what = ANY(%s) ORDER BY id",
        [batch_id, [*events]],
    ).fetchall()
    details = (read_detail(text) for (text,) in rows)
    recorded = next((detail[part] for detail in details if part in detail), None)
    return recorded is not None and recorded != _digest(connection, batch_id, part)


def is_profile_altered(connection: psycopg.Connection, batch_id: int) -> bool:
    """Whether a batch's feed profile differs from the one it was received with.

    Events of earlier versions have no hash of it, so it does not count as altered.
    """
    row = connection.execute(
        f"SELECT e.detail, {TERMS[PROFILE]} FROM event e JOIN batch b ON b.id = e.batch_id "
        "WHERE e.batch_id = %s AND e.what = %s ORDER BY e.id LIMIT 1",
        [batch_id, RECEIVED],
    ).fetchone()
    return row is not None and read_detail(row[0]).get(PROFILE, row[1]) != row[1]


def altered_since_held(connection: psycopg.Connection, batch_id: int) -> list[str]:
    """Parts of the ledger that changed since a batch was held (after it was staged), in words."""
    row = connection.execute(
        """SELECT detail FROM event WHERE batch_id = %(batch)s AND what = %(held)s AND id > (
            SELECT coalesce(max(id), 0) FROM event WHERE batch_id = %(batch)s AND what = %(staged)s)
        ORDER BY id LIMIT 1""",
        {"batch": batch_id, "held": HELD, "staged": STAGED},
    ).fetchone()
    if row is None:
        return ["the event by which it was held"]
    recorded, present = read_detail(row[0]), ledger_detail(connection, batch_id)
    return [NAMES[part] for part in LEDGER if recorded.get(part, present[part]) != present[part]]


def altered_since_applied(connection: psycopg.Connection, batch_id: int) -> list[str]:
    """Which of files, receipts and outcomes changed since the rows were applied, in words."""
    return [
        NAMES[part]
        for part in (FILES, RECEIPTS, OUTCOMES)
        if _is_altered(connection, batch_id, part, FINAL)
    ]


def answers_detail(
    connection: psycopg.Connection, batch_id: int, names: Mapping[str, str] | None = None
) -> dict[str, object]:
    """Hashes of sends and answers for an event; empty for a batch that sends nothing.

    `names` are the keys to use, for an event about something that changes them.
    """
    found = digests_of(connection, [(batch_id, part) for part in BEFORE])
    return {
        (names or {}).get(part, part): digest
        for (_, part), digest in found.items()
        if not digest.startswith("0 ")
    }


def _digest(connection: psycopg.Connection, batch_id: int, part: str) -> str:
    return digests_of(connection, [(batch_id, part)])[batch_id, part]


def digests_of(
    connection: psycopg.Connection, wanted: Iterable[tuple[int, str]]
) -> dict[tuple[int, str], str]:
    """The present hash of each part of the ledger, by batch and part."""
    batches: defaultdict[str, set[int]] = defaultdict(set)
    for number, part in wanted:
        batches[part].add(number)
    return {
        (number, part): digest
        for part, numbers in batches.items()
        for number, digest in connection.execute(
            f"SELECT * FROM {SCHEMA}.ledger_digests(%s, %s)", [sorted(numbers), part]
        )
    }
