"""Every record gets one status, and what is wrong with it has a break."""

from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors.postgres.runs.lost_references import LOST
from flows.steps.breaks.frame import BREAK_SCHEMA, gather
from flows.steps.breaks.severity import severities
from flows.steps.breaks.tolerated import TOLERATED_SCHEMA, reconcile_tolerated
from flows.steps.frames.statuses import FOUND, PARTNER, line_schema
from flows.steps.match.same_text import same
from flows.steps.rules.rules import Budget, Exclusion, Offset, Rules, Tolerance, Window
from schemas.amounts import BEYOND
from schemas.breaks import BREAKS, Status
from schemas.derived.left_out import OWN, WORDS
from schemas.field import Field, Kind, Table
from schemas.frame_types import AMOUNT
from schemas.tables import (
    AVATAR,
    CURRENCY_RATE,
    EXTRACTS,
    INVOICE_FILE,
    PAYMENT,
    PAYMENT_PLAN_DETAIL,
    USER_ACCOUNT,
)
from tests.reconcile.records import (
    AS_OF,
    DAY,
    answers,
    database,
    extract,
    matched,
    new,
    statuses,
    told,
)

LEFT_OUT = Rules(exclusions=(Exclusion("tests", "payment", "DebtsId", ("70",), "not real"),))
CENT = Tolerance("payment", "PaidAmount", above=Decimal("0.01"))
OTHER_OFFSET = {"PaymentDate_offset": 0}

ALONE = [
    # state of the row in its batch, status, code
    ("rejected", "REJECTED", "REJECTED"),
    ("conflict", "DUPLICATE", "DUPLICATE"),
    ("superseded", "EXCLUDED superseded", None),
    ("stale", "EXCLUDED stale", None),
    ("corrected", "EXCLUDED corrected", None),
    ("undone", "EXCLUDED undone", None),
    ("discarded", "EXCLUDED discarded", None),
    ("listed", "EXCLUDED listed", None),
    ("inserted", "MISSING_IN_TARGET", "MISSING_IN_TARGET"),
    ("updated", "MISSING_IN_TARGET", "MISSING_IN_TARGET"),
    ("pending", "MISSING_IN_TARGET", "MISSING_IN_TARGET"),
]


@pytest.mark.parametrize(("state", "status", "code"), ALONE)
def test_a_row_ends_by_its_own_state(state: str, status: str, code: str | None) -> None:
    result = matched(PAYMENT, extract(PAYMENT, {"state": state}), database(PAYMENT))
    assert statuses(result) == [status]
    side = "D" if code == "MISSING_IN_TARGET" else "E"
    assert told(result) == ([(code, "1/1", "", side)] if code else [])


DIFFERENCES: list[tuple[dict[str, Any], str, str, str | None, str | None, str | None]] = [
    # change in the database, field, code, expected, found, delta
    ({"PaidAmount": Decimal("10.01")}, "PaidAmount", "AMOUNT", "10", "10.01", "0.01"),
    ({"DiscountAmount": Decimal(-2)}, "DiscountAmount", "AMOUNT", "0", "-2", "-2"),
    ({"PaidAmount": None}, "PaidAmount", "PRECISION", "10", None, None),
    ({"DebtsId": 71}, "DebtsId", "VALUE", "70", "71", None),
    ({"CurrenciesId": 840}, "CurrenciesId", "VALUE", "978", "840", None),
    ({"PaymentDate": DAY + timedelta(microseconds=1)}, "PaymentDate", "INSTANT",
     "2026-01-02T04:04:05+01:00", "2026-01-02T04:04:05.000001+01:00", None),
    (OTHER_OFFSET, "PaymentDate", "OFFSET",
     "2026-01-02T04:04:05+01:00", "2026-01-02T03:04:05+00:00", None),
]  # fmt: skip


@pytest.mark.parametrize(("change", "field", "code", "expected", "found", "delta"), DIFFERENCES)
def test_a_difference_is_told_exactly(
    change: dict[str, Any],
    field: str,
    code: str,
    expected: str | None,
    found: str | None,
    delta: str | None,
) -> None:
    rules = Rules(offset=Offset.DIFFERS)
    result = matched(PAYMENT, extract(PAYMENT, {}), database(PAYMENT, change), rules=rules)
    assert statuses(result) == ["MISMATCH"]
    assert told(result) == [(code, "1/1", field, "D")]
    line = result.breaks.row(0, named=True)
    assert (line["expected"], line["found"]) == (expected, found)
    assert line["delta"] == (None if delta is None else Decimal(delta))
    assert (line["currency"], line["file"], line["line"], line["batch_id"]) == (978, "a.csv", 2, 1)
    assert line["date"] == date(2026, 1, 2)


def test_every_differing_field_has_its_break() -> None:
    change = {"PaidAmount": Decimal(11), "DebtsId": 71}
    result = matched(PAYMENT, extract(PAYMENT, {}), database(PAYMENT, change))
    assert told(result) == [("VALUE", "1/1", "DebtsId", "D"), ("AMOUNT", "1/1", "PaidAmount", "D")]


TOLERANCES: list[tuple[str, Tolerance | None, str]] = [
    ("10.01", CENT, "MATCHED_TOLERANCE"),
    ("10.010000000000000001", CENT, "MISMATCH"),
    ("9.99", CENT, "MISMATCH"),  # below is not above
    ("9.99", Tolerance("payment", "PaidAmount", below=Decimal("0.01")), "MATCHED_TOLERANCE"),
    ("10.10", Tolerance("payment", "PaidAmount", above_relative=Decimal("0.01")),
     "MATCHED_TOLERANCE"),
    ("10.11", Tolerance("payment", "PaidAmount", above_relative=Decimal("0.01")), "MISMATCH"),
    ("10.01", Tolerance("payment", "PaidAmount", currency=840, above=Decimal(1)), "MISMATCH"),
    ("10.01", Tolerance("payment", "PaidAmount", tenant=1, above=Decimal(1)), "MATCHED_TOLERANCE"),
    ("10.01", Tolerance("payment", "DiscountAmount", above=Decimal(1)), "MISMATCH"),
    ("10.01", Tolerance("currency_rate", "PaidAmount", above=Decimal(1)), "MISMATCH"),
    ("10.00", None, "MATCHED_EXACT"),
]  # fmt: skip


@pytest.mark.parametrize(("found", "tolerance", "status"), TOLERANCES)
def test_a_tolerance_reaches_as_far_as_it_says(
    found: str, tolerance: Tolerance | None, status: str
) -> None:
    rules = Rules(tolerances=(tolerance,) if tolerance else ())
    target = database(PAYMENT, {"PaidAmount": Decimal(found)})
    result = matched(PAYMENT, extract(PAYMENT, {}), target, rules=rules)
    assert statuses(result) == [status]
    assert result.tolerated.height == (status == "MATCHED_TOLERANCE")
    assert result.breaks.height == (status == "MISMATCH")


@pytest.mark.parametrize("found", ["9.99", "10.01", "10"])
def test_there_is_no_difference_between_two_currencies(found: str) -> None:
    rules = Rules(tolerances=(replace(CENT, below=Decimal("0.01")),))
    target = database(PAYMENT, {"PaidAmount": Decimal(found), "CurrenciesId": 840})
    result = matched(PAYMENT, extract(PAYMENT, {}), target, rules=rules)
    fields = ["PaidAmount", "CurrenciesId"] if found != "10" else ["CurrenciesId"]
    assert statuses(result) == ["MISMATCH"]
    assert result.tolerated.is_empty()
    both = f"PaidAmount 10, PaidAmount {found} in currency 840"
    assert result.breaks.select("code", "field", "delta", "amount", "amounts").rows() == [
        ("VALUE", field, None, None, both)
        if field == "PaidAmount"
        else ("VALUE", field, None, Decimal(10), "PaidAmount 10")
        for field in fields
    ]


def test_an_amount_in_another_currency_is_as_grave_as_the_larger_one() -> None:
    """That the delivered one is small says nothing of what is there."""
    target = database(PAYMENT, {"PaidAmount": Decimal(1_000_000), "CurrenciesId": 840})
    breaks = new(matched(PAYMENT, extract(PAYMENT, {}), target).breaks)
    told = breaks.select("field", severities(breaks, Rules(), AS_OF))
    assert dict(told.iter_rows()) == {"PaidAmount": "high", "CurrenciesId": "medium"}


def test_the_narrowest_tolerance_decides() -> None:
    wide = Tolerance("payment", "PaidAmount", above=Decimal(5))
    narrow = Tolerance("payment", "PaidAmount", currency=978, above=Decimal("0.01"))
    target = database(PAYMENT, {"PaidAmount": Decimal("10.02")})
    for tolerances in ((wide, narrow), (narrow, wide)):
        rules = Rules(tolerances=tolerances)
        result = matched(PAYMENT, extract(PAYMENT, {}), target, rules=rules)
        assert statuses(result) == ["MISMATCH"]


def test_what_a_tolerance_waved_through_is_listed() -> None:
    target = database(PAYMENT, {"PaidAmount": Decimal("10.01")})
    result = matched(PAYMENT, extract(PAYMENT, {}), target, rules=Rules(tolerances=(CENT,)))
    assert result.tolerated.rows() == [
        (CENT.name, "payment", 1, "1/1", "PaidAmount", 978, "10", "10.01", Decimal("0.01"))
    ]


def test_only_an_amount_that_a_tolerance_let_pass_is_money() -> None:
    table = replace(PAYMENT, fields=(*PAYMENT.fields, Field("Weight", Kind.DOUBLE)))
    each = (CENT, Tolerance("payment", "Weight", above=Decimal(1)))
    rules = Rules(tolerances=each, budget=Budget(count=1, amount=Decimal("0.02")))
    found = {"PaidAmount": Decimal("10.01"), "Weight": 2.4}
    result = matched(table, extract(table, {"Weight": 2.0}), database(table, found), rules=rules)
    assert statuses(result) == ["MATCHED_TOLERANCE"]
    annex = reconcile_tolerated(result.tolerated, rules)
    assert annex.breaks.select("key", "found").rows() == [("count/", "2")]


def test_a_time_may_be_days_apart() -> None:
    rules = Rules(tolerances=(Tolerance("payment", "PaymentDate", days=Decimal(1)),))
    for apart, status in ((timedelta(days=1), "MATCHED_TOLERANCE"),
                          (timedelta(days=-1, microseconds=-1), "MISMATCH")):  # fmt: skip
        target = database(PAYMENT, {"PaymentDate": DAY + apart})
        assert statuses(matched(PAYMENT, extract(PAYMENT, {}), target, rules=rules)) == [status]


OFFSETS = [
    (Offset.EQUAL, "MATCHED_EXACT", 0),
    (Offset.TOLD, "MATCHED_TOLERANCE", 1),
    (Offset.DIFFERS, "MISMATCH", 1),
]


@pytest.mark.parametrize(("rule", "status", "breaks"), OFFSETS)
def test_the_same_instant_is_the_same_instant(rule: Offset, status: str, breaks: int) -> None:
    target = database(PAYMENT, OTHER_OFFSET)
    result = matched(PAYMENT, extract(PAYMENT, {}), target, rules=Rules(offset=rule))
    assert statuses(result) == [status]
    assert [code for code, *_ in told(result)] == ["OFFSET"] * breaks


WALLS = [
    # effective date and offset on both sides
    (datetime(2026, 1, 2), None, datetime(2026, 1, 2), None, None),  # noqa: DTZ001
    (datetime(2026, 1, 2), 60, datetime(2026, 1, 1, 23), 0, "OFFSET"),  # noqa: DTZ001
    (datetime(2026, 1, 2), 60, datetime(2026, 1, 2), 0, "INSTANT"),  # noqa: DTZ001
    (datetime(2026, 1, 2), None, datetime(2026, 1, 2), 60, "INSTANT"),  # noqa: DTZ001
    (datetime(2026, 1, 2), None, datetime(2026, 1, 3), None, "INSTANT"),  # noqa: DTZ001
]


@pytest.mark.parametrize(("mine", "offset", "theirs", "other", "code"), WALLS)
def test_wall_clocks_are_compared_as_far_as_they_say_their_zone(
    mine: datetime, offset: int | None, theirs: datetime, other: int | None, code: str | None
) -> None:
    rows = extract(CURRENCY_RATE, {"EffectiveDate": mine, "EffectiveDate_offset": offset})
    target = database(CURRENCY_RATE, {"EffectiveDate": theirs, "EffectiveDate_offset": other})
    result = matched(CURRENCY_RATE, rows, target, rules=Rules(offset=Offset.DIFFERS))
    assert [line[0] for line in told(result)] == ([code] if code else [])


WINDOWS = [
    # The record's day is Friday, 2 January; as of is Friday, 9 January.
    (Window("payment", 5), "PENDING"),
    (Window("payment", 4), "MISSING_IN_TARGET"),
    (Window("payment", 7, business=False), "PENDING"),
    (Window("payment", 6, business=False), "MISSING_IN_TARGET"),
    (Window("currency_rate", 99), "MISSING_IN_TARGET"),
]


@pytest.mark.parametrize(("window", "status"), WINDOWS)
def test_a_record_may_be_late_within_its_window(window: Window, status: str) -> None:
    rules = Rules(windows=(window,))
    result = matched(PAYMENT, extract(PAYMENT, {}), database(PAYMENT), rules=rules)
    assert statuses(result) == [status]


@pytest.mark.parametrize(("days", "status"), [(5, "PENDING"), (4, "MISSING_IN_TARGET")])
def test_a_record_may_be_late_in_a_listing_as_in_the_database(days: int, status: str) -> None:
    rules = Rules(windows=(Window(PAYMENT_PLAN_DETAIL.name, days),))
    rows, target = extract(PAYMENT_PLAN_DETAIL, {}), database(PAYMENT_PLAN_DETAIL, {})
    for there in (target, target.clear()):
        result = matched(PAYMENT_PLAN_DETAIL, rows, there, listed=target.clear(), rules=rules)
        assert statuses(result) == [status]
        assert result.breaks.is_empty() == (status == "PENDING")


def test_only_a_business_date_says_how_old_a_break_is() -> None:
    born = {"Id": 1, "BirthDate": datetime(1980, 5, 17)}  # noqa: DTZ001
    sides = extract(USER_ACCOUNT, born), database(USER_ACCOUNT, {**born, "Id": 2})
    assert matched(USER_ACCOUNT, *sides).breaks["date"].to_list() == [None, None]
    assert matched(PAYMENT, extract(PAYMENT, {}), database(PAYMENT)).breaks["date"][0] == DAY.date()


def test_only_the_newest_row_of_a_record_counts() -> None:
    rows = extract(
        PAYMENT,
        {"PaidAmount": Decimal(1)},
        {"PaidAmount": Decimal(2), "batch_id": 2, "extract_id": 2},
        {"Id": 2},
    )
    result = matched(PAYMENT, rows, database(PAYMENT, {"PaidAmount": Decimal(2)}, {"Id": 2}))
    assert statuses(result) == ["EXCLUDED superseded", "MATCHED_EXACT", "MATCHED_EXACT"]
    assert result.breaks.is_empty()


def test_equal_rows_of_one_batch_are_one_record_and_unequal_ones_are_none() -> None:
    equal = extract(PAYMENT, {}, {})
    result = matched(PAYMENT, equal, database(PAYMENT, {}))
    assert statuses(result) == ["MATCHED_EXACT", "EXCLUDED superseded"]
    unequal = extract(PAYMENT, {}, {"DebtsId": 71})
    result = matched(PAYMENT, unequal, database(PAYMENT, {}))
    assert statuses(result) == ["DUPLICATE", "DUPLICATE", "MISSING_IN_EXTRACT"]
    assert told(result)[:2] == [
        ("DUPLICATE", "1/1#1:a.csv:1", "", "E"),
        ("DUPLICATE", "1/1#1:a.csv:2", "", "E"),
    ]


@pytest.mark.parametrize(
    ("key", "names"),
    [
        ({"Id": None}, ["1:a.csv:1", "2:a.csv:1"]),
        ({"Id": None, "TenantsId": None}, ["1:a.csv:1", "2:a.csv:1"]),
        ({"Id": 5}, ["5/1#1:a.csv:1", "5/1#2:a.csv:1"]),
    ],
)
def test_what_a_break_is_about_does_not_hang_on_the_breaks_beside_it(
    key: dict[str, Any], names: list[str]
) -> None:
    """Two rejected rows that read alike, of files of two days with one name."""
    day = {"state": "rejected", **key}
    rows = [{**day, "PaidAmount": Decimal(100)}, {**day, "PaidAmount": Decimal(240)}]
    one, other = rows[0], {**rows[1], "batch_id": 2, "extract_id": 2, "row": 1}
    both = matched(PAYMENT, extract(PAYMENT, one, other), database(PAYMENT))
    assert both.breaks["key"].to_list() == names
    corrected = extract(PAYMENT, {**one, "state": "corrected"}, other)
    left = matched(PAYMENT, corrected, database(PAYMENT)).breaks
    # A record that is told by its key alone once it is alone is none of the two.
    assert left["key"].to_list() == (["5/1"] if key.get("Id") else [names[1]])


def test_a_target_that_has_a_key_twice_is_paired_once() -> None:
    target = database(PAYMENT, {}, {"PaidAmount": Decimal(3)})
    result = matched(PAYMENT, extract(PAYMENT, {}), target)
    assert statuses(result) == ["MATCHED_EXACT", "DUPLICATE"]
    assert told(result) == [("DUPLICATE", "1/1", "", "D")]


def test_a_record_without_its_key_is_reported() -> None:
    rows = extract(PAYMENT, {"Id": None}, {"TenantsId": None}, {"Id": None, "TenantsId": None})
    result = matched(PAYMENT, rows, database(PAYMENT, {"Id": None}))
    assert statuses(result) == ["UNKNOWN"] * 4
    assert told(result) == [
        ("KEY_MISSING", "1:a.csv:1", "", "E"),
        ("KEY_MISSING", "1:a.csv:2", "", "E"),
        ("KEY_MISSING", "1:a.csv:3", "", "E"),
        ("KEY_MISSING", "/1", "", "D"),
    ]


def test_an_amount_that_cannot_be_held_is_no_match() -> None:
    result = matched(PAYMENT, extract(PAYMENT, {"PaidAmount": None}), database(PAYMENT, {}))
    assert statuses(result) == ["UNKNOWN"]
    assert told(result) == [("PRECISION", "1/1", "PaidAmount", "E")]


def unheld(frame: pl.DataFrame, name: str, *texts: str | None) -> pl.DataFrame:
    """The rows with an amount as it is held where its column cannot: a text beside a null."""
    beside = pl.Series(name + BEYOND, texts, pl.String)
    none = pl.when(beside.is_null()).then(name).alias(name)
    return frame.with_columns(none, beside)


@pytest.mark.parametrize(
    ("change", "breaks"),
    [
        ({}, []),
        ({"ActionsId": 8}, [("VALUE", "ActionsId")]),
        ({"DiscountAmount": Decimal(1)}, [("AMOUNT", "DiscountAmount")]),
        ({"PaidAmount": Decimal(5)}, []),  # Told with both values by the break that is there.
        ({"Id": 2}, [("MISSING_IN_TARGET", ""), ("MISSING_IN_EXTRACT", "")]),
    ],
)
def test_an_amount_that_cannot_be_held_hides_nothing(
    change: dict[str, Any], breaks: list[tuple[str, str]]
) -> None:
    lost = pl.DataFrame(
        {"field": "DebtsId", "of": "Debts", "value": 70, "tenant": None, "elsewhere": False},
        schema=LOST,
    )
    delivered = unheld(extract(PAYMENT, {}), "PaidAmount", "1e-30")
    there = database(PAYMENT, change)
    if "PaidAmount" not in change:
        there = unheld(there, "PaidAmount", "1e-30")
    sent = answers({"state": "refused", "status": 400})
    result = matched(PAYMENT, delivered, there, lost=lost, sent=sent)
    if "Id" not in change:
        breaks = [*breaks, ("REFUSED", ""), ("REFERENCE_MISSING", "DebtsId")]
        assert statuses(result) == ["UNKNOWN"]
    else:
        assert statuses(result) == ["MISSING_IN_TARGET", "MISSING_IN_EXTRACT"]
    assert {(code, field) for code, _, field, _ in told(result)} == {
        ("PRECISION", "PaidAmount"),
        *breaks,
    }
    (one,) = result.breaks.filter(code="PRECISION").iter_rows(named=True)
    found = {"PaidAmount": "5", "Id": None}.get(next(iter(change), ""), "1e-30")
    assert (one["expected"], one["found"], one["amount_beyond"]) == ("1e-30", found, "1e-30")


@pytest.mark.parametrize(
    ("delivered", "there", "status", "breaks"),
    [
        ("1e25", "1e25", "UNKNOWN", [("PRECISION", "E")]),
        ("1e25", None, "UNKNOWN", [("PRECISION", "E")]),
        (None, "1e25", "MISMATCH", [("AMOUNT", "D")]),
        (None, "10.0000000000000000001", "MISMATCH", [("PRECISION", "D")]),
        (None, None, "MATCHED_EXACT", []),
    ],
)
def test_an_optional_amount_is_judged_as_one_that_is_required(
    delivered: str | None, there: str | None, status: str, breaks: list[tuple[str, str]]
) -> None:
    optional = tuple(replace(one, required=one.name in PAYMENT.key) for one in PAYMENT.fields)
    for table in (PAYMENT, replace(PAYMENT, fields=optional)):
        mine = unheld(extract(table, {}), "PaidAmount", delivered)
        result = matched(table, mine, unheld(database(table, {}), "PaidAmount", there))
        assert statuses(result) == [status]
        assert [(code, side) for code, _, _, side in told(result)] == breaks


def test_an_amount_that_cannot_be_held_is_looked_for_in_a_listing() -> None:
    """Of a record without a key, which the service lists beside the database."""
    rows = {}, {"PaymentsId": 2}
    mine, there = (
        unheld(of(PAYMENT_PLAN_DETAIL, *rows), "PlannedAmount", "1e25", "1e25")
        for of in (extract, database)
    )
    result = matched(PAYMENT_PLAN_DETAIL, mine, there, listed=there[:1])
    assert statuses(result) == ["UNKNOWN", "MISSING_IN_TARGET"]
    assert [(code, side) for code, *_, side in told(result)] == [
        ("PRECISION", "E"),
        ("PRECISION", "E"),
        ("MISSING_IN_TARGET", "G"),
    ]


@pytest.mark.parametrize(("echo", "differs"), [("1e-30", False), ("2e-30", True)])
def test_an_echo_of_an_amount_that_cannot_be_held_is_compared(echo: str, differs: bool) -> None:
    rows = (unheld(of(PAYMENT, {}), "PaidAmount", "1e-30") for of in (extract, database))
    said = f'{{"Id": 2, "PaidAmount": {echo}}}'
    result = matched(PAYMENT, *rows, sent=answers({"state": "differs", "echo": said}))
    found = result.breaks.filter(code="ECHO", field="PaidAmount")
    assert found["found"].to_list() == ([f"0.{'0' * 29}2"] if differs else [])


def test_what_a_rule_leaves_out_is_left_out_on_both_sides() -> None:
    rules = Rules(exclusions=(Exclusion("tests", "payment", "TenantsId", ("9",), "not real"),))
    rows = extract(PAYMENT, {"TenantsId": 9}, {})
    target = database(PAYMENT, {"TenantsId": 9, "DebtsId": 1}, {}, {"Id": 3, "TenantsId": 9})
    result = matched(PAYMENT, rows, target, rules=rules)
    assert statuses(result) == ["EXCLUDED tests", "MATCHED_EXACT", "EXCLUDED tests"]
    assert result.breaks.is_empty()


@pytest.mark.parametrize("word", sorted(WORDS))
def test_a_rule_takes_along_what_it_leaves_out_itself(word: str) -> None:
    """Whatever its id is called; records of the target that nobody delivered are missed."""
    rules = Rules(exclusions=(Exclusion(word, "payment", "ActionsId", ("99",), "not real"),))
    states = {text: state for state, (_, text) in OWN.items()}
    rows = extract(PAYMENT, {"state": states.get(word, "stale")})
    found = database(PAYMENT, {"PaidAmount": Decimal("9999.00")})
    assert told(matched(PAYMENT, rows, found, rules=rules)) == [
        ("MISSING_IN_EXTRACT", "1/1", "", "D")
    ]


def test_an_id_under_another_tenant_is_told_as_such() -> None:
    result = matched(
        PAYMENT, extract(PAYMENT, {}, {"Id": 2}), database(PAYMENT, {"TenantsId": 3}, {"Id": 2})
    )
    assert statuses(result) == ["MISSING_IN_TARGET", "MATCHED_EXACT", "MISSING_IN_EXTRACT"]
    crossed = result.breaks.filter(pl.col("code") == "TENANT_CROSS").row(0, named=True)
    assert (crossed["expected"], crossed["found"], crossed["key"]) == ("1", "3", "1/1")


LINE = Table(
    "statement_line",
    "Statement line",
    (
        Field("Number", Kind.INTEGER64, required=True),
        Field("TenantsId", Kind.INTEGER, required=True),
        Field("BookedAt", Kind.DATETIME, required=True),
    ),
    key=("Number", "TenantsId", "BookedAt"),
)
OF_TENANTS = [*(of for of in EXTRACTS.values() if "TenantsId" in of.key and len(of.key) > 1), LINE]
OF_KIND = {Kind.STRING: "a", Kind.DATETIME: datetime(2026, 1, 2)}  # noqa: DTZ001


@pytest.mark.parametrize("table", OF_TENANTS, ids=[of.name for of in OF_TENANTS])
def test_a_key_under_another_tenant_is_told_of_every_kind(table: Table) -> None:
    key = {name: OF_KIND.get(table.by_name[name].kind, 1) for name in table.key}
    there = {**key, "TenantsId": 3}
    result = matched(table, extract(table, key), database(table, there))
    crossed = result.breaks.filter(code="TENANT_CROSS").select("expected", "found", "field")
    assert crossed.rows() == [("1", "3", "TenantsId")]
    # Of another key it is another record.
    rest = next(name for name in table.key if name != "TenantsId")
    other = {**there, rest: "b" if key[rest] == "a" else 2}
    result = matched(table, extract(table, key), database(table, other))
    assert "TENANT_CROSS" not in result.breaks["code"]


SERVICE = [
    # state, HTTP status, what the record is, code, side
    ("acknowledged", 200, "MATCHED_EXACT", None),
    ("acknowledged", None, "SENT_UNCONFIRMED", ("UNCONFIRMED", "1/1", "", "A")),
    ("unsent", None, "NOT_SENT", ("NOT_SENT", "1/1", "", "R")),
    ("sending", None, "NOT_SENT", ("NOT_SENT", "1/1", "", "R")),
    ("abandoned", None, "NOT_SENT", ("NOT_SENT", "1/1", "", "R")),
    ("in_doubt", 503, "IN_DOUBT", ("IN_DOUBT", "1/1", "", "A")),
    ("refused", 400, "REJECTED", ("REFUSED", "1/1", "", "A")),
]


@pytest.mark.parametrize(("state", "status", "end", "found"), SERVICE)
def test_a_sent_record_ends_by_the_answer(
    state: str, status: int | None, end: str, found: tuple[str, str, str, str] | None
) -> None:
    sent = answers({"state": state, "status": status})
    result = matched(PAYMENT, extract(PAYMENT, {}), database(PAYMENT, {}), sent=sent)
    assert statuses(result) == [end]
    assert told(result) == ([found] if found else [])
    assert result.breaks["note"].to_list() == [f"HTTP status {status}" if status else ""] * len(
        told(result)
    )


def test_a_row_that_changed_nothing_is_confirmed_by_the_row_that_was_sent() -> None:
    rows = extract(PAYMENT, {"state": "unchanged", "row": 5, "extract_id": 2, "batch_id": 2})
    result = matched(PAYMENT, rows, database(PAYMENT, {}), sent=answers({}))
    assert statuses(result) == ["MATCHED_EXACT"]
    result = matched(PAYMENT, rows, database(PAYMENT, {}), sent=answers())
    assert statuses(result) == ["NOT_SENT"]
    overtaken = answers({}, {"state": "superseded", "row": 5, "extract_id": 2, "status": None})
    result = matched(PAYMENT, rows, database(PAYMENT, {}), sent=overtaken)
    assert statuses(result) == ["MATCHED_EXACT"]


ECHO = '{"Id":1,"PaidAmount":12}'
DECIDED = [
    # what is known of the send, the codes of its breaks
    ({"decision": "confirm"}, ["UNCONFIRMED"]),
    ({"decision": "confirm", "status": None}, ["UNCONFIRMED"]),
    ({"decision": "confirm", "echo": ECHO}, ["ECHO"]),
    ({"state": "abandoned", "decision": "abandon", "status": 400}, ["NOT_SENT"]),
    ({"state": "abandoned", "decision": "abandon", "carried_out": "maybe"}, ["IN_DOUBT"]),
    ({"state": "abandoned", "decision": "abandon", "carried_out": "yes"}, ["IN_DOUBT"]),
    ({"state": "abandoned", "carried_out": "yes", "echo": ECHO}, ["ECHO"]),
    ({"state": "unsent", "carried_out": "maybe", "status": 503}, ["IN_DOUBT"]),
    ({"state": "unsent", "decision": "resend", "carried_out": "maybe"}, ["IN_DOUBT"]),
    # An older body of what somebody has changed in the database since.
    ({"state": "superseded", "carried_out": "maybe", "status": 503}, ["IN_DOUBT"]),
    ({"state": "superseded", "status": None}, ["NOT_SENT"]),
    # An undo gave the record back to the row: what it had sent was overwritten since.
    ({"state": "unsent", "carried_out": "yes", "echo": ECHO}, ["NOT_SENT"]),
    ({"carried_out": "yes"}, []),
]


@pytest.mark.parametrize(("known", "codes"), DECIDED)
def test_a_decision_is_no_answer_and_a_lost_answer_no_proof(
    known: dict[str, Any], codes: list[str]
) -> None:
    result = matched(
        PAYMENT, extract(PAYMENT, {}), database(PAYMENT, {}), sent=answers({"status": 200, **known})
    )
    assert [*dict.fromkeys(code for code, *_ in told(result))] == codes


def test_a_record_the_service_has_no_operation_for_is_not_missed_there() -> None:
    result = matched(AVATAR, extract(AVATAR, {}), database(AVATAR, {}), sent=answers())
    assert statuses(result) == ["MATCHED_EXACT"]


def test_a_wrong_echo_is_told_by_field_and_is_where_the_sides_parted() -> None:
    echo = (
        '{"Id":1,"TenantsId":1,"ActionsId":7,"DebtsId":70,"PaymentDate":"2026-01-02T03:04:05+00:00"'
        ',"PaidAmount":12,"DiscountAmount":0.0,"CurrenciesId":978,"CurrencyRatesId":5}'
    )
    sent = answers({"state": "differs", "echo": echo})
    result = matched(
        PAYMENT, extract(PAYMENT, {}), database(PAYMENT, {"PaidAmount": Decimal(12)}), sent=sent
    )
    assert statuses(result) == ["MISMATCH"]
    assert told(result) == [
        ("AMOUNT", "1/1", "PaidAmount", "A"),
        ("ECHO", "1/1", "PaidAmount", "A"),
    ]
    assert result.breaks["expected"].to_list() == ["10", "10"]
    assert result.breaks["found"].to_list() == ["12", "12"]


OTHER_CURRENCY = [
    # The currency and the amount of the echo; what is told of both, and their money.
    ("840", "12", {"CurrenciesId": "840", "PaidAmount": "12 in currency 840"}, [10, None]),
    ("840", "10", {"CurrenciesId": "840"}, [10]),
    ("978", "12", {"PaidAmount": "12"}, [2]),
    # A currency that is not told is no other one.
    ("null", "12", {"CurrenciesId": None, "PaidAmount": "12"}, [10, 2]),
]


@pytest.mark.parametrize(("currency", "paid", "found", "money"), OTHER_CURRENCY)
def test_an_echo_in_another_currency_has_no_difference(
    currency: str, paid: str, found: dict[str, str | None], money: list[int | None]
) -> None:
    echo = (
        '{"Id":1,"TenantsId":1,"ActionsId":7,"DebtsId":70,"PaymentDate":"2026-01-02T03:04:05+00:00"'
        f',"PaidAmount":{paid},"DiscountAmount":0,"CurrenciesId":{currency},"CurrencyRatesId":5}}'
    )
    sent = answers({"state": "differs", "echo": echo})
    result = matched(PAYMENT, extract(PAYMENT, {}), database(PAYMENT, {}), sent=sent)
    told = result.breaks.filter(code="ECHO").sort("field")
    assert dict(told.select("field", "found").iter_rows()) == found
    assert told["amount"].to_list() == money
    # Of one without money both values are there, for severity and limits.
    bare = told.filter(pl.col("amount").is_null())["amounts"].to_list()
    assert bare == ["PaidAmount 10, PaidAmount 12 in another currency"] * money.count(None)


def test_an_echo_is_looked_at_where_its_record_is_compared() -> None:
    """One that is missing or left out has one break at most; what was answered says no more."""
    sent = answers({"state": "differs", "echo": "not JSON"})
    result = matched(PAYMENT, extract(PAYMENT, {}), database(PAYMENT), sent=sent)
    assert told(result) == [("MISSING_IN_TARGET", "1/1", "", "D")]
    result = matched(
        PAYMENT, extract(PAYMENT, {}), database(PAYMENT, {}), sent=sent, rules=LEFT_OUT
    )
    assert (statuses(result), told(result)) == (["EXCLUDED tests"], [])


@pytest.mark.long
def test_a_reference_is_looked_at_where_its_record_is_compared() -> None:
    lost = pl.DataFrame(
        {"field": "DebtsId", "of": "Debts", "value": 70, "tenant": None, "elsewhere": False},
        schema=LOST,
    )

    def found(*there: dict[str, Any], rules: Rules | None = None) -> list[tuple[str, ...]]:
        rows = extract(PAYMENT, {}), database(PAYMENT, *there)
        return told(matched(PAYMENT, *rows, rules=rules, lost=lost))

    assert found({}) == [("REFERENCE_MISSING", "1/1", "DebtsId", "D")]
    assert found() == [("MISSING_IN_TARGET", "1/1", "", "D")]
    assert found({}, rules=LEFT_OUT) == []


@pytest.mark.parametrize(
    "echo",
    [
        None,
        "not JSON",
        "[]",
        '{"Id": 1E9999999999999999999}',
        '{"Id": ' + "[" * 100_000 + "]" * 100_000 + "}",
    ],
)
def test_an_echo_that_cannot_be_read_is_told_whole(echo: str | None) -> None:
    sent = answers({"state": "differs", "echo": echo})
    result = matched(PAYMENT, extract(PAYMENT, {}), database(PAYMENT, {}), sent=sent)
    assert told(result) == [("ECHO", "1/1", "", "A")]


def test_a_number_of_an_echo_that_would_fill_the_memory_is_told_as_it_was_said() -> None:
    sent = answers({"state": "differs", "echo": '{"Id":1,"PaidAmount":1e+999999999}'})
    result = matched(PAYMENT, extract(PAYMENT, {}), database(PAYMENT, {}), sent=sent)
    found = dict(result.breaks.select("field", "found").iter_rows())
    assert found["PaidAmount"] == "1E+999999999"


SECOND_KEYS = [
    (CURRENCY_RATE, {}, "RATE_DUPLICATE"),
    (CURRENCY_RATE, {"ExchangeRate": 9.0}, "RATE_DUPLICATE"),
    (CURRENCY_RATE, {"ToCurrenciesId": 826}, None),
    (CURRENCY_RATE, {"TenantsId": 2}, None),
    (CURRENCY_RATE, {"EffectiveDate": datetime(2026, 1, 3)}, None),  # noqa: DTZ001
    (INVOICE_FILE, {}, "INV_DUPLICATE"),
    (INVOICE_FILE, {"DebtsId": 71}, None),
    (INVOICE_FILE, {"InvoiceUrl": "https://i/2.pdf"}, None),
]


@pytest.mark.parametrize(("table", "change", "code"), SECOND_KEYS)
def test_a_second_key_is_unique_too(table: Any, change: dict[str, Any], code: str | None) -> None:
    rows: list[dict[str, Any]] = [{}, {"Id": 2, **change}]
    result = matched(table, extract(table, *rows), database(table, *rows))
    assert statuses(result) == ["MATCHED_EXACT", "MATCHED_EXACT"]
    assert told(result) == ([(code, "2/1", "", "D")] if code else [])
    undelivered = matched(table, extract(table, *rows), None)
    assert [code for code, *_ in told(undelivered)][2:] == ([code] if code else [])


@pytest.mark.parametrize(("table", "change", "code"), SECOND_KEYS)
def test_a_second_key_is_looked_for_around_the_scope(
    table: Any, change: dict[str, Any], code: str | None
) -> None:
    def codes(own: dict[str, Any], near: dict[str, Any], *, there: bool) -> list[tuple[str, str]]:
        found = database(table, *([own] if there else []))
        done = matched(table, extract(table, own), found, near=database(table, near))
        return [(code, key) for code, key, *_ in told(done)]

    second = {"Id": 2, **change}
    key = f"2/{second.get('TenantsId', 1)}"
    assert codes(second, {}, there=True) == ([(code, key)] if code else [])
    # Of several the first one is right, and one that is not there repeats nothing.
    assert codes({}, second, there=True) == []
    assert codes(second, {}, there=False) == [("MISSING_IN_TARGET", key)]


def test_records_without_a_key_are_compared_as_a_multiset() -> None:
    rows = extract(PAYMENT_PLAN_DETAIL, {}, {"PaymentsId": 2}, {"PaymentsId": None})
    listed = database(PAYMENT_PLAN_DETAIL, {"PaymentsId": None}, {}, {}, {"PaymentsId": 3})
    result = matched(PAYMENT_PLAN_DETAIL, rows, None, listed=listed)
    assert statuses(result) == [
        "MATCHED_EXACT",
        "MISSING_IN_TARGET",
        "MATCHED_EXACT",
        "DUPLICATE",
        "MISSING_IN_EXTRACT",
    ]
    assert [(code, side) for code, _, _, side in told(result)] == [
        ("MISSING_IN_TARGET", "G"),
        ("MISSING_IN_EXTRACT", "G"),
        ("DUPLICATE", "G"),
    ]


def test_records_without_a_key_are_looked_for_in_database_and_listing() -> None:
    rows = extract(AVATAR, {}, {"Name": "Bob"}, {"Name": ""})
    target = database(AVATAR, {}, {"Name": "Bob"}, {"Name": ""}, {"Name": "Cy"})
    listed = database(AVATAR, {}, {"Name": None}, {"Name": "Cy"}, {"Name": "Dan"})
    result = matched(AVATAR, rows, target, listed=listed)
    assert statuses(result) == [
        "MATCHED_EXACT",
        "MISSING_IN_TARGET",
        "MATCHED_EXACT",
        "MISSING_IN_EXTRACT",
        "MISSING_IN_EXTRACT",
    ]
    assert [(code, side) for code, _, _, side in told(result)] == [
        ("MISSING_IN_EXTRACT", "D"),
        ("MISSING_IN_TARGET", "G"),
        ("MISSING_IN_EXTRACT", "G"),
    ]


BERLIN = "Europe/Berlin"
LISTED_TIMES = [
    # the server's zone, ours and the offset, as it is listed and the offset, whether it is the same
    ("UTC", "2026-01-02T03:04:05", None, "2026-01-02T03:04:05", 0, True),
    (BERLIN, "2026-01-02T03:04:05", None, "2026-01-02T03:04:05", 60, True),
    (BERLIN, "2026-01-02T03:04:05", None, "2026-01-02T03:04:05", 0, False),
    (BERLIN, "2026-01-02T03:04:05", 0, "2026-01-02T04:04:05", 60, True),
    (BERLIN, "2026-01-02T00:00:00", 60, "2026-01-02T00:00:00", None, True),
    (BERLIN, "2026-01-01T23:00:00", 0, "2026-01-02T00:00:00", None, True),
    ("UTC", "2026-01-01T23:00:00", 0, "2026-01-02T00:00:00", None, False),
    (BERLIN, "2026-07-02T00:00:00", 120, "2026-07-02T00:00:00", None, True),
    # Passed over by the clocks of that day.
    (BERLIN, "2026-03-29T02:30:00", None, "2026-03-29T02:30:00", None, True),
    (BERLIN, "2026-03-29T02:30:00", None, "2026-03-29T02:40:00", None, False),
    # Shown twice: the first time counts.
    (BERLIN, "2026-10-25T00:30:00", 0, "2026-10-25T02:30:00", None, True),
    (BERLIN, "2026-10-25T01:30:00", 0, "2026-10-25T02:30:00", None, False),
    # Summer time does not end in 2100, and the service rounds the seconds of a town's clock.
    (BERLIN, "2105-07-01T10:00:00", 0, "2105-07-01T12:00:00", None, True),
    ("Pacific/Auckland", "9999-12-31T10:59:59", 0, "9999-12-31T23:59:59", None, True),
    ("America/New_York", "1880-01-01T12:00:00", -296, "1880-01-01T12:00:00", None, True),
]


@pytest.mark.parametrize("both", [False, True], ids=["listing alone", "database and listing"])
@pytest.mark.parametrize(("zone", "ours", "at", "theirs", "there", "same"), LISTED_TIMES)
def test_a_listed_time_is_that_of_the_server_s_clock(
    zone: str, ours: str, at: int | None, theirs: str, there: int | None, same: bool, both: bool
) -> None:
    mine = {"PlannedDate": datetime.fromisoformat(ours), "PlannedDate_offset": at}
    listed = {"PlannedDate": datetime.fromisoformat(theirs), "PlannedDate_offset": there}
    result = matched(
        PAYMENT_PLAN_DETAIL,
        extract(PAYMENT_PLAN_DETAIL, mine),
        database(PAYMENT_PLAN_DETAIL, mine) if both else None,
        listed=database(PAYMENT_PLAN_DETAIL, listed),
        zone=zone,
    )
    apart = ["MISSING_IN_TARGET", "MISSING_IN_EXTRACT"]
    assert statuses(result) == (["MATCHED_EXACT"] if same else apart)
    assert result.breaks.is_empty() is same


@pytest.mark.parametrize("name", EXTRACTS)
def test_every_record_kind_matches_nothing_against_nothing(name: str) -> None:
    result = matched(EXTRACTS[name], None, None, sent=answers())  # type: ignore[arg-type]
    told = {
        **line_schema(EXTRACTS[name]),
        "tenant_found": pl.Int32(),
        "currency_found": pl.Int32(),
        **{amount + FOUND: AMOUNT for amount in EXTRACTS[name].amounts},
        "in_target": pl.Boolean(),
    }
    del told[PARTNER]
    assert dict(result.statuses.schema) == told
    assert dict(result.breaks.schema) == BREAK_SCHEMA
    assert dict(result.tolerated.schema) == TOLERATED_SCHEMA


PAYMENTS = st.lists(
    st.fixed_dictionaries(
        {
            "Id": st.sampled_from([None, 1, 2, 3, 2**53, 2**53 + 1]),
            "TenantsId": st.sampled_from([1, 2]),
            "PaidAmount": st.sampled_from([None, Decimal(1), Decimal("1.01"), Decimal(-1)]),
            "state": st.sampled_from([state for state, *_ in ALONE]),
            "batch_id": st.sampled_from([1, 2]),
        }
    ),
    max_size=8,
)


@pytest.mark.long
@settings(deadline=None, derandomize=True)
@given(PAYMENTS, PAYMENTS)
def test_every_record_is_in_exactly_one_line_and_every_break_has_its_own_id(
    delivered: list[dict[str, Any]], present: list[dict[str, Any]]
) -> None:
    rows = extract(PAYMENT, *delivered)
    target = database(PAYMENT, *({k: v for k, v in row.items() if k != "state"} for row in present))
    result = matched(PAYMENT, rows, target, rules=Rules(tolerances=(CENT,)))
    lines = result.statuses
    # Extract rows come first, as they were delivered; then what only the target has.
    assert lines.head(rows.height).select("Id", "row").rows() == rows.select("Id", "row").rows()
    paired = lines.head(rows.height)["in_target"].sum()
    assert lines.height == rows.height + target.height - paired
    assert set(lines["status"]) <= {status.value for status in Status}
    money = lines["PaidAmount_found"].sum()
    assert money == target["PaidAmount"].sum()
    assert lines["PaidAmount_expected"].sum() == rows["PaidAmount"].sum()
    assert gather([result.breaks]).height == result.breaks.height
    assert set(result.breaks["code"]) <= set(BREAKS)


def test_the_order_of_rows_changes_no_verdict() -> None:
    rows = [{"Id": number, "PaidAmount": Decimal(number % 3)} for number in range(50)]
    present = [{"Id": number, "PaidAmount": Decimal(number % 2)} for number in range(20, 70)]
    first = matched(PAYMENT, extract(PAYMENT, *rows), database(PAYMENT, *present))
    second = matched(PAYMENT, extract(PAYMENT, *rows)[::-1], database(PAYMENT, *present)[::-1])
    columns = ["Id", "status"]
    assert (
        first.statuses.select(columns).sort("Id").equals(second.statuses.select(columns).sort("Id"))
    )
    assert gather([first.breaks])["id"].to_list() == gather([second.breaks])["id"].to_list()


URL = "https://i.example/caf\u00e9/1.pdf"
CERTAIN, MAYBE = "the same as Id 1", "but for blanks or the form of its letters the same as Id 1"
ADDRESSES = [
    (URL, CERTAIN), ("HTTPS://I.Example/caf\u00e9/1.pdf", CERTAIN),
    ("https://i.example:443/caf\u00e9/1.pdf", CERTAIN),
    ("https://i.example/cafe\u0301/1.pdf", MAYBE), (URL + " ", MAYBE), ("\t" + URL, MAYBE),
    ("HTTPS://i.example/cafe\u0301/1.pdf ", MAYBE),
    ("http://i.example/caf\u00e9/1.pdf", None), ("https://i.example/Caf\u00e9/1.pdf", None),
    ("https://i.example/cafe/1.pdf", None), ("https://i.example:80/caf\u00e9/1.pdf", None),
    ("https://i.example/caf\u00e9/1.pdf?", None), ("", None),
]  # fmt: skip


@pytest.mark.parametrize("side", ["E", "D"])
@pytest.mark.parametrize(("address", "note"), ADDRESSES)
def test_an_address_written_otherwise_is_one_second_key(
    address: str, note: str | None, side: str
) -> None:
    rows = [{"Id": 1, "InvoiceUrl": URL}, {"Id": 2, "InvoiceUrl": address}]
    there = database(INVOICE_FILE, *(rows if side == "D" else ()))
    result = matched(INVOICE_FILE, extract(INVOICE_FILE, *rows), there)
    found = result.breaks.filter(pl.col("code") == "INV_DUPLICATE")
    assert found.select("key", "side", "note").rows() == ([("2/1", side, note)] if note else [])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("http://h", "http://H:80/"), ("http://h/%c3%a9", "http://h/%C3%A9"),
        ("ftp://U@H/x", "FTP://U@h/x"), ("no address", "no address"), ("h/X", "h/X"),
    ],
)  # fmt: skip
def test_texts_that_say_the_same(one: str, other: str) -> None:
    assert same(one) == same(other)
