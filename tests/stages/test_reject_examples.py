"""What `recon check` tells of the rejects of a file."""

from collections.abc import Sequence

import pytest

from flows.stages.examining.reject_examples import RejectExamples
from flows.stages.examining.verdicts import Reject

DAY, RATE = ("On", "DateTime", "no day: x"), ("Rate", "Number", "no number: y")
WIDTH = ("", "TooFewFields", "too few")
TOLD = [
    # rejects by their line with their faults, how many may differ, what is told, what is not
    (
        [(4, [DAY])] * 19 + [(5, [RATE])],
        2,
        [
            "line 4, 19 records from 1 on: DateTime: no day: x",
            "line 5, record 20: Number: no number: y",
        ],
        [],
    ),
    # Of one line each record may have a fault of its own beside that of all.
    (
        [(4, [DAY, RATE]), (4, [DAY]), (4, [DAY, ("Rate", "Number", "no number: z")])],
        2,
        [
            "line 4, 3 records from 1 on: DateTime: no day: x",
            "line 4, record 1: Number: no number: y",
            "line 4, record 3: Number: no number: z",
        ],
        [],
    ),
    # What fills the list hides no other reason.
    (
        [*((line, [DAY]) for line in range(2, 30)), (30, [DAY, RATE]), (31, [WIDTH]), (32, [RATE])],
        1,
        ["line 2, record 1: DateTime: no day: x"],
        [
            "Number of Rate in 2 rows, the first on line 30",
            "TooFewFields in 1 row, the first on line 31",
        ],
    ),
]


@pytest.mark.parametrize(("rejects", "most", "lines", "also"), TOLD)
def test_what_is_the_same_for_a_line_is_told_once_and_no_reason_is_hidden(
    rejects: Sequence[tuple[int, Sequence[tuple[str, str, str]]]],
    most: int,
    lines: Sequence[str],
    also: Sequence[str],
) -> None:
    keys = ("FieldName", "ErrorCode", "Message")
    told = RejectExamples.of(
        (
            Reject(number, line, line, "", [dict(zip(keys, one, strict=True)) for one in faults])
            for number, (line, faults) in enumerate(rejects, 1)
        ),
        most,
    )
    assert [f"{where}: {message}" for where, message in told.lines()] == lines
    assert [*told.also()] == also
    assert told.rows == sum(line < lines_end(lines) for line, _ in rejects)


def lines_end(lines: Sequence[str]) -> int:
    """The number behind the last line that is told."""
    return 1 + max(int(one.removeprefix("line ").partition(",")[0]) for one in lines)
