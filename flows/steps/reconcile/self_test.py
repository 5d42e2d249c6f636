"""The self-test: planted faults, one per break code of the joins, that every run has to find.

They go through the same functions as the records, by the rules of the run with every optional check
switched on. A planted fault that is not found is reported, and so is a break that was not planted.
"""

from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time
from decimal import Decimal
from functools import lru_cache

import polars as pl

from flows.steps.breaks.make import together
from flows.steps.breaks.tolerated import TOLERATED_SCHEMA, reconcile_tolerated
from flows.steps.frames.parts import held
from flows.steps.frames.sources import REFUSED, record_schema
from flows.steps.reconcile.batches import CONTRADICTIONS, reconcile_batches
from flows.steps.reconcile.debt_ranges import reconcile_all_debts
from flows.steps.reconcile.plans import reconcile_plans
from flows.steps.reconcile.rates import reconcile_rates
from flows.steps.reconcile.refused_files import refused_files
from flows.steps.rules.rules import Budget, Discount, Plans, Rates, Rules
from schemas.field import TIMES, Kind, Table
from schemas.kinds import OFFSET
from schemas.tables import (
    CURRENCY_RATE,
    INSERT_BATCH_DATA,
    INVOICE_FILE,
    PAYMENT,
    PAYMENT_PLAN_DETAIL,
)

_DAY = date(2026, 3, 4)
_WIDE = 2**32 + 5
_RECORD = '{"Id":1,"TenantsId":1,"DebtsId":2,"InvoiceUrl":"u"}'

PLANTED = frozenset(
    {
        ("RATE_MISSING", "1/1"),
        ("RATE_TENANT", "2/1"),
        ("RATE_PAIR", "3/1"),
        ("RATE_FUTURE", "4/1"),
        ("RATE_STALE", "6/1"),
        ("RATE_NOT_LATEST", "7/1"),
        ("RATE_GAP", "105/1"),
        ("RATE_GAP", "140/1"),
        ("RATE_JUMP", "106/1"),
        ("RATE_NONPOSITIVE", "110/1"),
        ("RATE_SELF", "111/1"),
        ("RATE_INVERSE", "120/1"),
        ("RATE_TRIANGLE", "132/1"),
        ("TENANT_CROSS", "1/2"),
        ("PLAN_ORPHAN", "1/2026-03-04/10/1/9999/"),
        ("PLAN_REF_WIDTH", "2/2026-03-04/10/1/5/"),
        ("PLAN_CURRENCY", "3/2026-03-04/10/2/21/"),
        ("PLAN_UNDER", "22/1"),
        ("DEBT_UNDER", "122/1"),
        ("PLAN_OVER", "23/1"),
        ("DEBT_OVER", "123/1"),
        ("PLAN_LATE", "6/2026-03-01/10/1/24/"),
        ("PLAN_EARLY", "7/2026-03-20/10/1/25/"),
        ("PLAN_UNPAID", "8/2026-03-01/10/1//"),
        ("PLAN_DUPLICATE", "9/2026-05-01/10/1//"),
        ("PLAN_MIXED_CCY", "10"),
        ("TENANT_CROSS", "11"),
        ("DEBT_MIXED_CCY", "128"),
        ("DISCOUNT_GT_PAID", "130/1"),
        ("INV_NONE", "131"),
        ("INV_UNPAID", "900/1"),
        ("INV_MULTI", "101"),
        ("INV_TENANT", "901/2"),
        ("TENANT_CROSS", "2/1"),
        ("TOLERANCE_BUDGET", "count/"),
        ("FILE_REFUSED", "5/payments.csv"),
    }
)
"""Break codes and keys of planted faults, without those of batches, whose keys have a digest."""
PLANTED_BATCHES = ("BATCH_MISSING", "BATCH_EXTRA", *CONTRADICTIONS, "BATCH_COUNT")


@dataclass(frozen=True, slots=True)
class SelfTest:
    """The result of trying the checks of this run on planted faults."""

    planted: int
    found: int
    missed: tuple[str, ...] = ()


@lru_cache(maxsize=8)
def self_test(rules: Rules) -> SelfTest:
    """Try the joins on the planted faults; fast enough for every run.

    The result depends only on the rules and the code, so it is cached by rules.
    """
    asked = replace(
        rules,
        calendar=None,
        budget=Budget(count=0),
        windows=(),
        rates=Rates(daily=True),
        plans=Plans(early_days=5, late_days=0, discount=Discount.DOES_NOT),
    )
    return verdict(planted_breaks(asked))


def verdict(found: pl.DataFrame) -> SelfTest:
    """Compare the breaks found with the planted faults."""
    batches = found["code"].str.starts_with("BATCH_")
    got = set(found.filter(~batches).select("code", "key").iter_rows())
    codes = Counter(found.filter(batches)["code"])
    missed = [f"{code} at {key}" for code, key in sorted(PLANTED - got)]
    missed += [code for code in PLANTED_BATCHES if code not in codes]
    false = [f"not planted: {code} at {key}" for code, key in sorted(got - PLANTED)]
    extra = (codes - Counter(PLANTED_BATCHES)).elements()
    false += [f"not planted: {code}" for code in sorted(extra)]
    planted = len(PLANTED) + len(PLANTED_BATCHES)
    return SelfTest(planted, planted - len(missed), (*missed, *false))


def planted_breaks(rules: Rules) -> pl.DataFrame:
    """The breaks of the planted records, whatever the rules leave out of the reconciliation."""
    rules = replace(rules, references=Rules().references)
    payments = _payments()
    plans = reconcile_plans(_details(), payments, rules, _DAY)
    return together(
        [
            reconcile_rates((held(payments),), _rates(), rules, _DAY).breaks,
            plans.breaks,
            reconcile_all_debts(
                (held(payments),), plans, (held(_invoices()),), rules
            ).every_break(),
            reconcile_batches(*_batches()).breaks,
            reconcile_tolerated(_tolerated(), rules).breaks,
            refused_files(_refused()),
        ]
    )


def frame(table: Table, names: str, rows: list[tuple[object, ...]]) -> pl.DataFrame:
    """A frame of a record kind with values for the named fields; a date becomes midnight in UTC.

    Fields that are not named, such as fields added to the table later, are null.
    """
    given = dict(zip(names.split(), zip(*rows, strict=True), strict=True))
    columns: dict[str, list[object]] = {}
    for field in table.delivered:
        values = [*given.get(field.name, [None] * len(rows))]
        if field.kind in TIMES:
            zone = UTC if field.kind is Kind.DATETIME_OFFSET else None
            columns[field.name] = [
                datetime.combine(value, time(), zone) if isinstance(value, date) else value
                for value in values
            ]
            columns[field.name + OFFSET] = [None if zone is None else 0] * len(rows)
        else:
            columns[field.name] = values
    return pl.DataFrame(columns, schema=record_schema(table))


def _payment(
    number: int, rate: int = 102, *, tenant: int = 1, currency: int = 1, day: date = _DAY,
    paid: int = 10, discount: int = 0, debt: int | None = None,
) -> tuple[object, ...]:  # fmt: skip
    debt = 100 + number if debt is None else debt
    return (number, tenant, 1, debt, day, Decimal(paid), Decimal(discount), currency, rate)


def _payments() -> pl.DataFrame:
    return frame(
        PAYMENT,
        "Id TenantsId ActionsId DebtsId PaymentDate PaidAmount DiscountAmount CurrenciesId "
        "CurrencyRatesId",
        [
            _payment(1, 999),
            _payment(2, 150),
            _payment(3, currency=3),
            _payment(4, day=date(2026, 3, 3)),
            _payment(6, 140, currency=9),
            _payment(7, 101),
            _payment(_WIDE, debt=120),
            _payment(22, paid=9),
            _payment(23, paid=11),
            _payment(27, 150, tenant=2),
            _payment(29, currency=2, debt=128),
            _payment(30, discount=20),
            *map(_payment, (21, 24, 25, 26, 28, 31)),
        ],
    )


def _rates() -> pl.DataFrame:
    days = [2, 3, 4, 5, 6, 11, 12]
    values = [1.10, 1.11, 1.10, 1.12, 1.11, 1.10, 1.40]
    rates: list[tuple[object, ...]] = [
        (100 + place, 1, 1, 2, value, date(2026, 3, day))
        for place, (day, value) in enumerate(zip(days, values, strict=True))
    ]
    rates += [
        (110, 1, 1, 3, 0.0, _DAY),
        (111, 1, 3, 3, 1.5, _DAY),
        (120, 1, 4, 5, 2.0, _DAY),
        (121, 1, 5, 4, 0.6, _DAY),
        (130, 1, 6, 7, 2.0, _DAY),
        (131, 1, 7, 8, 3.0, _DAY),
        (132, 1, 6, 8, 7.0, _DAY),
        (140, 1, 1, 9, 1.5, date(2026, 2, 2)),
        (150, 2, 1, 2, 1.1, _DAY),
    ]
    names = "Id TenantsId FromCurrenciesId ToCurrenciesId ExchangeRate EffectiveDate"
    return frame(CURRENCY_RATE, names, rates)


def _details() -> pl.DataFrame:
    later, before, ten = date(2026, 5, 1), date(2026, 3, 1), Decimal(10)
    return frame(
        PAYMENT_PLAN_DETAIL,
        "PaymentPlansId PlannedDate PlannedAmount PlannedCurrenciesId PaymentsId",
        [
            (1, _DAY, ten, 1, 9999),
            (2, _DAY, ten, 1, 5),
            (3, _DAY, ten, 2, 21),
            (4, _DAY, ten, 1, 22),
            (5, _DAY, ten, 1, 23),
            (6, before, ten, 1, 24),
            (7, date(2026, 3, 20), ten, 1, 25),
            (8, before, ten, 1, None),
            *[(9, later, ten, 1, None)] * 2,
            (10, later, ten, 1, None),
            (10, later, ten, 2, None),
            (11, _DAY, ten, 1, 26),
            (11, _DAY, ten, 1, 27),
        ],
    )


def _invoices() -> pl.DataFrame:
    paid = (101, 103, 104, 106, 107, 120, 121, 122, 123, 124, 125, 126, 128, 130)
    rows: list[tuple[object, ...]] = [
        *(
            (800 + place, 1, debt, f"https://files.example/{debt}")
            for place, debt in enumerate(paid)
        ),
        (880, 2, 127, "https://files.example/127"),
        (881, 1, 101, "https://files.example/101-again"),
        (900, 1, 500, "https://files.example/500"),
        # The file of debt 102 belongs to another tenant.
        (901, 2, 102, "https://files.example/102"),
    ]
    return frame(INVOICE_FILE, "Id TenantsId DebtsId InvoiceUrl", rows)


def _batches() -> tuple[pl.DataFrame, pl.DataFrame]:
    """Sent and listed rows of a batch: unpaired rows, contradictory flags and unequal counts."""
    unlike = _RECORD.replace('"DebtsId":2', '"DebtsId":3')
    listed: list[tuple[object, ...]] = [
        ("untold", True, False, 1, None, None),
        ("merged error", True, True, 1, None, "why"),
        ("not merged", False, False, 1, None, None),
        ("unset", False, True, 1, None, "why"),
        ("unreadable", False, True, 1, "{", None),
        (_RECORD, False, True, 1, unlike, None),
        ("extra", False, True, 1, None, None),
    ]
    sent = [row for row in listed if row[0] != "extra"]
    sent += [("missing", False, False, 1, None, None), ("bad", False, False, 1, None, None)]
    listed.append(("bad", True, False, 1, None, "why"))
    states = [*["inserted"] * (len(sent) - 1), "rejected"]
    names = "Data HasError Merged BatchId Jsondata ErrorData"
    return (
        frame(INSERT_BATCH_DATA, names, sent).with_columns(pl.Series("state", states)),
        frame(INSERT_BATCH_DATA, names, listed),
    )


def _refused() -> pl.DataFrame:
    file = (5, None, "payments.csv", "missing_column")
    return pl.DataFrame([file], schema=REFUSED, orient="row")


def _tolerated() -> pl.DataFrame:
    schema = {name: TOLERATED_SCHEMA[name] for name in ("tolerance", "currency", "delta")}
    return pl.DataFrame([("any", 1, Decimal("0.01"))], schema=schema, orient="row")
