"""Amounts that are made of several columns: exact decimals, and no number where one is none."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

import polars as pl

from schemas.amounts import EXACT, MILLIONTHS
from schemas.cells.numbers import AROUND, exact_number
from schemas.cells.reading import UNFIT, Number, read_number
from schemas.millionths import millionths_of, scale_of, written_out


@dataclass(frozen=True, slots=True)
class ColumnSum:
    """What a field is the sum of."""

    added: int
    """How many of its columns are added up; those behind them are taken away."""
    scale: Decimal = Decimal(1)
    """What the sum is multiplied by."""

    def of(self, plain: Sequence[pl.Expr], given: Sequence[pl.Expr], said: str) -> pl.Expr:
        """The sum of these columns; where one of them has no number it is marked.

        `plain` has the numbers as the service document writes them, `given` as they were delivered.
        A column without a value adds nothing; where none has one, there is no sum.
        """
        names = [f"plain{at}" for at in range(len(plain))]
        columns = [one.alias(name) for one, name in zip(plain, names, strict=True)]
        columns += [one.alias(f"given{at}") for at, one in enumerate(given)]
        return pl.struct(columns).map_batches(
            lambda rows: self._all(rows.struct.unnest(), said),
            return_dtype=pl.String,
            is_elementwise=True,
        )

    def _all(self, rows: pl.DataFrame, said: str) -> pl.Series:
        half = rows.width // 2
        plain = [pl.col(name) for name in rows.columns[:half]]
        # Nearly all are short, and are added up at once.
        fits = [one.is_null() | one.str.contains(MILLIONTHS) for one in plain]
        short = rows.select(pl.all_horizontal(*fits, pl.lit(value=self.scale == 1))).to_series()
        sums = rows.filter(short).select(self._in_millionths(plain)).to_series()
        texts = [self._one(row[:half], row[half:], said) for row in rows.filter(~short).iter_rows()]
        places = pl.concat([short.arg_true(), (~short).arg_true()])
        return pl.concat([sums, pl.Series(texts, dtype=pl.String)]).gather(places.arg_sort())

    def _in_millionths(self, plain: Sequence[pl.Expr]) -> pl.Expr:
        """The same of numbers that are amounts in `MILLIONTHS`."""
        parts = [millionths_of(one).fill_null(0) for one in plain]
        zero = pl.lit(0, pl.Int64)
        total = pl.sum_horizontal(zero, *parts[: self.added])
        total -= pl.sum_horizontal(zero, *parts[self.added :])
        text = written_out(total, pl.max_horizontal(*map(scale_of, plain)))
        return pl.when(~pl.all_horizontal(one.is_null() for one in plain)).then(text)

    def _one(
        self, plain: Sequence[str | None], given: Sequence[str | None], said: str
    ) -> str | None:
        total, found = Decimal(0), False
        for place, text in enumerate(plain):
            if text is None:
                continue
            number = _number(text.strip(AROUND))
            if number is None:
                return f"{self._written(given)}{UNFIT} (one of them is no number: {said})"
            add = EXACT.add if place < self.added else EXACT.subtract
            total, found = add(total, number), True
        if not found:
            return None
        # Nothing is less than nothing. Nothing is rounded: the field says whether it can keep it.
        return f"{EXACT.add(EXACT.multiply(total, self.scale), Decimal(0)):f}"

    def _written(self, given: Sequence[str | None]) -> str:
        signs = ("+" if place < self.added else "-" for place in range(len(given)))
        cells = [f"{sign} {cell}" for sign, cell in zip(signs, given, strict=True) if cell]
        return " ".join(cells).removeprefix("+ ")


def _number(text: str) -> Decimal | None:
    """What a text says: a number of more digits than a field keeps, or what one takes alone."""
    number = exact_number(text)
    if number is None and isinstance(alone := read_number(text), Number):
        number = alone.exact
    return number
