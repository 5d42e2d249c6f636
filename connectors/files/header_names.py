"""The names of a header, judged: which record they are of, which column is which field."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cache
from itertools import chain
from typing import NamedTuple, cast

from connectors.errors import ExtractRefused
from connectors.files.content import refused, shown
from connectors.files.first_record import folded
from connectors.files.linear_patterns import group_names
from connectors.files.profile import Profile
from schemas.counting import agree, first_of
from schemas.field import Kind, Table
from schemas.own_columns import OWN_COLUMNS
from schemas.tables import DOCUMENTED, EXTRACTS, INSERT_BATCH_DATA, OWN

_OWN_NAMES = {name.casefold() for name in OWN_COLUMNS}
NAMES_SHOWN = 30
# No field name begins like a number or a date, nor holds an @.
DATA_CELL = re.compile(r"[-+(]?[\s$€£]*[.,]?\d|.*@|(true|false|null|nan)$", re.IGNORECASE)


_KNOWN = "known names"
MOST_KEPT = 1_000
"""Headers that are kept as what they were found to be."""


class Recognised(NamedTuple):
    """What the names of a header say."""

    table: Table
    fields: tuple[str | None, ...]
    """Per column the field it delivers."""
    sources: dict[str, tuple[int, ...]]
    """Places of the columns that a field is made of."""


@dataclass(frozen=True, slots=True)
class HeaderNames:
    """The names of a header, judged."""

    extract: str
    line: int | None
    names: tuple[str, ...]
    profile: Profile
    taken: bool = False
    """Whether they were judged when the file was taken in: its record kind may be defined otherwise
    by now, and they are mapped as far as it knows them."""

    def known(self) -> int:
        """How many names are fields of any record."""
        ours = known_names(self.profile)
        return sum(1 for name in self.names if folded(name) in ours)

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
        # What lines above say is in the profile, and makes no line a header.
        above = len(group_names(self.profile.skip_lines))
        own = replace(self, names=self.names[: len(self.names) - above])
        known = own.known()
        data = sum(1 for name in own.names if DATA_CELL.match(name))
        if data > known or not any(own.names):
            raise self._refused("missing_header")
        if known == 0:
            # What is no header may be a record with secrets: only near misses are shown.
            columns = ", ".join(self._missing(table)) if table else "all"
            raise self._refused("missing_column", columns=columns, found=own._near_misses())

    def recognised(self, table: Table | None) -> Recognised:
        """The record and the fields of a header, after every check that concerns its names.

        `table` is the one that it has to be; None: the names tell.
        """
        asked = (table and table.name, self.names, self.taken)
        found: Recognised | None = self.profile.recognised.get(asked)
        if found is None:
            if not (self.profile.names or self.taken):
                self.check_is_header(table)
            of = table or self.recognise()
            if of is INSERT_BATCH_DATA and (self.profile.leave_out or self.profile.keep_only):
                detail = (
                    "insert-batch data says itself what was merged, and the profile leaves rows out"
                )
                raise refused("unsupported_format", self.extract, detail=detail)
            found = Recognised(of, self.fields_of(of), self.sources_of(of))
            if len(self.profile.recognised) < MOST_KEPT:
                self.profile.recognised[asked] = found
        return found

    def recognise(self) -> Table:
        """The record most of whose fields are here; of several, the one they cover best.

        One of our own kinds only where it is no documented record, and has all its columns: what a
        file is must not change because somebody defines a kind.
        """
        try:
            table = self._documented()
            if OWN.tables:
                self.fields_of(table)
        except ExtractRefused as refusal:
            return self._own(refusal)
        return table

    def _own(self, refusal: ExtractRefused) -> Table:
        """The one of our own kinds whose header this is; else `refusal`, or what names a nearer."""
        fitting = [one for one in OWN.tables.values() if self._is_all_of(one)]
        if len(fitting) == 1:
            return fitting[0]
        if fitting:
            kinds = listed([one.name for one in fitting])
            raise self._refused("ambiguous_record", kinds=kinds)
        near = max(EXTRACTS.values(), key=self._rank)
        missing = self._missing(near)
        if near.name in DOCUMENTED:
            raise refusal
        if missing:
            raise self._missing_column(near, missing, recognised=True)
        self.fields_of(near)
        raise refusal

    def _is_all_of(self, table: Table) -> bool:
        known = {*self._by_name(table), *self._beside()}
        return not self._missing(table) and {folded(name) for name in self.names} <= known

    def _documented(self) -> Table:
        ranks = {name: self._rank(table) for name, table in EXTRACTS.items() if name in DOCUMENTED}
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
        if self.taken:
            return fields
        known = self._beside()
        if twice := self._twice(fields, known):
            found = self._also_above(fields, twice)
            raise self._refused("duplicate_column", columns=", ".join(twice), found=found)
        constant = [name for name in fields if name in self.profile.constants]
        if constant:
            found = "They are columns here and constants of the feed profile as well."
            columns = ", ".join(filter(None, constant))
            raise self._refused("duplicate_column", columns=columns, found=found)
        if absent := self._absent(table, fields):
            found = (
                f"The feed profile names them, and there are {listed(self.names)}. Take out of it "
                "what the files do not have."
            )
            raise self._refused("missing_column", columns=listed(absent), found=found)
        if missing := self._missing(table):
            raise self._missing_column(table, missing, recognised=False)
        told = self._told_by()
        if absent := [name for name in told if folded(name) not in map(folded, self.names)]:
            found = "The feed profile leaves rows out by it (leave_out, keep_only)."
            raise self._refused("missing_column", columns=listed(absent), found=found)
        unknown = [
            name or f"column {place} without a name"
            for place, (name, of) in enumerate(zip(self.names, fields, strict=True), 1)
            if of is None and folded(name) not in known
        ]
        if unknown and self.profile.unknown_columns == "refuse":
            found = f"The record is {table.name}, its fields are {', '.join(table.columns)}."
            groups = [one for one in unknown if one in group_names(self.profile.skip_lines)]
            if groups:
                found += f" Groups of skip_lines are columns: {listed(groups)}."
            raise self._refused("inconsistent_columns", columns=listed(unknown), found=found)
        return fields

    def _absent(self, table: Table, fields: Sequence[str | None]) -> list[str]:
        """Columns that the profile takes to be there, and that the file lacks."""
        there = {folded(name) for name in self.names}
        columns = {
            theirs: ours for theirs, ours in self.profile.columns.items() if ours in table.columns
        }
        found = {ours for theirs, ours in columns.items() if folded(theirs) in there}
        mapped = [theirs for theirs, ours in columns.items() if ours not in found]
        parts = chain(*(of for name, of in self.profile.sources.items() if name in table.columns))
        filled = [
            name
            for name, told in self.profile.fields.items()
            if "default" in told
            and name in table.columns
            and name not in (*fields, *self.profile.sources, *self.profile.columns.values())
        ]
        return [
            *mapped,
            *filled,
            *(one for one in dict.fromkeys(parts) if folded(one) not in there),
        ]

    def _twice(self, fields: Sequence[str | None], known: set[str]) -> list[str]:
        """What is in several columns: fields, and other names that are known."""
        names = {folded(name): name for name in reversed(self.names)}
        counts = Counter(map(folded, self.names))
        of_fields = Counter(filter(None, fields)).items()
        return [
            *(name for name, count in of_fields if count > 1),
            *(names[name] for name, count in counts.items() if count > 1 and name in known),
        ]

    def _also_above(self, fields: Sequence[str | None], twice: Sequence[str]) -> str:
        """What of this stands in lines above the records too."""
        groups = {folded(name): name for name in group_names(self.profile.skip_lines)}
        named = zip(map(folded, self.names), fields, strict=True)
        both = {
            groups[one]
            for one, of in named
            if one in groups and {one, of} & {*twice, *map(folded, twice)}
        }
        if not both:
            return ""
        return (
            f"The file has such a column, and skip_lines of the feed profile names a group so: "
            f"{listed(sorted(both))}. Call the group otherwise."
        )

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

    def is_no_text(self, table: Table, fields: Sequence[str | None], place: int) -> bool:
        """Whether what a column says is known by its whole text alone: a number, a time, a code."""
        name = folded(self.names[place])
        made = [of for of, columns in self.profile.sources.items() if name in map(folded, columns)]
        return name in map(folded, self._told_by()) or any(
            table.by_name[of].kind is not Kind.STRING or "map" in self.profile.fields.get(of, {})
            for of in (fields[place], *made)
            if of in table.by_name
        )

    def _beside(self) -> set[str]:
        """Folded names of columns that are known, and no field of their own."""
        return {*_OWN_NAMES, *self._parts(), *map(folded, self._told_by())}

    def _told_by(self) -> list[str]:
        """Columns that say whether a row is left out."""
        return list(dict.fromkeys([*self.profile.leave_out, *self.profile.keep_only]))

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
        found = f"Found: {listed(self.names)}; {by} {table.name}."
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


def known_names(profile: Profile) -> frozenset[str]:
    """Folded names of columns that are a field of any record, or our own."""
    if found := profile.recognised.get(_KNOWN):
        return cast("frozenset[str]", found)
    tables = (_fields_by_name(table, profile) for table in EXTRACTS.values())
    known = frozenset({*_OWN_NAMES, *chain(*tables)})
    profile.recognised[_KNOWN] = known
    return known


def listed(names: Sequence[str]) -> str:
    """The first of some names, and how many more there are."""
    return first_of(names, NAMES_SHOWN, lambda name: shown(name, 60))


def last_named(names: Sequence[str]) -> int:
    """The number of the last column with a name."""
    return max((place for place, name in enumerate(names, 1) if name.strip()), default=0)


def remarks_on_unnamed(
    names: Sequence[str], fields: Sequence[str | None], profile: Profile
) -> tuple[str, ...]:
    """What is said of columns without a name that no field is made of, and that nobody stated."""
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
