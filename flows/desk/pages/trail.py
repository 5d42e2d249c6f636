"""The trail: who did what, when and why; searched, proven, exported."""

import csv
import io
from collections.abc import Iterator
from datetime import date
from itertools import chain, islice

from starlette.responses import Response, StreamingResponse

from connectors.errors import SettingsError
from connectors.postgres.auditing.audit import TrailEntry, verify
from connectors.postgres.auditing.trail_search import TrailSearch, search_trail
from flows.desk.forms import LARGEST, LARGEST_ROW, read_day, read_whole, saved_as
from flows.desk.seen import refuse_ended
from flows.desk.visit import Visit
from flows.report.spelling import neutral
from flows.stages.witness_proof import check_witnesses

ON_A_PAGE = 50
EXPORTED = ("position", "id", "at", "what", "batch_id", "by", "person", "account", "reason",
            "detail", "hash")  # fmt: skip


def show(visit: Visit) -> Response:
    """The matching events, the latest first."""
    try:
        search, before = _asked(visit), _number(visit, "before")
    except ValueError as error:
        return visit.refusing(str(error)).page("trail.html.jinja", events=[], more=None)
    with visit.place.database.connect() as connection:
        events = [*search_trail(connection, search, ON_A_PAGE + 1, before)]
    more = events[ON_A_PAGE - 1].id if len(events) > ON_A_PAGE else None
    return visit.page("trail.html.jinja", events=events[:ON_A_PAGE], more=more)


def prove(visit: Visit) -> Response:
    """Compare every event with the chain, with the data it is about, and with the witnesses."""
    with visit.place.database.connect() as connection:
        proof = verify(connection)
        witnessed = check_witnesses(visit.place, connection)
    return visit.page("proof.html.jinja", proof=proof, witnessed=witnessed)


def export(visit: Visit) -> Response:
    """The matching events, as CSV that a spreadsheet takes for text."""
    try:
        search = _asked(visit)
    except ValueError as error:
        raise SettingsError(str(error)) from None
    lines = _lines(visit, search)
    return StreamingResponse(
        # The first line is read before the answer begins, so that a refusal can still be a page.
        chain([next(lines)], lines),
        media_type="text/csv; charset=utf-8",
        headers=saved_as("trail.csv"),
    )


def _lines(visit: Visit, search: TrailSearch) -> Iterator[str]:
    with visit.place.database.connect() as connection:
        events = search_trail(connection, search, None)
        first = [*islice(events, 1)]
        # Everything was found by now, so a login that ends later does not cut it short.
        refuse_ended(visit, connection)
        yield _line(EXPORTED)
        for one in chain(first, events):
            yield _line([_cell(one, name) for name in EXPORTED])


def _line(cells: object) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerow(cells)  # type: ignore[arg-type]
    return text.getvalue()


def _cell(one: TrailEntry, name: str) -> str:
    value = getattr(one, name)
    if value is None:
        return ""
    return value.isoformat() if name == "at" else neutral(str(value), 100_000)


def _asked(visit: Visit) -> TrailSearch:
    """What to search for; raises ValueError with what is wrong in it."""
    asked = visit.asked
    return TrailSearch(
        what=asked.get("what", "").strip(),
        who=asked.get("who", "").strip(),
        text=asked.get("text", "").strip(),
        batch=_number(visit, "batch", LARGEST),
        run=_number(visit, "run", LARGEST),
        since=_day(visit, "since"),
        until=_day(visit, "until"),
    )


def _number(visit: Visit, name: str, largest: int = LARGEST_ROW) -> int | None:
    text = visit.asked.get(name, "").strip()
    if not text:
        return None
    found = read_whole(text, largest)
    if found is None:
        raise ValueError(f"{text!r} is no number of a {name}.")
    return found


def _day(visit: Visit, name: str) -> date | None:
    text = visit.asked.get(name, "").strip()
    if not text:
        return None
    day = read_day(text)
    if day is None:
        raise ValueError(f"{text!r} is no day. Write it as 2026-12-31.")
    return day
