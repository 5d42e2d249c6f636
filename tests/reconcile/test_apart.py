"""How far two times are apart, in words: exactly, whatever the sign and the fraction."""

import re
from decimal import Decimal

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flows.steps.frames.time_texts import apart
from schemas.frame_types import AMOUNT

FAR = Decimal("18446744073709.551615")
"""The farthest that two times of 64 bits of microseconds can be apart, in seconds."""
TEXTS: list[tuple[str | None, str | None]] = [
    (None, None),
    ("0", None),
    ("0.000000", None),
    ("-0", None),
    ("1", "1 s later"),
    ("-1", "1 s earlier"),
    ("59.5", "59.5 s later"),
    ("60", "1 min later"),
    ("-3600", "1 h earlier"),
    ("3661", "1 h 1 min 1 s later"),
    ("86399.999999", "23 h 59 min 59.999999 s later"),
    ("86400", "1 day later"),
    ("-1296000", "15 days earlier"),
    ("-1296000.5", "15 days 0.5 s earlier"),
    ("90000.000001", "1 day 1 h 0.000001 s later"),
    ("-0.000000001", "0.000000001 s earlier"),
    ("0.10", "0.1 s later"),
    (str(FAR), "213503982 days 8 h 1 min 49.551615 s later"),
]
SIZES = {"day": 86_400, "days": 86_400, "h": 3600, "min": 60, "s": 1}


@pytest.mark.parametrize("dtype", [pl.String(), AMOUNT], ids=str)
def test_times_apart(dtype: pl.DataType) -> None:
    seconds = pl.Series("s", [one for one, _ in TEXTS], dtype=pl.String).cast(dtype)
    told = seconds.to_frame().select(apart(pl.col("s"))).to_series()
    assert told.to_list() == [text for _, text in TEXTS]


@given(st.lists(st.decimals(-FAR, FAR, places=9), min_size=1))
def test_the_words_are_the_whole_difference(values: list[Decimal]) -> None:
    told = pl.select(apart(pl.Series(values, dtype=AMOUNT))).to_series()
    for value, text in zip(values, told, strict=True):
        parts = re.findall(r"([0-9.]+) (\w+)", text or "")
        total = sum((Decimal(number) * SIZES[unit] for number, unit in parts), Decimal(0))
        assert (total if text is None or text.endswith("later") else -total) == value
