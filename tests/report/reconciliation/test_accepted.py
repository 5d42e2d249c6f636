"""Who accepted what stands on page one and in the files of breaks, to the last cent."""

import csv
import io
from collections import Counter
from dataclasses import replace
from datetime import date
from decimal import Decimal

import polars as pl
import pytest

from flows.report.reconciled.accepted import ACCEPTANCES, accepted_by
from flows.report.reconciled.data import breaks_csv, breaks_frame
from flows.report.reconciled.first_page import money, parts
from flows.report.reconciled.html import render_html
from flows.report.reconciled.text import render_text
from flows.steps.breaks.lifecycle import CARRIED, DECISIONS, carry
from flows.steps.frames.parts import held_rows
from flows.steps.reconcile.break_lines import reported
from flows.steps.reconcile.report import ReconciliationReport
from flows.steps.reconcile.roll_forward import roll_forward
from tests.governance.runs import found, ids, with_counts
from tests.report.reconciliation.sample import everything

DAY, UNTIL = date(2026, 1, 31), "2026-02-28"
UNREADABLE = {"amount": None, "code": "REJECTED", "field": "", "note": 'PaidAmount is "12,50"'}


def decided(breaks: pl.DataFrame, *acceptances: tuple[str, str, slice]) -> ReconciliationReport:
    """A report of breaks of which some are accepted: by whom, why, and which."""
    rows = [
        {"break_id": one, "what": "accept", "by": by, "reason": reason, "until": UNTIL}
        for by, reason, which in acceptances
        for one in ids(breaks)[which]
    ]
    numbered = [{"id": number, **row} for number, row in enumerate(rows)]
    before = carry(breaks, pl.DataFrame(schema=CARRIED), nothing(), gone(), DAY)
    carried = with_counts(
        carry(
            breaks,
            before.select([*CARRIED]),
            pl.DataFrame(numbered, schema=DECISIONS),
            gone(),
            DAY,
        )
    )
    lines = carried.with_columns(
        severity=pl.lit("low"),
        age_days=pl.lit(0),
        age_business_days=pl.lit(0),
        cause=pl.lit(None, dtype=pl.String),
    )
    return replace(
        everything(),
        proofs=(),
        causes=(),
        breaks=reported(held_rows(lines), {"1": "EUR", "2": "USD"}),
        roll_forward=roll_forward(carried),
        accepted_forward=roll_forward(carried, "accepted"),
        aside_forward=(),
        currencies={"1": "EUR", "2": "USD"},
    )


def nothing() -> pl.DataFrame:
    return pl.DataFrame(schema=DECISIONS)


def gone() -> pl.DataFrame:
    return pl.DataFrame(schema={"id": pl.String(), "side": pl.String()})


def mixed() -> ReconciliationReport:
    """Two people and a rule accepted differences, gross money and what nobody can read."""
    breaks = pl.concat(
        [
            found("1", "2", amount="-10.25"),
            found("3", amount="7", currency=2),
            found("4", amount="900", code="INV_NONE", field=""),
            found("5", **UNREADABLE),
            found("6", amount="0.01"),
            found("7", amount="4711"),
        ]
    )
    return decided(
        breaks,
        ("ann", "bank charges", slice(0, 4)),
        ("rule 5", "rejected for good", slice(4, 5)),
        ("bo", "bank charges", slice(5, 6)),
    )


@pytest.mark.long
def test_page_one_names_who_accepted_what() -> None:
    """The largest first, as everywhere: what is no number, then differences."""
    day = date.fromisoformat(UNTIL)
    assert [row.cells for row in accepted_by(mixed()).rows] == [
        ("rule 5", "rejected for good", day, 1, "1 EUR", None, None, 1),
        ("ann", "bank charges", day, 3, "1 EUR", Decimal("20.50"), Decimal(900), None),
        ("ann", "bank charges", day, 1, "2 USD", Decimal(7), None, None),
        ("bo", "bank charges", day, 1, "1 EUR", Decimal("0.01"), None, None),
    ]
    for told in (render_text(mixed()), render_html(mixed())):
        assert told.lower().index("accepted by whom") < told.lower().index("signatures of")
        assert "bank charges" in told


@pytest.mark.long
def test_its_sums_are_the_accepted_money_of_each_currency() -> None:
    many = pl.concat(
        found(str(one), amount=f"{one}.37", currency=1 + one % 3) for one in range(1, 100)
    )
    whose = [(f"person {one}", "why", slice(one, one + 1)) for one in range(60)]
    for report in (mixed(), decided(many, *whose)):
        sums: dict[str, Counter[str]] = {}
        for *_, breaks, currency, difference, gross, unread in (
            row.cells for row in accepted_by(report).rows
        ):
            told = {"breaks": breaks, "difference": difference, "gross": gross, "unread": unread}
            sums.setdefault(str(currency), Counter()).update(
                {name: value for name, value in told.items() if value}  # type: ignore[misc]
            )
        for currency, pool, breaks, difference, gross in (row.cells for row in money(report).rows):
            if pool == "accepted":
                told = sums[str(currency)]
                assert (told["breaks"], told["difference"], told["gross"]) == (
                    *(breaks, difference, gross),
                )


def test_many_acceptances_are_named_by_their_money_and_the_others_counted() -> None:
    breaks = found(*map(str, range(1, 41)))
    report = decided(breaks, *((f"person {one}", "", slice(one, one + 1)) for one in range(40)))
    rows = accepted_by(report).rows
    assert len(rows) == ACCEPTANCES + 1
    assert rows[-1].cells[:2] == ("20 other acceptances", "in the list of breaks")
    assert rows[-1].cells[3:6] == (20, "1 EUR", Decimal(200))


def test_a_report_without_accepted_breaks_has_no_such_table() -> None:
    assert "accepted_by" not in [table.name for table in parts(decided(found("1")))]


@pytest.mark.long
def test_the_files_of_breaks_have_who_until_when_and_why() -> None:
    frame = breaks_frame(mixed())
    lines = list(csv.DictReader(io.StringIO(breaks_csv(frame).decode())))
    told = {
        (line["accepted_by"], line["accepted_until"], line["accepted_reason"]) for line in lines
    }
    assert told == {
        ("ann", UNTIL, "bank charges"),
        ("bo", UNTIL, "bank charges"),
        ("rule 5", UNTIL, "rejected for good"),
        ("", "", ""),
    }
    assert frame.schema["accepted_until"] == pl.Date
