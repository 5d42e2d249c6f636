"""Numbers of keys from typed columns: those that the strict path makes of the same values."""

import hashlib
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import numpy as np
import polars as pl
import polars.selectors as cs
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from flows.steps.fast.keys import key_numbers
from flows.steps.fast.sha256 import first_bits
from flows.steps.validate.check import check
from flows.steps.validate.key_ids import key_ids
from schemas.kinds import EXACT
from schemas.made_keys import MadeKey
from schemas.millionths import in_millionths
from schemas.tables import CURRENCY_RATE, PAYMENT
from tests.examples import examples

TEXTS = st.lists(st.binary(max_size=200), min_size=1, max_size=40)
AMOUNTS = st.integers(-(10**14), 10**14).map(lambda micro: f"{Decimal(micro).scaleb(-6):f}")
FIRST, LAST = -62_072_000_000, 253_300_000_000
"""Seconds from 1970, of the years 3 and 9996."""
TIMES = st.builds(
    lambda micro, minutes: (
        (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micro))
        .astimezone(timezone(timedelta(minutes=minutes)))
        .isoformat()
    ),
    st.one_of(
        st.integers(FIRST, LAST).map(lambda second: second * 1_000_000),
        st.integers(FIRST * 1_000_000, LAST * 1_000_000),
    ),
    st.sampled_from([0, 60, -90, 840]),
)
NUMBERS = st.integers(0, 2**31 - 1).map(str)
ROWS = st.lists(
    st.tuples(*(st.one_of(st.none(), of) for of in (NUMBERS, AMOUNTS, TIMES))), min_size=1
)


@pytest.mark.long
@settings(max_examples=examples(1_000, 30), deadline=None)
@given(texts=TEXTS, bits=st.integers(1, 63))
@example(texts=[b"x" * size for size in range(301)], bits=63)
def test_the_hash_is_that_of_the_library(texts: list[bytes], bits: int) -> None:
    ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
    found = first_bits(np.frombuffer(b"".join(texts), np.uint8), ends, bits)
    wanted = [int.from_bytes(hashlib.sha256(one).digest()[:8]) >> (64 - bits) for one in texts]
    assert found.tolist() == wanted


@pytest.mark.long
def test_every_integer_is_written_as_python_writes_it() -> None:
    """The lowest of 64 bits as well, which has no counterpart above zero."""
    numbers = [sign * edge for edge in (0, 9, 10, 2**31, 10**18, 2**63 - 1) for sign in (1, -1)]
    numbers.append(-(2**63))
    typed = pl.DataFrame({"DebtsId": numbers, "ActionsId": [7] * len(numbers)})
    texts = [f'["{number}", "7"]'.encode() for number in numbers]
    wanted = [int.from_bytes(hashlib.sha256(text).digest()[:8]) >> 1 for text in texts]
    key = MadeKey(("DebtsId", "ActionsId"))
    assert key_numbers(PAYMENT, key, typed).to_list() == wanted


@settings(max_examples=examples(1_000, 15), deadline=None)
@given(rows=ROWS)
@example(rows=[("0", f"{sign}{amount}", None) for sign in ("", "-") for amount in (0, 10, 1500)])
@example(rows=[("7", amount, "1969-12-31T23:59:59.000001Z") for amount in ("0.000001", "120.50")])
def test_a_number_is_that_of_the_strict_path(rows: list[tuple[str | None, ...]]) -> None:
    for table, names in (
        (PAYMENT, ("CurrenciesId", "PaidAmount", "PaymentDate")),
        (CURRENCY_RATE, ("ToCurrenciesId", "ExchangeRate", "EffectiveDate")),
    ):
        plain = pl.DataFrame(rows, dict.fromkeys(names, pl.String), orient="row")
        absent = [of.name for of in table.delivered if of.name not in names]
        cells = plain.with_columns(pl.lit(None, pl.String).alias(name) for name in absent)
        typed = check(table, cells).typed
        typed = in_millionths(
            table, typed.with_columns(cs.ends_with(EXACT).name.replace(EXACT, ""))
        )
        for key in (MadeKey(names), MadeKey(names[1:], "x"), MadeKey(names[::-1], "a-z_0.9")):
            strict = key_ids(table, key, plain).cast(pl.Int64)
            assert key_numbers(table, key, typed).to_list() == strict.to_list()


def test_a_number_is_that_of_its_key_and_namespace_alone() -> None:
    """Without one it is what it ever was: databases are full of such numbers."""
    plain = pl.DataFrame({"DebtsId": ["5"], "ActionsId": ["7"]})

    def number_of(text: str) -> list[str]:
        return [str(int.from_bytes(hashlib.sha256(text.encode()).digest()[:8]) >> 1)]

    names = ("DebtsId", "ActionsId")
    for key, text in {
        MadeKey(names): '["5", "7"]',
        MadeKey(names, "ECB"): '{"ECB": ["5", "7"]}',
        MadeKey(names, "5"): '{"5": ["5", "7"]}',
        MadeKey(names[1:], "5"): '{"5": ["7"]}',
    }.items():
        assert key_ids(PAYMENT, key, plain).to_list() == number_of(text)
