"""One request and one response as the sandbox sees them, apart from sockets."""

from dataclasses import dataclass, field
from functools import cached_property
from urllib.parse import parse_qsl, unquote


@dataclass(frozen=True)
class ServedRequest:
    """A request whose body was read."""

    method: str
    target: str
    headers: dict[str, str]
    """By lower-case name; repeated headers are joined by a comma."""
    body: bytes = b""

    @cached_property
    def path(self) -> str:
        """The decoded path, without the query."""
        path = self.target.partition("?")[0]
        if "://" in path and not path.startswith("/"):
            path = "/" + path.split("://", 1)[1].partition("/")[2]
        return unquote(path)

    @cached_property
    def query(self) -> dict[str, str]:
        """Query values by lower-case name; a repeated name's values are joined by a comma."""
        return fields_of(self.target.partition("?")[2])

    @cached_property
    def verb(self) -> str:
        """The method, or what a POST says it stands for."""
        override = self.headers.get("x-http-method-override")
        return override.upper() if override and self.method == "POST" else self.method

    @property
    def content_type(self) -> str:
        """Media type of the body in small letters, without parameters; empty where none."""
        return media_type(self.headers.get("content-type", ""))

    @cached_property
    def cookies(self) -> dict[str, str]:
        pairs = (part.partition("=") for part in self.headers.get("cookie", "").split(";"))
        return {name.strip(): value.strip() for name, _, value in pairs if name.strip()}


@dataclass(slots=True)
class Response:
    """What is sent back; `Vary` and `Content-Length` are added on the way out."""

    status: int
    reason: str
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""
    cut_short: bool = False
    """Only half of the body is sent, then the connection ends."""


class Reset:
    """Instead of a response: the connection is reset."""


def fields_of(text: str) -> dict[str, str]:
    """The fields of a query or of a form, by lower-case name."""
    found: dict[str, str] = {}
    if not text:
        return found
    for name, value in parse_qsl(text, keep_blank_values=True):
        key = name.lower()
        found[key] = f"{found[key]},{value}" if key in found else value
    return found


def media_type(text: str) -> str:
    """A media type without parameters, in small letters."""
    return text.partition(";")[0].strip().lower()
