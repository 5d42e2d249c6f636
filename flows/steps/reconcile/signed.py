"""Signed records: how they are kept, and what changed in them since they were signed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date

import polars as pl

from flows.steps.breaks.make import amount_text, amounts_of, make_breaks, together
from flows.steps.breaks.match_breaks import across_currencies, both_amounts, line_key
from flows.steps.frames.beyond import beyond_texts, unsigned
from flows.steps.frames.parts import Load, parts_of
from flows.steps.frames.sources import LINEAGE, complete, no_records, record_schema
from flows.steps.match.comparison import SECRET, differences
from flows.steps.match.pairing import pair_records
from flows.steps.reconcile.countable import among, applied
from flows.steps.reconcile.windows import business_date
from schemas.amounts import BEYOND
from schemas.breaks import OF_AMOUNTS
from schemas.derived.left_out import SUPERSEDED
from schemas.field import Field, Table
from schemas.frame_types import AMOUNT
from schemas.own_names import PACKED
from schemas.tables import EXTRACTS

NOW = "D"
PART = 100_000
"""Packed records that are yielded together."""
ELSEWHERE = "it is not of this scope any more: another delivery has written it since"
CODE, LATE = "CHANGED_AFTER_SIGNOFF", "LATE_ARRIVAL"
"""Codes of signed records that have changed, and of records that arrived since."""


def packed_schema(frames: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataType]:
    """Columns of packed records; the parts of a kind are read up to the first that has a row."""
    kinds = {}
    for name in sorted(frames):
        there = next((frame for load in parts_of(frames, name) if (frame := load()).height), None)
        if there is not None:
            kinds[name] = pl.Struct(_veiled(EXTRACTS[name], there.clear()).schema)
    return {PACKED: pl.String(), **kinds}


def packed_parts(
    frames: Mapping[str, pl.DataFrame], schema: Mapping[str, pl.DataType]
) -> Iterator[pl.DataFrame]:
    """Pack the D frames of all kinds into one: a column per kind, filled if `PACKED` names it.

    Rows are yielded in order, `PART` at a time, so that they are never held twice. `schema` is the
    result of `packed_schema`. A secret is kept only as the fact that there is one, because the file
    lies beside the report.
    """
    waiting: list[pl.DataFrame] = []
    room = PART
    kinds = [name for name in schema if name != PACKED]
    # The parts of a kind are ordered by its first column.
    for kind, load in ((name, load) for name in kinds for load in parts_of(frames, name)):
        frame = _veiled(EXTRACTS[kind], load())
        order = _order(frame)
        while order.len():
            packed = {PACKED: pl.lit(kind), kind: pl.struct(pl.all())}
            waiting.append(
                frame[order[:room]].select(
                    packed.get(column, pl.lit(None, dtype)).alias(column)
                    for column, dtype in schema.items()
                )
            )
            order = order[room:]
            room -= waiting[-1].height
            if not room:
                yield pl.concat(waiting)
                waiting, room = [], PART
    if waiting:
        yield pl.concat(waiting)


def _order(frame: pl.DataFrame) -> pl.Series:
    """The row numbers sorted by all columns; the first column is nearly always enough."""
    first = frame[frame.columns[0]]
    order = first.arg_sort(nulls_last=True)
    ordered = first.gather(order)
    if first.null_count() > 1 or (ordered == ordered.shift()).any():
        order = frame.select(pl.arg_sort_by(*frame.columns, nulls_last=True)).to_series()
    return order


def unpack_records(packed: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """The D frames that were packed; kinds without records are empty frames."""
    found = {
        name: packed.filter(pl.col(PACKED) == name).select(pl.col(name).struct.unnest())
        for name in packed.columns
        if name != PACKED
    }
    return {name: no_records(table) for name, table in EXTRACTS.items()} | found


def changed_after_signoff(
    table: Table, signed: pl.DataFrame, now: pl.DataFrame, rows: Sequence[Load] = ()
) -> pl.DataFrame:
    """One break per changed field of a signed record, with old and new value.

    A signed record that is gone is one break. Records that arrived later are left to
    `late_arrivals`. A field that the record kind did not have when it was signed is not compared.
    `rows` are the extract rows, which show whether a delivery outside the scope has written a
    record since.
    """
    now = _veiled(table, now)
    compared = replace(table, fields=tuple(one for one in table.fields if _had(signed, one, now)))
    signed = as_defined(table, signed)
    both = pair_records(table, signed, now)
    lines = differences(compared, signed, now, both.partner)
    there = now[both.partner.gather(lines["row"])]
    now_in = there.with_columns(_column(table.currency).alias("now_in"))["now_in"]
    records = _records(table, signed[lines["row"]])
    changed = lines.rename({"field": "what", "row": "number"}).hstack([*records, now_in])
    gone = signed.filter(both.partner.is_null())
    elsewhere = pl.lit(_written_over(table, gone, rows))
    left = pl.when(elsewhere).then(pl.lit(ELSEWHERE)).otherwise(pl.lit("the signed record is gone"))
    across = across_currencies(table, pl.col("code"), pl.col("what"))
    amount, text = (pl.when(~across).then(one) for one in _amount_of(table, changed))
    values = both_amounts(*map(pl.col, ("what", "expected", "found", "now_in")))
    amounts = amounts_of({name: amount_text(changed, name) for name in table.amounts})
    return together(
        [
            _break(
                CODE,
                table,
                changed,
                field=pl.col("what"),
                expected=pl.col("expected"),
                found=pl.col("found"),
                delta=pl.col("delta"),
                delta_beyond=pl.col(f"delta{BEYOND}"),
                note=pl.lit("signed as expected, now as found"),
                amount=amount,
                amount_beyond=unsigned(text),
                amounts=pl.when(across).then(values).otherwise(amounts),
            ),
            _break(CODE, table, _records(table, gone), note=left),
        ]
    )


def _written_over(table: Table, gone: pl.DataFrame, rows: Sequence[Load]) -> pl.Series:
    """Which gone records have had every row of the scope overwritten by a row outside it.

    If the scope is all deliveries, no record is such.
    """
    over, stays = (pl.Series([False]).new_from_index(0, gone.height) for _ in range(2))
    for load in rows if gone.height else ():
        some = load()
        over |= among(table, gone, some.filter(pl.col("state") == SUPERSEDED))
        stays |= among(table, gone, some.filter(applied()))
    return over & ~stays


def _amount_of(table: Table, changed: pl.DataFrame) -> tuple[pl.Expr, pl.Expr]:
    """The money of a change, and its text if no exact column holds it.

    For an amount this is the difference, or the other value if one is absent. If a value is not a
    number there is no difference, and the signed amount counts as gone. For any other field it is
    the money of the record.
    """
    of_amount = pl.col("code").is_in(OF_AMOUNTS)
    absent = of_amount & pl.any_horizontal(pl.col("expected", "found").is_null())
    differs = of_amount & pl.any_horizontal(pl.col("delta", f"delta{BEYOND}").is_not_null())
    there = pl.coalesce("expected", "found")
    held = there.cast(AMOUNT, strict=False).abs()
    amount, text = _money(table), pl.lit(None, pl.String)
    if table.amounts:
        text = pl.lit(beyond_texts(changed, table.amounts[0]))
    for name in table.amounts:
        own = pl.col("what") == name
        amount = pl.when(own).then(_column(name).cast(AMOUNT).abs()).otherwise(amount)
        text = pl.when(own).then(pl.lit(beyond_texts(changed, name))).otherwise(text)
    return (
        pl.when(differs).then(pl.col("delta").abs()).when(absent).then(held).otherwise(amount),
        pl.when(differs)
        .then(f"delta{BEYOND}")
        .when(absent)
        .then(pl.when(held.is_null()).then(there))
        .otherwise(text),
    )


def as_defined(table: Table, signed: pl.DataFrame) -> pl.DataFrame:
    """Signed records with the columns that their kind has now; new columns are null."""
    schema = record_schema(table) | LINEAGE
    same = all(signed.schema.get(name) == dtype for name, dtype in schema.items())
    return signed if same else complete(signed, schema)


def _had(signed: pl.DataFrame, field: Field, now: pl.DataFrame) -> bool:
    """Whether signed records had a field; an all-null column of another type does not count."""
    if field.name not in signed.columns:
        return False
    then = signed[field.name]
    return then.dtype == now.schema[field.name] or then.null_count() < then.len()


def late_arrivals(
    table: Table, signed: pl.DataFrame, now: pl.DataFrame, approved: Sequence[tuple[int, date]]
) -> pl.DataFrame:
    """One break per record that arrived after the period of its date was signed.

    `approved` are the signed runs and their days, earliest day first: a record belongs to the first
    run whose day is not before its own.
    """
    if not approved or table.business_date is None or now.is_empty():
        return together([])
    last = max(day for _, day in approved)
    dated = now.with_columns(business_date(table, now).alias("__day"))
    dated = dated.filter(pl.col("__day") <= last)
    both = pair_records(table, signed, dated)
    late = dated[both.unmatched.sort()]
    number, day = pl.lit(None, pl.Int64), pl.lit(None, pl.Date)
    for run, until in reversed(approved):
        mine = pl.col("__day") <= until
        number = pl.when(mine).then(pl.lit(run)).otherwise(number)
        day = pl.when(mine).then(pl.lit(until)).otherwise(day)
    named = _records(table, late).with_columns(number.alias("__run"), day.alias("__until"))
    return _break(
        LATE,
        table,
        named,
        expected=pl.format("in reconciliation {} as of {}", "__run", "__until"),
        found=pl.format("came after it was signed, dated {}", "__day"),
        date=pl.col("__day"),
    )


def _break(code: str, table: Table, rows: pl.DataFrame, **facts: pl.Expr) -> pl.DataFrame:
    """Make breaks of records with `key`; the money is the record's unless the facts have other."""
    given = {
        "key": pl.col("key"),
        "side": pl.lit(NOW),
        "tenant": _column(table.tenant),
        "currency": _column(table.currency),
        "amount": _money(table),
    } | facts
    return make_breaks(code, table.name, rows, **given)


def _veiled(table: Table, frame: pl.DataFrame) -> pl.DataFrame:
    """The frame with a placeholder for every secret that is not null."""
    secret = [field.name for field in table.delivered if field.secret]
    veil = pl.lit(SECRET, pl.String)
    return frame.with_columns(
        pl.when(pl.col(name).is_not_null()).then(veil).alias(name) for name in secret
    )


def _records(table: Table, signed: pl.DataFrame) -> pl.DataFrame:
    """Signed records with their key as text; without lineage, as others may have changed them."""
    keys = line_key(table, signed.with_columns(pl.lit(None, pl.String).alias("file")))
    return signed.drop(*LINEAGE, strict=False).with_columns(keys.alias("key"))


def _money(table: Table) -> pl.Expr:
    return _column(table.amounts[0] if table.amounts else None).cast(AMOUNT).abs()


def _column(name: str | None) -> pl.Expr:
    return pl.lit(None) if name is None else pl.col(name)
