"""The parts of a history say together what the whole says, and each what the whole says of it.

A part is a tenant, or a feed. Histories are small and their numbers few, so that records of several
tenants and feeds name each other, by number, by debt or by plan, before and after the day.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from random import Random
from typing import Any

import polars as pl
import pytest

from flows.stages.reconcile.around import records_around
from flows.steps.frames.parts import held
from flows.steps.frames.sources import Sources
from flows.steps.reconcile.cut_off import cut_off
from flows.steps.reconcile.joins import JoinResult, reconcile_sources
from flows.steps.rules.rules import Plans, Rates, Rules
from schemas.field import Table
from schemas.tables import CURRENCY_RATE, INVOICE_FILE, PAYMENT, PAYMENT_PLAN_DETAIL
from tests.reconcile.records import database, extract

TENANTS = (7, 8, 9)
BOUND = {1: 7, 2: 8, 3: None, 4: None}
"""Batches, each of a feed of its own, and the tenant each is bound to."""
KINDS = (PAYMENT, CURRENCY_RATE, INVOICE_FILE, PAYMENT_PLAN_DETAIL)
RULES = Rules(rates=Rates(daily=True, jump_percent=Decimal(10)), plans=Plans(early_days=1))
FAR = 2**32
"""Behind it the numbers of payments that details name without it, as they are cut."""
Frames = dict[str, pl.DataFrame]
Told = dict[tuple[object, ...], tuple[object, ...]]


@dataclass(frozen=True)
class History:
    """What was delivered by all batches, and is there as it was delivered; and a day."""

    extract: Frames
    database: Frames
    day: date

    def judged(self, mine: Callable[[Table], pl.Expr] | None = None, *, feed: bool) -> JoinResult:
        """What is found in the records of a part, which is what `mine` says of each kind."""
        own = [
            {table.name: side[table.name].filter(mine(table) if mine else True) for table in KINDS}
            for side in (self.extract, self.database)
        ]
        around = {}
        if mine is not None:
            loads = {name: (held(rows),) for name, rows in own[1].items()}
            around = records_around(lambda of: (self.database[of.name],), loads, narrow=feed)
        cut = cut_off(Sources(*own, around=around), self.day)
        return reconcile_sources(cut.kept, RULES, self.day, service=False, cut=cut)


def history(seed: int) -> History:
    chance = Random(seed)
    rows: dict[str, list[dict[str, Any]]] = {table.name: [] for table in KINDS}

    def day() -> datetime:
        return datetime(2026, 1, chance.randint(2, 7))  # noqa: DTZ001

    def facts(table: Table) -> dict[str, Any]:
        debt = chance.randint(70, 74)
        if table is PAYMENT:
            return {
                "DebtsId": debt,
                "PaymentDate": day().replace(tzinfo=UTC),
                "PaidAmount": chance.choice((Decimal(5), Decimal(10))),
                "CurrenciesId": chance.choice((978, 978, 840)),
                "CurrencyRatesId": chance.randint(1, 4),
            }
        if table is CURRENCY_RATE:
            return {"ExchangeRate": chance.choice((1.0, 1.1, 1.5)), "EffectiveDate": day()}
        return {"DebtsId": debt, "InvoiceUrl": f"https://i/{chance.randint(1, 2)}"}

    for table in (PAYMENT, CURRENCY_RATE, INVOICE_FILE):
        for number in range(1, 5):
            for tenant in TENANTS:
                if chance.random() < 0.5:
                    far = FAR if table is PAYMENT and chance.random() < 0.1 else 0
                    batches = [one for one, of in BOUND.items() if of in (None, tenant)]
                    key = {"Id": number + far, "TenantsId": tenant}
                    of = {"batch_id": chance.choice(batches)}
                    rows[table.name].append(key | facts(table) | of)
    details = {
        (chance.randint(1, 4), day(), chance.choice((5, 10)), chance.choice((978, 978, 840)),
         chance.choice((None, 1, 2, 3, 4, 5)), chance.randint(1, 2))
        for _ in range(chance.randint(0, 9))
    }  # fmt: skip
    for detail in sorted(details, key=str):
        named = zip(PAYMENT_PLAN_DETAIL.columns, detail, strict=True)
        rows[PAYMENT_PLAN_DETAIL.name].append(dict(named) | {"batch_id": chance.choice([*BOUND])})
    return History(
        {table.name: extract(table, *rows[table.name]) for table in KINDS},
        {table.name: database(table, *rows[table.name]) for table in KINDS},
        date(2026, 1, chance.choice((3, 4, 5, 9))),
    )


def told(done: JoinResult, about: pl.Expr | None = None) -> Told:
    breaks = done.breaks.filter(True if about is None else about)
    about_what = breaks.select("code", "record", "tenant", "key").iter_rows()
    said = breaks.select("expected", "found", "amount").iter_rows()
    return dict(zip(about_what, said, strict=True))


def lines(done: JoinResult) -> set[object]:
    """Plans and debts with their figures; what these and rates are flagged for is in the report."""
    shown = (*done.plans, *done.debts)
    assert {flag for one in (*shown, *done.rates) for flag in one.flags} <= {*done.breaks["code"]}
    return {replace(one, flags=()) for one in shown}


def of_tenant(tenant: int) -> Callable[[Table], pl.Expr]:
    """Rows that name a tenant, or were delivered bound to it."""
    bound = [one for one, of in BOUND.items() if of == tenant]

    def mine(table: Table) -> pl.Expr:
        if table.tenant is None:
            return pl.col("batch_id").is_in(bound)
        return pl.col(table.tenant) == tenant

    return mine


def about_tenant(one: History, tenant: int) -> pl.Expr:
    """Breaks about records of a tenant; of a detail, and of a plan, those that are bound to it."""
    of = of_tenant(tenant)(PAYMENT_PLAN_DETAIL)
    plans = one.database[PAYMENT_PLAN_DETAIL.name].filter(of)["PaymentPlansId"].cast(pl.String)
    of_plan = pl.col("key").is_in(plans.implode())
    detail = pl.col("record") == PAYMENT_PLAN_DETAIL.name
    is_plan = ~pl.col("key").str.contains("/")
    of_detail = pl.when(is_plan).then(of_plan).otherwise(of)
    return pl.when(detail).then(of_detail).otherwise(pl.col("tenant") == tenant)


SEEDS = range(60)
FEW = ("8", "21")


@pytest.mark.long
@pytest.mark.parametrize("seed", SEEDS)
def test_a_tenant_is_told_what_the_whole_says_of_it(seed: int) -> None:
    one = history(seed)
    whole = one.judged(feed=False)
    for tenant in TENANTS:
        some = one.judged(of_tenant(tenant), feed=False)
        assert told(some) == told(whole, about_tenant(one, tenant)), tenant
        assert lines(some) <= lines(whole), tenant


@pytest.mark.long
@pytest.mark.parametrize("seed", SEEDS)
def test_all_feeds_say_together_what_the_whole_says(seed: int) -> None:
    one = history(seed)
    whole = one.judged(feed=False)
    found: Told = {}
    for batch in BOUND:
        some = one.judged(lambda _, batch=batch: pl.col("batch_id") == batch, feed=True)  # type: ignore[misc]
        assert told(some).items() <= told(whole).items(), batch
        assert lines(some) <= lines(whole), batch
        found |= told(some)
    assert found == told(whole)


def test_histories_have_what_parts_may_miss() -> None:
    codes = {code for seed in FEW for code, *_ in told(history(int(seed)).judged(feed=False))}
    assert codes >= {"INV_MULTI", "INV_TENANT", "RATE_TENANT", "RATE_DUPLICATE", "TENANT_CROSS"}
    assert codes >= {"PLAN_UNDER", "DEBT_UNDER", "PLAN_MIXED_CCY"}
