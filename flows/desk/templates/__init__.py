"""The pages' templates: every text escaped, a name that is not given an error."""

from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cache, partial

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from flows.desk.filters import NONE
from flows.report.spelling import digits, neutral, record_title, visible
from schemas.counting import agree, quantity


def moment(at: datetime) -> str:
    """A moment to the minute, in UTC."""
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M")


def money(amount: Decimal | None, *, signed: bool = False) -> str:
    """An amount, exact, with two decimals or more; nothing where there is none."""
    return "" if amount is None else digits(amount, signed=signed)


def day(of: date | None) -> str:
    """A day as ISO writes it."""
    return "" if of is None else of.isoformat()


def worded(constant: str | None) -> str:
    """A verdict or state in words: `RECONCILED_WITH_ACCEPTED` as people say it."""
    text = (constant or "").replace("_", " ").lower()
    return text[:1].upper() + text[1:]


def currency(of: str | int | None, names: Mapping[str, str]) -> str:
    """A currency as `978 EUR` where the settings name it; a dash stands for none."""
    if of is None or of in ("", NONE):
        return "no currency"
    code = names.get(str(of))
    return f"{of} {neutral(code, 20)}" if code else f"currency {of}"


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("flows.desk", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "agree": agree,
        "currency": currency,
        "day": day,
        "digits": digits,
        "moment": moment,
        "money": money,
        "neutral": neutral,
        "quantity": partial(quantity, spell=digits),
        "record": record_title,
        "visible": visible,
        "worded": worded,
    }
    return environment


def page(name: str) -> Template:
    """The template of this name."""
    return _environment().get_template(name)
