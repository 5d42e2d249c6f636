"""Which operation a request is for, and in which format it is answered.

These are the documented paths and the framework's predefined ones, with its precedence.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from connectors.sandbox.messages import ServedRequest, media_type
from connectors.sandbox.options import SandboxOptions
from connectors.sandbox.rendering import Format
from schemas.operations import OPERATIONS, Operation

COMPLETED = "X-AutoBatch-Completed"
"""Header of the answer to a batch with the number of records carried out."""
AUTHENTICATE = "Authenticate"
"""Name of the framework's own operation."""
VERBS = ("GET", "POST", "PUT", "DELETE", "PATCH")
"""Verbs with a route; a predefined path takes all, to say which the operation does not have."""
SIGNING_VERBS = ("GET", "POST")
SUFFIXES = {"json": Format.JSON, "jsv": Format.JSV, "csv": Format.CSV}


class Door(Enum):
    """The kind of path by which a request came."""

    REST = "rest"
    REPLY = "reply"
    API = "api"
    AUTH = "auth"


@dataclass(frozen=True, slots=True)
class Route:
    """What the path of a request says."""

    door: Door
    operation: Operation | None = None
    """None for authentication."""
    parts: Mapping[str, str] | None = None
    """Values of the path's placeholders by field name."""
    suffix: Format | None = None
    """Format the path asks for."""
    batch: bool = False
    provider: str | None = None
    """Second part of an authentication path."""


# Without a message queue the framework carries out and answers a one-way request like any other.
_PREDEFINED = re.compile(r"/(json|jsv|csv)/(?:reply|oneway)/([^/]+)|/api/([^/]+)", re.IGNORECASE)
_AUTH = re.compile(r"/auth(?:/([^/]+))?", re.IGNORECASE)


class Routes:
    """The paths of one host."""

    def __init__(
        self, options: SandboxOptions, operations: Sequence[Operation] = OPERATIONS
    ) -> None:
        # Operations with fewer placeholders are tried first.
        tried = sorted(operations, key=lambda one: len(one.addressed))
        self._documented = [(one, _pattern(one.path)) for one in tried]
        self._by_name = {options.name_of(operation).lower(): operation for operation in operations}
        self._seen = lru_cache(maxsize=1024)(self._find)

    def find(self, verb: str, path: str) -> Route | None:
        """The route of a request; None if the service answers 404."""
        if verb not in VERBS:
            return None
        return self._seen(verb, path)

    def _find(self, verb: str, path: str) -> Route | None:
        path = path.rstrip("/")
        if predefined := _PREDEFINED.fullmatch(path):
            return self._predefined(verb, *predefined.groups())
        bare, suffix = _split_suffix(path)
        if auth := _AUTH.fullmatch(bare):
            provider = auth[1].lower() if auth[1] else None
            if verb not in SIGNING_VERBS:
                return None
            return Route(Door.AUTH, suffix=suffix, provider=provider)
        for operation, pattern in self._documented:
            match = pattern.fullmatch(bare)
            if match and verb in (operation.method, *operation.also):
                return Route(Door.REST, operation, match.groupdict(), suffix)
        return None

    def _predefined(
        self, verb: str, form: str | None, named: str | None, api: str | None
    ) -> Route | None:
        name, suffix = (named or "", SUFFIXES[form.lower()]) if form else _split_suffix(api or "")
        door = Door.REPLY if form else Door.API
        if name.lower() == AUTHENTICATE.lower() and verb in SIGNING_VERBS:
            return Route(door, None, {}, suffix or Format.JSON)
        batch = name.endswith("[]")
        operation = self._by_name.get(name.removesuffix("[]").lower())
        if operation is None or (batch and door is Door.API and verb != "POST"):
            return None
        return Route(door, operation, {}, suffix or Format.JSON, batch)


def _pattern(path: str) -> re.Pattern[str]:
    pattern = re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[^/]+)", re.escape(path))
    return re.compile(pattern, re.IGNORECASE)


def _split_suffix(path: str) -> tuple[str, Format | None]:
    bare, dot, suffix = path.rpartition(".")
    form = SUFFIXES.get(suffix.lower()) if dot and "/" not in suffix else None
    return (path, None) if form is None else (bare, form)


_PREFERRED = (
    ("text/html", Format.HTML),
    ("application/json", Format.JSON),
    # The framework prefers XML over JSV and CSV; here it is shown as a page.
    ("application/xml", Format.HTML),
    ("application/jsv", Format.JSV),
)
_FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")


def response_format(request: ServedRequest, route: Route) -> Format:
    """The suffix, then `format`, then Accept; on a predefined path `format` wins over the path."""
    wished = _named(request.query.get("format", ""))
    if route.door in (Door.REPLY, Door.API):
        return wished or route.suffix or Format.JSON
    if route.suffix or wished:
        return route.suffix or wished or Format.JSON
    return _accepted(request)


def _named(text: str) -> Format | None:
    name = text.partition(".")[0].lower()
    for mark, form in (("json", Format.JSON), ("xml", Format.HTML), ("jsv", Format.JSV)):
        if mark in name:
            return form
    return {"csv": Format.CSV, "html": Format.HTML}.get(name)


def _accepted(request: ServedRequest) -> Format:
    """The format by Accept, whose order and weights are ignored."""
    if "accept" not in request.headers:
        return Format.HTML
    accepted = [media_type(part) for part in request.headers["accept"].split(",")]
    preferred = [pair for pair in _PREFERRED if any(a.startswith(pair[0]) for a in accepted)]
    for name, form in preferred:
        if name == request.content_type:
            return form
    if preferred:
        return preferred[0][1]
    if "*/*" in accepted:
        return _of_body(request.content_type)
    return Format.CSV if any(a.startswith("text/csv") for a in accepted) else Format.HTML


def _of_body(content_type: str) -> Format:
    if content_type in _FORMS:
        return Format.HTML
    known = dict((*_PREFERRED, ("text/csv", Format.CSV)))
    return known.get(content_type, Format.HTML)
