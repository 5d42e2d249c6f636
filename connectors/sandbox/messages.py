"""One request and one response as the sandbox sees them, apart from sockets."""

from dataclasses import dataclass, field
from functools import cached_property
from urllib.parse import parse_qsl, unquote


@dataclass(frozen=True)
class ServedRequest:
    """A request with its body, read completely."""

    method: str
    target: str
    headers: dict[str, str]
    """By lower-case name; the values of a repeated header are joined by a comma."""
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
        """Query values by lower-case name; values of a repeated name are joined by a comma."""
        return fields_of(self.target.partition("?")[2])

    @cached_property
    def verb(self) -> str:
        """The method, or the one a POST overrides it with."""
        override = self.headers.get("x-http-method-override")
        return override.upper() if override and self.method == "POST" else self.method

    @property
    def content_type(self) -> str:
        """Media type of the body in lower case, without parameters; empty if there is none."""
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
    """Tells the listener to reset the connection instead of answering."""


def fields_of(text: str) -> dict[str, str]:
    """The fields of a query or a form, by lower-case name."""
    found: dict[str, str] = {}
    if not text:
        return found
    for name, value in parse_qsl(text, keep_blank_values=True):
        key = name.lower()
        found[key] = f"{found[key]},{value}" if key in found else value
    return found


def media_type(text: str) -> str:
    """A media type in lower case, without parameters."""
    return text.partition(";")[0].strip().lower()
