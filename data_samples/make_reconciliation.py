"""Write the reconciliation scenario: three days on which both sides of the truth drift apart.

    python data_samples/make_reconciliation.py [--out DIR]

Each day brings a delivery (`monday/` ...), what others did to the target meanwhile (`monday.sql`)
and the breaks a reconciliation must find then, none else (`expected.json`). The same source gives
the same bytes.
"""

import argparse
import csv
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

from reconciliation_base import HEADERS
from reconciliation_days import Day
from reconciliation_later import DAYS

HERE = Path(__file__).parent / "reconciliation"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=HERE)
    out: Path = parser.parse_args().out
    for day in DAYS:
        write_day(out, day)
    expected = {day.name: told(day) for day in DAYS}
    write(out / "expected.json", json.dumps(expected, indent=1, ensure_ascii=False) + "\n")


def write_day(out: Path, day: Day) -> None:
    """The extracts of a day and what happened to the target after they were taken in."""
    for name, rows in day.extracts.items():
        write(out / day.name / f"{name}.csv", csv_text(HEADERS[name], rows))
    for name, rows in day.listings.items():
        write(out / f"{day.name}-listings" / f"{name}.csv", csv_text(HEADERS[name], rows))
    if day.changes:
        statements = [f"-- {about}\n{sql};\n" for about, sql in day.changes]
        write(out / f"{day.name}.sql", "\n".join(statements))


def told(day: Day) -> dict[str, object]:
    """What the reconciliation of the day must say."""
    return {
        "as_of": day.as_of,
        "verdict": day.verdict,
        "breaks": [asdict(planted) for planted in sorted(day.breaks)],
    }


def csv_text(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A CSV file as producers write it; a cell that is not quoted and empty is null."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="")


if __name__ == "__main__":
    main()
