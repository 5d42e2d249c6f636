"""A central bank's whole history of rates, from its zip to the database, by a feed profile alone.

    python benchmarks/feeds/history.py --days 7000

A table of the form that `docs/feeds/ecb-history` has, with 41 currencies some of which have no rate
for years, is made, packed and imported by `recon import`; then the file of one more day, written
in another way; then the history with that day. What is in the database is held against a count of
the delivered file by the csv module. Prints what each took; exits with 1 where a sum differs.
"""

import argparse
import csv
import io
import os
import random
import subprocess
import sys
import tempfile
import time
import zipfile
from collections import defaultdict
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path

import psycopg

sys.path[0] = str(Path(__file__).resolve().parents[2])

from connectors.postgres.server.embedded import embedded_url  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
FEEDS = ROOT / "docs" / "feeds"
CURRENCIES = 41
FIRST = date(1999, 1, 4)


def main() -> int:
    """Import and compare; prints a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=int, default=7000)
    asked = parser.parse_args()
    codes = {f"{chr(65 + at // 26)}{chr(65 + at % 26)}X": at + 1 for at in range(CURRENCIES)}
    rates = _rates(asked.days, list(codes))
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        for feed in ("ecb-history", "ecb-daily"):
            (folder / feed).mkdir()
            profile = (FEEDS / feed / "profile.toml").read_text()
            (folder / feed / "profile.toml").write_text(profile)
            lines = "".join(f"{code},{number}\n" for code, number in codes.items())
            (folder / feed / "currencies.csv").write_text("code,number\n" + lines)
        days = sorted(rates)
        before, last = days[:-1], days[-1:]
        files = {
            "history": ("ecb-history", _history(folder / "a.zip", rates, before)),
            "one day more": ("ecb-daily", _daily(folder / "b.csv", rates, last[0])),
            "history with it": ("ecb-history", _history(folder / "c.zip", rates, days)),
        }
        print(
            f"{asked.days:,} days, {CURRENCIES} currencies, one file after the other. The home is "
            "new: the first import also sets up the server and compiles the loops.\n"
        )
        print("| file | bytes | rates | inserted | unchanged | wall s | CPU s |\n|" + "---|" * 7)
        for name, (feed, path) in files.items():
            print(_imported(name, folder, feed, path), flush=True)
        return int(not _ties(folder, rates, codes))


def _rates(days: int, codes: list[str]) -> dict[date, dict[str, str]]:
    chance = random.Random(7)
    gone = {code: chance.choice((0, 0, 0, days // 3, days // 2)) for code in codes}
    come = {code: chance.choice((0, 0, 0, days // 4)) for code in codes}
    level = {code: chance.choice((0.8, 1.2, 7.5, 130.0, 1300.0)) for code in codes}
    return {
        FIRST + timedelta(days=at): {
            code: f"{level[code] * (1 + chance.random() / 50):.{chance.randint(2, 5)}f}"
            for code in codes
            if come[code] <= at < days - gone[code]
        }
        for at in range(days)
    }


def _history(path: Path, rates: dict[date, dict[str, str]], days: list[date]) -> Path:
    codes = sorted({code for of_day in rates.values() for code in of_day})
    lines = [
        ["Date", *codes, ""],
        *([str(day), *(rates[day].get(code, "N/A") for code in codes), ""] for day in days[::-1]),
    ]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as parts:
        parts.writestr("eurofxref-hist.csv", "".join(",".join(line) + "\n" for line in lines))
    return path


def _daily(path: Path, rates: dict[date, dict[str, str]], day: date) -> Path:
    names = ", ".join(["Date", *rates[day], ""])
    path.write_text(f"{names}\n{', '.join([f'{day:%d %B %Y}', *rates[day].values(), ''])}\n")
    return path


def _imported(name: str, folder: Path, feed: str, path: Path) -> str:
    begun, before = time.perf_counter(), os.times()
    done = subprocess.run(
        [sys.executable, "-m", "flows", "import", str(path),
         "--profile", str(folder / feed / "profile.toml")],
        cwd=ROOT, env=os.environ | {"RECON_HOME": str(folder / "home")},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    wall, after = time.perf_counter() - begun, os.times()
    if done.returncode:
        sys.exit(f"{name}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    cpu = sum(after[2:4]) - sum(before[2:4])
    with psycopg.connect(embedded_url(folder / "home" / "postgres")) as connection:
        states = dict(
            connection.execute(
                "SELECT state, count(*) FROM recon.staged_row WHERE batch_id = "
                "(SELECT max(id) FROM recon.batch) GROUP BY 1"
            ).fetchall()
        )
    inserted, unchanged = states.pop("inserted", 0), states.pop("unchanged", 0)
    assert not states, states
    total = inserted + unchanged
    size = path.stat().st_size
    return (
        f"| {name} | {size:,} | {total:,} | {inserted:,} | {unchanged:,} | {wall:.1f} | {cpu:.1f} |"
    )


def _ties(folder: Path, rates: dict[date, dict[str, str]], codes: dict[str, int]) -> bool:
    """Whether the database holds what the csv module reads in the last file."""
    with zipfile.ZipFile(folder / "c.zip") as parts:
        text = parts.read("eurofxref-hist.csv").decode()
    wanted: dict[int, list[Decimal]] = defaultdict(lambda: [Decimal(0), Decimal(0)])
    for row in csv.DictReader(io.StringIO(text)):
        for code, cell in row.items():
            if code in codes and cell != "N/A":
                wanted[codes[code]][0] += 1
                wanted[codes[code]][1] += Decimal(cell)
    with psycopg.connect(embedded_url(folder / "home" / "postgres")) as connection:
        found = connection.execute(
            'SELECT "ToCurrenciesId", count(*), sum("ExchangeRate") FROM recon.currency_rate '
            "GROUP BY 1"
        ).fetchall()
    there = {currency: [Decimal(count), total] for currency, count, total in found}
    count = sum(int(one[0]) for one in wanted.values())
    ties = there == dict(wanted) and count == sum(map(len, rates.values()))
    print(f"\n{count:,} rates in {len(wanted)} currencies: {'all tie' if ties else 'DIFFER'}")
    return ties


if __name__ == "__main__":
    sys.exit(main())
