"""The verdicts on examined files; their rejects are on disk, however many there are."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TextIO

import polars as pl

from connectors.errors import ExtractRefused
from connectors.files.chunks.skipped_lines import NO_LINES, SkippedLines
from flows.stages.frame_file import FrameFile
from flows.steps.validate.field_errors import json_escaped
from flows.steps.validate.references import Unsettled

ROW = ("record_number", "first_line", "last_line", "data", "error_data")
IN_MEMORY = 1 << 20
"""Bytes of rejects beyond which they go to a file."""


class Reject(NamedTuple):
    """A row that would have HasError."""

    record_number: int
    line: int
    last_line: int
    data: str
    errors: list[dict[str, Any]]


class Rejects:
    """The rows of a file that would have HasError, in the order of their record numbers.

    All are counted; the first `most` of a file are available, or all if it is None.
    """

    def __init__(self, most: int | None = None, *, in_memory: int = IN_MEMORY) -> None:
        self.most = most
        self._count = 0
        self._kept = [0, 0]
        self._batches = FrameFile(in_memory, "lz4"), FrameFile(in_memory, "lz4")

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Reject]:
        for rows in self.frames():
            for number, line, last_line, data, error_data in rows.iter_rows():
                yield Reject(number, line, last_line, data, json.loads(error_data))

    def wanted(self, rows: int, *, settled: bool) -> int:
        """How many of the next `rows` rejects are to be added."""
        return rows if self.most is None else min(rows, self.most - self._kept[settled])

    def count(self, rows: int) -> None:
        """Count rejects, whether or not they are added."""
        self._count += rows

    def add(self, rows: pl.DataFrame, *, settled: bool) -> None:
        """Keep rejects as `ROW` frames; `settled`: rejects found after all files were read.

        Each of the two comes in the order of its record numbers.
        """
        if rows.height:
            self._kept[settled] += rows.height
            self._batches[settled].add(rows)

    def frames(self) -> Iterator[pl.DataFrame]:
        """All rejects that are kept, or the first `most`, a part at a time."""
        left = self._count if self.most is None else self.most
        for rows in _merged(*(batches.frames() for batches in self._batches)):
            if left > 0 and rows.height:
                yield rows.head(left)
            left -= rows.height


def _merged(one: Iterator[pl.DataFrame], other: Iterator[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """Merge the rows of both by record number; each side is in order."""
    number = pl.col("record_number")
    left, right = next(one, None), next(other, None)
    while left is not None and right is not None:
        until = min(left["record_number"][-1], right["record_number"][-1])
        yield pl.concat([left.filter(number <= until), right.filter(number <= until)]).sort(number)
        left, right = left.filter(number > until), right.filter(number > until)
        left = left if left.height else next(one, None)
        right = right if right.height else next(other, None)
    if left is not None:
        yield left
        yield from one
    if right is not None:
        yield right
        yield from other


@dataclass(slots=True)
class FileVerdict:
    name: str
    record: str | None = None
    rows_in: int = 0
    excluded: int = 0
    """Rows that the feed profile leaves out."""
    superseded: int = 0
    """Rows without an error that do not count, because another with the same key does."""
    merged: int = 0
    """Rows of insert-batch data that say they were merged before."""
    valueless: SkippedLines = NO_LINES
    """Lines that become no row, because no cell that counts has a value."""
    comments: SkippedLines = NO_LINES
    """Lines that are no row according to the profile."""
    refused: str | None = None
    message: str | None = None
    headed: bool = False
    """Whether its rows take values from lines above them."""
    left_blank: int = 0
    """Rows that `keep_only` leaves out by an empty cell."""
    unproven: str | None = None
    """Why it cannot be proven to be the stated file, so that an import would be held."""
    remarks: tuple[str, ...] = ()
    """Remarks that an import makes too: merged cells, columns without a name."""
    rejects: Rejects = field(default_factory=Rejects)
    unsettled: list[Unsettled] = field(default_factory=list)
    """References that only a database could answer."""

    def refuse(self, refusal: ExtractRefused) -> None:
        """Refuse the file as a whole; nothing that was read of it counts."""
        self.refused, self.message = refusal.code, str(refusal)
        self.rows_in = self.excluded = self.superseded = self.merged = 0
        self.valueless, self.comments = NO_LINES, NO_LINES
        self.rejects, self.unsettled = Rejects(self.rejects.most), []

    def as_json(self) -> dict[str, Any]:
        """The shape that `recon check --json` prints, without the rejects, which come last."""
        return {
            "name": self.name,
            "record": self.record,
            "rows_in": self.rows_in,
            "rejected": len(self.rejects),
            "excluded": self.excluded,
            "superseded": self.superseded,
            "merged": self.merged,
            "valueless": self.valueless.lines,
            "comments": self.comments.lines,
            "refused": self.refused,
            "message": self.message,
            "said": list(self.remarks),
            "unsettled": [one._asdict() for one in self.unsettled],
        }


def write_json(
    verdicts: Iterable[FileVerdict], out: TextIO, *, held_because: str | None = None
) -> None:
    """One JSON document about all files, a line for each reject, written as they are read.

    `held_because`: why an import of them is held, if it is.
    """
    reason = json.dumps(held_because, ensure_ascii=False)
    out.write(f'{{\n  "held_because": {reason},\n  "files": [')
    for number, verdict in enumerate(verdicts):
        document = json.dumps(verdict.as_json(), ensure_ascii=False, indent=2)
        indented = document.removesuffix("\n}").replace("\n", "\n    ")
        out.write(f'{"," if number else ""}\n    {indented},\n      "rejects": [')
        first = True
        for rows in verdict.rejects.frames():
            out.write("\n" if first else ",\n")
            out.write(",\n".join(_as_lines(rows)))
            first = False
        out.write("]\n    }" if first else "\n      ]\n    }")
    out.write("\n  ]\n}\n")


def _as_lines(rows: pl.DataFrame) -> pl.Series:
    names = ("record_number", "line", "last_line", "data", "errors")
    number, line, last, data, errors = (f'"{name}": ' for name in names)
    text = pl.concat_str(
        pl.lit(f"        {{{number}"),
        pl.col("record_number").cast(pl.String),
        pl.lit(f", {line}"),
        pl.col("first_line").cast(pl.String),
        pl.lit(f", {last}"),
        pl.col("last_line").cast(pl.String),
        pl.lit(f', {data}"'),
        "data",
        pl.lit(f'", {errors}'),
        "error_data",
        pl.lit("}"),
    )
    return rows.with_columns(json_escaped(rows["data"])).select(text.alias("line")).to_series()
