"""The header of an extract: which record it delivers, which column is which field."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cache
from itertools import chain

from connectors.errors import ExtractRefused
from connectors.files.content import Content, refused, shown
from connectors.files.dialect import Dialect
from connectors.files.first_record import (
    FirstRecord,
    candidates,
    cells,
    first_record,
    folded,
    heads,
)
from connectors.files.footer import ExtractFooter, read_footer
from connectors.files.profile import DEFAULT, Profile
from connectors.files.profile_keys import FOUND
from connectors.files.unpivot import Unpivot, record_names, unpivot_of
from connectors.settings import Limits
from schemas.counting import quantity
from schemas.field import Kind, Table
from schemas.tables import EXTRACTS

PARENT_COLUMN = "ReconRow"
"""A column of our own, in any extract: the extract and record a corrected row stands for."""
BREAK_COLUMN = "BreakId"
"""A column of our own: the breaks a corrected row is to close, for whoever corrects it."""
QUOTED_COLUMN = "ReconQuoted"
"""A column of our own: says of a row that a sign was put before what a spreadsheet would run."""
QUOTED = "yes"
OWN_COLUMNS = (PARENT_COLUMN, BREAK_COLUMN, QUOTED_COLUMN)
_OWN_NAMES = {name.casefold() for name in OWN_COLUMNS}
ONE_LINE = {
    *(Kind.INTEGER, Kind.INTEGER64, Kind.DOUBLE, Kind.BOOLEAN),
    *(Kind.DATETIME, Kind.DATETIME_OFFSET, Kind.INSTANT),
}
"""Kinds whose texts never hold a line break."""
NAMES_SHOWN = 30
LINES_LOOKED_AT = 100
"""How far below a first record that is no header one is looked for."""
PRIVATE = re.compile(
    r"@|://|sig|token|key|secret|passw|pwd|credential|auth|login|jwt|sas", re.IGNORECASE
)
"""What is not quoted of a line that nobody knows the columns of."""

# No field name begins like a number or a date, nor holds an @.
DATA_CELL = re.compile(r"[-+(]?[\s$€£]*[.,]?\d|.*@|(true|false|null|nan)$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Header:
    """The header of one extract."""

    table: Table
    fields: tuple[str | None, ...]
    """Per column the field it delivers; None: a column that is not data of the record."""
    names: tuple[str, ...]
    """Per column its name as delivered, trimmed."""
    dialect: Dialect
    body_start: int
    """Position of the first byte behind the header."""
    body_line: int
    """Number of the physical line there; the file's first line is 1."""
    parent_column: int | None = None
    """Place of the `ReconRow` column."""
    quoted_column: int | None = None
    """Place of the `ReconQuoted` column, in a file that has `ReconRow` too."""
    sources: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Places of the columns that a field is made of, where the profile says which."""
    footer: ExtractFooter | None = None
    """What stands behind the records and is none."""
    unpivot: Unpivot | None = None
    """How a line becomes several records, whose columns are those above."""

    @property
    def width(self) -> int:
        """How many fields a record must have."""
        return len(self.fields)


def read_header(
    content: Content,
    dialect: Dialect | None,
    record: Table | None,
    profile: Profile | None,
    limits: Limits,
) -> Header:
    """Read the header and recognise the record; None leaves a choice to the profile or the header.

    Raises ExtractRefused: missing_header, text_before_header, missing_column, duplicate_column,
    inconsistent_columns, malformed_csv, bad_encoding, too_large, empty_file.
    """
    profile = profile or DEFAULT
    table = record or (EXTRACTS[profile.record] if profile.record else None)
    try:
        return _read_header(content, dialect, table, profile, limits)
    except ExtractRefused as refusal:
        if refusal.code in ("missing_header", "missing_column", "malformed_csv"):
            dialects = candidates(content, dialect, profile, limits)
            _check_text_before(content, refusal, dialects, table, profile, limits)
        raise


def _read_header(
    content: Content,
    dialect: Dialect | None,
    table: Table | None,
    profile: Profile,
    limits: Limits,
) -> Header:
    dialects = candidates(content, dialect, profile, limits)
    profile = _without_around(content, dialects, profile, limits)
    line = first_record(
        content,
        dialects,
        limits,
        _known_names(profile),
        line=_first_line(content, dialects, table, profile, limits),
        rows=profile.header_lines,
    )
    if len(line.names) > limits.columns:
        detail = f"{quantity(len(line.names), 'column')}; the limit is {limits.columns}"
        raise refused("too_large", content.name, line=line.number, detail=detail)
    unpivot = unpivot_of(line.names, profile)
    _check_unpivots(content, line, unpivot, profile)
    names = _as_delivered(line.names, line.dialect)
    names = record_names(names, unpivot, profile) if unpivot else names
    reading = _Reading(content.name, line.number, names, profile)
    reading.check_is_header(table)
    table = table or reading.recognise()
    fields = reading.fields_of(table)
    return Header(
        table=table,
        fields=fields,
        names=names,
        dialect=replace(line.dialect, line_breaks=_holds_text(table, fields)),
        body_start=line.end,
        body_line=line.end_line,
        parent_column=reading.place_of(PARENT_COLUMN),
        quoted_column=reading.place_of(QUOTED_COLUMN) if _is_guarded(names) else None,
        sources=reading.sources_of(table),
        footer=read_footer(content, profile, line.dialect, line.end),
        unpivot=unpivot,
    )


def _check_unpivots(
    content: Content, line: FirstRecord, unpivot: Unpivot | None, profile: Profile
) -> None:
    """Refuse a table without the columns that its profile names, or with one of them twice."""
    if not profile.unpivots:
        return
    stated = profile.unpivot_keep or profile.unpivot_columns
    counts = Counter(map(folded, filter(None, line.names)))
    if unpivot is None:
        missing = [name for name in stated if folded(name) not in counts] or ["all others"]
        raise refused(
            "missing_column",
            content.name,
            line=line.number,
            columns=_listed(missing),
            found=f"Found: {_listed(line.names)}; the feed profile unpivots by {_listed(stated)}.",
        )
    if twice := [name for name in line.names if counts[folded(name)] > 1]:
        raise refused(
            "duplicate_column", content.name, line=line.number, columns=_listed(sorted({*twice}))
        )
    if profile.unpivot_keep and "" in line.names and profile.unknown_columns == "refuse":
        nameless = f"column {line.names.index('') + 1} without a name"
        raise refused("inconsistent_columns", content.name, line=line.number, columns=nameless)


def _without_around(
    content: Content, dialects: Sequence[Dialect], profile: Profile, limits: Limits
) -> Profile:
    """The profile; of rows that we wrote, without what stands around those of the feed."""
    bare = replace(
        profile, header_line=1, header_lines=1, footer=(), unpivot_keep=(), unpivot_columns=()
    )
    if bare != profile:
        with suppress(ExtractRefused):
            first = first_record(content, dialects, limits, _known_names(profile))
            if PARENT_COLUMN.casefold() in first.folded_names:
                return bare
    return profile


def _first_line(
    content: Content,
    dialects: Sequence[Dialect],
    table: Table | None,
    profile: Profile,
    limits: Limits,
) -> int:
    """Number of the line at which the header is looked for."""
    if profile.header_line != FOUND:
        return int(profile.header_line)
    for number, line in _numbered(content, limits):
        for dialect in dialects:
            if _reading(content.name, number, cells(line, dialect), profile).whole(table):
                return number
    return 1


def _is_guarded(names: Sequence[str]) -> bool:
    folded = {name.casefold() for name in names}
    return {PARENT_COLUMN.casefold(), QUOTED_COLUMN.casefold()} <= folded


def _as_delivered(names: tuple[str, ...], dialect: Dialect) -> tuple[str, ...]:
    """The names without the signs that we put before some of them."""
    if not _is_guarded(names):
        return names
    guard = dialect.guard
    return tuple(guard.take(name) for name in names)


@dataclass(frozen=True, slots=True)
class _Reading:
    """The names of a header, judged."""

    extract: str
    line: int
    names: tuple[str, ...]
    profile: Profile

    def known(self) -> int:
        """How many names are fields of any record."""
        known_names = _known_names(self.profile)
        return sum(1 for name in self.names if folded(name) in known_names)

    def whole(self, table: Table | None) -> Table | None:
        """The record whose whole header this is; None: it is none."""
        if self.known() < 2:
            return None
        try:
            self.check_is_header(table)
            table = table or self.recognise()
            self.fields_of(table)
        except ExtractRefused:
            return None
        return table

    def check_is_header(self, table: Table | None) -> None:
        known = self.known()
        data = sum(1 for name in self.names if DATA_CELL.match(name))
        if data > known or not any(self.names):
            raise self._refused("missing_header")
        if known == 0:
            # What is no header may be a record with secrets: only near misses are shown.
            columns = ", ".join(self._missing(table)) if table else "all"
            raise self._refused("missing_column", columns=columns, found=self._near_misses())

    def recognise(self) -> Table:
        """The record most of whose fields are here; of several, the one they cover best."""
        ranks = {name: self._rank(table) for name, table in EXTRACTS.items()}
        best = max(ranks, key=lambda name: ranks[name])
        table = EXTRACTS[best]
        missing = self._missing(table)
        unknown = len(self.names) - ranks[best][0]
        certain = any(field.needs_value for field in table.delivered)
        if missing or (unknown > ranks[best][0] and not certain):
            raise self._missing_column(table, missing, recognised=True)
        return table

    def fields_of(self, table: Table) -> tuple[str | None, ...]:
        """Per column the field it delivers, after every check that concerns names."""
        by_name = self._by_name(table)
        fields = tuple(by_name.get(folded(name)) for name in self.names)
        twice = [name for name, count in Counter(filter(None, fields)).items() if count > 1]
        own = Counter(name.casefold() for name in self.names)
        twice += [name for name in OWN_COLUMNS if own[name.casefold()] > 1]
        if twice:
            raise self._refused("duplicate_column", columns=", ".join(twice))
        constant = [name for name in fields if name in self.profile.constants]
        if constant:
            found = "They are columns here and constants of the feed profile as well."
            columns = ", ".join(filter(None, constant))
            raise self._refused("duplicate_column", columns=columns, found=found)
        if missing := self._missing(table):
            raise self._missing_column(table, missing, recognised=False)
        known = {*_OWN_NAMES, *self._parts()}
        unknown = [
            name or f"column {place} without a name"
            for place, (name, of) in enumerate(zip(self.names, fields, strict=True), 1)
            if of is None and folded(name) not in known
        ]
        if unknown and self.profile.unknown_columns == "refuse":
            found = f"The record is {table.name}, its fields are {', '.join(table.columns)}."
            raise self._refused("inconsistent_columns", columns=_listed(unknown), found=found)
        return fields

    def place_of(self, own: str) -> int | None:
        """Where a column of our own is."""
        names = enumerate(self.names)
        return next((place for place, name in names if name.casefold() == own.casefold()), None)

    def _by_name(self, table: Table) -> dict[str, str]:
        """The field of each name.

        Where other columns are ignored, that is one of a field's own name beside one mapped to it.
        """
        named = _fields_by_name(table, self.profile)
        if self.profile.unknown_columns != "ignore":
            return named
        mapped = {folded(name) for name in self.profile.columns}
        taken = {named[name] for name in map(folded, self.names) if name in mapped & named.keys()}
        return {name: of for name, of in named.items() if name in mapped or of not in taken}

    def sources_of(self, table: Table) -> dict[str, tuple[int, ...]]:
        """Places of the columns that a field is made of."""
        places = {folded(name): place for place, name in enumerate(self.names)}
        return {
            name: tuple(places[folded(one)] for one in columns)
            for name, columns in self.profile.sources.items()
            if name in table.columns and all(folded(one) in places for one in columns)
        }

    def _parts(self) -> set[str]:
        return {folded(one) for columns in self.profile.sources.values() for one in columns}

    def _rank(self, table: Table) -> tuple[int, float]:
        present = self._present(table)
        return len(present), len(present) / len(table.columns)

    def _present(self, table: Table) -> set[str]:
        by_name = self._by_name(table)
        own = {by_name[name] for name in map(folded, self.names) if name in by_name}
        keys = self.profile.keys.keys() & set(table.columns)
        return (own - self.profile.sources.keys()) | self.sources_of(table).keys() | keys

    def _missing(self, table: Table) -> list[str]:
        present = self._present(table) | set(self.profile.constants)
        return [f.name for f in table.delivered if f.needs_value and f.name not in present]

    def _missing_column(
        self, table: Table, missing: Sequence[str], *, recognised: bool
    ) -> ExtractRefused:
        by = "the nearest record is" if recognised else "the record is"
        found = f"Found: {_listed(self.names)}; {by} {table.name}."
        if recognised:
            found += " Name the record kind if it is another."
        columns = ", ".join(missing) or f"most of {table.name}"
        return self._refused("missing_column", columns=columns, found=found)

    def _near_misses(self) -> str:
        ours = {
            field.casefold(): f"{field} of {table.name}"
            for table in reversed(EXTRACTS.values())
            for field in table.columns
        }
        pairs = [
            f"{shown(name, 60)!r} is like {ours[close]}"
            for name in self.names[:NAMES_SHOWN]
            for close in get_close_matches(name.casefold(), ours, n=1, cutoff=0.75)
        ]
        beginning = (
            "Its only column is no field of any record"
            if len(self.names) == 1
            else f"None of the {len(self.names)} columns is a field of any record"
        )
        return f"{'; '.join([beginning, *pairs])}."

    def _refused(self, code: str, *, found: str = "", **facts: object) -> ExtractRefused:
        return refused(code, self.extract, line=self.line, found=found, **facts)


def _reading(extract: str, line: int, names: tuple[str, ...], profile: Profile) -> _Reading:
    """The names of what may be a header."""
    unpivot = unpivot_of(names, profile)
    names = record_names(names, unpivot, profile) if unpivot else names
    return _Reading(extract, line, names, profile)


def _check_text_before(
    content: Content,
    refusal: ExtractRefused,
    dialects: list[Dialect],
    table: Table | None,
    profile: Profile,
    limits: Limits,
) -> None:
    """Raise `text_before_header` where the first record is none, and one below is a header."""
    numbered = _numbered(content, limits, refusal.line or 1)
    first: list[_Reading] = []
    for number, line in numbered:
        for dialect in dialects:
            reading = _reading(content.name, number, cells(line, dialect), profile)
            if number == numbered[0][0]:
                first.append(reading)
                if 2 * reading.known() >= len(reading.names):
                    return
            elif found := reading.whole(table):
                text = numbered[0][1].strip()
                # With as many cells as the header it may be a record, and that may hold a secret.
                alike = any(len(one.names) == len(reading.names) for one in first)
                quotable = not (found.unquotable or alike or PRIVATE.search(text))
                reads = f"It reads {shown(text, 60)!r}." if quotable else ""
                raise refused(
                    "text_before_header",
                    content.name,
                    line=refusal.line,
                    found=reads,
                    header=number,
                    of=found.name,
                ) from refusal


def _numbered(content: Content, limits: Limits, first: int = 1) -> list[tuple[int, str]]:
    """The lines that are looked at from one on, as text, with their numbers."""
    head, _ = next(heads(content, limits))
    lines = [line.decode(content.encoding, "replace") for line in head.splitlines()]
    return [*enumerate(lines, 1)][first - 1 :][:LINES_LOOKED_AT]


def _holds_text(table: Table, fields: Sequence[str | None]) -> bool:
    """Whether a column can hold a line break; where none can, a record is one line."""
    return any(name is None or table.by_name[name].kind not in ONE_LINE for name in fields)


def _fields_by_name(table: Table, profile: Profile) -> dict[str, str]:
    """The field of each name, folded: the profile's mapping outweighs the field's own name."""
    mapped = {folded(theirs): ours for theirs, ours in profile.columns.items()}
    own = {
        name: field
        for name, field in _own_names(table).items()
        if name not in mapped and field not in profile.sources and field not in profile.keys
    }
    named = own | {theirs: ours for theirs, ours in mapped.items() if ours in table.columns}
    # The first column a field is made of is where it stands, unless that is a field of its own.
    first = {
        folded(columns[0]): name
        for name, columns in reversed([*profile.sources.items()])
        if name in table.columns
    }
    return first | named


@cache
def _own_names(table: Table) -> dict[str, str]:
    return {field.casefold(): field for field in table.columns}


def _known_names(profile: Profile) -> set[str]:
    tables = (_fields_by_name(table, profile) for table in EXTRACTS.values())
    return {*_OWN_NAMES, *chain(*tables)}


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    return f"{', '.join(shown(name, 60) for name in names[:NAMES_SHOWN])}{more}"
