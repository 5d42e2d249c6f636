"""What the keys of a feed profile say together: whatever cannot be meant is refused."""

import re
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

from connectors.errors import ProfileError
from connectors.files.content import shown
from connectors.files.first_record import DELIMITERS, folded
from connectors.files.positions import BLANKS, overlapping
from connectors.files.profile import DEFAULT, ROWS, Profile, number_form, written_of
from connectors.files.profile_keys import FOUND, OF_FIELD
from connectors.files.profile_values import choice
from connectors.files.profile_writing import WRITTEN
from schemas.cells.counted_times import EPOCHS
from schemas.cells.dates import NoForm, numbered_form
from schemas.cells.numbers import BLANK, NoNumberForm, check_forms
from schemas.cells.numbers import BLANKS as ANY_BLANK
from schemas.cells.reading import Unread, read
from schemas.derived.nested import read_nested
from schemas.field import NESTED, Kind
from schemas.reasons import NOT_SHOWN
from schemas.tables import EXTRACTS, SECRETS

MADE = OF_FIELD.keys() - WRITTEN.keys()
"""Keys of a field that say what it is made of."""
TENANT = "TenantsId"
NUMBERS = {Kind.DOUBLE, Kind.INTEGER, Kind.INTEGER64}
TIMES = {Kind.DATETIME, Kind.DATETIME_OFFSET}
SUM = ("sum", "minus")
_OF_NUMBERS = "0123456789+-eE.()%"


def check_together(profile: Profile) -> None:
    """Refuse what cannot be meant: ProfileError says which keys, and what to do."""
    _check_written(written_of(profile), "")
    for name in profile.fields:
        _check_written(written_of(profile, name), f"fields.{name}.")
    _check_signs(profile)
    if profile.inner_record and profile.record not in {None, "insert_batch_data"}:
        raise ProfileError(
            f"inner_record is for record insert_batch_data, not for {profile.record}. "
            "Take one of them out."
        )
    fields = _fields(profile.record)
    _check_around(profile)
    _check_unpivot(profile)
    _check_positions(profile)
    _check_left_out(profile)
    for section, names in (
        ("columns", profile.columns.values()),
        ("constants", profile.constants),
        ("fields", profile.fields),
    ):
        for name in names:
            at = section if section == "columns" else f"{section}.{name}"
            choice(at, name, fields, f"a field of {profile.record or 'any record'}")
    for name, text in profile.constants.items():
        _check_constant(profile, f"constants.{name}", name, text)
        if not text and (record := _needed_by(profile, name)):
            raise ProfileError(f'constants.{name} = "": a {record} needs a value there.')
    for name, told in profile.fields.items():
        _check_made(profile, name, told)
    check_tenant(profile)
    both = set(profile.columns.values()) & set(profile.constants)
    if both:
        raise ProfileError(
            f"constants.{min(both)} is also the target of a column. "
            "A field is delivered or constant; keep one."
        )
    folded = [theirs.strip().casefold() for theirs in profile.columns]
    if len(set(folded)) != len(folded):
        raise ProfileError("columns names a column twice (case and blanks around do not count).")


def _check_signs(profile: Profile) -> None:
    """Refuse signs of a text of which one could be taken for another."""
    quote, comment = profile.quote, profile.comment
    delimiters = (profile.delimiter,) if profile.delimiter else DELIMITERS
    if profile.delimiter == quote:
        raise ProfileError(f"delimiter and quote are both {quote!r}. They must differ.")
    several = len(profile.delimiter or "") > 1
    if several and quote in (profile.delimiter or ""):
        raise ProfileError(f"delimiter = {profile.delimiter!r} has the quote in it.")
    if several and profile.blanks == "dropped" and {*BLANKS} & {*(profile.delimiter or "")}:
        raise ProfileError(
            f"delimiter = {profile.delimiter!r} has a blank in it, and blanks drops those around "
            "cells. Take it out of the delimiter."
        )
    if profile.escape and profile.escape in (quote, *(profile.delimiter or ""), *(comment or "")):
        raise ProfileError(
            f"escape = {profile.escape!r} is a sign of quote, delimiter or comment too."
        )
    if comment and quote in comment:
        raise ProfileError(f"comment = {comment!r} has the quote in it. A record may begin so.")
    if comment and any(comment.startswith(one) or one.startswith(comment) for one in delimiters):
        raise ProfileError(
            f"comment = {comment!r} begins like the delimiter does, and so does a record whose "
            "first cell is empty. State another comment, or another delimiter."
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
    if written["months"]:
        try:
            numbered_form(form)
        except NoForm as error:
            raise ProfileError(f"{at}date_format = {shown(form)!r} with months: {error}.") from None
    blank = [one for one in written["null"] if one.strip() and one != one.strip(BLANKS)]
    if written["blanks"] == "dropped" and blank:
        raise ProfileError(
            f"{at}null names {shown(blank[0])!r} with blanks around it, which blanks drops before "
            "it is looked for. Take them out."
        )
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
        examples = ("negative", "positive", "currency")
        stated = [key for key in examples if written[key] != getattr(DEFAULT, key)]
        raise ProfileError(f"{at}{' and '.join(stated)}: {error}.") from None


def _check_around(profile: Profile) -> None:
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
    tables = [EXTRACTS[profile.record]] if profile.record else [*EXTRACTS.values()]
    amounts = [name for table in tables for name in table.amounts]
    for line in profile.footer:
        for name in re.compile(line).groupindex:
            if name == ROWS and profile.unpivots:
                raise ProfileError(
                    f"footer: the group rows of {shown(line)!r} would not tie, because a line "
                    "becomes several records. Write (?:...) for it."
                )
            choice("footer", name, (ROWS, *amounts), "rows, or an amount of the record")


def check_tenant(profile: Profile) -> None:
    """Refuse a tenant that the records of the feed never have."""
    always = profile.constants.get(TENANT)
    if profile.tenant is not None and always and int(always) != profile.tenant:
        raise ProfileError(
            f"tenant = {profile.tenant}, and constants.{TENANT} = {always}: every row would be "
            "rejected. Keep the right one."
        )


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
    if profile.escape or len(profile.delimiter or "") > 1:
        key = "escape" if profile.escape else "a delimiter of several signs"
        raise ProfileError(
            f"{key} is not for a table that unpivot makes records of: their texts are written with "
            "doubled quotes and one sign between cells. Take one of them out."
        )
    if profile.keep == "reference":
        raise ProfileError(
            'keep = "reference" is for files whose lines are their records: what unpivot makes of '
            "a line is kept as text. Take one of them out."
        )


def _check_positions(profile: Profile) -> None:
    """Refuse positions that cannot be meant, and what is only for lines without a header."""
    if profile.sheet is not None:
        _refuse_beside(
            profile, "sheet", ("positions", "delimiter", "quote", "escape", "comment", "encoding")
        )
    if not profile.positions:
        for key in ("first_line", "short_lines"):
            if getattr(profile, key) != getattr(DEFAULT, key):
                raise ProfileError(
                    f"{key} is for lines with positions. State them, or take it out."
                )
        return
    if profile.record is None:
        raise ProfileError("positions are of a record. Say which: record = ...")
    if both := overlapping(profile.positions):
        raise ProfileError(f"positions: {both[0]} and {both[1]} have a sign in common.")
    _refuse_beside(
        profile, "positions", ("delimiter", "quote", "escape", "header_line", "header_lines")
    )
    if profile.unpivots or profile.keep == "reference":
        other = "unpivot" if profile.unpivots else 'keep = "reference"'
        raise ProfileError(f"{other} is not for lines with positions. Take one of them out.")


_FOR = {
    "sheet": "a sheet of a workbook",
    "positions": "lines without a sign between their cells",
}
"""What a key is for, with which others cannot be."""


def _refuse_beside(profile: Profile, key: str, others: Iterable[str]) -> None:
    for other in others:
        if getattr(profile, other) != getattr(DEFAULT, other):
            raise ProfileError(f"{other} is not for {_FOR[key]}, as {key} says. Keep one of them.")


def _check_left_out(profile: Profile) -> None:
    """Refuse rows to be left out of which nobody knows what they are."""
    for key in ("leave_out", "keep_only"):
        for name, cells in getattr(profile, key).items():
            if not cells:
                raise ProfileError(f"{key}.{name} is an empty list. Take it out.")
    left = {name.strip().casefold(): cells for name, cells in profile.leave_out.items()}
    for name, cells in profile.keep_only.items():
        both = sorted({*cells} & {*left.get(name.strip().casefold(), ())})
        if both:
            raise ProfileError(
                f"keep_only.{name} and leave_out both have {shown(both[0])!r}. Keep one of them."
            )
    if profile.totals == "kept" and not (profile.leave_out or profile.keep_only):
        raise ProfileError('totals = "kept" is for feeds with leave_out or keep_only. Take it out.')
    if (profile.leave_out or profile.keep_only) and (
        profile.inner_record or profile.record == "insert_batch_data"
    ):
        raise ProfileError(
            "leave_out and keep_only are not for insert-batch data: a row of it says itself "
            "whether it was merged. Take them out."
        )


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
    _check_sum(profile, name, told)
    for key in ("from", *SUM):
        if key in told and name in profile.columns.values():
            raise ProfileError(
                f"columns and fields.{name}.{key} both say what {name} is. Keep one."
            )
    if "join" in told and len(told.get("from", ())) < 2:
        raise ProfileError(f"fields.{name}.join is for several columns. Name them in from.")
    _check_join(profile, name, told)
    if told.keys() & {"part", "map"} and Kind.STRING in _kinds(profile, name):
        raise ProfileError(
            f"fields.{name}: part and map are for numbers, times and words for true, because a "
            "text that does not fit could not be told from one that does."
        )
    _check_map(profile, name, told)
    if "default" in told:
        columns = profile.sources.get(name) or [
            one for one, of in profile.columns.items() if of == name
        ]
        if [*map(folded, columns or [name])] == [folded(profile.unpivot_value or "")]:
            raise ProfileError(
                f"fields.{name}.default is never met: a cell of unpivot.value that is empty makes "
                "no record. Take it out."
            )
        _check_constant(profile, f"fields.{name}.default", name, told["default"])
        if not told["default"]:
            raise ProfileError(
                f'fields.{name}.default = "" is what an empty cell is without it. Take it out.'
            )


def _check_sum(profile: Profile, name: str, told: Mapping[str, Any]) -> None:
    """Refuse a sum of what has none, or one that is something else as well."""
    summed = [key for key in SUM if key in told]
    if not summed:
        if "scale" in told:
            raise ProfileError(
                f"fields.{name}.scale multiplies a sum. Name its columns in sum, or in minus."
            )
        return
    at = f"fields.{name}.{summed[0]}"
    if not _kinds(profile, name) <= NUMBERS:
        raise ProfileError(f"{at} is for amounts and other numbers, and {name} is none.")
    if others := sorted(told.keys() & {"from", "join", "part", "map", "key"}):
        raise ProfileError(f"{at} and fields.{name}.{others[0]} both say what {name} is. Keep one.")
    added, taken = ({*map(folded, told.get(key, ()))} for key in SUM)
    if both := sorted(added & taken):
        raise ProfileError(f"fields.{name}: {both[0]!r} is in sum and in minus. Keep one of them.")


def _check_join(profile: Profile, name: str, told: Mapping[str, Any]) -> None:
    """Refuse to join texts to a number or a time that none of them is a part of."""
    if len(told.get("from", ())) < 2 or told.keys() & {"part", "map"}:
        return
    written, kinds, join = written_of(profile, name), _kinds(profile, name), told.get("join", "")
    thousands = ANY_BLANK if written["thousands"] == BLANK else written["thousands"] or ""
    if {*join} & {*_OF_NUMBERS, *thousands, written["decimal"]} and kinds & NUMBERS:
        raise ProfileError(
            f"fields.{name}.join = {shown(join)!r} could be a sign within a number: two numbers "
            "would be a third one. Join them by another one, or by none."
        )
    if any(map(str.isdigit, join)) and kinds & TIMES:
        raise ProfileError(
            f"fields.{name}.join = {shown(join)!r} would be digits of a time. Join its columns by "
            "the sign that date_format has there."
        )
    if written["date_zeros"] == "dropped" and not join and kinds & TIMES:
        raise ProfileError(
            f"fields.{name}.from: of numbers without their zeros in several columns nobody knows "
            "where one ends. Join them by the sign that date_format has there, and take date_zeros "
            "out."
        )


def _check_map(profile: Profile, name: str, told: Mapping[str, Any]) -> None:
    """Refuse an entry that no cell can meet, or that stands for nothing that can be read."""
    written = written_of(profile, name)
    null = {"", *written["null"]}
    for theirs, ours in told.get("map", {}).items():
        if written["blanks"] == "dropped" and theirs != theirs.strip(BLANKS):
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
        _check_constant(profile, at, name, ours)
        if not ours:
            raise ProfileError(f"{at} stands for nothing. Write {theirs!r} into null.")


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


def _needed_by(profile: Profile, name: str) -> str | None:
    """The record that needs a value of a field; None: it does without one, or may be another."""
    if profile.record is None:
        return None
    of = EXTRACTS[profile.record].by_name.get(name)
    return profile.record if of and of.needs_value else None


def _check_constant(profile: Profile, at: str, name: str, text: str) -> None:
    """Refuse a text that is no value, as the service document writes them: whatever files do."""
    tables = [EXTRACTS[profile.record]] if profile.record else EXTRACTS.values()
    fields = [table.by_name[name] for table in tables if name in table.by_name]
    if not text or any(of.kind in (*NESTED, Kind.STRING) for of in fields):
        return
    if not all(isinstance(read(of, text, read_nested), Unread) for of in fields):
        return
    kinds = {of.kind for of in fields}
    if kinds <= NUMBERS:
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


def _fields(record: str | None) -> tuple[str, ...]:
    if record:
        return EXTRACTS[record].columns
    return tuple(dict.fromkeys(chain(*(table.columns for table in EXTRACTS.values()))))
