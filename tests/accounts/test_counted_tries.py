"""A try of a password is counted whatever becomes of its transaction, apart by what it is for."""

import psycopg
import pytest

from connectors.errors import LoginRefused
from connectors.postgres.accounts import log_in, set_password
from flows.stages.workspace import Workspace
from schemas.guards.logins import TRIES
from schemas.guards.roles import READER
from tests.accounts.people import ANNA, PASSWORD, add, logged_in
from tests.accounts.test_accounts import JUST_NOW, last_try, refused_tries
from tests.stages.conftest import As
from tests.stages.conftest import acting as acting  # noqa: PLC0414 -- the fixture.

TAKEN_BACK = {
    "login": "SELECT 1 / (recon.log_in('anna', %s, repeat('a', 64), 1) = 'ok')::int",
    "change": "SELECT 1 / (recon.set_password('anna', 'x', 'x', %s, 'x') IS NOT NULL)::int",
}
"""Statements that fail behind a wrong try; behind a right one they end otherwise."""


@pytest.mark.long
@pytest.mark.parametrize("asked_for", TAKEN_BACK)
def test_a_try_that_is_taken_back_is_counted(
    workspace: Workspace, acting: As, asked_for: str
) -> None:
    """Whoever guesses with a role of the database takes back whatever they can."""
    add(workspace, ANNA)
    place = logged_in(acting(READER), ANNA)
    with place.database.connect() as connection:
        for _ in range(TRIES):
            with pytest.raises(psycopg.errors.DivisionByZero):
                connection.execute(TAKEN_BACK[asked_for], ["00"])
            connection.rollback()
    with workspace.database.connect() as owner:
        assert refused_tries(owner, asked_for) == TRIES
        other = {"login": "change", "change": "login"}[asked_for]
        assert refused_tries(owner, other) == 0
        last_try(owner, JUST_NOW, asked_for)
    with place.database.connect() as connection:
        if asked_for == "change":
            with pytest.raises(LoginRefused, match="or the account waits"):
                set_password(connection, "anna", "a staple of batteries", PASSWORD)
            log_in(connection, "anna", PASSWORD)
        else:
            with pytest.raises(LoginRefused, match="or it waits"):
                log_in(connection, "anna", PASSWORD)
            set_password(connection, "anna", "a staple of batteries", PASSWORD)


def test_nobody_but_the_database_counts(acting: As, workspace: Workspace) -> None:
    add(workspace, ANNA)
    with acting(READER).database.connect() as connection:
        for statement in (
            "SELECT recon.forget_tries('anna', 'login')",
            "SELECT setval(recon.tries('anna', 'login')::regclass, 1)",
            "SELECT setval(('recon.tries_' || md5('login anna'))::regclass, 1)",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement)  # type: ignore[call-overload]
            connection.rollback()
