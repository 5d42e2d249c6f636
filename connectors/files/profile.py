"""Feed profiles: what one sender's files are like, one small TOML file per feed."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

from connectors.errors import ProfileError
from connectors.files.content import shown
from connectors.files.lookups import with_lookups
from connectors.files.profile_keys import (
    FOUND,
    KEYS,
    OF_FIELD,
    SECTIONS,
    WRITTEN,
    as_section,
    choice,
    known,
)
from connectors.files.rule_files import written_text
from schemas.cells.day_numbers import EPOCHS
from schemas.cells.numbers import NEGATIVE, POSITIVE, NoNumberForm, NumberForm, check_forms
from schemas.cells.reading import Unread, read_integer, read_number
from schemas.field import NESTED, Kind
from schemas.reasons import NOT_SHOWN
from schemas.tables import EXTRACTS, SECRETS
from schemas.toml_text import key_lines, read_toml

MADE = OF_FIELD.keys() - WRITTEN.keys()
"""Keys of a field that say what it is made of."""
ROWS = "rows"
"""In the pattern of a footer: how many records there are."""
NUMBERS = {Kind.DOUBLE, Kind.INTEGER, Kind.INTEGER64}


@dataclass(frozen=True, slots=True)
class Profile:
    """How one feed writes its extracts; every default is what the document's own form needs."""

    feed: str = "default"
    record: str | None = None
    """Name of the record kind; None: recognised by the header."""
    delimiter: str | None = None
    """None: recognised by the header."""
    quote: str = '"'
    encoding: str | None = None
    header_line: int | str = 1
    """Number of the line the header begins on, or `FOUND`; blank lines before it do not matter."""
    header_lines: int = 1
    """Records the names of columns are made of, one below the other."""
    footer: tuple[str, ...] = ()
    """Patterns of lines at the end that are no records; their groups are totals."""
    unpivot_keep: tuple[str, ...] = ()
    """Columns that stand in each record of a line, where each other one makes a record; or ..."""
    unpivot_columns: tuple[str, ...] = ()
    """... columns that make a record each, beside the others."""
    unpivot_name: str | None = None
    """What the column is called that says which of them a record is of."""
    unpivot_value: str | None = None
    """What the column is called that has its cell."""
    blanks: str = "kept"
    """Whether blanks around a cell are part of it: `kept`, or `dropped`."""
    decimal: str = "."
    thousands: str | None = None
    negative: tuple[str, ...] = NEGATIVE
    """Examples of how minus one is written."""
    positive: tuple[str, ...] = POSITIVE
    currency: tuple[str, ...] = ()
    """Examples of one with a sign or code of a currency."""
    percent: str | None = None
    """What a number with a percent sign means: a `share`, or percentage `points`."""
    date_format: str | None = None
    """In directives of `datetime.strptime`, or a name of `EPOCHS`; None: ISO 8601."""
    months: tuple[str, ...] = ()
    """What the months are called; none: in English."""
    date_zeros: str = "kept"
    """Whether the feed writes the leading zeros of a date's digits: `kept`, or `dropped`."""
    offset: str | None = None
    """What a time without offset means: `+01:00` or `Z`."""
    zone: str | None = None
    """What a time without offset means: an IANA zone."""
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
    duplicate: str = "conflict"
    reference: str = "flag"
    complete: bool = False
    """Whether a delivery brings every record it refers to: what it does not bring is rejected."""
    budget_errors: int | None = None
    """Rejected rows above which the batch is held; None: no limit."""
    budget_rate: float | None = None
    """Rejected share of the rows, 0 to 1, above which the batch is held; None: no limit."""
    push: bool = False
    """Whether what is applied goes on to the service."""
    keep: str = "text"
    """What of a clean row's text is kept in the database: `text`, or a `reference` to the file."""
    compare_only: bool = False
    """Rows are kept as they are to be compared: nothing is applied, no record is unwrapped."""

    @property
    def sources(self) -> Mapping[str, tuple[str, ...]]:
        """The fields that are made of other columns than one of their own, with those."""
        return {name: told["from"] for name, told in self.fields.items() if "from" in told}

    @property
    def keys(self) -> Mapping[str, tuple[str, ...]]:
        """The fields that are a number made of the values of other fields, with those."""
        return {name: told["key"] for name, told in self.fields.items() if "key" in told}

    @property
    def unpivots(self) -> bool:
        """Whether a line becomes several records."""
        return bool(self.unpivot_keep or self.unpivot_columns)

    @property
    def hash(self) -> str:
        """Identity of the rules: the same whatever the file's spelling, order and comments."""
        rules = {
            name: value
            for name, value in asdict(self).items()
            if name not in _LATER or value != _LATER[name]
        }
        text = json.dumps(rules, sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()


_LATER = {
    "header_line": 1,
    "header_lines": 1,
    "footer": (),
    "unpivot_keep": (),
    "unpivot_columns": (),
    "unpivot_name": None,
    "unpivot_value": None,
    "blanks": "kept",
    "push": False,
    "compare_only": False,
    "keep": "text",
    "date_zeros": "kept",
    "complete": False,
    "negative": NEGATIVE,
    "positive": POSITIVE,
    "currency": (),
    "percent": None,
    "months": (),
    "true": (),
    "false": (),
    "fields": {},
}
"""Rules that older profiles know nothing of: unset, they leave the hash as it was."""
DEFAULT = Profile()
TOGETHER = (
    {"decimal", "thousands"},
    {"date_format", "date_zeros", "months"},
    {"offset", "zone"},
    {"true", "false"},
)
"""Keys that say one thing together."""


def load_profile(path: Path) -> Profile:
    """The profile in `path`; ProfileError names the file, the key and what is allowed."""
    try:
        text = written_text(path)
        document = read_toml(text)
    except OSError as error:
        raise ProfileError(f"{path}: cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise ProfileError(f"{path}: is not TOML: {error}.") from error
    try:
        return read_profile(with_lookups(document, path.parent))
    except ProfileError as error:
        raise ProfileError(f"{path}{_line_of(error, text)}: {error}") from error


def _line_of(error: ProfileError, text: str) -> str:
    """Where the key stands that an error begins with, or what it is in."""
    lines = {".".join(map(str, path)): line for path, line in key_lines(text).items()}
    key = str(error).split(" ", 1)[0].rstrip(":")
    while key and key not in lines:
        key = key.rpartition(".")[0]
    return f", line {lines[key]}" if key else ""


def read_profile(document: Mapping[str, Any]) -> Profile:
    """The profile a TOML document states; ProfileError names the key and what is allowed."""
    if "feed" not in document:
        raise ProfileError('feed is missing. Name the feed: feed = "bank-x".')
    values: dict[str, Any] = {}
    for key, value in document.items():
        if key in SECTIONS:
            readers = SECTIONS[key]
            for inner, inner_value in as_section(key, value).items():
                name, reader = known(f"{key}.{inner}", inner, readers)
                values[name] = reader(f"{key}.{inner}", inner_value)
        else:
            name, reader = known(key, key, KEYS, also=SECTIONS)
            values[name] = reader(key, value)
    profile = Profile(**values)
    _check_together(profile)
    return profile


def with_terms(profile: Profile, terms: Mapping[str, Any]) -> Profile:
    """The profile with what is stated for one delivery; None is not stated. Raises ProfileError."""
    given = {name: value for name, value in terms.items() if value is not None}
    readers = dict(chain(KEYS.values(), *(section.values() for section in SECTIONS.values())))
    return replace(profile, **{name: readers[name](name, value) for name, value in given.items()})


def written_of(profile: Profile, name: str | None = None) -> dict[str, Any]:
    """How the feed writes values, or its field of a name: every key of `WRITTEN`.

    A field that states one key of a group states the group, and not what the feed says beside it.
    """
    of_feed = {key: getattr(profile, key) for key in WRITTEN}
    stated = profile.fields.get(name, {}) if name else {}
    usual = {
        key: getattr(DEFAULT, key) for group in TOGETHER for key in group if stated.keys() & group
    }
    return {**of_feed, **usual, **stated}


def number_form(written: Mapping[str, Any]) -> NumberForm:
    """How numbers are written, by the keys of `WRITTEN`."""
    return NumberForm(
        written["decimal"],
        written["thousands"] or "",
        written["negative"],
        written["positive"],
        written["currency"],
        written["percent"],
    )


def _check_written(written: Mapping[str, Any], at: str) -> None:
    """Refuse what cannot hold together; `at` is what stands before a key."""
    if written["offset"] and written["zone"]:
        raise ProfileError(
            f"{at}offset and {at}zone both say what a time without offset means. Keep one."
        )
    form = written["date_format"]
    if written["date_zeros"] == "dropped" and (not form or form in EPOCHS or written["months"]):
        raise ProfileError(
            f"{at}date_zeros is about a date_format that is all numbers. Add one, or take "
            "date_zeros out."
        )
    if written["months"] and not (form and re.search("%[bB]", form)):
        raise ProfileError(f"{at}months are for a date_format with %B or %b. Add one.")
    if written["thousands"] == written["decimal"]:
        raise ProfileError(
            f"{at}thousands and decimal are both {written['decimal']!r}. They must differ."
        )
    if bool(written["true"]) != bool(written["false"]):
        raise ProfileError(f"{at}true and false are stated together, or neither.")
    both = {one.casefold() for one in written["true"]} & {
        one.casefold() for one in written["false"]
    }
    if both:
        raise ProfileError(f"{at}true and {at}false both have the word {min(both)!r}.")
    try:
        check_forms(number_form(written))
    except NoNumberForm as error:
        raise ProfileError(f"{at}negative, positive or currency: {error}.") from None


def _check_around(profile: Profile, fields: tuple[str, ...]) -> None:
    """Refuse what cannot stand around the records."""
    if profile.header_line == FOUND and profile.header_lines > 1:
        raise ProfileError(
            "header_line cannot be found where header_lines says that it is several. Write its "
            "number."
        )
    if profile.header_line == FOUND and profile.record is None:
        raise ProfileError(
            "header_line is found by the columns of a record. Say which: record = ..., or write "
            "the number of the line."
        )
    for line in profile.footer:
        for name in re.compile(line).groupindex:
            if name == ROWS and profile.unpivots:
                raise ProfileError(
                    f"footer: {shown(line)!r} states rows, but a line becomes several records of "
                    "them: the number would not tie. Write (?:...) for it."
                )
            choice("footer", name, (ROWS, *fields), "rows, or a field")


def _check_unpivot(profile: Profile) -> None:
    """Refuse what does not say how a line becomes several records."""
    if not (profile.unpivots or profile.unpivot_name or profile.unpivot_value):
        return
    if bool(profile.unpivot_keep) == bool(profile.unpivot_columns):
        raise ProfileError(
            "unpivot says with keep which columns stand in each record, or with columns which "
            "ones make a record each. State one of the two."
        )
    new = [profile.unpivot_name, profile.unpivot_value]
    if None in new:
        raise ProfileError(
            "unpivot needs name and value: what to call the column that says which one a record "
            "is of, and the column with its cell."
        )
    names = [one.casefold() for one in (*new, *profile.unpivot_keep) if one]
    if len(set(names)) != len(names):
        raise ProfileError("unpivot.name, unpivot.value and unpivot.keep name a column twice.")
    if profile.keep == "reference":
        raise ProfileError(
            'keep = "reference" is for files whose lines are their records: what unpivot makes of '
            "a line is kept as text. Take one of them out."
        )


def _check_together(profile: Profile) -> None:
    _check_written(written_of(profile), "")
    for name in profile.fields:
        _check_written(written_of(profile, name), f"fields.{name}.")
    if profile.delimiter == profile.quote:
        raise ProfileError(f"delimiter and quote are both {profile.quote!r}. They must differ.")
    if profile.inner_record and profile.record not in {None, "insert_batch_data"}:
        raise ProfileError(
            f"inner_record is for record insert_batch_data, not for {profile.record}. "
            "Take one of them out."
        )
    fields = _fields(profile.record)
    _check_around(profile, fields)
    _check_unpivot(profile)
    for section, names in (
        ("columns", profile.columns.values()),
        ("constants", profile.constants),
        ("fields", profile.fields),
    ):
        for name in names:
            choice(section, name, fields, f"a field of {profile.record or 'any record'}")
    for name, text in profile.constants.items():
        _check_constant(profile, f"constants.{name}", name, text)
    for name, told in profile.fields.items():
        _check_made(profile, name, told)
    both = set(profile.columns.values()) & set(profile.constants)
    if both:
        raise ProfileError(
            f"constants.{min(both)} is also the target of a column. "
            "A field is delivered or constant; keep one."
        )
    folded = [theirs.strip().casefold() for theirs in profile.columns]
    if len(set(folded)) != len(folded):
        raise ProfileError("columns names a column twice (case and blanks around do not count).")


def _check_made(profile: Profile, name: str, told: Mapping[str, Any]) -> None:
    """Refuse what a field cannot be made of."""
    made = told.keys() & MADE
    if made and name in SECRETS:
        raise ProfileError(f"fields.{name}.{min(made)} is not for a secret. Take it out.")
    if made and name in profile.constants:
        raise ProfileError(
            f"constants.{name} and fields.{name}.{min(made)} both say what {name} is. Keep one."
        )
    if "key" in told:
        _check_key(profile, name, told)
    if "from" in told and name in profile.columns.values():
        raise ProfileError(f"columns and fields.{name}.from both say what {name} is. Keep one.")
    if "join" in told and len(told.get("from", ())) < 2:
        raise ProfileError(f"fields.{name}.join is for several columns. Name them in from.")
    if told.keys() & {"part", "map"} and Kind.STRING in _kinds(profile, name):
        raise ProfileError(
            f"fields.{name}: part and map are for numbers, times and words for true, because a "
            "text that does not fit could not be told from one that does."
        )
    for text in (*told.get("map", {}).values(), *([told["default"]] if "default" in told else [])):
        _check_constant(profile, f"fields.{name}", name, text)


def _check_key(profile: Profile, name: str, told: Mapping[str, Any]) -> None:
    """Refuse a key that no number can be made of."""
    at = f"fields.{name}.key"
    if others := sorted(told.keys() & MADE - {"key"}):
        raise ProfileError(f"{at} and fields.{name}.{others[0]} both say what {name} is. Keep one.")
    if name in profile.columns.values():
        raise ProfileError(f"columns and {at} both say what {name} is. Keep one.")
    if _kinds(profile, name) != {Kind.INTEGER64}:
        raise ProfileError(f"{at}: only a 64-bit integer can be made of a key.")
    for one in told["key"]:
        choice(at, one, _fields(profile.record), f"a field of {profile.record or 'any record'}")
        if one in profile.keys or one in SECRETS or _kinds(profile, one) & {*NESTED}:
            raise ProfileError(f"{at} names {one}, which cannot be part of a key.")
    if all(one in profile.constants for one in told["key"]):
        raise ProfileError(f"{at} is the same in each record. Name what tells them apart.")


def _kinds(profile: Profile, name: str) -> set[Kind]:
    tables = [EXTRACTS[profile.record]] if profile.record else EXTRACTS.values()
    return {table.by_name[name].kind for table in tables if name in table.by_name}


def _check_constant(profile: Profile, at: str, name: str, text: str) -> None:
    """Refuse a number that is none as constants are written: plainly, whatever the files do."""
    kinds = _kinds(profile, name)
    if not text or not kinds <= NUMBERS:
        return
    whole = Kind.DOUBLE not in kinds
    read = [read_integer(kind, text) if whole else read_number(text) for kind in kinds]
    if not all(isinstance(one, Unread) for one in read):
        return
    written = f" The files' decimal sign is {profile.decimal!r}." if profile.decimal != "." else ""
    what = "a whole number" if whole else 'a number written plainly, such as "1234.50"'
    shown_text = NOT_SHOWN if name in SECRETS else repr(shown(text))
    raise ProfileError(
        f"{at} = {shown_text} is not {what}. Constants have a decimal point and no "
        f"thousands sign, whatever the files have.{written}"
    )


def _fields(record: str | None) -> tuple[str, ...]:
    if record:
        return EXTRACTS[record].columns
    return tuple(dict.fromkeys(chain(*(table.columns for table in EXTRACTS.values()))))
