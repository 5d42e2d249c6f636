"""Exceptions for input and states that stop the work. An expected bad row is a value instead.

ReconError                 shown to the user as text, exit code 2
├── ExtractRefused         a file cannot be read; the rest of the delivery goes on
├── DeliveryError          a path is no delivery at all
├── MachineFailed          this machine could not read a file now, whatever is in it
├── ListingUnusable        a file for a sandbox to serve does not hold such records
├── ProfileError           a feed profile cannot be used
├── RulesError             a rule file cannot be used: file, line, and what is allowed
├── SidesRefused           two sides cannot be compared
├── SettingsError          an environment variable or option cannot be used
├── DatabaseUnusable       no connection, wrong role, missing or older schema, no room
│   └── DatabaseLost       the connection was lost midway; what was committed is kept
├── StatementRefused       the database refused a statement: a right, a table, a limit of its own
├── ServiceUnusable        the service refuses us, or gives no answer that can be used
│   ├── PushHeld           the database or the home may be a copy; nothing is sent
│   └── RowsUnsent         rows are unsent though the service answers, so other batches may go
├── ClusterFailed          the workers of a cluster did not do their part; what they wrote stays
├── BatchHeldElsewhere     another run holds the batch; exit code 3
│   └── OperationBusy      another run sends to the operation for longer than this run waits
├── InboxHeldElsewhere     another run looks at the inbox; exit code 3
├── EvidenceBroken         kept content is not what was delivered; nothing of it was used
├── BatchUnknown           no such batch
├── JobUnknown             no such job, or none that this account may see
├── JobRefused             work that cannot be ordered this way; nothing was ordered
├── JobHeldElsewhere       another process does the job; exit code 3
├── BatchStateError        the state of the batch does not allow this
├── CorrectionError        a correction differs in its terms from the batch it corrects
├── ScopeHeldElsewhere     another run reconciles the same scope; exit code 3
├── TurnNotGiven           a lock that others hold for moments was not freed in time
├── ReconciliationUnknown  no such reconciliation
├── BreakUnknown           no such break in a reconciliation
├── DayRefused             a day in the future, or before the last run of the scope
├── DecisionRefused        a decision about breaks is not possible; nothing was decided
│   └── DecisionsMoved     the breaks changed since the person deciding looked at them
├── SignatureRefused       a report cannot be signed by this person, or as it stands
│   └── DecisionsMissing   the report has open breaks that nobody accepted; exit code 1
├── AccountRefused         an account may not do this, or nobody is logged in; nothing was done
├── AccountUnknown         no account has this name, or one has it already
├── LoginRefused           a login failed, or there were too many tries
├── MailUnusable           no usable mail server; what was to be sent waits
│   └── MailRefused        a message or its recipient was refused; others are sent
├── WitnessKeyUnusable     no key to sign or check witnesses with, or others can read it
├── WitnessPlaceFailed     a place of the witnesses cannot be written or read
├── CleanRowsBroken        rows found clean break the schema of their record: a bug, never written
└── ConservationError      totals do not add up: a bug or tampering, never ignored
"""

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from schemas.amounts import spelled
from schemas.life import OPTIONS


class ReconError(Exception):
    """What went wrong, where, and what to do next, in one text for the user, or in several."""

    exit_code = 2

    def __str__(self) -> str:
        return "\n".join(map(str, self.args))


class ExtractRefused(ReconError):
    """A whole file cannot be read; `code` is one of `schemas.reasons.REFUSALS`."""

    def __init__(self, code: str, message: str, *, line: int | None) -> None:
        super().__init__(message)
        self.code = code
        self.line = line
        """Line of the file, counted from 1; None if the refusal is about no line."""


class DeliveryError(ReconError):
    """A path does not exist or names no file at all."""


class MachineFailed(ReconError):
    """A file could not be read for a reason outside of it: the disk, or too many open files."""


class ListingUnusable(ReconError):
    """A file cannot be served as a listing: the first unusable record, and why."""


class ProfileError(ReconError):
    """A feed profile cannot be used: file, key and what is allowed."""


class RulesError(ReconError):
    """A rule file cannot be used: the file, the line and what is allowed."""


class SidesRefused(ReconError):
    """Two sides cannot be compared: which side, what is wrong with it, what to do."""


class SettingsError(ReconError):
    """A setting cannot be used: its name, its value and what is allowed."""


class DatabaseUnusable(ReconError):
    """The database cannot be used; what was committed is kept, and nothing else was written."""


class DatabaseLost(DatabaseUnusable):
    """The connection was lost midway: the outcome of the last statement is unknown."""


class SchemaReplaced(DatabaseUnusable):
    """The database changed version or record kinds since the program began."""


class StatementRefused(ReconError):
    """The database refused a statement; nothing of its transaction was written."""


class ServiceUnusable(ReconError):
    """The service refuses us, is unreachable, or its answer is unusable; nothing was sent."""


class PushHeld(ServiceUnusable):
    """The database or RECON_HOME may be an older copy: nothing is sent until somebody decides."""


class RowsUnsent(ServiceUnusable):
    """Rows of a batch are unsent although the service took other rows of it, or answers."""


class ClusterFailed(ReconError):
    """A cluster returned a partition undone; what its workers had written stays."""


class BatchHeldElsewhere(ReconError):
    """Another run holds the batch; the text says who and since when."""

    exit_code = 3


class OperationBusy(BatchHeldElsewhere):
    """Another run sends to the operation; this batch keeps its unsent rows, nothing is lost."""


STOPS_PUSH = (ServiceUnusable, OperationBusy)
"""Errors that end a push in good order: the batch is still reported, with its unsent rows."""


class InboxHeldElsewhere(ReconError):
    """Another run looks at the inbox: who, and how to end it."""

    exit_code = 3

    def __init__(self, message: str, since: float = 0) -> None:
        super().__init__(message)
        self.since = since
        """When that run began to look, in seconds since 1970."""


class EvidenceBroken(ReconError):
    """Kept content is gone or is not what was delivered: which file, which batch, what to do."""


class CorrectionError(ReconError):
    """A delivery corrects a batch on other terms than the batch was taken in on."""


class BatchUnknown(ReconError):
    """No batch has this id."""


class JobUnknown(ReconError):
    """No job has this number, or the account may not see it."""


class JobRefused(ReconError):
    """Work cannot be ordered this way, or the person who ordered it no longer may."""


class JobHeldElsewhere(ReconError):
    """Another process does the job, or the job has ended."""

    exit_code = 3


class BatchStateError(ReconError):
    """The state of the batch does not allow what was asked."""


class ConservationError(ReconError):
    """Totals of two stages differ without an explanation; the run fails and says where."""


OF_ONE_BATCH = (BatchStateError, BatchHeldElsewhere, EvidenceBroken, ConservationError)
"""Errors that keep only this batch from being pushed; OperationBusy is among `STOPS_PUSH`."""


class AccountRefused(ReconError):
    """The acting account may not do this: which rule, and who may. Nothing was done."""


class AccountUnknown(ReconError):
    """No account has this name, or an account has it already."""


class LoginRefused(ReconError):
    """The login failed; the text does not tell which part was wrong."""


class CleanRowsBroken(ReconError):
    """Rows found clean break the schema of their record; none of them was written."""


class ScopeHeldElsewhere(ReconError):
    """Another run reconciles the same scope; decisions made meanwhile would be lost on it."""

    exit_code = 3


class TurnNotGiven(ReconError):
    """Work of others that takes moments did not end: who is at it, and how to end it."""


class ReconciliationUnknown(ReconError):
    """No reconciliation has this number, or the scope was never reconciled."""


class BreakUnknown(ReconError):
    """The reconciliation left no break with this id."""


class DecisionRefused(ReconError):
    """A decision about breaks is not possible; no break was decided.

    Placeholders such as `{until}` stand for the asker's name of a term of the decision, by default
    the command line's (`schemas.life.OPTIONS`). Amounts and days among the values are spelled as
    the asker is shown them; a value that is a function gets the speller and returns its text.
    """

    def __init__(self, text: str, /, **values: object) -> None:
        self._text, self._values = text, values
        super().__init__(self.worded(OPTIONS))

    def worded(self, names: Mapping[str, str], spell: Callable[[Any], Any] | None = None) -> str:
        """The text in the words of the asker: `names` of the terms, `spell` for the values."""
        of = spell or _plain
        values = {
            name: value(of) if callable(value) else of(value)
            for name, value in self._values.items()
        }
        return self._text.format(**names, **values)


def _plain(value: Any) -> Any:
    return spelled(value) if isinstance(value, Decimal) else value


class DecisionsMoved(DecisionRefused):
    """Another run or another decision came after the breaks were looked at."""


class DayRefused(ReconError):
    """A scope cannot be reconciled as of this day: it is in the future or before its last run."""


class SignatureRefused(ReconError):
    """A report cannot be signed: by this person, in this order, or as its files are now."""


class DecisionsMissing(SignatureRefused):
    """The report cannot be approved before its open breaks are accepted or resolved."""

    exit_code = 1


class MailUnusable(ReconError):
    """No mail server is set or usable: what was to be sent waits."""


class MailRefused(MailUnusable):
    """The mail server refused one message or its recipient; others may be sent."""


class MailTooLarge(MailRefused):
    """The mail server refuses a message as large as this one."""


class WitnessKeyUnusable(ReconError):
    """The witness key is missing, is no such key, or can be read by others."""


class WitnessPlaceFailed(ReconError):
    """A place of the witnesses cannot be written or read; what it lacks waits for it."""
