"""Breaks of a report: a frame that gives the lines it was made of, and few of them at a time."""

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal

import pytest

from flows.report.reconciled.html import MOST
from flows.report.reconciled.markdown import breaks_table, reconciliation_markdown
from flows.stages.reconcile.write import rendered
from flows.steps.reconcile.reported_breaks import BreakLine, Breaks
from tests.report.reconciliation.sample import breaks, everything, many

AMOUNTS = ("0", "-0.01", "130.25", "1e19", "1e20", "-1e400", "0.000000000000000001", "1e-19")


@pytest.mark.parametrize("amount", AMOUNTS)
def test_a_line_is_what_it_was(amount: str) -> None:
    value = Decimal(format(Decimal(amount), "f"))
    line = replace(breaks()[0], delta=value, amount=abs(value), counted=None, tenant=None)
    assert list(Breaks.of([line, *breaks()])) == [line, *breaks()]


def test_one_place_a_part_and_a_count() -> None:
    lines = breaks()
    there = Breaks.of(lines)
    assert (there[2], there[-1], len(there)) == (lines[2], lines[-1], len(lines))
    assert tuple(there[1:3]) == lines[1:3]
    assert tuple(there.where("state", "NEW", "ACCEPTED")) == tuple(
        one for one in lines if one.state in ("NEW", "ACCEPTED")
    )
    assert there.counts("state")["NEW"] == sum(one.state == "NEW" for one in lines)
    assert there.counts("state")["EXPIRED"] == 0
    assert there != Breaks.of(lines[1:])


@pytest.mark.long
def test_no_rendering_makes_lines_of_all_breaks(monkeypatch: pytest.MonkeyPatch) -> None:
    """There may be millions: what is shown of them is a page, the rest are columns."""
    report = replace(everything(), breaks=many(2 * MOST).breaks)
    each = Breaks.__iter__

    def few(of: Breaks) -> Iterator[BreakLine]:
        assert len(of) <= MOST, "all of them"
        return each(of)

    monkeypatch.setattr(Breaks, "__iter__", few)
    assert set(rendered(report)) >= {"report.html", "report.xlsx", "breaks.csv", "totals.json"}
    assert reconciliation_markdown(report)
    assert breaks_table(report)
