"""What went wrong with a row, in the shape of ErrorData, with every secret left out."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from connectors.service.connection import Reply
from connectors.service.encoding import Record
from schemas.field import Field, Table
from schemas.reasons import REASONS

STAGE = "push"
ECHO_DIFFERS, IN_DOUBT, REFUSED = (
    REASONS[code].code for code in ("EchoDiffers", "InDoubt", "Refused")
)
UNSENT = "Unsent"
"""Code of a row that was proved not to have been carried out; it is no reject."""
HIDDEN = "***"
MOST_ERRORS = 50
MOST_CHARACTERS = 500
MOST_META = 20
REDIRECTS = frozenset({301, 302, 303, 307, 308})
"""What sends us elsewhere; the others of the 300s say nothing of whether a row was carried out."""
SEE_OTHERS = frozenset({301, 302, 303})
"""Those of them that clients follow with a GET: they answer what may have been carried out."""
MOST_TARGET = 200
SHORT_SECRET = 4
"""A secret this short is hidden where it stands as a word of its own."""

ErrorEntry = dict[str, Any]


class Redaction:
    """Hides the secrets of a record and of ourselves in whatever the service says."""

    def __init__(self, table: Table, record: Record, secrets: Iterable[str] = ()) -> None:
        self.unquotable = table.unquotable
        self._fields = {field.name.lower() for field in table if self.unquotable}
        texts = {*unquoted_texts(table, record), *secrets} - {""}
        patterns = [_pattern(text) for text in sorted(texts, key=len, reverse=True)]
        self._secret = re.compile("|".join(patterns)) if patterns else None

    def text(self, value: object) -> str:
        """The first line of a text, without secrets, cut to `MOST_CHARACTERS`.

        Behind the first line old hosts write the .NET stack.
        """
        text = str(value)
        if self._secret is not None:
            text = self._secret.sub(HIDDEN, text)
        text = (text.strip().splitlines() or [""])[0]
        return text if len(text) <= MOST_CHARACTERS else text[: MOST_CHARACTERS - 1] + "…"

    def tree(self, value: Any) -> Any:
        """A value of an answer with every text that holds a secret blotted out."""
        match value:
            case str():
                held = self._secret is not None and self._secret.search(value)
                return HIDDEN if held else value
            case Mapping():
                return {self.tree(name): self.tree(member) for name, member in value.items()}
            case list():
                return [self.tree(element) for element in value]
        return value

    def names_secret(self, field: str) -> bool:
        """Whether it is the name of a field whose value is not shown, however it is written."""
        return field.replace(" ", "").lower() in self._fields


def unquoted_texts(table: Table, record: Record) -> Iterator[str]:
    """The texts of a record that are never shown: all, where its kind has secrets.

    A cell that was lost moves a secret into the column of another field.
    """
    if table.unquotable:
        yield from _texts([record.get(field.name) for field in table])


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
    """One of ours; `meta` is shown beside the stage."""
    told = {name: str(value) for name, value in meta.items() if value is not None}
    return {
        "ErrorCode": code,
        "FieldName": field,
        "Message": message,
        "Meta": {"stage": STAGE, **told},
    }


def differences(
    fields: Sequence[Field], sent: Record, echoed: Mapping[str, Any], hide: Redaction
) -> tuple[ErrorEntry, ...]:
    """One for every field that came back as another; none where the record has secrets."""
    told = []
    for field in fields:
        if hide.unquotable:
            message = f"'{field.name}' came back as another value than was sent."
            told.append(error_entry(ECHO_DIFFERS, message, field.name))
            continue
        given = _shown(hide.tree(sent.get(field.name)))
        shown = _shown(hide.tree(echoed.get(field.name.lower())))
        message = f"'{field.name}' was sent as {given}, answered as {shown}."
        told.append(error_entry(ECHO_DIFFERS, message, field.name, value=shown))
    return tuple(told)


def service_errors(
    status: Mapping[str, Any] | None, http_status: int, hide: Redaction
) -> tuple[ErrorEntry, ...]:
    """The field errors of a ResponseStatus, or one that says what there is; no StackTrace."""
    told = status or {"errors": ()}
    listed = told["errors"][:MOST_ERRORS]
    errors = [
        _field_error(error, http_status, hide) for error in listed if isinstance(error, Mapping)
    ]
    if errors:
        return tuple(errors)
    code = told.get("errorcode")
    if code:
        message = hide.text(told.get("message") or code)
        return (error_entry(hide.text(code), message, status=http_status),)
    message = f"The service answered {http_status} without saying why."
    return (error_entry(_code_of(http_status), message, status=http_status),)


def redirect(reply: Reply, hide: Redaction | None = None) -> str:
    """Where an answer sends us, without what could be a secret in it."""
    given = reply.headers.get("location", "").strip()
    try:
        parts = urlsplit(given)
        place = urlunsplit(
            parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="")
        )
    except ValueError:
        place = ""
    shown = "".join(mark for mark in place if mark.isprintable())[:MOST_TARGET]
    if hide is not None:
        shown = hide.text(shown)
    told = f"redirects to {shown}" if shown else "redirects without naming a target"
    return f"{told} ({reply.status}); nothing is sent there. Check RECON_SERVICE_URL"


def _field_error(error: Mapping[str, Any], http_status: int, hide: Redaction) -> ErrorEntry:
    field = hide.text(error.get("fieldname") or "")
    code = hide.text(error.get("errorcode") or _code_of(http_status))
    message = hide.text(error.get("message") or code)
    told = error_entry(code, message, field, status=http_status)
    meta = error.get("meta")
    if isinstance(meta, Mapping):
        secret = hide.names_secret(field)
        for name, value in list(meta.items())[:MOST_META]:
            hidden = secret and str(name).lower() == "propertyvalue"
            told["Meta"].setdefault(hide.text(name), HIDDEN if hidden else hide.text(value))
    return told


def _code_of(http_status: int) -> str:
    """Ours, where the service gives none."""
    if http_status in SEE_OTHERS:
        return IN_DOUBT
    if http_status in (401, 403, 429) or http_status in REDIRECTS:
        return UNSENT
    # A 2xx that has errors refuses, too.
    refuses = 200 <= http_status < 300 or (400 <= http_status < 500 and http_status != 408)
    return REFUSED if refuses else IN_DOUBT


def _shown(value: object) -> str:
    if value is None or value == "":
        return "nothing"
    text = str(value)
    return text if len(text) <= 120 else text[:119] + "…"


def _pattern(secret: str) -> str:
    escaped = re.escape(secret)
    return escaped if len(secret) >= SHORT_SECRET else rf"(?<!\w){escaped}(?!\w)"
