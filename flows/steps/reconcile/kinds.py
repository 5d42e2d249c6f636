"""What became of the records of each kind, counted and added up; those that are accepted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from flows.steps.breaks.carried_states import is_open
from flows.steps.breaks.make import about_one_record
from flows.steps.breaks.match_breaks import line_key
from flows.steps.frames.parts import Load, PartedRows
from flows.steps.frames.sources import Sources, are_among, record_schema
from flows.steps.frames.statuses import STATUS
from flows.steps.reconcile.sums import Sides, add_up, together
from flows.steps.reconcile.totals import (
    ExcludedLine,
    StatusLine,
    excluded_lines,
    status_counts,
    status_lines,
)
from flows.steps.rules.rules import Rules
from schemas.breaks import Status
from schemas.field import Table
from schemas.frame_types import WORD
from schemas.life import BreakState
from schemas.tables import EXTRACTS

ACCEPTABLE = (Status.MISMATCH, Status.MISSING_IN_TARGET, Status.MISSING_IN_EXTRACT)
"""Statuses that become MATCHED_MANUAL when every break of the record is accepted."""


@dataclass(frozen=True)
class KindFigures:
    """What became of the records of one kind, counted and added up over all of its parts."""

    sides: Sides
    statuses: tuple[StatusLine, ...]
    excluded: tuple[ExcludedLine, ...]
    days: pl.DataFrame
    """Of each part the first and the last business date."""
    tenants: pl.Series


def kinds(
    sources: Sources, statuses: Mapping[str, Sequence[Load]], carried: PartedRows, rules: Rules
) -> list[KindFigures]:
    """Of each record kind; `statuses` come in the parts of the sources, `carried` are breaks."""
    accepted = accepted_keys(carried)
    return [
        _kind(EXTRACTS[record], sources, each, accepted.filter(pl.col("record") == record), rules)
        for record, each in statuses.items()
    ]


def _kind(
    table: Table, sources: Sources, statuses: Sequence[Load], accepted: pl.DataFrame, rules: Rules
) -> KindFigures:
    """`accepted` are the records whose breaks are all accepted, as `accepted_keys` gives them."""
    sides, days, tenants = [], [], []
    counts = pl.DataFrame(schema={"status": STATUS, "rule": WORD, "len": pl.UInt32})
    unproven = sources.unproven.get(table.name)
    added = {*table.identity, *table.amounts, table.tenant, table.currency}
    names = {name for name in added if name is not None}
    numbers = range(sources.number_of_parts(table.name))
    for number, load in zip(numbers, statuses, strict=True):
        part = sources.part(table.name, number, names)
        lines = with_accepted(table, load(), accepted, unproven)
        sides.append(_sides(table, part, lines))
        counts.extend(status_counts(lines))
        days.append(
            lines.select(pl.col("date").min().alias("first"), pl.col("date").max().alias("last"))
        )
        tenants.append(lines["tenant"].drop_nulls().unique())
        del part, lines  # Before the next are read.
    return KindFigures(
        together(sides),
        status_lines(table, counts),
        excluded_lines(table, counts, rules),
        pl.concat(days),
        pl.concat(tenants),
    )


def accepted_keys(carried: PartedRows) -> pl.DataFrame:
    """`record`, `tenant` and `key` of the records of which every break is accepted.

    Breaks of a debt are about payments too, and told by what may be the key of one of them.
    """
    on = ["record", "tenant", "key"]
    carried = carried.filter(about_one_record())
    accepted = carried.filter(pl.col("state") == BreakState.ACCEPTED).select(*on).unique()
    if accepted.is_empty():
        return accepted
    return accepted.join(carried.filter(is_open()).select(*on), on=on, how="anti", nulls_equal=True)


def with_accepted(
    table: Table, statuses: pl.DataFrame, accepted: pl.DataFrame, unproven: pl.DataFrame | None
) -> pl.DataFrame:
    """Statuses in which a record that is accepted, by `tenant` and `key`, is MATCHED_MANUAL.

    An `unproven` one is not: nothing is known of it but what somebody may have written there.
    """
    if accepted.is_empty():
        return statuses
    manual = statuses["status"].is_in(ACCEPTABLE)
    if unproven is not None:
        manual &= ~are_among(statuses, unproven)
    rows = manual.arg_true()
    lines = statuses[rows]
    named = lines.select("tenant", line_key(table, lines), rows.alias("at"))
    on = ["tenant", "key"]
    there = named.join(accepted.select(on), on=on, how="semi", nulls_equal=True)
    none = pl.Series([False]).new_from_index(0, statuses.height)
    accepted_one = pl.lit(Status.MATCHED_MANUAL.value, STATUS)
    status = pl.when(none.scatter(there["at"], True)).then(accepted_one).otherwise("status")
    return statuses.with_columns(status.alias("status"))


def _sides(table: Table, sources: Sources, statuses: pl.DataFrame) -> Sides:
    nothing = pl.DataFrame(schema=record_schema(table))
    extract = sources.extract.get(table.name, nothing)
    target = sources.database.get(table.name, sources.listings.get(table.name, extract.clear()))
    return add_up(table, extract, target, statuses)
