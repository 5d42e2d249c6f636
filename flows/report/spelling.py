"""How reports spell numbers and delivered text: exact, on one line, with nothing hidden."""

import unicodedata
from collections.abc import Mapping
from decimal import Decimal
from itertools import takewhile

from flows.steps.totals import plain
from schemas.amounts import MOST_CHARACTERS, addends, in_text, spelled
from schemas.cells.formulas import is_formula
from schemas.cells.reading import MORE, SHOWN_CHARACTERS
from schemas.counting import agree, quantity
from schemas.tables import title_of

NARROW = "\N{NARROW NO-BREAK SPACE}"
MINUS = "\N{MINUS SIGN}"
EMPTY = "empty text"
"""What is shown of a text that is there and has no character."""
_SHORT = {"\n": r"\n", "\r": r"\r", "\t": r"\t", "\0": r"\0", "\x1b": r"\e"}


def digits(value: int | Decimal, *, signed: bool = False) -> str:
    """A number, exact, in groups of three; money has two decimals or more, nothing has a locale.

    One that is too long to be read is told by powers of ten, to the last digit: 1e308 + 10.50.
    """
    size = Decimal(value).copy_abs()
    text = plain(size)
    if len(text) > MOST_CHARACTERS:
        text = f" {MINUS if value < 0 else '+'} ".join(map(_part, addends(size)))
    else:
        whole, _, decimals = text.partition(".")
        text = f"{int(whole):,}".replace(",", NARROW)
        if isinstance(value, Decimal):
            text += "." + decimals.ljust(2, "0")
    if value < 0:
        return MINUS + text
    return "+" + text if signed and value else text


def in_report(left: int) -> str:
    """How much more the report has than is shown; empty where it is nothing."""
    return f"{digits(left)} more {agree(left, 'is', 'are')} in the report." if left > 0 else ""


def _part(one: Decimal) -> str:
    return digits(one) if len(plain(one)) <= MOST_CHARACTERS else spelled(one)


def ungrouped(value: int | Decimal) -> str:
    """A number within text, where the narrow blanks between groups would be spelled out."""
    return in_text(value) if isinstance(value, Decimal) else str(value)


def currency_named(currency: str, names: Mapping[str, str]) -> str:
    """`978 EUR` where the settings name it, `currency 12` where they do not."""
    if not currency:
        return "no currency"
    code = names.get(currency)
    return f"{visible(currency)} {neutral(code, 20)}" if code else f"currency {visible(currency)}"


def visible(text: str) -> str:
    """Delivered text on one line: what breaks, hides, reorders or looks alike is spelled out."""
    # What is printable is itself, but for the one that only looks like a hyphen.
    if text.isprintable() and MINUS not in text:
        return text
    return "".join(_spelled(character) for character in text)


def record_title(record: str | None) -> str:
    """The name people know a record kind by; a file that was refused early has none."""
    if record is None:
        return "record not known"
    return visible(title_of(record))


def neutral(text: str, most: int = 500) -> str:
    """Delivered text that a spreadsheet it is pasted into takes for text, never for a formula."""
    return _as_text(text, shortened(text, most))


def neutral_pair(one: str, other: str, most: int = 500) -> tuple[str, str]:
    """Two delivered values that are held against each other: neutral, as a `shortened_pair`."""
    first, second = shortened_pair(one, other, most)
    return _as_text(one, first or ""), _as_text(other, second or "")


def shortened(text: str, most: int) -> str:
    """At most so many characters, made visible; what is cut is counted.

    Of the beginning that an error keeps of a value nobody knows how long that was.
    """
    if len(text) <= most:
        return visible(text)
    kept = len(text) == SHOWN_CHARACTERS + len(MORE) and text.endswith(MORE)
    count = "" if kept else f" ({quantity(len(text), 'character')})"
    return f"{visible(text[:most])}...{count}"


def shortened_pair(one: str | None, other: str | None, most: int) -> tuple[str | None, str | None]:
    """Two values, each shortened; those that begin alike for so long, from where they differ."""
    if one is None or other is None or one == other or one[:most] != other[:most]:
        return _short(one, most), _short(other, most)
    alike = takewhile(lambda both: both[0] == both[1], zip(one, other, strict=False))
    at = sum(1 for _ in alike)
    return _behind(one, at, most), _behind(other, at, most)


def _as_text(text: str, display: str) -> str:
    return "'" + display if is_formula(text) else display


def _short(text: str | None, most: int) -> str | None:
    return None if text is None else shortened(text, most)


def _behind(text: str, at: int, most: int) -> str:
    cut = "..." if len(text) > at + most else ""
    part = visible(text[at : at + most]) + cut
    return f"... from character {at + 1}: {part} ({quantity(len(text), 'character')})"


def _spelled(character: str) -> str:
    if character in _SHORT:
        return _SHORT[character]
    # Controls, formats (which reorder text), surrogates, and all that only looks like a blank.
    unseen = unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp", "Zs")
    if character != " " and (unseen or character == MINUS):
        return f"\\u{ord(character):04x}"
    return character
