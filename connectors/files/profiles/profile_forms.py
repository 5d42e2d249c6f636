"""How a feed or one of its fields writes values: contradictory keys are refused."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from connectors.errors import ProfileError
from connectors.files.profiles.profile import DEFAULT, date_forms, number_form
from connectors.printable import shown
from schemas.cells.counted_times import EPOCHS
from schemas.cells.date_forms import DateForms
from schemas.cells.dates import NoForm
from schemas.cells.numbers import AROUND, OVERPUNCHED, NoNumberForm, check_forms

Called = Callable[[str], str]
"""Gives a key's name where it is stated: `decimal`, or `fields.PaidAmount.decimal`."""


def check_written(written: Mapping[str, Any], key: Called) -> None:
    """Refuse contradictory keys: ProfileError names them and says what to do."""
    _check_times(written, key)
    blank = [one for one in written["null"] if one.strip() and one != one.strip(AROUND)]
    if written["blanks"] == "dropped" and blank:
        raise ProfileError(
            f"{key('null')} names {shown(blank[0])!r} with blanks around it, which blanks drops "
            "before it is looked for. Take them out."
        )
    if written["thousands"] == written["decimal"]:
        raise ProfileError(
            f"{key('thousands')} and {key('decimal')} are both {written['decimal']!r}. They must "
            "differ."
        )
    if written["groups"] != DEFAULT.groups and not written["thousands"]:
        raise ProfileError(
            f"{key('groups')} is about numbers with a sign between their digits. State it as "
            "thousands, or take groups out."
        )
    limit, implied = key("decimals"), key("implied_decimals")
    # A field with digits only has no decimals to count, whatever the feed states for the others.
    of_same = limit.startswith("fields.") or not implied.startswith("fields.")
    if written["decimals"] is not None and written["implied_decimals"] and of_same:
        raise ProfileError(
            f"{limit} would change nothing: {implied} says that no decimal sign is written. Keep "
            "one of them."
        )
    around = ("negative", "positive", "currency", "percent")
    stated = [one for one in around if written[one] != getattr(DEFAULT, one)]
    if written["sign"] == OVERPUNCHED and stated:
        raise ProfileError(
            f"{key(stated[0])} says what stands beside digits, and {key('sign')} that nothing "
            "does. Keep one of them, and state the other for the fields that are written so."
        )
    if bool(written["true"]) != bool(written["false"]):
        raise ProfileError(f"{key('true')} and false are stated together, or neither.")
    if both := {*map(str.casefold, written["true"])} & {*map(str.casefold, written["false"])}:
        raise ProfileError(f"{key('true')} and {key('false')} both have the word {min(both)!r}.")
    try:
        check_forms(number_form(written))
    except NoNumberForm as error:
        examples = ("negative", "positive", "currency")
        stated = [key(one) for one in examples if written[one] != getattr(DEFAULT, one)]
        raise ProfileError(f"{' and '.join(stated)}: {error}.") from None


def check_zero(written: Mapping[str, Any], key: Called) -> None:
    """Refuse a text that stands both for zero and for no value."""
    if both := sorted({*written["null"]} & {*written["zero"]}):
        raise ProfileError(
            f"{key('zero')} and {key('null')} both name {both[0]!r}. Keep one of them; a field may "
            "state a null of its own."
        )


def _check_times(written: Mapping[str, Any], key: Called) -> None:
    """Refuse meaningless or ambiguous forms of times."""
    if written["offset"] and written["zone"]:
        raise ProfileError(
            f"{key('offset')} and {key('zone')} both say what a time without offset means. Keep "
            "one."
        )
    forms = date_forms(written)
    _check_zones(written, forms, key)
    texts = forms.texts
    if forms.months and len({*map(str.casefold, forms.months)}) < len(forms.months):
        raise _named_twice(key("months"))
    if forms.zeros_dropped and (forms.months or EPOCHS.keys() >= {*texts}):
        raise ProfileError(
            f"{key('date_zeros')} is about a date_format that is all numbers. Add one, or take "
            "date_zeros out."
        )
    if forms.year_zero and EPOCHS.keys() >= {*texts}:
        raise ProfileError(
            f"{key('year_zero')} is about a date_format with %y or %Y. Add one, or take year_zero "
            "out."
        )
    if forms.months and not any(re.search("%[bB]", text) for text in texts):
        raise ProfileError(f"{key('months')} are for a date_format with %B or %b. Add one.")
    directives = [one for one in texts if one not in EPOCHS]
    for text in directives if forms.months or forms.year_zero else ():
        try:
            forms.form(text)
        except NoForm as error:
            with_key = "months" if forms.months else "year_zero"
            message = f"{key('date_format')} = {shown(text)!r} with {with_key}: {error}."
            raise ProfileError(message) from None
    if (found := forms.ambiguous()) is not None:
        text, two = found
        raise ProfileError(
            f"{key('date_format')}: {shown(text)!r} is {two}. Nobody knows which is meant: keep "
            "one of the two."
        )


def _named_twice(at: str) -> ProfileError:
    return ProfileError(
        f"{at} has one name twice: by width, full-width letters are the usual ones. Keep one of "
        "them."
    )


def _check_zones(written: Mapping[str, Any], forms: DateForms, key: Called) -> None:
    """Refuse meaningless or ambiguous names of zones."""
    if len(forms.zones) < len(written["zones"]):
        raise _named_twice(key("zones"))
    named = ["%Z" in text for text in forms.texts]
    if any(named) and not forms.zones:
        raise ProfileError(
            f"{key('date_format')} has the name of a zone, %Z. State zones beside it, which say "
            'what the names mean: CET = "+01:00".'
        )
    if forms.zones and not any(named):
        form = f"{key('date_format')} has none" if forms.texts else "there is no date_format"
        raise ProfileError(
            f"{key('zones')} says what the names mean that stand in times as %Z, and {form}. State "
            "both together; a field whose times have no such name states an offset or a zone of "
            "its own."
        )
    numbered = [name for name, _ in forms.zones if forms.zeros_dropped and name[-1].isdigit()]
    if numbered:
        raise ProfileError(
            f"{key('zones')} has {numbered[0]!r}, which ends with a digit, and date_zeros drops "
            "those of dates: nobody knows where the name ends. State one of the two."
        )
    if forms.zones and all(named) and (written["offset"] or written["zone"]):
        other = key("offset" if written["offset"] else "zone")
        raise ProfileError(
            f"{other} and {key('zones')} both say what a time means, and every time has the name "
            "of its zone. Keep zones."
        )
