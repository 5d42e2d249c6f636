"""The causes of breaks by what became of these: the open ones apart from the accepted ones."""

import polars as pl

from flows.steps.breaks.cause_groups import GROUPED_BY, CauseGroup, pooled_groups
from flows.steps.reconcile.report import ReconciliationReport


def pooled_causes(report: ReconciliationReport) -> dict[str, dict[str, CauseGroup]]:
    """By pool and name, those of most money first; what has no break in a pool is not in it.

    Of the causes there are those that the report has lines of, among them all of most money.
    """
    causes = [one.id for one in report.causes]
    breaks = report.breaks.frame.select(*GROUPED_BY).filter(pl.col("cause").is_in(["", *causes]))
    pools = pooled_groups(breaks)
    return {pool: {one.name: one for one in groups} for pool, groups in pools.items()}


def cause_titles(report: ReconciliationReport) -> dict[str, str]:
    """What the breaks of each cause have in common, by id."""
    return {one.id: one.title for one in report.causes}
