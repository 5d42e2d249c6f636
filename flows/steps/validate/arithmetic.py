"""Amounts summed over several columns: exact decimals, and no number if any column has none."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

import polars as pl

from schemas.amounts import EXACT, MICRO_DIGITS, MILLIONTHS
from schemas.cells.numbers import AROUND, exact_number
from schemas.cells.reading import MORE, UNFIT, Number, read_number
from schemas.millionths import millionths_of, scale_of, written_out

_UNITS, _MINUS = "units", "-"
_FEW_ZEROS = f"^10{{0,{MICRO_DIGITS}}}$"
_QUOTED = 20
"""Most characters of a cell in the reason that it is no number."""


@dataclass(frozen=True, slots=True)
class ColumnSum:
    added: int
    """How many columns are added up; the columns behind these are subtracted."""
    scale: Decimal = Decimal(1)
    """Factor of the sum."""
    one_filled: bool = False
    """Whether at most one of the columns may have a number that is not zero."""
    signed: bool = False
    """Whether the number of units may be negative, which turns the sign of the sum."""

    def of(
        self,
        plain: Sequence[pl.Expr],
        given: Sequence[pl.Expr],
        form: str,
        units: pl.Expr | None = None,
    ) -> pl.Expr:
        """The sum of these columns, marked as unfit if one of them holds no number.

        `plain` has the numbers in the service document's form, `given` as delivered in the `form`.
        `units`, in the same form as `plain`, is the number of units they are for, None for one. A
        column without a value adds nothing; if no column has a value, there is no sum.
        """
        columns = [one.alias(f"plain{at}") for at, one in enumerate(plain)]
        columns += [one.alias(f"given{at}") for at, one in enumerate(given)]
        columns += [] if units is None else [units.alias(_UNITS)]
        return pl.struct(columns).map_batches(
            lambda rows: self._all(rows.struct.unnest(), form),
            return_dtype=pl.String,
            is_elementwise=True,
        )

    def _all(self, rows: pl.DataFrame, form: str) -> pl.Series:
        half = rows.width // 2
        plain = [pl.col(name) for name in rows.columns[:half]]
        zeros, turned = self._zeros(rows), pl.lit(value=False)
        if self.signed:
            turned = pl.col(_UNITS).str.starts_with(_MINUS)
        # Nearly all numbers are short, and are added up as whole columns.
        fits = [one.is_null() | one.str.contains(MILLIONTHS) for one in plain]
        few = (zeros == 0) | (_digits(plain) + zeros <= MICRO_DIGITS)
        fits.append(few.fill_null(value=False))
        if self.one_filled:
            filled = (one.str.contains("[1-9]").fill_null(value=False) for one in plain)
            fits.append(pl.sum_horizontal(one.cast(pl.Int8) for one in filled) <= 1)
        short = rows.select(pl.all_horizontal(*fits).alias("short")).to_series()
        sums = rows.filter(short).select(self._in_millionths(plain, zeros, turned)).to_series()
        texts = [
            self._one(row[:half], row[half : 2 * half], form, *row[2 * half :])
            for row in rows.filter(~short).iter_rows()
        ]
        places = pl.concat([short.arg_true(), (~short).arg_true()])
        return pl.concat([sums, pl.Series(texts, dtype=pl.String)]).gather(places.arg_sort())

    def _zeros(self, rows: pl.DataFrame) -> pl.Expr:
        """By how many digits scale and units move the point of a sum left; null if unknown."""
        sign, digits, exponent = self.scale.as_tuple()
        moved = -int(exponent)
        moves = (sign, digits) == (0, (1,)) and moved >= 0
        zeros = pl.lit(moved if moves else None, pl.Int8)
        if _UNITS in rows.columns:
            units = pl.col(_UNITS)
            zeros += few_zeros(units.str.strip_prefix(_MINUS) if self.signed else units)
        return zeros

    def _in_millionths(self, plain: Sequence[pl.Expr], zeros: pl.Expr, turned: pl.Expr) -> pl.Expr:
        """The sums of numbers that fit `MILLIONTHS`, also after their point has moved."""
        parts = [millionths_of(one).fill_null(0) for one in plain]
        zero = pl.lit(0, pl.Int64)
        total = pl.sum_horizontal(zero, *parts[: self.added])
        total -= pl.sum_horizontal(zero, *parts[self.added :])
        total *= pl.when(turned).then(-1).otherwise(1)
        text = written_out(total // 10**zeros, _digits(plain) + zeros)
        return pl.when(~pl.all_horizontal(one.is_null() for one in plain)).then(text)

    def _one(
        self,
        plain: Sequence[str | None],
        given: Sequence[str | None],
        form: str,
        units: str | None = "1",
    ) -> str | None:
        numbers = {
            at: _number(text.strip(AROUND)) for at, text in enumerate(plain) if text is not None
        }
        if not numbers:
            return None
        total = Decimal(0)
        for place, number in numbers.items():
            if number is None:
                what = _which(given, place)
                return f"{self._written(given)}{UNFIT} ({what}{form})"
            total = (EXACT.add if place < self.added else EXACT.subtract)(total, number)
        if self.one_filled and sum(map(bool, numbers.values())) > 1:
            return f"{self._written(given)}{UNFIT} (more than one of its columns has a number)"
        turned = self.signed and (units or "").startswith(_MINUS)
        zeros = _zeros_of((units or "")[1:] if turned else units)
        if zeros is None:
            reason = f"{(units or '').replace(UNFIT, '')!r} is no number of units"
            return f"{reason}{UNFIT}: 1, 10, 100 ... (the amount is {self._written(given)})"
        scale = -self.scale if turned else self.scale
        total = EXACT.multiply(total, scale).scaleb(-zeros, EXACT)
        # Adding 0 turns -0 into 0. Nothing is rounded: the field decides whether it can keep it.
        return f"{EXACT.add(total, Decimal(0)):f}"

    def _written(self, given: Sequence[str | None]) -> str:
        signs = ("+" if place < self.added else "-" for place in range(len(given)))
        cells = [f"{sign} {cell}" for sign, cell in zip(signs, given, strict=True) if cell]
        return " ".join(cells).removeprefix("+ ")


def _which(given: Sequence[str | None], place: int) -> str:
    """Which of several cells is no number; empty if there is only one."""
    if sum(map(bool, given)) < 2:
        return ""
    cell = (given[place] or "").replace(UNFIT, "")
    quoted = f"{cell[:_QUOTED]}{MORE}" if len(cell) > _QUOTED else cell
    return f"{quoted!r} is no number: "


def _digits(plain: Sequence[pl.Expr]) -> pl.Expr:
    """The largest number of decimals among these texts."""
    return pl.max_horizontal(*map(scale_of, plain))


def few_zeros(units: pl.Expr) -> pl.Expr:
    """The number of zeros in a number of units such as 100; null if too many or another form."""
    return pl.when(units.str.contains(_FEW_ZEROS)).then(units.str.len_bytes() - 1)


def _zeros_of(units: str | None) -> int | None:
    """The number of zeros in a number of units such as 100; None if it is no power of ten.

    Division by any other number might not be exact.
    """
    number = None if units is None else _number(units.strip(AROUND))
    if number is None or number < 1:
        return None
    zeros = number.adjusted()
    return zeros if number == Decimal(1).scaleb(zeros, EXACT) else None


def _number(text: str) -> Decimal | None:
    """The number of a text, even with more digits than a field keeps, or in a field's own form."""
    number = exact_number(text)
    if number is None and isinstance(alone := read_number(text), Number):
        number = alone.exact
    return number
