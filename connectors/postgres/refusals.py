"""Database errors as a user is told them: what failed, what stands, what to do next.

Only the first line of the server's message is kept, because details quote rows. Details
that name dependent objects are the exception.
"""

import re

import psycopg
from psycopg import errors

from connectors.errors import (
    AccountRefused,
    DatabaseLost,
    DatabaseUnusable,
    ReconError,
    StatementRefused,
)
from schemas.counting import first_of
from schemas.guards.accounts import NOBODY, NOT_THERE, NOT_YOURS, REFUSED
from schemas.guards.roles import OWNER, role_for

AGAIN = "What was committed is kept; run the command again and it goes on from there."
NOT_OURS = (errors.UndefinedTable, errors.UndefinedColumn, errors.UndefinedFunction)
MOST_NAMED = 10
"""How many dependent objects a message names."""
NO_ROOM = "53"
"""SQLSTATE class of a server that lacks disk, memory or connections."""
LIMIT = "54"
"""SQLSTATE class for input beyond a fixed limit of the server; a retry fails again."""
TIMEOUTS = {
    errors.TransactionTimeout.sqlstate: "transaction_timeout",
    errors.IdleInTransactionSessionTimeout.sqlstate: "idle_in_transaction_session_timeout",
    errors.IdleSessionTimeout.sqlstate: "idle_session_timeout",
}
"""Settings of the server, the database or the role that end a session in the middle of its work."""
INSTEAD = {
    NOBODY: "Log in with `recon login`, then do it again.",
    NOT_YOURS: "Ask somebody who has the right, or an administrator for it.",
    NOT_THERE: "`recon status`, `recon jobs`, `recon user list` and `recon acceptance list` show "
    "what there is; page one of a report names its scope.",
}
"""What to do when an account lacks a right; errors about a broken rule say so themselves."""
_DENIED = re.compile(r"permission denied for (table|view|function|event) '?([^':]+)")


def as_recon_error(
    error: psycopg.Error, *, lost: bool, user: str = "", last_words: errors.Diagnostic | None = None
) -> ReconError:
    """Translate the error for a user; `lost` says that the connection of `user` is gone.

    `last_words` is the server's message on ending the session, used if the error has no SQLSTATE.
    """
    diag = last_words if last_words is not None and error.sqlstate is None else error.diag
    lines = str(error).strip().splitlines() or [type(error).__name__]
    message = diag.message_primary or lines[0]
    state = f" (SQLSTATE {diag.sqlstate})" if diag.sqlstate else ""
    if (setting := TIMEOUTS.get(diag.sqlstate or "")) is not None:
        # Not retried: the same setting would end the session again.
        return StatementRefused(
            f"The server ended the session by its setting {setting}: {message}{state}. Nothing of "
            "an open transaction was written. Have more time allowed: "
            f"`ALTER ROLE {user or 'NAME'} SET {setting} = 0` takes the limit away from this role. "
            f"{AGAIN}"
        )
    if lost and isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return DatabaseLost(f"The connection to the database was lost: {message}{state}. {AGAIN}")
    if error.sqlstate and error.sqlstate.startswith(NO_ROOM):
        return DatabaseUnusable(
            f"The database server has no room left: {message}{state}. Make room there. {AGAIN}"
        )
    if error.sqlstate and error.sqlstate.startswith(REFUSED):
        instead = INSTEAD.get(error.sqlstate, "")
        parts = f"{message[:1].upper()}{message[1:]}.", instead, "Nothing was changed."
        return AccountRefused(" ".join(filter(None, parts)))
    if isinstance(error, errors.InsufficientPrivilege):
        return StatementRefused(
            f"The role {user or 'that connected'} lacks a right: {message}{state}. "
            f"{_who_may(message)} {AGAIN}"
        )
    if isinstance(error, errors.ReadOnlySqlTransaction):
        return StatementRefused(
            f"The database server is read-only: {message}{state}. Connect to the primary, or "
            f"where it is one, have default_transaction_read_only switched off. {AGAIN}"
        )
    if isinstance(error, errors.DependentObjectsStillExist):
        in_the_way = (diag.message_detail or message).splitlines()
        return DatabaseUnusable(
            "Something in the database that recon did not make was made of what it has to change: "
            f"{first_of(in_the_way, MOST_NAMED, by='; ', end='; and')}. Keep how these were made "
            "(`pg_dump --schema-only` writes it), drop them, run the same command again, and make "
            "them again behind it. Nothing was changed."
        )
    if isinstance(error, NOT_OURS):
        return StatementRefused(
            f"The schema is not what this version made: {message}{state}. Restore it. {AGAIN}"
        )
    if error.sqlstate and error.sqlstate.startswith(LIMIT):
        return StatementRefused(
            f"A limit of the database server is in the way: {message}{state}. Nothing of its "
            "transaction was written. Give it less, such as shorter values: the same is refused "
            "again."
        )
    if isinstance(error, psycopg.DataError):
        return StatementRefused(
            f"A value that was given cannot be kept or looked for: {message}{state}. Nothing of "
            "its transaction was written. Correct the value: the same one is refused again."
        )
    return StatementRefused(
        f"The database refused a statement: {message}{state}. Nothing of its transaction was "
        f"written; the server's log has the rest. {AGAIN}"
    )


def _who_may(message: str) -> str:
    """Say which of our roles has the missing right, as far as the message names it."""
    found = _DENIED.search(message)
    role = role_for(*found.groups()) if found else None
    if role is None:
        return "Connect as a role that has it; docs/production.md lists what each may."
    if role == OWNER:
        return "Only the owner of the schema has it."
    return f"Connect as a member of {role}."
