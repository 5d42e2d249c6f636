"""The pages' templates: every text is escaped, and an undefined name is an error."""

from collections.abc import Mapping
from functools import cache, partial

from jinja2 import Environment, Template

from flows.desk.filters import NONE
from flows.desk.formats import day, moment, money, number
from flows.report.reconciled.first_page import NOTES
from flows.report.reconciled.verdicts import word_of
from flows.report.reconciled.words import stated_amount
from flows.report.spelling import EMPTY, currency_named, neutral, record_title, visible
from flows.report.template import environment
from flows.stages.reconcile.scope import scope_title
from schemas.accounts import takes_role
from schemas.counting import quantity
from schemas.life import GONE, PLACES
from schemas.show_as import ShowAs


def worded(constant: str | None) -> str:
    """A state in words for people, such as `NOT_LOOKED_AT`."""
    text = GONE.get(constant or "", (constant or "").replace("_", " ").lower())
    return text[:1].upper() + text[1:]


def currency(of: str | int | None, names: Mapping[str, str]) -> str:
    return currency_named("" if of is None or of == NONE else str(of), names)


def value(show: ShowAs, text: str | None, record: str, field: str, most: int) -> str:
    """What a break says was expected or found; money as everywhere on the desk."""
    amount = stated_amount(record, field or "", text)
    if amount is not None:
        return money(show, amount)
    return EMPTY if text == "" else neutral(text or "", most)


@cache
def _environment(show: ShowAs) -> Environment:
    # One environment for each form, because macros need it and do not know the visitor.
    spell = partial(number, show)
    return environment(
        "flows.desk",
        "templates",
        currency=currency,
        day=partial(day, show),
        digits=spell,
        moment=partial(moment, show),
        money=partial(money, show),
        noted=NOTES.__getitem__,
        placed=PLACES.__getitem__,
        quantity=partial(quantity, spell=spell),
        record=record_title,
        takes=takes_role,
        scope=lambda text: visible(scope_title(text)),
        value=partial(value, show),
        verdict=word_of,
        worded=worded,
    )


def page(name: str, show: ShowAs) -> Template:
    """The template of this name, with figures in the chosen form."""
    return _environment(show).get_template(name)
