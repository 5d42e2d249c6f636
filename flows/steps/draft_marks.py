"""What stands around the digits of a column's numbers: signs, currencies, percents and words."""

import re
from collections.abc import Mapping
from typing import NamedTuple
from unicodedata import category

from schemas.cells.numbers import BLANKS
from schemas.currency_codes import is_money_alone

MINUS = "-(\N{MINUS SIGN}"
SIGNS = f"+){MINUS}"
FLAGS = ("DR", "CR", "D", "C", "S", "H", "%")
"""Words for debit and credit, and what else is no currency."""
MOST_SIGNS = 3
"""Letters or other signs of a text that may be a currency though no list has it."""
_USUAL = 2 / 3
"""The share of a column's cells that such a text has to stand in."""
_PERCENT = re.compile(rf"1[{BLANKS}]?%")
_TWO_BLANKS = re.compile(f"([{BLANKS}])[{BLANKS}]+")


class Mark(NamedTuple):
    """What stands around digits beside the sign of the number."""

    before: str
    behind: str

    @property
    def is_word(self) -> bool:
        """Whether it is nothing, or known to be something else than a currency."""
        text = f"{self.before}{self.behind}"
        return not text or text.upper() in FLAGS

    @property
    def parts(self) -> list[str]:
        """What there is of it."""
        return [part for part in self if part]


class NumberCell(NamedTuple):
    """A cell that may be a number."""

    around: str
    """The cell with 1 for its digits."""
    digits: str
    """With what stands between them."""

    @property
    def is_name(self) -> bool:
        """Whether capitals stand right before digits alone, as in the name of an account."""
        before = self.around.partition("1")[0]
        return self.digits.isdigit() and before[-1:].isalpha() and before.isupper()


def mark_of(around: str) -> Mark:
    """What stands around the 1 of a text beside the sign of the number."""
    before, _, behind = around.partition("1")
    return Mark(unsigned(before), unsigned(behind))


def currencies_of(cells: Mapping[NumberCell, int]) -> tuple[set[Mark], set[Mark]]:
    """The currencies beside the digits of a column's cells, and what may be one or may not.

    `cells` says how often each cell is there. No list has all signs: a short text may be one if it
    stands in most of the cells and no other does, and some of the numbers have decimals or groups,
    as amounts do and numbers of articles do not.
    """
    by_mark: dict[Mark, list[NumberCell]] = {}
    for cell in cells:
        if not (mark := mark_of(cell.around)).is_word:
            by_mark.setdefault(mark, []).append(cell)
    sure = {
        mark
        for mark, written in by_mark.items()
        if all(map(is_money_alone, mark.parts)) and not all(cell.is_name for cell in written)
    }
    maybe = {*by_mark} - sure
    if len(by_mark) == 1 and maybe:
        (written,) = by_mark.values()
        often = sum(cells[cell] for cell in written) >= _USUAL * sum(cells.values())
        as_amounts = any(not cell.digits.isdigit() for cell in written)
        if (
            often
            and as_amounts
            and all(_may_be_sign(part) for mark in maybe for part in mark.parts)
        ):
            return sure, maybe
    return sure, set()


def unsigned(around: str) -> str:
    """A text without the sign of a number, and blanks where that stood."""
    bare = "".join(sign for sign in around if sign not in SIGNS)
    return _TWO_BLANKS.sub(r"\1", bare).strip(BLANKS)


def is_negative(around: str) -> bool:
    """Whether what stands around the 1 says that it is below zero."""
    return any(sign in around for sign in MINUS)


def has_percent(around: str) -> bool:
    """Whether a percent sign stands behind the 1, where a profile can say what it means."""
    return _PERCENT.search(around) is not None


def bare(around: str) -> str:
    """What stands around the 1 without a currency, and without a percent sign behind it."""
    mark = mark_of(around)
    if mark.is_word:
        return _PERCENT.sub("1", around)
    before, one, behind = around.partition("1")
    if mark.before:
        before = re.sub(f"{re.escape(mark.before)}[{BLANKS}]?", "", before)
    if mark.behind:
        behind = re.sub(f"[{BLANKS}]?{re.escape(mark.behind)}", "", behind)
    return f"{before}{one}{behind}".strip(BLANKS)


def _may_be_sign(text: str) -> bool:
    """Whether a text is as short as signs of currencies are, and has no other sign in it."""
    kinds = [category(sign) for sign in text.rstrip(".")]
    letters = [kind for kind in kinds if kind[0] == "L" or kind == "Sc"]
    others = [sign for sign, kind in zip(text, kinds, strict=False) if kind[0] not in "LMS"]
    return bool(letters) and len(kinds) <= MOST_SIGNS and not {*others} - {"/", "."}
