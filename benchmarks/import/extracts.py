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
    rates = _generate(folder / "rates", "currency_rates") / "currency_rates.csv"
    size = ["--rows", str(rows), "--seed", "7"]
    clean = _generate(folder / f"clean-{rows}", "payments", *size, "--clean")
    dirty = _generate(folder / f"dirty-{rows}", "payments", *size, "--bad-share", str(BAD_SHARE))
    again = folder / f"clean-{rows}" / "again.csv"
    if not again.exists():
        partial = again.with_suffix(".partial")
        partial.write_bytes((clean / "payments.csv").read_bytes() + b"\n")
        partial.rename(again)
    return Extracts(
        clean / "payments.csv",
        dirty / "payments.csv",
        again,
        rates,
        rows,
        json.loads((dirty / "truth.json").read_text())["good_rows"],
    )


def _generate(folder: Path, *arguments: str) -> Path:
    if not (folder / "complete").exists():
        print(f"generating {folder}", file=sys.stderr)
        program = ROOT / "data_samples" / "generate.py"
        subprocess.run([sys.executable, program, *arguments, "--out", folder], check=True)
        (folder / "complete").touch()
    return folder
