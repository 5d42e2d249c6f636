"""From the breaks a run found and those of the run before to what the report tells of each."""

from datetime import date

import polars as pl

from flows.steps.breaks.ageing import with_ages
from flows.steps.breaks.aside import Gone, set_aside
from flows.steps.breaks.lifecycle import CHANGED, carry
from flows.steps.breaks.severity import severities
from flows.steps.frames.sources import Sources
from flows.steps.rules.canonical import rules_hash
from flows.steps.rules.rules import Rules


def carry_forward(
    breaks: pl.DataFrame,
    before: pl.DataFrame,
    decisions: pl.DataFrame,
    gone: Gone,
    *,
    sources: Sources,
    rules: Rules,
    as_of: date,
    tolerated: pl.DataFrame,
) -> pl.DataFrame:
    """The breaks with their lives, severities and ages; frames as `lifecycle.carry` has them.

    `gone` are those of `before` that were not found again, `tolerated` as for `set_aside`.
    """
    changed = pl.DataFrame(schema=CHANGED)
    if gone.breaks.height:
        changed = set_aside(gone, sources=sources, rules=rules, as_of=as_of, tolerated=tolerated)
    carried = carry(breaks, before, decisions, changed, as_of, rules_hash(rules))
    carried = carried.with_columns(severities(carried, rules, as_of))
    return with_ages(carried, as_of, rules.calendar)
