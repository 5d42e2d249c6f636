import re

import pytest

from flows.report.chart import COLOURS, LEAST, LENGTH, ChartPart, describe, lengths, stacked_bar
from flows.report.reconciled.chart import AGES, stacked
from flows.steps.batch_report import STATES


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


def test_every_end_state_has_its_own_colour() -> None:
    assert set(COLOURS) == set(STATES)
    assert len(set(COLOURS.values())) == len(STATES)


def test_the_bar_tells_its_counts_to_those_who_cannot_see_it() -> None:
    parts = [ChartPart("rejected", 12), ChartPart("inserted", 12_345)]
    assert describe(parts) == "rejected 12, inserted 12\u202f345; 12\u202f357 rows in all"
    bar = stacked_bar(parts, title="a < b", name="bar-0")
    assert f'<desc id="bar-0-desc">{describe(parts)}</desc>' in bar
    assert '<title id="bar-0-title">a &lt; b</title>' in bar
