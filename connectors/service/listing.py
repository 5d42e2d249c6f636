"""A listing, read whole: its rows, its bytes as received, and the proof that none is missing."""

import asyncio
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any
from zoneinfo import ZoneInfo

from connectors.errors import ServiceUnusable
from connectors.service.asking import sign_in
from connectors.service.connection import Failed, Reply
from connectors.service.decoding import Body, Unreadable, read_reply
from connectors.service.host import Host
from connectors.service.pace import asked_pause
from connectors.service.times import moment_of
from schemas.cells.reading import Number, Unread, read, read_number
from schemas.counting import quantity
from schemas.derived.nested import json_text, read_nested, sound_text
from schemas.field import Field, Kind
from schemas.operations import Operation

_COUNTS = ("x-total-count", "x-total")
"""Headers in which services give the number of rows over all pages."""
_NEXT = re.compile(r';\s*rel\s*=\s*(?:"[^"]*\bnext\b|next\b)', re.IGNORECASE)
"""A Link header to another page (RFC 8288)."""
_SHOWN = 60
"""Most characters shown of such a header."""


@dataclass(frozen=True, slots=True)
class Listing:
    """What a list operation answered."""

    rows: list[dict[str, Any]]
    """By field name: int, str, bool, `Number`, `Moment`; a field without a value is left out.

    A `Moment` without offset is in the server's zone; a date alone is midnight there.
    """
    body: bytes
    sha256: str
    proof: str
    """How the end of the body is known."""


async def fetch(host: Host, operation: Operation, filters: Mapping[str, Any]) -> Listing:
    """Read a listing, several times if need be; raises ServiceUnusable if it cannot be had."""
    unknown = sorted(filters.keys() - operation.table.by_name.keys())
    if unknown or not operation.returns_list:
        raise ValueError(f"{operation.name} lists nothing by {unknown or 'any field'}")
    query = {name: _query_text(value) for name, value in filters.items() if value is not None}
    data = host.outgoing.read(operation.path, query)
    problem = host.stopped
    signed_in = False
    for attempt in count(1):
        if host.stopped:
            break
        session = host.session.cookie
        reply = await _ask(host, data)
        if isinstance(reply, Reply) and reply.status != 401:
            host.session.was_known(session)
        elif isinstance(reply, Reply) and not signed_in:
            signed_in = host.session.was_unknown(session)
            if signed_in:
                if problem := await sign_in(host, host.reader):
                    break
                data = host.outgoing.read(operation.path, query)
                reply = await _ask(host, data)
        if isinstance(reply, Reply) and reply.status == 200 and reply.proof:
            return _listing(host, operation, reply)
        problem, wait = _problem(host, operation, reply, attempt)
        if wait is None or attempt == host.settings.attempts:
            break
        await asyncio.sleep(wait)
    raise ServiceUnusable(f"{operation.name} at {operation.path} cannot be read: {problem}")


async def _ask(host: Host, data: bytes) -> Reply | Failed:
    await host.pace.turn(host.loop.time)
    reply = await host.reader.call(data, host.settings.listing_bytes)
    host.reader.drop()
    return reply


def _listing(host: Host, operation: Operation, reply: Reply) -> Listing:
    """The rows of a complete answer; an error in it or an invalid value refuses the whole."""
    where = f"{operation.name} at {operation.path} cannot be read"
    try:
        body: Body = read_reply(reply)
    except Unreadable as problem:
        raise ServiceUnusable(f"{where}: the service answered with {problem}") from None
    if body.refusal or body.errors:
        reason = host.classifier.reason(operation, reply)
        reason = reason or "with errors that name neither a code nor a field"
        raise ServiceUnusable(f"{where}: the service answered {reason}")
    if not body.csv and not body.many:
        raise ServiceUnusable(f"{where}: the service answered with one object, not a list")
    _check_names(operation, body, where)
    if part := _part(reply, len(body.records)):
        raise ServiceUnusable(
            f"{where}: the service says that this is one page of several ({part}), and "
            f"{quantity(len(body.records), 'row')} came. A listing is taken whole; have the "
            "service answer without pages"
        )
    rows = [
        _row(operation, number, record, host.outgoing.zone, where)
        for number, record in enumerate(body.records, 1)
    ]
    return Listing(rows, reply.body, hashlib.sha256(reply.body).hexdigest(), reply.proof)


def _part(reply: Reply, rows: int) -> str | None:
    """The header that says there are other than `rows` rows; None if none does."""
    for name in _COUNTS:
        for total in reply.headers.get(name, "").split():
            if total.isascii() and total.isdigit() and total.lstrip("0") != str(rows or ""):
                return f"{name}: {total[:_SHOWN]}"
    if _NEXT.search(reply.headers.get("link", "")):
        return 'link: rel="next"'
    content_range = reply.headers.get("content-range", "").strip()
    size = len(reply.body) if content_range.lower().startswith("bytes") else rows
    whole = f"0-{size - 1}/{size}" if size else "*/0"
    if content_range and content_range.partition(" ")[2].strip() != whole:
        return f"content-range: {content_range[:_SHOWN]}"
    return None


def _check_names(operation: Operation, body: Body, where: str) -> None:
    """Refuse an answer that has the form of a list but holds other records.

    CSV names every column, whether or not a row has a value in it; JSON leaves out nulls.
    """
    columns = operation.table.columns
    if body.csv:
        missing = [name for name in columns if name.lower() not in body.header]
        if missing:
            raise ServiceUnusable(
                f"{where}: the service answered with CSV whose header does not name "
                f"{', '.join(missing)}"
            )
        return
    known = {name.lower() for name in columns}
    for number, record in enumerate(body.records, 1):
        # A gateway in front of the service lists things with a name, too.
        if record and 2 * len(known & record.keys()) <= len(record):
            raise ServiceUnusable(
                f"{where}: row {number} has no more fields of {operation.response} than others"
            )


def _row(
    operation: Operation, number: int, record: Mapping[str, Any], zone: ZoneInfo, where: str
) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for field in operation.table.delivered:
        given = record.get(field.name.lower())
        if given is None or (given == "" and field.kind is not Kind.STRING):
            continue
        value = _value(field, given, zone)
        if isinstance(value, Unread):
            raise ServiceUnusable(f"{where}: {field.name} of row {number} is no {field.kind}")
        if value != "":
            row[field.name] = value
    return row


def _value(field: Field, given: Any, zone: ZoneInfo) -> Any:
    match field.kind:
        case Kind.STRING:
            return sound_text(given) if isinstance(given, str) else Unread("Text")
        case Kind.BOOLEAN if isinstance(given, bool):
            return given
        case Kind.DATETIME | Kind.DATETIME_OFFSET:
            return moment_of(field.kind, given, zone) or Unread("DateTime")
        case Kind.DOUBLE if not isinstance(given, bool):
            number: Number | Unread = read_number(str(given))
            return number
        case Kind.MAP | Kind.LIST | Kind.RECORD:
            return read_nested(field, given if isinstance(given, str) else json_text(given))
    return Unread("Text") if isinstance(given, bool) else read(field, str(given), read_nested)


def _problem(
    host: Host, operation: Operation, reply: Reply | Failed, attempt: int
) -> tuple[str, float | None]:
    """What is wrong, and the seconds before another attempt; None if another is no use."""
    wait = host.backoff.wait(attempt)
    if isinstance(reply, Failed):
        if reply.too_large:
            return f"{reply.cause}, which is RECON_SERVICE_LISTING_BYTES", None
        return reply.cause, None if reply.hopeless else wait
    problem = f"the service answered {reply.status}"
    if reply.status == 200:
        return f"{problem} and closed the connection without saying how long the body is", wait
    if 300 <= reply.status < 400:
        return f"it {host.classifier.redirect(reply)}", None
    if reason := host.classifier.reason(operation, reply):
        problem = f"{problem} ({reason})"
    if reply.status in (401, 403):
        return f"{problem}, so it refuses our credentials or their role", None
    if reply.status != 429 and reply.status < 500:
        return problem, None
    asked = asked_pause(reply.headers, host.now()) or 0.0
    if asked > host.settings.retry_after_most_seconds:
        return f"{problem} and asks for a pause of {asked:.0f} s", None
    return problem, max(wait, asked)


def _query_text(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case Number():
            return str(value.exact)
    return str(value)
