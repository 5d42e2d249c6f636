"""The files that are imported: made once by the project's own generator, found again by name."""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BAD_SHARE = 0.01


@dataclass(frozen=True, slots=True)
class Extracts:
    """The same payments three times, the rates they refer to, and how many rows there are."""

    clean: Path
    dirty: Path
    """One row in a hundred has one planted fault."""
    again: Path
    """The clean rows with one more line end: other bytes, the same rows."""
    rates: Path
    rows: int
    good_rows: int
    """Sound rows of the dirty file."""


def make_extracts(folder: Path, rows: int) -> Extracts:
    """The extracts of one size, generated when they are not there."""
    clean, dirty = make_payments(folder, rows, 0), make_payments(folder, rows, BAD_SHARE)
    again = clean.with_name("again.csv")
    if not again.exists():
        partial = again.with_suffix(".partial")
        partial.write_bytes(clean.read_bytes() + b"\n")
        partial.rename(again)
    good_rows = json.loads(dirty.with_name("truth.json").read_text())["good_rows"]
    return Extracts(clean, dirty, again, make_rates(folder), rows, good_rows)


def make_rates(folder: Path) -> Path:
    """The rates that all payments refer to."""
    return _generate(folder / "rates", "currency_rates") / "currency_rates.csv"


def make_payments(folder: Path, rows: int, bad_share: float) -> Path:
    """Payments of which such a share has one planted fault each."""
    size = ["--rows", str(rows), "--seed", "7"]
    name = f"clean-{rows}"
    kind = ["--clean"]
    if bad_share:
        name = f"dirty-{rows}" if bad_share == BAD_SHARE else f"dirty-{rows}-{bad_share:g}"
        kind = ["--bad-share", str(bad_share)]
    return _generate(folder / name, "payments", *size, *kind) / "payments.csv"


def _generate(folder: Path, *arguments: str) -> Path:
    if not (folder / "complete").exists():
        print(f"generating {folder}", file=sys.stderr)
        program = ROOT / "data_samples" / "generate.py"
        command = [sys.executable, program, *arguments, "--out", folder]
        # Standard output is a page of figures, which names no folder.
        subprocess.run(command, check=True, stdout=sys.stderr)
        (folder / "complete").touch()
    return folder
