"""Cause groups: what many breaks have in common is said once."""

import random
import re
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import polars as pl
import pytest

from flows.steps.breaks.causes import Causes, find_causes, moments
from flows.steps.breaks.frame import BREAK_SCHEMA, gather
from flows.steps.breaks.patterns import AT, transposed
from flows.steps.frames.parts import held_rows
from schemas.frame_types import AMOUNT
from schemas.tables import CURRENCY_RATE
from tests.governance.runs import with_counted
from tests.reconcile.records import database, extract
from tests.reconcile.test_rates import rate


def amount(number: int, expected: str, found: str, **values: Any) -> dict[str, Any]:
    """A break of PaidAmount of one payment."""
    delta = Decimal(found) - Decimal(expected)
    return {
        "code": "AMOUNT", "record": "payment", "tenant": 1, "key": f"{number}/1", "side": "D",
        "field": "PaidAmount", "currency": 978, "expected": expected, "found": found,
        "delta": delta, "amount": abs(delta), "file": f"{number}.csv", "batch_id": number, **values,
    }  # fmt: skip


def plain(number: int, code: str, **values: Any) -> dict[str, Any]:
    return {"code": code, "record": "payment", "tenant": 1, "key": f"{number}/1", **values}


def found(*rows: dict[str, Any], accepted: frozenset[str] = frozenset(), **others: Any) -> Causes:
    """The causes of breaks, of which those with some notes are accepted."""
    breaks = with_counted(gather([pl.DataFrame(list(rows), schema=BREAK_SCHEMA)]))
    state = pl.when(pl.col("note").is_in(accepted)).then(pl.lit("ACCEPTED"))
    return find_causes(
        held_rows(breaks.with_columns(state.otherwise(pl.lit("NEW")).alias("state"))), **others
    )


def titles(causes: Causes) -> list[tuple[str, int]]:
    return [(line.title, line.breaks) for line in causes.lines]


def test_a_title_names_its_currency_as_reports_do() -> None:
    same = [amount(1, "10.5", "13"), amount(2, "20", "22.5")]
    named, unnamed = found(*same, currencies={"978": "EUR"}), found(*same, currencies={"1": "USD"})
    assert titles(named) == [("PaidAmount differs by 2.5 in 978 EUR", 2)]
    assert titles(unnamed) == [("PaidAmount differs by 2.5 in currency 978", 2)]
    # It is one cause whatever its currency is called.
    assert named.of["cause"].equals(unnamed.of["cause"])


EXPECTED = ["12.34", "56.78", "901.23"]


def times(factor: str) -> list[dict[str, Any]]:
    """Three amounts that were delivered as EXPECTED, each found times a factor."""
    return [
        amount(number, one, format(Decimal(one) * Decimal(factor), "f"))
        for number, one in enumerate(EXPECTED)
    ]


def alone(key: str, side: str, record: str = "payment_transaction_invoice") -> dict[str, Any]:
    """A record that only one side has."""
    code = f"MISSING_IN_{side}"
    return {"code": code, "record": record, "tenant": 7, "key": key, "side": "D"}


TWINS = [
    # what the extract has, what the target has, whether they may be one record
    ("7/1/caf\u00e9.pdf", "7/1/cafe\u0301.pdf", True),
    ("7/1/a.pdf", "7/1/a.pdf ", True),
    ("7/1/a.pdf", "7/1 /\u00a0a.pdf", True),
    ("7/1/a  b\u00e9.pdf", "7/1/a be\u0301.pdf\t", True),
    ("7/1/a b.pdf", "7/1/ab.pdf", False),
    ("7/1/a.pdf", "7/1/A.pdf", False),
    ("7/1/cafe.pdf", "7/1/caf\u00e9.pdf", False),
    ("7/1/a.pdf", "8/1/a.pdf ", False),
    ("", " ", False),
]


@pytest.mark.long
@pytest.mark.parametrize(("delivered", "there", "hint"), TWINS)
def test_keys_that_read_alike_may_be_one_record(delivered: str, there: str, hint: bool) -> None:
    rows = [alone(delivered, "TARGET"), alone(there, "EXTRACT"), alone("7/9/z.pdf", "TARGET")]
    told = titles(found(*rows))
    assert [count for title, count in told if "may be one record" in title] == [2] * hint
    # Two on one side are no hint, nor are two of different kinds.
    one_side = found(alone(delivered, "TARGET"), alone(there, "TARGET"))
    kinds = found(alone(delivered, "TARGET"), alone(there, "EXTRACT", "debt_document"))
    assert not [one for causes in (one_side, kinds) for one in titles(causes) if "may be" in one[0]]


CASES: list[tuple[list[dict[str, Any]], list[tuple[str, int]]]] = [
    (times("10"), [("PaidAmount is 10 times what was delivered", 3)]),
    (times("100"), [("PaidAmount is 100 times what was delivered", 3)]),
    (times("0.001"), [("PaidAmount is 1/1000 of what was delivered", 3)]),
    (times("-1"), [("PaidAmount is the other sign of what was delivered", 3)]),
    (times("10.0001"), []),
    ([amount(1, "9000000000000000.01", "90000000000000000.1")],
     [("PaidAmount is 10 times what was delivered", 1)]),
    ([amount(1, "9000000000000000.01", "90000000000000000.2")], []),
    ([amount(1, "10", "2"), amount(1, "2", "10", field="DiscountAmount")],
     [("DiscountAmount and PaidAmount are swapped", 2)]),
    ([amount(1, "10", "2"), amount(2, "2", "10", field="DiscountAmount")], []),
    ([amount(1, "123.45", "132.45")], [("PaidAmount has two digits transposed", 1)]),
    ([amount(1, "123.45", "124.35")], [("PaidAmount has two digits transposed", 1)]),
    ([amount(1, "123.45", "143.25")], []),
    ([amount(1, "123.45", "132.46")], []),
    # They divide by 9 too.
    ([amount(1, "123.45", "132.54")], []),
    ([amount(1, "123.45", "123.54")], [("PaidAmount has two digits transposed", 1)]),
    ([amount(1, "11", "20")], []),
    ([amount(1, "9", "18")], []),
    ([amount(1, "10.5", "13"), amount(2, "20", "22.5")],
     [("PaidAmount differs by 2.5 in currency 978", 2)]),
    ([amount(1, "10.5", "13"), amount(2, "20", "22.5", currency=840)], []),
    ([amount(1, "10.5", "13"), amount(2, "20", "22.50000001")], []),
    # All of them are 5 more and 10 times as much: the factor says more.
    ([amount(1, "0.5", "5"), amount(2, "0.5", "5")],
     [("PaidAmount is 10 times what was delivered", 2)]),
    ([plain(number, "RATE_MISSING", note="rate 9 is not there") for number in (1, 2)],
     [("Payment: the rate it names is not there: rate 9 is not there", 2)]),
    ([plain(number, "RATE_MISSING", note=f"rate {number} is not there") for number in (1, 2)], []),
    ([plain(number, "VALUE", field="InvoiceUrl", expected="a", found="b") for number in (1, 2)],
     [("Payment: values differ: a is b everywhere", 2)]),
    ([plain(number, "INSTANT", field="PaymentDate", expected=f"2026-01-0{number}T10:00:00+01:00",
            found=f"2026-01-0{number}T10:00:00+02:00") for number in (1, 2)],
     [("Payment: times differ: PaymentDate is 1 h earlier", 2)]),
    ([plain(number, "INSTANT", field="PaymentDate", expected=f"2026-01-0{number}T10:00:00+01:00",
            found=f"2026-01-0{number}T10:00:00.5+01:00") for number in (1, 2)],
     [("Payment: times differ: PaymentDate is 0.5 s later", 2)]),
    # Not the same shift, although both are one whole second.
    ([plain(number, "INSTANT", field="PaymentDate", expected=f"2026-01-0{number}T10:00:00+01:00",
            found=f"2026-01-0{number}T10:00:01.{number}+01:00") for number in (1, 2)], []),
    ([plain(number, "RATE_FUTURE", field="CurrencyRatesId", expected=f"2026-01-0{number}",
            found=f"2026-01-0{number + 1}") for number in (1, 2)],
     [("Payment: the rate is later than the payment: CurrencyRatesId is off by 1 day", 2)]),
    ([plain(number, "VALUE", field="DebtsId", expected=str(2**53 + number),
            found=str(2**53 + number + 1)) for number in (1, 2)],
     [("Payment: values differ: DebtsId is off by 1", 2)]),
    ([plain(number, "VALUE", field="DebtsId", expected=str(2**53 + number),
            found=str(2**53 + 2 * number)) for number in (1, 2)], []),
    ([plain(number, "REJECTED", file="a.csv") for number in (1, 2, 3)],
     [("Payment: rejected by the check in file a.csv", 3)]),
    ([plain(number, "REJECTED", file="a.csv") for number in (1, 2)], []),
    ([plain(number, "REJECTED", batch_id=4) for number in (1, 2, 3)],
     [("Payment: rejected by the check in batch 4", 3)]),
]  # fmt: skip


@pytest.mark.parametrize(("breaks", "causes"), CASES)
def test_causes(breaks: list[dict[str, Any]], causes: list[tuple[str, int]]) -> None:
    assert titles(found(*breaks)) == causes


@pytest.mark.long
def test_breaks_of_one_hour() -> None:
    numbers = range(1, 8)
    breaks = [plain(number, "REJECTED") for number in numbers]
    at = [
        "2026-01-02T03:04:05",
        "2026-01-02T03:59:59",
        "2026-01-02T03:00:00",
        "2026-01-02T04:00:00",
        *(None, None, None),  # Their times cannot be read: they have no hour in common.
    ]
    moments = pl.DataFrame(
        {"record": "payment", "key": [f"{number}/1" for number in numbers], "at": at}
    ).with_columns(pl.col("at").str.to_datetime())
    causes = found(*breaks, moments=lambda _: moments)
    assert titles(causes) == [("Payment: rejected by the check in the hour of 2026-01-02 03:00", 3)]
    # A debt has no hour, also where its key is written like that of a payment.
    debts = [plain(number, "DISCOUNT_GT_PAID") for number in (1, 2, 3)]
    assert titles(found(*debts, moments=lambda _: moments)) == []


def test_a_time_that_is_kept_as_clocks_showed_it_is_a_moment_all_the_same() -> None:
    at = datetime(2026, 10, 25, 2, 30)  # noqa: DTZ001
    rates = extract(
        CURRENCY_RATE,
        *(
            {"Id": n, "EffectiveDate": at, "EffectiveDate_offset": of}
            for n, of in [(1, 120), (2, None)]
        ),
    )
    places = rates.select("file", "line").with_columns(record=pl.lit(CURRENCY_RATE.name))
    told = moments(places, {CURRENCY_RATE.name: rates})
    assert told["at"].to_list() == [at - timedelta(hours=2), at]


RATES = database(CURRENCY_RATE, rate(5, 4, 1.25), rate(6, 5, 1.3), rate(7, 6, 4.2971))


@pytest.mark.parametrize(
    ("factor", "title"),
    [
        ("4.2971", "PaidAmount was converted: rate 7/1"),
        ("0.8", "PaidAmount was converted: 1 / rate 5/1"),
        ("1.04", "PaidAmount was converted: rate 6/1 in place of rate 5/1"),
    ],
)
def test_amounts_that_were_converted(factor: str, title: str) -> None:
    amounts = ["1234.56", "789.01", "99999.99", "5.10", "1"]
    cent = Decimal("0.01")
    breaks = [
        amount(number, one, str((Decimal(one) * Decimal(factor)).quantize(cent)))
        for number, one in enumerate(amounts)
    ]
    # Nothing is what nothing is in any currency.
    nothing = [amount(8, "0", "0.003"), amount(9, "0", "0.004")]
    assert titles(found(*breaks, *nothing, rates=RATES)) == [(title, 5)]
    assert titles(found(*breaks[:2], rates=RATES)) == []


def test_two_thousand_breaks_read_as_one_cause() -> None:
    breaks = [amount(number, f"{number}.37", f"{number * 100 + 37}") for number in range(1, 2001)]
    strays = [amount(5000, "1", "3.77"), amount(5001, "2", "9.99")]
    causes = found(*breaks, *strays)
    (line,) = causes.lines
    assert line.breaks == 2000
    assert line.amounts == {"978": sum((one["amount"] for one in breaks), Decimal(0))}
    told = causes.of.drop_nulls()
    assert told["cause"].unique().to_list() == [line.id]
    assert line.first in told["id"].to_list()


def test_a_cause_of_few_breaks_and_most_money_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LINES", "MOST_MONEY"):
        monkeypatch.setattr(f"flows.steps.breaks.causes.{name}", 1)
    # What the breaks of a cause name, how many there are, the money of each and its currency.
    groups = [("a", 9, 1, 978), ("b", 8, 2, 978), ("c", 7, 50, 978), ("d", 6, 90, 978),
              ("e", 5, 3, 840), ("f", 4, 2, 840)]  # fmt: skip
    rows = [
        plain(10 * at + number, "RATE_MISSING", note=note, amount=Decimal(money), currency=currency)
        for at, (note, count, money, currency) in enumerate(groups)
        for number in range(count)
    ]
    causes = found(*rows, accepted=frozenset({"d"}))
    assert [title[-1] for title, _ in titles(causes)] == ["a", "c", "d", "e"]
    assert causes.left == 2


def test_a_cause_names_its_first_break_whatever_the_currencies() -> None:
    rows = [*times("10"), *(one | {"currency": 840, "tenant": 2} for one in times("10"))]
    causes = found(*rows)
    (line,) = causes.lines
    assert (line.breaks, {*line.amounts}) == (6, {"978", "840"})
    assert line.first == causes.of["id"][0]


@pytest.mark.long
def test_the_same_breaks_in_another_order_have_the_same_causes() -> None:
    rows = [*times("10"), *times("7.1"), amount(8, "1", "2.5"), amount(9, "3", "4.5")]
    frame = with_counted(gather([pl.DataFrame(rows, schema=BREAK_SCHEMA)]))
    one, other = (
        find_causes(held_rows(rows.with_columns(state=pl.lit("NEW"))))
        for rows in (frame, frame.reverse())
    )
    assert one.of.sort("id").equals(other.of.sort("id"))
    assert {line.id for line in one.lines} == {line.id for line in other.lines}


def are_transposed(expected: Decimal, found: Decimal) -> bool:
    """Two digits beside each other changed places, by looking at every digit."""
    one, other = f"{expected:.18f}", f"{found:.18f}"
    apart = [place for place, pair in enumerate(zip(one, other, strict=False)) if len({*pair}) == 2]
    if len(one) != len(other) or len(apart) != 2:
        return False
    first, last = apart
    beside = one[first + 1 : last] in ("", ".")
    return beside and one[first] == other[last] and one[last] == other[first]


def test_transposed_digits_are_those_a_reader_would_see() -> None:
    chosen = random.Random(7)
    texts = []
    for _ in range(400):
        digits = list(chosen.choice(["1234.56", "9.000000000000000018", "1.02", "-57.5", "100"]))
        one = "".join(digits)
        place = chosen.randrange(len(digits) - 1)
        beside = place + 1 + (digits[place + 1] == "." and place + 2 < len(digits))
        digits[place], digits[beside] = digits[beside], digits[place]
        other = "".join(digits)
        if re.fullmatch(r"-?\d+(\.\d+)?", other) and one != other:
            texts += [(one, other), (one, other.lstrip("-")), (one, str(Decimal(one) + 9))]
    pairs = [(Decimal(one), Decimal(other)) for one, other in texts]
    frame = pl.DataFrame(pairs, schema={"e": AMOUNT, "f": AMOUNT}, orient="row").with_columns(
        record=pl.lit("payment"), field=pl.lit("PaidAmount")
    )
    told = transposed(frame.with_row_index(AT)).breaks[AT].to_list()
    expected = [place for place, pair in enumerate(pairs) if are_transposed(*pair)]
    assert sorted(told) == expected
    assert 0 < len(expected) < len(pairs)
