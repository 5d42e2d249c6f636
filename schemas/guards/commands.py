"""The database role that each command takes: the documented table, what is asked, what is said.

Of the roles that may do a thing it names the least one.
"""

from collections.abc import Mapping

from schemas.derived.sql_names import CONTROLLER, LOADER, MERGER, READER
from schemas.guards.roles import MAY_CALL
from schemas.jobs import JobKind

ROLE_OF: Mapping[str, str] = {
    "acceptance list": READER,
    "archive verify": LOADER,
    "audit list": READER,
    "audit verify": READER,
    "audit witness": READER,
    "breaks list": READER,
    "compare": READER,
    "jobs": READER,
    "report": READER,
    "status": READER,
    "discard": LOADER,
    # It counts by all batches, of which a reader may not see some.
    "housekeeping": LOADER,
    "job": LOADER,
    "jobs --watch": LOADER,
    "pull": LOADER,
    "rejects": LOADER,
    "rerun": LOADER,
    "row": LOADER,
    "sends": LOADER,
    "import": MERGER,
    "push": MERGER,
    "reconcile": MERGER,
    "release": MERGER,
    "report mail": MERGER,
    "resolve": MERGER,
    "restored": MERGER,
    "undo": MERGER,
    "watch": MERGER,
    "acceptance approve": CONTROLLER,
    "acceptance propose": CONTROLLER,
    "acceptance withdraw": CONTROLLER,
    "breaks accept": CONTROLLER,
    "breaks assign": CONTROLLER,
    "breaks comment": CONTROLLER,
    "breaks propose": CONTROLLER,
    "breaks reopen": CONTROLLER,
    "breaks resolve": CONTROLLER,
    "sign approve": CONTROLLER,
    "sign prepare": CONTROLLER,
}
"""Command -> the least role that does all of it."""
BEGUN = {"import": LOADER, "watch": LOADER}
"""Commands that a lesser role takes as far as the check: another process applies the rows."""
READ_NO_ROWS = ("audit witness",)
"""Commands for which it is nothing whose rows the account is shown: they look at hashes alone."""


def command_of(job: JobKind) -> str:
    """The command that does the same as a job."""
    return "import" if job is JobKind.CORRECT else job.value


def marking_function(role: str) -> str:
    """A function that the members of a role may call, and of the others only who may all of it."""
    return next(name for name, roles in MAY_CALL.items() if roles == (role,))
