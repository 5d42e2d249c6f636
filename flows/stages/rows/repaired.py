"""The rows that a correction repairs, as delivered, which have the secrets that it leaves out."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import psycopg

from connectors.files.archived.passages import Passages
from connectors.files.chunks.cells import split_cells
from connectors.files.layout.header import Header
from connectors.files.text.content import Content
from connectors.postgres.batches import ledger
from connectors.postgres.batches.findings import RejectedRow, rows_at, wrong_fields
from connectors.postgres.batches.ledger import Batch
from connectors.postgres.batches.repair_places import read_name
from flows.stages.receiving.kept import is_cleared, open_archived
from flows.stages.receiving.terms import restored_profile
from flows.stages.rows.writing import plain_cells
from flows.stages.workspace import Workspace
from flows.steps.validate.insert_batch import record_holder, record_inside
from flows.steps.validate.omitted_secrets import DeliveredRow, in_place
from schemas.own_columns import ROW_NAME
from schemas.tables import EXTRACTS, INSERT_BATCH_DATA

Opened = tuple[Content, Header] | None
"""The content of an extract and its header; None if housekeeping removed it."""


class RepairedRows:
    """Finds rows of a corrected batch by the names that the correction's rows give them."""

    def __init__(self, workspace: Workspace, batch: Batch) -> None:
        # Threads look rows up while the run writes, so each lookup opens its own connection.
        self._workspace, self._corrects = workspace, _corrected_by(batch)

    @property
    def correction(self) -> bool:
        """Whether the batch corrects another one."""
        return self._corrects is not None

    def rows(self, names: Iterable[str]) -> Mapping[str, DeliveredRow]:
        """The readable rows; one with a secret left out comes with the row that it repairs."""
        if self._corrects is None:
            return {}
        with self._workspace.database.connect() as connection:
            return self._rows(connection, self._corrects, names)

    def _rows(
        self, connection: psycopg.Connection, batch_id: int, names: Iterable[str]
    ) -> dict[str, DeliveredRow]:
        wanted = {place: name for name in names if (place := read_name(name))}
        if not wanted:
            return {}
        batch = ledger.find_batch(connection, batch_id)
        reading, corrected = _Reading(self._workspace, connection, batch), _corrected_by(batch)
        found: dict[str, DeliveredRow] = {}
        left_out: dict[str, str] = {}
        extracts, numbers = zip(*wanted, strict=True)
        for table in ledger.staged_tables(connection, batch_id):
            if not table.unquotable:
                continue
            for row in rows_at(connection, table, batch_id, extracts, numbers):
                name = wanted[row.extract_id, row.record_number]
                for delivered, parent in reading.read(row):
                    # A row without a name may also repair one, and leave a secret out.
                    unnamed = corrected is not None and any(
                        secret in delivered.cells for secret in _secrets(delivered)
                    )
                    found[name] = replace(delivered, repairs=bool(parent) or unnamed)
                    if parent and any(not delivered.cells.get(s) for s in _secrets(delivered)):
                        left_out[name] = parent
        if left_out and corrected is not None:
            before = self._rows(connection, corrected, left_out.values())
            for name, parent in left_out.items():
                found[name] = replace(found[name], before=before.get(parent))
        return found


def _corrected_by(batch: Batch) -> int | None:
    """The batch that it corrects, if earlier, so that following corrections ends."""
    return batch.corrects if batch.corrects is not None and batch.corrects < batch.id else None


def _secrets(row: DeliveredRow) -> tuple[str, ...]:
    return EXTRACTS[row.record].secrets


class _Reading:
    """Reads rows of one batch by the headers of its extracts."""

    def __init__(self, workspace: Workspace, connection: psycopg.Connection, batch: Batch) -> None:
        self._workspace = workspace
        self._profile = restored_profile(batch)
        self._extracts = {one.id: one for one in ledger.list_extracts(connection, batch.id)}
        self._opened: dict[int, Opened] = {}
        self._passages = Passages()

    def read(self, row: RejectedRow) -> Iterator[tuple[DeliveredRow, str | None]]:
        """The row and the name of the row that it repairs itself, if it can be read."""
        opened = self._open_once(row.extract_id)
        if opened is None or row.raw is not None:
            return
        content, header = opened
        text = row.data
        if text is None:
            found = self._passages.read(content, row.byte_start, row.byte_end)
            text = found.decode(content.encoding)
        cells = split_cells(text, header)
        if not cells:
            return
        wrong = wrong_fields(row.error_data)
        parent = cells[header.parent_column] if header.parent_column is not None else None
        parent = parent and re.sub(ROW_NAME, r"\1:\2", parent)
        named = plain_cells(header, cells, self._profile)
        if header.table is not INSERT_BATCH_DATA:
            placed = in_place(cells, header.fields, header.table, wrong)
            yield DeliveredRow(header.table.name, named, wrong, placed), parent
            return
        held = named.get("Jsondata"), named.get("Data")
        inside = record_inside(*held, self._profile.inner_record)
        if inside is None:
            return
        table, inner = inside
        placed = record_holder(*held)[0] == "Jsondata" or in_place(
            list(inner.values()), table.columns, table, wrong
        )
        yield DeliveredRow(table.name, inner, wrong, placed), parent

    def _open_once(self, extract_id: int) -> Opened:
        if extract_id not in self._opened:
            extract, opened = self._extracts[extract_id], None
            if not is_cleared(self._workspace, extract):
                opened = open_archived(self._workspace, extract, self._profile)
            self._opened[extract_id] = opened
        return self._opened[extract_id]
