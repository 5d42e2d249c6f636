"""What is known about breaks that a run did not find again, and which side resolved them.

The side is what was delivered, what that is compared with, or neither. For a break about a single
record, the batches that brought the record tell. A break between records may be gone because
another record was delivered, or changed in the target, or was there all along and is no longer
dated after the report's day. That is tried out: whether the break would still be there without the
rows of the batches that came since, or as of the day before.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date

import polars as pl
import psycopg

from connectors.postgres.batches.ledger import TAKEN_BACK, batches_of, taken_in_after
from connectors.postgres.batches.overview import delivered_again_in
from connectors.postgres.runs.lost_references import lost_references
from connectors.postgres.runs.reconciliations import Reconciliation, scope_hash
from connectors.postgres.runs.signatures import last_approved, signatures_of
from flows.stages.reconcile.put_aside import keeper
from flows.stages.reconcile.rules import rules_of
from flows.stages.reconcile.sources import Gathered
from flows.stages.workspace import Workspace
from flows.steps.breaks.aside import NEWEST, Gone, other_terms, resolved_sides, with_own
from flows.steps.breaks.lifecycle import NEITHER
from flows.steps.breaks.match_breaks import line_key
from flows.steps.frames.parts import changed, parts_of
from flows.steps.frames.sources import Sources
from flows.steps.frames.statuses import in_state
from flows.steps.reconcile.cut_off import Cut, cut_off
from flows.steps.reconcile.joins import joined_break_ids, reconcile_sources
from flows.steps.reconcile.refused_files import CODE as REFUSED_FILE
from flows.steps.reconcile.signed import CODE, LATE
from flows.steps.rules.canonical import rules_hash
from flows.steps.rules.own_kinds import out_of_reach, tables_by
from flows.steps.rules.rules import Rules
from schemas.break_classes import BreakClass
from schemas.breaks import BREAKS
from schemas.derived.left_out import OWN
from schemas.derived.views import AGAIN, BY_KEY, CORRECTED, ENDS, ERRORS
from schemas.frame_types import WORD
from schemas.life import RESTATED, Role
from schemas.tables import EXTRACTS

_FIELD = {"record": pl.String(), "field": pl.String()}
_IN_ERROR = (*ERRORS, CORRECTED, BY_KEY, AGAIN)


@dataclass(frozen=True, slots=True)
class LookedAt:
    """What a run has looked at, its rules, and the run before it."""

    workspace: Workspace
    connection: psycopg.Connection
    gathered: Gathered
    cut: Cut
    rules: Rules
    as_of: date
    previous: Reconciliation


def known_of(gone: pl.DataFrame, run: LookedAt) -> Gone:
    """What the ledger and the sources know about breaks that were not found again."""
    if gone.is_empty():
        return Gone(gone)
    newest = _newest_batches(run.gathered.sources.extract, gone["record"])
    return Gone(
        gone,
        newest,
        run.gathered.batches,
        _found_by_other_terms(gone, run),
        later=run.cut.keys(gone["record"]),
        doubted=_doubted(gone, run.gathered),
        sides=_changed_sides(gone, newest, run),
        taken_back=_taken_back(gone, run),
        again=_again(gone, run),
    )


def _found_by_other_terms(gone: pl.DataFrame, run: LookedAt) -> dict[str, list[str]]:
    """Ids of the breaks that the rules and days of earlier runs would still show."""
    found = {}
    for hashed, day in other_terms(gone, rules_hash(run.rules), run.as_of):
        earlier = rules_of(run.workspace, run.connection, hashed)
        if earlier is not None:
            sources = _referring(run, earlier)
            cut = cut_off(sources, day, tables_by(earlier))
            result = reconcile_sources(
                cut.kept, earlier, day, service=run.gathered.service, cut=cut, keep=keeper()
            )
            found[hashed] = [*result.breaks["id"], *_out_of_reach(gone, earlier)]
    return found


def _out_of_reach(gone: pl.DataFrame, earlier: Rules) -> pl.Series:
    """Ids of reference breaks that can no longer be followed, so that they may not be gone."""
    lost = pl.DataFrame(list(out_of_reach(earlier)), schema=_FIELD, orient="row")
    codes = [code for code, of in BREAKS.items() if of.group is BreakClass.REFERENCE]
    about = gone.filter(pl.col("code").is_in(codes)).select("id", *_FIELD)
    return about.join(lost, on=list(_FIELD), how="semi")["id"]


def _referring(run: LookedAt, earlier: Rules) -> Sources:
    """The sources, with references that lead nowhere by the record kinds of earlier rules."""
    sources = run.gathered.sources
    other = {
        name: lost_references(run.connection, table)
        for name, table in tables_by(earlier).items()
        if table.references != EXTRACTS[name].references and name in sources.extract
    }
    return replace(sources, lost={**sources.lost, **other}) if other else sources


def _doubted(gone: pl.DataFrame, gathered: Gathered) -> pl.Series:
    """Ids of breaks that may only seem gone, because a kept content cannot be proven.

    These are breaks about the content's own records, and those between records.
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
    about = with_own(gone, keys).select("id", "record", "code", "batch_id", "file", "own")
    return pl.concat(
        [
            about.join(places, on=["batch_id", "file"], how="semi")["id"],
            about.join(keys.rename({"key": "own"}), on=["record", "own"], how="semi")["id"],
            about.filter(pl.col("code").is_in(between))["id"],
        ]
    )


def _newest_batches(frames: Mapping[str, pl.DataFrame], records: pl.Series) -> pl.DataFrame:
    """The youngest batch that brought each record of some kinds, by the key breaks name it by.

    Only batches that were not taken back, with the `state` of their rows.
    """
    asked = set(records)
    parts = [
        frame.select(
            pl.lit(record).alias("record"),
            line_key(EXTRACTS[record], frame).alias("key"),
            "batch_id",
            "state",
        )
        for record in frames
        if record in asked
        for load in parts_of(frames, record)
        if (frame := load().filter(~pl.col("state").is_in(ENDS))).height
    ]
    return pl.concat([pl.DataFrame(schema={**NEWEST, "state": WORD}), *parts])


def _changed_sides(gone: pl.DataFrame, newest: pl.DataFrame, run: LookedAt) -> pl.DataFrame:
    """`resolved_sides`, with trials for breaks between records and about what was signed.

    A row in error resolves nothing, and beside a target only a row that counts does.
    """
    settling = newest.filter(~in_state(_IN_ERROR))
    counting = newest.filter(~in_state(OWN))
    of_rows = (pl.col("side") == "E").fill_null(value=False)
    sides = pl.concat(
        [
            resolved_sides(gone.filter(of_rows), settling),
            resolved_sides(gone.filter(~of_rows), counting),
        ]
    )
    found = dict.fromkeys(gone.filter(pl.col("code") == REFUSED_FILE)["id"], "E")
    of_signed = gone.filter(pl.col("code").is_in([CODE, LATE]))
    if of_signed.height:
        signed = _signed_since(run)
        found |= dict.fromkeys(of_signed["id"], NEITHER if signed else "D")
        found |= {} if signed else dict.fromkeys(_delivered_since(of_signed, counting, run), "E")
    between = [code for code, of in BREAKS.items() if of.of_class.tried_again]
    unsure = gone.join(sides.filter(pl.col("side") == "D"), on="id", how="semi").filter(
        pl.col("code").is_in(between), pl.col("looked_rules") == rules_hash(run.rules)
    )
    if unsure.height:
        found |= _tried(unsure, run)
    tried = pl.DataFrame(
        {"id": list(found), "tried": list(found.values())},
        schema={"id": pl.String(), "tried": pl.String()},
    )
    return sides.join(tried, on="id", how="left", maintain_order="left").select(
        "id", pl.coalesce("tried", "side").alias("side")
    )


def _taken_back(gone: pl.DataFrame, run: LookedAt) -> Mapping[int, str]:
    """What became of breaks' batches that are no longer in the run: undone or discarded."""
    away = set(gone["batch_id"].drop_nulls()) - run.gathered.batches
    states = {one.id: one.state for one in batches_of(run.connection, away)}
    return {number: state.value for number, state in states.items() if state in TAKEN_BACK}


def _again(gone: pl.DataFrame, run: LookedAt) -> pl.Series:
    """Ids of breaks of refused files whose batch was taken back, and which the run has again.

    A batch of the run has taken the file, or refused it in its turn.
    """
    files = gone.filter(pl.col("code") == REFUSED_FILE).select("batch_id", "file", "id")
    away = files.filter(~pl.col("batch_id").is_in(list(run.gathered.batches)))
    asked = away.select("batch_id", "file").rows()
    again = delivered_again_in(run.connection, asked, run.gathered.batches)
    return pl.Series(
        [one for batch, file, one in away.iter_rows() if (batch, file) in again], dtype=pl.String()
    )


def _signed_since(run: LookedAt) -> bool:
    """Whether the report this run is compared with was approved after the previous run began.

    A restatement is compared with reports of the restated scope, up to its day.
    """
    scope = run.previous.scope.split(RESTATED, maxsplit=1)[0]
    last = last_approved(run.connection, scope_hash(scope), run.as_of)
    return last is not None and (
        signatures_of(run.connection, last.id)[Role.APPROVED].at > run.previous.opened_at
    )


def _delivered_since(gone: pl.DataFrame, newest: pl.DataFrame, run: LookedAt) -> pl.Series:
    """Breaks about records that a batch brought which came after the previous run.

    Breaks of what was signed do not say which batch had brought the record when they were found.
    """
    new = taken_in_after(run.connection, newest["batch_id"].unique(), run.previous.opened_at)
    brought = newest.filter(pl.col("batch_id").is_in(list(new))).rename({"key": "own"})
    return with_own(gone, newest).join(brought, on=["record", "own"], how="semi")["id"]


def _tried(unsure: pl.DataFrame, run: LookedAt) -> dict[str, str]:
    found: dict[str, str] = {}
    sources = run.gathered.sources
    around = sources.around.values()
    wrote = run.gathered.batches.union(*(rows["batch_id"].drop_nulls().unique() for rows in around))
    if new := taken_in_after(run.connection, wrote, run.previous.opened_at):
        found |= dict.fromkeys(_still(_without(sources, new), unsure, run.rules, run.as_of), "E")
    rest = unsure.filter(~pl.col("id").is_in(list(found)), pl.col("looked_as_of") < run.as_of)
    for (day,), mine in rest.group_by("looked_as_of"):
        assert isinstance(day, date)
        found |= dict.fromkeys(_still(sources, mine, run.rules, day), NEITHER)
    return found


def _still(sources: Sources, breaks: pl.DataFrame, rules: Rules, as_of: date) -> list[str]:
    """The breaks that the sources would show as of a day."""
    cut = cut_off(sources, as_of)
    there = joined_break_ids(cut.kept, rules, as_of, cut)
    return breaks.filter(pl.col("id").is_in(there.implode()))["id"].to_list()


def _without(sources: Sources, batches: set[int]) -> Sources:
    """The sources without the rows of these batches."""

    def others(frame: pl.DataFrame) -> pl.DataFrame:
        return frame.filter(~pl.col("batch_id").is_in(list(batches)))

    return replace(
        sources,
        extract=changed(sources.extract, others),
        database=changed(sources.database, others),
        around={record: others(rows) for record, rows in sources.around.items()},
        around_extract={record: others(rows) for record, rows in sources.around_extract.items()},
    )
