"""Figures of the report recomputed from the figures beside them.

A workbook shows each as a formula with its value; `OK` says that it equals the written figure.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple

from flows.report.reconciled.table import Cell, ReportTable, TableRow
from flows.steps.breaks.ageing import BUCKETS
from flows.steps.frames.beyond import exact_sum
from schemas.amounts import EXACT

DIGITS = 15
"""Digits of a number that every spreadsheet keeps; longer numbers are written as text."""
LEAST, MOST = Decimal("1e-307"), Decimal("9.9e307")
"""Limits of numbers in every spreadsheet; smaller and larger ones are written as text."""
CENTS = 2
"""Fewest decimals in which sums are compared; a number with more is compared in all of them."""


class Term(NamedTuple):
    row: int
    column: int
    sign: int = 1


class Check(NamedTuple):
    column: int
    """Column of the written figure, in the line of the check."""
    terms: tuple[Term, ...]
    value: Decimal
    """The exact sum of the terms."""
    holds: bool
    limit: Decimal
    """Half a unit of the last decimal of any of the numbers; smaller differences are rounding."""
    fits: bool
    """Whether a spreadsheet holds every number exactly and adds them up precisely enough."""
    counts: bool
    """Whether the figure is a count, not money."""


def survives(value: int | Decimal) -> bool:
    """Whether a spreadsheet holds the number to its last digit."""
    number = Decimal(value)
    # Normalising would round to the digits of the context first.
    digits = "".join(map(str, number.as_tuple().digits)).strip("0")
    held = number.is_finite() and len(digits) <= DIGITS
    return held and (not number or LEAST <= number.copy_abs() <= MOST)


def checks(table: ReportTable) -> list[tuple[Check, ...]]:
    """For every line of a table, a check of each figure that is a sum."""
    recompute = _CHECKS.get(table.name)
    if recompute is None:
        return [()] * len(table.rows)
    return [
        tuple(
            _check(table.rows, place, column, terms)
            for column, terms in recompute(table.rows, place)
            if terms
        )
        for place in range(len(table.rows))
    ]


def checked_columns(every: Iterable[tuple[Check, ...]]) -> list[int]:
    """The columns that have a check in any line, in order."""
    return sorted({one.column for line in every for one in line})


def _check(rows: Sequence[TableRow], place: int, column: int, terms: Iterable[Term]) -> Check:
    terms = tuple(terms)
    cells = [rows[term.row].cells[term.column] for term in terms]
    written = rows[place].cells[column]
    values = [_number(cell) for cell in cells]
    signed = [
        value if term.sign > 0 else value.copy_negate()
        for term, value in zip(terms, values, strict=True)
    ]
    total, figure = exact_sum(signed), _number(written)
    every = (*values, total, figure)
    fits = all(map(survives, every))
    limit = EXACT.scaleb(Decimal(5), -1 - max(CENTS, *map(_decimals, every)))
    return Check(
        column=column,
        terms=terms,
        value=total,
        holds=total == figure,
        limit=limit,
        fits=fits and _is_near((*signed, figure.copy_negate()), limit / 2),
        counts=isinstance(written, int),
    )


def _decimals(value: Decimal) -> int:
    exponent = EXACT.normalize(value).as_tuple().exponent if value.is_finite() else 0
    assert isinstance(exponent, int), "finite"
    return -exponent


def _is_near(values: Iterable[Decimal], most: Decimal) -> bool:
    """Whether adding the values as doubles, one by one, always stays within `most` of the sum."""
    summed, exact = 0.0, Decimal(0)
    for value in values:
        summed, exact = summed + float(value), EXACT.add(exact, value)
        if not math.isfinite(summed) or EXACT.subtract(Decimal(summed), exact).copy_abs() >= most:
            return False
    return True


def _number(cell: Cell) -> Decimal:
    return Decimal(cell) if isinstance(cell, (int, Decimal)) else Decimal(0)


Found = list[tuple[int, list[Term]]]


def _chain(rows: Sequence[TableRow], place: int) -> Found:
    """The change is this stage less the stage before it."""
    cells = rows[place].cells
    if not place or rows[place - 1].cells[:3] != cells[:3] or cells[5] is None:
        return []
    return [(5, [Term(place, 4), Term(place - 1, 4, -1)])]


def _controls(rows: Sequence[TableRow], place: int) -> Found:
    """The difference is target less extract; the residual is its unexplained part."""
    difference = [Term(place, 5), Term(place, 4, -1)]
    found = [(6, difference)]
    if rows[place].cells[8] is not None:
        found.append((8, [*difference, Term(place, 7, -1)]))
    return found


def _above(rows: Sequence[TableRow], place: int, groups: int) -> list[int]:
    """The lines of the same group above a line."""
    first = place
    while first and rows[first - 1].cells[:groups] == rows[place].cells[:groups]:
        first -= 1
    return list(range(first, place))


def _statuses(rows: Sequence[TableRow], place: int) -> Found:
    if not rows[place].total:
        return []
    return [(3, [Term(row, 3) for row in _above(rows, place, 1)])]


def _proof(rows: Sequence[TableRow], place: int) -> Found:
    """The total per target adds up the lines above; unexplained is the counted total less that."""
    if not rows[place].total:
        return []
    above = _above(rows, place, 3)
    if place + 1 == len(rows) or rows[place + 1].cells[:3] != rows[place].cells[:3]:
        return [(5, [Term(place - 1, 5), Term(place - 2, 5, -1)])] if len(above) > 1 else []
    return [(column, [Term(row, column) for row in above]) for column in (4, 5)]


def _roll_forward(rows: Sequence[TableRow], place: int) -> Found:
    """Closing adds up the lines above it; the residual is what they leave unexplained."""
    if not rows[place].total:
        return []
    above = _above(rows, place, 1)
    last = place + 1 == len(rows) or rows[place + 1].cells[:1] != rows[place].cells[:1]
    signs = {row: -1 if last and row != place - 1 else 1 for row in above}
    return [
        (column, [Term(row, column, signs[row]) for row in above])
        for column in (2, 3, 4)
        if rows[place].cells[column] is not None
    ]


def _ageing(_: Sequence[TableRow], place: int) -> Found:
    first = 3
    last = first + len(BUCKETS)
    return [(last, [Term(place, column) for column in range(first, last)])]


_CHECKS: Mapping[str, Callable[[Sequence[TableRow], int], Found]] = {
    "statuses": _statuses,
    "chain": _chain,
    "controls": _controls,
    "proof": _proof,
    "roll_forward": _roll_forward,
    "accepted_forward": _roll_forward,
    "aside_forward": _roll_forward,
    "ageing": _ageing,
}
