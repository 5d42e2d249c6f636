"""Accounts: `recon user`."""

import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from connectors.errors import AccountUnknown, LoginRefused, SettingsError
from flows.commands.console import ANY_ID, out, print_json, print_table, workspace
from flows.commands.deliver import Json
from flows.commands.kept_login import typed
from schemas.accounts import SUBJECT, AccountRole, is_subject
from schemas.show_as import Dates, Negatives, Numbers, ShowAs

if TYPE_CHECKING:
    from connectors.postgres.accounts import Account

user_command = App(
    name="user", help="Manage accounts: add, list, change and disable them, set passwords."
)

Name = Annotated[str, Parameter(help="Name of the account, such as anna.meyer.")]
Roles = Annotated[
    tuple[AccountRole, ...],
    Parameter(
        name="--role",
        help="Role; may be repeated. Every account may also view the data of its tenants.",
    ),
]
Tenants = Annotated[
    tuple[int, ...],
    Parameter(
        name="--tenant",
        help="Bind the account to this TenantsId; may be repeated.",
        validator=ANY_ID,
    ),
]


def may_be_subject(_type: object, text: str | None) -> None:
    """A validator of who somebody is at a provider or proxy; empty for nobody there."""
    if text and not is_subject(text):
        raise ValueError(f"Must be {SUBJECT}.")


Subject = Annotated[
    str | None,
    Parameter(
        help=f"Identity at a login provider or proxy: {SUBJECT}; with it, the account has no "
        "password.",
        validator=may_be_subject,
    ),
]

LIMIT_DIGITS, LIMIT_DECIMALS = 20, 18


def may_limit(_type: object, above: Decimal | None) -> None:
    """A validator of the amount above which two people decide: one that the database can keep."""
    if above is None:
        return
    text = format(above, "f") if above.is_finite() else ""
    whole, _, decimals = text.partition(".")
    if not (whole.isdecimal() and len(whole) <= LIMIT_DIGITS and len(decimals) <= LIMIT_DECIMALS):
        raise ValueError(
            f"Must be an amount from 0 on, with at most {LIMIT_DIGITS} digits before the point and "
            f"{LIMIT_DECIMALS} behind it."
        )


Scope = Annotated[str, Parameter(help='Scope as `recon report` shows it, such as "tenants 7".')]


@user_command.command(name="add")
def add_command(
    name: Name,
    *,
    full_name: Annotated[str, Parameter(help="Full name, as reports show it.")],
    role: Roles = (AccountRole.VIEWER,),
    tenant: Tenants = (),
    subject: Subject = None,
) -> int:
    """Add an account; its password is asked for, unless --subject is given.

    The owner of the database schema adds the first account. From then on, decisions and signatures
    need a login. Without --tenant, the account is bound to no tenant.

    Example: `recon user add anna.meyer --full-name "Anna Meyer" --role preparer`
    """
    from connectors.postgres.accounts import Account, keep_account, list_accounts, set_password
    from flows.stages.witness import witnessed

    account = Account(name, full_name, tuple(dict.fromkeys(role)), tenant, subject or None)
    password = None if subject else _typed_twice(name)
    with workspace(say_held=False) as place, place.database.connect() as connection:
        there = [one.name for one in list_accounts(connection)]
        if name in there:
            raise AccountUnknown(
                f"There is an account {name} already. Change it: recon user change {name}"
            )
        with witnessed(place, connection):
            keep_account(connection, account, seen=0)
            if password is not None:
                set_password(connection, name, password)
    out().print(f"{full_name} ({name}) is added as {', '.join(account.roles)}.")
    if not there:
        out().print("It is the first account: decisions and signatures need a login from now on.")
    return 0


@user_command.command(name="list")
def list_command(*, json: Json = False) -> int:
    """List accounts with their roles.

    Example: `recon user list`
    """
    from connectors.postgres.accounts import list_accounts

    with workspace(say_held=False) as place, place.database.connect() as connection:
        accounts = list_accounts(connection)
    if json:
        print_json({"accounts": [asdict(one) for one in accounts]})
        return 0
    print_table(
        ("Name", "Full name", "Roles", "Tenants", "Known as", "State", "Refused"),
        [
            (one.name, one.full_name, ", ".join(one.roles),
             ", ".join(map(str, one.tenants)) or "all", one.subject,
             "disabled" if one.disabled else "", one.failed or "")
            for one in accounts
        ],
        right=("Refused",),
    )  # fmt: skip
    return 0


@user_command.command(name="change")
def change_command(
    name: Name,
    *,
    full_name: Annotated[str | None, Parameter(help="Full name, as reports show it.")] = None,
    role: Roles = (),
    tenant: Tenants = (),
    all_tenants: Annotated[bool, Parameter(help="Bind the account to no tenant.")] = False,
    subject: Subject = None,
) -> int:
    """Change the given details of an account; the others stay.

    --role and --tenant replace all roles and tenants. After an empty --subject, the account needs a
    password again.

    Example: `recon user change anna.meyer --role preparer --role approver`
    """
    if tenant and all_tenants:
        raise SettingsError("Give either --tenant or --all-tenants, not both.")

    def changed(account: "Account") -> "Account":
        return replace(
            account,
            full_name=account.full_name if full_name is None else full_name,
            roles=tuple(dict.fromkeys(role)) or account.roles,
            tenants=() if all_tenants else tenant or account.tenants,
            subject=account.subject if subject is None else subject or None,
        )

    account = _kept(name, changed)
    out().print(f"{account.full_name} ({name}) is {', '.join(account.roles)}.")
    return 0


@user_command.command(name="disable")
def disable_command(name: Name) -> int:
    """Disable an account: it is logged out everywhere, at once.

    Example: `recon user disable anna.meyer`
    """
    _kept(name, lambda account: replace(account, disabled=True))
    out().print(f"{name} is disabled. What they decided and signed stays.")
    return 0


@user_command.command(name="enable")
def enable_command(name: Name) -> int:
    """Let a disabled account log in again.

    Example: `recon user enable anna.meyer`
    """
    _kept(name, lambda account: replace(account, disabled=False))
    out().print(f"{name} may log in.")
    return 0


@user_command.command(name="password")
def password_command(name: Name) -> int:
    """Set a password, and end every other login of the account.

    To change your own, type the current one first; an administrator and the owner of the schema may
    set any. Without a terminal, passwords are read from standard input, a line each.

    Example: `recon user password anna.meyer`
    """
    from connectors.postgres.accounts import acting, set_password
    from flows.stages.witness import witnessed_either_way

    with workspace(say_held=False) as place, place.database.connect() as connection:
        person = acting(connection)
        own = person is not None and person.name == name
        old = typed(f"Current password of {name}: ", "the current password") if own else None
        new = _typed_twice(name)
        with witnessed_either_way(place, connection):
            set_password(connection, name, new, old)
    out().print(f"The password of {name} is set.")
    return 0


@user_command.command(name="subscribe")
def subscribe_command(
    name: Name,
    scope: Scope,
    *,
    address: Annotated[str, Parameter(help="E-mail address, such as anna@example.com.")],
) -> int:
    """Mail an account the report of each run of a scope from now on.

    Everybody may do this for their own account, an administrator for any.

    Example: `recon user subscribe anna.meyer "tenants 7" --address anna@example.com`
    """
    scope = _subscribed(name, scope, address)
    out().print(f"{name} is sent the reports of {scope} at {address}, from the next run on.")
    return 0


@user_command.command(name="unsubscribe")
def unsubscribe_command(name: Name, scope: Scope) -> int:
    """Stop mailing an account the reports of a scope.

    Example: `recon user unsubscribe anna.meyer "tenants 7"`
    """
    scope = _subscribed(name, scope, None)
    out().print(f"{name} is sent no more reports of {scope}.")
    return 0


@user_command.command(name="show-as")
def show_as_command(
    name: Name,
    *,
    dates: Annotated[
        Dates | None,
        Parameter(
            help="Format of dates: 2026-11-23, 23.11.2026, 23/11/2026 or 11/23/2026, in the "
            "order of the choices."
        ),
    ] = None,
    numbers: Annotated[
        Numbers | None,
        Parameter(help="Separator of digit groups, then the decimal separator."),
    ] = None,
    negatives: Annotated[
        Negatives | None,
        Parameter(
            help="Format of negative amounts: -1.00, (1.00) or 1.00-, in the order of the choices."
        ),
    ] = None,
) -> int:
    """Choose how an account is shown dates and numbers at the desk; what is not given stays.

    Everybody may do this for their own account, an administrator for any. Files and what is signed
    keep one format.

    Example: `recon user show-as anna.meyer --dates dots --numbers point-comma`
    """
    from connectors.postgres.accounts import choose_show_as, chosen_show_as

    with workspace(say_held=False) as place, place.database.connect() as connection:
        before = chosen_show_as(connection, name)
        if before is None:
            raise AccountUnknown(f"There is no account {name} that you may see: `recon user list`.")
        chosen = ShowAs(
            dates or before.dates, numbers or before.numbers, negatives or before.negatives
        )
        if chosen != before:
            choose_show_as(connection, name, chosen)
    out().print(
        f"{name} is shown dates as {chosen.dates}, numbers as {chosen.numbers} and negatives as "
        f"{chosen.negatives}."
    )
    return 0


@user_command.command(name="limit")
def limit_command(
    *,
    currency: Annotated[
        int | None, Parameter(help="CurrenciesId; default: all that have no limit of their own.")
    ] = None,
    above: Annotated[
        Decimal | None,
        Parameter(help="Amount above which an acceptance takes two people.", validator=may_limit),
    ] = None,
    none: Annotated[bool, Parameter(help="Remove the limit.")] = False,
    json: Json = False,
) -> int:
    """Set the amount above which an acceptance takes two people; without options, list the limits.

    Example: `recon user limit --currency 978 --above 1000`
    """
    from connectors.postgres.accounts import keep_limit, list_limits
    from flows.stages.witness import witnessed

    if none and above is not None:
        raise SettingsError("Give either --above or --none, not both.")
    if currency is not None and above is None and not none:
        raise SettingsError(
            f"Say what to set for --currency {currency}: add --above AMOUNT or --none."
        )
    with workspace(say_held=False) as place, place.database.connect() as connection:
        if none or above is not None:
            with witnessed(place, connection):
                keep_limit(connection, "*" if currency is None else str(currency), above)
        limits = list_limits(connection)
    if json:
        print_json({"limits": {name: format(limit, "f") for name, limit in limits.items()}})
    elif limits:
        print_table(
            ("CurrenciesId", "Two people above"),
            [
                ("all others" if name == "*" else name, format(limit, "f"))
                for name, limit in limits.items()
            ],
            right=("Two people above",),
        )
    else:
        out().print("There is no limit: no acceptance takes two people.")
    return 0


def _subscribed(name: str, scope_text: str, address: str | None) -> str:
    from connectors.postgres.runs.reconciliations import latest_run
    from connectors.postgres.runs.subscriptions import keep_subscription
    from flows.stages.reconcile.scope import scope_meant
    from flows.stages.witness import witnessed

    with (
        workspace(say_held=False) as place,
        place.database.connect() as connection,
        witnessed(place, connection),
    ):
        # A scope of an earlier version may have exactly the text that was typed.
        scope = scope_text if latest_run(connection, scope_text) else scope_meant(scope_text)
        keep_subscription(connection, name, scope, address)
    return scope


def _kept(name: str, changed: Callable[["Account"], "Account"]) -> "Account":
    from connectors.postgres.accounts import keep_account, list_accounts
    from flows.stages.witness import witnessed

    with workspace(say_held=False) as place, place.database.connect() as connection:
        account = next((one for one in list_accounts(connection) if one.name == name), None)
        if account is None:
            raise AccountUnknown(f"There is no account {name} that you may see: `recon user list`.")
        account = changed(account)
        with witnessed(place, connection):
            keep_account(connection, account, seen=account.event_id)
    return account


def _typed_twice(name: str) -> str:
    password = typed(f"New password of {name}: ", f"the new password of {name}")
    if sys.stdin.isatty() and typed("Once more: ", "it once more") != password:
        raise LoginRefused("The two passwords are not the same. Nothing was changed.")
    return password
