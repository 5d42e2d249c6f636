"""Feed profiles: the properties of one sender's files, in one small TOML file per feed."""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import timedelta, timezone, tzinfo
from functools import cached_property
from itertools import chain
from typing import Any

from connectors.files.profiles.profile_writing import FOLDED, WRITTEN
from connectors.files.text.linear_patterns import group_names
from connectors.settings import zone_of
from schemas.cells.date_forms import DateForms
from schemas.cells.numbers import BESIDE, NEGATIVE, POSITIVE, NumberForm
from schemas.cells.reading import offset_minutes
from schemas.cells.widths import of_usual_width
from schemas.field import Kind, Table
from schemas.made_keys import MadeKey

BY_KEY = "by_key"
"""The value of `repeats` for a feed that does not state it."""
ROWS = "rows"
"""Footer group with the number of records."""


@dataclass(frozen=True)
class Profile:
    """How one feed writes its extracts; the defaults fit the form in the service document."""

    feed: str = "default"
    record: str | None = None
    """Name of the record kind; None if the header tells it."""
    delimiter: str | None = None
    """None if the header tells it."""
    quote: str = '"'
    escape: str | None = None
    """The sign that escapes the next one: a backslash."""
    comment: tuple[str, ...] = ()
    """Beginnings of lines that are no records."""
    skip_lines: tuple[str, ...] = ()
    """Patterns of whole lines after the header that are no records."""
    encoding: str | None = None
    header_line: int | str = 1
    """Number of the line the header begins on, or `FOUND`; blank lines before it do not matter."""
    header_lines: int = 1
    """How many records make up the column names, one below the other."""
    header_titles: int | str = "kept"
    """How many columns a title stands above: its own, `kept`; all up to the next title, `spread`;
    or at most this many."""
    unnamed_columns: int = 0
    """How many cells each record has after those that the header names."""
    footer: tuple[str, ...] = ()
    """Patterns of lines at the end that are no records; their groups are totals."""
    totals: str = "all"
    """Which rows the totals of a footer or manifest count: `all`, or `kept`, those not left out."""
    sheet: str | int | None = None
    """Name or number of the sheet to read in a workbook; None for the only visible one."""
    formulas: str = "computed"
    """Which formula values are read in a workbook: `computed`, or all that were `saved`."""
    positions: Mapping[str, str] = field(default_factory=dict)
    """Positions of the cells in lines without delimiters, by column: `1-10`."""
    names: tuple[str, ...] = ()
    """Column names of files without a header, in their order."""
    first_line: int = 1
    """Number of the line of the first record, in files without a header."""
    position_unit: str | None = None
    """What positions count, `characters` or `bytes`; None for characters."""
    short_lines: str = "refused"
    """Whether a line with positions may lack the blanks at its end: `refused`, or `filled`."""
    unpivot_keep: tuple[str, ...] = ()
    """Columns repeated in each record of a line while every other column makes a record, ..."""
    unpivot_columns: tuple[str, ...] = ()
    """... or else the columns that make a record each."""
    unpivot_name: str | None = None
    """Name of the new column that says which of them a record is of."""
    unpivot_value: str | None = None
    """Name of the new column with that column's cell."""
    fill_columns: Mapping[str, str] = field(default_factory=dict)
    """Columns that only the first record of a group has, with the names of the filled columns."""
    fill_group: str | None = None
    """The column that tells groups apart."""
    fill_end: tuple[str, ...] = ()
    """Patterns of its cells that begin no group and end the one above."""
    blanks: str = "kept"
    """Whether blanks around a cell are part of it: `kept`, or `dropped`."""
    decimal: str = "."
    thousands: str | None = None
    groups: str = "thousands"
    """Between which digits the thousands sign stands: a name of `GROUPS`."""
    negative: tuple[str, ...] = NEGATIVE
    """Examples of how minus one is written."""
    positive: tuple[str, ...] = POSITIVE
    currency: tuple[str, ...] = ()
    """Examples of how one is written with the sign or code of a currency."""
    percent: str | None = None
    """Meaning of a number with a percent sign: a `share`, or percentage `points`."""
    implied_decimals: int = 0
    """How many of a number's last digits are decimals although no decimal sign is written."""
    decimals: int | None = None
    """Most digits after a number's decimal sign; None for any number."""
    zero: tuple[str, ...] = ()
    """Texts without a digit that stand for zero, in amounts and other numbers with decimals."""
    sign: str = BESIDE
    """Where the sign of an amount, or of another number with decimals, is."""
    width: str = "kept"
    """Meaning of full-width signs in numbers and times: `kept`, or `folded` to the usual ones."""
    date_format: str | tuple[str, ...] | None = None
    """Directives of `datetime.strptime`, a name of `EPOCHS`, or several, one of which fits each
    time; None for ISO 8601."""
    months: tuple[str, ...] = ()
    """Names of the months; empty for English ones."""
    year_zero: int = 0
    """The year that the feed writes as 0 if it counts years in an era or another calendar."""
    date_zeros: str = "kept"
    """Whether the feed writes the leading zeros of a date's digits: `kept`, or `dropped`."""
    offset: str | None = None
    """Offset of times that are written without one: `+01:00` or `Z`."""
    zone: str | None = None
    """IANA zone of times that are written without an offset."""
    zones: Mapping[str, str] = field(default_factory=dict)
    """Meanings of the zone names that stand for `%Z`: an offset, or an IANA zone."""
    null: tuple[str, ...] = ("",)
    """Texts that stand for no value, quoted or not; only the default leaves `""` a text."""
    true: tuple[str, ...] = ()
    false: tuple[str, ...] = ()
    """Words for true and false, in any case; if empty, True and False, 1 and 0."""
    unknown_columns: str = "refuse"
    tenant: int | None = None
    """The only tenant the batch may write."""
    inner_record: str | None = None
    """Kind of the records inside insert-batch data."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """Our field, by the sender's column name."""
    fields: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Field -> keys of `OF_FIELD`: how it is written, if differently from the rest, and what it is
    made of, if not of one column with its name."""
    constants: Mapping[str, str] = field(default_factory=dict)
    """Fields the sender does not deliver, with their text in every row."""
    leave_out: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By column: cells whose rows are kept and counted, but neither checked nor applied."""
    keep_only: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By column: cells whose rows are taken; all other rows are left out as well."""
    duplicate: str = "conflict"
    repeats: str = BY_KEY
    """What equal rows with one key are: `superseded` except one, or all in `conflict`. `BY_KEY`:
    the latter if their key is made of other fields; in a correction, as its delivery states."""
    reference: str = "flag"
    complete: bool = False
    """Whether a delivery brings every record it refers to; references to others are rejected."""
    budget_errors: int | None = None
    """Number of rejected rows above which the batch is held; None for no limit."""
    budget_rate: float | None = None
    """Rejected share of the rows, 0 to 1, above which the batch is held; None for no limit."""
    budget_read: float | None = None
    """Least share of the rows that are neither rejected nor left out; None for no limit."""
    push: bool = False
    """Whether applied rows go on to the service."""
    keep: str = "text"
    """What the database keeps of a clean row's text: `text`, or a `reference` to the file."""
    compare_only: bool = False
    """Rows are only kept for comparison: nothing is applied and no record is unwrapped."""
    change_records: bool = False
    """Whether repairs may change records of other deliveries; stated for a single correction."""
    kept_settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings that affected verdicts when a batch was opened with the profile.

    Never in a profile file. Empty if no batch was opened yet, or by a version that did not keep it.
    """

    @cached_property
    def sources(self) -> Mapping[str, tuple[str, ...]]:
        """The fields made of other columns than one of their own, with those columns.

        After the columns of a sum comes the one that says how many units its amounts are for.
        """
        parts = ("from", "sum", "minus")
        return {
            name: (
                *chain(*(made[key] for key in parts if key in made)),
                *((made["per"]["column"],) if "per" in made else ()),
            )
            for name, made in self.fields.items()
            if made.keys() & {*parts}
        }

    def merges(self, table: Table) -> bool:
        """Whether equal rows of a table with one key are one record.

        They are if the key was delivered. A key made of the row's own values, or a text made of
        several cells, cannot tell two withdrawals of the same amount from one that occurs twice.
        """
        if self.repeats != BY_KEY or self.duplicate == "last_wins":
            return self.repeats != "conflict"
        return not self.made_keys(table) and not any(
            table.by_name[name].kind is Kind.STRING and len(self.sources.get(name, ())) > 1
            for name in table.key
        )

    def made_keys(self, table: Table) -> dict[str, MadeKey]:
        """The fields of a table's key that are made of other fields of the table."""
        return {
            name: key
            for name, key in self.keys.items()
            if name in table.key and {*key.names} <= {*table.columns}
        }

    @cached_property
    def keys(self) -> Mapping[str, MadeKey]:
        """The fields that are numbers made of other fields' values, with the key of each."""
        return {
            name: MadeKey(made["key"], made.get("namespace"))
            for name, made in self.fields.items()
            if "key" in made
        }

    @cached_property
    def recognised(self) -> dict[Any, Any]:
        """Results of header recognition: a delivery may have thousands of equal headers."""
        return {}

    @property
    def unpivots(self) -> bool:
        """Whether a line becomes several records."""
        return bool(self.unpivot_keep or self.unpivot_columns)

    @property
    def carried_names(self) -> tuple[str, ...]:
        """Names of the columns taken from lines or records above."""
        return (*group_names(self.skip_lines), *self.fill_columns.values())

    @property
    def fill_sources(self) -> tuple[str, ...]:
        """The delivered columns that filling down looks at."""
        group = (self.fill_group,) if self.fill_group else ()
        return tuple(dict.fromkeys((*self.fill_columns, *group)))

    @property
    def hash(self) -> str:
        """Identity of the rules, regardless of the file's spelling, order and comments."""
        unset = asdict(DEFAULT)
        rules = {
            name: value
            for name, value in asdict(self).items()
            if name in _FIRST or value != unset[name]
        }
        text = json.dumps(rules, sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()


_FIRST = {
    *("feed", "record", "delimiter", "quote", "encoding", "decimal", "thousands"),
    *("date_format", "offset", "zone", "null", "unknown_columns", "tenant", "inner_record"),
    *("columns", "constants", "duplicate", "reference", "budget_errors", "budget_rate"),
}
"""Rules that are part of every hash; others are only if stated, so that older hashes stay valid."""
DEFAULT = Profile()
TOGETHER = (
    {"decimal", "thousands", "groups", "implied_decimals"},
    {"date_format", "date_zeros", "months", "year_zero"},
    {"offset", "zone", "zones"},
    {"true", "false"},
)
"""Groups of keys that together say one thing."""


def written_of(profile: Profile, name: str | None = None) -> dict[str, Any]:
    """How the feed writes values in general, or in one field: every key of `WRITTEN`.

    A field that states one key of a group takes none of the group's other keys from the feed.
    """
    stated = profile.fields.get(name, {}) if name else {}
    usual = {key: DEFAULT if _is_of_field(key, stated) else profile for key in WRITTEN}
    return {**{key: getattr(of, key) for key, of in usual.items()}, **stated}


def key_of(profile: Profile, name: str | None, key: str) -> str:
    """A key of `WRITTEN` as it was stated: for the feed, or for a field."""
    of_field = name and _is_of_field(key, profile.fields[name])
    return f"fields.{name}.{key}" if of_field else key


def _is_of_field(key: str, stated: Mapping[str, Any]) -> bool:
    """Whether a field that states these keys does not take a key from the feed."""
    group = next((group for group in TOGETHER if key in group), {key})
    return not group.isdisjoint(stated)


def number_form(written: Mapping[str, Any]) -> NumberForm:
    """The form of numbers, from the keys of `WRITTEN`."""
    keys = _in_width_of_values(written)
    same = ("decimal", "negative", "positive", "currency", "percent", "groups")
    return NumberForm(
        thousands=keys["thousands"] or "",
        implied=keys["implied_decimals"],
        **{name: keys[name] for name in (*same, "decimals", "zero", "sign")},
    )


def width_of(written: Mapping[str, Any]) -> Callable[[str], str]:
    """The width folding of values, to apply to the texts that say how values are written."""
    return of_usual_width if written["width"] == FOLDED else str


def date_forms(written: Mapping[str, Any]) -> DateForms:
    """The forms of times, from the keys of `WRITTEN`, except the meaning of a missing offset."""
    keys = _in_width_of_values(written)
    stated = keys["date_format"]
    texts = (stated,) if isinstance(stated, str) else stated or ()
    zones = tuple((name, _meaning(text)) for name, text in keys["zones"].items())
    dropped = keys["date_zeros"] == "dropped"
    forms = DateForms(texts, dropped, keys["months"], zones, keys["year_zero"])
    return replace(forms, decimal=keys["decimal"]) if forms.counted else forms


def _in_width_of_values(written: Mapping[str, Any]) -> dict[str, Any]:
    """The keys, with everything they state in the width in which numbers and times are read."""
    width = width_of(written)

    def folded(value: Any) -> Any:
        if isinstance(value, str):
            return width(value)
        if isinstance(value, Mapping):
            return {width(name): meaning for name, meaning in value.items()}
        return tuple(map(width, value)) if isinstance(value, tuple | list) else value

    return {key: folded(value) for key, value in written.items() if key in WRITTEN}


def _meaning(text: str) -> tzinfo:
    if text != "Z" and text[0] not in "+-":
        return zone_of(text)
    minutes = offset_minutes(text)
    assert isinstance(minutes, int)  # The profile was refused otherwise.
    return timezone(timedelta(minutes=minutes))
