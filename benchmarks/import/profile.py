"""Where our reading spends its CPU: seconds per step, summed over the chunks of one file.

    python benchmarks/import/profile.py payments.csv [--block-mib 4] [--rounds 5]
    python benchmarks/import/profile.py --rows 1000000          # clean payments, made once and kept

Rows of the fast path are read from their bytes; all others take the steps of
`flows.steps.validate.chunk`, here taken apart, and the last one, which is what staging adds.
`--validate-all` sends every row that way. Of several rounds each step shows its median.
"""

import argparse
import hashlib
import resource
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

# The folder of this file must not be searched: its name is that of a standard module.
sys.path[0] = str(Path(__file__).resolve().parents[2])

import polars as pl  # noqa: E402

from connectors.files.chunks.chunk import Chunk  # noqa: E402
from connectors.files.chunks.reader import first_place, read_chunks  # noqa: E402
from connectors.files.layout.header import Header, read_header  # noqa: E402
from connectors.files.profiles.profile import DEFAULT  # noqa: E402
from connectors.files.text.content import open_content  # noqa: E402
from connectors.files.text.records import conserved  # noqa: E402
from connectors.postgres.batches.staging import copy_binary, copy_staged  # noqa: E402
from connectors.settings import MIB, Limits  # noqa: E402
from flows.stages.chunks.split_chunk import fast_rows  # noqa: E402
from flows.stages.chunks.write_out import _texts  # noqa: E402
from flows.stages.rows.writing import writing_of  # noqa: E402
from flows.steps.validate.check import check  # noqa: E402
from flows.steps.validate.frame_totals import totals_by_state, totals_of_millionths  # noqa: E402
from flows.steps.validate.normalise import normalise  # noqa: E402
from flows.steps.validate.rows import Positions, all_rows, identities, staged_rows  # noqa: E402
from flows.steps.validate.states import READY, REJECTED  # noqa: E402
from schemas.derived.pandera_schemas import validate  # noqa: E402

STEPS = {
    "split": "records found in the bytes, faults of structure",
    "conserve": "every byte is in a record; hash of the chunk",
    "fast path": "rows typed from their bytes, and their verdicts",
    "cells": "cells of the sound records as text",
    "positions": "lines, byte ranges, raw text",
    "normalise": "the feed's way of writing",
    "check": "text to typed columns, the rules of the record: the row verdicts and their reasons",
    "pandera": "clean rows held against the pandera schema of their record",
    "rows": "staged rows with their reasons",
    "totals": "exact control totals",
    "copy": "rows in PostgreSQL's COPY format",
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
    parser.add_argument("file", type=Path, nargs="?")
    parser.add_argument("--rows", type=int, default=1_000_000, help="of payments, without a file")
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "recon-benchmarks")
    parser.add_argument("--block-mib", type=int, default=Limits().block_bytes // MIB)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--validate-all", action="store_true", help="no row takes the fast path")
    asked = parser.parse_args()
    path = asked.file
    if path is None:
        sys.path.insert(1, str(Path(__file__).parent))
        from extracts import make_extracts  # noqa: PLC0415

        path = make_extracts(asked.cache.resolve() / "extracts", asked.rows).clean
    profiles: list[Profile] = []
    # The first round is not counted: it loads what is compiled.
    for _ in range(asked.rounds + 1):
        profiles.append(Profile())
        rows = profile_file(profiles[-1], path, asked.block_mib, validate_all=asked.validate_all)
    show(profiles[1:], rows)


def profile_file(profile: Profile, path: Path, block_mib: int, *, validate_all: bool) -> int:
    """Take a file through the steps; returns its rows."""
    content = open_content(path)
    header = read_header(content, None, DEFAULT, Limits())
    chunks = read_chunks(content, header, first_place(header), block_mib * MIB)
    rows = 0
    while True:
        with profile.step("split"):
            chunk = next(chunks, None)
        if chunk is None:
            return rows
        rows += chunk.height
        profile_chunk(profile, chunk, header, validate_all=validate_all)


def profile_chunk(profile: Profile, chunk: Chunk, header: Header, *, validate_all: bool) -> None:
    """Take one chunk through the steps."""
    table = header.table
    with profile.step("conserve"):
        settled = chunk.block[: chunk.records.consumed]
        assert conserved(settled, chunk.records)
        hashlib.sha256(settled).hexdigest()
    if not validate_all:
        chunk = profile_fast(profile, chunk, header)
        if not chunk.height:
            return
    with profile.step("cells"):
        cells = chunk.cells(header.width)
    with profile.step("positions"):
        positions = chunk.positions() if validate_all else chunk.places()
    with profile.step("normalise"):
        writing = writing_of(DEFAULT)
        normal = normalise(table, cells, header.fields, writing, header.sources)
    with profile.step("check"):
        checked = check(table, normal)
    with profile.step("rows"):
        full = all_rows(checked, Positions(positions, chunk.codes))
        identity = identities(table, full.typed, 1, full.positions["record_number"])
        staged = staged_rows(table, 1, 1, full, identity)
        states = pl.repeat(READY, full.typed.height, dtype=pl.String, eager=True)
        states = states.scatter(full.errors.rows, REJECTED)
    with profile.step("pandera"):
        ready = states == READY
        validate(table, full.typed.filter(ready), full.positions["first_line"].filter(ready))
    with profile.step("totals"):
        totals_by_state(table, full.typed, identity, states)
    with profile.step("copy"):
        for _ in copy_staged(table, staged.frame, staged.pieces).parts():
            pass


def profile_fast(profile: Profile, chunk: Chunk, header: Header) -> Chunk:
    """Take the rows of the fast path through its steps; returns the others."""
    table = header.table
    with profile.step("fast path"):
        fast = fast_rows(chunk, header, DEFAULT)
    if fast is None:
        return chunk
    with profile.step("positions"):
        places = chunk.places().filter(pl.Series(fast.rows))
    with profile.step("pandera"):
        validate(table, fast.frame, places["first_line"], millionths=True)
    with profile.step("totals"):
        totals_of_millionths(table, fast.frame)
    with profile.step("copy"):
        ids = [pl.lit(1, pl.Int32).alias(name) for name in ("batch_id", "extract_id")]
        rows = places.with_columns(ids).hstack(fast.frame)
        copy_binary(table, rows, _texts(chunk, rows))
    return chunk.only(~fast.rows)


def show(profiles: Sequence[Profile], rows: int) -> None:
    """Print the steps and their share, each the median of the rounds."""
    wall = {name: statistics.median(one.wall[name] for one in profiles) for name in STEPS}
    cpu = {name: statistics.median(one.cpu[name] for one in profiles) for name in STEPS}
    total = sum(cpu.values())
    print(f"{rows:,} rows, {len(profiles)} rounds\n")
    print("| step | what | wall s | CPU s | CPU s per million | share |")
    print("|---|---|---|---|---|---|")
    for name, what in STEPS.items():
        costs = f"{wall[name]:.3f} | {cpu[name]:.3f} | {cpu[name] / rows * 1e6:.3f}"
        print(f"| {name} | {what} | {costs} | {cpu[name] / total:.1%} |")
    costs = f"{sum(wall.values()):.3f} | {total:.3f} | {total / rows * 1e6:.3f}"
    print(f"| all | | {costs} | 100% |")
    read = total - cpu["copy"]
    print(f"\nread (all but copy): {read:.3f} CPU s; of it pandera {cpu['pandera'] / read:.1%}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory {peak:.0f} MiB")


if __name__ == "__main__":
    main()
