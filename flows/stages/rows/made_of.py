"""How the fields of a row came about: their columns, the delivered cells, and the values."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import psycopg

from connectors.files.chunks.cells import split_cells
from connectors.files.chunks.reader import lines_above_record
from connectors.files.layout.header import Header
from connectors.files.profiles.profile import Profile
from connectors.files.text.content import Content
from connectors.postgres.batches import ledger
from connectors.postgres.batches.findings import is_broken
from flows.stages.receiving.kept import is_cleared, open_archived
from flows.stages.receiving.terms import restored_profile
from flows.stages.rows.writing import plain_cells
from flows.stages.workspace import Workspace
from schemas.reasons import NOT_SHOWN


class MadeField(NamedTuple):
    field: str
    comes_from: str
    """Columns, a constant, or nothing."""
    delivered: str | None
    """The cells of those columns."""
    becomes: str | None
    """The text as the service document writes it."""


def source_of(
    header: Header, profile: Profile, name: str, lines: Mapping[int, str] | None = None
) -> str:
    """What a field comes from; `lines`: the places of columns that stand above the record."""
    if name in profile.constants:
        secret = name in header.table.secrets
        return NOT_SHOWN if secret else f"constant {profile.constants[name]!r}"
    if key := profile.keys.get(name):
        of = f" of {key.namespace}" if key.namespace else ""
        return f"the key {' and '.join(key.names)}{of}"
    places = header.places(name)
    if not places:
        return "nothing"
    spec = profile.fields.get(name, {})
    names = [_column_name(header, place, lines or {}) for place in places]
    columns = _sum(names, spec) if spec.keys() & {"sum", "minus"} else " and ".join(names)
    around = [
        f"{spec[key]!r} {where} it"
        for key, where in (("prefix", "before"), ("suffix", "behind"))
        if key in spec
    ]
    source = ", ".join([columns, *around])
    return f"{source}, or {spec['default']!r} where it is empty" if "default" in spec else source


def _column_name(header: Header, place: int, lines: Mapping[int, str]) -> str:
    """The name of a column, and whether it is on another line than the record."""
    name = header.names[place]
    return f"{name}{lines.get(place, ' of a line above' if place >= header.line_width else '')}"


def _lines_above(content: Content, header: Header, row: Any, block_bytes: int) -> dict[int, str]:
    """By column that stands above a record: its line, if known."""
    on = lines_above_record(content, header, row.byte_start, block_bytes)
    return {
        place: "" if line == row.first_line else f" of line {line}"
        for place, line in enumerate(on, header.line_width)
        if line is not None
    }


def _sum(names: Sequence[str], spec: Mapping[str, Any]) -> str:
    added, total = len(spec.get("sum", ())), len(spec.get("sum", ())) + len(spec.get("minus", ()))
    columns = " + ".join(names[:added]) + "".join(f" - {name}" for name in names[added:total])
    scaled = f"({columns.strip()}) * {spec['scale']}" if "scale" in spec else columns.strip()
    return f"{scaled} / units by {names[total]}" if "per" in spec else scaled


def delivered_of(header: Header, cells: Sequence[str], name: str) -> str | None:
    """The cells of the columns that a field comes from."""
    places = header.places(name)
    return " | ".join(cells[place] for place in places) if places else None


def made_fields(
    workspace: Workspace, connection: psycopg.Connection, row: Any, text: str | None
) -> list[MadeField]:
    """The fields of a located staged row, from its text as delivered.

    Empty if the row's structure is broken, it is inside insert-batch data, its record kind has
    secrets, or housekeeping has removed the file.
    """
    batch = ledger.find_batch(connection, row.batch_id)
    (extract,) = (
        one for one in ledger.list_extracts(connection, batch.id) if one.id == row.extract_id
    )
    if text is None or row.raw is not None or is_broken(row.error_data):
        return []
    if is_cleared(workspace, extract):
        return []
    profile = restored_profile(batch)
    content, header = open_archived(workspace, extract, profile)
    cells = split_cells(text, header)
    if not cells or header.table.unquotable or header.table.name != row.record:
        return []
    plain = plain_cells(header, cells, profile)
    lines = _lines_above(content, header, row, workspace.settings.limits.block_bytes)
    return [
        MadeField(
            field.name,
            source_of(header, profile, field.name, lines),
            delivered_of(header, cells, field.name),
            plain[field.name],
        )
        for field in header.table.delivered
    ]
