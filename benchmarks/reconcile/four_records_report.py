"""A report with very many breaks in all its renderings: one case in a process."""

import io
import sys
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from hashlib import sha256
from pathlib import Path

from clock import Clock
from four_records_judge import concluded
from four_records_truths import read_truths

from connectors.files.disk.atomic import write_file
from flows.report.reconciled.data import breaks_csv, breaks_frame, totals_json, write_parquet
from flows.report.reconciled.html import render_html
from flows.report.reconciled.text import render_text
from flows.report.reconciled.workbook import render_workbook
from flows.steps.frames.sources import Sources
from flows.steps.reconcile.reported_breaks import BreakLine, Breaks


def main(folder: Path, out: Path, breaks: int) -> None:
    """Print what each file cost; breaks that were found are told again under other keys."""
    clock = Clock()
    report = concluded(Sources(*read_truths(folder)), clock)
    report = replace(report, breaks=Breaks.of(_many(tuple(report.breaks), breaks)))
    clock = Clock()
    frame = breaks_frame(report)
    clock.lap("frame")
    parquet = io.BytesIO()
    renderings = {
        "report.html": lambda: render_html(report).encode(),
        "report.xlsx": lambda: render_workbook(report, frame),
        "report.txt": lambda: render_text(report).encode(),
        "breaks.csv": lambda: breaks_csv(frame),
        "breaks.parquet": lambda: write_parquet(frame, parquet) or parquet.getvalue(),
        "totals.json": lambda: totals_json(report),
    }
    sizes = {}
    for name, render in renderings.items():
        content = render()
        write_file(out / name, content)
        sizes[name] = len(content)
        clock.lap(name)
    clock.report(breaks=len(report.breaks), bytes=sizes)


def _many(found: tuple[BreakLine, ...], breaks: int) -> Iterator[BreakLine]:
    for number in range(breaks):
        one = found[number % len(found)]
        yield replace(
            one,
            id=sha256(f"{number}".encode()).hexdigest()[:16],
            key=f"{one.key}/{number}",
            amount=None if one.amount is None else one.amount + Decimal(number).scaleb(-2),
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
