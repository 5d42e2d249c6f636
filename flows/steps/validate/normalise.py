"""Translate cells as written by a feed into the form of the field tables.

A feed profile states how a feed writes numbers, times and absence. A cell that does not follow it
is not guessed, but marked, and the check rejects it with the delivered text.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from flows.steps.validate.arithmetic import ColumnSum
from flows.steps.validate.key_ids import key_ids
from flows.steps.validate.times import TimeForm
from schemas.cells.numbers import AROUND, NumberForm
from schemas.cells.reading import UNFIT
from schemas.cells.sheet_cells import ERROR_VALUE
from schemas.cells.widths import usual_width
from schemas.field import NUMBERS, TIMES, Field, Kind, Table
from schemas.made_keys import MadeKey

_ISO, _PLAIN = TimeForm(), NumberForm()
_ABSENT = ("",)
SHOWN = 100


@dataclass(frozen=True, slots=True)
class CellForm:
    """How the cells of a feed, or of one of its fields, are written."""

    number: NumberForm = _PLAIN
    time: TimeForm = _ISO
    null: Sequence[str] = _ABSENT
    true: Sequence[str] = ()
    """Words for true, in any case; if empty, True and 1."""
    false: Sequence[str] = ()
    blanks_dropped: bool = False
    """Whether blanks around a cell are dropped."""

    join: str = ""
    """Separator between the cells of several columns that make up a field."""
    part: str | None = None
    """A pattern whose one group is the value within a cell."""
    prefix: str = ""
    suffix: str = ""
    """Texts that the sender leaves out before or behind a cell, such as the year of a day."""
    map: Mapping[str, str] | None = None
    """All cells there may be, with their values in the service document's form."""
    default: str | None = None
    """Value of an empty cell, in the service document's form."""

    unread: str | None = None
    """A pattern that marks cells without a value, whatever else they contain; None if unused."""

    sum: ColumnSum | None = None
    """How columns are added up, for a number that is their sum."""
    units: "CellForm | None" = None
    """Form of the last column, which has the number of units such a sum is for; None for one."""
    others: str | None = None
    """Value of cells that are not in `map`; if None, they are not read."""
    map_is_bare: bool = False
    """Whether blanks around a cell are dropped before it is looked up in `map`."""
    folded: bool = False
    """Whether full-width characters in numbers and times are read as the usual ones."""

    def is_one_number(self, of: Field) -> bool:
        """Whether a field is one whole number or count; joining two would make up a third."""
        counted = of.kind in TIMES and self.time.dates.counted
        whole = self.part is None and self.map is None and self.sum is None
        return (of.kind in NUMBERS or counted) and whole

    @property
    def is_completed(self) -> bool:
        """Whether a text is put before or behind a cell."""
        return bool(self.prefix or self.suffix)

    def made(self, of: Field, cells: Sequence[pl.Expr]) -> pl.Expr:
        """The cells of a field in the service document's form, from the cells of its columns."""
        units = None
        if self.units is not None:
            *cells, cell = cells
            units = self.units.made(of, [cell])
        given = [self._given(of, cell) for cell in cells]
        text = given[0]
        if self.sum is not None:
            plain = [self.plain(of, cell) for cell in given]
            total = self.sum.of(plain, given, self.number.description, units)
            if of.kind is not Kind.DOUBLE:  # A whole number has no decimals, but a scaled sum does.
                total = total.str.replace(r"^(-?[0-9]+)\.0+$", "$1")
            return self._or_default(pl.coalesce(given), total)
        if len(given) > 1:
            joined = pl.concat_str(given, separator=self.join, ignore_nulls=True)
            text = pl.when(~pl.all_horizontal(one.is_null() for one in given)).then(joined)
        found = self._found(of, text)
        if len(given) > 1 and self.is_one_number(of):
            digits = (one.str.contains(r"\p{Nd}").fill_null(value=False) for one in given)
            remark = pl.lit(f"{UNFIT} (more than one of its columns has a number)")
            several = pl.sum_horizontal(one.cast(pl.Int8) for one in digits) > 1
            found = pl.when(several).then(text + remark).otherwise(found)
        return self._or_default(text, found)

    def _or_default(self, text: pl.Expr, found: pl.Expr) -> pl.Expr:
        if self.default is None:
            return found
        return pl.when(text.is_not_null()).then(found).otherwise(pl.lit(self.default))

    def _given(self, of: Field, cell: pl.Expr) -> pl.Expr:
        if self.blanks_dropped:
            cell = cell.str.strip_chars(AROUND)
        null = {*self.null} if tuple(self.null) != _ABSENT else set()
        if of.kind is not Kind.STRING or self.blanks_dropped:
            null.add("")  # For a number or a time, an empty quoted cell is null too.
        return pl.when(~cell.is_in(sorted(null))).then(cell) if null else cell

    def _found(self, of: Field, text: pl.Expr) -> pl.Expr:
        """The value of a text by `part` and `map`; a text without one is marked."""
        part = text if self.part is None else text.str.extract(self.part, 1)
        if self.unread and (self.part is not None or of.kind is Kind.STRING):
            part = pl.when(~self._says_none(of, text)).then(part)
        cell, is_whole = part, part is text
        if self.is_completed:
            whole = pl.lit(self.prefix) + part + pl.lit(self.suffix)
            # An empty cell is not completed: that would be a value that nobody wrote.
            cell = pl.when(part.str.strip_chars(AROUND) != "").then(whole).otherwise(part)
        if self.map is not None:
            cell = cell.str.strip_chars() if self.map_is_bare else cell
            found = cell.replace_strict(self.map, default=None, return_dtype=pl.String)
            listed = ", ".join(self.map)
            more = "…" if len(listed) > SHOWN else ""
            remark = f"{UNFIT} (none of those that are mapped: {listed[:SHOWN]}{more})"
            if self.others is not None:
                # A cell that means null is not one of the others: its value would be a guess.
                other = ~cell.is_in(["", *self.null]) & ~self._says_none(of, text)
                found = pl.coalesce(found, pl.when(other).then(pl.lit(self.others)))
            marked = pl.coalesce(found, text + pl.lit(remark))
            found = pl.when(text.is_not_null()).then(marked)
        else:
            found = self.plain(of, cell)
            # An unread number shows by itself; a text needs a mark that no delivered text has.
            remark = UNFIT if of.kind is Kind.STRING else ""
        if is_whole:
            return found
        if self.part is not None:
            remark = f"{UNFIT} (no part of it fits {self.part})"
        return pl.when(part.is_not_null()).then(found).otherwise(text + pl.lit(remark))

    def _says_none(self, of: Field, text: pl.Expr) -> pl.Expr:
        """Whether a cell has no value to cut out or to map: it is `unread`, or a sheet's error.

        Numbers without `part` and `map` fail by themselves; for text fields an error is a text.
        """
        patterns = [] if of.kind is Kind.STRING else [ERROR_VALUE]
        patterns += [self.unread] if self.unread else []
        return text.str.contains("|".join(patterns)) if patterns else pl.lit(False)

    def plain(self, of: Field, text: pl.Expr) -> pl.Expr:
        """A text of a field in the service document's form."""
        if self.folded and of.kind in (*NUMBERS, *TIMES):
            text = usual_width(text)
        number = self.number if of.kind is Kind.DOUBLE else self.number.whole
        if of.kind in NUMBERS and number != _PLAIN:
            return number.plain(text)
        if of.kind in TIMES and self.time != _ISO:
            return self.time.plain(text)
        if of.kind is Kind.BOOLEAN and self.true:
            return self._word(text)
        return text

    def _word(self, text: pl.Expr) -> pl.Expr:
        words = {word.lower(): "true" for word in self.true}
        words |= {word.lower(): "false" for word in self.false}
        remark = f"{UNFIT} (true is {' or '.join(self.true)}, false is {' or '.join(self.false)})"
        read = text.str.strip_chars(" \t").str.to_lowercase()
        read = read.replace_strict(words, default=None, return_dtype=pl.String)
        return pl.when(text.is_not_null()).then(pl.coalesce(read, text + pl.lit(remark)))


_USUAL = CellForm()


@dataclass(frozen=True, slots=True)
class Writing:
    """How a feed writes values; by default, as the service document does."""

    form: CellForm = _USUAL
    fields: Mapping[str, CellForm] = field(default_factory=dict)
    """Forms of fields that differ from `form`."""
    constants: Mapping[str, str] = field(default_factory=dict)
    keys: Mapping[str, MadeKey] = field(default_factory=dict)
    """Keys from which the numbers of some fields are made."""

    def form_of(self, name: str) -> CellForm:
        return self.fields.get(name, self.form)

    def is_made(self, name: str, columns: Sequence[int]) -> bool:
        """Whether the text of a field with these columns is not the cell of a single one."""
        form = self.form_of(name)
        return bool(len(columns) > 1 or form.sum or form.is_completed)


def normalise(
    table: Table,
    cells: pl.DataFrame,
    names: Sequence[str | None],
    writing: Writing,
    sources: Mapping[str, Sequence[int]],
) -> pl.DataFrame:
    """Translate cells into one String column per delivered field.

    `names` has the field of each delivered column, `sources` the columns of fields that are made of
    others.
    """
    found: dict[str, Sequence[int]] = {
        name: (column,) for column, name in enumerate(names) if name is not None
    }
    found |= sources
    columns = {of.name: pl.lit(None, pl.String) for of in table.delivered}
    for of in table.delivered:
        if of.name in writing.constants:
            columns[of.name] = pl.lit(writing.constants[of.name])
        elif of.name in found:
            given = [pl.col(str(column)) for column in found[of.name]]
            columns[of.name] = writing.form_of(of.name).made(of, given)
    texts = (text.alias(name) for name, text in columns.items())
    frame = cells.with_columns(pl.lit(0).alias("__height")).select("__height", *texts)
    made = [
        key_ids(table, key, frame).alias(name)
        for name, key in writing.keys.items()
        if {name, *key.names} <= table.by_name.keys()
    ]
    return frame.drop("__height").with_columns(made)
