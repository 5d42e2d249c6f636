"""Doubles as .NET Framework and .NET Core write them."""

import math
import random

import pytest

from connectors.sandbox.numerals import double_text, read_double

WRITTEN = [
    # value, 15 digits, shortest
    (10.5, "10.5", "10.5"),
    (10.0, "10", "10"),
    (0.0, "0", "0"),
    (-0.0, "0", "-0"),
    (-1.5, "-1.5", "-1.5"),
    (0.1 + 0.2, "0.3", "0.30000000000000004"),
    (1e16, "1E+16", "1E+16"),
    (1e15, "1E+15", "1E+15"),
    (1e14, "100000000000000", "100000000000000"),
    (123456789012345.0, "123456789012345", "123456789012345"),
    (1234567890123456.0, "1.23456789012346E+15", "1.234567890123456E+15"),
    (-1234567890123456.8, "-1.23456789012346E+15", "-1.2345678901234568E+15"),
    (0.0001, "0.0001", "0.0001"),
    (0.00001, "1E-05", "1E-05"),
    (1.25e-7, "1.25E-07", "1.25E-07"),
    (1e300, "1E+300", "1E+300"),
    (math.nan, "NaN", "NaN"),
    (math.inf, "Infinity", "Infinity"),
    (-math.inf, "-Infinity", "-Infinity"),
]


@pytest.mark.parametrize(("value", "digits", "shortest"), WRITTEN)
def test_written(value: float, digits: str, shortest: str) -> None:
    assert double_text(value, shortest=False) == digits
    assert double_text(value, shortest=True) == shortest


def test_the_shortest_text_reads_back_the_same() -> None:
    seed = 20260102
    chance = random.Random(seed)
    for _ in range(2000):
        value = chance.uniform(-1, 1) * 10.0 ** chance.randint(-20, 20)
        text = double_text(value, shortest=True)
        assert read_double(text, overflows=True) == value, f"{value!r} as {text}, seed {seed}"


READ = [
    ("1,234.5", 1234.5),
    ("+1.", 1.0),
    (".5", 0.5),
    ("1e3", 1000.0),
    (" 2 ", 2.0),
    ("Infinity", math.inf),
    ("", None),
    ("x", None),
    ("1.2.3", None),
    (",1", None),
    ("0x1", None),
    ("1_000", None),
    ("inf", None),
]


@pytest.mark.parametrize(("text", "expected"), READ)
def test_read(text: str, expected: float | None) -> None:
    assert read_double(text, overflows=False) == expected


def test_a_number_too_large_is_infinite_only_on_core() -> None:
    assert read_double("1e999", overflows=False) is None
    assert read_double("1e999", overflows=True) == math.inf
