"""The cut-off: which records a reconciliation as of a day is about, and which are dated after it.

A record is dated by the business date of its kind (`Field.business_date`), on its own clock. It is
after the cut-off if every side that has it says so; a record that any side dates earlier stays, so
that its dates are compared. A record without a readable date stays as well. If a record has several
extract rows, those that count decide its date, and the others follow.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date

import polars as pl

from flows.steps.breaks.make import money
from flows.steps.breaks.match_breaks import line_key
from flows.steps.frames.beyond import beyond_of, exact_sum, unreadable_of
from flows.steps.frames.parts import Load, PartedSide, filtered, parts_of, with_parts
from flows.steps.frames.sources import Sources
from flows.steps.frames.statuses import in_state
from flows.steps.match.pairing import key_frame
from flows.steps.reconcile.signed import as_defined
from flows.steps.reconcile.totals import Amounts
from flows.steps.reconcile.windows import business_date
from schemas.amounts import BEYOND, UNREADABLE
from schemas.derived.left_out import OWN
from schemas.field import Table
from schemas.kinds import OFFSET
from schemas.tables import EXTRACTS

SIDES = {"extract": "E", "database": "D", "listings": "G"}
"""Mappings of `Sources` that are cut, and their letters."""


@dataclass(frozen=True, slots=True)
class AfterLine:
    """Records of a kind on one side that are dated after the day of the report."""

    record: str
    side: str
    """E, D or G."""
    currency: str
    rows: int
    first: date
    last: date
    """First and last business date of the rows that are themselves dated after the day.

    If this currency has only rows that a later row of their record replaced, the dates are those of
    the whole kind.
    """
    amounts: Amounts
    unreadable: Mapping[str, int] = field(default_factory=dict)
    """Amount field -> number of rows in which it cannot be read."""


@dataclass(frozen=True)
class Cut:
    """Sources as of a day, and the records dated after it."""

    kept: Sources
    after: Sources = field(default_factory=lambda: Sources({}, {}))
    """Frames of the records after the day; sides without any have none."""
    as_of: date = date.min

    def whole(self, side: str, record: str) -> pl.DataFrame | None:
        """A side including records after the cut-off, for references and for signed records."""
        sides = [_frames(each, side) for each in (self.kept, self.after)]
        there = [frames[record] for frames in sides if record in frames]
        return pl.concat(there, rechunk=False) if there else None

    def keys(self, records: pl.Series) -> pl.DataFrame:
        """The records of these kinds after the cut-off, as breaks name them: record and key."""
        keys = [pl.DataFrame(schema={"record": pl.String(), "key": pl.String()})]
        for side in SIDES:
            for record, frame in _frames(self.after, side).items():
                if record in set(records):
                    nowhere = [pl.lit("").alias("file")] if "file" not in frame.columns else []
                    key = line_key(EXTRACTS[record], frame.with_columns(nowhere))
                    keys.append(frame.select(pl.lit(record).alias("record"), key))
        return pl.concat(keys).unique()

    @property
    def lines(self) -> tuple[AfterLine, ...]:
        """The records after the cut-off, by record kind, side and currency."""
        return tuple(
            line
            for record in EXTRACTS
            for side, letter in SIDES.items()
            if record in _frames(self.after, side)
            for line in _lines(
                EXTRACTS[record], letter, _frames(self.after, side)[record], self.as_of
            )
        )


def cut_off(sources: Sources, as_of: date, tables: Mapping[str, Table] = EXTRACTS) -> Cut:
    """Separate the records dated after a day from the others."""
    kept: dict[str, dict[str, list[Load]]] = {side: {} for side in SIDES}
    after: dict[str, dict[str, list[Load]]] = {side: {} for side in SIDES}
    for record, table in tables.items():
        if table.business_date is None:
            continue
        for side, late in _late_parts(table, sources, as_of).items():
            if any(one.any() for one in late):
                loads = parts_of(_frames(sources, side), record)
                kept[side][record] = [*map(filtered, loads, [~one for one in late])]
                after[side][record] = [*map(filtered, loads, late)]
    signed = _signed(sources, as_of, tables)
    if not any(after.values()):
        return Cut(replace(sources, signed=signed))
    extract, database, listings = (with_parts(_frames(sources, side), kept[side]) for side in SIDES)
    later = [PartedSide(after[side]) for side in SIDES]
    return Cut(
        replace(sources, extract=extract, database=database, listings=listings, signed=signed),
        Sources(later[0], later[1], listings=later[2], zones=sources.zones),
        as_of,
    )


def _late_parts(table: Table, sources: Sources, as_of: date) -> dict[str, list[pl.Series]]:
    """Which rows of each part of each side are after the day."""
    found: dict[str, list[pl.Series]] = defaultdict(list)
    assert table.business_date is not None
    dated = (table.business_date, table.business_date + OFFSET)
    for number in range(sources.number_of_parts(table.name)):
        late = {
            side: _after(table, frame, as_of)
            for side, frame in _there(table, sources.part(table.name, number, dated)).items()
        }
        if any(one.any() for one in late.values()):
            whole = _there(table, sources.part(table.name, number))
            # A listing has times on its server's clock, which matters if records have no key and
            # are compared by their whole content.
            zone = sources.zones.get(table.name, "UTC")
            late = _late(
                table, whole, late, zone if "listings" in whole and not table.key else None
            )
        for side, one in late.items():
            found[side].append(one)
    return found


def _there(table: Table, part: Sources) -> dict[str, pl.DataFrame]:
    return {
        side: frames[table.name] for side in SIDES if table.name in (frames := _frames(part, side))
    }


def _frames(sources: Sources, side: str) -> Mapping[str, pl.DataFrame]:
    frames: Mapping[str, pl.DataFrame] = getattr(sources, side)
    return frames


def _late(
    table: Table, frames: Mapping[str, pl.DataFrame], own: dict[str, pl.Series], wire: str | None
) -> dict[str, pl.Series]:
    """Which rows of each side belong to a record after the day; `own`: which rows' own date is.

    `wire` is that of `key_frame`.
    """
    keys = {side: key_frame(table, frame, wire=wire) for side, frame in frames.items()}
    names = next(iter(keys.values())).columns
    # Without a key, null fields are part of a record's identity. A row that lacks its key matches
    # nothing.
    equal = not table.key or "place" in names
    rows = pl.concat(
        keys[side].with_columns(
            late.alias("__late"), pl.lit(side).alias("__side"), *_counting(frames[side])
        )
        for side, late in own.items()
    )
    # Only records that some rows date after the day, and some do not, need a closer look.
    late_keys = rows.filter("__late").select(names).unique()
    both = rows.filter(~pl.col("__late")).join(late_keys, on=names, how="semi", nulls_equal=equal)
    if both.is_empty():
        return own
    mixed = rows.join(both.select(names).unique(), on=names, how="semi", nulls_equal=equal)
    newest = pl.col("__batch").filter("__counts").max().over(*names, "__side")
    counting = pl.col("__counts") & (pl.col("__batch") == newest)
    all_late = pl.col("__late").filter("__counting").all() & pl.col("__counting").any()
    after = (
        mixed.with_columns(counting.alias("__counting"))
        .group_by(names)
        .agg(all_late.alias("__after"))
    )
    found = {
        side: keys[side].join(after, on=names, how="left", nulls_equal=equal, maintain_order="left")
        for side in own
    }
    return {
        side: found[side].select(late=pl.coalesce("__after", late)).to_series()
        for side, late in own.items()
    }


def _after(table: Table, frame: pl.DataFrame, as_of: date) -> pl.Series:
    return (business_date(table, frame) > as_of).fill_null(value=False)


def _counting(frame: pl.DataFrame) -> list[pl.Series | pl.Expr]:
    """Whether a row may count, and its batch.

    Every row of the target or a listing counts; an extract row counts unless its end state rules it
    out.
    """
    if "state" not in frame.columns:
        return [pl.lit(value=True).alias("__counts"), pl.lit(0, pl.Int32).alias("__batch")]
    counts = frame.select((~in_state(OWN)).alias("__counts")).to_series()
    return [counts, frame["batch_id"].fill_null(0).alias("__batch")]


def _signed(sources: Sources, as_of: date, tables: Mapping[str, Table]) -> dict[str, pl.DataFrame]:
    """Signed records up to the day; a run as of an earlier day does not check the later ones."""
    return {
        record: frame
        if tables[record].business_date is None
        else frame.filter(~_after(tables[record], as_defined(tables[record], frame), as_of))
        for record, frame in sources.signed.items()
    }


def _lines(table: Table, side: str, frame: pl.DataFrame, as_of: date) -> list[AfterLine]:
    currency = pl.col(table.currency) if table.currency else pl.lit(None)
    day = business_date(table, frame)
    day = day.zip_with(day > as_of, day.clear(day.len()))
    first, last = pl.col("__day").min(), pl.col("__day").max()
    beyond, unread = (of(frame, table.amounts) for of in (beyond_of, unreadable_of))
    groups = (
        frame.with_columns(day.alias("__day"))
        .group_by(currency.cast(pl.String).fill_null("").alias("__currency"))
        .agg(pl.len(), first.fill_null(day.min()).alias("first"),
             last.fill_null(day.max()).alias("last"),
             pl.col(table.amounts).sum(),
             *(pl.col(name + BEYOND).drop_nulls() for name in beyond),
             *(pl.col(name + UNREADABLE).count() for name in unread))
        .sort(pl.col("__currency").str.len_chars(), "__currency")
    )  # fmt: skip
    return [
        AfterLine(
            record=table.name,
            side=side,
            currency=row["__currency"],
            rows=row["len"],
            first=row["first"],
            last=row["last"],
            amounts={
                name: money(exact_sum([row[name]], row.get(name + BEYOND, ())))
                for name in table.amounts
            },
            unreadable={name: row[name + UNREADABLE] for name in unread if row[name + UNREADABLE]},
        )
        for row in groups.iter_rows(named=True)
    ]
