"""The life of a break: its states, what can be decided about it, and every transition.

A run looks at a break that was left in some state, hears what was decided since, and finds the
difference still there or gone. The table below is the whole of it.
"""

from collections.abc import Mapping
from enum import StrEnum

RESTATED = "; restated as of "
"""What follows the scope in that of a restatement, which is held against the scope's own runs."""


class BreakState(StrEnum):
    """Where a break is after a run."""

    NEW = "NEW"
    OPEN = "OPEN"
    REOPENED = "REOPENED"
    """Back after it was resolved or accepted, or other than it was when it was accepted."""
    EXPIRED = "EXPIRED"
    """Its acceptance has run out in this run: it is open again."""
    ACCEPTED = "ACCEPTED"
    RESOLVED_SOURCE = "RESOLVED_SOURCE"
    RESOLVED_SERVICE = "RESOLVED_SERVICE"
    RESOLVED_NEITHER = "RESOLVED_NEITHER"
    """Gone, and neither side changed: the day of the report moved on, or it was signed since."""
    CHANGED_INTO = "CHANGED_INTO"
    """Gone, and nothing was resolved: another break says now what is wrong there."""
    NOT_LOOKED_AT = "NOT_LOOKED_AT"
    """The run did not look: its rules leave it out, or a source of it is not there."""
    WAIVED_BY_RULE = "WAIVED_BY_RULE"
    """Still there, and inside a tolerance or limit that the rules did not have before."""


class Choice(StrEnum):
    """What can be decided about a break."""

    ACCEPT = "accept"
    REOPEN = "reopen"
    RESOLVE = "resolve"
    """A claim: the next run checks that the difference is gone."""
    ASSIGN = "assign"
    COMMENT = "comment"
    PROPOSE = "propose"
    """An acceptance that somebody else has to take as well."""


DONE: Mapping[str, str] = {
    Choice.ACCEPT: "accepted",
    Choice.REOPEN: "reopened",
    Choice.RESOLVE: "resolved",
    Choice.ASSIGN: "assigned",
    Choice.COMMENT: "commented on",
    Choice.PROPOSE: "proposed",
}
"""What somebody did who decided so."""
NO_CHANGE = (Choice.ASSIGN, Choice.COMMENT, Choice.PROPOSE)
"""Decisions that leave a break where it stands."""


OPTIONS: Mapping[str, str] = {
    "give_reason": "--reason TEXT",
    "by": "--by",
    "until": "--until",
    "give_until": "--until YYYY-MM-DD",
    "up_to": "--up-to",
    "side": "--at",
    "give_owner": "--owner NAME",
    "due": "--due",
    "one_currency": "Name one: --currency",
    "a_filter": "a filter such as --code AMOUNT",
    "run": "--run",
    "the_list": "`recon breaks list`",
}
"""What the command line calls the terms of a decision; a page has other words for them."""


class Standing(StrEnum):
    """What the decisions about a break amount to on the day of a run; the last one counts."""

    ACCEPTED = "accepted"
    LAPSED = "lapsed"
    """Accepted until a day that has passed."""
    CHANGED = "changed"
    """Accepted as it was seen, and it is other now."""
    REOPENED = "reopened"
    RESOLVED_SOURCE = "resolved_source"
    RESOLVED_SERVICE = "resolved_service"


class Look(StrEnum):
    """What of a run somebody has opened at the desk, beside a break by its id."""

    REPORT = "report"
    """Its page, workbook or text."""
    ACCEPTED = "accepted"
    """The list of its accepted breaks."""


class Role(StrEnum):
    """What a signature stands for."""

    PREPARED = "prepared"
    APPROVED = "approved"


SIDES = {"source": BreakState.RESOLVED_SOURCE, "service": BreakState.RESOLVED_SERVICE}
"""Where a break was resolved: in what is delivered, or in what it is compared with."""

RECONCILED = ("RECONCILED", "RECONCILED_WITH_ACCEPTED")
"""Verdicts that can be approved."""
OPEN = (BreakState.NEW, BreakState.OPEN, BreakState.REOPENED, BreakState.EXPIRED)
"""States that ask for action."""
GONE: Mapping[str, str] = {
    BreakState.RESOLVED_SOURCE: "resolved at the source",
    BreakState.RESOLVED_SERVICE: "resolved at the target (database or service)",
    BreakState.RESOLVED_NEITHER: "gone, neither side having changed",
    BreakState.CHANGED_INTO: "changed into another break of the same field or row",
}
"""The states of breaks that a run does not find any more, in words."""
PLACES: Mapping[str, str] = {side: GONE[of].removeprefix("resolved ") for side, of in SIDES.items()}
"""Side on which a break is said to be resolved -> how the state is told that it will have."""
RESOLVED = tuple(map(BreakState, GONE))
ASIDE = (BreakState.NOT_LOOKED_AT, BreakState.WAIVED_BY_RULE)
"""States of breaks that a run found by other terms would show: neither open nor resolved."""
UNRESOLVED = (*OPEN, BreakState.ACCEPTED, *ASIDE)

Transitions = dict[tuple[BreakState | None, Standing | None], BreakState]

STILL_THERE: Transitions = {
    (None, None): BreakState.NEW,
    (BreakState.NEW, None): BreakState.OPEN,
    (BreakState.OPEN, None): BreakState.OPEN,
    (BreakState.REOPENED, None): BreakState.OPEN,
    (BreakState.EXPIRED, None): BreakState.REOPENED,
    (BreakState.RESOLVED_SOURCE, None): BreakState.REOPENED,
    (BreakState.RESOLVED_SERVICE, None): BreakState.REOPENED,
    (BreakState.RESOLVED_NEITHER, None): BreakState.REOPENED,
    (BreakState.CHANGED_INTO, None): BreakState.REOPENED,
    # Looked at again, and still there.
    (BreakState.NOT_LOOKED_AT, None): BreakState.REOPENED,
    (BreakState.WAIVED_BY_RULE, None): BreakState.REOPENED,
    **{(state, Standing.ACCEPTED): BreakState.ACCEPTED for state in UNRESOLVED},
    **{(state, Standing.LAPSED): BreakState.EXPIRED for state in UNRESOLVED},
    **{(state, Standing.CHANGED): BreakState.REOPENED for state in UNRESOLVED},
    **{(state, Standing.REOPENED): BreakState.REOPENED for state in UNRESOLVED},
    # Said to be resolved, and it is not.
    **{(state, Standing.RESOLVED_SOURCE): BreakState.REOPENED for state in UNRESOLVED},
    **{(state, Standing.RESOLVED_SERVICE): BreakState.REOPENED for state in UNRESOLVED},
}
"""(state before, standing) -> state of a break that is found again.

A break that is not found again is resolved: on neither side where none changed, else on the one
that was claimed, or that changed. One whose field has another break now has changed into that. One
that this run could not find, because it looked less far than the run that found it, is set aside.
One that was resolved before and is not found is not carried any further.
"""

UNSEEN = (
    r"\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069"
    r"\ufe00-\ufe0f\ufeff"
)
"""Signs of a name that nobody sees, as a set of a regular expression, here and in PostgreSQL."""
