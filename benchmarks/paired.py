"""Measure two checkouts beside each other: what a change costs, or has saved.

    python benchmarks/paired.py ../recon-before --rounds 5
    python benchmarks/paired.py ../recon-before --only import reconcile --rows 200000

Each has its own `.venv` and its own benchmarks, and is measured by these, in turn, so that what
the machine does besides comes over both. A ratio is the median of the rounds' own, this one
beside the other.
"""

import argparse
import ast
import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SECONDS = ("wall", "client", "server")
FIGURES = (*SECONDS, "cpu_ms", "rate", "peak_mib")
IMPORT = ("ours_clean", "ours_dirty", "read_ours", "read_ours_dirty")
LOADED = ", loaded"
"""What a case costs without the loading of what compiles the loops, once a process."""
PUSH = ("ours-1", "ours-32", "ours_written_ahead-32")
PRINTED = "reconcile/four_records.py"
"""What tells of each run as it ends, and writes none down."""
Run = dict[str, Any]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure both, round by round, and print a table."""
    asked = _parser().parse_args(arguments)
    programs = {
        "import": ("import/run.py", "--rows", str(asked.rows), "--only", *IMPORT),
        "push": ("push/run.py", "--only", *PUSH),
        "reconcile": (PRINTED, "--payments", str(asked.rows), "--only", "reconcile"),
    }
    runs: dict[str, list[tuple[Run, Run]]] = defaultdict(list)
    for number in range(asked.rounds):
        # What runs second finds another machine than what runs first.
        turn = -1 if number % 2 else 1
        for name in asked.only:
            checkouts = (ROOT, asked.other.resolve())[::turn]
            ours, other = [dict(_runs(one, *programs[name])) for one in checkouts][::turn]
            for case in ours:
                if case in other:
                    runs[case].append((ours[case], other[case]))
    print(
        "| case | rounds | " + " | ".join(f"{one}: this / other, ratio" for one in FIGURES) + " |"
    )
    print("|---|---|" + "---|" * len(FIGURES))
    for case, pairs in runs.items():
        print(f"| {case} | {len(pairs)} | {' | '.join(_cells(pairs))} |")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("other", type=Path, help="the checkout that is measured beside this one")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    stages = ("import", "push", "reconcile")
    parser.add_argument("--only", nargs="+", choices=stages, default=stages)
    return parser


def _runs(checkout: Path, program: str, *arguments: str) -> Iterator[tuple[str, Run]]:
    """One round of a checkout's benchmark, by case."""
    with tempfile.TemporaryDirectory() as out:
        command = [".venv/bin/python", f"benchmarks/{program}", *arguments, "--rounds", "1"]
        done = subprocess.run(
            [*command, *(() if program == PRINTED else ("--out", out))],
            cwd=checkout,
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE if program == PRINTED else sys.stderr,
            text=True,
        )
        if program == PRINTED:
            ends = (line.partition(" {") for line in done.stderr.splitlines())
            yield from ((case, ast.literal_eval(sign[1:] + run)) for case, sign, run in ends if run)
            return
        (written,) = Path(out).glob("*.json")
        for case, (run,) in json.loads(written.read_text(encoding="utf-8"))["runs"].items():
            yield case, run
            if program.startswith("import"):
                loading = run.get("parts", {}).get("load", {})
                yield case + LOADED, run | {one: run[one] - loading.get(one, 0) for one in SECONDS}


def _cells(pairs: Sequence[tuple[Run, Run]]) -> Iterator[str]:
    for figure in FIGURES:
        known = [(ours[figure], other[figure]) for ours, other in pairs if figure in ours]
        if not known or not all(other for _, other in known):
            yield "-"
            continue
        ours, other = (median(side) for side in zip(*known, strict=True))
        ratio = median(one / two for one, two in known)
        yield f"{ours:.4g} / {other:.4g}, {ratio:.2f}"


if __name__ == "__main__":
    main()
