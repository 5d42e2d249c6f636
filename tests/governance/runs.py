"""Small reconciliations for the stories: breaks said by hand, a folder with files, a saved run."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from datetime import date
from decimal import Decimal
from pathlib import Path

import polars as pl

from connectors.postgres.runs.breaks import decisions_since, unresolved
from connectors.postgres.runs.reconciliations import (
    Reconciliation,
    RunFacts,
    hold_scope,
    latest_run,
    next_number,
    scope_hash,
)
from connectors.postgres.runs.save_run import save_run
from connectors.postgres.trail import last_event
from flows.stages.reconcile.breaks import breaks_left
from flows.stages.reconcile.report_files import MANIFEST, RECORDS, TOTALS, sha256_of
from flows.stages.workspace import Workspace
from flows.steps.breaks.aside import resolved_sides
from flows.steps.breaks.carried_states import is_open
from flows.steps.breaks.counted import additions, counts
from flows.steps.breaks.frame import BREAK_SCHEMA, gather
from flows.steps.breaks.lifecycle import carry
from flows.steps.breaks.saved import facts_of, parts, saved_parts
from flows.steps.frames.parts import held_rows
from flows.steps.reconcile.roll_forward import roll_forward
from flows.steps.reconcile.signed import packed_parts, packed_schema
from schemas.guards.trail_rules import chain_hash, report_hash

SCOPE = '{"tenants": [7]}'
DAY = date(2026, 1, 31)
NOTHING_CHANGED = {"cover": {"zone": "UTC", "version": "1", "inputs": []}, "currencies": {}}


def found(
    *keys: str,
    amount: str | None = "10",
    currency: int | None = 1,
    code: str = "AMOUNT",
    **facts: object,
) -> pl.DataFrame:
    """Breaks of a run, one per key."""
    rows = [
        {"code": code, "record": "payment", "tenant": 7, "key": key, "field": "PaidAmount",
         "side": "D", "currency": currency, "amount": amount and Decimal(amount)} | facts
        for key in keys
    ]  # fmt: skip
    return gather([pl.DataFrame(rows, schema=BREAK_SCHEMA)])


def to_saved(carried: pl.DataFrame) -> pl.DataFrame:
    """Carried breaks as rows of the ledger, without the run's number."""
    return pl.concat(saved_parts(parts(carried), facts_of(held_rows(carried))))


def pack_records(frames: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """The records beside a signed report, all of them at once."""
    schema = packed_schema(frames)
    return pl.concat([pl.DataFrame(schema=schema), *packed_parts(frames, schema)])


def with_counts(carried: pl.DataFrame) -> pl.DataFrame:
    """Carried breaks with what they add to totals."""
    return carried.hstack(counts(held_rows(carried)))


def with_counted(breaks: pl.DataFrame) -> pl.DataFrame:
    """Breaks that are all that are there, with what each adds to totals."""
    return breaks.hstack(additions(held_rows(breaks), pl.lit(value=True)))


def ids(breaks: pl.DataFrame) -> list[str]:
    return breaks["id"].to_list()


def reconcile(
    workspace: Workspace,
    breaks: pl.DataFrame,
    *,
    as_of: date = DAY,
    scope: str = SCOPE,
    verdict: str | None = None,
    delivered: Iterable[tuple[str, int]] = (),
    records: Mapping[str, pl.DataFrame] | None = None,
    page: str | None = None,
    rules: str = "0" * 64,
    totals: str | None = None,
) -> Reconciliation:
    """Run a scope: `delivered` are keys of payments with the newest batch that brought them.

    `page` is its report in HTML, `rules` the hash of its rules, `totals` its totals.json.
    """
    newest = pl.DataFrame(
        [("payment", key, batch) for key, batch in delivered],
        schema={name: BREAK_SCHEMA[name] for name in ("record", "key", "batch_id")},
        orient="row",
    )
    with workspace.database.connect() as connection, hold_scope(connection, scope):
        previous = latest_run(connection, scope)
        through = previous.decided_through if previous else 0
        known = unresolved(connection, previous.id) if previous else breaks["id"].clear()
        ids = pl.concat([known, breaks["id"]]).unique()
        before = breaks_left(connection, scope, previous, ids)
        decisions = decisions_since(connection, scope_hash(scope), through)
        gone = before.join(breaks, on="id", how="anti")
        changed = resolved_sides(gone, newest)
        carried = with_counts(carry(breaks, before, decisions, changed, as_of))
        number = next_number(connection)
        folder = workspace.settings.reports / f"reconciliation-{number}"
        hashes = _write(folder, carried, records or {}, page or f"{carried.height} breaks", totals)
        whole = report_hash(hashes)
        left = carried.filter(is_open()).height
        accepted = "ACCEPTED" in carried["state"]
        sound = "RECONCILED_WITH_ACCEPTED" if accepted else "RECONCILED"
        verdict = verdict or ("NOT_RECONCILED" if left else sound)
        chained = chain_hash(previous.chain_hash if previous else None, whole)
        manifest = {"reconciliation": number, "written_at": "2026-01-31T10:00:00+00:00",
                    "as_of": as_of.isoformat(), "verdict": verdict, "sha256": hashes,
                    "report_hash": whole, "chain_hash": chained}  # fmt: skip
        (folder / MANIFEST).write_text(json.dumps(manifest))
        run = RunFacts(
            id=number,
            scope=scope,
            as_of=as_of,
            rules_hash=rules,
            verdict=verdict,
            report_hash=whole,
            chain_hash=chained,
            previous_id=previous.id if previous else None,
            decided_through=max([through, *decisions["id"]]),
            folder=folder.name,
        )
        return save_run(
            connection,
            run,
            [to_saved(carried)],
            signed_through=last_event(connection),
            manifest_hash=sha256_of(folder / MANIFEST),
        )


def _write(
    folder: Path,
    carried: pl.DataFrame,
    records: Mapping[str, pl.DataFrame],
    page: str,
    text: str | None,
) -> dict[str, str]:
    folder.mkdir(parents=True)
    carried.write_parquet(folder / "breaks.parquet")
    (folder / "report.html").write_text(page)
    closed = [asdict(one) for one in roll_forward(carried)]
    totals = NOTHING_CHANGED | {"roll_forward": closed}
    (folder / TOTALS).write_text(text or json.dumps(totals, default=str))
    pack_records(records).write_parquet(folder / RECORDS)
    return {path.name: sha256_of(path) for path in folder.iterdir()}


def tamper(workspace: Workspace, table: str, statement: str) -> None:
    """Change a table as only its owner can, past the triggers that refuse it."""
    with workspace.database.connect() as connection, connection.transaction():
        connection.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
        connection.execute(statement)
        connection.execute(f"ALTER TABLE {table} ENABLE TRIGGER USER")


def names(place: Workspace, path: Path, text: str | None) -> Workspace:
    """The workspace with these names of currencies, kept at a path; None: with no names."""
    if text is None:
        return replace(place, settings=replace(place.settings, currencies=None))
    path.write_text(f"CurrenciesId,Code\n{text}")
    return replace(place, settings=replace(place.settings, currencies=path))
