"""Feed profiles: what one sender's files are like, one small TOML file per feed."""

import hashlib
import json
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from difflib import get_close_matches
from itertools import chain
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from connectors.errors import ProfileError
from connectors.extracts.content import canonical_encoding, contains_ascii, shown
from schemas.tables import EXTRACTS

THOUSANDS = (".", ",", " ", "'", "\N{NO-BREAK SPACE}", "\N{NARROW NO-BREAK SPACE}")
UTF16 = ("utf-16", "utf-16-le", "utf-16-be")


@dataclass(frozen=True, slots=True)
class Profile:
    """How one feed writes its extracts; every default is what the document's own form needs."""

    feed: str = "default"
    record: str | None = None
    """Name of the record kind; None: recognised by the header."""
    delimiter: str | None = None
    """None: recognised by the header."""
    quote: str = '"'
    encoding: str | None = None
    decimal: str = "."
    thousands: str | None = None
    date_format: str | None = None
    """As of `datetime.strptime`; None: ISO 8601."""
    offset: str | None = None
    """What a time without offset means: `+01:00` or `Z`."""
    zone: str | None = None
    """What a time without offset means: an IANA zone."""
    null: tuple[str, ...] = ("",)
    """Texts that stand for no value, in quotes or not; the default alone leaves `""` a text."""
    unknown_columns: str = "refuse"
    tenant: int | None = None
    """The one tenant the batch may write."""
    inner_record: str | None = None
    """Kind of the records inside insert-batch data."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """Our field by their column name."""
    constants: Mapping[str, str] = field(default_factory=dict)
    """Fields the sender does not deliver, with their text in every row."""
    duplicate: str = "conflict"
    reference: str = "flag"
    budget_errors: int | None = None
    """Rejected rows above which the batch is held; None: no limit."""
    budget_rate: float | None = None
    """Rejected share of the rows, 0 to 1, above which the batch is held; None: no limit."""
    push: bool = False
    """Whether what is applied goes on to the service."""
    keep: str = "text"
    """What of a clean row's text is kept in the database: `text`, or a `reference` to the file."""
    compare_only: bool = False
    """Rows are kept as they are to be compared: nothing is applied, no record is unwrapped."""

    @property
    def hash(self) -> str:
        """Identity of the rules: the same whatever the file's spelling, order and comments."""
        rules = {
            name: value
            for name, value in asdict(self).items()
            if name not in _LATER or value != _LATER[name]
        }
        text = json.dumps(rules, sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()


_LATER = {"push": False, "compare_only": False, "keep": "text"}
"""Rules that older profiles know nothing of: unset, they leave the hash as it was."""
DEFAULT = Profile()


def load_profile(path: Path) -> Profile:
    """The profile in `path`; ProfileError names the file, the key and what is allowed."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ProfileError(f"{path}: cannot be read: {error.strerror}.") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ProfileError(f"{path}: is not TOML: {error}.") from error
    try:
        return read_profile(document)
    except ProfileError as error:
        raise ProfileError(f"{path}: {error}") from error


def read_profile(document: Mapping[str, Any]) -> Profile:
    """The profile a TOML document states; ProfileError names the key and what is allowed."""
    if "feed" not in document:
        raise ProfileError('feed is missing. Name the feed: feed = "bank-x".')
    values: dict[str, Any] = {}
    for key, value in document.items():
        if key in SECTIONS:
            readers = SECTIONS[key]
            for inner, inner_value in _table(key, value).items():
                name, reader = _known(f"{key}.{inner}", inner, readers)
                values[name] = reader(f"{key}.{inner}", inner_value)
        else:
            name, reader = _known(key, key, KEYS, also=SECTIONS)
            values[name] = reader(key, value)
    profile = Profile(**values)
    _check_together(profile)
    return profile


def with_terms(profile: Profile, terms: Mapping[str, Any]) -> Profile:
    """The profile with what is stated for one delivery; None is not stated. Raises ProfileError."""
    given = {name: value for name, value in terms.items() if value is not None}
    readers = dict(chain(KEYS.values(), *(section.values() for section in SECTIONS.values())))
    return replace(profile, **{name: readers[name](name, value) for name, value in given.items()})


def _check_together(profile: Profile) -> None:
    if profile.offset and profile.zone:
        raise ProfileError("offset and zone both say what a time without offset means. Keep one.")
    if profile.thousands == profile.decimal:
        raise ProfileError(f"thousands and decimal are both {profile.decimal!r}. They must differ.")
    if profile.delimiter == profile.quote:
        raise ProfileError(f"delimiter and quote are both {profile.quote!r}. They must differ.")
    if profile.inner_record and profile.record not in {None, "insert_batch_data"}:
        raise ProfileError(
            f"inner_record is for record insert_batch_data, not for {profile.record}. "
            "Take one of them out."
        )
    fields = _fields(profile.record)
    for section, names in (
        ("columns", profile.columns.values()),
        ("constants", profile.constants),
    ):
        for name in names:
            _choice(section, name, fields, f"a field of {profile.record or 'any record'}")
    both = set(profile.columns.values()) & set(profile.constants)
    if both:
        raise ProfileError(
            f"constants.{min(both)} is also the target of a column. "
            "A field is delivered or constant; keep one."
        )
    folded = [theirs.strip().casefold() for theirs in profile.columns]
    if len(set(folded)) != len(folded):
        raise ProfileError("columns names a column twice (case and blanks around do not count).")


def _fields(record: str | None) -> tuple[str, ...]:
    if record:
        return EXTRACTS[record].columns
    return tuple(dict.fromkeys(chain(*(table.columns for table in EXTRACTS.values()))))


Reader = Callable[[str, Any], Any]


def _known(
    shown_key: str,
    key: str,
    readers: Mapping[str, tuple[str, Reader]],
    also: Mapping[str, Any] | None = None,
) -> tuple[str, Reader]:
    allowed = (*readers, *(also or {}))
    if key not in readers:
        raise ProfileError(f"{shown(shown_key)} is not a key. {_suggestion(key, allowed)}")
    return readers[key]


def _choice(key: str, value: str, allowed: tuple[str, ...], what: str) -> str:
    if value not in allowed:
        raise ProfileError(
            f"{key} names {shown(value)!r}, not {what}. {_suggestion(value, allowed)}"
        )
    return value


def _suggestion(value: str, allowed: tuple[str, ...]) -> str:
    folded = {name.casefold(): name for name in allowed}
    close = get_close_matches(value.casefold(), folded, n=1)
    guess = f"Did you mean {folded[close[0]]}? " if close else ""
    return f"{guess}Allowed: {', '.join(allowed)}."


def _typed(key: str, value: object, kind: type, what: str) -> Any:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise ProfileError(f"{key} = {shown(str(value))!r} is not {what}.")
    return value


def _text(key: str, value: object) -> str:
    text: str = _typed(key, value, str, "a text in quotes")
    return text


def _table(key: str, value: object) -> dict[str, Any]:
    table: dict[str, Any] = _typed(key, value, dict, f"a section; write [{key}]")
    return table


def _one_of(*allowed: str) -> Reader:
    return lambda key, value: _choice(key, _text(key, value), allowed, "an allowed value")


def _feed(key: str, value: object) -> str:
    text = _text(key, value)
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", text):
        raise ProfileError(
            f"{key} = {shown(text)!r} is not a name. Use up to 64 letters, digits, dots, dashes "
            "and underscores, a letter or digit first."
        )
    return text


def _record(key: str, value: object) -> str:
    return _choice(key, _text(key, value), tuple(EXTRACTS), "a record kind")


def _sign(key: str, value: object) -> str:
    text = _text(key, value)
    if len(text) != 1 or not text.isascii() or text.isalnum() or text in "\r\n\0+-.":
        raise ProfileError(
            f"{key} = {shown(text)!r} is not one ASCII sign. Allowed: a single character that is "
            'no letter, digit, line end, point, plus or minus; "\\t" is the tab.'
        )
    return text


def _encoding(key: str, value: object) -> str:
    text = _text(key, value)
    try:
        name = canonical_encoding(text)
        usable = name in UTF16 or contains_ascii(name)
    except (LookupError, ValueError):
        usable = False
    if not usable:
        raise ProfileError(
            f"{key} = {shown(text)!r} cannot be read. Allowed: utf-8, utf-16, and encodings of one "
            "byte a character that contain ASCII, such as cp1252, iso8859-15, cp850 or koi8-r."
        )
    return name


def _date_format(key: str, value: object) -> str:
    text = _text(key, value)
    moment = datetime(2031, 12, 30, 23, 58, 57, tzinfo=UTC)
    try:
        read = datetime.strptime(moment.strftime(text), text)  # noqa: DTZ007
    except ValueError as error:
        raise ProfileError(f"{key} = {shown(text)!r} is no date format: {error}.") from error
    if read.date() != moment.date():
        raise ProfileError(f"{key} = {shown(text)!r} does not give day, month and year.")
    if "%I" in text and "%p" not in text:
        raise ProfileError(f"{key} = {shown(text)!r} does not tell morning from evening; add %p.")
    return text


def _offset(key: str, value: object) -> str:
    text = _text(key, value)
    if not re.fullmatch(r"Z|[+-](0\d|1[0-3]):[0-5]\d|[+-]14:00", text):
        raise ProfileError(f"{key} = {shown(text)!r} is no offset. Write +01:00, -05:30 or Z.")
    return text


def _zone(key: str, value: object) -> str:
    text = _text(key, value)
    try:
        ZoneInfo(text)
    except (OSError, ValueError, KeyError) as error:
        close = get_close_matches(text, available_timezones(), n=1)
        guess = f" Did you mean {close[0]}?" if close else ""
        raise ProfileError(
            f"{key} = {shown(text)!r} is no IANA time zone such as Europe/Berlin.{guess}"
        ) from error
    return text


def _nulls(key: str, value: object) -> tuple[str, ...]:
    texts = _typed(key, value, list, 'a list of texts such as ["", "NULL"]')
    return tuple(sorted({_text(key, text) for text in texts}))


def _whole(least: int, most: int) -> Reader:
    def read(key: str, value: object) -> int:
        number: int = _typed(key, value, int, "a whole number")
        if not least <= number <= most:
            raise ProfileError(f"{key} = {number} is out of range. Use {least} to {most}.")
        return number

    return read


def _flag(key: str, value: object) -> bool:
    flag: bool = _typed(key, value, bool, "true or false")
    return flag


def _rate(key: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ProfileError(f"{key} = {shown(str(value))!r} is not a share. Use 0 to 1.")
    return float(value)


def _columns(key: str, value: object) -> dict[str, str]:
    pairs = {theirs: _text(f"{key}.{theirs}", ours) for theirs, ours in _table(key, value).items()}
    if any(not theirs.strip() for theirs in pairs):
        raise ProfileError(f"{key} maps a column without a name.")
    return pairs


def _constants(key: str, value: object) -> dict[str, str]:
    return {name: _constant(f"{key}.{name}", text) for name, text in _table(key, value).items()}


def _constant(key: str, value: object) -> str:
    if isinstance(value, bool | int):
        return str(value)
    # 1.50 would lose its last digit on the way through a float.
    text: str = _typed(key, value, str, "a text in quotes, a whole number, true or false")
    return text


KEYS: dict[str, tuple[str, Reader]] = {
    "feed": ("feed", _feed),
    "record": ("record", _record),
    "delimiter": ("delimiter", _sign),
    "quote": ("quote", _sign),
    "encoding": ("encoding", _encoding),
    "decimal": ("decimal", _one_of(".", ",")),
    "thousands": ("thousands", _one_of(*THOUSANDS)),
    "date_format": ("date_format", _date_format),
    "offset": ("offset", _offset),
    "zone": ("zone", _zone),
    "null": ("null", _nulls),
    "unknown_columns": ("unknown_columns", _one_of("refuse", "ignore")),
    "tenant": ("tenant", _whole(-(2**31), 2**31 - 1)),
    "inner_record": ("inner_record", _record),
    "push": ("push", _flag),
    "compare_only": ("compare_only", _flag),
    "keep": ("keep", _one_of("text", "reference")),
    "columns": ("columns", _columns),
    "constants": ("constants", _constants),
}
"""Each top-level key with the Profile field it fills and how it is read."""

SECTIONS: dict[str, dict[str, tuple[str, Reader]]] = {
    "policy": {
        "duplicate": ("duplicate", _one_of("conflict", "last_wins")),
        "reference": ("reference", _one_of("flag", "reject")),
    },
    "budget": {
        "errors": ("budget_errors", _whole(0, 2**31 - 1)),
        "rate": ("budget_rate", _rate),
    },
}
"""Sections with keys of their own."""
