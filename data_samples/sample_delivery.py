"""Lay out extracts as delivered files: which record is where, in what text, with what verdict."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from sample_faults import CONFLICTS, MISSING_RATE, NOTES, PLANTS, REPEATS, Plant, Twin
from sample_text import Extract, Row, cell


@dataclass(frozen=True, slots=True)
class Dialect:
    """What is special about a file although every record in it is right."""

    line_end: bytes = b"\n"
    byte_order_mark: bool = False
    reversed_columns: bool = False
    blank_after: int = 0
    """A blank line follows the record of this number; 0: none."""
    quoted: int = 0
    """The record of this number has every field in quotes; 0: none."""


DIALECTS = {
    "payments": Dialect(blank_after=11, quoted=17),
    "currency_rates": Dialect(line_end=b"\r\n"),
    "invoice_files": Dialect(reversed_columns=True),
    "message_tones": Dialect(byte_order_mark=True),
}


@dataclass(frozen=True, slots=True)
class Delivered:
    """One record of a delivered file."""

    origin: int
    """The clean record it comes from."""
    row: Row
    cells: tuple[bytes, ...]
    """In the order of the document's columns, also where the file has another order."""
    verdict: str = "accepted"
    """accepted, noted, rejected or superseded."""
    code: str = ""
    field: str = ""
    story: str = ""


def cleanly(extract: Extract) -> list[Delivered]:
    """The extract with every record as it should be."""
    return [Delivered(place, row, _cells(row)) for place, row in enumerate(extract.rows)]


def dirtily(
    extract: Extract, spare: Iterable[int], other_tenants_rate: dict[str, str]
) -> list[Delivered]:
    """The extract with its faults planted into records that nothing else depends on."""
    plants = [plant for plant in PLANTS if plant.extract == extract.name]
    conflicts = [twin for twin in CONFLICTS if twin.extract == extract.name]
    repeats = [twin for twin in REPEATS if twin.extract == extract.name]
    notes = NOTES if extract.name == "payments" else ()
    records = dict(enumerate(cleanly(extract)))
    places = iter(_spread(list(spare), len(plants) + len(conflicts) + len(repeats) + len(notes)))
    twins: list[tuple[float, Delivered]] = []
    # Twins go first: a second record may stand far below the first, but inside the file.
    for twin in sorted((*conflicts, *repeats), key=lambda twin: -twin.distance):
        place = next(places)
        first, second = _twins(extract, records[place], twin)
        records[place] = first
        twins.append((place + twin.distance + 0.5, second))
    for plant, place in zip(plants, places, strict=False):
        records[place] = _spoiled(extract, records[place], plant)
    for (code, story), place in zip(notes, places, strict=True):
        records[place] = _noted(extract, records[place], code, story, other_tenants_rate)
    ordered = sorted((*((float(place), each) for place, each in records.items()), *twins), key=_at)
    return [record for _, record in ordered]


def _at(placed: tuple[float, Delivered]) -> float:
    return placed[0]


def _cells(row: Row) -> tuple[bytes, ...]:
    return tuple(cell(value).encode() for value in row)


def _spread(spare: Sequence[int], count: int) -> list[int]:
    """Places at equal distances, none beside another."""
    places = [spare[(2 * n + 1) * len(spare) // (2 * count)] for n in range(count)]
    if any(later - earlier < 2 for earlier, later in pairwise(places)):
        raise ValueError(f"{count} faults do not fit {len(spare)} records")
    return places


def _spoiled(extract: Extract, record: Delivered, plant: Plant) -> Delivered:
    cells = list(record.cells)
    place = extract.columns.index(plant.column)
    if plant.text is None:
        cells = cells[:place]
    else:
        if b"{}" in plant.text and b'"' in cells[place]:
            raise ValueError(f"{plant}: the value is quoted, so this would be a second fault")
        cells[place] = plant.text.replace(b"{}", cells[place])
    for name, text in plant.also.items():
        cells[extract.columns.index(name)] = text
    return replace(
        record,
        cells=tuple(cells),
        verdict="rejected",
        code=plant.code,
        field=plant.named,
        story=plant.story,
    )


def _twins(extract: Extract, record: Delivered, twin: Twin) -> tuple[Delivered, Delivered]:
    if not twin.column:
        return record, replace(record, verdict="superseded", story=twin.story)
    cells = list(record.cells)
    cells[extract.columns.index(twin.column)] = twin.text
    first = replace(
        record,
        verdict="rejected",
        code="ConflictingKey",
        field=extract.columns[0],
        story=twin.story,
    )
    return first, replace(first, cells=tuple(cells))


def _noted(
    extract: Extract, record: Delivered, code: str, story: str, other_tenants_rate: dict[str, str]
) -> Delivered:
    place = extract.columns.index("CurrencyRatesId")
    wrong = (
        MISSING_RATE if code == "ReferenceMissing" else other_tenants_rate[str(record.row[place])]
    )
    row = (*record.row[:place], wrong, *record.row[place + 1 :])
    return replace(
        record,
        row=row,
        cells=_cells(row),
        verdict="noted",
        code=code,
        field="CurrencyRatesId",
        story=story,
    )


@dataclass(frozen=True, slots=True)
class Placed:
    """A record with its place in the file: lines count from 1, the header's included."""

    record: Delivered
    number: int
    first_line: int
    last_line: int


def lay_out(
    extract: Extract, records: Sequence[Delivered], dialect: Dialect
) -> tuple[bytes, list[Placed]]:
    """The bytes of the file and the place of every record in it."""
    order = -1 if dialect.reversed_columns else 1
    parts = [b"\xef\xbb\xbf" if dialect.byte_order_mark else b""]
    parts.append(b",".join(name.encode() for name in extract.columns[::order]) + dialect.line_end)
    line, placed = 2, []
    for number, record in enumerate(records, start=1):
        cells = record.cells
        if number == dialect.quoted:
            cells = tuple(b'"' + each.strip(b'"') + b'"' for each in cells)
        text = b",".join(cells[::order])
        last = line + text.count(b"\n")
        placed.append(Placed(record, number, line, last))
        parts.append(text + dialect.line_end)
        line = last + 1
        if number == dialect.blank_after:
            parts.append(dialect.line_end)
            line += 1
    return b"".join(parts), placed
