"""The cut-off: what a reconciliation as of a day is about, record by record."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import polars as pl
import pytest

from flows.steps.frames.parts import whole
from flows.steps.frames.sources import Sources
from flows.steps.reconcile.cut_off import Cut, cut_off
from flows.steps.reconcile.joins import reconcile_sources
from flows.steps.rules.rules import Rules, Window
from schemas.tables import CURRENCY_RATE, EXTRACTS, INVOICE_FILE, PAYMENT, PAYMENT_PLAN_DETAIL
from tests.reconcile.records import database, extract

AS_OF = date(2026, 1, 31)
Row = dict[str, Any]


def at(day: int, month: int = 1, hour: int = 12, minute: int = 0) -> datetime:
    return datetime(2026, month, day, hour, minute, tzinfo=UTC)


def payments(ours: list[Row], theirs: list[Row] | None = None, as_of: date = AS_OF) -> Cut:
    found = ours if theirs is None else theirs
    clean = [{k: v for k, v in row.items() if k != "state"} for row in found]
    return cut_off(
        Sources({PAYMENT.name: extract(PAYMENT, *ours)}, {PAYMENT.name: database(PAYMENT, *clean)}),
        as_of,
    )


def ids(frames: Any, name: str = PAYMENT.name) -> list[int]:
    return frames[name]["Id"].to_list() if name in frames else []


def test_kinds_say_which_day_they_count_for() -> None:
    told = {name: table.business_date for name, table in EXTRACTS.items() if table.business_date}
    assert told == {
        "payment": "PaymentDate",
        "currency_rate": "EffectiveDate",
        "payment_plan_detail": "PlannedDate",
    }


@pytest.mark.parametrize(
    ("moment", "offset", "after"),
    [
        (at(31, hour=23, minute=59), 0, False),
        (at(1, month=2, hour=0), 0, True),
        # Its own clock says the day, not UTC.
        (at(31, hour=23, minute=0), 60, True),
        (at(31, hour=22, minute=59), 60, False),
        (at(1, month=2, hour=4, minute=59), -300, False),
        (at(1, month=2, hour=5, minute=0), -300, True),
        (at(31, hour=10, minute=0), 840, True),
        (at(1, month=2, hour=11, minute=59), -720, False),
        (None, None, False),
    ],
)
def test_the_border_is_midnight_on_the_clock_of_the_record(
    moment: datetime | None, offset: int | None, after: bool
) -> None:
    cut = payments([{"PaymentDate": moment, "PaymentDate_offset": offset}])
    assert ids(cut.after.extract) == ids(cut.after.database) == ([1] if after else [])
    assert ids(cut.kept.extract) == ids(cut.kept.database) == ([] if after else [1])


@pytest.mark.parametrize(
    ("ours", "theirs", "kept"),
    [
        # Dated before the cut-off on one side and after it on the other: its dates are compared.
        ([{"PaymentDate": at(20)}], [{"PaymentDate": at(20, 2)}], ([1], [1])),
        ([{"PaymentDate": at(20, 2)}], [{"PaymentDate": at(20)}], ([1], [1])),
        ([{"PaymentDate": at(20, 2)}], [{"PaymentDate": at(21, 2)}], ([], [])),
        # One side alone has it.
        ([{"PaymentDate": at(20, 2)}], [], ([], [])),
        ([], [{"PaymentDate": at(20, 2)}], ([], [])),
        # The row that counts says when; what it supersedes goes with it.
        (
            [
                {"PaymentDate": at(20), "state": "superseded"},
                {"PaymentDate": at(20, 2), "batch_id": 2},
            ],
            [{"PaymentDate": at(20, 2)}],
            ([], []),
        ),
        (
            [{"PaymentDate": at(20)}, {"PaymentDate": at(20, 2), "batch_id": 2}],
            [{"PaymentDate": at(20, 2)}],
            ([], []),
        ),
        (
            [{"PaymentDate": at(20, 2)}, {"PaymentDate": at(20), "batch_id": 2}],
            [{"PaymentDate": at(20)}],
            ([1, 1], [1]),
        ),
        # A row without a date that could be read stays.
        ([{"PaymentDate": None, "state": "rejected"}], [], ([1], [])),
        # Another tenant's record of the same number is another record.
        (
            [{"PaymentDate": at(20)}, {"PaymentDate": at(20, 2), "TenantsId": 2}],
            [{"PaymentDate": at(20)}],
            ([1], [1]),
        ),
    ],
)
def test_a_record_is_after_where_every_side_says_so(
    ours: list[Row], theirs: list[Row], kept: tuple[list[int], list[int]]
) -> None:
    cut = payments(ours, theirs)
    assert (ids(cut.kept.extract), ids(cut.kept.database)) == kept
    rows = [cut.whole(side, PAYMENT.name) for side in ("extract", "database")]
    assert [0 if one is None else one.height for one in rows] == [len(ours), len(theirs)]


def test_what_stands_apart_is_dated_after_the_day() -> None:
    """By the row that counts, and not by those it took the place of, whatever they are in."""
    before = {"PaymentDate": at(5), "CurrenciesId": 840}
    cut = payments([before, {"PaymentDate": at(9, 2), "batch_id": 2}], [{"PaymentDate": at(9, 2)}])
    told = [(one.side, one.currency, one.rows, one.first, one.last) for one in cut.lines]
    day = date(2026, 2, 9)
    assert told == [("E", "840", 1, day, day), ("E", "978", 1, day, day), ("D", "978", 1, day, day)]


@pytest.mark.long
@pytest.mark.parametrize(
    ("delivered", "offset", "listed", "shown", "zone"),
    [
        # The server shows the day before, and the day behind.
        (datetime(2026, 2, 1), 120, datetime(2026, 1, 31, 22), 0, "UTC"),  # noqa: DTZ001
        (datetime(2026, 1, 31, 23), 0, datetime(2026, 2, 1), 60, "Europe/Berlin"),  # noqa: DTZ001
        (datetime(2026, 1, 31, 23), 0, datetime(2026, 2, 1), None, "Europe/Berlin"),  # noqa: DTZ001
    ],
)
def test_a_record_without_a_key_is_after_where_every_side_says_so(
    delivered: datetime, offset: int, listed: datetime, shown: int | None, zone: str
) -> None:
    """Near midnight two clocks say two days of one moment."""
    name = PAYMENT_PLAN_DETAIL.name
    unpaid = {"PaymentsId": None, "StatusCodesId": None}
    row = {"PlannedDate": delivered, "PlannedDate_offset": offset, **unpaid}
    sources = Sources(
        {name: extract(PAYMENT_PLAN_DETAIL, row)},
        {name: database(PAYMENT_PLAN_DETAIL, row)},
        listings={
            name: extract(
                PAYMENT_PLAN_DETAIL,
                {"PlannedDate": listed, "PlannedDate_offset": shown, **unpaid},
            )
        },
        zones={name: zone},
    )
    cut = cut_off(sources, AS_OF)
    assert not {code for code, _ in codes(cut)} & {"MISSING_IN_TARGET", "MISSING_IN_EXTRACT"}
    assert [one.height for one in (cut.kept.extract[name], cut.kept.listings[name])] == [1, 1]
    early = cut_off(sources, AS_OF - timedelta(days=2))
    assert [one.height for one in (early.kept.extract[name], early.kept.listings[name])] == [0, 0]


def codes(cut: Cut, as_of: date = AS_OF, rules: Rules | None = None) -> list[tuple[str, str]]:
    told = reconcile_sources(cut.kept, rules or Rules(), as_of, service=False, cut=cut)
    return sorted(told.breaks.select("code", "key").rows())


def everything(
    pays: list[Row], rates: list[Row], details: list[Row], as_of: date = AS_OF
) -> list[tuple[str, str]]:
    tables = [(PAYMENT, pays), (CURRENCY_RATE, rates), (PAYMENT_PLAN_DETAIL, details)]
    e = {table.name: extract(table, *rows) for table, rows in tables if rows}
    d = {table.name: database(table, *rows) for table, rows in tables if rows}
    invoice = {"Id": 1, "DebtsId": 70}
    e[INVOICE_FILE.name], d[INVOICE_FILE.name] = (
        extract(INVOICE_FILE, invoice),
        database(INVOICE_FILE, invoice),
    )
    return codes(cut_off(Sources(e, d), as_of), as_of)


def day(number: int, month: int = 1) -> datetime:
    return datetime(2026, month, number)  # noqa: DTZ001


RATE = {"Id": 5, "EffectiveDate": day(1)}
PAID = {"PaymentDate": at(2)}


@pytest.mark.long(but=("pays12-rates12-details12-told12",))
@pytest.mark.parametrize(
    ("pays", "rates", "details", "told"),
    [
        ([PAID], [RATE], [], []),
        # A rate that takes effect after the cut-off is there, and of the future.
        ([PAID], [{"Id": 5, "EffectiveDate": day(3, 2)}], [], [("RATE_FUTURE", "1/1")]),
        ([PAID], [], [], [("RATE_MISSING", "1/1")]),
        # Nothing is said of later rates themselves.
        ([PAID], [RATE, {"Id": 6, "EffectiveDate": day(9, 2), "ExchangeRate": 0.0}], [], []),
        ([PAID], [RATE, {"Id": 6, "ExchangeRate": 0.0}], [], [("RATE_NONPOSITIVE", "6/1")]),
        # A payment after it uses no rate, and its debt was not paid yet.
        ([{"PaymentDate": at(2, 2)}], [], [], [("INV_UNPAID", "1/1")]),
        # Details: due and paid, due and paid later, later and paid, later and not paid.
        ([PAID], [RATE], [{"PlannedDate": day(2)}], []),
        (
            [{"PaymentDate": at(2, 2)}],
            [RATE],
            [{"PlannedDate": day(2)}],
            [("INV_UNPAID", "1/1"), ("PLAN_UNPAID", "1/2026-01-02/10/978/1/1")],
        ),
        ([PAID], [RATE], [{"PlannedDate": day(2, 2)}], []),
        ([PAID], [RATE], [{"PlannedDate": day(2, 2), "PaymentsId": None}], []),
        (
            [PAID],
            [RATE],
            [{"PlannedDate": day(2), "PaymentsId": None}],
            [("PLAN_UNPAID", "1/2026-01-02/10/978//1")],
        ),
        # It was paid before the cut-off, in a currency that was not planned.
        (
            [PAID],
            [RATE],
            [{"PlannedDate": day(2, 2), "PlannedCurrenciesId": 840}],
            [("PLAN_CURRENCY", "1/2026-02-02/10/840/1/1")],
        ),
        # A payment settles details on both sides of the cut-off.
        (
            [PAID],
            [RATE],
            [
                {"PlannedDate": day(2), "PlannedAmount": Decimal(4)},
                {"PlannedDate": day(2, 2), "PlannedAmount": Decimal(6)},
            ],
            [],
        ),
        # An orphan is one wherever its payment is not.
        ([PAID], [RATE], [{"PaymentsId": 9}], [("PLAN_ORPHAN", "1/2026-01-02/10/978/9/1")]),
        ([PAID], [RATE], [{"PaymentsId": 9, "PlannedDate": day(2, 2)}], []),
    ],
)
def test_links_across_the_cut_off(
    pays: list[Row], rates: list[Row], details: list[Row], told: list[tuple[str, str]]
) -> None:
    assert everything(pays, rates, details) == told


def test_a_debt_is_not_paid_yet_by_a_payment_that_the_target_dates_after_the_day() -> None:
    """As its plan says; that the dates differ is told of the payment."""
    ours = [{"Id": number, "PaymentDate": at(31), "DebtsId": 70} for number in (1, 2)]
    theirs = [{**ours[0], "PaymentDate": at(1, 2)}, ours[1]]
    detail = {"PlannedDate": day(31), "PaymentsId": 1}
    cut = cut_off(
        Sources(
            {PAYMENT.name: extract(PAYMENT, *ours)},
            {
                PAYMENT.name: database(PAYMENT, *theirs),
                PAYMENT_PLAN_DETAIL.name: database(PAYMENT_PLAN_DETAIL, detail),
            },
        ),
        AS_OF,
    )
    told = reconcile_sources(cut.kept, Rules(), AS_OF, service=False, cut=cut)
    assert "PLAN_UNPAID" in told.breaks["code"]
    assert [(one.paid, one.outstanding) for one in told.plans] == [(Decimal(0), Decimal(10))]
    assert [(one.payments, one.paid) for one in told.debts] == [(1, Decimal(10))]
    (without,) = told.breaks.filter(code="INV_NONE")["amount"]
    assert without == Decimal(10)


def test_a_record_to_come_is_no_timing_difference() -> None:
    """A window waits for what is late, not for what is not yet."""
    cut = payments([{"Id": 1, "PaymentDate": at(30)}, {"Id": 2, "PaymentDate": at(9, 2)}], [])
    told = reconcile_sources(
        cut.kept, Rules(windows=(Window("payment", 5),)), AS_OF, service=False, cut=cut
    )
    assert whole(told.statuses["payment"])["status"].to_list() == ["PENDING"]
    assert [(line.side, line.rows, line.amounts["PaidAmount"]) for line in cut.lines] == [
        ("E", 1, Decimal(10))
    ]


SIGNED = Sources({}, {}, approved=((3, date(2026, 1, 31)), (7, date(2026, 2, 28))))


@pytest.mark.parametrize(
    ("moment", "run"),
    [(at(2), 3), (at(31), 3), (at(1, 2), 7), (at(28, 2), 7), (at(1, 3), None)],
)
def test_what_comes_for_a_signed_period_is_late(moment: datetime, run: int | None) -> None:
    now = date(2026, 3, 31)
    new = {"Id": 2, "PaymentDate": moment}
    e, d = extract(PAYMENT, {"Id": 1}, new), database(PAYMENT, {"Id": 1}, new)
    sources = Sources(
        {PAYMENT.name: e},
        {PAYMENT.name: d},
        signed={PAYMENT.name: database(PAYMENT, {"Id": 1})},
        approved=SIGNED.approved,
    )
    cut = cut_off(sources, now)
    late = reconcile_sources(cut.kept, Rules(references=()), now, service=False, cut=cut).breaks
    found = late.filter(pl.col("code") == "LATE_ARRIVAL").select("key", "expected").rows()
    assert [key for key, _ in found] == ([] if run is None else ["2/1"])
    assert all(f"in reconciliation {run} as of" in told for _, told in found)


def test_a_signed_record_that_is_dated_later_now_has_changed() -> None:
    """It is apart, and what was signed of it is not forgotten."""
    moved = {"Id": 1, "PaymentDate": at(9, 2)}
    sources = Sources(
        {PAYMENT.name: extract(PAYMENT, moved)},
        {PAYMENT.name: database(PAYMENT, moved)},
        signed={PAYMENT.name: database(PAYMENT, {"Id": 1, "PaymentDate": at(9)})},
        approved=((3, AS_OF),),
    )
    cut = cut_off(sources, AS_OF)
    assert ids(cut.kept.database) == []
    told = reconcile_sources(cut.kept, Rules(references=()), AS_OF, service=False, cut=cut).breaks
    assert told.select("code", "key", "field").rows() == [
        ("CHANGED_AFTER_SIGNOFF", "1/1", "PaymentDate")
    ]


def test_nothing_after_the_day_copies_nothing() -> None:
    e, d = extract(PAYMENT, {"Id": 1}), database(PAYMENT, {"Id": 1})
    cut = cut_off(Sources({PAYMENT.name: e}, {PAYMENT.name: d}), AS_OF + timedelta(1))
    assert cut.kept.extract[PAYMENT.name] is e
    assert cut.lines == ()
