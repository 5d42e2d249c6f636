"""Contents that housekeeping removed, according to the audit trail; others missing were lost.

The mark `cleared_at` of an extract says when, but any role that loads may write it. It is believed
only together with the event that housekeeping writes for that content and batch before removing it,
and only until another event says that the content is kept again.
"""

from bisect import bisect_right
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from operator import itemgetter

import psycopg

from connectors.postgres.accounts import sees_part
from connectors.postgres.query import one_value
from connectors.postgres.trail import add_event, read_detail

REMOVED, KEPT_AGAIN, PUT_BACK = ("content removed", "content kept again", "kept content put back")
REMOVED_AT, LISTED_AT = "removed_at", "listed_at"
"""Keys in a removal's event: its time, by this database or by the list in the home."""
BEGINS, SWEPT, VERIFIED = "housekeeping begins", "housekeeping", "archive verified"
_LONG_AGO = datetime.min.replace(tzinfo=UTC)
ONE_BY_ONE: Mapping[str, object] = {"each_removal": REMOVED}
"""Part of the detail of these three events: since then the trail names every content removed.

Housekeeping of earlier versions only counted them.
"""


def note_removal(
    connection: psycopg.Connection, sha256: str, listed_at: datetime | None = None
) -> datetime:
    """Note that a content is about to be removed, for each batch that brought it; gives the time.

    `listed_at` is the time of a removal in the past that only the home knows of.
    """
    with connection.transaction():
        asked = "SELECT coalesce(%s, now())"
        moment: datetime = one_value(connection.execute(asked, [listed_at]))
        detail = {"sha256": sha256, LISTED_AT if listed_at else REMOVED_AT: _moment_text(moment)}
        marked = connection.execute(
            "UPDATE extract SET cleared_at = %s WHERE sha256 = %s RETURNING batch_id",
            [moment, sha256],
        ).fetchall()
        batches: list[int | None] = [*sorted({batch_id for (batch_id,) in marked})]
        for batch_id in batches or [None]:
            add_event(connection, REMOVED, batch_id=batch_id, detail=detail)
    return moment


def take_over(connection: psycopg.Connection, listed: Mapping[str, datetime]) -> list[str]:
    """Note removals that a restored database does not know of; gives the contents.

    `listed` are contents that are gone, with the times at which the home says they were removed.
    The home has these times from the database. So if the database knows a removal, its own events
    decide: the content may have been kept again since, and is lost then.
    """
    rows = connection.execute(
        "SELECT sha256, array_agg(batch_id) FROM extract WHERE sha256 = ANY(%s) "
        "GROUP BY 1 HAVING bool_or(cleared_at IS NULL) ORDER BY 1",
        [list(listed)],
    ).fetchall()
    events = connection.execute(
        "SELECT detail, at FROM event WHERE what = %s AND batch_id = ANY(%s) ORDER BY at",
        [REMOVED, [batch for _, batches in rows for batch in batches]],
    )
    known: dict[tuple[str, str | None], datetime] = {_removal_of(text): at for text, at in events}
    taken = [
        sha256
        for sha256, _ in rows
        if (sha256, _moment_text(listed[sha256])) not in known
        # An earlier version's event states no time; it was written just after the listed one.
        and listed[sha256] > known.get((sha256, None), _LONG_AGO)
    ]
    for sha256 in taken:
        note_removal(connection, sha256, listed[sha256])
    return taken


def _moment_text(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat()


def _removal_of(text: str | None) -> tuple[str, str | None]:
    """Which content was removed, and when; no two removals of a content have the same time."""
    detail = read_detail(text)
    moment = detail.get(REMOVED_AT, detail.get(LISTED_AT))
    return _content_of(text), None if moment is None else str(moment)


def contents_are_back(connection: psycopg.Connection, contents: Collection[str]) -> list[str]:
    """Note that contents are kept again, so that they count as missing if they are not there.

    Gives those that had been removed.
    """
    back = connection.execute(
        "UPDATE extract SET cleared_at = NULL WHERE sha256 = ANY(%s) AND cleared_at IS NOT NULL "
        "RETURNING sha256, batch_id",
        [list(contents)],
    ).fetchall()
    for sha256, batch_id in sorted({*back}):
        add_event(connection, KEPT_AGAIN, batch_id=batch_id, detail={"sha256": sha256})
    return sorted({sha256 for sha256, _ in back})


def removed_contents(
    connection: psycopg.Connection, contents: Collection[str] | None = None
) -> dict[str, bool]:
    """The contents, of these or of all, that housekeeping removed for every file that brought them.

    True if the trail says so for each batch; False if an earlier version may have removed the
    content, which cannot be checked. People who see only a part of the trail get False for these,
    since they cannot tell them from lost contents.
    """
    cleared = connection.execute(
        "SELECT x.sha256, array_agg(DISTINCT x.batch_id), min(x.cleared_at), max(b.opened_at) "
        "FROM extract x JOIN batch b ON b.id = x.batch_id WHERE x.sha256 IS NOT NULL "
        "AND (%(contents)s::text[] IS NULL OR x.sha256 = ANY(%(contents)s)) "
        "GROUP BY 1 HAVING bool_and(x.cleared_at IS NOT NULL)",
        {"contents": None if contents is None else list(contents)},
    ).fetchall()
    if not cleared:
        return {}
    last = _last_events(connection, {batch for _, batches, _, _ in cleared for batch in batches})
    counted: _Counted | None = None
    found = {}
    for sha256, batches, at, opened in cleared:
        if all(last.get((batch, sha256)) == REMOVED for batch in batches):
            found[sha256] = True
            continue
        counted = counted or _Counted(connection)
        if opened < at and counted.removed_at(at):
            found[sha256] = False
    return found


def expected_of(connection: psycopg.Connection, contents: Collection[str]) -> set[str]:
    """Which of these contents the archive should hold: a file brought it, nobody removed it."""
    rows = connection.execute(
        "SELECT DISTINCT sha256 FROM extract WHERE sha256 = ANY(%s)", [list(contents)]
    ).fetchall()
    brought = {sha256 for (sha256,) in rows}
    return brought - removed_contents(connection, brought).keys() if brought else brought


def _last_events(
    connection: psycopg.Connection, batches: Collection[int]
) -> dict[tuple[int, str], str]:
    """The name of the last event about each content of these batches."""
    rows = connection.execute(
        "SELECT batch_id, detail, what FROM event "
        "WHERE what = ANY(%s) AND batch_id = ANY(%s) ORDER BY id",
        [[REMOVED, KEPT_AGAIN, PUT_BACK], list(batches)],
    )
    return {(batch_id, _content_of(detail)): what for batch_id, detail, what in rows}


def _content_of(detail: str | None) -> str:
    return str(read_detail(detail).get("sha256"))


class _Counted:
    """Tells when a version that only counted removals may have removed contents."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self._sees_part = sees_part(connection)
        rows = connection.execute(
            "SELECT at, what, detail FROM event WHERE what = ANY(%s) ORDER BY at, id",
            [[BEGINS, SWEPT, VERIFIED]],
        )
        events = (
            (at, what, ONE_BY_ONE.keys() <= read_detail(detail).keys()) for at, what, detail in rows
        )
        self._looks = [
            (at, not one_by_one)
            for at, what, one_by_one in events
            if one_by_one or what != VERIFIED
        ]

    def removed_at(self, moment: datetime) -> bool:
        """Whether the last housekeeping before this time was that of an earlier version."""
        before = bisect_right(self._looks, moment, key=itemgetter(0))
        return self._sees_part or (before > 0 and self._looks[before - 1][1])
