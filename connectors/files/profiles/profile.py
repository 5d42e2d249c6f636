"""Feed profiles: what one sender's files are like, one small TOML file per feed."""

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
"""What the equal rows of a feed are that does not say it."""
ROWS = "rows"
"""In the pattern of a footer: how many records there are."""


@dataclass(frozen=True)
class Profile:
    """How one feed writes its extracts; every default is what the document's own form needs."""

    feed: str = "default"
    record: str | None = None
    """Name of the record kind; None: recognised by the header."""
    delimiter: str | None = None
    """None: recognised by the header."""
    quote: str = '"'
    escape: str | None = None
    """The sign before one that means nothing, or that stands for another: a backslash."""
    comment: tuple[str, ...] = ()
    """What lines begin with that are no records."""
    skip_lines: tuple[str, ...] = ()
    """Patterns of whole lines behind the header that are no records."""
    encoding: str | None = None
    header_line: int | str = 1
    """Number of the line the header begins on, or `FOUND`; blank lines before it do not matter."""
    header_lines: int = 1
    """Records the names of columns are made of, one below the other."""
    header_titles: int | str = "kept"
    """Above how many columns a title stands: its own, `kept`; all up to the next one, `spread`; or
    so many at most."""
    unnamed_columns: int = 0
    """Cells that each record has behind those that the header names."""
    footer: tuple[str, ...] = ()
    """Patterns of lines at the end that are no records; their groups are totals."""
    totals: str = "all"
    """Which rows are in the totals of a footer or a manifest: `all`, or `kept`, not left out."""
    sheet: str | int | None = None
    """Of a workbook: name or number of the sheet that is read; None: the only one that is shown."""
    formulas: str = "computed"
    """Of a workbook: which values of formulas are read, `computed`, or all that were `saved`."""
    positions: Mapping[str, str] = field(default_factory=dict)
    """Where the cells of a line are that has nothing between them, by column: `1-10`."""
    names: tuple[str, ...] = ()
    """What the columns of files without a header are called, in their order."""
    first_line: int = 1
    """Number of the line of the first record, where files have no header."""
    position_unit: str | None = None
    """What positions count, `characters` or `bytes`; None: characters."""
    short_lines: str = "refused"
    """Whether such a line may lack the blanks at its end: `refused`, or `filled`."""
    unpivot_keep: tuple[str, ...] = ()
    """Columns that stand in each record of a line, where each other one makes a record; or ..."""
    unpivot_columns: tuple[str, ...] = ()
    """... columns that make a record each, beside the others."""
    unpivot_name: str | None = None
    """What the column is called that says which of them a record is of."""
    unpivot_value: str | None = None
    """What the column is called that has its cell."""
    fill_columns: Mapping[str, str] = field(default_factory=dict)
    """Columns that only the first record of a group has, and what the filled ones are called."""
    fill_group: str | None = None
    """The column that tells the groups."""
    fill_end: tuple[str, ...] = ()
    """Patterns of its cells that begin none, and end the one above."""
    blanks: str = "kept"
    """Whether blanks around a cell are part of it: `kept`, or `dropped`."""
    decimal: str = "."
    thousands: str | None = None
    groups: str = "thousands"
    """Which digits that sign stands between: a name of `GROUPS`."""
    negative: tuple[str, ...] = NEGATIVE
    """Examples of how minus one is written."""
    positive: tuple[str, ...] = POSITIVE
    currency: tuple[str, ...] = ()
    """Examples of one with a sign or code of a currency."""
    percent: str | None = None
    """What a number with a percent sign means: a `share`, or percentage `points`."""
    implied_decimals: int = 0
    """How many of a number's last digits are decimals that no sign stands before."""
    decimals: int | None = None
    """How many digits a number has behind its decimal sign at most; None: any number."""
    zero: tuple[str, ...] = ()
    """Texts without a digit that stand for zero, in amounts and other numbers with decimals."""
    sign: str = BESIDE
    """Where the sign of an amount, or another number with decimals, is."""
    width: str = "kept"
    """What full-width signs in numbers and times are: other signs, `kept`, or the usual, `folded`.
    """
    date_format: str | tuple[str, ...] | None = None
    """In directives of `datetime.strptime`, or a name of `EPOCHS`, or several of them, of which
    each time is written in one; None: ISO 8601."""
    months: tuple[str, ...] = ()
    """What the months are called; none: in English."""
    year_zero: int = 0
    """Which year of ours the feed writes as 0, where it counts in an era or another calendar."""
    date_zeros: str = "kept"
    """Whether the feed writes the leading zeros of a date's digits: `kept`, or `dropped`."""
    offset: str | None = None
    """What a time without offset means: `+01:00` or `Z`."""
    zone: str | None = None
    """What a time without offset means: an IANA zone."""
    zones: Mapping[str, str] = field(default_factory=dict)
    """What the names of zones mean that stand for `%Z`: an offset, or an IANA zone."""
    null: tuple[str, ...] = ("",)
    """Texts that stand for no value, in quotes or not; the default alone leaves `""` a text."""
    true: tuple[str, ...] = ()
    false: tuple[str, ...] = ()
    """Words for true and false, in any case; none: True and False, 1 and 0."""
    unknown_columns: str = "refuse"
    tenant: int | None = None
    """The one tenant the batch may write."""
    inner_record: str | None = None
    """Kind of the records inside insert-batch data."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """Our field by their column name."""
    fields: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Field -> keys of `OF_FIELD`: how it is written, where that is another way than the rest,
    and what it is made of, where that is not one column of its name."""
    constants: Mapping[str, str] = field(default_factory=dict)
    """Fields the sender does not deliver, with their text in every row."""
    leave_out: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By column the cells whose rows are kept and counted, but neither checked nor applied."""
    keep_only: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By column the cells of rows that are taken; all other rows are left out as well."""
    duplicate: str = "conflict"
    repeats: str = BY_KEY
    """What rows with one key are that are equal: `superseded` but for one, or all in `conflict`.
    `BY_KEY`: the latter where their key is made of other fields; of a correction what its delivery
    says."""
    reference: str = "flag"
    complete: bool = False
    """Whether a delivery brings every record it refers to: what it does not bring is rejected."""
    budget_errors: int | None = None
    """Rejected rows above which the batch is held; None: no limit."""
    budget_rate: float | None = None
    """Rejected share of the rows, 0 to 1, above which the batch is held; None: no limit."""
    budget_read: float | None = None
    """Share of the rows that has to be neither rejected nor left out; None: none has to."""
    push: bool = False
    """Whether what is applied goes on to the service."""
    keep: str = "text"
    """What of a clean row's text is kept in the database: `text`, or a `reference` to the file."""
    compare_only: bool = False
    """Rows are kept as they are to be compared: nothing is applied, no record is unwrapped."""
    change_records: bool = False
    """Whether repairs may change records of other deliveries, which is said of one correction."""
    kept_settings: Mapping[str, Any] = field(default_factory=dict)
    """Beside what the feed says: what settings said of verdicts when a batch was opened with it.

    No profile file has it. Empty: no batch was opened yet, or by a version that did not keep it.
    """

    @cached_property
    def sources(self) -> Mapping[str, tuple[str, ...]]:
        """The fields that are made of other columns than one of their own, with those.

        Behind those that are added up is the one that says how many units they are for.
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
        """Whether rows of a table with one key that are equal are one record.

        A key that was delivered says so. One that is made of what they say, or a text that several
        of their cells make, cannot tell two withdrawals of the same amount from one that is there
        twice.
        """
        if self.repeats != BY_KEY or self.duplicate == "last_wins":
            return self.repeats != "conflict"
        return not self.made_keys(table) and not any(
            table.by_name[name].kind is Kind.STRING and len(self.sources.get(name, ())) > 1
            for name in table.key
        )

    def made_keys(self, table: Table) -> dict[str, MadeKey]:
        """The fields of a table's key that are made of other fields of it."""
        return {
            name: key
            for name, key in self.keys.items()
            if name in table.key and {*key.names} <= {*table.columns}
        }

    @cached_property
    def keys(self) -> Mapping[str, MadeKey]:
        """The fields that are a number made of the values of other fields, with their key."""
        return {
            name: MadeKey(made["key"], made.get("namespace"))
            for name, made in self.fields.items()
            if "key" in made
        }

    @cached_property
    def recognised(self) -> dict[Any, Any]:
        """What headers were found to be by it: a delivery may have thousands that are alike."""
        return {}

    @property
    def unpivots(self) -> bool:
        """Whether a line becomes several records."""
        return bool(self.unpivot_keep or self.unpivot_columns)

    @property
    def carried_names(self) -> tuple[str, ...]:
        """What the columns are called that are taken from lines or records above."""
        return (*group_names(self.skip_lines), *self.fill_columns.values())

    @property
    def fill_sources(self) -> tuple[str, ...]:
        """The columns that are looked at for it."""
        group = (self.fill_group,) if self.fill_group else ()
        return tuple(dict.fromkeys((*self.fill_columns, *group)))

    @property
    def hash(self) -> str:
        """Identity of the rules: the same whatever the file's spelling, order and comments."""
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
"""Rules that are of every hash; others only where they are stated, for the sake of older ones."""
DEFAULT = Profile()
TOGETHER = (
    {"decimal", "thousands", "groups", "implied_decimals"},
    {"date_format", "date_zeros", "months", "year_zero"},
    {"offset", "zone", "zones"},
    {"true", "false"},
)
"""Keys that say one thing together."""


def written_of(profile: Profile, name: str | None = None) -> dict[str, Any]:
    """How the feed writes values, or its field of a name: every key of `WRITTEN`.

    A field that states one key of a group states the group, and not what the feed says beside it.
    """
    stated = profile.fields.get(name, {}) if name else {}
    usual = {key: DEFAULT if _is_of_field(key, stated) else profile for key in WRITTEN}
    return {**{key: getattr(of, key) for key, of in usual.items()}, **stated}


def key_of(profile: Profile, name: str | None, key: str) -> str:
    """A key of `WRITTEN` as it is called where it is stated: of the feed, or of its field."""
    of_field = name and _is_of_field(key, profile.fields[name])
    return f"fields.{name}.{key}" if of_field else key


def _is_of_field(key: str, stated: Mapping[str, Any]) -> bool:
    """Whether a field that states these keys takes nothing of one from the feed."""
    group = next((group for group in TOGETHER if key in group), {key})
    return not group.isdisjoint(stated)


def number_form(written: Mapping[str, Any]) -> NumberForm:
    """How numbers are written, by the keys of `WRITTEN`."""
    keys = _in_width_of_values(written)
    same = ("decimal", "negative", "positive", "currency", "percent", "groups")
    return NumberForm(
        thousands=keys["thousands"] or "",
        implied=keys["implied_decimals"],
        **{name: keys[name] for name in (*same, "decimals", "zero", "sign")},
    )


def width_of(written: Mapping[str, Any]) -> Callable[[str], str]:
    """What is made of a text that says how values are written: the same as of those values."""
    return of_usual_width if written["width"] == FOLDED else str


def date_forms(written: Mapping[str, Any]) -> DateForms:
    """How times are written, by the keys of `WRITTEN`; but for what a time without offset means."""
    keys = _in_width_of_values(written)
    stated = keys["date_format"]
    texts = (stated,) if isinstance(stated, str) else stated or ()
    zones = tuple((name, _meaning(text)) for name, text in keys["zones"].items())
    dropped = keys["date_zeros"] == "dropped"
    forms = DateForms(texts, dropped, keys["months"], zones, keys["year_zero"])
    return replace(forms, decimal=keys["decimal"]) if forms.counted else forms


def _in_width_of_values(written: Mapping[str, Any]) -> dict[str, Any]:
    """The keys with all that they state in the width that numbers and times are read in."""
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
