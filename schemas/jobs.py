"""Jobs: work ordered at the desk, and its progress."""

from enum import StrEnum

from schemas.accounts import AccountRole


class JobKind(StrEnum):
    IMPORT = "import"
    """Uploaded files are taken in as a delivery."""
    CORRECT = "correct"
    """Rows with errors are taken in as a batch of their own, corrected or as delivered."""
    RERUN = "rerun"
    """A batch continues where it stopped."""
    RELEASE = "release"
    """A held batch continues with its clean rows."""
    DISCARD = "discard"
    """A held batch ends without anything of it being applied."""
    UNDO = "undo"
    RESOLVE = "resolve"
    """Rows that are in doubt, refused or differ are settled."""
    PUSH = "push"
    RECONCILE = "reconcile"


class JobState(StrEnum):
    """The state of a job; a running job whose process is gone counts as stopped."""

    ORDERED = "ordered"
    RUNNING = "running"
    ENDED = "ended"


OF_MERGER_JOBS = (JobKind.RELEASE, JobKind.UNDO, JobKind.RESOLVE, JobKind.PUSH, JobKind.RECONCILE)
"""Jobs that need a process which may apply rows."""
MAY_ORDER = (AccountRole.OPERATOR,)
ORDERING = "ordering work"
"""The name of this act in a refusal."""
ARGUMENTS_LENGTH = 200_000
"""The most characters of a job's arguments: enough for thousands of rows, each by its name."""
MESSAGE_LENGTH = 4_000
"""The most characters kept of a job's message."""
COULD_NOT_RUN = 2
"""The lowest exit code after which a job may be started again."""
