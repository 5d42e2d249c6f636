"""Rows written out again, some thousand at a time: the same file whichever way they come."""

import io
from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest

from connectors.files.chunks.rewriting import (
    BLOCK,
    TEXT,
    RewrittenLine,
    may_stay_open,
    names_in_front,
    needs_nothing,
    on_its_own,
    write_lines,
)
from connectors.files.layout.header import Header
from tests.extracts.test_header import PAYMENT, read

OWN = {"ReconRow": "1:2", "BreakId": "00ff 11ee"}
MANY = ["1,1,-2.50,x"] * (BLOCK + 7)
TEXTS = {
    "nothing to be run": MANY,
    "a number below zero": [*MANY, "-1,-2"],
    "one to be run at the end": [*MANY, "1,=1+1"],
    "one to be run at the beginning": ["=1+1,2", *MANY],
    "quotes, and a line break": ['"a, b","c\nd"', *MANY],
}


def written(header: Header, texts: list[str], *frames: pl.DataFrame) -> bytes:
    lines = [RewrittenLine(OWN, text) for text in texts]
    file = io.BytesIO()
    write_lines(header, list(OWN), lambda: lines, file, (lambda: frames) if frames else None)
    return file.getvalue()


def frame_of(texts: Sequence[str | None]) -> pl.DataFrame:
    return pl.DataFrame({TEXT: texts}, schema={TEXT: pl.String}).select(
        *(pl.lit(value).alias(name) for name, value in OWN.items()), TEXT
    )


@pytest.mark.long(but=("nothing to be run",))
@pytest.mark.parametrize("texts", TEXTS.values(), ids=TEXTS.keys())
def test_frames_of_rows_are_written_as_rows_are(texts: list[str], tmp_path: Path) -> None:
    header = read(tmp_path, f"{PAYMENT}\n")
    assert needs_nothing(header)
    frames = [frame_of([*texts[:3]]), frame_of([*texts[3:]])]
    assert written(header, texts, *frames) == written(header, texts)
    signed = b"ReconQuoted" in written(header, texts)
    assert signed == any("=1+1" in text for text in texts)


def test_a_row_whose_text_is_elsewhere_makes_all_of_them_be_written_one_by_one(
    tmp_path: Path,
) -> None:
    header = read(tmp_path, f"{PAYMENT}\n")
    texts = ["1,2", "3,4"]
    assert written(header, texts, frame_of(["1,2"]), frame_of([None])) == written(header, texts)


@pytest.mark.parametrize("names", [f"ReconRow,{PAYMENT}", PAYMENT.replace(",", "|")])
def test_rows_with_columns_of_ours_are_not_written_as_they_came(names: str, tmp_path: Path) -> None:
    header = read(tmp_path, f"{names}\n")
    assert needs_nothing(header) == ("|" in names)


@pytest.mark.parametrize(
    ("text", "alone"),
    [
        ('1,"open', '"1,""open"'),
        ('1,a",b"c"', '"1,a"",b""c"""'),
        ('1,a "b" c', '1,a "b" c'),
        ('1,"a\nb",,', '1,"a\nb",,'),
        ("1", "1"),
    ],
)
def test_a_line_without_cells_takes_in_no_line_below_it(
    text: str, alone: str, tmp_path: Path
) -> None:
    header = read(tmp_path, f"{PAYMENT}\n")
    assert on_its_own(text, header) == alone
    assert pl.Series([text]).to_frame("text").select(
        may_stay_open(pl.col("text"), header)
    ).item() == (text != alone)


def test_a_line_without_cells_is_no_record_where_a_record_has_one_cell(tmp_path: Path) -> None:
    header = read(tmp_path, "CommsGuid\n")
    assert on_its_own('"open', header) == '"""open",'


@pytest.mark.parametrize(
    ("names", "text", "name"),
    [
        (f"ReconRow,{PAYMENT}", '1:2,5,"open', "1:2"),
        (f"ReconRow,{PAYMENT}", "1:2", "1:2"),
        (f"ReconRow,{PAYMENT}", '"01:02",5', "01:02"),
        (f"ReconRow,{PAYMENT}", "x,1:2", None),
        (f"ReconRow,BreakId,ReconQuoted,{PAYMENT}", "1:2,00ff,yes,'=5", "1:2"),
        (f"BreakId,ReconRow,{PAYMENT}", "00ff,1:2,5", "1:2"),
        (f"BreakId,ReconRow,{PAYMENT}", "00ff", None),
        # What stands before it may be in parts, or not all there.
        (f"{PAYMENT},ReconRow", "1:2,5", None),
        (PAYMENT, "1:2,5", None),
    ],
)
def test_a_line_without_cells_is_known_by_what_was_written_in_front_of_it(
    names: str, text: str, name: str | None, tmp_path: Path
) -> None:
    header = read(tmp_path, f"{names}\n")
    assert names_in_front(pl.Series([text]), header).to_list() == [name]
