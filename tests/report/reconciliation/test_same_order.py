"""The same causes and breaks come first wherever they are named: those of most money."""

import re
from dataclasses import replace
from decimal import Decimal

import pytest

from flows.report.reconciled.first_page import CAUSES, top_causes
from flows.report.reconciled.markdown import breaks_table, reconciliation_markdown
from flows.steps.breaks.cause_groups import cause_groups
from flows.steps.breaks.causes import CauseLine
from flows.steps.reconcile.report import ReconciliationReport
from flows.steps.reconcile.reported_breaks import BreakLine, Breaks
from tests.report.reconciliation.sample import breaks, everything

GROUPS = [
    # cause or none, code, kind of money, amount, currency
    ("gross", "INV_NONE", "gross", "5000000", "978"),
    ("small gross", "RATE_MISSING", "gross", "10", "978"),
    ("", "REJECTED", "not readable", None, "978"),
    ("", "AMOUNT", "difference", "-300", "978"),
    ("ten", "AMOUNT", "difference", "10", "978"),
    ("in two currencies", "AMOUNT", "difference", "1", "978"),
    ("in two currencies", "REFUSED", "gross", "9000000", "840"),
    ("no money", "RATE_TRIANGLE", "none", None, ""),
]
ORDER = ["Rejected by the check", "Amounts differ", "of ten", "of in two currencies", "of gross"]


def line(place: int, state: str) -> BreakLine:
    cause, code, basis, amount, currency = GROUPS[place]
    money = None if amount is None else Decimal(amount)
    return replace(
        breaks()[2],
        id=f"{place}{state}"[:8].ljust(16, "0"),
        cause=cause,
        code=code,
        basis=basis,
        amount=money and abs(money),
        delta=None,
        counted=money,
        currency=currency,
        state=state,
        severity="high" if basis == "gross" else "low",
        note="",
    )


def report(*states: str) -> ReconciliationReport:
    names = dict.fromkeys(cause for cause, *_ in GROUPS if cause)
    lines = tuple(CauseLine(name, f"of {name}", 1, {}, {}, "", {"978": 1}) for name in names)
    every = (line(place, state) for state in states for place in range(len(GROUPS)))
    return replace(everything(), breaks=Breaks.of(every), causes=lines)


def test_page_one_the_desk_and_prefect_name_the_same_causes_first() -> None:
    there = report("NEW", "ACCEPTED")
    for pool in ("open", "accepted"):
        page_one = [row.cells[1] for row in top_causes(there).rows if row.cells[0] == pool]
        assert [*dict.fromkeys(page_one)] == ORDER
        text = reconciliation_markdown(there).split(f"of breaks that are {pool}\n")[1]
        told = re.findall(r"^\| ([^|]+) \|", text.split("\n## ")[0], re.MULTILINE)
        assert told[2 : 2 + CAUSES] == ORDER
    titles = {one.id: one.title for one in there.causes}
    desk = cause_groups(there.breaks.where("state", "NEW").frame)
    assert [one.title(titles) for one in desk][:CAUSES] == ORDER


@pytest.mark.parametrize(("place", "count"), [(7, 1), (5, None), (6, None)])
def test_page_one_counts_what_is_not_readable_beside_the_money(
    place: int, count: int | None
) -> None:
    row = next(row for row in top_causes(report("NEW")).rows if row.cells[2] == "REJECTED")
    assert row.cells[place] == count


def test_the_lists_of_prefect_have_differences_before_gross_money() -> None:
    """However severe a rule calls gross money that nobody misses."""
    codes = [one["Code"] for one in breaks_table(report("NEW"))]
    assert codes[:4] == ["REJECTED", "AMOUNT", "AMOUNT", "AMOUNT"]
    assert codes[4:6] == ["REFUSED", "INV\\_NONE"]
