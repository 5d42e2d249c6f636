"""Where our reading spends its CPU: seconds per step, summed over the chunks of one file.

    python benchmarks/import/profile.py payments.csv [--block-mib 4]

Plain rows are read from their bytes; all others take the steps of `flows.steps.validate.chunk`,
here taken apart, and the last one, which is what staging adds. `--judge-all` sends every row that
way.
"""

import argparse
import hashlib
import resource
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# The folder of this file must not be searched: its name is that of a standard module.
sys.path[0] = str(Path(__file__).resolve().parents[2])

import polars as pl  # noqa: E402

from connectors.files.content import open_content  # noqa: E402
from connectors.files.header import Header, read_header  # noqa: E402
from connectors.files.profile import DEFAULT  # noqa: E402
from connectors.files.reader import Chunk, first_place, read_chunks  # noqa: E402
from connectors.files.records import conserved  # noqa: E402
from connectors.postgres.staging import copy_text  # noqa: E402
from connectors.settings import MIB, Limits  # noqa: E402
from flows.stages.judge_chunk import writing_of  # noqa: E402
from flows.stages.write_out import plain_of  # noqa: E402
from flows.steps.totals import counted, totals_of  # noqa: E402
from flows.steps.validate import check  # noqa: E402
from flows.steps.validate.normalise import normalise  # noqa: E402
from flows.steps.validate.rows import Positions, all_rows, identities, staged_rows  # noqa: E402
from schemas.cells.columns import type_cells  # noqa: E402

STEPS = {
    "split": "records found in the bytes, faults of structure",
    "conserve": "every byte is in a record; hash of the chunk",
    "plain": "plain rows typed, checked and added up from their bytes",
    "cells": "cells of the sound records as text",
    "positions": "lines, byte ranges, raw text",
    "normalise": "the feed's way of writing",
    "type": "text to typed columns, vectorised",
    "strict": "cells the vectorised readers left, one by one",
    "judge": "rules of the pandera schema",
    "rows": "staged rows with their reasons",
    "totals": "exact control totals",
    "copy text": "rows in PostgreSQL's COPY format",
}


class Profile:
    """Seconds by step."""

    def __init__(self) -> None:
        self.wall: dict[str, float] = defaultdict(float)
        self.cpu: dict[str, float] = defaultdict(float)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Book what happens inside under a step."""
        wall, cpu = time.perf_counter(), time.process_time()
        try:
            yield
        finally:
            self.wall[name] += time.perf_counter() - wall
            self.cpu[name] += time.process_time() - cpu


def main() -> None:
    """Profile one file and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--block-mib", type=int, default=Limits().block_bytes // MIB)
    parser.add_argument("--judge-all", action="store_true", help="no row is read as a plain one")
    asked = parser.parse_args()
    profile = Profile()
    content = open_content(asked.file)
    header = read_header(content, None, None, DEFAULT, Limits())
    chunks = read_chunks(content, header, first_place(header), asked.block_mib * MIB)
    rows = 0
    while True:
        with profile.step("split"):
            chunk = next(chunks, None)
        if chunk is None:
            break
        rows += chunk.height
        profile_chunk(profile, chunk, header, judge_all=asked.judge_all)
    show(profile, rows)


def profile_chunk(profile: Profile, chunk: Chunk, header: Header, *, judge_all: bool) -> None:
    """Take one chunk through the steps."""
    table = header.table
    with profile.step("conserve"):
        settled = chunk.block[: chunk.records.consumed]
        assert conserved(settled, chunk.records)
        hashlib.sha256(settled).hexdigest()
    if not judge_all:
        with profile.step("plain"):
            plain = plain_of(chunk, header, DEFAULT)
            chunk = chunk if plain is None else chunk.only(~plain.rows)
        if not chunk.height:
            return
    with profile.step("cells"):
        cells = chunk.cells(header.width)
    with profile.step("positions"):
        positions = chunk.positions() if judge_all else chunk.places()
    with profile.step("normalise"):
        normal = normalise(table, cells, header.fields, writing_of(DEFAULT))
    with profile.step("type"):
        typed = type_cells(normal, table)
    errors: dict[int, list[check.FieldError]] = defaultdict(list)
    unread: set[tuple[int, str]] = set()
    with profile.step("strict"):
        for field in table.delivered:
            typed = check._read_strictly(field, normal, typed, errors, unread)
    with profile.step("judge"):
        check._judge(table, normal, typed, errors, unread)
    with profile.step("rows"):
        full = all_rows(check.Checked(typed, dict(errors)), Positions(positions, chunk.faults))
        identity = identities(table, full.typed, 1, full.positions["record_number"])
        staged = staged_rows(table, 1, 1, full, identity)
    with profile.step("totals"):
        columns = counted(table, full.typed, identity)
        rejected = pl.Series([False] * full.typed.height).scatter(list(full.errors), True)
        for mask in (rejected, ~rejected) if full.errors else (~rejected,):
            totals_of(table, columns.filter(mask))
    with profile.step("copy text"):
        filled = [name for name in staged.columns if staged[name].null_count() < staged.height]
        copy_text(staged.select(filled))


def show(profile: Profile, rows: int) -> None:
    """Print the steps and their share."""
    total = sum(profile.cpu.values())
    print(f"{rows:,} rows\n")
    print("| step | what | wall s | CPU s | CPU s per million | share |")
    print("|---|---|---|---|---|---|")
    for name, what in STEPS.items():
        wall, cpu = profile.wall[name], profile.cpu[name]
        shown = f"{wall:.3f} | {cpu:.3f} | {cpu / rows * 1e6:.3f} | {cpu / total:.0%}"
        print(f"| {name} | {what} | {shown} |")
    wall = sum(profile.wall.values())
    print(f"| all | | {wall:.3f} | {total:.3f} | {total / rows * 1e6:.3f} | 100% |")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"\npeak memory {peak:.0f} MiB")


if __name__ == "__main__":
    main()
