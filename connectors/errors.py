"""Exceptions for what cannot be used at all. Expected badness of rows is a value, not an exception.

ReconError                 shown to the user as text, exit code 2
├── ExtractRefused         a file that cannot be read; the rest of the delivery goes on
├── DeliveryError          a path that is no delivery at all
├── ProfileError           a feed profile that cannot be used
├── SettingsError          an environment variable or option that cannot be used
├── DatabaseUnusable       no connection, wrong role, missing or older schema
├── BatchHeldElsewhere     another run holds the batch; exit code 3
├── BatchUnknown           no such batch
├── BatchStateError        the batch is not in a state that allows this
└── ConservationError      totals that do not add up: a bug or tampering, never ignored
"""


class ReconError(Exception):
    """What went wrong, where, and what to do next, in one text for the user."""

    exit_code = 2


class ExtractRefused(ReconError):
    """A file as a whole cannot be read; `code` is one of `schemas.reasons.REFUSALS`."""

    def __init__(self, code: str, message: str, *, line: int | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.line = line


class DeliveryError(ReconError):
    """A path that does not exist or names no file at all."""


class ProfileError(ReconError):
    """A feed profile that cannot be used: file, key and what is allowed."""


class SettingsError(ReconError):
    """A setting that cannot be used: its name, its value and what is allowed."""


class DatabaseUnusable(ReconError):
    """The database cannot be used; nothing was written."""


class BatchHeldElsewhere(ReconError):
    """Another run holds the batch; the text says who and since when."""

    exit_code = 3


class BatchUnknown(ReconError):
    """No batch has this id."""


class BatchStateError(ReconError):
    """The batch is not in a state that allows what was asked."""


class ConservationError(ReconError):
    """Totals of two stages differ without an explanation; the run fails and says where."""
