"""What is known of the records of breaks that a run did not find again."""

from collections.abc import Mapping

import polars as pl

from flows.stages.reconcile.sources import Gathered
from flows.steps.breaks.aside import NEWEST, with_own
from flows.steps.breaks.match_breaks import line_key
from flows.steps.frames.parts import changed, parts_of
from schemas.breaks import BREAKS, BreakClass
from schemas.derived.views import ENDS
from schemas.tables import EXTRACTS

_BETWEEN_CLASSES = (
    BreakClass.REFERENCE,
    BreakClass.RATE,
    BreakClass.PLAN,
    BreakClass.DOCUMENT,
    BreakClass.BATCH,
    BreakClass.DUPLICATE,
    BreakClass.GOVERNANCE,
)
"""Of records held against other records, which may have come in another extract."""


def doubted(gathered: Gathered, gone: pl.DataFrame) -> pl.Series:
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
    keys = newest_batches(frames, gone["record"]).select("record", "key").unique()
    between = [code for code, one in BREAKS.items() if one.group in _BETWEEN_CLASSES]
    told = with_own(gone, keys).select("id", "record", "code", "batch_id", "file", "own")
    return pl.concat(
        [
            told.join(places, on=["batch_id", "file"], how="semi")["id"],
            told.join(keys.rename({"key": "own"}), on=["record", "own"], how="semi")["id"],
            told.filter(pl.col("code").is_in(between))["id"],
        ]
    )


def newest_batches(frames: Mapping[str, pl.DataFrame], records: pl.Series) -> pl.DataFrame:
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
