"""What went wrong with a row, in the shape of ErrorData and with every secret left out."""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from html.entities import codepoint2name
from itertools import groupby
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from connectors.printable import printable
from connectors.service.connection import Reply
from connectors.service.encoding import Record
from schemas.field import Field, Kind, Rule, Table
from schemas.reasons import REASONS

STAGE = "push"
ECHO_DIFFERS, IN_DOUBT, REFUSED = (
    REASONS[code].code for code in ("EchoDiffers", "InDoubt", "Refused")
)
UNSENT = "Unsent"
"""Code of a row that was proved not to have been carried out; such a row is no reject."""
HIDDEN = "***"
MOST_ERRORS = 50
MOST_CHARACTERS = 500
MOST_META = 20
REDIRECTS = frozenset({301, 302, 303, 307, 308})
"""Statuses that send us elsewhere; other 3xx do not say whether a row was carried out."""
SEE_OTHERS = frozenset({301, 302, 303})
"""Redirects that clients follow with a GET: the request may have been carried out."""
MOST_TARGET = 200
SHORT_SECRET = 4
"""A secret shorter than this is hidden only as a word of its own."""

_VALIDATIONS = frozenset(Rule)
"""Codes of the API document's own validations, whose messages do not quote the value."""
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.\[\]]{0,99}")
_NUMBERS = re.compile(r"[-+0-9.:TZEe]+|/Date\([-+0-9]+\)/|[Tt]rue|[Ff]alse")
"""Numbers, times and flags as the service writes them."""
_HOST = re.compile(r"[A-Za-z0-9.-]{1,253}(?::[0-9]{1,5})?")

_ESCAPING = '"\\'
"""Marks that are doubled, or that escape another mark."""
_ESCAPED = r"\\*+"
_OTHERWISE = {" ": (r"\+",), "\n": ("n",), "\r": ("r",), "\t": ("t",)}
"""Other ways to write a mark, with or without a backslash before it."""

ErrorEntry = dict[str, Any]


class Redaction:
    """Hides the secrets of records and of this client in whatever the service says.

    If a kind of record can hold secrets, no free text of the service is shown at all: it may quote
    the record cut, escaped or encoded in any way, so that a secret in it cannot be found.
    """

    def __init__(
        self, table: Table | None, records: Iterable[Record], secrets: Iterable[str]
    ) -> None:
        """`table` of the records; None if the answer is about no record."""
        self.unquotable = table is not None and table.unquotable
        self._names = [field.name for field in table] if table else []
        self._records, self._secrets = records, secrets

    @cached_property
    def _secret(self) -> re.Pattern[str] | None:
        """Built when there is something to show: most answers say nothing."""
        own = {*self._secrets} - {""}
        # A lost cell shifts a secret into the column of another field.
        values = [
            [record.get(name) for name in self._names]
            for record in (self._records if self.unquotable else ())
        ]
        texts = {*_texts(values)}
        patterns = [(len(text), every_spelling(text)) for text in own]
        # In unquotable records only names and numbers are searched, which have one spelling.
        patterns += [(len(text), _whole_word(text, re.escape(text))) for text in texts - {"", *own}]
        longest_first = [pattern for _, pattern in sorted(patterns, reverse=True)]
        return re.compile("|".join(longest_first)) if patterns else None

    def text(self, value: object) -> str:
        """The first line of a text, without secrets, cut to `MOST_CHARACTERS`.

        After the first line old hosts write the .NET stack. Unprintable characters are escaped, so
        that no terminal obeys them and every log and database can hold the text.
        """
        text = str(value)
        if self._secret is not None:
            text = self._secret.sub(HIDDEN, text)
        text = printable((text.strip().splitlines() or [""])[0])
        return text if len(text) <= MOST_CHARACTERS else text[: MOST_CHARACTERS - 1] + "…"

    def name(self, value: object) -> str:
        """An error code or field name; for an unquotable record only what cannot be free text."""
        text = str(value)
        if not self.unquotable:
            return self.text(text)
        known = text in _VALIDATIONS or text.lower() in map(str.lower, self._names)
        return text if known or (_NAME.fullmatch(text) and not self._holds_secret(text)) else ""

    def message(self, value: object, code: str, field: str) -> str:
        """The service's message, or a message of ours for an unquotable record."""
        if not self.unquotable:
            return self.text(value)
        if code in _VALIDATIONS and field:
            return REASONS[code].message(field=field)
        return "What the service says is not shown: a record of this kind may hold a secret."

    def value(self, field: Field, value: Any) -> Any:
        """The value of an answer's field, without anything that could be a secret."""
        if self.unquotable and isinstance(value, str | list | dict):
            number = field.kind is not Kind.STRING and _NUMBERS.fullmatch(str(value))
            return self.tree(value) if number else HIDDEN
        return self.tree(value)

    def tree(self, value: Any) -> Any:
        """A value of an answer; every text in it that holds a secret is blotted out."""
        match value:
            case str():
                return HIDDEN if self._holds_secret(value) else value
            case Mapping():
                return {self.tree(name): self.tree(member) for name, member in value.items()}
            case list():
                return [self.tree(element) for element in value]
        return value

    def _holds_secret(self, text: str) -> bool:
        return self._secret is not None and self._secret.search(text) is not None


@lru_cache(maxsize=16)
def every_spelling(secret: str) -> str:
    """A pattern for a text as written in JSON, CSV, JSV, HTML and URLs, one nested in another."""
    parts: list[str] = []
    for escapes, marks in groupby(secret, lambda mark: mark in _ESCAPING):
        if escapes:
            # Doubled or escaped any number of times; possessive, so that nothing is given back. At
            # the start of a secret the last one is enough, so that a search in a text full of
            # quotes does not begin again at each of them.
            parts.append(f"(?:{'|'.join(map(_spellings, _ESCAPING))}){'++' if parts else ''}")
        else:
            parts += [_mark_pattern(mark) for mark in marks]
    return _whole_word(secret, "".join(parts).removeprefix(_ESCAPED))


def _mark_pattern(mark: str) -> str:
    plain = mark.isascii() and (mark.isalnum() or mark == "_")
    return mark if plain else f"{_ESCAPED}{_spellings(mark)}"


def _spellings(mark: str) -> str:
    number = ord(mark)
    units = mark.encode("utf-16-be", "surrogatepass").hex()
    names = [f"{codepoint2name[number]};"] if number in codepoint2name else []
    references = "|".join([*names, f"#0*{number};", f"#x0*{number:x};"])
    octets = mark.encode("utf-8", "surrogatepass")
    found = [
        "".join(rf"\\?u{units[at : at + 4]}" for at in range(0, len(units), 4)),
        rf"\\?x{number:02x}",
        f"&(?:amp;)*(?:{references})",
        "".join(f"%(?:25)*{octet:02x}" for octet in octets),
        re.escape(mark),
        *_OTHERWISE.get(mark, ()),
    ]
    return f"(?i:{'|'.join(found)})"


def _whole_word(secret: str, pattern: str) -> str:
    return pattern if len(secret) >= SHORT_SECRET else rf"(?<!\w){pattern}(?!\w)"


def _texts(value: object) -> Iterator[str]:
    match value:
        case bool() | None:
            return
        case str() | int():
            yield str(value)
        case Mapping():
            yield from _texts([*value, *value.values()])
        case list() | tuple():
            for element in value:
                yield from _texts(element)


def error_entry(code: str, message: str, field: str = "", **meta: object) -> ErrorEntry:
    """An error entry of this client; `meta` is shown beside the stage."""
    more = {name: str(value) for name, value in meta.items() if value is not None}
    return {
        "ErrorCode": code,
        "FieldName": field,
        "Message": message,
        "Meta": {"stage": STAGE, **more},
    }


def difference_errors(
    found: Iterable[tuple[Field, Any]], sent: Record, hide: Redaction
) -> tuple[ErrorEntry, ...]:
    """One entry for every field that came back with another value, quoting both values.

    No value is shown if the record may hold secrets.
    """
    entries = []
    for field, answered in found:
        if hide.unquotable:
            message = f"'{field.name}' came back as another value than was sent."
            entries.append(error_entry(ECHO_DIFFERS, message, field.name))
            continue
        given = _display(hide.tree(sent.get(field.name)))
        came = _display(hide.tree(answered))
        message = f"'{field.name}' was sent as {given}, answered as {came}."
        entries.append(error_entry(ECHO_DIFFERS, message, field.name, value=came))
    return tuple(entries)


def service_errors(
    status: Mapping[str, Any] | None, code: str, http_status: int, hide: Redaction
) -> tuple[ErrorEntry, ...]:
    """The field errors of a ResponseStatus, or one entry for the whole; no StackTrace.

    `code`, one of our own, is used where the service gives none.
    """
    stated = status or {"errors": ()}
    listed = stated["errors"][:MOST_ERRORS]
    errors = [
        _field_error(error, code, http_status, hide)
        for error in listed
        if isinstance(error, Mapping)
    ]
    if errors:
        return tuple(errors)
    if stated.get("errorcode"):
        code = hide.name(stated["errorcode"]) or code
        message = hide.message(stated.get("message") or code, code, "")
        return (error_entry(code, message, status=http_status),)
    message = f"The service answered {http_status} without saying why."
    return (error_entry(code, message, status=http_status),)


def redirect(reply: Reply, hide: Redaction) -> str:
    """Where an answer redirects us, without anything that could be a secret."""
    target = reply.headers.get("location", "").strip()
    try:
        # Before anything is cut: a part of a secret would not be recognised.
        parts = urlsplit(hide.text(target))
        host = parts.netloc.rpartition("@")[2]
        place = urlunsplit(parts._replace(netloc=host, query="", fragment=""))
        if hide.unquotable:
            place = f"{parts.scheme}://{host}" if _HOST.fullmatch(host) else ""
    except ValueError:
        place = ""
    place = "".join(mark for mark in place if mark.isprintable())[:MOST_TARGET]
    unnamed = "to a target that is not shown" if target else "without naming a target"
    answer = f"redirects to {place}" if place else f"redirects {unnamed}"
    return f"{answer} ({reply.status}); nothing is sent there. Check RECON_SERVICE_URL"


def _field_error(
    error: Mapping[str, Any], code: str, http_status: int, hide: Redaction
) -> ErrorEntry:
    field = hide.name(error.get("fieldname") or "")
    code = hide.name(error.get("errorcode") or "") or code
    message = hide.message(error.get("message") or code, code, field)
    entry = error_entry(code, message, field, status=http_status)
    meta = error.get("meta")
    if isinstance(meta, Mapping) and not hide.unquotable:
        for name, value in list(meta.items())[:MOST_META]:
            entry["Meta"].setdefault(hide.text(name), hide.text(value))
    return entry


def _display(value: object) -> str:
    if value is None or value == "":
        return "nothing"
    text = str(value)
    return text if len(text) <= 120 else text[:119] + "…"
