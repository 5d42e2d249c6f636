"""The names of a header: which record kind they belong to, and which column is which field.

What a name means depends on the record kind. So the names are matched with each kind, the best
match is taken, and then every name is checked by its meaning in that kind.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import chain
from typing import NamedTuple, cast

from connectors.errors import ExtractRefused
from connectors.files.layout.first_record import DELIMITERS, folded
from connectors.files.layout.look_alikes import look_alikes
from connectors.files.profiles.profile import Profile
from connectors.files.text.content import refused
from connectors.printable import shown
from schemas.counting import agree, first_of
from schemas.field import Kind, Table
from schemas.own_columns import OWN_COLUMNS
from schemas.tables import DOCUMENTED, EXTRACTS, INSERT_BATCH_DATA, OWN

_OWN_NAMES = {name.casefold() for name in OWN_COLUMNS}
NAMES_SHOWN = 30
# No field name begins like a number or a date, or contains an @.
DATA_CELL = re.compile(r"[-+(]?[\s$€£]*[.,]?\d|.*@|(true|false|null|nan)$", re.IGNORECASE)


_KNOWN, _FIELDS = "known names", "fields by name"
MOST_KEPT = 1_000
"""How many recognised headers are kept."""


class Recognised(NamedTuple):
    """The meaning of a header's names."""

    table: Table
    fields: tuple[str | None, ...]
    """The field that each column delivers."""
    sources: dict[str, tuple[int, ...]]
    """Indices of the columns that a field is made of."""


class _Match(NamedTuple):
    """How many fields of a record kind a header has."""

    table: Table
    present: set[str]
    """Fields that have a column, are made of columns, or are keys by the profile."""
    missing: list[str]
    """Fields that need a value and have none."""

    @property
    def rank(self) -> tuple[int, float]:
        return len(self.present), len(self.present) / len(self.table.columns)


@dataclass(frozen=True, slots=True)
class HeaderNames:
    extract: str
    line: int | None
    names: tuple[str, ...]
    profile: Profile
    taken: bool = False
    """Whether the file was taken in with them: its record kind may have changed since, so they are
    mapped as far as the kind knows them, unchecked."""

    @property
    def _folded(self) -> tuple[str, ...]:
        return tuple(map(folded, self.names))

    def known(self) -> int:
        """How many of the names are fields of any record."""
        ours = known_names(self.profile)
        return sum(1 for name in self._folded if name in ours)

    def own(self) -> "HeaderNames":
        """The names of the line itself, without the columns that lines above state."""
        above = len(self.profile.carried_names)
        return replace(self, names=self.names[: len(self.names) - above])

    def whole(self, table: Table | None) -> Table | None:
        """The record whose complete header this is; None if it is none."""
        if self.known() < 2:
            return None
        try:
            self._check_is_header(table)
            table = table or self._recognise()
            self.fields_of(table)
        except ExtractRefused:
            return None
        return table

    def recognised(self, table: Table | None) -> Recognised:
        """The record and the fields of a header, after every check on its names.

        `table` is the required record; None if the names tell.
        """
        key = (table and table.name, self.names, self.taken)
        found: Recognised | None = self.profile.recognised.get(key)
        if found is None:
            if not (self.profile.names or self.taken):
                self._check_is_header(table)
            kind = table or self._recognise()
            if kind is INSERT_BATCH_DATA and (self.profile.leave_out or self.profile.keep_only):
                detail = (
                    "insert-batch data says itself what was merged, and the profile leaves rows out"
                )
                raise refused("unsupported_format", self.extract, detail=detail)
            found = Recognised(kind, self.fields_of(kind), self.sources_of(kind))
            if len(self.profile.recognised) < MOST_KEPT:
                self.profile.recognised[key] = found
        return found

    def fields_of(self, table: Table) -> tuple[str | None, ...]:
        """The field that each column delivers, after every check on the names."""
        by_name = self._fields_by_name(table)
        fields = tuple(map(by_name.get, self._folded))
        if not self.taken:
            self._check_duplicates(fields)
            self._check_constants(fields)
            self._check_profile_columns(table, fields)
            if (match := self._match(table)).missing:
                raise self._missing_column(match, recognised=False)
            self._check_filter_columns()
            self._check_unknown(table, fields)
        return fields

    def sources_of(self, table: Table) -> dict[str, tuple[int, ...]]:
        """Indices of the columns that a field is made of."""
        places = {name: place for place, name in enumerate(self._folded)}
        return {
            name: tuple(places[folded(one)] for one in columns)
            for name, columns in self.profile.sources.items()
            if name in table.columns and all(folded(one) in places for one in columns)
        }

    def names_of(self, table: Table) -> set[str]:
        """Folded names that columns of such a record may have, without those from lines above."""
        above = map(folded, self.profile.carried_names)
        return {*_fields_by_name(table, self.profile), *self._other_names()} - {*above}

    def meant_of(self, table: Table) -> dict[str, str]:
        """Folded name -> the field of such a column, except fields this header has twice."""
        by_name = _fields_by_name(table, self.profile)
        here = Counter(by_name[name] for name in {*self._folded} & by_name.keys())
        return {name: of for name, of in by_name.items() if here[of] < 2}

    def place_of(self, own: str) -> int | None:
        """Index of a column of our own."""
        names = enumerate(self.names)
        return next((place for place, name in names if name.casefold() == own.casefold()), None)

    def is_no_text(self, table: Table, fields: Sequence[str | None], place: int) -> bool:
        """Whether a column's value is its whole text: a number, a time or a code."""
        if place >= len(fields):
            return False
        name = folded(self.names[place])
        made = [of for of, columns in self.profile.sources.items() if name in map(folded, columns)]
        return name in map(folded, self._filter_columns()) or any(
            table.by_name[of].kind is not Kind.STRING or "map" in self.profile.fields.get(of, {})
            for of in (fields[place], *made)
            if of in table.by_name
        )

    def _check_is_header(self, table: Table | None) -> None:
        # Columns stated in lines above come from the profile and make no line a header.
        own = self.own()
        known = own.known()
        data = [place for place, name in enumerate(own.names, 1) if DATA_CELL.match(name)]
        if not any(own.names):
            raise self._refused("missing_header")
        if len(data) > known and not (known and self._has_what_is_needed(table)):
            found = own._names_beside_data(data, table) if known else ""
            raise self._refused("missing_header", found=found)
        if known == 0:
            # A line that is no header may be a record with secrets: only near misses are shown.
            columns = ", ".join(self._match(table).missing) if table else "all"
            raise self._refused("missing_column", columns=columns, found=own._near_misses())

    def _has_what_is_needed(self, table: Table | None) -> bool:
        """Whether this record, or any with required fields, has all of its required fields here."""
        if table:
            return not self._match(table).missing
        needing = (one for one in EXTRACTS.values() if any(of.needs_value for of in one.delivered))
        return any(not self._match(one).missing for one in needing)

    def _names_beside_data(self, data: Sequence[int], table: Table | None) -> str:
        """Which cells are names and which are values; the values may hold secrets, so no text."""
        names = [name for name in self.names if folded(name) in known_names(self.profile)]
        missing = self._match(table).missing if table else []
        lacking = f", and {listed(missing)} {agree(len(missing), 'is', 'are')} missing"
        return (
            f"Of its cells {listed(names)} {agree(len(names), 'is the name', 'are names')} of "
            f"fields, {agree(len(data), 'column', 'columns')} {first_of(data, NAMES_SHOWN)} "
            f"{agree(len(data), 'begins', 'begin')} as values do{lacking if missing else ''}."
        )

    def _recognise(self) -> Table:
        """The record with most fields here; among equals, the one they cover best.

        An own kind only if it is no documented record and all its columns are here: defining a kind
        must not change what a file is.
        """
        try:
            table = self._documented_kind()
            if OWN.tables:
                self.fields_of(table)
        except ExtractRefused as refusal:
            return self._own_kind(refusal)
        return table

    def _documented_kind(self) -> Table:
        best = self._best_match(table for name, table in EXTRACTS.items() if name in DOCUMENTED)
        known = len(best.present)
        certain = any(field.needs_value for field in best.table.delivered)
        if best.missing or (len(self.names) > 2 * known and not certain):
            raise self._missing_column(best, recognised=True)
        return best.table

    def _own_kind(self, refusal: ExtractRefused) -> Table:
        """The own kind whose header this is; else raise `refusal`, or that of a nearer own kind."""
        whole = [table for table in OWN.tables.values() if self._is_all_of(table)]
        if len(whole) == 1:
            return whole[0]
        if whole:
            raise self._refused("ambiguous_record", kinds=listed([one.name for one in whole]))
        nearest = self._best_match(EXTRACTS.values())
        if nearest.table.name not in DOCUMENTED:
            if nearest.missing:
                raise self._missing_column(nearest, recognised=True)
            self.fields_of(nearest.table)
        raise refusal

    def _is_all_of(self, table: Table) -> bool:
        known = {*self._fields_by_name(table), *self._other_names()}
        return known.issuperset(self._folded) and not self._match(table).missing

    def _best_match(self, tables: Iterable[Table]) -> _Match:
        return max(map(self._match, tables), key=lambda match: match.rank)

    def _match(self, table: Table) -> _Match:
        by_name = self._fields_by_name(table)
        columns = {by_name[name] for name in self._folded if name in by_name}
        keys = self.profile.keys.keys() & set(table.columns)
        present = (columns - self.profile.sources.keys()) | self.sources_of(table).keys() | keys
        given = present | self.profile.constants.keys()
        missing = [f.name for f in table.delivered if f.needs_value and f.name not in given]
        return _Match(table, present, missing)

    def _fields_by_name(self, table: Table) -> dict[str, str]:
        """The field of each folded name.

        If unknown columns are ignored, a field's own name is ignored too once another column is
        mapped to the field.
        """
        by_name = _fields_by_name(table, self.profile)
        if self.profile.unknown_columns != "ignore":
            return by_name
        mapped = {folded(name) for name in self.profile.columns}
        delivered = {by_name[name] for name in self._folded if name in mapped & by_name.keys()}
        return {name: of for name, of in by_name.items() if name in mapped or of not in delivered}

    def _other_names(self) -> set[str]:
        """Folded names of columns that are known but no fields of their own."""
        parts = chain.from_iterable(self.profile.sources.values())
        looked_at = (*parts, *self._filter_columns(), *self.profile.fill_sources)
        return {*_OWN_NAMES, *map(folded, looked_at)}

    def _filter_columns(self) -> list[str]:
        """Columns by which the profile leaves rows out."""
        return list(dict.fromkeys([*self.profile.leave_out, *self.profile.keep_only]))

    def _check_duplicates(self, fields: Sequence[str | None]) -> None:
        """Refuse fields and other known names that occur in several columns."""
        known = self._other_names()
        first = {folded(name): name for name in reversed(self.names)}
        of_fields = Counter(filter(None, fields))
        of_names = Counter(self._folded)
        duplicates = [
            *(name for name, count in of_fields.items() if count > 1),
            *(first[name] for name, count in of_names.items() if count > 1 and name in known),
        ]
        if not duplicates:
            return
        groups = {folded(name): name for name in self.profile.carried_names}
        both = {
            groups[name]
            for name, of in zip(self._folded, fields, strict=True)
            if name in groups and {name, of} & {*duplicates, *map(folded, duplicates)}
        }
        found = ""
        if both:
            found = (
                "The file has such a column, and skip_lines or fill_down of the feed profile adds "
                f"one of that name: {listed(sorted(both))}. Call that otherwise."
            )
        raise self._refused("duplicate_column", columns=", ".join(duplicates), found=found)

    def _check_constants(self, fields: Sequence[str | None]) -> None:
        if both := [name for name in fields if name and name in self.profile.constants]:
            found = "They are columns here and constants of the feed profile as well."
            raise self._refused("duplicate_column", columns=", ".join(both), found=found)

    def _check_profile_columns(self, table: Table, fields: Sequence[str | None]) -> None:
        """Refuse a file that lacks columns the profile maps, fills, or makes fields of."""
        profile, names = self.profile, set(self._folded)
        mapped = {theirs: ours for theirs, ours in profile.columns.items() if ours in table.columns}
        found_fields = {ours for theirs, ours in mapped.items() if folded(theirs) in names}
        delivered = {*fields, *profile.sources, *profile.columns.values()}
        filled = [
            name
            for name, keys in profile.fields.items()
            if "default" in keys and name in table.columns and name not in delivered
        ]
        parts = chain(*(of for name, of in profile.sources.items() if name in table.columns))
        absent = [
            *(theirs for theirs, ours in mapped.items() if ours not in found_fields),
            *filled,
            *(part for part in dict.fromkeys(parts) if folded(part) not in names),
        ]
        if absent:
            found = (
                f"The feed profile names them, and there are {listed(self.names)}. Take out of it "
                f"what the files do not have.{look_alikes(absent, self.names)}"
            )
            raise self._refused("missing_column", columns=listed(absent), found=found)

    def _check_filter_columns(self) -> None:
        if absent := [one for one in self._filter_columns() if folded(one) not in self._folded]:
            found = "The feed profile leaves rows out by it (leave_out, keep_only)."
            found += look_alikes(absent, self.names)
            raise self._refused("missing_column", columns=listed(absent), found=found)
        own = set(self.own()._folded)
        if absent := [one for one in self.profile.fill_sources if folded(one) not in own]:
            found = "The feed profile fills it down, or its groups (fill_down)."
            found += look_alikes(absent, self.names)
            raise self._refused("missing_column", columns=listed(absent), found=found)

    def _check_unknown(self, table: Table, fields: Sequence[str | None]) -> None:
        known = self._other_names()
        unknown = [
            name or f"column {place} without a name"
            for place, (name, of) in enumerate(zip(self.names, fields, strict=True), 1)
            if of is None and folded(name) not in known
        ]
        of_record = f"The record is {table.name}, its fields are {', '.join(table.columns)}."
        if self.profile.unpivots and (value := self.profile.unpivot_value) in unknown:
            # Otherwise all records of a line would have the value of a kept column.
            found = (
                f"No field is made of it, and it is unpivot.value of the feed profile. {of_record}"
            )
            raise self._refused("missing_column", columns=value, found=found)
        if unknown and self.profile.unknown_columns == "refuse":
            found = of_record
            added = [name for name in unknown if name in self.profile.carried_names]
            if added:
                found += f" Groups of skip_lines, and of fill_down, are columns: {listed(added)}."
            raise self._refused("inconsistent_columns", columns=listed(unknown), found=found)

    def _missing_column(self, match: _Match, *, recognised: bool) -> ExtractRefused:
        by = "the nearest record is" if recognised else "the record is"
        found = f"Found: {listed(self.names)}; {by} {match.table.name}."
        found += look_alikes(match.missing, self.names)
        if recognised:
            found += " If it is another, name it: `--record KIND`, or `record` in its profile."
        columns = ", ".join(match.missing) or f"most of {match.table.name}"
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
        if len(self.names) > 1:
            beginning = f"None of the {len(self.names)} columns is a field of any record"
        else:
            beginning = "Its only column is no field of any record"
            stated = self.profile.delimiter
            if stated and (signs := [repr(one) for one in DELIMITERS if one in self.names[0]]):
                beginning += f": it has no {stated!r}, the delimiter of the feed profile, but "
                beginning += ", ".join(signs)
        return f"{'; '.join([beginning, *pairs])}."

    def _refused(self, code: str, *, found: str = "", **facts: object) -> ExtractRefused:
        return refused(code, self.extract, line=self.line, found=found, **facts)


def _fields_by_name(table: Table, profile: Profile) -> dict[str, str]:
    """The field of each folded name; the profile's mapping overrides a field's own name.

    Built only once per record kind, because each header is matched with all of them.
    """
    columns = table.columns
    found: dict[str, str] | None = profile.recognised.get((_FIELDS, columns))
    if found is not None:
        return found
    mapped = {folded(theirs): ours for theirs, ours in profile.columns.items()}
    own = {
        name: field
        for field in columns
        if (name := field.casefold()) not in mapped
        and field not in profile.sources
        and field not in profile.keys
    }
    named = own | {theirs: ours for theirs, ours in mapped.items() if ours in columns}
    # A field made of several columns is in the first, unless that is a field of its own.
    first = {
        folded(made_of[0]): name
        for name, made_of in reversed([*profile.sources.items()])
        if name in columns
    }
    found = profile.recognised[_FIELDS, columns] = first | named
    return found


def known_names(profile: Profile) -> frozenset[str]:
    """Folded names of columns that are fields of any record, or our own."""
    if found := profile.recognised.get(_KNOWN):
        return cast("frozenset[str]", found)
    tables = (_fields_by_name(table, profile) for table in EXTRACTS.values())
    known = frozenset({*_OWN_NAMES, *chain(*tables)})
    profile.recognised[_KNOWN] = known
    return known


def listed(names: Sequence[str]) -> str:
    """The first of some names, and how many more there are."""
    return first_of(names, NAMES_SHOWN, lambda name: shown(name, 60))
