"""Faults of an operation for records of one's own, all reported at once, each with its key."""

import re
from collections.abc import Collection, Iterator

from schemas.endpoints import ENDPOINTS, PLACEHOLDER, POST, PUT, Endpoint
from schemas.field import INTEGERS, TENANT, Table
from schemas.own_checks import KeyFault

SECTION = "operation"
ENDPOINT_KEYS = ("name", "method", "path")
METHODS = (PUT, POST)
MOST_PARTS = MOST_SIGNS = 40
_PART = rf"[A-Za-z0-9_-]{{1,{MOST_SIGNS}}}|\{{[A-Za-z0-9]{{1,{MOST_SIGNS}}}\}}"
_PATH = re.compile(rf"(/({_PART})){{1,{MOST_PARTS}}}")
_STATUS = "ResponseStatus"
"""The member of every answer that holds its errors."""
_PREDEFINED = ("api", "auth", "csv", "json", "jsv", "metadata", "types", "xml")
"""First parts of the framework's own paths."""
_AUTHENTICATE = "authenticate"


class TakenOperations:
    """The names and paths already in use, and the record that uses each."""

    def __init__(self) -> None:
        self._of = {_AUTHENTICATE: "the service"}
        for one in ENDPOINTS:
            self._of |= dict.fromkeys((_name(one), _route(one)), one.request)

    def faults(self, endpoint: Endpoint) -> Iterator[KeyFault]:
        """Report a name or path that is taken, and reserve those that are free."""
        for key, one in (("name", _name(endpoint)), ("path", _route(endpoint))):
            if (of := self._of.setdefault(one, endpoint.request)) != endpoint.request:
                at = f"{SECTION}.{key}"
                yield KeyFault(at, f"= {getattr(endpoint, key)!r} is that of {of}. Find another.")


def _name(endpoint: Endpoint) -> str:
    return endpoint.name.lower()


def _route(endpoint: Endpoint) -> str:
    """The part of a request that a service routes by; placeholder names do not count."""
    return f"{endpoint.method} {PLACEHOLDER.sub('{}', endpoint.path).lower()}"


def path_faults(path: str) -> Iterator[KeyFault]:
    """Faults of a path, whatever the record."""
    at = f"{SECTION}.path"
    if not _PATH.fullmatch(path):
        yield KeyFault(
            at,
            f"= {path!r} is no path. Write one such as /refunds/{{Id}}: up to {MOST_PARTS} parts, "
            f"each with up to {MOST_SIGNS} letters, digits, _ and -.",
        )
    elif path.split("/")[1].lower() in _PREDEFINED:
        yield KeyFault(at, f"= {path!r} is one of the framework's own. Find another.")


def endpoint_faults(
    table: Table, endpoint: Endpoint, unsure: Collection[str]
) -> Iterator[KeyFault]:
    """Contradictions between a path and its record."""
    at, addressed = f"{SECTION}.path", endpoint.addressed
    for name in table.by_name:
        if name.casefold() == _STATUS.casefold():
            message = "is where the service's answer says what is wrong. Name it otherwise."
            yield KeyFault(f"fields.{name}", message)
    for name in sorted({one for one in addressed if addressed.count(one) > 1}):
        yield KeyFault(at, f"has {{{name}}} more than once.")
    for name in dict.fromkeys(addressed):
        of = table.by_name.get(name)
        if of is None or (name not in table.key and name not in unsure):
            yield KeyFault(at, f"has {{{name}}}, which is no field of the key.")
        elif of.kind not in INTEGERS and name not in unsure:
            # An empty text, or `..`, would make it another path.
            yield KeyFault(at, f"has {{{name}}}, which is no integer: others stand in no path.")
    if not endpoint.keyed:
        if addressed:
            yield KeyFault(at, f"has {{{addressed[0]}}}: a POST adds a record, and names none.")
        return
    needed = [name for name in table.key if name != TENANT] or list(table.key)
    for name in needed:
        if name not in addressed:
            message = f"lacks {{{name}}}: a PUT replaces the record with the key that its path has."
            yield KeyFault(at, message)
