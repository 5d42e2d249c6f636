"""What the database said, as a user is told it: what failed, what stands, what to do next.

Only the first line of its message is kept, which quotes no row; details would.
"""

import psycopg
from psycopg import errors

from connectors.errors import DatabaseLost, DatabaseUnusable, ReconError, StatementRefused

AGAIN = "What was committed is kept; run the command again and it goes on from there."
NOT_OURS = (errors.UndefinedTable, errors.UndefinedColumn, errors.UndefinedFunction)
NO_ROOM = "53"
"""The class of SQLSTATE of a server that lacks disk, memory or connections."""


def told(error: psycopg.Error, *, lost: bool) -> ReconError:
    """The error as text; `lost`: the connection did not outlive it."""
    said = error.diag.message_primary or _first_line(error)
    state = f" (SQLSTATE {error.sqlstate})" if error.sqlstate else ""
    if lost and isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return DatabaseLost(f"The connection to the database was lost: {said}{state}. {AGAIN}")
    if error.sqlstate and error.sqlstate.startswith(NO_ROOM):
        return DatabaseUnusable(
            f"The database server has no room left: {said}{state}. Make room there. {AGAIN}"
        )
    if isinstance(error, errors.InsufficientPrivilege):
        return StatementRefused(
            f"The role of RECON_DATABASE_URL lacks a right: {said}{state}. Connect as a member of "
            "a role that has it; `python -m schemas.roles` shows what each is granted. " + AGAIN
        )
    if isinstance(error, errors.ReadOnlySqlTransaction):
        return StatementRefused(
            f"The database server is read-only: {said}{state}. Connect to the primary. {AGAIN}"
        )
    if isinstance(error, NOT_OURS):
        return StatementRefused(
            f"The schema is not what this version made: {said}{state}. Restore it. {AGAIN}"
        )
    return StatementRefused(
        f"The database refused a statement: {said}{state}. Nothing of its transaction was "
        f"written; the server's log has the rest. {AGAIN}"
    )


def _first_line(error: psycopg.Error) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
