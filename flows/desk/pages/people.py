"""Accounts: all of them, for administrators, and one's own."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from decimal import Decimal
from functools import partial

from starlette.responses import Response

from connectors.errors import (
    AccountRefused,
    AccountUnknown,
    LoginRefused,
    ReconError,
    SettingsError,
)
from connectors.postgres.accounts import (
    Account,
    choose_show_as,
    keep_account,
    list_accounts,
    list_limits,
    set_password,
)
from connectors.postgres.runs.subscriptions import (
    keep_subscription,
    list_subscriptions,
    scopes_to_follow,
)
from flows.desk.formats import day, number
from flows.desk.forms import LARGEST_ROW, FormIncomplete, read_tenant, read_whole, refused, taken
from flows.desk.visit import Visit
from flows.stages.witness import witnessed, witnessed_either_way
from schemas.accounts import SUBJECT, AccountRole, is_subject
from schemas.show_as import Dates, Negatives, Numbers, ShowAs

EXAMPLES: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "dates": ("Dates", {one: day(ShowAs(dates=one), date(2026, 11, 23)) for one in Dates}),
    "numbers": (
        "Numbers",
        {one: number(ShowAs(numbers=one), Decimal("1234.56")) for one in Numbers},
    ),
    "negatives": (
        "Negatives",
        {one: number(ShowAs(negatives=one), Decimal("-1.00")) for one in Negatives},
    ),
}
"""Each choice with an example: name -> its title, and word -> example."""


def keep(visit: Visit) -> Response:
    """Add or change an account; a refusal keeps what was typed."""
    return taken(visit, lambda: _keep(visit), show)


def subscribe(visit: Visit) -> Response:
    """Begin or stop having the reports of a scope mailed to oneself."""
    if visit.person is None:
        return own(visit)
    name = visit.person.name
    return taken(visit, lambda: _subscribe(visit, name), own)


def change_password(visit: Visit) -> Response:
    """Set one's own password, given the former one."""
    if visit.person is None:
        return own(visit)
    try:
        new = str(visit.form.get("new", ""))
        if new != visit.form.get("again"):
            raise LoginRefused("The two new passwords are not the same. Nothing was changed.")
        with (
            visit.place.database.connect() as connection,
            witnessed_either_way(visit.place, connection),
        ):
            set_password(connection, visit.person.name, new, str(visit.form.get("old", "")))
    except ReconError as error:
        return own(refused(visit, error))
    return own(visit, done=True)


def _subscribe(visit: Visit, name: str) -> str:
    address = visit.typed("address") if visit.typed("what") == "subscribe" else None
    with visit.place.database.connect() as connection, witnessed(visit.place, connection):
        keep_subscription(connection, name, str(visit.form.get("scope", "")), address)
    return "/account"


def own(visit: Visit, *, done: bool = False) -> Response:
    """One's own account, and the reports that are mailed to it."""
    mine, scopes = [], []
    if visit.person is not None:
        with visit.place.database.connect() as connection:
            mine = list_subscriptions(connection, visit.person.name)
            scopes = scopes_to_follow(connection)
    return visit.page(
        "account.html.jinja",
        done=done,
        subscriptions=mine,
        scopes=scopes,
        examples=EXAMPLES,
    )


def show_as(visit: Visit) -> Response:
    """Choose how dates and numbers are written on one's own pages."""
    if visit.person is None:
        return visit.go("/account")
    try:
        chosen = ShowAs(
            Dates(visit.typed("dates")),
            Numbers(visit.typed("numbers")),
            Negatives(visit.typed("negatives")),
        )
    except ValueError:
        raise SettingsError("There is no such form. Choose one of those of the page.") from None
    with visit.place.database.connect() as connection:
        choose_show_as(connection, visit.person.name, chosen)
    return visit.go("/account")


def show(visit: Visit) -> Response:
    """Every account, and the amounts above which an acceptance takes two people.

    Like in the trail, an account bound to tenants sees no accounts, since they name others.
    """
    with visit.place.database.connect() as connection:
        accounts = [] if visit.is_bound else list_accounts(connection)
        limits = list_limits(connection)
    return visit.page(
        "people.html.jinja",
        accounts=accounts,
        refused=partial(_is_of, visit),
        limits=limits,
        roles=[*AccountRole],
        may=visit.may(AccountRole.ADMINISTRATOR) and not visit.is_bound,
    )


def _is_of(visit: Visit, account: Account | None) -> bool:
    """Whether the form is about an account in its present version, or a new one, and so refilled.

    Sent again, values typed over an account that somebody has changed since would undo that change.
    """
    if account is None:
        return visit.typed("what") == "add"
    sent = (visit.typed("what"), visit.typed("name"), visit.typed("seen"))
    return sent == ("change", account.name, str(account.event_id))


def _keep(visit: Visit) -> str:
    if visit.person is None:
        # A desk may run as the schema's owner, but its visitors are not the owner.
        raise AccountRefused("The first account is added by `recon user add`, not here.")
    name, password = visit.typed("name"), str(visit.form.get("password", ""))
    with visit.place.database.connect() as connection:
        there = {one.name: one for one in list_accounts(connection)}
        seen = read_whole(visit.typed("seen"), LARGEST_ROW) or 0
        if visit.typed("what") == "add":
            if name in there:
                raise AccountUnknown(f"There is an account {name} already.")
            account = _typed(visit, Account(name, "", ()))
        elif name not in there:
            raise AccountUnknown(f"There is no account {name!r}.")
        elif visit.typed("what") in ("disable", "enable"):
            account = replace(there[name], disabled=visit.typed("what") == "disable")
        else:
            account = _typed(visit, there[name])
        if password and name == visit.person.name:
            raise FormIncomplete(
                "Your own password is changed on the page under your name, which asks for the one "
                "before. Nothing was changed."
            )
        with witnessed(visit.place, connection):
            keep_account(connection, account, seen)
            if password:
                set_password(connection, name, password)
    return "/people"


def _typed(visit: Visit, account: Account) -> Account:
    roles = [str(one) for one in visit.form.getlist("role")]
    tenants = visit.typed("tenants").replace(",", " ").split()
    if not {*roles} <= {*map(str, AccountRole)}:
        raise AccountUnknown("There is no such role.")
    numbers = [number for one in tenants if (number := read_tenant(one)) is not None]
    if len(numbers) < len(tenants):
        raise FormIncomplete(f"{visit.typed('tenants')!r} are no numbers of tenants, as 7 12.")
    subject = visit.typed("subject")
    if subject and not is_subject(subject):
        raise FormIncomplete(
            f"Known as {subject!r} shows nobody: write {SUBJECT}. Nothing was changed."
        )
    return replace(
        account,
        full_name=visit.typed("full_name"),
        roles=tuple(map(AccountRole, roles)),
        tenants=tuple(numbers),
        subject=subject or None,
    )
