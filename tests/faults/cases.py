"""What a fault meets: a batch that is there, a dirty delivery, and what is true afterwards."""

import json
import re
import zipfile
from pathlib import Path
from typing import Any

import psycopg

from connectors.postgres.database import open_database
from connectors.settings import Limits, ServiceSettings, Settings
from flows.stages.workspace import Workspace
from schemas.derived.sql import METADATA
from schemas.derived.sql_names import SCHEMA
from tests.push.deliveries import tones
from tests.stages.payments import line, write

LIMITS = Limits(block_bytes=2_000, strict_bytes=0, database_wait_seconds=0)
OF_ONE_RUN = (
    # A number that a lost transaction has drawn is not drawn again.
    *("id", "batch_id", "extract_id", "writer_extract_id", "event_id", "source_batch_id"),
    *("reconciliation_id", "previous_id", "folder", "breaks_hash", "report_hash"),
    *("at", "written_at", "opened_at", "ended_at", "changed_at", "by", "lease_owner"),
    # Of the spool's content, which names batch and extract; of the trail before.
    *("epoch", "lease_epoch", "clues", "hash", "previous_hash", "chain_hash"),
    # Which database it is; the hash of the file that says when.
    *("database", "manifest.json", "manifest_sha256"),
)
"""Columns that two runs of the same thing may fill differently."""
UNTOLD = ("push_lane", "push_epoch", "push_seal", "event_chain", "run_note", "lease")
"""A run whose session was cut leaves its lease; the session is gone, so it holds nobody up."""
_NUMBER = re.compile(rb"(?<=reconciliation )\d+")


def workspace(url: str, home: Path, **service: Any) -> Workspace:
    """A workspace of small blocks that waits for no database."""
    settings = Settings(home, url, LIMITS, service=ServiceSettings(**service))
    return Workspace(settings, open_database(settings))


def first_delivery(folder: Path) -> list[str]:
    """What is in the database when the fault happens."""
    lines = [line(number, amount=f"{number}.10", day=5) for number in range(1, 31)]
    return [write(folder / "monday" / "payments.csv", *lines)]


def dirty_delivery(folder: Path) -> list[str]:
    """New, changed, equal, stale, repeated, conflicting, malformed and invalid rows."""
    new = [line(number) for number in range(31, 71)]
    changed = [line(number, amount=f"{number}.99", day=6) for number in range(1, 11)]
    equal = [line(number, amount=f"{number}.10", day=5) for number in range(11, 16)]
    stale = [line(number, amount="1.00", day=2) for number in range(16, 21)]
    errors = [line(90), line(90), line(91), line(91, amount="2"), line(92, amount="NaN"), '93,"x"y']
    payments = write(
        folder / "tuesday" / "payments.csv", *new, *errors, *changed, *equal, *stale, "94,7,1"
    )
    return [payments, tones(folder / "tuesday" / "tones.csv", 12)]


def truth(url: str, home: Path) -> dict[str, Any]:
    """Every row of every table but what belongs to one run, and the bytes of every report."""
    found: dict[str, Any] = {}
    with psycopg.connect(url) as connection:
        for table in METADATA.sorted_tables:
            if table.name in UNTOLD:
                continue
            rows = connection.execute(f"SELECT row_to_json(t) FROM {SCHEMA}.{table.name} t")  # type: ignore[call-overload]
            found[table.name] = sorted(json.dumps(_kept(row)) for (row,) in rows)
        folders = connection.execute(
            f"SELECT 'batch-' || id FROM {SCHEMA}.batch UNION SELECT folder "
            f"FROM {SCHEMA}.reconciliation ORDER BY 1"
        )
        for (folder,) in folders.fetchall():
            for path in sorted((home / "reports" / folder).glob("report.*")):
                found.setdefault(path.name, []).append(_unnumbered(path))
    leftover = [*home.rglob(".writing-*"), *(home / "archive" / "incoming").glob("*")]
    assert leftover == [], leftover
    return found


def _unnumbered(path: Path) -> bytes | list[tuple[str, bytes]]:
    """A report without its run's number, of which a lost run has used up one."""
    if path.suffix == ".xlsx":
        with zipfile.ZipFile(path) as book:
            return [(name, _NUMBER.sub(b"", book.read(name))) for name in book.namelist()]
    return _NUMBER.sub(b"", path.read_bytes())


def _kept(row: dict[str, Any]) -> dict[str, Any]:
    if isinstance(row.get("detail"), str):
        row["detail"] = _kept(json.loads(row["detail"]))
    return {
        name: _kept(value) if isinstance(value, dict) else value
        for name, value in row.items()
        if name not in OF_ONE_RUN
    }


def differences(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """Where two truths differ, for a message."""
    told = []
    for name in sorted(one.keys() | other.keys()):
        mine, theirs = one.get(name, []), other.get(name, [])
        if mine != theirs:
            left = [str(row)[:300] for row in mine if row not in theirs]
            right = [str(row)[:300] for row in theirs if row not in mine]
            told.append(f"{name}: {len(mine)} and {len(theirs)}; {left[:3]} <> {right[:3]}")
    return told
