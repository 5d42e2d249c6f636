"""Checks across the keys of a feed profile: combinations that make no sense are refused."""

from collections.abc import Iterable, Sequence
from functools import partial

from connectors.errors import ProfileError
from connectors.files.layout.first_record import DELIMITERS, folded
from connectors.files.profiles.footer_groups import field_of_group
from connectors.files.profiles.profile import (
    DEFAULT,
    ROWS,
    Profile,
    date_forms,
    key_of,
    number_form,
    written_of,
)
from connectors.files.profiles.profile_forms import check_written, check_zero
from connectors.files.profiles.profile_keys import FOUND
from connectors.files.profiles.profile_made import (
    check_constant,
    check_made,
    currencies_of,
    fields_of,
    needed_by,
    tables_of,
)
from connectors.files.profiles.profile_values import choice
from connectors.files.text.content import canonical_encoding
from connectors.files.text.dialect import NO_QUOTE
from connectors.files.text.linear_patterns import group_names
from connectors.files.text.positions import check_unit, overlapping
from connectors.files.text.shadow import DELIMITER
from connectors.printable import shown
from schemas.cells.counted_times import INSTANTS
from schemas.cells.numbers import AROUND
from schemas.own_columns import OWN_COLUMNS

TENANT = "TenantsId"
SIGN = DELIMITER.decode()
"""The sign that replaces a delimiter of several signs while a text is read."""


def check_together(profile: Profile) -> None:
    """Refuse combinations that make no sense: ProfileError names the keys and what to do."""
    for name in (None, *profile.fields):
        check_written(written_of(profile, name), partial(key_of, profile, name))
    check_zero(written_of(profile), partial(key_of, profile, None))
    _check_signs(profile)
    if profile.inner_record and profile.record not in {None, "insert_batch_data"}:
        raise ProfileError(
            f"inner_record is for record insert_batch_data, not for {profile.record}. "
            "Take one of them out."
        )
    fields = fields_of(profile.record)
    _check_around(profile)
    _check_unpivot(profile)
    _check_positions(profile)
    _check_carried(profile)
    _check_left_out(profile)
    stated = {f"columns.{shown(theirs)}": name for theirs, name in profile.columns.items()}
    for section, names in (("constants", profile.constants), ("fields", profile.fields)):
        stated |= {f"{section}.{name}": name for name in names}
    for at, name in stated.items():
        choice(at, name, fields, f"a field of {profile.record or 'any record'}")
    for name, text in profile.constants.items():
        check_constant(profile, f"constants.{name}", name, text)
        if not text and (record := needed_by(profile, name)):
            raise ProfileError(f'constants.{name} = "": a {record} needs a value there.')
    for name, made in profile.fields.items():
        check_made(profile, name, made)
    check_tenant(profile)
    _check_has_effect(profile)
    if both := set(profile.columns.values()) & set(profile.constants):
        raise ProfileError(
            f"constants.{min(both)} is also the target of a column. "
            "A field is delivered or constant; keep one."
        )
    if len({*map(folded, profile.columns)}) != len(profile.columns):
        raise ProfileError("columns names a column twice (case and blanks around do not count).")


def _check_has_effect(profile: Profile) -> None:
    """Refuse keys that would change nothing, whatever is delivered."""
    if profile.push and profile.compare_only:
        raise ProfileError(
            "push and compare_only: what is only kept to be compared is not sent. Keep one of them."
        )
    if profile.repeats == "conflict" and profile.duplicate == "last_wins":
        raise ProfileError(
            'policy.repeats = "conflict" takes two rows with one key for two things, and '
            'policy.duplicate = "last_wins" for one. Keep one of them.'
        )
    for key in ("offset", "zone"):
        read: dict[str, bool] = {}
        for name in (None, *profile.fields):
            written, at = written_of(profile, name), key_of(profile, name, key)
            if written[key]:
                texts = {*date_forms(written).texts}
                read[at] = read.get(at, False) or not texts or not texts <= INSTANTS
        if unread := [at for at, is_read in read.items() if not is_read]:
            raise ProfileError(
                f"{unread[0]} would change nothing: seconds since 1970 are those of UTC. Take it "
                "out."
            )


def _check_signs(profile: Profile) -> None:
    """Refuse signs that could be taken for one another."""
    quote = _quote_of(profile)
    delimiters = (profile.delimiter,) if profile.delimiter else DELIMITERS
    if quote and profile.delimiter == quote:
        raise ProfileError(f"delimiter and quote are both {quote!r}. They must differ.")
    several = len(profile.delimiter or "") > 1
    if several and quote and quote in (profile.delimiter or ""):
        raise ProfileError(f"delimiter = {profile.delimiter!r} has the quote in it.")
    if several and profile.blanks == "dropped" and {*AROUND} & {*(profile.delimiter or "")}:
        raise ProfileError(
            f"delimiter = {profile.delimiter!r} has a blank in it, and blanks drops those around "
            "cells. Take it out of the delimiter."
        )
    if profile.escape and profile.escape in (
        quote,
        *(profile.delimiter or ""),
        *"".join(profile.comment),
    ):
        raise ProfileError(
            f"escape = {profile.escape!r} is a sign of quote, delimiter or comment too."
        )
    for comment in profile.comment:
        _check_comment(profile, comment, delimiters)
    for key in ("delimiter", "quote"):
        if SIGN in (getattr(profile, key) or ""):
            raise ProfileError(
                f"{key} = {getattr(profile, key)!r} has U+001F in it. State another."
            )


def _quote_of(profile: Profile) -> str | None:
    """The quote of delivered and added cells; None if no cell is quoted.

    Raises ProfileError if cells are added between delimiters that contain our own quote.
    """
    if profile.quote != NO_QUOTE:
        return profile.quote
    if NO_QUOTE in (profile.delimiter or ""):
        for added, key in (
            (profile.unpivots, "unpivot"),
            (profile.carried_names, "a group of skip_lines, or by fill_down,"),
        ):
            if added:
                raise ProfileError(
                    f"delimiter = {profile.delimiter!r} has U+0001 in it, which recon puts around "
                    f'cells that it adds by {key} where quote = "none". Take one of them out, or '
                    "state a quote."
                )
    return None


def _check_comment(profile: Profile, comment: str, delimiters: Sequence[str]) -> None:
    """Refuse a comment that a record of the feed could begin with."""
    if profile.quote in comment:  # Comments are printable, unlike the sign that stands for "none".
        raise ProfileError(f"comment = {comment!r} has the quote in it. A record may begin so.")
    if any(comment.startswith(one) or one.startswith(comment) for one in delimiters):
        raise ProfileError(
            f"comment = {comment!r} begins like the delimiter does, and so does a record whose "
            "first cell is empty. State another comment, or another delimiter."
        )
    if profile.delimiter and comment.endswith(profile.delimiter):
        return  # A whole first cell, which tells the kind of a line.
    if comment[0].isalnum() or comment[0] == " " or comment in "+-.(":
        raise ProfileError(
            f"comment = {comment!r} may be the beginning of a record too: of a text, a number or "
            "an empty cell. Comments begin with another sign, such as # or --; lines of another "
            "kind with a whole cell, and the delimiter that the profile states behind it."
        )
    for name in (None, *profile.fields):
        for before, _ in number_form(written_of(profile, name)).around:
            behind = comment.removeprefix(before) if comment.startswith(before) else ""
            if before.startswith(comment) or behind[:1].isdigit():
                raise ProfileError(
                    f"comment = {comment!r} may begin a number that {before!r} stands before, "
                    "and so a record. State another comment."
                )


def _check_around(profile: Profile) -> None:
    """Refuse contradictory keys about the lines around the records."""
    if profile.header_line == FOUND and profile.header_lines > 1:
        raise ProfileError(
            "header_line cannot be found where header_lines says that it is several. Write its "
            "number."
        )
    if profile.header_titles != DEFAULT.header_titles and profile.header_lines == 1:
        raise ProfileError(
            "header_titles is for names in several rows. Say in header_lines how many, or take it "
            "out."
        )
    if profile.header_line == FOUND and profile.record is None:
        raise ProfileError(
            "header_line is found by the columns of a record. Say which: record = ..., or write "
            "the number of the line."
        )
    if profile.unnamed_columns and profile.unknown_columns == "refuse":
        raise ProfileError(
            "unnamed_columns are cells that no field is made of, and unknown_columns refuses such. "
            'State unknown_columns = "ignore".'
        )
    amounts = [name for table in tables_of(profile.record) for name in table.amounts]
    currencies = currencies_of(profile.record)
    for line in profile.footer:
        names = _of_fields(profile, line, group_names([line]))
        if of := [name for name in names if name in currencies]:
            _check_of_currency(profile, line, names, of)
        for name in names:
            if name == ROWS and profile.unpivots:
                raise ProfileError(
                    f"footer: the group rows of {shown(line)!r} would not tie, because a line "
                    "becomes several records. Write (?:...) for it."
                )
            allowed = (ROWS, *amounts, *currencies)
            choice("footer", name, allowed, "rows, or an amount of the record or its currency")
            if "per" in profile.fields.get(name, {}):
                raise ProfileError(
                    f"footer: the group {name} of {shown(line)!r} would not tie, because amounts "
                    f"for several units (fields.{name}.per) are added up there. Write (?:...) for "
                    "it."
                )


def _of_fields(profile: Profile, line: str, groups: Sequence[str]) -> list[str]:
    """The fields that a footer's groups total; refuse several cells of a one-column field."""
    names = []
    for group in groups:
        name, number = field_of_group(group)
        if number == 1:
            names.append(name)
        elif name not in groups or len(profile.fields.get(name, {}).get("from", ())) < 2:
            why = f"{name} is not made of several columns (from)"
            if name not in groups:
                why = f"there is no group {name}"
            raise ProfileError(
                f"footer: the group {group} of {shown(line)!r} is one more cell of a total, and "
                f"{why}. Write (?:...) for it."
            )
    return names


def _check_of_currency(
    profile: Profile, line: str, names: Sequence[str], currencies: Sequence[str]
) -> None:
    """Refuse a line of totals of one currency that is constant, ambiguous or without a sum."""
    of = currencies[0]
    why = ""
    if of in profile.constants:
        why = f"constants.{of} says which one it is. Write (?:...) for the group"
    elif len(currencies) > 1:
        why = f"it is in {' and '.join(currencies)}. Keep one of them"
    elif ROWS in names:
        why = "rows counts those of all currencies. Write (?:...) for that group"
    elif len(names) == 1:
        why = "it has no sum. Name an amount of the record by a group as well"
    if why:
        raise ProfileError(
            f"footer: the group {of} of {shown(line)!r} names a currency, and {why}."
        )


def check_tenant(profile: Profile) -> None:
    """Refuse a tenant that the feed's records never have."""
    always = profile.constants.get(TENANT)
    if profile.tenant is not None and always and int(always) != profile.tenant:
        raise ProfileError(
            f"tenant = {profile.tenant}, and constants.{TENANT} = {always}: every row would be "
            "rejected. Keep the right one."
        )


def _check_unpivot(profile: Profile) -> None:
    """Refuse incomplete or contradictory keys about how a line becomes several records."""
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
    if own := {*names} & {name.casefold() for name in OWN_COLUMNS}:
        raise ProfileError(f"unpivot has {min(own)}, a column of our own. State another name.")
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
    """Refuse contradictory positions, and keys that are only for lines without a header."""
    if profile.sheet is not None:
        _refuse_together(
            profile,
            "sheet",
            (
                *("positions", "delimiter", "quote", "escape", "comment", "skip_lines"),
                *("encoding", "unnamed_columns"),
            ),
        )
    if profile.names:
        _check_names(profile)
    elif profile.first_line != DEFAULT.first_line and not profile.positions:
        raise ProfileError(
            "first_line is for files without a header. Say in names what their columns are called, "
            "or in positions where they are; header_line says where a header is."
        )
    if not profile.positions:
        for key in ("short_lines", "position_unit"):
            if getattr(profile, key) != getattr(DEFAULT, key):
                raise ProfileError(
                    f"{key} is for lines with positions. State them, or take it out."
                )
        return
    if profile.record is None:
        raise ProfileError("positions are of a record. Say which: record = ...")
    check_unit(profile.position_unit, canonical_encoding(profile.encoding or "utf-8"))
    if both := overlapping(profile.positions):
        raise ProfileError(f"positions: {both[0]} and {both[1]} have a sign in common.")
    _refuse_together(profile, "positions", ("delimiter", "quote", "escape", *OF_HEADER))
    if profile.unpivots or profile.keep == "reference":
        other = "unpivot" if profile.unpivots else 'keep = "reference"'
        raise ProfileError(f"{other} is not for lines with positions. Take one of them out.")


def _check_names(profile: Profile) -> None:
    """Refuse column names that do not suffice for files without a header."""
    if own := [name for name in profile.names if folded(name) in {*map(folded, OWN_COLUMNS)}]:
        raise ProfileError(f"names has {own[0]}, which is a column of our own. State another.")
    _refuse_together(profile, "names", ("positions", *OF_HEADER))
    if profile.record is None:
        raise ProfileError("names are of a record. Say which: record = ...")
    if profile.delimiter is None and profile.sheet is None:
        raise ProfileError(
            "delimiter is found by a header, and files with names have none. State it; of a "
            "workbook, state sheet."
        )


OF_HEADER = ("header_line", "header_lines", "header_titles", "unnamed_columns")
_FOR = {
    "names": "files without a header",
    "sheet": "a sheet of a workbook",
    "positions": "lines without a sign between their cells",
}
"""What a key is for, in words, for messages about keys that exclude each other."""


def _refuse_together(profile: Profile, key: str, others: Iterable[str]) -> None:
    for other in others:
        if getattr(profile, other) != getattr(DEFAULT, other):
            raise ProfileError(f"{other} is not for {_FOR[key]}, as {key} says. Keep one of them.")


def _check_carried(profile: Profile) -> None:
    """Refuse columns from other lines that no record can have."""
    carried = profile.carried_names
    own = [*OWN_COLUMNS, *profile.names, *profile.positions]
    for place, name in enumerate(carried):
        if folded(name) in map(folded, (*own, *carried[:place])):
            raise ProfileError(
                f"{_adding(profile, name)} is called like another column. Give it a name that no "
                "other has (case does not count)."
            )
    several = len(profile.delimiter or "") > 1
    for stands, key in (
        (profile.unpivots, "unpivot"),
        (several, "a delimiter of several signs"),
        (profile.keep == "reference", 'keep = "reference"'),
    ):
        if carried and stands:
            raise ProfileError(
                f"{_adding(profile, carried[0])} is a column of the records below, and {key} has "
                "no place for it. Take one of them out (write (?:...) for a group)."
            )
    if (profile.fill_group or profile.fill_end) and not profile.fill_columns:
        raise ProfileError(
            "fill_down.columns is missing. Say which columns only the first record of a group has, "
            'and what the filled ones are called: columns = { "Date" = "Date of entry" }.'
        )
    if profile.fill_columns and profile.fill_group is None:
        raise ProfileError(
            "fill_down.group is missing. Say which column tells the groups: a record with another "
            "text there begins one, and takes nothing from those above it."
        )


def _adding(profile: Profile, name: str) -> str:
    """The key that adds a column of this name."""
    if name in group_names(profile.skip_lines):
        return f"skip_lines: the group {name}"
    theirs = next(theirs for theirs, new in profile.fill_columns.items() if new == name)
    return f"fill_down.columns.{shown(theirs)}: {shown(name)}"


def _check_left_out(profile: Profile) -> None:
    """Refuse ambiguous or pointless rules on rows to be left out."""
    for key in ("leave_out", "keep_only"):
        for name, cells in getattr(profile, key).items():
            if not cells:
                raise ProfileError(f"{key}.{name} is an empty list. Take it out.")
    left = {folded(name): cells for name, cells in profile.leave_out.items()}
    for name, cells in profile.keep_only.items():
        if both := sorted({*cells} & {*left.get(folded(name), ())}):
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
