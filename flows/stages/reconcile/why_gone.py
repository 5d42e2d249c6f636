"""Which side changed where a break is gone: what was delivered, what it is compared with, neither.

Of a break about one record that follows from the batches that brought it. A break of a record that
is held against others may be gone because another record was delivered, was changed in the target,
or was there all the time and is no longer dated after the day of the report. That is tried: without
the rows of the batches that came since, it would still be there; or as of the day before.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import date

import polars as pl
import psycopg

from connectors.postgres.ledger import TAKEN_BACK, batches_of
from connectors.postgres.reconciliations import Reconciliation, scope_hash
from connectors.postgres.signatures import last_approved, signatures_of
from flows.stages.reconcile.sources import Gathered
from flows.steps.breaks.aside import resolved_sides
from flows.steps.breaks.lifecycle import NEITHER
from flows.steps.frames.parts import changed
from flows.steps.frames.sources import Sources
from flows.steps.reconcile.cut_off import cut_off
from flows.steps.reconcile.joins import joined_break_ids
from flows.steps.reconcile.signed import CODE, LATE
from flows.steps.rules.canonical import rules_hash
from flows.steps.rules.rules import Rules
from schemas.breaks import BREAKS
from schemas.life import Role

_TRIED_AGAIN = [code for code, of in BREAKS.items() if of.of_class.tried_again]
"""Codes of breaks between records that `_tried` looks for once more, with one side as it was."""


def changed_sides(
    connection: psycopg.Connection,
    gathered: Gathered,
    gone: pl.DataFrame,
    newest: pl.DataFrame,
    previous: Reconciliation | None,
    rules: Rules,
    as_of: date,
) -> pl.DataFrame:
    """`resolved_sides`, with what is tried of breaks between records and of what was signed."""
    sides = resolved_sides(gone, newest)
    if previous is None:
        return sides
    found: dict[str, str] = {}
    if _signed_since(connection, previous):
        found |= dict.fromkeys(gone.filter(pl.col("code").is_in([CODE, LATE]))["id"], NEITHER)
    unsure = gone.join(sides.filter(pl.col("side") == "D"), on="id", how="semi").filter(
        pl.col("code").is_in(_TRIED_AGAIN), pl.col("looked_rules") == rules_hash(rules)
    )
    if unsure.height:
        found |= _tried(connection, gathered, unsure, previous, rules, as_of)
    told = pl.DataFrame(
        {"id": list(found), "told": list(found.values())},
        schema={"id": pl.String(), "told": pl.String()},
    )
    return sides.join(told, on="id", how="left", maintain_order="left").select(
        "id", pl.coalesce("told", "side").alias("side")
    )


def taken_back(
    connection: psycopg.Connection, gathered: Gathered, gone: pl.DataFrame
) -> Mapping[int, str]:
    """What became of the batches of breaks that are no longer in the run: undone or discarded."""
    away = set(gone["batch_id"].drop_nulls()) - gathered.batches
    states = {one.id: one.state for one in batches_of(connection, away)}
    return {number: state.value for number, state in states.items() if state in TAKEN_BACK}


def _signed_since(connection: psycopg.Connection, previous: Reconciliation) -> bool:
    """Whether a report of the scope was approved after the run before began."""
    last = last_approved(connection, scope_hash(previous.scope))
    return last is not None and (
        signatures_of(connection, last.id)[Role.APPROVED].at > previous.opened_at
    )


def _tried(
    connection: psycopg.Connection,
    gathered: Gathered,
    unsure: pl.DataFrame,
    previous: Reconciliation,
    rules: Rules,
    as_of: date,
) -> dict[str, str]:
    found: dict[str, str] = {}
    around = gathered.sources.around.values()
    wrote = gathered.batches.union(*(rows["batch_id"].drop_nulls().unique() for rows in around))
    new = {one.id for one in batches_of(connection, wrote) if one.opened_at > previous.opened_at}
    if new:
        found |= dict.fromkeys(_still(_without(gathered.sources, new), unsure, rules, as_of), "E")
    rest = unsure.filter(~pl.col("id").is_in(list(found)), pl.col("looked_as_of") < as_of)
    for (day,), mine in rest.group_by("looked_as_of"):
        assert isinstance(day, date)
        found |= dict.fromkeys(_still(gathered.sources, mine, rules, day), NEITHER)
    return found


def _still(sources: Sources, breaks: pl.DataFrame, rules: Rules, as_of: date) -> list[str]:
    """Which of the breaks some sources would show as of a day."""
    cut = cut_off(sources, as_of)
    there = joined_break_ids(cut.kept, rules, as_of, cut)
    return breaks.filter(pl.col("id").is_in(there.implode()))["id"].to_list()


def _without(sources: Sources, batches: set[int]) -> Sources:
    """The sources without the rows that some batches brought."""

    def others(frame: pl.DataFrame) -> pl.DataFrame:
        return frame.filter(~pl.col("batch_id").is_in(list(batches)))

    return replace(
        sources,
        extract=changed(sources.extract, others),
        database=changed(sources.database, others),
        around={record: others(rows) for record, rows in sources.around.items()},
        around_extract={record: others(rows) for record, rows in sources.around_extract.items()},
    )
