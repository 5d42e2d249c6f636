"""Blocks that are read at once have the very cells that reading record by record finds."""

from itertools import product
from pathlib import Path
from random import Random

import polars as pl
import pytest

from connectors.compare.csv_blocks import integers, plain_cells, read_blocks
from connectors.compare.csv_side import _header
from connectors.files.chunks.reader import first_place, read_chunks
from connectors.files.layout.header import Header
from connectors.files.text.content import Content, open_content
from connectors.settings import Limits
from tests.compare.tables import csv_file

SCHEMA = pl.Schema({"0": pl.Int64(), "1": pl.String()})


def _opened(path: Path, text: str, limits: Limits | None = None) -> tuple[Content, Header]:
    content = open_content(csv_file(path, text))
    return content, _header(content, ",", limits or Limits())


PLAIN = [
    # a block, and its cells where it is plain
    ("1,a\n2,b\n", [(1, "a"), (2, "b")]),
    ("-1,\n,é\n", [(-1, None), (None, "é")]),
    ("1,a\r\n20,b\r\n", [(1, "a"), (20, "b")]),
    ("0,0\n-10,007\n", [(0, "0"), (-10, "007")]),
    ("999999999999999999,x\n", [(999999999999999999, "x")]),
    ("+1,a\n", None),
    ("01,a\n", None),
    ("-0,a\n", None),
    (" 1,a\n", None),
    ("1.0,a\n", None),
    ("x,a\n", None),
    ("9999999999999999999,x\n", None),
    ("1,a\n2,b,c\n", None),
    ("1,a\n2\n", None),
    ("1,a,\n2\n", None),
    ("1,a,b\n2\n", None),
    ("1,a\n\n2,b,\n", None),
    ("1,a\n\n", None),
    ('1,"a"\n', None),
    ("1,a\rb\n", None),
    ("1,a\0\n", None),
    ("\ufeff1,a\n", None),
]


@pytest.mark.parametrize(("text", "cells"), PLAIN)
def test_a_block_is_plain_or_left_to_the_strict_reader(
    tmp_path: Path, text: str, cells: list[tuple[object, ...]] | None
) -> None:
    _, header = _opened(tmp_path / "a.csv", f"id,v\n{text}")
    found = plain_cells(text.encode(), header, SCHEMA)
    assert (None if found is None else found.rows()) == cells


def test_what_is_no_text_or_over_a_limit_is_not_plain(tmp_path: Path) -> None:
    _, header = _opened(tmp_path / "a.csv", "id,v\n", Limits(field_bytes=9, record_bytes=12))
    assert plain_cells(b"1,\xff\n", header, SCHEMA) is None
    assert plain_cells(b"1,123456789\n", header, SCHEMA) is not None
    assert plain_cells(b"1,1234567890\n", header, SCHEMA) is None
    assert plain_cells(b"123,123456789\n", header, SCHEMA) is None


CELLS = [
    "1",
    "-7",
    "250",
    "",
    "x",
    "007",
    "+1",
    "a b",
    "é",
    '"q"',
    '""',
    '"a\nb"',
    "1,2",
    '5"',
    "-0",
]


@pytest.mark.long
@pytest.mark.parametrize("rare", [0, 50, 5])
def test_both_ways_find_the_same_cells_lines_and_faults(tmp_path: Path, rare: int) -> None:
    """`rare`: one row in so many is anything, the others have a number and a word."""
    random = Random(rare)
    rows = [f"{number},word" for number in range(600)]
    for at in range(random.randrange(rare), 600, rare) if rare else ():
        rows[at] = ",".join(random.choices(CELLS, k=2))
    for end, size in product(("\n", "\r\n"), (100, 1000)):
        content, header = _opened(tmp_path / "a.csv", end.join(["id,v", *rows]))
        blocks = list(read_blocks(content, header, size))
        strict = list(read_chunks(content, header, first_place(header), size))
        texts = [block.cells.with_columns(pl.all().cast(pl.String)) for block in blocks]
        assert pl.concat(texts).equals(pl.concat([one.cells(2) for one in strict]))
        first = []
        for block in blocks:
            chunk = block.chunk
            if chunk is None:
                first += range(block.line, block.line + block.cells.height)
            else:
                first += chunk.records.first_line.tolist()
        assert first == [line for one in strict for line in one.records.first_line.tolist()]
        # The first block is read strictly, and those with anything else in them.
        plain = sum(block.chunk is None for block in blocks)
        assert plain >= {0: 5, 50: 5 if size == 100 else 0, 5: 0}[rare]


@pytest.mark.parametrize(
    ("cells", "kept"),
    [
        (["1", None, "-20", "300"], True),
        (["0", "999999999999999999"], True),
        ([None, None], True),
        (["1", ""], False),
        (["1", "01"], False),
        (["1", "+1"], False),
        (["1", " 1"], False),
        (["1", "-0"], False),
        (["1", "1.0"], False),
        (["x", "1"], False),
        (["1", "99999999999999999999"], False),
    ],
)
def test_only_what_reads_back_to_the_same_text_is_kept_as_a_number(
    cells: list[str | None], kept: bool
) -> None:
    found = integers(pl.Series(cells, dtype=pl.String))
    assert found.dtype == (pl.Int64 if kept else pl.String)
    assert found.cast(pl.String).to_list() == cells
