"""Who keeps accounts is bound to none of the rights that they give, and what is lost with them."""

from collections.abc import Callable
from dataclasses import replace

import psycopg
import pytest

from connectors.errors import AccountRefused, LoginRefused
from connectors.postgres.accounts import (
    acting,
    choose_show_as,
    keep_account,
    keep_limit,
    list_accounts,
    log_in,
    log_out,
    set_password,
)
from connectors.postgres.auditing.audit import verify
from connectors.postgres.runs.subscriptions import keep_subscription
from flows.stages.workspace import Workspace
from schemas.show_as import AS_EVER
from tests.accounts.people import ADA, ANNA, CLEO, PASSWORD, TESSA, add, logged_in
from tests.accounts.test_accounts import KEEPING
from tests.governance.runs import SCOPE, found, reconcile

OF_ALL: dict[str, Callable[[psycopg.Connection], object]] = KEEPING | {
    "own tenants": lambda connection: keep_account(connection, ADA),
    "limit": lambda connection: keep_limit(connection, "1", None),
    "mail": lambda connection: keep_subscription(connection, "anna", SCOPE, "ada@example.com"),
    "show": lambda connection: choose_show_as(connection, "anna", AS_EVER),
}


OWN: dict[str, Callable[[psycopg.Connection], object]] = {
    "own password": lambda connection: set_password(connection, "ada", "a new password", "a guess"),
    "own show": lambda connection: choose_show_as(connection, "ada", AS_EVER),
}
"""What takes no role, but to be who it is about."""


@pytest.mark.long
@pytest.mark.parametrize("what", OF_ALL)
def test_who_is_bound_to_tenants_keeps_nothing_for_others(
    workspace: Workspace, controller: str, what: str
) -> None:
    ada = replace(ADA, tenants=(7,))
    add(workspace, ada, ANNA, CLEO)
    reconcile(workspace, found())
    lesser = replace(workspace, database=type(workspace.database)(controller, 10))
    with (
        pytest.raises(AccountRefused, match=r"Ada acts for the tenants 7 alone, and .* is for all"),
        logged_in(lesser, ada).database.connect() as connection,
    ):
        OF_ALL[what](connection)
    with logged_in(lesser, ada).database.connect() as connection:
        choose_show_as(connection, "ada", AS_EVER)
        set_password(connection, "ada", "another password", PASSWORD)
    add(workspace, ADA)
    with logged_in(lesser, ADA).database.connect() as connection:
        OF_ALL[what](connection)


@pytest.mark.long
def test_a_login_that_has_ended_is_not_that_of_the_owner(workspace: Workspace) -> None:
    """A desk may connect as the owner of the schema, and a login end while a form is answered."""
    add(workspace, ADA, ANNA, CLEO)
    reconcile(workspace, found())
    ended = logged_in(workspace, ADA)
    with ended.database.connect() as connection:
        log_out(connection)
    for keep in (OF_ALL | OWN).values():
        with (
            pytest.raises(AccountRefused, match="Nobody is logged in"),
            ended.database.connect() as connection,
        ):
            keep(connection)
    with workspace.database.connect() as connection:
        assert log_in(connection, "ada", PASSWORD)
        keep_limit(connection, "1", None)


def test_an_account_is_shown_to_itself_and_to_who_sees_all(
    workspace: Workspace, controller: str
) -> None:
    """By whichever database account: a desk may connect as the owner of the schema."""
    add(workspace, ADA, ANNA, TESSA)
    lesser = replace(workspace, database=type(workspace.database)(controller, 10))

    def shown(place: Workspace) -> list[str]:
        with place.database.connect() as connection:
            return [one.name for one in list_accounts(connection)]

    for place in (workspace, lesser):
        assert shown(logged_in(place, TESSA)) == ["tessa"]
        assert shown(logged_in(place, ADA)) == ["ada", "anna", "tessa"]
    assert shown(workspace) == ["ada", "anna", "tessa"]
    with pytest.raises(LoginRefused, match="Nobody is logged in, or the login has ended"):
        shown(lesser)


def test_whom_a_provider_shows_from_now_on_has_no_password(workspace: Workspace) -> None:
    add(workspace, ANNA)
    known = replace(ANNA, subject="oidc https://id.example.com 4711")
    for account, still in ((replace(ANNA, full_name="A."), True), (known, False)):
        with (
            logged_in(workspace, ANNA).database.connect() as of_anna,
            workspace.database.connect() as connection,
        ):
            keep_account(connection, account)
            assert (acting(of_anna) is not None) is still
    with workspace.database.connect() as connection:
        with pytest.raises(LoginRefused):
            log_in(connection, "anna", PASSWORD)
        assert verify(connection).broken is None
        keep_account(connection, ANNA)
        with pytest.raises(LoginRefused):
            log_in(connection, "anna", PASSWORD)
