"""The causes of breaks by pool: open breaks apart from accepted ones."""

import polars as pl

from flows.steps.breaks.cause_groups import GROUPED_BY, CauseGroup, pooled_groups
from flows.steps.reconcile.report import ReconciliationReport


def pooled_causes(report: ReconciliationReport) -> dict[str, dict[str, CauseGroup]]:
    """The groups by pool and name, most money first; a pool has only groups with breaks in it.

    Only causes with a line in the report are included; these include all with most money.
    """
    causes = [one.id for one in report.causes]
    breaks = report.breaks.frame.select(*GROUPED_BY).filter(pl.col("cause").is_in(["", *causes]))
    pools = pooled_groups(breaks)
    return {pool: {one.name: one for one in groups} for pool, groups in pools.items()}


def cause_titles(report: ReconciliationReport) -> dict[str, str]:
    """The title of each cause by id."""
    return {one.id: one.title for one in report.causes}
