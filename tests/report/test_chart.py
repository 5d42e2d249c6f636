import re
from decimal import Decimal

import pytest

from flows.report.chart import COLOURS, LEAST, LENGTH, ChartPart, describe, lengths, stacked_bar
from flows.report.reconciled.chart import (
    AGES,
    EXPECTED,
    FOUND,
    LEFT_OUT,
    ZERO,
    both_sides,
    stacked,
)
from flows.steps.batch_report import STATES
from flows.steps.reconcile.totals import Proof, ProofLine


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ([], []),
        ([0, 0], [0, 0]),
        ([7], [LENGTH]),
        ([1, 1], [500, 500]),
        ([1, 0, 3], [250, 0, 750]),
        ([1, 10**9], [LEAST, LENGTH - LEAST]),
        ([1, 1, 1], [334, 333, 333]),
        ([1] * 7 + [10**12], [LEAST] * 7 + [LENGTH - 7 * LEAST]),
    ],
)
def test_parts_fill_the_bar_and_the_smallest_is_seen(
    counts: list[int], expected: list[int]
) -> None:
    assert lengths(counts) == expected
    assert sum(expected) in (0, LENGTH)


@pytest.mark.parametrize(
    ("counts", "whole", "expected"),
    [([1], 10**4, [LEAST]), ([1, 1], 10**6, [LEAST] * 2), ([1, 1], 4, [250, 250]), ([0], 0, [0])],
)
def test_a_part_of_a_bar_is_seen_too(counts: list[int], whole: int, expected: list[int]) -> None:
    assert lengths(counts, whole) == expected
    bar = stacked(counts, AGES[: len(counts)], whole)
    assert re.findall(r'<rect x="[0-9]+" width="([0-9]+)"', bar) == [
        str(length) for length in expected if length
    ]


def proof(expected: str, left_out: str, found: str) -> Proof:
    lines = (
        ProofLine("total per extract", 1, Decimal(expected)),
        ProofLine("- excluded: superseded", 1, Decimal(left_out)),
        ProofLine("counted in the target", 1, Decimal(found)),
    )
    return Proof("payment", "PaidAmount", "978", lines, Decimal(0))


@pytest.mark.parametrize(
    ("expected", "left_out", "found", "bars"),
    [
        # total, what is left out of it, total of the target; where pieces begin and how long
        ("100", "0", "50", ([(0, 1000, EXPECTED)], [(0, 500, FOUND)])),
        (
            *("100", "-25", "75"),
            ([(0, 750, EXPECTED), (750, 250, LEFT_OUT)], [(0, 750, FOUND)]),
        ),
        ("100", "0", "-100", ([(500, 500, EXPECTED)], [(0, 500, FOUND)])),
        ("-100", "0", "100", ([(0, 500, EXPECTED)], [(500, 500, FOUND)])),
        ("-100", "0", "-50", ([(0, 1000, EXPECTED)], [(500, 500, FOUND)])),
        (
            *("-100", "25", "-75"),
            ([(250, 750, EXPECTED), (0, 250, LEFT_OUT)], [(250, 750, FOUND)]),
        ),
    ],
)
def test_both_sides_stand_on_one_zero(
    expected: str, left_out: str, found: str, bars: tuple[list[tuple[int, int, str]], ...]
) -> None:
    """A target with the sign turned looked like one that is right."""
    zeros = []
    for bar, pieces in zip(both_sides(proof(expected, left_out, found)), bars, strict=True):
        drawn = re.findall(r'<rect x="(\d+)" width="(\d+)" height="10" fill="([^"]+)"', bar)
        zeros.append([start for start, _, colour in drawn if colour == ZERO])
        assert [(int(x), int(of), colour) for x, of, colour in drawn if colour != ZERO] == pieces
    assert zeros[0] == zeros[1]
    assert bool(zeros[0]) == ("-" in expected + found)


def test_every_end_state_has_its_own_colour() -> None:
    assert set(COLOURS) == set(STATES)
    assert len(set(COLOURS.values())) == len(STATES)


def test_the_bar_tells_its_counts_to_those_who_cannot_see_it() -> None:
    parts = [ChartPart("rejected", 12), ChartPart("inserted", 12_345)]
    assert describe(parts) == "rejected 12, inserted 12345; 12357 rows in all"
    bar = stacked_bar(parts, title="a < b", name="bar-0")
    assert f'<desc id="bar-0-desc">{describe(parts)}</desc>' in bar
    assert '<title id="bar-0-title">a &lt; b</title>' in bar
