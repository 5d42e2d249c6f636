"""Jobs: work that somebody asked for at the desk, and where it stands."""

from enum import StrEnum

from schemas.accounts import AccountRole


class JobKind(StrEnum):
    IMPORT = "import"
    """Uploaded files are taken in as a delivery."""
    CORRECT = "correct"
    """Rows with errors come again as a batch of their own, corrected or as they were delivered."""
    RERUN = "rerun"
    """A batch goes on where it stopped."""
    RELEASE = "release"
    """A held batch goes on with its clean rows."""
    DISCARD = "discard"
    """A held batch ends, and nothing of it is applied."""
    UNDO = "undo"
    RESOLVE = "resolve"
    """Rows that are in doubt, refused or differ are settled."""
    PUSH = "push"
    RECONCILE = "reconcile"


class JobState(StrEnum):
    """Where a job is; one that runs and whose process is gone has stopped."""

    ORDERED = "ordered"
    RUNNING = "running"
    ENDED = "ended"


OF_MERGER_JOBS = (JobKind.RELEASE, JobKind.UNDO, JobKind.RESOLVE, JobKind.PUSH, JobKind.RECONCILE)
"""Jobs that only a process which may apply rows does."""
MAY_ORDER = (AccountRole.OPERATOR,)
ORDERING = "ordering work"
"""What is done, as a refusal names it."""
ARGUMENTS_LENGTH = 200_000
"""Characters of the arguments of a job at most: thousands of rows, each by its name."""
MESSAGE_LENGTH = 4_000
"""Characters that are kept of what a job said."""
COULD_NOT_RUN = 2
"""The least exit code after which a job may be started again."""
