"""How reports write numbers and delivered text: exact, on one line, with nothing hidden."""

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
"""Shown for an empty text, as opposed to none."""
_SHORT = {"\n": r"\n", "\r": r"\r", "\t": r"\t", "\0": r"\0", "\x1b": r"\e"}


def digits(value: int | Decimal, *, signed: bool = False) -> str:
    """An exact number in groups of three digits, in no locale; money has at least two decimals.

    A number too long to read is written with powers of ten, to the last digit: 1e308 + 10.50.
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
    """Say how many more the report has than are shown; empty if there are none."""
    return f"{digits(left)} more {agree(left, 'is', 'are')} in the report." if left > 0 else ""


def _part(one: Decimal) -> str:
    return digits(one) if len(plain(one)) <= MOST_CHARACTERS else spelled(one)


def ungrouped(value: int | Decimal) -> str:
    """A number for use within text, in which the narrow blanks of groups would be spelled out."""
    return in_text(value) if isinstance(value, Decimal) else str(value)


def currency_named(currency: str, names: Mapping[str, str]) -> str:
    """`978 EUR` if the settings name the currency, else `currency 12`."""
    if not currency:
        return "no currency"
    code = names.get(currency)
    return f"{visible(currency)} {neutral(code, 20)}" if code else f"currency {visible(currency)}"


def visible(text: str) -> str:
    """Delivered text on one line, with breaks and hidden or confusable characters spelled out."""
    # Printable characters stay, except the minus sign, which looks like a hyphen.
    if text.isprintable() and MINUS not in text:
        return text
    return "".join(_spelled(character) for character in text)


def record_title(record: str | None) -> str:
    """The title of a record kind; a file that was refused early has none."""
    if record is None:
        return "record not known"
    return visible(title_of(record))


def neutral(text: str, most: int = 500) -> str:
    """Delivered text that a spreadsheet takes for text when pasted, never for a formula."""
    return _as_text(text, shortened(text, most))


def neutral_pair(one: str, other: str, most: int = 500) -> tuple[str, str]:
    """Two delivered values to compare, neutral and as a `shortened_pair`."""
    first, second = shortened_pair(one, other, most)
    return _as_text(one, first or ""), _as_text(other, second or "")


def shortened(text: str, most: int) -> str:
    """At most `most` characters, made visible; a cut text has its length behind it.

    If an error kept only the beginning of a value, its length is unknown and left out.
    """
    if len(text) <= most:
        return visible(text)
    kept = len(text) == SHOWN_CHARACTERS + len(MORE) and text.endswith(MORE)
    count = "" if kept else f" ({quantity(len(text), 'character')})"
    return f"{visible(text[:most])}...{count}"


def shortened_pair(one: str | None, other: str | None, most: int) -> tuple[str | None, str | None]:
    """Two shortened values, which start where they differ if that is beyond `most` characters.

    Where they differ only in blanks, or in the form of one letter, the difference is spelled out.
    """
    if one is None or other is None or one == other:
        return _short(one, most), _short(other, most)
    at = _alike(one, other)
    if max(len(one), len(other)) <= most and _seen(one) == _seen(other):
        rest = one[at:], other[at:]
        behind = _alike(rest[0][::-1], rest[1][::-1])
        return _spelled_within(one, at, behind), _spelled_within(other, at, behind)
    if one[:most] != other[:most]:
        return _short(one, most), _short(other, most)
    return _behind(one, at, most), _behind(other, at, most)


def _alike(one: str, other: str) -> int:
    """How many characters both texts begin with."""
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in takewhile(lambda both: both[0] == both[1], pairs))


def _seen(text: str) -> str:
    """The text as a page shows it, where a reader does not see how many blanks there are."""
    return " ".join(unicodedata.normalize("NFC", text).split())


def _spelled_within(text: str, at: int, behind: int) -> str:
    """The text with everything spelled out but its first `at` and last `behind` characters."""
    end = len(text) - behind
    return visible(text[:at]) + "".join(map(_code, text[at:end])) + visible(text[end:])


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
    # Control and format characters (which reorder text), surrogates, and unusual blanks.
    unseen = unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp", "Zs")
    if character != " " and (unseen or character == MINUS):
        return _code(character)
    return character


def _code(character: str) -> str:
    return _SHORT.get(character, f"\\u{ord(character):04x}")
