"""Combine the breaks a run found with those of the previous run into the breaks of the report."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import date

import polars as pl

from flows.steps.breaks.ageing import with_ages
from flows.steps.breaks.aside import Gone, set_aside
from flows.steps.breaks.causes import Causes, Moments, find_causes
from flows.steps.breaks.changed_into import about, known_as_long, replacements, with_replaced
from flows.steps.breaks.counted import counts
from flows.steps.breaks.frame import gather
from flows.steps.breaks.lifecycle import CHANGED, carry
from flows.steps.breaks.saved import parts
from flows.steps.breaks.severity import severities
from flows.steps.frames.parts import PartedRows
from flows.steps.frames.sources import Sources
from flows.steps.rules.canonical import rules_hash
from flows.steps.rules.rules import Rules
from schemas.life import ASIDE, RESOLVED

Left = Callable[[pl.Series], pl.DataFrame]
"""Looks up breaks by id as earlier runs left them, as CARRIED."""


def carry_forward(
    found: PartedRows,
    left: Left,
    decisions: pl.DataFrame,
    gone: Gone,
    *,
    sources: Sources,
    rules: Rules,
    as_of: date,
    tolerated: pl.DataFrame,
) -> Iterator[pl.DataFrame]:
    """Yield the breaks with states, severities and ages, part by part: first found, then gone.

    Frames are those of `lifecycle.carry`. `gone` are the breaks not found again; `tolerated` is
    that of `set_aside`.
    """
    own = rules_hash(rules)
    changed = pl.DataFrame(schema=CHANGED)

    def with_severity_and_ages(carried: pl.DataFrame) -> pl.DataFrame:
        severe = carried.with_columns(severities(carried, rules, as_of))
        return with_ages(severe, as_of, rules.calendar)

    others: list[pl.Series] = []
    left_behind = about(gone.breaks)
    for part, decided in zip(found, _of_parts(found, decisions), strict=True):
        carried = carry(part, left(part["id"]), decided, changed, as_of, own)
        if gone.breaks.height:
            both = replacements(left_behind, carried)
            others.append(both.ids)
            carried = known_as_long(both.of_row, left_behind, carried)
        yield with_severity_and_ages(carried)
    if gone.breaks.height:
        changed = set_aside(gone, sources=sources, rules=rules, as_of=as_of, tolerated=tolerated)
        changed = with_replaced(changed, pl.concat(others))
        yield from parts(
            with_severity_and_ages(carry(gather(()), gone.breaks, decisions, changed, as_of, own))
        )


def _of_parts(found: PartedRows, decisions: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Yield the decisions about the breaks of each part."""
    ids = [part.with_columns(part=number) for number, part in enumerate(found.read(["id"]))]
    of_part = decisions.join(pl.concat(ids), left_on="break_id", right_on="id").partition_by(
        "part", as_dict=True, include_key=False
    )
    for number in range(len(ids)):
        yield of_part.get((number,), decisions.clear())


def explained(
    carried: PartedRows,
    rates: pl.DataFrame | None,
    moments: Moments | None,
    currencies: Mapping[str, str],
) -> tuple[PartedRows, Causes]:
    """Carried breaks with their share of totals (`counts`) and their `cause`, and the causes.

    Both depend on all breaks together, so a few columns are loaded at a time; see `find_causes`.
    """
    counted = counts(carried)
    there = ~pl.col("state").is_in((*RESOLVED, *ASIDE))
    causes = find_causes(carried.hstack(counted).filter(there), rates, moments, currencies)
    # Breaks that may have a cause are in the order of all breaks.
    at = carried.select("state").select(pl.when(there).then(there.cum_sum() - 1)).to_series()
    with_causes = carried.hstack(counted.with_columns(causes.of["cause"][at]))
    return with_causes, replace(causes, of=causes.of.clear())  # The breaks have it.
