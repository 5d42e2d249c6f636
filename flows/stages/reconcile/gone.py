"""What is known of the records of breaks that a run did not find again."""

from collections.abc import Mapping
from datetime import date

import polars as pl
import psycopg

from connectors.postgres.reconciliations import Reconciliation
from flows.stages.reconcile.put_aside import keeper
from flows.stages.reconcile.rules import rules_of
from flows.stages.reconcile.sources import Gathered
from flows.stages.reconcile.why_gone import changed_sides, taken_back
from flows.stages.workspace import Workspace
from flows.steps.breaks.aside import NEWEST, Gone, other_terms, with_own
from flows.steps.breaks.match_breaks import line_key
from flows.steps.frames.parts import changed, parts_of
from flows.steps.reconcile.cut_off import Cut, cut_off
from flows.steps.reconcile.joins import reconcile_sources
from flows.steps.rules.canonical import rules_hash
from flows.steps.rules.rules import Rules
from schemas.breaks import BREAKS
from schemas.derived.views import ENDS
from schemas.tables import EXTRACTS


def known_of(
    gone: pl.DataFrame,
    workspace: Workspace,
    connection: psycopg.Connection,
    previous: Reconciliation,
    gathered: Gathered,
    cut: Cut,
    rules: Rules,
    as_of: date,
) -> Gone:
    """What the ledger and the sources know of breaks that were not found again."""
    if gone.is_empty():
        return Gone(gone)
    newest = _newest_batches(gathered.sources.extract, gone["record"])
    return Gone(
        gone,
        newest,
        gathered.batches,
        _found_by_other_terms(gone, workspace, connection, gathered, rules, as_of),
        apart=cut.keys(gone["record"]),
        doubted=_doubted(gathered, gone),
        sides=changed_sides(connection, gathered, gone, newest, previous, rules, as_of),
        taken_back=taken_back(connection, gathered, gone),
    )


def _found_by_other_terms(
    gone: pl.DataFrame,
    workspace: Workspace,
    connection: psycopg.Connection,
    gathered: Gathered,
    rules: Rules,
    as_of: date,
) -> dict[str, list[str]]:
    """Ids of the breaks there would be by the rules, and as of the day, of the runs before."""
    found = {}
    for hashed, day in other_terms(gone, rules_hash(rules), as_of):
        earlier = rules_of(workspace, connection, hashed)
        if earlier is not None:
            cut = cut_off(gathered.sources, day)
            result = reconcile_sources(
                cut.kept, earlier, day, service=gathered.service, cut=cut, keep=keeper()
            )
            found[hashed] = result.breaks["id"].to_list()
    return found


def _doubted(gathered: Gathered, gone: pl.DataFrame) -> pl.Series:
    """Ids of breaks that may only seem gone, because a kept content cannot be proven.

    Those about its own records, and those of records that are held against other records.
    """
    broken = list(gathered.unproven)
    if not broken:
        return gone["id"].clear()
    files = [(one.batch_id, one.name) for one in gathered.extracts if one.id in gathered.unproven]
    places = pl.DataFrame(files, schema={"batch_id": pl.Int32(), "file": pl.String()}, orient="row")
    frames = changed(
        gathered.sources.extract, lambda frame: frame.filter(pl.col("extract_id").is_in(broken))
    )
    keys = _newest_batches(frames, gone["record"]).select("record", "key").unique()
    between = [code for code, one in BREAKS.items() if one.of_class.between]
    told = with_own(gone, keys).select("id", "record", "code", "batch_id", "file", "own")
    return pl.concat(
        [
            told.join(places, on=["batch_id", "file"], how="semi")["id"],
            told.join(keys.rename({"key": "own"}), on=["record", "own"], how="semi")["id"],
            told.filter(pl.col("code").is_in(between))["id"],
        ]
    )


def _newest_batches(frames: Mapping[str, pl.DataFrame], records: pl.Series) -> pl.DataFrame:
    """The youngest batch that brought each record of some kinds, by the key breaks name it by.

    Of those that were not taken back.
    """
    asked = set(records)
    parts = [
        frame.select(
            pl.lit(record).alias("record"),
            line_key(EXTRACTS[record], frame).alias("key"),
            "batch_id",
        )
        for record in frames
        if record in asked
        for load in parts_of(frames, record)
        if (frame := load().filter(~pl.col("state").is_in(ENDS))).height
    ]
    return pl.concat([pl.DataFrame(schema=NEWEST), *parts])
