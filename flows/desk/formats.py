"""Numbers and dates in the form that an account has chosen, both shown and typed.

What is kept, signed, downloaded or part of an address always has the reports' form.
"""

import re
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation

from connectors.errors import DecisionRefused
from flows.report.spelling import MINUS, NARROW, digits
from schemas.show_as import AS_EVER, Negatives, Numbers, ShowAs

MOST_PLACES = 1_000
"""The most digits of a typed number; an exponent could otherwise demand any number of them."""


def number(show: ShowAs, value: int | Decimal, *, signed: bool = False) -> str:
    """A number like `flows.report.spelling.digits`, exact, with the marks of the chosen form."""
    text = digits(value, signed=signed)
    # A number too long to read is shown as a sum with a sign for each part, so none may trail.
    trailing = show.negatives is Negatives.TRAILING and " " not in text
    if value < 0 and (trailing or show.negatives is Negatives.BRACKETS):
        size = digits(value.copy_abs() if isinstance(value, Decimal) else -value)
        text = f"{size}{MINUS}" if trailing else f"({size})"
    group, point = show.numbers.marks
    return text.translate({ord(NARROW): group, ord("."): point})


def money(show: ShowAs, amount: Decimal | None, *, signed: bool = False) -> str:
    """An amount, exact, with at least two decimals; empty if there is none."""
    return "" if amount is None else number(show, amount, signed=signed)


def day(show: ShowAs, of: date | None) -> str:
    return "" if of is None else of.strftime(_pattern(show, of))


def moment(show: ShowAs, at: datetime) -> str:
    """A moment to the minute, in UTC."""
    utc = at.astimezone(UTC)
    return utc.strftime(f"{_pattern(show, utc)} %H:%M")


def typed(show: ShowAs, value: Decimal) -> str:
    """A number as people would type it in a form, without group marks."""
    return format(value, "f").replace(".", show.numbers.marks[1])


def read_number(show: ShowAs, text: str) -> Decimal | None:
    """Read a typed number, in the visitor's form or the reports'; None if it is no number.

    Raises DecisionRefused for a text that the two forms read as different numbers.
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
    """Read a day in the visitor's form or in ISO form; None if it is no day."""
    for form in (AS_EVER.dates.pattern, show.dates.pattern):
        try:
            return datetime.strptime(text, form).replace(tzinfo=UTC).date()
        except ValueError:
            continue
    return None


def _pattern(show: ShowAs, of: date) -> str:
    # Whether `%Y` pads years before 1000 with zeros depends on the platform.
    return show.dates.pattern.replace("%Y", f"{of.year:04}")


def _unsigned(text: str) -> tuple[str, bool]:
    """A number without its sign, wherever that stands, and whether it is negative."""
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
