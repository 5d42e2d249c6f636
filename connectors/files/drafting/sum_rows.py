"""Rows that may be sums or balances of others; as records they would count money twice.

They are recognised by the beginning of a cell, or by an amount that is the sum of rows above.
"""

import re
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from operator import itemgetter
from typing import NamedTuple

from connectors.files.drafting.line_kinds import LineKind
from connectors.files.drafting.text_records import QUOTE, TextRecord
from connectors.files.text.linear_patterns import as_series, fitting, literal

FEWEST = 3
"""Fewest rows whose sum marks a row without a telling word."""
_WORD = re.compile(
    r"\W*((?:(?:grand|sub|net|page)\W*)?totals?|totale|totaal|(?:gesamt|zwischen|end)?summen?|"
    r"summa|sum[as]?|somm[ae]|gesamt|saldo|solde|balance|razem|celkem|összesen|итого|всего)"
    r"(?![-_/.]?[^\W_])|\W*(合計|合计|小計|小计|総計|总计)",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"[^\w.,]*(?:[^\W\d]{1,3}\s)?[^\w.,]*([0-9][0-9.,'\s]*)[^\d.,]{0,6}")
_BELOW_ZERO = re.compile("[-(\N{MINUS SIGN}]")
_NOT_OF_NUMBER = {decimal: re.compile(f"[^0-9{decimal}]") for decimal in ".,"}
_LONGEST = 40
"""Longest cell that may be a number."""
_USUAL = 2 / 3
"""Share of numbers among the cells of a column that makes it a column of numbers."""


class SumRow(NamedTuple):
    """A row that may be no record."""

    record: TextRecord
    rows: int
    """How many rows above add up to its number; 0 if only a word tells."""
    place: int
    """Index of the column with that sum."""
    ends: bool
    """Whether no ordinary row comes below."""


def sum_rows(rows: Sequence[TextRecord]) -> tuple[SumRow, ...]:
    """The rows that may be sums of others; all given rows have the same width."""
    worded = _worded(rows)
    sums: dict[int, tuple[int, int]] = {}
    for place, column in enumerate(zip(*(row.cells for row in rows), strict=True)):
        numbers = [_NUMBER.fullmatch(cell) if len(cell) <= _LONGEST else None for cell in column]
        read = sum(found is not None for found in numbers)
        if not read or read < _USUAL * sum(bool(cell.strip()) for cell in column):
            continue
        text = "".join(found[1] for found in numbers if found)
        for decimal in [sign for sign in ".," if sign in text] or ["."]:
            for at, count in _sums(numbers, decimal, worded).items():
                sums.setdefault(at, (count, place))
    found = sorted({*worded, *sums})
    last = max({*range(len(rows))} - {*found}, default=-1)
    return tuple(SumRow(rows[at], *sums.get(at, (0, 0)), ends=at > last) for at in found)


def sum_kinds(sums: Sequence[SumRow], rows: Sequence[TextRecord]) -> tuple[LineKind, ...]:
    """Kinds of sum rows by their first word, if some are between rows and none match other rows."""
    by_word: dict[str, list[SumRow]] = {}
    for one in sums:
        if word := _WORD.match(one.record.text.removeprefix(QUOTE)):
            by_word.setdefault(word[0], []).append(one)
    sum_texts = {one.record.text for one in sums}
    others = as_series([row.text for row in rows if row.text not in sum_texts])
    kinds = [
        LineKind(_pattern(word, [one.record.text for one in of]), len(of))
        for word, of in by_word.items()
        if not all(one.ends for one in of)
    ]
    return tuple(one for one in kinds if not fitting(others, [one.pattern]).any())


def _worded(rows: Sequence[TextRecord]) -> set[int]:
    """Rows with a telling word; none if most rows have one, as in a list of balances."""
    usual = max(Counter(row.filled for row in rows).items(), key=itemgetter(1), default=(0, 0))[0]
    found = {
        at
        for at, row in enumerate(rows)
        if _WORD.match(row.first_filled)
        or (row.filled < usual and any(map(_WORD.match, row.cells)))
    }
    return found if len(found) * 2 <= len(rows) else set()


def _sums(
    numbers: Sequence[re.Match[str] | None], decimal: str, worded: set[int]
) -> dict[int, int]:
    """Index of each sum and the number of rows it adds up, with this decimal sign."""
    found: dict[int, int] = {}
    part, whole = _Sum(), _Sum()
    for at, read in enumerate(numbers):
        if read is None or (number := _number(read, decimal)) is None:
            continue
        fewest = 1 if at in worded else FEWEST
        of = [one.rows for one in (part, whole) if one.total == number and one.rows >= fewest]
        # Whole numbers may count the rows: 0, 1, 2, 3.
        if of and number and (at in worded or not read[0].strip().isdigit()):
            found[at] = of[0]
        if at in worded or at in found:
            part = _Sum()
        else:
            part, whole = part.plus(number), whole.plus(number)
    return found


class _Sum(NamedTuple):
    total: Decimal = Decimal(0)
    rows: int = 0

    def plus(self, number: Decimal) -> "_Sum":
        return _Sum(self.total + number, self.rows + 1)


def _number(read: re.Match[str], decimal: str) -> Decimal | None:
    digits = _NOT_OF_NUMBER[decimal].sub("", read[1])
    if digits.count(decimal) > 1:
        return None
    number = Decimal(digits.replace(decimal, "."))
    return -number if _BELOW_ZERO.search(read[0]) else number


def _pattern(word: str, texts: Sequence[str]) -> str:
    """A pattern of lines that begin with a word and continue alike for as long as they do."""
    first, *others = (text.removeprefix(QUOTE) for text in texts)
    ends = [at for at, sign in enumerate(first) if sign == " " and at > len(word)] if others else []
    alike = (first[:at] for at in ends if all(one.startswith(first[: at + 1]) for one in others))
    begin = max(alike, key=len, default=word)
    quotes = sum(text.startswith(QUOTE) for text in texts)
    around = QUOTE if quotes == len(texts) else f"{QUOTE}?" if quotes else ""
    return f"{around}{literal(begin)}.*"
