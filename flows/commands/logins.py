"""Logins: `recon login`, `logout` and `whoami`."""

from dataclasses import asdict
from typing import Annotated

from cyclopts import Parameter

from connectors.errors import SettingsError
from connectors.settings import read_settings
from flows.commands.console import out, print_json, within, workspace
from flows.commands.deliver import Json
from flows.commands.kept_login import drop_token, keep_token, typed
from flows.commands.people import Name
from schemas.accounts import HOURS


def login_command(
    name: Name,
    *,
    hours: Annotated[
        int,
        Parameter(help="Hours after which the login ends by itself.", validator=within(1, HOURS)),
    ] = HOURS,
) -> int:
    """Log in: what you decide and sign here is recorded as yours until you log out.

    The password is asked for; without a terminal, it is the first line of standard input.

    Example: `recon login anna.meyer`
    """
    from connectors.postgres.accounts import acting, log_in

    path = read_settings().login_file
    if path is None:
        raise SettingsError(
            "There is no home folder to keep the login in. Name a file: RECON_LOGIN_FILE."
        )
    password = typed(f"Password of {name}: ", f"the password of {name}")
    with workspace(say_held=False) as place:
        with place.database.connect() as connection:
            token = log_in(connection, name, password, hours * 3600)
        keep_token(path, token)
        with place.database.as_login(token).connect() as connection:
            person = acting(connection)
    assert person is not None, "whoever has just logged in is"
    out().print(
        f"{person.full_name} ({person.name}) is logged in for {hours} h as "
        f"{', '.join(person.roles)}."
    )
    return 0


def logout_command() -> int:
    """Log out.

    Example: `recon logout`
    """
    from connectors.postgres.accounts import acting, log_out

    with workspace(say_held=False) as place, place.database.connect() as connection:
        person = acting(connection)
        log_out(connection)
        drop_token(place.settings.login_file)
    out().print(f"{person.name} is logged out." if person else "Nobody was logged in.")
    return 0


def whoami_command(*, json: Json = False) -> int:
    """Show who is logged in here, and what they may do.

    Example: `recon whoami`
    """
    from connectors.postgres.accounts import acting, has_accounts

    with workspace(say_held=False) as place, place.database.connect() as connection:
        person, accounts = acting(connection), has_accounts(connection)
    if json:
        print_json({"account": asdict(person) if person else None, "accounts": accounts})
    elif person:
        of = f", tenants {', '.join(map(str, person.tenants))}" if person.tenants else ""
        out().print(f"{person.full_name} ({person.name}): {', '.join(person.roles)}{of}")
    elif accounts:
        out().print("Nobody is logged in: `recon login NAME`.")
    else:
        out().print("There are no accounts: every decision and signature is self-declared.")
    return 0
