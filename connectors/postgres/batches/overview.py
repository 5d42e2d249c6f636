"""The ledger at a glance: batches with their rows and errors, without reading staged rows."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import NamedTuple

import psycopg
from psycopg.rows import class_row

from connectors.postgres.accounts import BATCH_SEEN
from connectors.postgres.batches.attempts import REPAIRED, delivered_again, later_attempts
from connectors.postgres.batches.deliveries import IS_STATED_SAME
from connectors.postgres.batches.ledger import (
    ENDED,
    IN_DATABASE,
    REFUSED_AS_STATED,
    TAKEN_BACK,
    Extract,
    State,
)
from connectors.postgres.batches.other_names import FILE_NAMES
from schemas.derived.sql_names import SCHEMA, listed
from schemas.derived.views import in_batches
from schemas.own_columns import PARENT_COLUMN


class BatchSummary(NamedTuple):
    id: int
    feed: str
    state: State
    opened_at: datetime
    files: int
    refused: int
    """Files that could not be read."""
    rows: int
    errors: int
    """Rows that carry HasError now: without those corrected since; a row delivered again, in error
    too, counts only with its last attempt."""
    at_service: Mapping[str, int]
    """Rows by their state at the service; refused, differing and in-doubt ones are errors too."""
    held_because: str | None
    repaired: Mapping[int, int] = {}
    """Rejects repaired, by the later batch that did so; empty unless all are repaired."""
    to_deliver: int = 0
    """Refused and absent files that no batch has taken since."""
    corrects: int | None = None


def list_overview(
    connection: psycopg.Connection,
    most: int,
    *,
    since: datetime | None = None,
    state: State | None = None,
    before: int | None = None,
    only: int | None = None,
    file: str | None = None,
) -> list[BatchSummary]:
    """The latest batches that the acting user may see, newest first.

    Limited by `since` to those opened later or not ended, by `before` to lower numbers, by `only`
    to one number, and by `file` to those with a file of this name (see `files_called`).
    """
    asked: dict[str, object] = {"most": most, "since": since, "ended": list(ENDED), "state": state}
    asked |= {"before": before, "only": only, "file": file}
    with connection.cursor(row_factory=class_row(BatchSummary)) as cursor:
        batches = cursor.execute(_OVERVIEW, asked).fetchall()
    standing = _standing(connection, [one.id for one in batches])
    again = Counter(row.batch_id for row in delivered_again(connection, standing))
    summaries = []
    for one in batches:
        summary = one._replace(state=State(one.state), errors=one.errors - again[one.id])
        if summary.state is State.COMPLETE_WITH_ERRORS and not summary.errors:
            summary = summary._replace(repaired=_repaired(connection, one.id))
        summaries.append(summary)
    return summaries


def _repaired(connection: psycopg.Connection, batch_id: int) -> dict[int, int]:
    """The later batches that repaired a batch's rejects, if all are repaired."""
    later = later_attempts(connection, batch_id).values()
    if any(one.state != REPAIRED for one in later):
        return {}
    return dict(sorted(Counter(one.batch_id for one in later).items()))


def _standing(connection: psycopg.Connection, batches: Collection[int]) -> list[int]:
    """Those of these batches that correct or are corrected, and were not taken back."""
    rows = connection.execute(
        f"""SELECT id FROM batch WHERE state NOT IN ({listed(TAKEN_BACK)}) AND id IN (
            SELECT id FROM batch WHERE id = ANY(%(some)s) AND corrects IS NOT NULL
            UNION SELECT corrects FROM batch WHERE corrects = ANY(%(some)s))""",
        {"some": [*batches]},
    ).fetchall()
    return [batch_id for (batch_id,) in rows]


def taken_back(connection: psycopg.Connection, content_id: str) -> list[bool]:
    """For each batch that had this content, oldest first: whether it no longer has it.

    It was undone or discarded, or ended without a file because its manifest does not fit it.
    """
    rows = connection.execute(
        f"SELECT state IN ({listed(TAKEN_BACK)}) OR {REFUSED_AS_STATED} FROM batch b "
        "WHERE content_id = %s ORDER BY id",
        [content_id],
    ).fetchall()
    return [bool(one) for (one,) in rows]


_APPLIED = f"b.state IN ({listed(IN_DATABASE)})"
"""SQL for whether a batch `b` has taken its files; a held one may still be discarded."""
_TAKEN = f"""SELECT FROM extract taken JOIN batch b ON b.id = taken.batch_id
    WHERE taken.refused IS NULL AND {_APPLIED}
    AND (e.tenant IS NULL OR coalesce(b.profile::json ->> 'tenant', e.tenant) = e.tenant)"""


def called(name: str) -> str:
    r"""SQL for the name of a file without folders, archives and compression suffix."""
    return rf"regexp_replace({name}, '^.*/|\.(gz|zst|xz|bz2)$', '', 'gi')"


_CALLED = f"(e.name = %(file)s OR {called('e.name')} = %(file)s)"


def files_called(
    connection: psycopg.Connection, batches: Iterable[int], file: str
) -> dict[int, list[str]]:
    """By batch, the files of this name, in full or without folders, archives and compression.

    Names under which bytes came again count too.
    """
    found: dict[int, list[str]] = {}
    for batch, name in connection.execute(
        f"SELECT e.batch_id, e.name FROM {FILE_NAMES} e WHERE e.batch_id = ANY(%(batches)s) "
        f"AND {_CALLED} ORDER BY e.batch_id, e.id",
        {"batches": list(batches), "file": file},
    ):
        found.setdefault(batch, []).append(name)
    return found


_TO_DELIVER = f"""
    refusing AS MATERIALIZED (
        SELECT batch_id, sha256 FROM extract
        WHERE refused IS NOT NULL AND batch_id IN (SELECT id FROM shown)
    ), alike AS MATERIALIZED (
        SELECT batch_id FROM refusing UNION SELECT t.batch_id
        FROM refusing JOIN extract t USING (sha256) WHERE t.refused IS NOT NULL
    ), named AS MATERIALIZED (
        SELECT e.id, e.batch_id, e.name, e.sha256, e.manifest, e.refused, b.feed,
            CASE WHEN e.refused IS NOT NULL THEN b.profile::json ->> 'tenant' END AS tenant,
            {called("e.name")} AS called, count(*) OVER (
                PARTITION BY e.batch_id, {called("e.name")}) = 1 AS alone
        FROM extract e JOIN batch b ON b.id = e.batch_id
        WHERE e.batch_id IN (SELECT batch_id FROM alike)
    ), correcting AS (
        SELECT own.id AS own, own.corrects AS with_it, b.id
        FROM batch own JOIN batch b ON b.id > own.id AND b.corrects IN (own.id, own.corrects)
        WHERE own.id IN (SELECT batch_id FROM named)
        UNION SELECT own, with_it, b.id
        FROM batch b JOIN correcting c ON b.corrects = c.id AND b.id > c.id
    ), came AS MATERIALIZED (
        SELECT DISTINCT own, b.feed, name_of.name, {called("name_of.name")} AS called
        FROM correcting JOIN batch b USING (id) JOIN extract taken ON taken.batch_id = b.id,
            unnest(ARRAY[taken.name, substring(taken.name FROM '(?i)^.*?[.]zip(?=/)')])
                AS name_of (name)
        WHERE taken.refused IS NULL AND {_APPLIED} AND name_of.name IS NOT NULL
            AND (b.corrects = with_it OR coalesce(strpos(taken.header, '"{PARENT_COLUMN}"'), 0) = 0)
    ), tried AS (
        SELECT id, batch_id, feed, tenant, coalesce(sha256, id::text) AS content, NOT EXISTS (
                {_TAKEN} AND taken.sha256 = e.sha256 AND (b.feed = e.feed OR b.id > e.batch_id))
            AND NOT EXISTS ({_TAKEN} AND e.sha256 IS NULL AND taken.name = e.name
                AND b.feed = e.feed AND b.id > e.batch_id AND {IS_STATED_SAME.format("taken")})
            AND ((batch_id, feed, name) IN (SELECT own, feed, name FROM came)) IS NOT TRUE
            AND (alone AND (batch_id, feed, called) IN (SELECT own, feed, called FROM came))
                IS NOT TRUE AS waits
        FROM named e WHERE refused IS NOT NULL
    ), to_deliver AS (
        SELECT id, batch_id FROM (
            SELECT *, bool_and(waits) OVER (PARTITION BY feed, tenant, content) AS all_wait
            FROM tried) e
        WHERE all_wait AND batch_id IN (SELECT id FROM shown)
    )"""
"""The refused files of the batches `shown` whose content nobody has applied since.

Content that only another feed had before does not count: it was delivered to both. Nor does content
taken by a batch bound to another tenant, which leaves out this tenant's rows. A file of the same
name does count in a delivery that corrects the batch, or that comes after the batch and corrects
the same one; the last part of the name will do if no other file of the batch has it. But a file
that names the rows it repairs does not count for the batch that has these rows. An absent file has
also come with a file of its name of which the manifest says the same; an unreadable archive has
come with any of its files. Content refused several times has come once it is taken once, since it
cannot be taken twice. Part of a WITH RECURSIVE; each file is looked at once.
"""


def files_to_deliver(connection: psycopg.Connection, batches: Iterable[int]) -> list[Extract]:
    """The refused files of these batches that were not taken since."""
    with connection.cursor(row_factory=class_row(Extract)) as cursor:
        return cursor.execute(
            f"WITH RECURSIVE shown AS (SELECT unnest(%s::int[]) AS id), {_TO_DELIVER} "
            "SELECT e.* FROM extract e JOIN to_deliver USING (id, batch_id) ORDER BY e.id",
            [list(batches)],
        ).fetchall()


def delivered_again_in(
    connection: psycopg.Connection, files: Iterable[tuple[int, str]], batches: Iterable[int]
) -> set[tuple[int, str]]:
    """Those of these files, by batch and name, whose content one of these batches has too."""
    if not (files := [*files]):
        return set()
    of, names = zip(*files, strict=True)
    rows = connection.execute(
        "SELECT e.batch_id, e.name FROM extract e JOIN unnest(%s::int[], %s::text[]) "
        "AS asked (batch_id, name) USING (batch_id, name) WHERE EXISTS (SELECT FROM extract o "
        "WHERE o.sha256 = e.sha256 AND o.batch_id <> e.batch_id AND o.batch_id = ANY(%s))",
        [list(of), list(names), list(batches)],
    )
    return {*rows.fetchall()}


COUNTED = f"""{_TO_DELIVER}, files AS (
        SELECT e.batch_id, count(*) AS files, count(e.refused) AS refused,
            count(d.id) AS to_deliver
        FROM extract e LEFT JOIN to_deliver d ON d.id = e.id
        WHERE e.batch_id IN (SELECT id FROM shown) GROUP BY 1
    ), staged AS (
        SELECT batch_id, sum(value::bigint) AS rows,
            sum(value::bigint) FILTER (WHERE key = 'rejected') AS rejected
        FROM receipt, json_each_text(counts::json)
        WHERE stage = 'stage' AND batch_id IN (SELECT id FROM shown) GROUP BY 1
    ), told AS (
        SELECT batch_id, count(*) FILTER (WHERE verdict IN ('rejected', 'conflict'))
            - count(*) FILTER (WHERE verdict = 'corrected') AS errors
        FROM outcome WHERE {in_batches("outcome", "ARRAY(SELECT id FROM shown)")} GROUP BY 1
    ), sent AS (
        SELECT batch_id, json_object_agg(state, rows) AS states,
            coalesce(sum(rows) FILTER (WHERE state IN ('unsent', 'sending')), 0) AS waiting,
            coalesce(sum(rows) FILTER (WHERE state IN ('refused', 'differs', 'in_doubt')), 0)
                AS undecided
        FROM (
            SELECT batch_id, state, count(*) AS rows FROM send
            WHERE batch_id IN (SELECT id FROM shown WHERE service IS NOT NULL) GROUP BY 1, 2
        ) counted GROUP BY 1
    )"""
"""What the batches of a query `shown` hold, each counted separately; the rest of a WITH RECURSIVE.

Only this query decides what is left to do about a batch: lists show it, and housekeeping keeps what
it needs.
"""

_OVERVIEW = f"""
    WITH RECURSIVE shown AS (
        SELECT * FROM batch b WHERE (%(since)s::timestamptz IS NULL
            OR opened_at >= %(since)s OR state <> ALL(%(ended)s))
            AND (%(state)s::text IS NULL OR state = %(state)s)
            AND (%(before)s::int IS NULL OR id < %(before)s)
            AND (%(only)s::int IS NULL OR id = %(only)s)
            AND (%(file)s::text IS NULL OR id IN (
                SELECT e.batch_id FROM {FILE_NAMES} e WHERE {_CALLED}))
            AND ((SELECT {SCHEMA}.sees_all()) OR {BATCH_SEEN})
        ORDER BY id DESC LIMIT %(most)s
    ), {COUNTED}
    SELECT b.id, b.feed, b.state, b.opened_at, coalesce(f.files, 0) AS files,
        coalesce(f.refused, 0) AS refused, coalesce(s.rows, 0)::bigint AS rows,
        (coalesce(s.rejected, 0) + coalesce(t.errors, 0) + coalesce(u.undecided, 0))::bigint
            AS errors, coalesce(u.states, '{{}}') AS at_service, b.held_because,
        coalesce(f.to_deliver, 0) AS to_deliver, b.corrects
    FROM shown b LEFT JOIN files f ON f.batch_id = b.id LEFT JOIN staged s ON s.batch_id = b.id
    LEFT JOIN told t ON t.batch_id = b.id LEFT JOIN sent u ON u.batch_id = b.id
    ORDER BY b.id DESC"""
