"""Validate a chunk: text in, staged rows with verdicts and control totals out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl

from flows.steps.totals import Totals
from flows.steps.validate.check import Checked, check
from flows.steps.validate.excluded import COLUMN, counts
from flows.steps.validate.field_errors import FieldErrors, OfField, Rows
from flows.steps.validate.frame_totals import totals_by_state, unread_sums
from flows.steps.validate.insert_batch import cells_frame, insert_batch_records
from flows.steps.validate.normalise import Writing, normalise
from flows.steps.validate.omitted_secrets import PARENT, Repaired, fill_secrets
from flows.steps.validate.other_currency import NOT_NAMED, NamedCurrencies
from flows.steps.validate.rows import Positions, StagedRows, all_rows, identities, staged_rows
from flows.steps.validate.states import EXCLUDED, READY, REJECTED, SUPERSEDED
from schemas.derived.pandera_schemas import validate
from schemas.field import Table
from schemas.made_keys import MadeKey
from schemas.tables import EXTRACTS, INSERT_BATCH_DATA


@dataclass(slots=True)
class Validated:
    rows: dict[str, StagedRows] = field(default_factory=dict)
    """Staged rows by the record kind they are staged under."""
    totals: dict[str, dict[str, Totals]] = field(default_factory=dict)
    """Record kind -> state -> control totals."""
    reasons: dict[str, list[list[str | int]]] = field(default_factory=dict)
    """Record kind -> each reason with its number of rows and the first of these."""
    superseded: list[int] = field(default_factory=list)
    """Record numbers of insert-batch rows that were merged before they were delivered."""
    excluded: list[int] = field(default_factory=list)
    """Record numbers of rows that the feed profile leaves out."""
    left_out: list[list[object]] = field(default_factory=list)
    """The excluded rows as column, cell, number of rows and the first of these."""

    @property
    def outcomes(self) -> list[tuple[int, str]]:
        """Record number and verdict of rows whose end state is known before apply."""
        ends = ((SUPERSEDED, self.superseded), (EXCLUDED, self.excluded))
        return [(number, end) for end, numbers in ends for number in numbers]

    def taken(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Staged rows without those that the feed profile leaves out."""
        if not self.excluded:
            return rows
        return rows.filter(~pl.col("record_number").is_in(self.excluded))


def validate_rows(
    table: Table,
    cells: pl.DataFrame,
    fields: Sequence[str | None],
    *,
    positions: pl.DataFrame,
    faults: pl.Series,
    writing: Writing,
    sources: Mapping[str, Sequence[int]],
    batch_id: int,
    extract_id: int,
    tenant: int | None,
    inner_record: str | None,
    unwrapped: bool = True,
    repaired: Repaired | None = None,
    excluded: pl.DataFrame | None = None,
    details: pl.Series | None = None,
    named: NamedCurrencies = NOT_NAMED,
) -> Validated:
    """Validate every record of a chunk; `cells` has only those without any of `faults`.

    Insert-batch data is staged as the records inside it if `unwrapped`, else as it is. `repaired`
    are the rows that a correction repairs, whose secrets it may leave out. `excluded` is the result
    of `Exclusions.of` for `cells`. `details` are texts beside the reasons of records with a fault.
    `named` are the currencies that cells name.
    """
    delivered = {
        name: cells[str(column)]
        for column, name in enumerate(fields)
        if name is not None and not writing.is_made(name, sources.get(name, ()))
    }
    frame = normalise(table, cells, fields, writing, sources)
    validated = Validated()
    staging = _Staging(validated, batch_id, extract_id, tenant, repaired, writing.keys, named)
    placed = Positions(positions, faults, details)
    if table is INSERT_BATCH_DATA and unwrapped:
        checked = check(table, frame, tenant=tenant, delivered=delivered)
        _validate_contents(staging, placed, checked, inner_record)
    else:
        sound = placed.sound
        checked = staging.check(table, frame, positions, sound, delivered)
        if excluded is not None:
            numbers = positions["record_number"].gather(sound)
            checked = staging.leave_out(table, checked, excluded, numbers)
        staging.add(table, placed, checked)
    return validated


@dataclass(frozen=True, slots=True)
class _Staging:
    validated: Validated
    batch_id: int
    extract_id: int
    tenant: int | None
    repaired: Repaired | None
    keys: Mapping[str, MadeKey]
    named: NamedCurrencies

    def check(
        self,
        table: Table,
        frame: pl.DataFrame,
        positions: pl.DataFrame,
        places: Rows,
        delivered: Mapping[str, pl.Series] | None = None,
    ) -> Checked:
        """Validate rows after filling in secrets that a repair left out, by position `places`."""
        left_out: list[OfField] = []
        if self.repaired is not None and table.secrets:
            parents: list[str | None] = [None] * len(places)
            if PARENT in positions.columns:
                parents = positions[PARENT].gather(places).to_list()
            frame, left_out = fill_secrets(table, frame, parents, self.repaired)
            delivered = None
        checked = check(table, frame, tenant=self.tenant, delivered=delivered, named=self.named)
        # A required secret that is empty is reported once.
        errors = checked.errors.instead(left_out).of_keys(table, self.keys, checked.typed)
        return replace(checked, errors=errors)

    def leave_out(
        self, table: Table, checked: Checked, excluded: pl.DataFrame, numbers: pl.Series
    ) -> Checked:
        """Note the rows that are left out, and drop their errors."""
        there = excluded[COLUMN].is_not_null()
        self.validated.excluded = numbers.filter(there).to_list()
        self.validated.left_out = counts(table, excluded, numbers)
        rows = there.arg_true().to_numpy().astype(np.intp)
        return replace(checked, errors=checked.errors.without(rows))

    def add(self, table: Table, positions: Positions, checked: Checked) -> None:
        """Stage rows under one record kind, and add them up by state.

        Raises SchemaBroken if the rows without an error do not fit the schema of their record.
        """
        if positions.frame.is_empty():
            return
        rows = all_rows(checked, positions)
        numbers, lines = rows.positions["record_number"], rows.positions["first_line"]
        states = pl.repeat(READY, rows.typed.height, dtype=pl.String, eager=True)
        states = states.scatter(rows.errors.rows, REJECTED)
        if self.validated.excluded:
            left_out = numbers.is_in(self.validated.excluded).arg_true()
            states = states.scatter(left_out, EXCLUDED)
        ready = states == READY
        if ready.any():
            validate(table, rows.typed.filter(ready), lines.filter(ready))
        identity = identities(table, rows.typed, self.extract_id, numbers)
        self.validated.rows[table.name] = staged_rows(
            table, self.batch_id, self.extract_id, rows, identity
        )
        if rows.errors:
            self.validated.reasons[table.name] = rows.errors.counted(numbers, lines)
        unread = unread_sums(table, checked.unread, rows.typed.height, rows.broken)
        totals = totals_by_state(table, rows.typed, identity, states, unread)
        self.validated.totals[table.name] = {READY: Totals()} | totals


def _validate_contents(
    staging: _Staging, positions: Positions, checked: Checked, inner_record: str | None
) -> None:
    """Stage each insert-batch row as the record inside it, or as itself if it has none."""
    sound, contents = positions.sound, insert_batch_records(checked.typed, inner_record)
    wrong = set(checked.errors.rows.tolist())
    left = np.ones(positions.frame.height, np.bool_)
    for record, rows in contents.records.items():
        good = {row: cells for row, cells in rows.items() if row not in wrong}
        of = np.array([*good], np.intp)
        places = sound[of]
        left[places] = False
        source = checked.typed["BatchId"].gather(of).alias("source_batch_id")
        kind = EXTRACTS[record]
        frame = positions.frame[places].with_columns(source)
        staging.add(
            kind,
            Positions(frame, positions.faults[places]),
            staging.check(kind, cells_frame(kind, good), positions.frame, places),
        )
    rows_left = left[sound]
    others = contents.errors.without(checked.errors.rows)
    errors = FieldErrors([*others.found, *checked.errors.found])
    outer = replace(checked, errors=errors).among(rows_left)
    staging.add(INSERT_BATCH_DATA, positions.only(pl.Series(left)), outer)
    wrong.update(others.rows.tolist())
    merged = [sound[row] for row in contents.merged if row not in wrong]
    staging.validated.superseded = positions.frame["record_number"].gather(merged).to_list()
    if merged:
        # An outer row without an error can only be one that was merged before.
        states = staging.validated.totals[INSERT_BATCH_DATA.name]
        states[SUPERSEDED] = states.pop(READY)
