"""A scope of batches or feeds holds its records against all that the database has."""

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from connectors.files.profiles.profile import DEFAULT
from flows.stages.reconcile.run import Asked, reconcile
from flows.stages.reconcile.scope import Scope
from flows.stages.reconcile.sources import gather_sources
from flows.stages.sequence import import_delivery
from flows.stages.workspace import Workspace
from flows.steps.reconcile.cut_off import cut_off
from flows.steps.reconcile.joins import reconcile_sources
from flows.steps.rules.rules import Exclusion, Rates, Rules
from tests.conftest import Once
from tests.stages.payments import HEADER

AS_OF = date(2026, 1, 31)
DETAILS = "PaymentPlansId,PlannedDate,PlannedAmount,PlannedCurrenciesId,PaymentsId,StatusCodesId"
RATES = "Id,TenantsId,FromCurrenciesId,ToCurrenciesId,ExchangeRate,EffectiveDate"
FILES = "Id,TenantsId,DebtsId,InvoiceUrl"


def payment(number: int, debt: int, amount: str, rate: int = 9, day: int = 2) -> str:
    return f"{number},7,1,{debt},2026-01-{day:02}T10:00:00+01:00,{amount},0,1,{rate}"


def detail(plan: int, amount: str, names: int | str, day: int = 2) -> str:
    return f"{plan},2026-01-{day:02}T00:00:00Z,{amount},1,{names},1"


FEEDS = {
    # By feed, what each of its batches has.
    "pay": [
        # Debt 2 is paid by two batches, as planned; 3 too little; 4 by a rate that nobody has.
        (HEADER, payment(1, 2, "10"), payment(3, 3, "10"), payment(4, 4, "10", rate=99)),
        (HEADER, payment(2, 2, "20"), payment(5, 5, "10"), payment(6, 6, "1", day=15)),
    ],
    "plan": [
        (DETAILS, detail(1, "5", 1), detail(1, "20", 2), detail(3, "11", 3)),
        (DETAILS, detail(1, "5", 1, day=1), detail(8, "1", 77), detail(5, "10", "")),
        (DETAILS, detail(5, "5", 5), detail(5, "5", 5, day=1)),
    ],
    "rate": [
        (RATES, "9,7,1,2,1.1,2026-01-01T00:00:00"),
        (RATES, "10,7,1,2,1.1,2026-01-14T00:00:00", "9,8,1,2,1.1,2026-01-01T00:00:00"),
    ],
    "file": [
        (FILES, "1,7,2,https://i/1", "2,7,3,https://i/2", "3,7,8,https://i/3"),
        (FILES, "4,7,3,https://i/4", "5,7,5,https://i/5", "6,7,6,https://i/6"),
    ],
}


@pytest.fixture
def place(workspace: Workspace, tmp_path: Path, once: Once) -> Workspace:
    def build() -> None:
        for feed, batches in FEEDS.items():
            for number, rows in enumerate(batches):
                path = tmp_path / f"{feed}-{number}.csv"
                path.write_text("\n".join(rows) + "\n")
                import_delivery(workspace, [str(path)], replace(DEFAULT, feed=feed))

    return once(build)


@pytest.fixture
def told(place: Workspace) -> Callable[..., set[tuple[str, str, str]]]:
    def breaks(scope: Scope, rules: Rules | None = None) -> set[tuple[str, str, str]]:
        with place.database.connect() as connection:
            gathered = gather_sources(place, connection, scope, {})
        cut = cut_off(gathered.sources, AS_OF)
        done = reconcile_sources(cut.kept, rules or Rules(), AS_OF, service=False, cut=cut)
        flags = {flag for one in done.debts for flag in one.flags}
        assert flags <= {*done.breaks["code"]}
        rows = done.breaks.select("code", "record", "key").iter_rows()
        return {(code, record, key) for code, record, key in rows}

    return breaks


@pytest.mark.long
def test_what_others_brought_is_there(
    told: Callable[..., set[tuple[str, str, str]]], place: Workspace
) -> None:
    every = told(Scope())
    assert {(code, key.split("/")[0]) for code, _, key in every} == {
        ("RATE_MISSING", "4"),
        ("RATE_STALE", "6"),
        ("RATE_NOT_LATEST", "6"),
        ("PLAN_UNDER", "3"),
        ("DEBT_UNDER", "3"),
        # What is due and not paid counts to the one debt of its plan.
        ("DEBT_UNDER", "5"),
        ("PLAN_UNPAID", "5"),
        ("PLAN_LATE", "1"),
        ("PLAN_LATE", "5"),
        ("PLAN_ORPHAN", "8"),
        ("INV_NONE", "4"),
        ("INV_MULTI", "3"),
        ("INV_UNPAID", "3"),
    }
    of = {"pay": "payment", "plan": "payment_plan_detail", "file": "invoice_file"}
    for feed, record in of.items():
        assert told(Scope(feeds=(feed,))) == {one for one in every if one[1] == record}, feed
    assert told(Scope(feeds=("rate",))) == set()
    batches = {number: told(Scope(batches=(number,))) for number in range(1, 10)}
    assert set[tuple[str, str, str]]().union(*batches.values()) == every
    # Debt 3 has files of two batches, and of none of them more than one.
    several = {
        number for number, said in batches.items() if "INV_MULTI" in {one[0] for one in said}
    }
    assert several == {8, 9}
    assert {code for code, *_ in batches[1]} == {
        *("RATE_MISSING", "PLAN_UNDER", "DEBT_UNDER", "INV_NONE")
    }


@pytest.mark.long
def test_a_series_of_rates_is_that_of_all_of_them(
    told: Callable[..., set[tuple[str, str, str]]], place: Workspace
) -> None:
    def of(scope: Scope) -> set[str]:
        daily = Rules(rates=Rates(daily=True))
        return {key for code, _, key in told(scope, daily) if code == "RATE_GAP"}

    every = of(Scope())
    assert every
    assert of(Scope(feeds=("rate",))) == every
    batches = [of(Scope(batches=(number,))) for number in (1, 6, 7)]
    assert batches[0] == set()
    assert set[str]().union(*batches) == every


def test_what_is_left_out_or_later_is_so_for_a_narrow_scope_too(
    told: Callable[..., set[tuple[str, str, str]]], place: Workspace
) -> None:
    out = Exclusion("a", "payment_plan_detail", "PlannedAmount", ("11",), "b")
    rules = Rules(exclusions=(out, Exclusion("c", "payment", "Id", ("5",), "d")))
    assert {code for code, *_ in told(Scope(batches=(1,)), rules)} == {"RATE_MISSING", "INV_NONE"}
    plans = told(Scope(feeds=("plan",)), rules)
    assert {(code, key[0]) for code, _, key in plans} == {
        *(("PLAN_LATE", "1"), ("PLAN_ORPHAN", "8"), ("PLAN_UNPAID", "5"))
    }


@pytest.mark.long
def test_what_others_bring_later_resolves_a_break(place: Workspace, tmp_path: Path) -> None:
    def states() -> dict[tuple[str, str], str]:
        done = reconcile(place, Asked(Scope(feeds=("pay",)), AS_OF, Rules(), by="ann"))
        return {(one.code, one.key): one.state for one in done.report.breaks}

    assert states()["INV_NONE", "4"] == "NEW"
    path = tmp_path / "more.csv"
    path.write_text(f"{FILES}\n9,7,4,https://i/9\n")
    import_delivery(place, [str(path)], replace(DEFAULT, feed="file"))
    # Neither open nor set aside: it was looked for.
    assert ("INV_NONE", "4") not in states()
