"""How numbers are written in the cells of a column: the characters between and around digits."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar
from unicodedata import category

from schemas.cells.numbers import BLANK, BLANKS, GROUPS, LAST_GROUP
from schemas.currency_codes import is_money_alone

MINUS = "-(\N{MINUS SIGN}"
SIGNS = f"+){MINUS}"
FLAGS = ("DR", "CR", "D", "C", "S", "H", "%")
"""Words for debit and credit, and other texts that are no currency."""
MOST_SIGNS = 3
"""Most characters of a text that may be a currency although no list has it."""
_USUAL = 2 / 3
"""The share of a column's cells that must have such a text."""
_PERCENT = re.compile(rf"1[{BLANKS}]?%")
_TWO_BLANKS = re.compile(f"([{BLANKS}])[{BLANKS}]+")
_CORE = re.compile(
    rf"(?:(?<![\w.,])[.,](?=[0-9]))?[0-9](?:[0-9.,'{BLANKS}]*[0-9])?(?:[.,](?=[){BLANKS}]|\Z))?"
)
"""Digits, possibly with none before or behind the decimal sign, but not the comma of `20,-`."""
_NO_SIGN, _SIGN = r"[^-+()\N{MINUS SIGN}]*", r"[-+\N{MINUS SIGN}]?"
_SIGNED = re.compile(rf"{_NO_SIGN}(?:{_SIGN}|\({_NO_SIGN}\)){_NO_SIGN}")
"""A cell with one sign or brackets; the meaning of two signs together is unknown."""
_EXPONENT = re.compile(r"(?<![0-9.,])([0-9](?:[.,][0-9]+)?)[eE][-+][0-9]{1,2}(?![0-9])")
"""A number with a power of ten as in spreadsheets; without a sign it might be an article number."""
_PUNCHED = re.compile("[0-9]+[0-9A-R{}]")
_NUMBERS = 2 / 3
"""The share of cells that must be numbers for the column to be one of numbers."""


class Mark(NamedTuple):
    """The texts around digits, without the sign of the number."""

    before: str
    behind: str

    @property
    def is_word(self) -> bool:
        """Whether it is empty, or known to be something other than a currency."""
        text = f"{self.before}{self.behind}"
        return not text or text.upper() in FLAGS

    @property
    def parts(self) -> list[str]:
        return [part for part in self if part]


class NumberCell(NamedTuple):
    around: str
    """The cell with 1 in place of its digits."""
    digits: str
    """The digits with the characters between them."""

    @property
    def is_name(self) -> bool:
        """Whether capitals are directly before plain digits, as in the name of an account."""
        before = self.around.partition("1")[0]
        return self.digits.isdigit() and before[-1:].isalpha() and before.isupper()


class Between(NamedTuple):
    """The characters between the digits of a number."""

    decimal: str = ""
    thousands: str = ""
    either: str = ""
    """A sign that may be either of them, as in `1.234`."""
    groups: str = ""
    """The one of `GROUPS` that its digits must be in; empty if that is not certain."""


class Found(NamedTuple):
    """Cells of one kind."""

    cells: int
    example: str
    """The first of the cells."""


NONE = Found(0, "")


@dataclass(slots=True)
class NumberSigns:
    """How the numbers of some columns are written."""

    cells: int = 0
    between: dict[Between, Found] = field(default_factory=dict)
    around: dict[str, Found] = field(default_factory=dict)
    """Cells by their text with 1 in place of the digits."""
    maybe: set[Mark] = field(default_factory=set)
    """Texts around digits that may or may not be a currency."""
    others: Found = NONE
    """Cells that are not numbers."""

    @classmethod
    def of(cls, columns: Iterable["NumberSigns"]) -> "NumberSigns":
        """Combine the findings of several columns."""
        all_of = cls()
        for one in columns:
            all_of.cells += one.cells
            for between, found in one.between.items():
                _add(all_of.between, between, *found)
            for around, found in one.around.items():
                _add(all_of.around, around, *found)
            all_of.maybe |= one.maybe
        return all_of

    def add(self, cells: Iterable[str]) -> bool:
        """Add the cells of a column; return False if most of them are not numbers."""
        counts = Counter(cells)
        read = {cell: written for cell in counts if (written := _written(cell))}
        sure, maybe = currencies_of({written: counts[cell] for cell, written in read.items()})
        known = sure | maybe
        numbers = {
            cell: written
            for cell, written in read.items()
            if (mark := mark_of(written.around)).is_word or mark in known
        }
        count = sum(counts[cell] for cell in numbers)
        if not counts or count < _NUMBERS * counts.total():
            return False
        self.cells += count
        self.maybe |= maybe
        for cell in counts:
            if written := numbers.get(cell):
                _add(self.between, _between(written.digits), counts[cell], cell)
                _add(self.around, written.around, counts[cell], cell)
            else:
                before, example = self.others
                self.others = Found(before + counts[cell], example or cell)
        return True

    @property
    def decimal(self) -> set[str]:
        """Signs before decimals."""
        return {one.decimal for one in self.between} - {""}

    @property
    def thousands(self) -> set[str]:
        """Signs between groups of digits."""
        return {one.thousands for one in self.between} - {""}

    @property
    def either(self) -> set[str]:
        """Signs that may be either, as in `1.234`."""
        return {one.either for one in self.between} - {""}

    @property
    def unsure(self) -> set[str]:
        """The signs of `either` that no cell decides."""
        return set() if self.decimal else self.either - self.thousands

    @property
    def groups(self) -> set[str]:
        """Those of `GROUPS` that some of the digits must be in."""
        return {one.groups for one in self.between} - {""}

    @property
    def negative(self) -> dict[str, Found]:
        return self._examples(is_negative, bare)

    @property
    def positive(self) -> dict[str, Found]:
        return self._examples(
            lambda around: not is_negative(around) and unsigned(bare(around)) == "1", bare
        )

    @property
    def currency(self) -> dict[str, Found]:
        """Examples of numbers with a sign or code of a currency."""
        return self._examples(
            lambda around: not (mark := mark_of(around)).is_word and mark not in self.maybe,
            unsigned,
        )

    @property
    def no_currency(self) -> Found:
        return self._examples(lambda one: mark_of(one).is_word, lambda _: "").get("", NONE)

    @property
    def maybe_currency(self) -> dict[str, Found]:
        """Examples of numbers with a text that may be the sign of a currency."""
        return self._examples(lambda around: mark_of(around) in self.maybe, unsigned)

    @property
    def percent(self) -> Found:
        return self._examples(has_percent, lambda _: "").get("", NONE)

    @property
    def no_percent(self) -> Found:
        return self._examples(lambda one: not has_percent(one), lambda _: "").get("", NONE)

    @property
    def words(self) -> dict[str, Found]:
        """Texts around numbers that are neither a sign nor a currency."""

        def word(around: str) -> str:
            return unsigned(bare(around))

        return self._examples(lambda around: word(around) not in ("1", "+1"), word)

    def _examples(
        self, holds: Callable[[str], bool], bare: Callable[[str], str]
    ) -> dict[str, Found]:
        found: dict[str, Found] = {}
        for around, (count, example) in self.around.items():
            if holds(around):
                _add(found, bare(around), count, example)
        return dict(sorted(found.items()))


_Sort = TypeVar("_Sort")


def _add(found: dict[_Sort, Found], sort: _Sort, count: int, example: str) -> None:
    before, first = found.get(sort, (0, example))
    found[sort] = Found(before + count, first)


def _between(core: str) -> Between:
    if power := _EXPONENT.fullmatch(core):
        return Between("".join(sign for sign in power[1] if not sign.isdigit()))
    signs = [sign for sign in core if not sign.isdigit()]
    if not signs:
        return Between()
    (groups, *others), last = _groups(core), signs[-1]
    only = "" if others else groups
    behind = len(core) - core.rindex(last) - 1
    if signs[0] != last and _thousands(signs[0]) != _thousands(last):
        return Between(last, _thousands(signs[0]), groups=only)
    if len(signs) > 1 or last not in ".,":
        return Between(thousands=_thousands(last), groups=only)
    before = len(core) - behind - 1
    if behind == LAST_GROUP and 0 < before <= max(GROUPS.values()) and not core.startswith("0"):
        return Between(either=last)
    return Between(last)


def _written(cell: str) -> NumberCell | None:
    """A cell that is a number, if the texts around its digits may be; None for any other cell."""
    if power := _EXPONENT.search(cell):
        before, behind = cell[: power.start()], cell[power.end() :]
        bare = _written(f"{before}1{behind}")
        return bare and NumberCell(bare.around, power[0])
    core = _CORE.search(cell)
    if not core or not _groups(core[0]) or not _SIGNED.fullmatch(cell):
        return None
    before, behind = cell[: core.start()], cell[core.end() :]
    return None if any(map(str.isdigit, behind)) else NumberCell(f"{before}1{behind}", core[0])


def _groups(core: str) -> list[str]:
    """Those of `GROUPS` that the digits may be in; the last sign may be that of decimals."""
    first, *groups = re.split("[^0-9]", core)
    signs = [sign for sign in core if not sign.isdigit()]
    if signs and signs[-1] in ".," and signs.count(signs[-1]) == 1:
        groups.pop()
        signs.pop()
    if not groups:
        return [*GROUPS]
    if not first:
        return []
    alike = len({_thousands(sign) for sign in signs}) == 1
    # Digits in other groups or with other signs are telephone numbers.
    return [
        name
        for name, size in GROUPS.items()
        if alike and (size == LAST_GROUP or signs[0] == ",")
        if len(first) <= size and len(groups[-1]) == LAST_GROUP
        if all(len(group) == size for group in groups[:-1])
    ]


def _thousands(sign: str) -> str:
    return BLANK if sign in BLANKS else sign


def mark_of(around: str) -> Mark:
    """The texts around the 1, without the sign of the number."""
    before, _, behind = around.partition("1")
    return Mark(unsigned(before), unsigned(behind))


def currencies_of(cells: Mapping[NumberCell, int]) -> tuple[set[Mark], set[Mark]]:
    """The currencies beside the digits of a column's cells, and texts that may be currencies.

    `cells` has the number of times each cell occurs. No list has all signs of currencies: a short
    text may be one if most cells have it and none has another, and if some of the numbers have
    decimals or groups, which amounts have and article numbers have not.
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
        short = all(_may_be_sign(part) for mark in maybe for part in mark.parts)
        if often and as_amounts and short:
            return sure, maybe
    return sure, set()


def unsigned(around: str) -> str:
    """A text without the sign of a number and the blanks around that."""
    bare = "".join(sign for sign in around if sign not in SIGNS)
    return _TWO_BLANKS.sub(r"\1", bare).strip(BLANKS)


def is_negative(around: str) -> bool:
    return any(sign in around for sign in MINUS)


def has_percent(around: str) -> bool:
    """Whether a percent sign follows the 1, where a profile can state its meaning."""
    return _PERCENT.search(around) is not None


def bare(around: str) -> str:
    """The text without a currency, and without a percent sign behind the 1."""
    mark = mark_of(around)
    if mark.is_word:
        return _PERCENT.sub("1", around)
    before, one, behind = around.partition("1")
    if mark.before:
        before = re.sub(f"{re.escape(mark.before)}[{BLANKS}]?", "", before)
    if mark.behind:
        behind = re.sub(f"[{BLANKS}]?{re.escape(mark.behind)}", "", behind)
    return f"{before}{one}{behind}".strip(BLANKS)


def may_be_overpunched(cells: Collection[str]) -> bool:
    """Whether the last digit of each cell may also hold the sign, and these last digits differ."""
    signs = {cell[-1:] for cell in cells} - {*"0123456789"}
    return len(signs) > 1 and all(map(_PUNCHED.fullmatch, cells))


def _may_be_sign(text: str) -> bool:
    """Whether a text is short enough for the sign of a currency and has no other characters."""
    kinds = [category(sign) for sign in text.rstrip(".")]
    letters = [kind for kind in kinds if kind[0] == "L" or kind == "Sc"]
    others = [sign for sign, kind in zip(text, kinds, strict=False) if kind[0] not in "LMS"]
    return bool(letters) and len(kinds) <= MOST_SIGNS and not {*others} - {"/", "."}
