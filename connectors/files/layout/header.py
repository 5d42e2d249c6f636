"""The header of an extract: which record kind it delivers, and which column is which field."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import compress

from connectors.errors import ExtractRefused
from connectors.files.layout.carried_columns import CarriedColumns, carried_columns, record_columns
from connectors.files.layout.first_record import (
    FirstRecord,
    candidates,
    cells,
    first_lines,
    first_record,
    last_named,
    of_text,
)
from connectors.files.layout.footer import ExtractFooter, read_footer
from connectors.files.layout.header_above import check_above
from connectors.files.layout.header_again import HeaderColumns, header_columns, positioned_columns
from connectors.files.layout.header_elsewhere import LOOKED_FOR, HeaderSearch
from connectors.files.layout.header_names import HeaderNames, known_names, listed
from connectors.files.layout.rows_file import RowsFile, rows_file_of
from connectors.files.layout.titles import SPREAD, check_titles
from connectors.files.layout.unpivot import Unpivot, check_unpivots, unpivot_of
from connectors.files.profiles.profile import DEFAULT, Profile, written_of
from connectors.files.text.content import TRANSCODED, Content, refused
from connectors.files.text.dialect import NO_QUOTE, OURS, Dialect, dialect_within
from connectors.files.text.encodings import utf8_sizes
from connectors.files.text.positions import (
    BYTES,
    DELIMITER,
    QUOTE,
    CellRanges,
    in_order,
    range_of,
)
from connectors.settings import Limits
from schemas.counting import agree, quantity
from schemas.field import NUMBERS, TIMES, Kind, Table
from schemas.own_columns import PARENT_COLUMN, QUOTED_COLUMN
from schemas.tables import EXTRACTS

ONE_LINE = {*NUMBERS, Kind.BOOLEAN, *TIMES, Kind.INSTANT}
"""Kinds whose texts never hold a line break."""


@dataclass(frozen=True, slots=True)
class Header:
    table: Table
    fields: tuple[str | None, ...]
    """The field that each column delivers; None for a column without data of the record."""
    names: tuple[str, ...]
    """The name of each column as delivered, trimmed."""
    dialect: Dialect
    body_start: int
    """Position of the first byte after the header."""
    body_line: int
    """Number of the physical line there; the file's first line is 1."""
    rows_file: RowsFile
    """How its rows are written out again."""
    parent_column: int | None = None
    """Index of the `ReconRow` column."""
    quoted_column: int | None = None
    """Index of the `ReconQuoted` column, in a file that also has `ReconRow`."""
    sources: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Indices of the columns that a field is made of, if the profile says which."""
    footer: ExtractFooter | None = None
    """The lines after the records, which are no records."""
    unpivot: Unpivot | None = None
    """How a line becomes several records; the columns above are those of the records."""
    positions: CellRanges | None = None
    """Positions of the cells in lines without delimiters."""
    carried: CarriedColumns | None = None
    """Its last columns, which are stated in lines above the records."""
    of_workbook: bool = False
    """Whether its rows come from a sheet, some of whose cells may be unreadable."""
    columns: HeaderColumns | None = field(default=None, compare=False, repr=False)
    """Recognises another header among its records; None if nothing does."""

    @property
    def text_line(self) -> int:
        """The line up to which there is only text: the header's, or the first record's."""
        of_file = self.columns.line if self.columns else None
        return self.body_line if of_file is None else of_file

    @property
    def width(self) -> int:
        """Number of fields of a record."""
        return len(self.fields)

    @property
    def line_width(self) -> int:
        """Number of fields in a record's own line."""
        return self.width - len(self.carried.names if self.carried else ())

    @property
    def unnamed(self) -> int:
        """How many columns after all others have no name."""
        return self.line_width - last_named(self.names[: self.line_width])

    def places(self, name: str) -> Sequence[int]:
        """The columns that a field comes from."""
        own = (self.fields.index(name),) if name in self.fields else ()
        return self.sources.get(name, own)

    @property
    def written(self) -> "Header":
        """The header for writing its rows out again."""
        return replace(self, dialect=self.rows_file.dialect, positions=None)


def read_header(
    content: Content,
    record: Table | None,
    profile: Profile | None,
    limits: Limits,
    *,
    taken: bool = False,
) -> Header:
    """Read the header and recognise the record; None leaves a choice to the profile or the header.

    `taken`: the file was taken in as `record` already, so its names are not checked again.

    Raises ExtractRefused: missing_header, text_before_header, commented_header, missing_column,
    duplicate_column, inconsistent_columns, malformed_header, bad_encoding, too_large, empty_file.
    """
    profile = profile or DEFAULT
    if content.workbook:
        _check_workbook(content, profile)
    table = record or (EXTRACTS[profile.record] if profile.record else None)
    try:
        return _read_header(content, table, profile, limits, taken=taken)
    except ExtractRefused as refusal:
        if refusal.code in LOOKED_FOR:
            dialects = candidates(content, profile, limits)
            search = HeaderSearch(content, dialects, table, profile, limits)
            search.check_elsewhere(refusal)
        raise


def _check_workbook(content: Content, profile: Profile) -> None:
    """Refuse a workbook if the profile is for text, or reads 1.234 as something else."""
    if profile.comment or profile.skip_lines:
        detail = (
            "a workbook has no comments or other lines of a text, and the feed profile says what "
            "they are (comment, skip_lines); leave rows of a sheet out by a column (leave_out)"
        )
        raise refused("unsupported_format", content.name, detail=detail)
    for name in (None, *profile.fields):
        written = written_of(profile, name)
        if written["decimal"] != "." or written["thousands"] == ".":
            detail = (
                "numbers of a workbook have a decimal point, and the feed profile says another "
                f"sign{f' for {name}' if name else ''}; give workbooks a profile of their own"
            )
            raise refused("unsupported_format", content.name, detail=detail)


def _read_header(
    content: Content, table: Table | None, profile: Profile, limits: Limits, *, taken: bool
) -> Header:
    profile = _without_around(content, profile, limits)
    dialects = candidates(content, profile, limits)
    if profile.positions:
        if content.workbook:
            detail = "a workbook has cells, and the feed profile says at which signs they are"
            raise refused("unsupported_format", content.name, detail=detail)
        assert table is not None
        return _fixed_width(content, table, profile, limits, taken=taken)
    if profile.names:
        line = _named(content, dialects[0], profile, limits, taken=taken)
    else:
        search = HeaderSearch(content, dialects, table, profile, limits)
        line = _found(search, taken=taken)
    if len(line.names) > limits.columns:
        detail = f"{quantity(len(line.names), 'column')}; RECON_LIMIT_COLUMNS is {limits.columns}"
        raise refused("too_large", content.name, line=line.number, detail=detail)
    unpivot = unpivot_of(line.names, profile)
    check_unpivots(content.name, line.number, line.names, unpivot, profile)
    names = _as_delivered(line.names, line.dialect)
    above = line.number - 1
    carried = carried_columns(content, profile, line.dialect, limits, names, above=above)
    names = record_columns(names, unpivot, profile)
    reading = HeaderNames(content.name, line.number, names, profile, taken=taken)
    table, fields, sources = reading.recognised(table)
    own = fields[: len(fields) - len(carried.names if carried else ())]
    dialect = replace(line.dialect, line_breaks=_holds_text(table, own))
    if (unpivot or carried) and not dialect.has_quote:
        if dialect.delimiter == OURS:
            detail = "the file says that its delimiter is U+0001, and cells that are added need it"
            raise refused("malformed_header", content.name, line=line.number, detail=detail)
        dialect = replace(dialect, quote=OURS)
    return Header(
        table=table,
        fields=fields,
        names=names,
        dialect=dialect,
        body_start=line.end,
        body_line=line.end_line,
        parent_column=reading.place_of(PARENT_COLUMN),
        quoted_column=reading.place_of(QUOTED_COLUMN) if _is_guarded(names) else None,
        sources=sources,
        footer=read_footer(content, profile, line.dialect, line.end, line.end_line, table),
        unpivot=unpivot,
        carried=carried,
        of_workbook=content.workbook,
        columns=header_columns(line, reading, table, fields, dialect),
        rows_file=rows_file_of(
            content,
            profile,
            None if content.workbook else _of_rows(line.dialect),
            of_text(content, _without_signs(profile), limits),
        ),
    )


def _found(search: HeaderSearch, *, taken: bool) -> FirstRecord:
    """The header of a file that has one."""
    content, profile = search.content, search.profile
    record = first_record(
        content,
        search.dialects,
        search.limits,
        known_names(profile),
        line=search.line(),
        rows=profile.header_lines,
        titles=profile.header_titles,
    )
    if profile.header_titles == SPREAD and not taken:
        check_titles(content.name, record.number, record.rows)
    named = last_named(record.names)
    unnamed = max(profile.unnamed_columns, len(record.names) - named)
    return replace(record, names=(*record.names[:named], *[""] * unnamed))


def _named(
    content: Content, dialect: Dialect, profile: Profile, limits: Limits, *, taken: bool
) -> FirstRecord:
    """The header that the profile states for a file without one."""
    above = first_lines(content, limits, profile.first_line - 1)
    if not taken:
        check_above(
            content.name, above, profile.names, lambda line: cells([line], 0, dialect), dialect
        )
    start = content.text_start + sum(map(len, above))
    line, rows = profile.first_line, (profile.names,)
    return FirstRecord(profile.names, dialect, line, start, line, rows)


def _of_rows(dialect: Dialect) -> Dialect | None:
    """This dialect with signs that every CSV reader knows; None if its delimiter is not one."""
    if len(dialect.delimiter) > 1:
        return None
    quote = dialect.quote if dialect.has_quote else DEFAULT.quote.encode()
    return replace(dialect, quote=quote, escape=b"", comment=(), skip_lines=())


def _fixed_width(
    content: Content, table: Table, profile: Profile, limits: Limits, *, taken: bool
) -> Header:
    """The header that a profile with positions states; lines above the first are no records."""
    dialect = dialect_within(
        limits,
        delimiter=DELIMITER.decode(),
        quote=QUOTE.decode(),
        encoding=content.encoding,
        comment=profile.comment,
        skip_lines=profile.skip_lines,
    )
    above = profile.first_line - 1
    lines, stated = first_lines(content, limits, above), in_order(profile.positions)
    start = content.text_start + sum(map(len, lines))
    names = record_columns(tuple(stated), None, profile)
    carried = carried_columns(content, profile, dialect, limits, tuple(stated), above=above)
    reading = HeaderNames(content.name, profile.first_line, names, profile, taken=taken)
    fields = reading.fields_of(table)
    ranges = tuple(map(range_of, stated.values()))
    entire = (reading.is_no_text(table, fields, place) for place in range(len(ranges)))
    positions = CellRanges(
        ranges,
        short_filled=profile.short_lines == "filled",
        entire=tuple(compress(ranges, entire)),
        behind=len(carried.names) if carried else 0,
        encoding=_counted(content, profile),
    )
    if not taken:
        check_above(
            content.name,
            lines,
            [*stated],
            lambda line: positions.pieces(line.decode(content.encoding, "replace")),
            dialect,
        )
    return Header(
        table=table,
        fields=fields,
        names=names,
        dialect=replace(dialect, line_breaks=False),
        body_start=start,
        body_line=profile.first_line,
        sources=reading.sources_of(table),
        footer=read_footer(content, profile, dialect, start, profile.first_line, table),
        positions=positions,
        carried=carried,
        columns=positioned_columns(reading, table, fields, dialect, positions),
        rows_file=rows_file_of(content, profile, None, of_text(content, profile, limits)),
    )


def _counted(content: Content, profile: Profile) -> str | None:
    """The encoding whose bytes positions count; None if they count characters, or it is the same.

    Raises ExtractRefused: unsupported_format.
    """
    if profile.position_unit != BYTES:
        return None
    if content.delivered_encoding in TRANSCODED:
        detail = f"position_unit cannot count bytes of {content.delivered_encoding}"
        raise refused("unsupported_format", content.name, detail=detail)
    return None if utf8_sizes(content.delivered_encoding) else content.delivered_encoding


def _without_signs(profile: Profile) -> Profile:
    """The profile with signs that every CSV reader knows."""
    several = len(profile.delimiter or "") > 1
    return replace(
        profile,
        delimiter=None if several else profile.delimiter,
        quote=DEFAULT.quote if profile.quote == NO_QUOTE else profile.quote,
        escape=None,
        comment=(),
        skip_lines=(),
    )


def _without_around(content: Content, profile: Profile, limits: Limits) -> Profile:
    """The profile; for rows that we wrote, without the lines around those of the feed."""
    bare = replace(
        _without_signs(profile),
        header_line=1,
        header_lines=1,
        unnamed_columns=0,
        footer=(),
        unpivot_keep=(),
        unpivot_columns=(),
        positions={},
        names=(),
        fill_columns={},
        fill_group=None,
        fill_end=(),
    )
    if bare != profile:
        with suppress(ExtractRefused):
            dialects = candidates(content, bare, limits)
            first = first_record(content, dialects, limits, known_names(profile))
            if PARENT_COLUMN.casefold() in first.folded_names:
                return bare
    return profile


def _is_guarded(names: Sequence[str]) -> bool:
    folded = {name.casefold() for name in names}
    return {PARENT_COLUMN.casefold(), QUOTED_COLUMN.casefold()} <= folded


def _as_delivered(names: tuple[str, ...], dialect: Dialect) -> tuple[str, ...]:
    """The names without the signs that we put in front of some of them."""
    if not _is_guarded(names):
        return names
    guard = dialect.guard
    return tuple(guard.take(name) for name in names)


def _holds_text(table: Table, fields: Sequence[str | None]) -> bool:
    """Whether any column can hold a line break; if none can, a record is one line."""
    return any(name is None or table.by_name[name].kind not in ONE_LINE for name in fields)


def remarks_on_unnamed(
    names: Sequence[str], fields: Sequence[str | None], profile: Profile
) -> tuple[str, ...]:
    """A remark on nameless columns that no field is made of and that the profile does not state."""
    named = last_named(names)
    stated = range(named, named + profile.unnamed_columns)
    places = [
        place
        for place, (name, of) in enumerate(zip(names, fields, strict=True))
        if of is None and not name.strip() and place not in stated
    ]
    if not places:
        return ()
    which = listed([f"column {place + 1}" for place in places])
    return (
        f"{which} of the header {agree(len(places), 'has', 'have')} no name: a text there is kept "
        "with its row and read into no field. Name it in the file and map it, or state "
        "unnamed_columns where such cells end each record.",
    )
