"""What a control manifest states about each file, or the refusal with place and reason."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from decimal import Decimal
from difflib import get_close_matches
from typing import Any

from connectors.errors import DeliveryError
from connectors.files.incoming.delivery import Source, open_source
from connectors.files.incoming.source_text import BROKEN
from connectors.files.incoming.stores import unreadable
from connectors.printable import shown
from schemas.cells.numbers import plain_number

MANIFEST_BYTES = 16 << 20
MOST_SIGNS = 1000
"""Most characters of a hash total and of a name under which a sum is stated."""
ALL = ""
"""The currency key of a sum that is stated without one."""

Sums = Mapping[str, Mapping[str, Decimal]]
"""Exact sums by field, then by currency as its text."""


@dataclass(frozen=True, slots=True)
class ManifestEntry:
    """What a manifest states about one file; None for what it does not state."""

    manifest: str
    """Name of the manifest, for messages."""
    rows: int | None = None
    sha256: str | None = None
    bytes: int | None = None
    sums: Sums | None = None
    hash_total: str | None = None

    @property
    def facts(self) -> tuple[object, ...]:
        """What is stated, regardless of which manifest states it."""
        return (self.rows, self.sha256, self.bytes, self.sums, self.hash_total)


def entry_text(entry: ManifestEntry) -> str:
    """An entry as JSON for the ledger."""
    return json.dumps(asdict(entry), default=str, sort_keys=True)


def read_entry(text: str) -> ManifestEntry:
    """Read what `entry_text` wrote."""
    shape = json.loads(text)
    sums = shape.pop("sums")
    if sums is not None:
        sums = {
            field: {currency: Decimal(value) for currency, value in by_currency.items()}
            for field, by_currency in sums.items()
        }
    return ManifestEntry(**shape, sums=sums)


def entries_of(source: Source) -> dict[str, ManifestEntry]:
    """A control manifest's entries by file name; raises DeliveryError if it is invalid."""
    return {name: _entry(source, name, stated) for name, stated in files_of(source).items()}


def files_of(source: Source) -> dict[str, object]:
    """The files a manifest names, with unchecked content; raises DeliveryError."""
    try:
        with open_source(source) as file:
            text = file.read(MANIFEST_BYTES + 1)
    except OSError as error:
        raise unreadable(source.location, error) from error
    except (*BROKEN, RuntimeError) as error:
        raise _unusable(source, f"it cannot be unpacked: {shown(str(error))}") from error
    if len(text) > MANIFEST_BYTES:
        raise _unusable(source, f"it is longer than {MANIFEST_BYTES} bytes")
    try:
        document = json.loads(
            text.decode("utf-8-sig"),
            parse_float=Decimal,
            parse_constant=Decimal,
            object_pairs_hook=_unique,
        )
    except ArithmeticError as error:
        raise _unusable(source, "a number in it is too large to be read") from error
    except (ValueError, RecursionError) as error:
        raise _unusable(source, shown(str(error))) from error
    files = document.get("files") if isinstance(document, dict) else None
    if not isinstance(files, dict):
        raise _unusable(source, 'it has no "files"')
    return files


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) != len(pairs):
        raise ValueError("a name is stated twice")
    return document


def _entry(source: Source, name: str, stated: object) -> ManifestEntry:
    where = f"files.{shown(name)}"
    if not isinstance(stated, dict):
        raise _unusable(source, f"{where} is not an object")
    for key in stated:
        if key not in _READERS:
            close = get_close_matches(key, _READERS, n=1)
            guess = f"; did you mean {close[0]}" if close else ""
            raise _unusable(source, f"{where}.{shown(key)} is none of {', '.join(_READERS)}{guess}")
    found = {
        key: read(source, f"{where}.{key}", stated[key])
        for key, read in _READERS.items()
        if stated.get(key) is not None
    }
    return ManifestEntry(source.name, **found)


def _count(source: Source, where: str, value: object) -> int:
    text = str(value)
    if not re.fullmatch(r"[0-9]{1,18}", text):
        raise _unusable(source, f"{where} is not a whole number: {shown(text, 60)}")
    return int(text)


def _sha256(source: Source, where: str, value: object) -> str:
    text = str(value).strip().lower()
    if not re.fullmatch(r"[0-9a-f]{64}", text):
        raise _unusable(source, f"{where} is not 64 hexadecimal digits: {shown(text, 80)}")
    return text


def _sums(source: Source, where: str, value: object) -> Sums:
    if not isinstance(value, dict):
        raise _unusable(source, f"{where} is not an object of fields")
    return {
        _name(source, where, field): _by_currency(source, f"{where}.{shown(field)}", by)
        for field, by in value.items()
    }


def _by_currency(source: Source, where: str, stated: object) -> dict[str, Decimal]:
    by = stated if isinstance(stated, dict) else {ALL: stated}
    if ALL in by and len(by) > 1:
        # It could be the sum of all rows or of the rows without a currency.
        raise _unusable(source, f"{where} has a sum of no currency beside those of currencies")
    return {
        _name(source, where, currency): _amount(source, where, amount)
        for currency, amount in by.items()
    }


def _hash_total(source: Source, where: str, value: object) -> str:
    text = str(value).strip()
    if isinstance(value, dict | list | bool) or not _can_be_kept(text):
        raise _unusable(source, f"{where} is no number and no short text: {shown(text, 60)}")
    return text


def _name(source: Source, where: str, name: str) -> str:
    """A name of a field or currency that can be compared, shown and kept in the ledger."""
    if not _can_be_kept(name):
        raise _unusable(source, f"{where} has a name that cannot be kept: {shown(name, 60)}")
    return name


def _can_be_kept(text: str) -> bool:
    """Whether a text is short and printable: no NUL, surrogate or invisible character."""
    return len(text) <= MOST_SIGNS and text.isprintable()


def _amount(source: Source, where: str, value: object) -> Decimal:
    text = str(value).strip()
    # Decimal reads more than plain numbers: digits of other scripts, underscores, NaN.
    number = None if isinstance(value, bool) else plain_number(text)
    if number is None:
        raise _unusable(source, f"{where} is not a plain decimal number: {shown(text, 60)}")
    return number


_READERS: dict[str, Callable[[Source, str, object], Any]] = {
    "rows": _count,
    "sha256": _sha256,
    "bytes": _count,
    "sums": _sums,
    "hash_total": _hash_total,
}
"""The reader of each key of an entry."""


def _unusable(source: Source, why: str) -> DeliveryError:
    return DeliveryError(
        f"{source.name}: is no control manifest: {why}. Correct it, or take it out of the "
        'delivery. Form: {"files": {"payments.csv": {"rows": 100, "sha256": "..."}}}.'
    )
