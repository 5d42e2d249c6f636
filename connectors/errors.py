"""Exceptions for what cannot be used at all. Expected badness of rows is a value, not an exception.

ReconError                 shown to the user as text, exit code 2
├── ExtractRefused         a file that cannot be read; the rest of the delivery goes on
├── DeliveryError          a path that is no delivery at all
├── MachineFailed          a file that this machine could not read now, whatever is in it
├── ListingUnusable        a file that a sandbox is to serve, and that holds no such records
├── ProfileError           a feed profile that cannot be used
├── RulesError             a rule file that cannot be used: file, line, and what is allowed
├── SidesRefused           two sides that cannot be compared
├── SettingsError          an environment variable or option that cannot be used
├── DatabaseUnusable       no connection, wrong role, missing or older schema, no room
│   └── DatabaseLost       the connection was lost in the middle; what was committed is kept
├── StatementRefused       the database refused a statement: a right, a table, a limit of its own
├── ServiceUnusable        the service refuses us, or gives no answer that can be used
│   ├── PushHeld           the database or the home may be a copy; nothing is sent
│   └── RowsUnsent         it takes other rows, or answers at all, so that other batches may go
├── ClusterFailed          the workers of a cluster did not do their part; what they wrote stays
├── BatchHeldElsewhere     another run holds the batch; exit code 3
│   └── OperationBusy      another run sends to the operation, for longer than we wait
├── InboxHeldElsewhere     another run looks at the inbox; exit code 3
├── EvidenceBroken         kept content is not what was delivered; nothing of it was used
├── BatchUnknown           no such batch
├── JobUnknown             no such job, or none that this account may see
├── JobRefused             work that cannot be asked for so; nothing was ordered
├── JobHeldElsewhere       another process does the job; exit code 3
├── BatchStateError        the batch is not in a state that allows this
├── CorrectionError        a correction on other terms than those of the batch it corrects
├── ScopeHeldElsewhere     another run reconciles the same scope; exit code 3
├── TurnNotGiven           what takes moments was not let go of within the wait; who has it
├── ReconciliationUnknown  no such reconciliation
├── BreakUnknown           no such break in a reconciliation
├── DayRefused             a day in the future, or before the last run of the scope
├── DecisionRefused        a decision about breaks that cannot be taken; nothing was decided
│   └── DecisionsMoved     what is to be decided is other now than whoever decides has seen
├── SignatureRefused       a report that cannot be signed by this person, or as it stands
│   └── DecisionsMissing   it has open breaks that nobody has accepted; exit code 1
├── AccountRefused         an account may not do this, or nobody is logged in; nothing was done
├── AccountUnknown         no account, or already one, of this name
├── LoginRefused           a name and password that are not to be had, or too many tries
├── MailUnusable           no mail server, or one that cannot be used; what was to go waits
│   └── MailRefused        a message or its recipient was refused; others are sent
├── WitnessKeyUnusable     no key to sign or check witnesses with, or one that others can read
├── WitnessPlaceFailed     a place that witnesses are given to cannot be written or read
├── CleanRowsBroken        rows found clean break the schema of their record: a bug, never written
└── ConservationError      totals that do not add up: a bug or tampering, never ignored
"""

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from schemas.amounts import spelled
from schemas.life import OPTIONS


class ReconError(Exception):
    """What went wrong, where, and what to do next, in one text for the user."""

    exit_code = 2


class ExtractRefused(ReconError):
    """A file as a whole cannot be read; `code` is one of `schemas.reasons.REFUSALS`."""

    def __init__(self, code: str, message: str, *, line: int | None) -> None:
        super().__init__(message)
        self.code = code
        self.line = line
        """Of the file, counted from 1; None: it is about no line."""


class DeliveryError(ReconError):
    """A path that does not exist or names no file at all."""


class MachineFailed(ReconError):
    """A file could not be read for what is nothing about the file: the disk, too many open ones."""


class ListingUnusable(ReconError):
    """A file that a sandbox is to serve as a listing: which record of it is none, and why."""


class ProfileError(ReconError):
    """A feed profile that cannot be used: file, key and what is allowed."""


class RulesError(ReconError):
    """A rule file that cannot be used: the file, the line and what is allowed."""


class SidesRefused(ReconError):
    """Two sides that cannot be compared: which side, what is wrong with it, what to do."""


class SettingsError(ReconError):
    """A setting that cannot be used: its name, its value and what is allowed."""


class DatabaseUnusable(ReconError):
    """The database cannot be used; what was committed before is kept, and nothing else written."""


class DatabaseLost(DatabaseUnusable):
    """The connection was lost in the middle: the outcome of the last statement is not known."""


class SchemaReplaced(DatabaseUnusable):
    """The database follows another version, or other record kinds, than the program began with."""


class StatementRefused(ReconError):
    """The database refused a statement; nothing of its transaction was written."""


class ServiceUnusable(ReconError):
    """The service refuses us, cannot be reached, or its answer cannot be used; nothing was sent."""


class PushHeld(ServiceUnusable):
    """The database or RECON_HOME may be an older copy: nothing is sent before somebody decides."""


class RowsUnsent(ServiceUnusable):
    """Rows of a batch are unsent, and the service is there: it took others of it, or answers."""


class ClusterFailed(ReconError):
    """A cluster gave a partition back undone; what its workers had written stays."""


class BatchHeldElsewhere(ReconError):
    """Another run holds the batch; the text says who and since when."""

    exit_code = 3


class OperationBusy(BatchHeldElsewhere):
    """Another run sends to the operation; this batch has unsent rows, and nothing is lost."""


STOPS_PUSH = (ServiceUnusable, OperationBusy)
"""What ends a push in good order: the batch is reported with its unsent rows all the same."""


class InboxHeldElsewhere(ReconError):
    """Another run looks at the inbox."""

    exit_code = 3


class EvidenceBroken(ReconError):
    """Kept content is gone or is not what was delivered: which file, which batch, what to do."""


class CorrectionError(ReconError):
    """A delivery corrects a batch on other terms than the batch was taken on."""


class BatchUnknown(ReconError):
    """No batch has this id."""


class JobUnknown(ReconError):
    """No job has this number, or none that this account may see."""


class JobRefused(ReconError):
    """Work that cannot be asked for so, or was asked for by somebody who may not any more."""


class JobHeldElsewhere(ReconError):
    """Another process does the job, or it has ended."""

    exit_code = 3


class BatchStateError(ReconError):
    """The batch is not in a state that allows what was asked."""


class ConservationError(ReconError):
    """Totals of two stages differ without an explanation; the run fails and says where."""


OF_ONE_BATCH = (BatchStateError, BatchHeldElsewhere, EvidenceBroken, ConservationError)
"""What keeps one batch from being pushed, and no other; OperationBusy is among `STOPS_PUSH`."""


class AccountRefused(ReconError):
    """What the account that acts may not do: which rule, and who may. Nothing was done."""


class AccountUnknown(ReconError):
    """No account has this name, or one has it already."""


class LoginRefused(ReconError):
    """Nobody is logged in by this; the text does not tell which part was wrong."""


class CleanRowsBroken(ReconError):
    """Rows that were found clean break the schema of their record; nothing of them was written."""


class ScopeHeldElsewhere(ReconError):
    """Another run reconciles the same scope, and what is decided meanwhile would be lost on it."""

    exit_code = 3


class TurnNotGiven(ReconError):
    """What others do within moments did not come to an end: who is at it, and how to end it."""


class ReconciliationUnknown(ReconError):
    """No reconciliation has this number, or none of the scope was run yet."""


class BreakUnknown(ReconError):
    """The reconciliation left no break of this id."""


class DecisionRefused(ReconError):
    """A decision about breaks that cannot be taken; it was taken for none of them.

    `{until}` and its like in the text are what whoever asks calls a term of the decision, by
    default as the command line does (`schemas.life.OPTIONS`). Amounts and days among the values are
    spelled as whoever asks is shown them; a value that is a function makes its text from that.
    """

    def __init__(self, text: str, /, **values: object) -> None:
        self._text, self._values = text, values
        super().__init__(self.worded(OPTIONS))

    def worded(self, names: Mapping[str, str], spell: Callable[[Any], Any] | None = None) -> str:
        """The text in the words of whoever asks."""
        of = spell or _plain
        values = {
            name: value(of) if callable(value) else of(value)
            for name, value in self._values.items()
        }
        return self._text.format(**names, **values)


def _plain(value: Any) -> Any:
    return spelled(value) if isinstance(value, Decimal) else value


class DecisionsMoved(DecisionRefused):
    """Another run followed, or somebody else has decided, since the breaks were looked at."""


class DayRefused(ReconError):
    """A day that a scope cannot be reconciled as of: in the future, or before its last run."""


class SignatureRefused(ReconError):
    """A report that cannot be signed: by this person, in this order, or as its files are now."""


class DecisionsMissing(SignatureRefused):
    """The report cannot be approved before its open breaks are accepted or resolved."""

    exit_code = 1


class MailUnusable(ReconError):
    """No mail server, or one that cannot be used: what was to be sent waits."""


class MailRefused(MailUnusable):
    """The mail server refused one message or its recipient; others may be sent."""


class MailTooLarge(MailRefused):
    """The mail server takes no message as large as this one."""


class WitnessKeyUnusable(ReconError):
    """The key of the witnesses is missing, is no such key, or can be read by others."""


class WitnessPlaceFailed(ReconError):
    """A place of the witnesses cannot be written or read; what it was not given waits."""
