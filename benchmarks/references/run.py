"""Measure how long references are checked: deliveries of payments against 400,000 rates.

    python benchmarks/references/run.py                       # 1k to 1M payments, about 5 minutes
    python benchmarks/references/run.py --payments 1000 4000 --rates 100000

Each size is one delivery for each share of payments whose rate does not exist, and for each of two
places of the rates: in the database before, or in the same delivery. The figure is the stage that
settles keys and references (`check`), in a new database each time.
"""

import argparse
import json
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psycopg

ROOT = Path(__file__).resolve().parents[2]
sys.path[1:1] = [str(ROOT)]

from connectors.files.profiles.profile import DEFAULT  # noqa: E402
from connectors.postgres.batches.lease import hold_batch  # noqa: E402
from connectors.postgres.database import open_database  # noqa: E402
from connectors.postgres.server.embedded import embedded_url  # noqa: E402
from connectors.settings import Settings  # noqa: E402
from flows.stages.check import check  # noqa: E402
from flows.stages.receive import receive  # noqa: E402
from flows.stages.receiving.terms import StatedTerms  # noqa: E402
from flows.stages.sequence import import_delivery  # noqa: E402
from flows.stages.stage import stage  # noqa: E402
from flows.stages.workspace import Workspace  # noqa: E402

TENANT = 7
DANGLING = 10_000_000
"""Added to the number of a rate that does not exist."""
SHARES = {"none": 0.0, "half": 0.5, "all": 1.0}
RATES = "Id,TenantsId,FromCurrenciesId,ToCurrenciesId,ExchangeRate,EffectiveDate\n"
PAYMENTS = (
    "Id,TenantsId,ActionsId,DebtsId,PaymentDate,PaidAmount,DiscountAmount,CurrenciesId,"
    "CurrencyRatesId\n"
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what the command line asks for, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    sizes = [1_000, 4_000, 16_000, 64_000, 1_000_000]
    parser.add_argument("--payments", type=int, nargs="+", default=sizes)
    parser.add_argument("--rates", type=int, default=400_000)
    parser.add_argument("--shares", nargs="+", choices=SHARES, default=list(SHARES))
    parser.add_argument("--cache", type=Path, default=Path("~/.cache/recon-benchmarks"))
    parser.add_argument("--out", type=Path, default=Path("benchmark-results"))
    asked = parser.parse_args(arguments)
    cache = asked.cache.expanduser().resolve() / "references"
    shutil.rmtree(cache / "work", ignore_errors=True)
    (cache / "work").mkdir(parents=True)
    rates = cache / "work" / "currency_rates.csv"
    rates.write_text(RATES + "".join(rate_lines(asked.rates)))
    figures = [
        {"payments": payments, "dangling": share, "rates": place, "seconds": seconds}
        for place in ("database", "delivery")
        for payments in asked.payments
        for share in asked.shares
        for seconds in [run_case(cache, rates, payments, asked.rates, share, place)]
    ]
    table = "\n".join(written(figures))
    asked.out.mkdir(parents=True, exist_ok=True)
    (asked.out / "references.json").write_text(json.dumps(figures, indent=1))
    (asked.out / "references.md").write_text(table + "\n")
    print(table)
    return 0


def rate_lines(count: int) -> Iterator[str]:
    """Rates numbered from 1 on."""
    return (f"{n},{TENANT},1,2,1.5,2026-01-01T00:00:00\n" for n in range(1, count + 1))


def payment_lines(count: int, rates: int, share: float) -> Iterator[str]:
    """Payments with rates in turn, every so many of them a rate that does not exist."""
    for n in range(1, count + 1):
        dangles = int(n * share) > int((n - 1) * share)
        rate = n % rates + 1 + DANGLING * dangles
        yield f"{n},{TENANT},1,2,2026-01-01T10:00:00Z,10.5,0.5,1,{rate}\n"


def run_case(cache: Path, rates: Path, payments: int, count: int, share: str, place: str) -> float:
    """Seconds of `check` for one delivery of payments."""
    work = cache / "work"
    path = work / "payments.csv"
    path.write_text(PAYMENTS + "".join(payment_lines(payments, count, SHARES[share])))
    maintenance = embedded_url(cache / "server", "postgres")
    home = work / "home"
    with psycopg.connect(maintenance, autocommit=True) as connection:
        connection.execute("DROP DATABASE IF EXISTS dangling WITH (FORCE)")
        connection.execute("CREATE DATABASE dangling")
    settings = Settings(home, maintenance.replace("/postgres?", "/dangling?"))
    workspace = Workspace(settings, open_database(settings))
    paths = [str(path)]
    if place == "database":
        import_delivery(workspace, [str(rates)], DEFAULT)
    else:
        paths.append(str(rates))
    received = receive(workspace, paths, StatedTerms())
    with (
        workspace.database.connect() as connection,
        hold_batch(connection, received.batch_id) as lease,
    ):
        stage(workspace, lease)
        begin = time.perf_counter()
        check(workspace, lease)
        seconds = time.perf_counter() - begin
        row = connection.execute("SELECT coalesce(sum(rows), 0) FROM recon.note").fetchone()
        dangling = int(payments * SHARES[share])
        if row is None or row[0] != dangling:
            raise SystemExit(f"{payments} payments, {share}: {row} noted, {dangling} expected")
    shutil.rmtree(home, ignore_errors=True)
    print(f"{place:9} {payments:>9,} {share:5} {seconds:8.2f} s", file=sys.stderr, flush=True)
    return round(seconds, 2)


def written(figures: list[dict[str, Any]]) -> Iterator[str]:
    """The table of all cases, seconds of each."""
    shares = list(dict.fromkeys(str(one["dangling"]) for one in figures))
    yield "Wall seconds of the stage that settles keys and references, one run each. A dangling"
    yield "payment names a rate that does not exist."
    yield ""
    yield "| rates in the | payments | " + " | ".join(f"{one} dangling, s" for one in shares) + " |"
    yield "|---|---|" + "---|" * len(shares)
    rows: dict[tuple[object, object], list[float]] = {}
    for one in figures:
        rows.setdefault((one["rates"], one["payments"]), []).append(one["seconds"])
    for (place, payments), seconds in rows.items():
        cells = " | ".join(f"{one:.2f}" for one in seconds)
        yield f"| {place} | {payments:,} | {cells} |"


if __name__ == "__main__":
    sys.exit(main())
