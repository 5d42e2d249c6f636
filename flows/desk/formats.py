"""Figures in the form that an account has chosen, and read as it types them.

What is kept, signed, downloaded or stands in an address has one form, that of the reports.
"""

import re
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation

from connectors.errors import DecisionRefused
from flows.report.spelling import MINUS, NARROW, digits
from schemas.show_as import AS_EVER, Negatives, Numbers, ShowAs

MOST_PLACES = 1_000
"""Of a number that is typed: written out, an exponent alone has as many digits as it says."""


def number(show: ShowAs, value: int | Decimal, *, signed: bool = False) -> str:
    """A number as `flows.report.spelling.digits` has it, exact, with the marks that were chosen."""
    text = digits(value, signed=signed)
    # One too long to be read is a sum of parts, each with its sign: no sign behind is about all.
    trailing = show.negatives is Negatives.TRAILING and " " not in text
    if value < 0 and (trailing or show.negatives is Negatives.BRACKETS):
        size = digits(value.copy_abs() if isinstance(value, Decimal) else -value)
        text = f"{size}{MINUS}" if trailing else f"({size})"
    group, point = show.numbers.marks
    return text.translate({ord(NARROW): group, ord("."): point})


def money(show: ShowAs, amount: Decimal | None, *, signed: bool = False) -> str:
    """An amount, exact, with two decimals or more; nothing where there is none."""
    return "" if amount is None else number(show, amount, signed=signed)


def day(show: ShowAs, of: date | None) -> str:
    return "" if of is None else of.strftime(_pattern(show, of))


def moment(show: ShowAs, at: datetime) -> str:
    """A moment to the minute, in UTC."""
    utc = at.astimezone(UTC)
    return utc.strftime(f"{_pattern(show, utc)} %H:%M")


def typed(show: ShowAs, value: Decimal) -> str:
    """A number as somebody would type it in a form: nothing between its digits."""
    return format(value, "f").replace(".", show.numbers.marks[1])


def read_number(show: ShowAs, text: str) -> Decimal | None:
    """What somebody types as they are shown numbers, or as reports have them; None: no number.

    Raises DecisionRefused for what is one number by the one and another by the other.
    """
    body, below = _unsigned("".join(text.split()).replace("'", ""))
    read = (_styled(show.numbers, body), _decimal(body))
    found = {one.copy_negate() if below else one for one in read if one is not None}
    if len(found) > 1:
        small, large = (typed(show, one) for one in sorted(found, key=Decimal.copy_abs))
        raise DecisionRefused(
            "{text!r} may be {large} or {small}: write one of these.",
            text=text, large=large, small=small,
        )  # fmt: skip
    return found.pop() if found else None


def read_day(show: ShowAs, text: str) -> date | None:
    """A day as they are shown days, or as ISO writes it; None: it is none."""
    for form in (AS_EVER.dates.pattern, show.dates.pattern):
        try:
            return datetime.strptime(text, form).replace(tzinfo=UTC).date()
        except ValueError:
            continue
    return None


def _pattern(show: ShowAs, of: date) -> str:
    # Whether years before 1000 get their zeros hangs on the machine.
    return show.dates.pattern.replace("%Y", f"{of.year:04}")


def _unsigned(text: str) -> tuple[str, bool]:
    """A number without the one sign it may have, in any of the places; whether it is below zero."""
    for sign in (r"\((.*)\)", rf"[-{MINUS}](.*)", rf"(.*)[-{MINUS}]"):
        if found := re.fullmatch(sign, text):
            return found[1], True
    return text.removeprefix("+"), False


def _styled(numbers: Numbers, body: str) -> Decimal | None:
    group, point = map(re.escape, numbers.marks)
    form = rf"(?:[1-9][0-9]{{0,2}}(?:{group}[0-9]{{3}})+|[0-9]+)(?:{point}[0-9]+)?"
    if not re.fullmatch(form, body):
        return None
    group, point = numbers.marks
    return Decimal(body.replace(group, "").replace(point, "."))


def _decimal(body: str) -> Decimal | None:
    try:
        value = Decimal(body)
    except InvalidOperation:
        return None
    ours = value.is_finite() and abs(value.adjusted()) <= MOST_PLACES
    return value if ours and body[:1] not in ("+", "-") else None
