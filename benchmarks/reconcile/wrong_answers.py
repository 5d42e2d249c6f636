"""The wrong answers that made us compare exactly: what peers say to four small questions, and we.

    python benchmarks/reconcile/wrong_answers.py

Every peer runs in an environment of its own; its versions are printed. A peer that cannot be
installed is named and left out.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import polars as pl
import psycopg

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(1, str(ROOT))

from benchmarks.environments import NotInstalled, peer_python, versions  # noqa: E402
from connectors.postgres.server.embedded import embedded_url  # noqa: E402
from flows.stages.comparing.compare_run import run_comparison  # noqa: E402

DATACOMPY = """
import sys, polars as pl
from datacompy import PolarsCompare
left, right = (pl.read_parquet(file) for file in sys.argv[1:3])
print("the same" if PolarsCompare(left, right, join_columns=["id"]).matches() else "different")
"""
RELADIFF = """
import sys
from reladiff import connect_to_table, diff_tables
from reladiff.diff_tables import Algorithm
host, port, user, database, left, right, key = sys.argv[1:8]
info = dict(driver="postgresql", host=host, port=port, user=user, dbname=database, password="")
one = connect_to_table(info, left, key)
other = connect_to_table(info, right, key)
found = list(diff_tables(one, other, extra_columns=("v",), algorithm=Algorithm.HASHDIFF))
print(f"{len(found)} differing rows" if found else "the same")
"""


def main() -> int:
    """Ask every peer; 1 when one answers otherwise than is stated here, or we do."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "recon-benchmarks")
    cache = parser.parse_args().cache.resolve()
    cache.mkdir(parents=True, exist_ok=True)
    as_stated = True
    with tempfile.TemporaryDirectory() as name:
        for ask in (_wide_integers, _a_few_cents, _null_keys, _numeric_without_scale):
            as_stated &= ask(cache, Path(name))
    return 0 if as_stated else 1


def _wide_integers(cache: Path, folder: Path) -> bool:
    """9007199254740993 and 9007199254740992 in a 64-bit column."""
    files = []
    for side, value in (("left", 2**53), ("right", 2**53 + 1)):
        files.append(folder / f"{side}.parquet")
        pl.DataFrame({"id": [1], "v": [value]}).write_parquet(files[-1])
    python = _python("datacompy", cache)
    peer = None if python is None else _asked(python, "-c", DATACOMPY, *files)
    return _holds("64-bit integers 2^53 and 2^53 + 1", "datacompy", peer, "the same", *files)


def _a_few_cents(cache: Path, folder: Path) -> bool:
    """The sums 1000000.00 and 1000000.03."""
    files = []
    for side, value in (("left", "1000000.00"), ("right", "1000000.03")):
        files.append(folder / f"{side}.csv")
        files[-1].write_text(f"id,v\n1,{value}\n")
    python, peer = _python("validator", cache), None
    if python is not None:
        home = folder / "validator"
        home.mkdir()
        program = python.parent / "data-validation"
        environment = os.environ | {"PSO_DV_CONN_HOME": str(home), "HOME": str(home)}
        for side, file in zip(("left", "right"), files, strict=True):
            _asked(program, "connections", "add", "--connection-name", side, "FileSystem",
                   "--table-name", "t", "--file-path", file, "--file-type", "csv",
                   environment=environment)  # fmt: skip
        answer = _asked(program, "validate", "column", "-sc", "left", "-tc", "right",
                        "-tbls", "t=t", "--sum", "v", "--format", "csv",
                        environment=environment)  # fmt: skip
        peer = "success" if "success" in answer and ",fail" not in answer else answer[-300:]
    return _holds("1000000.00 and 1000000.03", "Google data-validator", peer, "success", *files)


def _null_keys(cache: Path, _: Path) -> bool:
    """A row without a key on one side only."""
    return _tables(
        cache,
        "a row whose key is NULL",
        "id bigint, v int",
        ("(1, 1)", "(1, 1), (NULL, 2)"),
        "the same",
    )


def _numeric_without_scale(cache: Path, _: Path) -> bool:
    """1.25 and 1.26 in columns of type numeric."""
    return _tables(
        cache,
        "1.25 and 1.26 as numeric without a scale",
        "id bigint primary key, v numeric",
        ("(1, 1.25)", "(1, 1.26)"),
        "the same",
    )


def _tables(cache: Path, what: str, columns: str, rows: tuple[str, str], wrong: str) -> bool:
    url = embedded_url(cache / "server", "wrong_answers")
    sign = "&" if "?" in url else "?"
    with psycopg.connect(url, autocommit=True) as connection:
        for side, values in zip(("l", "r"), rows, strict=True):
            connection.execute(f"DROP TABLE IF EXISTS {side}")
            connection.execute(f"CREATE TABLE {side} ({columns})")
            connection.execute(f"INSERT INTO {side} VALUES {values}")
        info = connection.info
        place = (info.host, str(info.port), info.user, info.dbname)
    python = _python("reladiff", cache)
    peer = None if python is None else _asked(python, "-c", RELADIFF, *place, "l", "r", "id")
    return _holds(what, "reladiff", peer, wrong, f"{url}{sign}table=l", f"{url}{sign}table=r")


def _python(peer: str, cache: Path) -> Path | None:
    try:
        python = peer_python(peer, cache)
    except NotInstalled as error:
        print(error, file=sys.stderr)
        return None
    print(f"[{', '.join(f'{name} {number}' for name, number in versions(python).items())}]")
    return python


def _asked(program: Path, *arguments: object, environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        [str(program), *map(str, arguments)],
        check=False,
        capture_output=True,
        text=True,
        env=environment,
    )
    return done.stdout.strip() if not done.returncode else f"failed: {done.stderr[-1500:]}"


def _holds(what: str, name: str, peer: str | None, wrong: str, left: object, right: object) -> bool:
    ours = run_comparison(str(left), str(right), key="id")
    found = ", ".join(f"{count} {status}" for status, count in ours.statuses.items() if count)
    print(f"{what}\n  {name}: {peer or 'not installed'}\n  recon: {found}")
    return not ours.agrees and peer in (None, wrong)


if __name__ == "__main__":
    sys.exit(main())
