"""The rejects of an examined file: in order, as many as are asked for, and one JSON document."""

import io
import json
from pathlib import Path

import polars as pl
import pytest

from connectors.files.profiles.profile import DEFAULT
from connectors.settings import Limits, Settings
from flows.stages.examining.examine import examine
from flows.stages.examining.verdicts import FileVerdict, Reject, Rejects, write_json
from tests.stages.payments import line, write

ERRORS = [{"ErrorCode": "Number", "FieldName": "PaidAmount", "Message": 'é "x"', "Meta": {}}]


def rows(*numbers: int) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "record_number": numbers,
            "first_line": [number + 1 for number in numbers],
            "last_line": [number + 1 for number in numbers],
            "data": [f'{number},"a\n\\b"' for number in numbers],
            "error_data": [json.dumps(ERRORS, ensure_ascii=False)] * len(numbers),
        }
    )


@pytest.mark.parametrize("in_memory", [1 << 20, 1])
@pytest.mark.parametrize(
    ("read", "settled"),
    [
        ([], []),
        ([(1, 2), (7,)], []),
        ([], [(3,), (4, 5)]),
        ([(1, 4), (6, 9), (20,)], [(2,), (3, 5, 7), (30, 31)]),
        ([(5, 6)], [(1, 2), (3,)]),
    ],
)
@pytest.mark.parametrize("most", [None, 0, 1, 3, 100])
def test_rejects_come_in_the_order_of_the_file(
    read: list[tuple[int, ...]],
    settled: list[tuple[int, ...]],
    most: int | None,
    in_memory: int,
) -> None:
    verdict = FileVerdict("a.csv", "payment", rejects=Rejects(most, in_memory=in_memory))
    for late, batches in enumerate((read, settled)):
        for batch in batches:
            verdict.rejects.count(len(batch))
            if wanted := verdict.rejects.wanted(len(batch), settled=bool(late)):
                verdict.rejects.add(rows(*batch[:wanted]), settled=bool(late))
    numbers = sorted(number for batch in (*read, *settled) for number in batch)
    assert len(verdict.rejects) == len(numbers)
    first = numbers if most is None else numbers[:most]
    expected = [Reject(n, n + 1, n + 1, f'{n},"a\n\\b"', ERRORS) for n in first]
    assert list(verdict.rejects) == expected
    out = io.StringIO()
    write_json([verdict, FileVerdict("b.csv")], out)
    one, other = json.loads(out.getvalue())["files"]
    assert one["rejects"] == [reject._asdict() for reject in expected]
    assert (one["rejected"], other["rejected"], other["rejects"]) == (len(numbers), 0, [])


@pytest.mark.long
def test_the_first_rejects_are_the_first_of_all(tmp_path: Path) -> None:
    lines = [line(n, amount="x" if n % 3 == 0 else "1") for n in range(1, 61)]
    for place in (4, 7, 40):
        lines[place] = line(lines[place - 1].split(",")[0], amount=f"{place}.5")  # type: ignore[arg-type]
    path = write(tmp_path / "a.csv", *lines)
    settings = Settings(tmp_path, limits=Limits(block_bytes=300, record_bytes=100, field_bytes=99))
    (every,) = examine(settings, [path], DEFAULT)
    for most in (0, 1, 5, 20, 1000):
        (few,) = examine(settings, [path], DEFAULT, most=most)
        assert len(few.rejects) == len(every.rejects) > 20
        assert list(few.rejects) == list(every.rejects)[:most]
