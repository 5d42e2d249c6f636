"""Try a feed profile on a file: what each column becomes, the first rows, and how many pass."""

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import takewhile
from operator import itemgetter
from typing import Any

import polars as pl

from connectors.files.chunks.cells import split_cells
from connectors.files.chunks.reader import first_place, read_chunks
from connectors.files.incoming.delivery import find_extract
from connectors.files.layout.header import Header
from connectors.files.profiles.profile import Profile
from connectors.files.text.content import Content
from connectors.settings import Settings
from flows.stages.chunks.validate_chunk import validate_chunk
from flows.stages.comparing.currency_names import currency_names
from flows.stages.examining.examine import examine
from flows.stages.examining.verdicts import FileVerdict
from flows.stages.held import would_be_held
from flows.stages.receiving.opened import Opened
from flows.stages.rows.made_of import delivered_of, source_of
from flows.stages.rows.writing import plain_cells
from flows.steps.validate.excluded import COLUMN, VALUE, Exclusions
from schemas.reasons import NOT_SHOWN


@dataclass(frozen=True, slots=True)
class FieldSource:
    field: str
    kind: str
    required: bool
    comes_from: str
    """Columns, a constant, or nothing."""


@dataclass(frozen=True, slots=True)
class TriedRow:
    """A row as delivered, and the record that it becomes."""

    record_number: int
    line: int
    text: str
    values: dict[str, tuple[str | None, str | None]]
    """Per field the cell and the value, as in `recon row`; empty for a row that is broken or left
    out."""
    errors: list[dict[str, Any]]
    left_out: str | None = None
    """The cell that leaves the row out, if one does."""


@dataclass(frozen=True, slots=True)
class Tried:
    verdict: FileVerdict
    header: Header | None = None
    fields: tuple[FieldSource, ...] = ()
    unused: tuple[str, ...] = ()
    """Columns that no field uses."""
    rows: tuple[TriedRow, ...] = ()
    held_because: str | None = None
    """Why an import of the file would be held, or None."""
    written: str = ""
    """How the file is written: its encoding, or that it is a sheet."""

    def rejected(self) -> list[tuple[str, str, int, int]]:
        """Rows by field and reason, most frequent first, with the line of the first of them."""
        found: dict[tuple[str, str], list[int]] = defaultdict(list)
        for reject in self.verdict.rejects:
            for error in reject.errors:
                found[error["FieldName"], error["ErrorCode"]].append(reject.line)
        each = [(*of, len(lines), min(lines)) for of, lines in found.items()]
        return sorted(each, key=lambda one: (-one[2], one[3], one[0]))

    def as_json(self) -> dict[str, Any]:
        """The shape `recon profile try --json` prints."""
        header = self.header
        return {
            "name": self.verdict.name,
            "refused": self.verdict.refused,
            "message": self.verdict.message,
            "held_because": self.held_because,
            "record": self.verdict.record,
            "written": self.written,
            "first_line": header.body_line if header else None,
            "rows_in": self.verdict.rows_in,
            "rejected": len(self.verdict.rejects),
            "superseded": self.verdict.superseded,
            "merged": self.verdict.merged,
            "reasons": [
                {"FieldName": name, "ErrorCode": code, "rows": rows, "first_line": line}
                for name, code, rows, line in self.rejected()
            ],
            "fields": [asdict(one) for one in self.fields],
            "unused_columns": list(self.unused),
            "rows": [asdict(one) for one in self.rows],
        }


def try_profile(
    settings: Settings, path: str, profile: Profile, *, record: str | None, rows: int
) -> Tried:
    """Apply a profile to a file; nothing is kept and no database is asked.

    Raises DeliveryError if the path is not one file.
    """
    find_extract(path, settings.limits)
    looked: list[Tried] = []

    def look(opened: Opened) -> None:
        looked.append(_tried(opened, profile, settings, rows))

    verdicts = examine(settings, [path], profile, record=record, look=look)
    tried = looked[0]  # Any others are named by a manifest in the same archive, but missing.
    verdict = next(one for one in verdicts if one.name == tried.verdict.name)
    return replace(
        tried,
        verdict=verdict,
        rows=tuple(_with_reasons(tried.rows, verdict)),
        held_because=would_be_held([verdict], profile),
    )


def _with_reasons(rows: Sequence[TriedRow], verdict: FileVerdict) -> Iterator[TriedRow]:
    """The rows, with reasons that only follow from other rows of the delivery."""
    last = max((row.record_number for row in rows), default=-1)
    displayed = takewhile(lambda reject: reject.record_number <= last, verdict.rejects)
    found = {reject.record_number: reject.errors for reject in displayed}
    return (replace(row, errors=found.get(row.record_number, row.errors)) for row in rows)


def _tried(opened: Opened, profile: Profile, settings: Settings, rows: int) -> Tried:
    """What can be seen of a file, without its verdict."""
    nothing_yet, header = FileVerdict(opened.name), opened.header
    if header is None:
        return Tried(nothing_yet)
    content = opened.content(profile)
    used = {place for places in header.sources.values() for place in places}
    used |= {
        rule.place for rule in Exclusions(profile.leave_out, profile.keep_only).rules(header.names)
    }
    columns = enumerate(zip(header.names, header.fields, strict=True))
    return Tried(
        nothing_yet,
        header,
        tuple(
            FieldSource(of.name, of.kind, of.needs_value, source_of(header, profile, of.name))
            for of in header.table.delivered
        ),
        tuple(
            name or f"column {place + 1} without a name"
            for place, (name, of) in columns
            if of is None and place not in used
        ),
        tuple(_rows(content, header, profile, settings, rows)),
        written="a sheet of a workbook" if content.workbook else content.delivered_encoding,
    )


def _rows(
    content: Content, header: Header, profile: Profile, settings: Settings, most: int
) -> Iterator[TriedRow]:
    size = settings.limits.block_bytes
    chunk = next(read_chunks(content, header, first_place(header), size), None)
    if chunk is None or not chunk.height:
        return
    # Do not look inside insert-batch data: the file's columns are those of the rows around.
    outer = replace(profile, compare_only=True)
    names = currency_names(settings, header, profile)
    validated = validate_chunk(chunk, header, outer, 0, 1, names=names)
    staged = validated.rows[header.table.name]
    numbers, excluded = staged.frame["record_number"], {*validated.excluded}
    first = staged.only(numbers.is_in(numbers.bottom_k(most).implode()))
    other = chunk.other_header
    rows = [
        row
        for piece in first.pieces()
        for row in piece.iter_rows(named=True)
        if other is None or row["last_line"] < other.line
    ]
    for row in sorted(rows, key=itemgetter("record_number")):
        cells = split_cells(row["data"] or "", header) if row["raw"] is None else []
        hidden, why = header.table.unquotable, None
        if row["record_number"] in excluded:
            why, cells = _left_out(header, cells, profile), []
        plain = plain_cells(header, cells, profile) if cells else {}
        yield TriedRow(
            row["record_number"],
            row["first_line"],
            NOT_SHOWN if hidden else row["data"],
            {
                field.name: (NOT_SHOWN, NOT_SHOWN)
                if hidden
                else (
                    delivered_of(header, cells, field.name),
                    plain[field.name] if row[field.name] is not None else None,
                )
                for field in (header.table.delivered if cells else ())
            },
            json.loads(row["error_data"] or "[]"),
            why,
        )


def _left_out(header: Header, cells: Sequence[str], profile: Profile) -> str:
    """The cell that leaves a row out."""
    columns = {str(place): [cell] for place, cell in enumerate(cells)}
    rules = Exclusions(profile.leave_out, profile.keep_only)
    found = rules.of(pl.DataFrame(columns), header.names)
    assert found is not None
    value = NOT_SHOWN if header.table.unquotable else repr(found[VALUE].item())
    return f"{found[COLUMN].item()} is {value}"
