"""What an exclusion of the rules leaves out is known, and nothing is said of it."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import polars as pl
import pytest

from flows.steps.frames.parts import PartedSide, held
from flows.steps.frames.sources import Sources
from flows.steps.reconcile.cut_off import cut_off
from flows.steps.reconcile.joins import JoinResult, reconcile_sources
from flows.steps.rules.canonical import rules_text
from flows.steps.rules.file import read_rules_text
from flows.steps.rules.rules import Exclusion, Rules
from schemas.field import Table
from schemas.tables import (
    CURRENCY_RATE,
    INSERT_BATCH_DATA,
    INVOICE_FILE,
    PAYMENT,
    PAYMENT_PLAN_DETAIL,
)
from tests.reconcile.records import AS_OF, database, extract, matched, statuses

TRAINING = {"TenantsId": 999, "Id": 9, "DebtsId": 79, "PaidAmount": Decimal(50_000)}


def without(table: Table, field: str, *values: str) -> Rules:
    exclusion = Exclusion("training", table.name, field, values, "a training tenant")
    return Rules(exclusions=(exclusion,))


def judged(
    rules: Rules, *kinds: tuple[Table, list[dict[str, Any]]], known: Sources | None = None
) -> JoinResult:
    delivered = {table.name: extract(table, *rows) for table, rows in kinds}
    target = {table.name: database(table, *rows) for table, rows in kinds}
    sources = replace(known or Sources({}, {}), extract=delivered, database=target)
    return reconcile_sources(sources, rules, AS_OF, service=False)


def told(result: JoinResult) -> list[tuple[str, str]]:
    return sorted(result.breaks.select("code", "key").iter_rows())


def rate(number: int, day: int, value: float = 1.1, **values: Any) -> dict[str, Any]:
    effective = datetime(2026, 1, day)  # noqa: DTZ001
    return {"Id": number, "ExchangeRate": value, "EffectiveDate": effective, **values}


@pytest.mark.long
def test_a_payment_that_is_left_out_opens_nothing_and_takes_along_what_is_of_it() -> None:
    rules = without(PAYMENT, "TenantsId", "999")
    kinds = (
        (PAYMENT, [TRAINING]),
        (PAYMENT_PLAN_DETAIL, [{"PaymentsId": 9, "PlannedAmount": Decimal(3)}]),
        (INVOICE_FILE, [{"Id": 1, "TenantsId": 999, "DebtsId": 79}]),
    )
    signed = Sources({}, {}, signed={"payment": database(PAYMENT)}, approved=((1, AS_OF),))
    result = judged(rules, *kinds, known=signed)
    assert told(result) == []
    assert (result.plans, result.debts, result.rates) == ((), (), ())
    assert {"RATE_MISSING", "LATE_ARRIVAL", "PLAN_OVER"} <= {
        code for code, _ in told(judged(Rules(), *kinds, known=signed))
    }


@pytest.mark.long
def test_what_was_signed_before_it_was_left_out_is_not_judged_either() -> None:
    signed = Sources({}, {}, signed={"payment": database(PAYMENT, {**TRAINING, "DebtsId": 1})})
    kinds = (PAYMENT, [TRAINING])
    assert told(judged(without(PAYMENT, "Id", "9"), kinds, known=signed)) == []
    assert ("CHANGED_AFTER_SIGNOFF", "9/999") in told(judged(Rules(), kinds, known=signed))


def test_what_was_signed_and_is_left_out_by_what_it_became_since_has_changed() -> None:
    """Its money is in no total any more, and no rule was changed: nothing else would say so."""
    signed = Sources({}, {}, signed={"payment": database(PAYMENT, {}, {"Id": 2, "DebtsId": 79})})
    moved = (PAYMENT, [{"DebtsId": 79}, {"Id": 2, "DebtsId": 79, "PaidAmount": Decimal(3)}])
    result = judged(without(PAYMENT, "DebtsId", "79"), moved, known=signed)
    assert told(result) == [("CHANGED_AFTER_SIGNOFF", "1/1")]
    assert (result.changed_since, result.compared) == (1, 2)


@pytest.mark.long(but=("rates1-6-codes1",))
@pytest.mark.parametrize(
    ("rates", "out", "codes"),
    [
        # Nothing is said of a rate that is left out, and no payment names it in vain.
        ([rate(1, 1), rate(5, 2, -1.0)], "5", []),
        ([rate(1, 1), rate(5, 2, -1.0)], "6", ["RATE_NONPOSITIVE"]),
        ([rate(5, 1), rate(6, 2, 9.0)], "6", []),
        ([rate(5, 1), rate(6, 2, 9.0)], "7", ["RATE_JUMP", "RATE_NOT_LATEST"]),
    ],
)
def test_a_rate_that_is_left_out_is_known(
    rates: list[dict[str, Any]], out: str, codes: list[str]
) -> None:
    kinds = ((PAYMENT, [{"CurrencyRatesId": 5}]), (CURRENCY_RATE, rates))
    found = told(judged(without(CURRENCY_RATE, "Id", out), *kinds))
    assert [code for code, _ in found if code.startswith("RATE")] == codes


EARLY, AFTER = datetime(2025, 12, 1), datetime(2026, 2, 1)  # noqa: DTZ001
RATE, FILE, DETAIL = [{"Id": 5}], [{}], [{}]


@pytest.mark.long(but=("table8-Id-2-kinds8-codes8",))
@pytest.mark.parametrize(
    ("table", "field", "value", "kinds", "codes"),
    [
        # Money of a plan, with a detail that was cancelled.
        (PAYMENT_PLAN_DETAIL, "StatusCodesId", "9",
         {PAYMENT_PLAN_DETAIL: [{}, {"StatusCodesId": 9, "PlannedDate": EARLY}]},
         ["DEBT_UNDER", "PLAN_UNDER"]),
        (PAYMENT_PLAN_DETAIL, "StatusCodesId", "9",
         {PAYMENT_PLAN_DETAIL: [{}, {"StatusCodesId": 9, "PlannedDate": AFTER}]},
         ["DEBT_UNDER", "PLAN_UNDER"]),
        (PAYMENT, "Id", "2",
         {PAYMENT: [{}, {"Id": 2, "DebtsId": 71, "PaymentDate": AFTER.replace(tzinfo=UTC)}],
          PAYMENT_PLAN_DETAIL: [{}, {"PaymentsId": 2}]}, ["PLAN_UNPAID"]),
        # A file counts as none of a debt's; and where it is the only one, it is there.
        (INVOICE_FILE, "Id", "2",
         {INVOICE_FILE: [{}, {"Id": 2, "InvoiceUrl": "https://i/2.pdf"}]}, ["INV_MULTI"]),
        (INVOICE_FILE, "Id", "1", {}, []),
        (INVOICE_FILE, "Id", "1", {INVOICE_FILE: [{"TenantsId": 2}]},
         ["INV_TENANT", "TENANT_CROSS"]),
        # Second keys, whichever of the two is left out.
        (CURRENCY_RATE, "Id", "6", {CURRENCY_RATE: [*RATE, {"Id": 6}]}, ["RATE_DUPLICATE"]),
        (CURRENCY_RATE, "Id", "5", {CURRENCY_RATE: [*RATE, {"Id": 6}]}, ["RATE_DUPLICATE"]),
        (INVOICE_FILE, "Id", "2", {INVOICE_FILE: [{}, {"Id": 2}]}, ["INV_DUPLICATE"]),
        # A rate that a payment names is there, and no more.
        (CURRENCY_RATE, "Id", "5", {CURRENCY_RATE: [{"Id": 5, "EffectiveDate": EARLY}]},
         ["RATE_STALE"]),
        (CURRENCY_RATE, "Id", "5", {CURRENCY_RATE: [{"Id": 5, "EffectiveDate": AFTER}]},
         ["RATE_FUTURE"]),
        (CURRENCY_RATE, "Id", "5", {CURRENCY_RATE: [{"Id": 5, "TenantsId": 2}]},
         ["RATE_TENANT", "TENANT_CROSS"]),
        (CURRENCY_RATE, "Id", "5",
         {CURRENCY_RATE: [{"Id": 5, "FromCurrenciesId": 1, "ToCurrenciesId": 2}]}, ["RATE_PAIR"]),
    ],
)  # fmt: skip
def test_nothing_is_said_of_what_is_held_against_what_is_left_out(
    table: Table, field: str, value: str, kinds: dict[Table, list[dict[str, Any]]], codes: list[str]
) -> None:
    rows = {PAYMENT: [{}], CURRENCY_RATE: RATE, INVOICE_FILE: FILE, **kinds}
    delivered = {of.name: extract(of, *some) for of, some in rows.items()}
    target = {of.name: database(of, *some) for of, some in rows.items()}
    cut = cut_off(Sources(delivered, target), AS_OF)

    def found(rules: Rules) -> set[str]:
        result = reconcile_sources(cut.kept, rules, AS_OF, service=False, cut=cut)
        return {code for code, _ in told(result)}

    assert set(codes) <= found(Rules())
    assert not found(without(table, field, value))


@pytest.mark.parametrize(
    ("table", "field", "value", "out"),
    [
        (PAYMENT, "PaidAmount", "1e1", True),
        (PAYMENT, "PaidAmount", "10.000", True),
        (PAYMENT, "PaidAmount", "10.01", False),
        (PAYMENT, "DebtsId", "+070", True),
        (CURRENCY_RATE, "ExchangeRate", "1.10", True),
        # What the clock of the record shows, or its instant.
        (CURRENCY_RATE, "EffectiveDate", "2026-01-02", True),
        (CURRENCY_RATE, "EffectiveDate", "2026-01-02T00:00:00", True),
        (CURRENCY_RATE, "EffectiveDate", "2026-01-02T00:00:00Z", False),
        (PAYMENT_PLAN_DETAIL, "PlannedDate", "2026-01-02T00:00:00", True),
        (PAYMENT_PLAN_DETAIL, "PlannedDate", "2026-01-01T23:00Z", True),
        (PAYMENT_PLAN_DETAIL, "PlannedDate", "2026-01-02T00:00:00Z", False),
        (PAYMENT, "PaymentDate", "2026-01-02T04:04:05+01:00", True),
        (PAYMENT, "PaymentDate", "2026-01-02T03:04:05Z", True),
        (PAYMENT, "PaymentDate", "2026-01-02T04:04:05Z", False),
    ],
)
def test_a_value_is_meant_however_it_is_written(
    table: Table, field: str, value: str, out: bool
) -> None:
    text = f'[[exclude]]\nid = "a"\nrecord = "{table.name}"\nfield = "{field}"\n'
    rules = read_rules_text(f'{text}values = ["{value}"]\nreason = "b"')
    assert read_rules_text(rules_text(rules)) == rules
    row = {"PlannedDate_offset": 60} if table is PAYMENT_PLAN_DETAIL else {}
    result = matched(table, extract(table, row), database(table, row), rules=rules)
    assert statuses(result) == (["EXCLUDED a"] if out else ["MATCHED_EXACT"])


@pytest.mark.long
def test_batches_leave_out_what_is_left_out() -> None:
    def row(number: int, text: str) -> dict[str, Any]:
        return {"BatchId": number, "Data": text, "Jsondata": text, "Merged": True}

    sent = extract(INSERT_BATCH_DATA, row(1, "a"), row(2, "b"), row(2, "c"))
    listed = extract(INSERT_BATCH_DATA, row(2, "b"), row(1, "d"), row(3, "e"))
    name = INSERT_BATCH_DATA.name
    sources = Sources({name: sent}, {}, listings={name: listed})

    def found(*values: str) -> set[tuple[str, str]]:
        rules = without(INSERT_BATCH_DATA, "BatchId", *values) if values else Rules()
        result = reconcile_sources(sources, rules, AS_OF, service=False)
        return {(code, key[0]) for code, key in told(result) if code != "BATCH_JSON_UNREADABLE"}

    missing, extra = "BATCH_MISSING", "BATCH_EXTRA"
    assert found() == {(missing, "1"), (missing, "2"), (extra, "1"), (extra, "3")}
    assert found("1") == {(missing, "2"), (extra, "3")}
    assert found("2", "3") == {(missing, "1"), (extra, "1")}


def test_a_row_that_is_left_out_takes_along_what_the_service_lists_of_it() -> None:
    """A server shows a time by its own clock: under it the rule would not know the record."""
    table, moment = PAYMENT_PLAN_DETAIL, datetime(2026, 1, 2)  # noqa: DTZ001
    rows = {"PlannedDate": moment, "PlannedDate_offset": 60}
    shown = {"PlannedDate": moment - timedelta(hours=1), "PlannedDate_offset": None}
    rules = without(table, "PlannedDate", "2026-01-02T00:00:00")
    result = matched(
        table,
        extract(table, rows),
        database(table, rows),
        listed=extract(table, shown),
        rules=rules,
    )
    assert statuses(result) == ["EXCLUDED training"]
    assert result.breaks.is_empty()


def test_a_delivered_row_decides_about_its_partner() -> None:
    """As it does in matching, which takes the partner of a row that is left out along."""
    rules = without(PAYMENT, "ActionsId", "4")
    rows = {"payment": extract(PAYMENT, {"Id": 1, "ActionsId": 4}, {"Id": 2, "ActionsId": 5})}
    target = {"payment": database(PAYMENT, {"Id": 1, "ActionsId": 5}, {"Id": 2, "ActionsId": 4})}
    result = reconcile_sources(Sources(rows, target), rules, AS_OF, service=False)
    assert told(result) == [("INV_NONE", "70"), ("RATE_MISSING", "2/1"), ("VALUE", "2/1")]


def test_parts_leave_out_what_all_together_leave_out() -> None:
    rows = [
        {"Id": number, "TenantsId": 999 if number % 2 else 1, "DebtsId": 70 + number % 3}
        for number in range(9)
    ]
    files = database(INVOICE_FILE, *({"Id": number, "DebtsId": 71 + number} for number in range(3)))
    details = database(PAYMENT_PLAN_DETAIL, *({"PaymentsId": number} for number in range(9)))
    sides = [extract(PAYMENT, *rows), database(PAYMENT, *rows)]
    rules = without(PAYMENT, "TenantsId", "999")

    def found(rows: int) -> pl.DataFrame:
        parts = [
            PartedSide(
                {
                    "payment": [held(part) for part in side.iter_slices(rows)],
                    "invoice_file": (held(files),),
                    "payment_plan_detail": (held(details),),
                }
            )
            for side in sides
        ]
        sources = Sources(PartedSide({"payment": parts[0].loads["payment"]}), parts[1])
        return reconcile_sources(sources, rules, date(2026, 1, 9), service=False).breaks

    assert found(9).equals(found(4))
    assert "999" not in " ".join(found(9)["key"])
