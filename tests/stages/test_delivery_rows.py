"""What rows of a delivery mean to each other is the same however few are settled at once.

The import says the same of it: `tests/test_check_agrees.py`.
"""

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from connectors.files.profiles.profile import Profile
from connectors.settings import MOST, Limits, Settings
from flows.stages.examining.examine import examine
from flows.stages.examining.verdicts import write_json
from flows.stages.frame_file import FrameFile
from tests.examples import examples
from tests.stages.payments import HEADER, line
from tests.test_check_agrees import CONTENTS, PROFILES, REGISTRATIONS, REJECT, files, text

REGISTRATION_LINES = st.builds(
    lambda of, company: f"{of}@b.cc,A,B,p,p,{company},1", st.integers(1, 6), st.sampled_from("CD")
)
"""Their key is a text."""
REGISTERED = st.lists(REGISTRATION_LINES, max_size=8).map(lambda of: text(REGISTRATIONS, *of))
ROWS = st.lists(st.tuples(st.integers(-3, 3), st.sampled_from([None, 7, 8])), max_size=20)


@pytest.mark.long
@pytest.mark.parametrize("in_memory", [1, MOST])
@pytest.mark.parametrize("parts", [1, 2, 64])
@settings(max_examples=examples(100, 10), deadline=None, derandomize=True)
@given(frames=st.lists(ROWS, min_size=1, max_size=4))
def test_equal_values_are_in_one_part(
    parts: int, in_memory: int, frames: list[list[tuple[int, int | None]]]
) -> None:
    file = FrameFile(in_memory)
    for rows in frames:
        file.add(pl.DataFrame(rows, {"key": pl.Int64, "tenant": pl.Int64}, orient="row"))
    delivered = [row for rows in frames for row in rows]
    parted = file.by_hash(["key"], parts, in_memory)
    found = {part: pl.concat(parted.frames(part)).rows() for part in parted.parts}
    where = {key: part for part, rows in found.items() for key, _ in rows}
    assert len(found) <= parts
    assert [row for rows in found.values() for row in rows if where[row[0]] is None] == []
    for part, rows in found.items():
        assert rows == [row for row in delivered if where[row[0]] == part]
    assert sum(map(len, found.values())) == len(delivered)
    together = [rows for part in parted.parts for rows in parted.frames(part, MOST)]
    assert len(together) == len(parted.parts)


def verdicts(home: Path, paths: Sequence[str], profile: Profile, limits: Limits) -> Any:
    told = io.StringIO()
    write_json(examine(Settings(home, limits=limits), paths, profile), told)
    return json.loads(told.getvalue())


WAYS = {
    "all at once, nothing compiled": Limits(strict_bytes=MOST, check_bytes=MOST),
    "few at once, compiled": Limits(strict_bytes=0, check_bytes=5_000),
    "in very many parts": Limits(strict_bytes=0, check_bytes=50, block_bytes=300),
}


@pytest.mark.long
@settings(
    max_examples=examples(200, 12),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    contents=st.lists(CONTENTS | REGISTERED, min_size=1, max_size=4, unique=True),
    profile=PROFILES,
    total=st.sampled_from([None, "3.5", "1.5"]),
)
def test_any_delivery_in_any_way(
    contents: list[bytes], profile: Profile, total: str | None, tmp_path_factory: Any
) -> None:
    folder = tmp_path_factory.mktemp("any")
    named = {f"{number}.csv": content for number, content in enumerate(contents)}
    # A file of which something is stated does not wait for others that are as small.
    stated = {name: {"rows": rows.count(b"\n") - 1} for name, rows in named.items()}
    if total is not None and contents[0].startswith(HEADER.encode()):
        stated["0.csv"]["sums"] = {"PaidAmount": {"1": total}}  # type: ignore[assignment]
    named["manifest.json"] = json.dumps({"files": stated}).encode()
    delivery = files(folder / "in", named)
    first, *others = (verdicts(folder, delivery, profile, limits) for limits in WAYS.values())
    for other in others:
        assert other == first


@pytest.mark.long
def test_rows_of_both_ways_are_of_one_content(tmp_path: Path) -> None:
    """An amount in millionths, and the same one as a text that is none."""
    rows = [
        line(1, amount="0.100000"),
        line(1, amount="1e-1"),
        line(2, amount="99999999.999999"),
        line(2, amount='"99999999.999999"'),
        line(3, amount="0"),
        line(3, amount="-0.0e0"),
        line(4, amount="12.345678"),
        line(4, amount="12.3456781"),
    ]
    path = tmp_path / "payments.csv"
    path.write_text("\n".join([HEADER, *rows, *(line(number) for number in range(5, 900)), ""]))
    (tmp_path / "manifest.json").write_text('{"files": {"payments.csv": {}}}')
    found = [
        verdicts(tmp_path / "home", [str(tmp_path)], REJECT, limits) for limits in WAYS.values()
    ]
    assert found[0] == found[1] == found[2]
    assert [one["line"] for one in found[0]["files"][0]["rejects"]] == [8, 9]


@pytest.mark.parametrize("number", range(8))
def test_two_rows_with_one_text_for_a_key_conflict(number: int, tmp_path: Path) -> None:
    rows = [f"{number}@b.cc,A,B,p,p,{company},1" for company in "CD"]
    (tmp_path / "clients.csv").write_bytes(text(REGISTRATIONS, *rows))
    found = verdicts(tmp_path / "home", [str(tmp_path / "clients.csv")], REJECT, Limits())
    assert [one["line"] for one in found["files"][0]["rejects"]] == [2, 3]


@pytest.mark.long
@pytest.mark.parametrize("amounts", ["same", "other"])
def test_very_many_rows_of_one_key_are_settled_some_at_a_time(amounts: str, tmp_path: Path) -> None:
    """Whatever the number of parts, all of them are in one."""
    paid = {"same": "1.5", "other": "2.5"}[amounts]
    rows = [*(line(1, amount="1.5") for _ in range(60)), line(1, amount=paid)]
    (tmp_path / "payments.csv").write_text("\n".join([HEADER, *rows, line(2), ""]))
    first, *others = (
        verdicts(tmp_path / "home", [str(tmp_path / "payments.csv")], REJECT, limits)
        for limits in (*WAYS.values(), Limits(check_bytes=300, block_bytes=200))
    )
    assert len(first["files"][0]["rejects"]) == (0 if amounts == "same" else len(rows))
    for other in others:
        assert other == first
