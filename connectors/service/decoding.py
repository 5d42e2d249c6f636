"""An answer's body: records and the ResponseStatus, read from JSON or the service's CSV."""

import codecs
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from connectors.service.connection import Reply
from connectors.service.encoding import CSV, JSON
from schemas.derived import jsv

STATUS = "ResponseStatus"
_TYPE = re.compile(r"[a-z]+/[a-z0-9.+-]{1,60}")
_CELL = re.compile(r'(?:"([^"]*+(?:""[^"]*+)*+)"|([^",\r\n]*+))(,|\r\n|\n)')


class Unreadable(Exception):
    """The body does not match its Content-Type, or its type was not asked for."""


class Ambiguous(Unreadable):
    """The body may or may not be an error: it says a thing twice, or has no known form."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise Ambiguous("JSON that names a member twice")
    return members


_decoder = json.JSONDecoder(parse_float=str, object_pairs_hook=_unique)


@dataclass(frozen=True, slots=True)
class Body:
    """A body as read."""

    records: list[Mapping[str, Any]] = field(default_factory=list)
    """By lower-case name. JSON values keep their type, fractions as texts; all CSV is text."""
    many: bool = False
    """The body is a list."""
    status: Mapping[str, Any] | None = None
    """The ResponseStatus as `read_status` gives it; None if there is none."""
    csv: bool = False
    header: Sequence[str] = ()
    """The column names of CSV, in lower case."""

    @property
    def errors(self) -> Sequence[Any]:
        """The field errors of the status: an answer with any has not done what was asked."""
        return () if self.status is None else self.status["errors"]

    @property
    def refusal(self) -> str | None:
        return refusal_in(self.status)


def refusal_in(status: Mapping[str, Any] | None) -> str | None:
    """The code or field that makes an answer of any HTTP status a refusal; None if it is none."""
    if status is None:
        return None
    fields = [error for error in status["errors"] if isinstance(error, Mapping)]
    codes = [one.get("errorcode") for one in (status, *fields)]
    names = [error.get("fieldname") for error in fields]
    named = (*codes, *(f"an error of {name}" for name in names if name))
    return next((str(one) for one in named if one), None)


def read_reply(reply: Reply) -> Body:
    """Read the body of an answer; raises Unreadable with the reason."""
    kind = _media_type(reply.headers.get("content-type", ""))
    if not reply.body:
        raise Unreadable("an empty body")
    if kind not in (CSV, JSON):
        known = kind if _TYPE.fullmatch(kind) else "unknown"
        raise Unreadable(f"a body of type {known}")
    if _is_coded(reply.headers.get("content-encoding", "")):
        raise Unreadable("a compressed body, which was not asked for")
    try:
        # The service writes no byte-order mark; one added by a gateway is not part of a name.
        text = reply.body.removeprefix(codecs.BOM_UTF8).decode()
    except UnicodeDecodeError:
        raise Unreadable("a body that is not UTF-8") from None
    return _read_csv(text) if kind == CSV else _read_json(text)


@lru_cache(maxsize=64)
def _media_type(header: str) -> str:
    """The type of a Content-Type header, in lower case; all of them if the header is repeated."""
    types = header.lower().split("\n")
    return ", ".join(sorted({one.partition(";")[0].strip() for one in types}))


@lru_cache(maxsize=64)
def _is_coded(header: str) -> bool:
    """Whether a Content-Encoding header names any coding but identity."""
    return bool({*re.split(r"[,\s]+", header.lower())} - {"", "identity"})


def read_status(value: Any) -> Mapping[str, Any] | None:
    """A ResponseStatus and each of its errors by lower-case name; None if it is empty.

    Raises Ambiguous for a value that is no ResponseStatus: it may or may not be an error.
    """
    if value is None or value == "":
        return None
    if not isinstance(value, Mapping):
        raise Ambiguous("a ResponseStatus that is no object")
    status = lowered(value)
    listed = status.get("errors")
    if not isinstance(listed, list | None):
        raise Ambiguous("a ResponseStatus whose Errors are no list")
    errors = [lowered(one) if isinstance(one, Mapping) else one for one in listed or ()]
    codes = (one.get("errorcode") for one in (status, *errors) if isinstance(one, Mapping))
    if not all(isinstance(code, str | None) for code in codes):
        raise Ambiguous("an ErrorCode that is no text")
    return {**status, "errors": errors}


def lowered(members: Mapping[str, Any]) -> dict[str, Any]:
    """The members of an object by lower-case name; raises Ambiguous if two share one."""
    found = {name.lower(): member for name, member in members.items()}
    if len(found) < len(members):
        raise Ambiguous("an object that names a member twice")
    return found


def read_cells(text: str) -> list[list[str]]:
    """The rows of the service's CSV; raises Unreadable for misplaced quotes or a cut-off end."""
    if not text.endswith("\n"):
        raise Unreadable("CSV that breaks off in a row")
    if '"' not in text:
        return [line.removesuffix("\r").split(",") for line in text[:-1].split("\n")]
    rows: list[list[str]] = [[]]
    position = 0
    while position < len(text):
        cell = _CELL.match(text, position)
        if cell is None:
            raise Unreadable("CSV with a quote out of place")
        quoted, bare, mark = cell.groups()
        rows[-1].append(bare if quoted is None else quoted.replace('""', '"'))
        if mark != ",":
            rows.append([])
        position = cell.end()
    return rows[:-1]


def _read_json(text: str) -> Body:
    try:
        tree = _decoder.decode(text)
    except (ValueError, RecursionError):
        raise Unreadable("a body that is no JSON") from None
    if text.count("[") + text.count("{") > jsv.DEEPEST and _is_deeper(tree, jsv.DEEPEST):
        # The limit of JSV cells. A walk over a deeper tree would crash the run.
        raise Unreadable(f"JSON nested deeper than {jsv.DEEPEST} levels")
    if isinstance(tree, list):
        if not all(isinstance(element, dict) for element in tree):
            raise Unreadable("a JSON list of other things than objects")
        elements = [lowered(element) for element in tree]
        statuses = [read_status(element.pop("responsestatus", None)) for element in elements]
        return Body([*elements], many=True, status=_first(statuses))
    if not isinstance(tree, dict):
        raise Unreadable("JSON that is no object")
    members = lowered(tree)
    return Body([members], status=read_status(members.pop("responsestatus", None)))


def _is_deeper(tree: Any, most: int) -> bool:
    """Whether lists and objects are nested deeper than `most` levels."""
    level = _nested_in([tree])
    for _ in range(most):
        if not level:
            return False
        level = [
            inner
            for outer in level
            for inner in _nested_in(outer.values() if isinstance(outer, dict) else outer)
        ]
    return bool(level)


def _nested_in(members: Iterable[Any]) -> list[Any]:
    return [member for member in members if isinstance(member, dict | list)]


def _read_csv(text: str) -> Body:
    header, *rows = read_cells(text)
    names = [name.lower() for name in header]
    if len(set(names)) < len(names):
        raise Ambiguous("CSV whose header names a column twice")
    if any(len(row) != len(names) for row in rows):
        raise Unreadable("CSV whose rows and header differ in length")
    records = [dict(zip(names, row, strict=True)) for row in rows]
    texts = [record.pop("responsestatus", "") for record in records]
    status = _first([read_status(_jsv(text)) for text in texts if text])
    return Body([*records], many=len(records) != 1, status=status, csv=True, header=names)


def _first(statuses: Sequence[Mapping[str, Any] | None]) -> Mapping[str, Any] | None:
    """The first status that is an error, or else the first."""
    there = [status for status in statuses if status is not None]
    wrong = (status for status in there if refusal_in(status) or status["errors"])
    return next(wrong, there[0] if there else None)


def _jsv(text: str) -> jsv.Value:
    try:
        return jsv.read(text)
    except ValueError:
        raise Ambiguous("a ResponseStatus that is no JSV") from None
