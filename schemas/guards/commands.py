"""The database role that each command takes, as documented, checked and named in messages.

If several roles may do it, this is the least of them.
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
    # It counts across all batches, some of which a reader may not see.
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
"""The least role that does all of a command, by command."""
BEGUN = {"import": LOADER, "watch": LOADER}
"""Commands that a lesser role may run up to the check; another process applies the rows."""
READ_NO_ROWS = ("audit witness",)
"""Commands that do not depend on whose rows the account sees, since they read only hashes."""


def command_of(job: JobKind) -> str:
    """The command that does the same work as a job."""
    return "import" if job is JobKind.CORRECT else job.value


def marking_function(role: str) -> str:
    """A function that, besides members of the role, only roles with all of its rights may call."""
    return next(name for name, roles in MAY_CALL.items() if roles == (role,))
