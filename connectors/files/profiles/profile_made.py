"""What fields of a feed profile are made of: contradictory statements are refused."""

from collections.abc import Mapping, Set
from functools import partial
from itertools import chain
from typing import Any

from connectors.errors import ProfileError
from connectors.files.layout.first_record import folded
from connectors.files.profiles.profile import Profile, date_forms, key_of, written_of
from connectors.files.profiles.profile_forms import check_zero
from connectors.files.profiles.profile_keys import OF_FIELD
from connectors.files.profiles.profile_values import choice
from connectors.files.profiles.profile_writing import WRITTEN
from connectors.printable import shown
from schemas.cells.numbers import AROUND, BLANK
from schemas.cells.numbers import BLANKS as ANY_BLANK
from schemas.cells.reading import Unread, read
from schemas.derived.nested import read_nested
from schemas.field import NESTED, NUMBERS, TIMES, Kind, Table
from schemas.reasons import NOT_SHOWN
from schemas.tables import EXTRACTS, SECRETS

MADE = OF_FIELD.keys() - WRITTEN.keys()
"""Keys of a field that say what it is made of."""
_NUMBERS, _TIMES = {*NUMBERS}, {*TIMES}
SUM = ("sum", "minus")
_TO_SUM = {"scale": "multiplies", "per": "divides", "filled": "says which columns may make"}
AFFIXES = ("prefix", "suffix")
_READ_BY: dict[str, set[Kind]] = {
    **dict.fromkeys(("thousands", "groups", "negative", "positive", "currency"), _NUMBERS),
    "percent": _NUMBERS,
    "decimal": _NUMBERS,
    **{key: {Kind.DOUBLE} for key in ("implied_decimals", "decimals", "zero", "sign")},
    "width": _NUMBERS | _TIMES,
    **dict.fromkeys(("date_format", "date_zeros", "months", "year_zero"), _TIMES),
    **dict.fromkeys(("offset", "zone", "zones"), _TIMES),
    **{key: {Kind.BOOLEAN} for key in ("true", "false")},
}
"""Kinds of values that a key of `WRITTEN` concerns; a key that is not here concerns all."""
_OF_NUMBERS = "0123456789+-eE.()%"


def check_made(profile: Profile, name: str, stated: Mapping[str, Any]) -> None:
    """Refuse contradictory statements of what a field is made of."""
    made = stated.keys() & MADE
    if made and name in SECRETS:
        raise ProfileError(f"fields.{name}.{min(made)} is not for a secret. Take it out.")
    if made and name in profile.constants:
        raise ProfileError(
            f"constants.{name} and fields.{name}.{min(made)} both say what {name} is. Keep one."
        )
    if "key" in stated:
        _check_key(profile, name, stated)
    elif "namespace" in stated:
        raise ProfileError(
            f"fields.{name}.namespace is of numbers that are made of a key. Name its fields in key."
        )
    _check_sum(profile, name, stated)
    for key in ("from", *SUM):
        if key in stated and name in profile.columns.values():
            raise ProfileError(
                f"columns and fields.{name}.{key} both say what {name} is. Keep one."
            )
    if "join" in stated and len(stated.get("from", ())) < 2:
        raise ProfileError(f"fields.{name}.join is for several columns. Name them in from.")
    _check_is_read(profile, name, stated)
    if Kind.DOUBLE in kinds_of(profile, name):
        check_zero(written_of(profile, name), partial(key_of, profile, name))
    _check_join(profile, name, stated)
    _check_affixes(profile, name, stated)
    _check_map(profile, name, stated)
    if "default" in stated:
        columns = profile.sources.get(name) or [
            one for one, of in profile.columns.items() if of == name
        ]
        if [*map(folded, columns or [name])] == [folded(profile.unpivot_value or "")]:
            raise ProfileError(
                f"fields.{name}.default is never met: a cell of unpivot.value that is empty makes "
                "no record. Take it out."
            )
        check_constant(profile, f"fields.{name}.default", name, stated["default"])
        if not stated["default"]:
            raise ProfileError(
                f'fields.{name}.default = "" is what an empty cell is without it. Take it out.'
            )


def _check_is_read(profile: Profile, name: str, stated: Mapping[str, Any]) -> None:
    """Refuse keys about forms that the field's values do not have."""
    kinds = kinds_of(profile, name)
    counted = bool(kinds & _TIMES) and date_forms(written_of(profile, name)).counted
    for key in (key for key in stated if key in WRITTEN):
        why = ""
        if "key" in stated:
            why = f"no cell says {name}, which is made of the fields in key"
        elif name in profile.constants:
            why = f"no cell says {name}, which is constant"
        elif "map" in stated and key in _READ_BY:
            why = "a cell that is mapped is looked up as it is"
        elif key not in _READ_BY or (key == "decimal" and counted):
            continue
        elif _READ_BY[key].isdisjoint(kinds):
            why = f"{name} is of kind {' or '.join(sorted(kinds))}"
        if why:
            raise ProfileError(f"fields.{name}.{key} would change nothing: {why}. Take it out.")


def _check_sum(profile: Profile, name: str, stated: Mapping[str, Any]) -> None:
    """Refuse a sum for a field that is no number, or that is also made in another way."""
    summed = [key for key in SUM if key in stated]
    if not summed:
        for key, does in _TO_SUM.items():
            if key in stated:
                raise ProfileError(
                    f"fields.{name}.{key} {does} a sum. Name its columns in sum, or in minus."
                )
        return
    at = f"fields.{name}.{summed[0]}"
    if not kinds_of(profile, name) <= _NUMBERS:
        raise ProfileError(f"{at} is for amounts and other numbers, and {name} is none.")
    if others := sorted(stated.keys() & {"from", "join", "part", "map", "key", *AFFIXES}):
        raise ProfileError(f"{at} and fields.{name}.{others[0]} both say what {name} is. Keep one.")
    added, taken = ({*map(folded, stated.get(key, ()))} for key in SUM)
    if both := sorted(added & taken):
        raise ProfileError(f"fields.{name}: {both[0]!r} is in sum and in minus. Keep one of them.")
    if stated.get("filled") == "one" and len(added | taken) == 1:
        raise ProfileError(
            f"fields.{name}.filled would change nothing: there is one column. Take it out."
        )
    if "per" in stated:
        _check_per(f"fields.{name}.per", stated["per"], added | taken)


def _check_per(at: str, per: Mapping[str, Any], summed: Set[str]) -> None:
    """Refuse keys that do not clearly say for how many units a sum is."""
    if "column" not in per:
        raise ProfileError(
            f"{at} does not say which column the number of units is in, or what tells it. Name it: "
            f'{at}.column = "Currency".'
        )
    if folded(per["column"]) in summed:
        raise ProfileError(f"{at}.column: {shown(per['column'])!r} is a part of the sum itself.")
    if "others" in per and "map" not in per:
        raise ProfileError(f"{at}.others is what a text stands for that {at}.map does not name.")
    for theirs in per.get("map", {}):
        if theirs != theirs.strip():
            raise ProfileError(
                f"{at}.map.{shown(theirs)} has blanks around it, and cells are looked up without "
                "those. Take them out."
            )


def _check_join(profile: Profile, name: str, stated: Mapping[str, Any]) -> None:
    """Refuse joins that could form a number or time that no cell holds."""
    if len(stated.get("from", ())) < 2 or stated.keys() & {"part", "map"}:
        return
    written, kinds = written_of(profile, name), kinds_of(profile, name)
    join = stated.get("join", "")
    thousands = ANY_BLANK if written["thousands"] == BLANK else written["thousands"] or ""
    if {*join} & {*_OF_NUMBERS, *thousands, written["decimal"]} and kinds & _NUMBERS:
        raise ProfileError(
            f"fields.{name}.join = {shown(join)!r} could be a sign within a number: two numbers "
            "would be a third one. Join them by another one, or by none."
        )
    for key in ("negative", "positive"):
        # If one cell is empty, its join is left out too.
        for one in stated.get(key, ()):
            if join.strip() and (one.startswith(join) or one.endswith(join)):
                raise ProfileError(
                    f"fields.{name}.{key} = {shown(one)!r}: join stands between two cells that are "
                    "filled, and never says in which column a number is. Of a column for debits "
                    f"and one for credits {name} is a sum: sum has the one, and minus the other."
                )
    if any(map(str.isdigit, join)) and kinds & _TIMES:
        raise ProfileError(
            f"fields.{name}.join = {shown(join)!r} would be digits of a time. Join its columns by "
            "the sign that date_format has there."
        )
    if written["date_zeros"] == "dropped" and not join and kinds & _TIMES:
        raise ProfileError(
            f"fields.{name}.from: of numbers without their zeros in several columns nobody knows "
            "where one ends. Join them by a sign that date_format has there too: join = '.' with "
            "%d%m.%Y."
        )


def _check_affixes(profile: Profile, name: str, stated: Mapping[str, Any]) -> None:
    """Refuse a prefix or suffix for values of which nothing can be left out."""
    affixes = [key for key in AFFIXES if key in stated]
    if not affixes:
        return
    at = f"fields.{name}.{affixes[0]}"
    if "map" in stated:
        raise ProfileError(f"{at}: a cell that is mapped is looked up as it is. Take {at} out.")
    kinds = kinds_of(profile, name)
    counted = date_forms(written_of(profile, name)).counted
    if kinds & {Kind.DOUBLE, Kind.BOOLEAN} or (kinds & _TIMES and counted):
        raise ProfileError(
            f"{at} is for texts, whole numbers and times in signs, of which a sender leaves out a "
            f"part. {name} is none of them."
        )


def _check_map(profile: Profile, name: str, stated: Mapping[str, Any]) -> None:
    """Refuse map entries that no cell can match, or whose meaning cannot be read."""
    written = written_of(profile, name)
    null = {"", *written["null"]}
    for theirs, ours in stated.get("map", {}).items():
        if written["blanks"] == "dropped" and theirs != theirs.strip(AROUND):
            raise ProfileError(
                f"fields.{name}.map.{shown(theirs)} has blanks around it, which blanks drops "
                "before it is looked up. Take them out."
            )
        if theirs in null:
            raise ProfileError(
                f"fields.{name}.map names {shown(theirs)!r}, which is no value here and is never "
                f"looked up. Say with fields.{name}.default what such a cell stands for."
            )
        at = f"fields.{name}.map.{shown(theirs)}"
        check_constant(profile, at, name, ours)
        if not ours:
            raise ProfileError(f"{at} stands for nothing. Write {theirs!r} into null.")


def _check_key(profile: Profile, name: str, stated: Mapping[str, Any]) -> None:
    """Refuse a key that no number can be made of."""
    at = f"fields.{name}.key"
    if others := sorted(stated.keys() & MADE - {"key", "namespace"}):
        raise ProfileError(f"{at} and fields.{name}.{others[0]} both say what {name} is. Keep one.")
    if name in profile.columns.values():
        raise ProfileError(f"columns and {at} both say what {name} is. Keep one.")
    if kinds_of(profile, name) != {Kind.INTEGER64}:
        raise ProfileError(f"{at}: only a 64-bit integer can be made of a key.")
    for one in stated["key"]:
        choice(at, one, fields_of(profile.record), f"a field of {profile.record or 'any record'}")
        if one in profile.keys or one in SECRETS or kinds_of(profile, one) & {*NESTED}:
            raise ProfileError(f"{at} names {one}, which cannot be part of a key.")
    if all(one in profile.constants for one in stated["key"]):
        raise ProfileError(f"{at} is the same in each record. Name what tells them apart.")


def tables_of(record: str | None) -> list[Table]:
    """The table of a record; for None those of all records."""
    return [EXTRACTS[record]] if record else [*EXTRACTS.values()]


def kinds_of(profile: Profile, name: str) -> set[Kind]:
    """The possible kinds of a field: in the record, or in any record that has it."""
    tables = tables_of(profile.record)
    return {table.by_name[name].kind for table in tables if name in table.by_name}


def needed_by(profile: Profile, name: str) -> str | None:
    """The record that requires a value of a field; None if it does not, or is not stated."""
    if profile.record is None:
        return None
    of = EXTRACTS[profile.record].by_name.get(name)
    return profile.record if of and of.needs_value else None


def check_constant(profile: Profile, at: str, name: str, text: str) -> None:
    """Refuse a constant that is no value in the service document's form, whatever files use."""
    tables = tables_of(profile.record)
    fields = [table.by_name[name] for table in tables if name in table.by_name]
    if not text or any(of.kind in (*NESTED, Kind.STRING) for of in fields):
        return
    if not all(isinstance(read(of, text, read_nested), Unread) for of in fields):
        return
    kinds = {of.kind for of in fields}
    if kinds <= _NUMBERS:
        whole = Kind.DOUBLE not in kinds
        what = "a whole number" if whole else 'a number written plainly, such as "1234.50"'
        rule = "have a decimal point and no thousands sign"
        if profile.decimal != ".":
            rule += f" (theirs is {profile.decimal!r})"
    elif Kind.BOOLEAN in kinds:
        what, rule = "true or false", "are written as the service document does"
    else:
        what, rule = 'a time such as "2026-01-31T10:00:00Z"', "are written as ISO 8601"
    shown_text = NOT_SHOWN if name in SECRETS else repr(shown(text))
    raise ProfileError(f"{at} = {shown_text} is not {what}. Constants {rule}, whatever files do.")


def fields_of(record: str | None) -> tuple[str, ...]:
    """The fields of a record; for None those of all records."""
    return tuple(dict.fromkeys(chain(*(table.columns for table in tables_of(record)))))


def currencies_of(record: str | None) -> tuple[str, ...]:
    """The field with the currency of a record's amounts; for None those of all records."""
    found = (table.currency for table in tables_of(record))
    return tuple(dict.fromkeys(filter(None, found)))
