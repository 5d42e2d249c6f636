"""Corrections: the delivered rows behind open breaks as CSV files, to be edited and delivered.

A row keeps its own header and text. Two columns precede it: ReconRow, the row it replaces, and
BreakId, the breaks it is meant to close. A file has rows of one batch, which `--corrects` names.
"""

import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO

import polars as pl
import psycopg

from connectors.files.chunks.rewriting import (
    TEXT,
    RewrittenLine,
    may_stay_open,
    needs_nothing,
    write_lines,
)
from connectors.files.disk.atomic import Write
from connectors.files.layout.header import Header
from connectors.files.layout.rows_file import RowsFile
from connectors.postgres.batches import ledger
from connectors.postgres.batches.findings import RejectedRow, rows_at
from connectors.postgres.batches.ledger import Batch, Extract
from connectors.postgres.batches.row_texts import row_texts_at
from flows.stages.receiving.kept import cleared_of, open_archived
from flows.stages.receiving.terms import restored_profile
from flows.stages.reconcile.put_aside import kept_parts
from flows.stages.reconcile.sources import Gathered
from flows.stages.rows.rejects import rewritten
from flows.stages.rows.texts import RowTexts
from flows.stages.workspace import Workspace
from flows.steps.breaks.carried_states import is_open
from flows.steps.breaks.frame import without_number
from flows.steps.breaks.match_breaks import line_key
from flows.steps.frames.parts import Load, PartedRows, columns_of, parts_of
from schemas.breaks import BREAKS
from schemas.field import Table
from schemas.frame_types import WORD
from schemas.own_columns import BREAK_COLUMN, PARENT_COLUMN
from schemas.tables import EXTRACTS

log = logging.getLogger("recon.reconcile")
FOLDER = "corrections"
ROWS = 16_384
"""Rows that are read together."""

CORRECTABLE = (
    "REJECTED",
    "REFUSED",
    "KEY_MISSING",
    *(code for code, one in BREAKS.items() if one.of_class.in_rows),
)
"""Codes of breaks that another text in the delivered row may close."""


def corrections(
    workspace: Workspace, connection: psycopg.Connection, carried: PartedRows, gathered: Gathered
) -> dict[str, Write]:
    """Files by name below the report's folder; empty if no row can close a break."""
    extracts = {extract.id: extract for extract in gathered.extracts}
    of = {extract.batch_id for extract in gathered.extracts}
    batches = {batch.id: batch for batch in ledger.batches_of(connection, of)}
    pieces: dict[tuple[str, int, str], Write] = {}
    for (record, batch), rows in _wanted(carried, gathered):
        asked = [extracts[e] for e in rows["extract_id"].unique()]
        headings = _headings(workspace, batches, asked)
        table = EXTRACTS[record]
        alike: dict[tuple[RowsFile, tuple[str, ...]], dict[int, Header]] = {}
        for extract, header in headings.items():
            if not (header.table.holds_records and table.unquotable):
                alike.setdefault((header.rows_file, header.names), {})[extract] = header
        for number, headers in enumerate(alike.values(), 1):
            more = "" if number == 1 else f"-{number}"
            mine = kept_parts(
                rows.filter(pl.col("extract_id").is_in(list(headers))).iter_slices(ROWS)
            )
            texts = RowTexts(workspace, connection, [batch], without=gathered.unproven)
            pieces[record, batch, more] = _Rows(
                connection, table, batch, mine, headers, texts
            ).write
    # `payment.csv`; if there are several batches or a correction, the name says which it is.
    count = Counter(record for record, *_ in pieces)
    return {
        f"{FOLDER}/{record}.csv"
        if count[record] == 1 and batches[batch].corrects is None
        else f"{FOLDER}/{record}-batch-{batch}{more}.csv": piece
        for (record, batch, more), piece in pieces.items()
    }


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows of one file, with the ids of their breaks; their headers are written alike."""

    connection: psycopg.Connection
    table: Table
    batch: int
    rows: PartedRows
    headers: Mapping[int, Header]
    texts: RowTexts

    def write(self, file: IO[bytes]) -> None:
        headers = self.headers.values()
        plain = not self.table.unquotable and all(
            needs_nothing(one) and not one.unpivot for one in headers
        )
        own = [PARENT_COLUMN, BREAK_COLUMN]
        write_lines(next(iter(headers)), own, self._lines, file, self._frames if plain else None)

    def _frames(self) -> Iterator[pl.DataFrame]:
        """The lines of `_lines` as frames, for rows that are mostly written as delivered."""
        place, text = ["extract_id", "row"], pl.col("data")
        kept = ~may_stay_open(text, next(iter(self.headers.values())))
        for part in self.rows:
            extracts, numbers = part["extract_id"].to_list(), part["row"].to_list()
            found = row_texts_at(self.connection, self.table, self.batch, extracts, numbers)
            written = [
                (row.extract_id, row.record_number, None if row.raw else own)
                for row, own in self._rewritten(found.filter(~kept.fill_null(value=False)))
            ]
            schema = {**found.select(place).schema, "written": pl.String()}
            others = pl.DataFrame(written, schema, orient="row")
            yield (
                found.join(part, on=place, maintain_order="left")
                .join(others, on=place, how="left", maintain_order="left")
                .select(
                    pl.format("{}:{}", "extract_id", "row").alias(PARENT_COLUMN),
                    pl.col("ids").alias(BREAK_COLUMN),
                    pl.when(kept).then(text).otherwise("written").alias(TEXT),
                )
            )

    def _lines(self) -> Iterator[RewrittenLine]:
        for part in self.rows:
            places = part.select("extract_id", "row").iter_rows()
            ids = dict(zip(places, part["ids"], strict=True))
            for row, text in self._rewritten(part):
                place = (row.extract_id, row.record_number)
                own = {PARENT_COLUMN: f"{place[0]}:{place[1]}", BREAK_COLUMN: ids[place]}
                yield RewrittenLine(own, text)

    def _rewritten(self, places: pl.DataFrame) -> Iterator[tuple[RejectedRow, str]]:
        """Rows by their `extract_id` and `row`, each with the text to write."""
        extracts, numbers = places["extract_id"].to_list(), places["row"].to_list()
        rows = rows_at(self.connection, self.table, self.batch, extracts, numbers)
        for row in self.texts.filled(rows):
            header = self.headers[row.extract_id]
            yield row, rewritten(self.table, row, header, with_secrets=False)


def _wanted(
    carried: PartedRows, gathered: Gathered
) -> Iterator[tuple[tuple[str, int], pl.DataFrame]]:
    """By record kind and batch: the rows behind breaks (extract_id, row), and the breaks' ids."""
    # Rows that cannot be proven must not be written out as delivered ones.
    proven = ~pl.col("extract_id").is_in([*gathered.unproven, *gathered.altered])
    correctable = carried.filter(is_open() & pl.col("code").is_in(CORRECTABLE))
    asked = correctable.select("id", "record", "file", "line", "batch_id", "key").with_columns(
        pl.col("file").cast(WORD)
    )
    for record in sorted(gathered.sources.extract):
        mine = asked.filter(pl.col("record") == record).drop("record")
        if mine.is_empty():
            continue
        loads = parts_of(gathered.sources.extract, record)
        parts = [_behind(load, mine, proven).with_columns(part=n) for n, load in enumerate(loads)]
        rows = pl.concat(parts)
        several = rows["id"].is_duplicated()
        if several.any():
            some = _of_records(EXTRACTS[record], loads, rows.filter(several))
            rows = pl.concat([rows.filter(~several), some])
        rows = _with_ids(rows).sort("batch_id", "extract_id", "row")
        for (batch,), part in rows.group_by("batch_id", maintain_order=True):
            yield (record, int(str(batch))), part


def _behind(load: Load, breaks: pl.DataFrame, proven: pl.Expr) -> pl.DataFrame:
    """The rows of a part at a place that a break names, and their number there (`at`)."""
    place = ["file", "line", "batch_id"]
    rows = columns_of(load, [*place, "extract_id", "row"])
    there = rows.with_row_index("at").filter(proven)
    return there.join(breaks, on=place, how="inner")


def _of_records(table: Table, loads: Sequence[Load], rows: pl.DataFrame) -> pl.DataFrame:
    """Of several rows made from one line, those of the record that the break is about."""
    parts = []
    for (part,), some in rows.group_by("part"):
        of = line_key(table, loads[int(str(part))]()[some["at"]])
        same = some.select(without_number(pl.col("key"))).to_series() == of
        parts.append(some.with_columns(same.alias("same")))
    both = pl.concat(parts)
    return both.filter(pl.col("same") | ~pl.col("same").any().over("id")).drop("same")


def _with_ids(rows: pl.DataFrame) -> pl.DataFrame:
    """One line for each row, with its breaks' ids; most rows have one, which needs no list."""
    of_row = ["batch_id", "extract_id", "row"]
    again = rows.select(of_row).is_duplicated()
    several = rows.filter(again).group_by(of_row)
    return pl.concat(
        [
            rows.filter(~again).select(*of_row, pl.col("id").alias("ids")),
            several.agg(pl.col("id").unique().sort().str.join(" ").alias("ids")),
        ]
    )


def _headings(
    workspace: Workspace, batches: Mapping[int, Batch], extracts: list[Extract]
) -> Mapping[int, Header]:
    """The headers of extracts, without those whose content was removed."""
    found = {}
    cleared = cleared_of(workspace, extracts)
    for extract in sorted(extracts, key=lambda one: one.id):
        if extract.sha256 in cleared:
            log.warning(
                "%s: its content was cleared away, so none of it is in %s", extract.name, FOLDER
            )
            continue
        profile = restored_profile(batches[extract.batch_id])
        _, found[extract.id] = open_archived(workspace, extract, profile)
    return found
