"""The judgement of four records from Parquet files, without a database: one case in a process."""

import sys
from pathlib import Path

import polars as pl
from clock import Clock
from four_records_truths import AS_OF, read_truths

from flows.steps.breaks.ageing import with_ages
from flows.steps.breaks.carry_forward import explained
from flows.steps.breaks.lifecycle import DECISIONS, carry, nothing_before
from flows.steps.breaks.severity import severities
from flows.steps.frames.parts import held_rows
from flows.steps.frames.sources import Sources
from flows.steps.reconcile.conclusion import Facts, conclude
from flows.steps.reconcile.joins import reconcile_sources
from flows.steps.reconcile.report import ReconciliationReport
from flows.steps.reconcile.self_test import self_test
from flows.steps.rules.rules import Rules
from schemas.tables import CURRENCY_RATE

RULES = Rules()


def main(folder: Path) -> None:
    """Print what each step cost and which breaks were found."""
    clock = Clock()
    sources = Sources(*read_truths(folder))
    clock.lap("read")
    report = concluded(sources, clock)
    clock.report(breaks=dict(sorted(report.breaks.counts("code").items())))


def concluded(sources: Sources, clock: Clock) -> ReconciliationReport:
    """The report of a first run over these sources, with the costs of its steps."""
    result = reconcile_sources(sources, RULES, AS_OF, service=False)
    clock.lap("judge")
    changed = pl.DataFrame(schema={"id": pl.String(), "side": pl.String()})
    decisions = pl.DataFrame(schema=DECISIONS)
    carried = carry(result.breaks, nothing_before(), decisions, changed, AS_OF)
    carried = carried.with_columns(severities(carried, RULES, AS_OF))
    carried = with_ages(carried, AS_OF, RULES.calendar)
    caused, causes = explained(held_rows(carried), sources.database[CURRENCY_RATE.name], None, {})
    clock.lap("carry, causes")
    tested = self_test(RULES)
    clock.lap("self-test")
    report = conclude(
        sources=sources,
        result=result,
        carried=caused,
        causes=causes,
        self_test=tested,
        rules=RULES,
        as_of=AS_OF,
        service=False,
        facts=Facts("Four records", "", (), (), (), None, None, {}),
    )
    clock.lap("conclude")
    return report


if __name__ == "__main__":
    main(Path(sys.argv[1]))
