"""The ledger: batches, extracts and receipts. It is the truth about a batch; Prefect is not.

Every write of a run goes through `Lease.transaction`, which checks that the run still holds its
batch. So a run that was frozen and taken over writes nothing any more.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from secrets import token_hex
from typing import Any

import psycopg
from psycopg.rows import class_row, dict_row

from connectors.addresses import service_address
from connectors.errors import BatchUnknown, ExtractRefused
from connectors.postgres.batches.clues import readable_clues
from connectors.postgres.trail import add_event, read_detail
from schemas.derived.sql_names import listed
from schemas.derived.views import LISTING_FEED
from schemas.field import Table
from schemas.tables import EXTRACTS, by_dependency

RUN_BEGAN = "run began"
"""The event that a Prefect run adds to the trail of each batch that it works on."""


class State(StrEnum):
    """The state of a batch; those in `ENDED` are final."""

    RECEIVED = "received"
    STAGED = "staged"
    CHECKED = "checked"
    HELD = "held"
    MERGED = "merged"
    COMPLETE = "complete"
    COMPLETE_WITH_ERRORS = "complete_with_errors"
    FAILED = "failed"
    DISCARDED = "discarded"
    UNDONE = "undone"


TAKEN_BACK = (State.DISCARDED, State.UNDONE)
"""Batches that no longer claim that their rows are anywhere."""
ENDED = (State.COMPLETE, State.COMPLETE_WITH_ERRORS, *TAKEN_BACK)
NOTHING_APPLIED = (State.RECEIVED, State.STAGED, State.CHECKED, State.HELD)
"""Batches whose clean rows, most of them or all, have yet to become records."""
UNDER_WAY = (State.MERGED, State.FAILED)
"""Batches with applied rows that have not ended; a push reopens one that has."""
IN_DATABASE = (*UNDER_WAY, State.COMPLETE, State.COMPLETE_WITH_ERRORS)
"""Batches with applied rows, so that their totals can be checked and their rows repaired."""


@dataclass(frozen=True, slots=True)
class Batch:
    """One row of the batch table."""

    id: int
    content_id: str
    feed: str
    profile: str
    state: State
    corrects: int | None
    held_because: str | None
    opened_at: datetime
    ended_at: datetime | None
    service: str | None
    """Base URL of the service its records go to; None for the database only."""
    lease_owner: str | None
    lease_epoch: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "state", State(self.state))

    @property
    def tenant(self) -> int | None:
        """The tenant it is bound to; None if it may hold rows of any."""
        bound = read_detail(self.profile).get("tenant")
        return bound if isinstance(bound, int) else None


@dataclass(frozen=True, slots=True)
class Extract:
    """One row of the extract table."""

    id: int
    batch_id: int
    name: str
    sha256: str | None
    bytes: int | None
    record: str | None
    header: str | None
    manifest: str | None
    refused: str | None
    message: str | None
    pieces: str | None = None
    """Hashes of the pieces of its content; None if an earlier version archived it."""
    cleared_at: datetime | None = None
    """When housekeeping removed its content."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """Proof that a chunk of a stage was committed, and what was in it."""

    batch_id: int
    extract_id: int
    stage: str
    chunk: int
    first_record: int
    last_record: int
    counts: Mapping[str, int]
    totals: Mapping[str, Any]
    byte_start: int | None = None
    byte_end: int | None = None
    last_line: int | None = None
    inside: bool | None = None
    sha256: str | None = None
    verdict: str | None = None
    clues: Mapping[str, Any] = field(default_factory=dict)
    """By record kind; see `connectors.postgres.batches.clues`."""


def find_batch(connection: psycopg.Connection, batch_id: int) -> Batch:
    """The batch with this id; raises BatchUnknown if there is none."""
    with connection.cursor(row_factory=class_row(Batch)) as cursor:
        batch = cursor.execute("SELECT * FROM batch WHERE id = %s", [batch_id]).fetchone()
    if batch is None:
        raise BatchUnknown(f"There is no batch {batch_id}. `recon status` lists the batches.")
    return batch


def known_service(connection: psycopg.Connection, service: str) -> str:
    """How earlier batches spell a service's address, since addresses are compared as spelled.

    Earlier versions stored addresses as they were configured.
    """
    # The newest is found by the primary key, and nearly always matches.
    asked = "SELECT service FROM batch WHERE service IS NOT NULL "
    for which in ("ORDER BY id DESC LIMIT 1", "GROUP BY service ORDER BY min(id)"):
        for (known,) in connection.execute(asked + which).fetchall():
            if service_address(known) == service:
                return str(known)
    return service


REFUSED_AS_STATED = (
    "b.state IN ('complete', 'complete_with_errors') AND EXISTS (SELECT FROM extract r "
    "WHERE r.batch_id = b.id AND r.refused = 'incomplete_file' AND r.manifest IS NOT NULL)"
)
"""SQL for whether a batch b has ended without a file because its manifest does not fit it."""


def find_content(
    connection: psycopg.Connection,
    content_id: str,
    missing: Iterable[str] = (),
    stated: Mapping[str, str] | None = None,
) -> Batch | None:
    """The latest batch that took exactly this content, unless it was undone or discarded.

    `missing` are files delivered with it that no batch has, by SHA-256 or else by name; a batch has
    not taken this delivery if it lacks one of them. `stated` is what the manifests say now, by
    SHA-256; an ended batch that refused one of these files because its manifest said something
    else has not taken it either.
    """
    stated = stated or {}
    with connection.cursor(row_factory=class_row(Batch)) as cursor:
        return cursor.execute(
            f"SELECT * FROM batch b WHERE content_id = %s AND state NOT IN ({listed(TAKEN_BACK)}) "
            "AND NOT EXISTS (SELECT FROM unnest(%s::text[]) AS file WHERE NOT EXISTS (SELECT FROM "
            "extract e WHERE e.batch_id = b.id AND file IN (e.sha256, e.name))) "
            f"AND NOT ({REFUSED_AS_STATED} AND EXISTS (SELECT FROM extract e "
            "JOIN unnest(%s::text[], %s::text[]) AS now (sha256, stated) ON e.sha256 = now.sha256 "
            "WHERE e.batch_id = b.id AND e.refused = 'incomplete_file' "
            "AND e.manifest::jsonb - 'manifest' <> now.stated::jsonb - 'manifest')) "
            "ORDER BY id DESC LIMIT 1",
            [content_id, list(missing), list(stated), list(stated.values())],
        ).fetchone()


def find_extracts(
    connection: psycopg.Connection, feed: str, contents: Iterable[str]
) -> dict[str, Extract]:
    """By SHA-256, the first extract of this feed with these bytes that was not taken back."""
    with connection.cursor(row_factory=class_row(Extract)) as cursor:
        found = cursor.execute(
            "SELECT DISTINCT ON (e.sha256) e.* FROM extract e JOIN batch b ON b.id = e.batch_id "
            "WHERE e.sha256 = ANY(%s) AND b.feed = %s AND e.refused IS NULL "
            f"AND b.state NOT IN ({listed(TAKEN_BACK)}) ORDER BY e.sha256, e.id",
            [list(contents), feed],
        ).fetchall()
    return {str(extract.sha256): extract for extract in found}


def find_names(
    connection: psycopg.Connection, feed: str, names: Iterable[str]
) -> dict[str, Extract]:
    """By name, the latest extract of this feed delivered under it."""
    with connection.cursor(row_factory=class_row(Extract)) as cursor:
        found = cursor.execute(
            "SELECT DISTINCT ON (e.name) e.* FROM extract e JOIN batch b ON b.id = e.batch_id "
            "WHERE e.name = ANY(%s) AND b.feed = %s ORDER BY e.name, e.id DESC",
            [list(names), feed],
        ).fetchall()
    return {extract.name: extract for extract in found}


_IN_FORCE = f"state NOT IN ({listed(TAKEN_BACK)}) AND feed <> '{LISTING_FEED}'"


def batches_in_force(connection: psycopg.Connection, feeds: Collection[str] = ()) -> list[Batch]:
    """Every delivered batch not taken back, of these feeds or of all, oldest first."""
    with connection.cursor(row_factory=class_row(Batch)) as cursor:
        return cursor.execute(
            f"SELECT * FROM batch WHERE {_IN_FORCE} AND (%(all)s OR feed = ANY(%(feeds)s)) "
            "ORDER BY id",
            {"all": not feeds, "feeds": [*feeds]},
        ).fetchall()


def in_force_after(connection: psycopg.Connection, batch_id: int) -> list[int]:
    """The numbers of such batches after this one, oldest first."""
    rows = connection.execute(
        f"SELECT id FROM batch WHERE {_IN_FORCE} AND id > %s ORDER BY id", [batch_id]
    ).fetchall()
    return [number for (number,) in rows]


def batches_of(connection: psycopg.Connection, numbers: Iterable[int]) -> list[Batch]:
    """The batches of these numbers, oldest first."""
    with connection.cursor(row_factory=class_row(Batch)) as cursor:
        return cursor.execute(
            "SELECT * FROM batch WHERE id = ANY(%s) ORDER BY id", [[*numbers]]
        ).fetchall()


def taken_in_after(
    connection: psycopg.Connection, numbers: Iterable[int], moment: datetime
) -> set[int]:
    """Those of these batches that were opened, or first applied, after a moment."""
    rows = connection.execute(
        "SELECT id FROM batch b WHERE id = ANY(%(ids)s) AND (opened_at > %(moment)s OR "
        "(SELECT min(at) FROM event e WHERE e.batch_id = b.id AND what = %(applied)s) "
        "> %(moment)s)",
        {"ids": list(numbers), "moment": moment, "applied": f"batch {State.MERGED}"},
    ).fetchall()
    return {number for (number,) in rows}


def feeds_with_batches(connection: psycopg.Connection) -> set[str]:
    """Every feed that ever had a delivery, whatever became of it."""
    return {feed for (feed,) in connection.execute("SELECT DISTINCT feed FROM batch").fetchall()}


def add_batch(
    connection: psycopg.Connection,
    *,
    content_id: str,
    feed: str,
    profile: str,
    corrects: int | None,
    service: str | None = None,
    is_used: Callable[[int], bool] = lambda _: False,
) -> int:
    """Open a batch; its id is the BatchId of the document, and the database gives its time.

    `is_used` says whether another batch had a number before, such as one lost in a restore.
    """
    while True:
        with connection.transaction() as attempt:
            row = connection.execute(
                "INSERT INTO batch (content_id, feed, profile, state, corrects, service, "
                "opened_at, lease_epoch) VALUES (%s, %s, %s, %s, %s, %s, now(), 0) RETURNING id",
                [content_id, feed, profile, State.RECEIVED, corrects, service],
            ).fetchone()
            assert row is not None
            if is_used(row[0]):
                # The number drawn is used up; only an insert lets this role draw the next.
                raise psycopg.Rollback(attempt)
            return int(row[0])


SALT_BYTES = 32


def add_secret_constants(
    connection: psycopg.Connection, batch_id: int, constants: Mapping[str, str]
) -> None:
    """Keep the secrets of a batch's profile where readers of the ledger cannot read them."""
    with connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO secret_constant (batch_id, field, value, salt) VALUES (%s, %s, %s, %s)",
            [(batch_id, name, text, token_hex(SALT_BYTES)) for name, text in constants.items()],
        )


def list_secret_constants(connection: psycopg.Connection, batch_id: int) -> dict[str, str]:
    rows = connection.execute(
        "SELECT field, value FROM secret_constant WHERE batch_id = %s", [batch_id]
    ).fetchall()
    return dict(rows)


def add_extracts(connection: psycopg.Connection, extracts: Iterable[Extract]) -> None:
    """Record the files of a batch, readable or refused; the database numbers them in order."""
    columns = (
        *("batch_id", "name", "sha256", "bytes", "record", "header", "manifest", "refused"),
        *("message", "pieces"),
    )
    with connection.cursor() as cursor:
        cursor.executemany(
            f"INSERT INTO extract ({', '.join(columns)}) "
            f"VALUES ({', '.join(['%s'] * len(columns))})",
            [[getattr(extract, name) for name in columns] for extract in extracts],
        )


def refuse_extract(
    connection: psycopg.Connection, extract: Extract, refusal: ExtractRefused
) -> None:
    """Refuse a file after reading it, because of its manifest or of what is among its rows."""
    connection.execute(
        "UPDATE extract SET refused = %s, message = %s WHERE id = %s",
        [refusal.code, str(refusal), extract.id],
    )
    connection.execute("DELETE FROM receipt WHERE extract_id = %s", [extract.id])
    connection.execute("DELETE FROM outcome WHERE extract_id = %s", [extract.id])
    add_event(
        connection,
        "extract refused",
        batch_id=extract.batch_id,
        reason=str(refusal),
        detail={"name": extract.name},
    )


def list_extracts(connection: psycopg.Connection, batch_id: int) -> list[Extract]:
    """The files of a batch in the order they were read."""
    with connection.cursor(row_factory=class_row(Extract)) as cursor:
        return cursor.execute(
            "SELECT * FROM extract WHERE batch_id = %s ORDER BY id", [batch_id]
        ).fetchall()


def batch_span(connection: psycopg.Connection, batch_id: int) -> dict[str, int]:
    """The parameters of `views.of_batch`: the batch and the range of its extracts."""
    row = connection.execute(
        "SELECT coalesce(min(id), 0), coalesce(max(id), 0) FROM extract WHERE batch_id = %s",
        [batch_id],
    ).fetchone()
    assert row is not None
    return {"batch": batch_id, "low": row[0], "high": row[1]}


def list_receipts(
    connection: psycopg.Connection,
    batch_id: int,
    stage: str,
    extracts: int | Sequence[int] | None = None,
    *,
    with_clues: bool = True,
) -> list[Receipt]:
    """The receipts of a stage in order, of one extract, of several, or of all.

    To know whether clues are readable, all of our code is hashed; callers without need skip them.
    """
    with connection.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(
            "SELECT * FROM receipt WHERE batch_id = %(batch)s AND stage = %(stage)s "
            "AND (%(extracts)s::int[] IS NULL OR extract_id = ANY(%(extracts)s)) "
            "ORDER BY extract_id, chunk",
            {
                "batch": batch_id,
                "stage": stage,
                "extracts": [extracts] if isinstance(extracts, int) else extracts,
            },
        ).fetchall()
    wanted = Receipt.__dataclass_fields__
    return [
        Receipt(
            **{name: value for name, value in row.items() if name in wanted}
            | {name: json.loads(row[name] or "{}") for name in ("counts", "totals")}
            | {"clues": readable_clues(row["clues"]) if with_clues and row["clues"] else {}}
        )
        for row in rows
    ]


def staged_tables(connection: psycopg.Connection, batch_id: int) -> list[Table]:
    """The record kinds that a batch has rows of, in order of dependency."""
    return tables_of(list_receipts(connection, batch_id, "stage", with_clues=False))


def tables_of_extract(connection: psycopg.Connection, extract_id: int) -> list[Table]:
    """The record kinds of an extract's staged rows: its own or those inside, in no order."""
    found = connection.execute(
        "SELECT record FROM extract WHERE id = %(extract)s UNION SELECT k FROM receipt, "
        "jsonb_object_keys(totals::jsonb) k WHERE extract_id = %(extract)s AND stage = 'stage'",
        {"extract": extract_id},
    )
    return [EXTRACTS[name] for (name,) in found if name in EXTRACTS]


def tables_of(receipts: Iterable[Receipt]) -> list[Table]:
    """The record kinds that receipts of staging have rows of, in order of dependency.

    With their clues, this includes kinds of files whose lines are all no records.
    """
    found = {record for receipt in receipts for record in (*receipt.totals, *receipt.clues)}
    return [table for table in by_dependency() if table.name in found]


def by_extract(receipts: Iterable[Receipt]) -> defaultdict[int, list[Receipt]]:
    found: defaultdict[int, list[Receipt]] = defaultdict(list)
    for receipt in receipts:
        found[receipt.extract_id].append(receipt)
    return found


def begun_extracts(connection: psycopg.Connection, batch_id: int) -> dict[int, int | None]:
    """The extracts with staged rows, and the end in bytes of the first chunk if it is the only one.

    None where there are receipts of other chunks.
    """
    rows = connection.execute(
        "SELECT extract_id, CASE WHEN max(chunk) = 0 THEN max(byte_end) END FROM receipt "
        "WHERE batch_id = %s AND stage = 'stage' GROUP BY 1",
        [batch_id],
    )
    return dict(rows.fetchall())


def withdraw_receipts(
    connection: psycopg.Connection, extract_id: int, chunk: int, record: int
) -> None:
    """Delete what staging recorded of an extract from a chunk on; `record` is its first record."""
    connection.execute(
        "DELETE FROM receipt WHERE extract_id = %s AND stage = 'stage' AND chunk >= %s",
        [extract_id, chunk],
    )
    connection.execute(
        "DELETE FROM outcome WHERE extract_id = %s AND record_number >= %s", [extract_id, record]
    )
