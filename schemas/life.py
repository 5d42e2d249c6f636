"""The life of a break: its states, what can be decided about it, and every transition.

A run takes a break in the state an earlier run left, applies the decisions since then, and finds
the difference still there or gone. The table below defines every outcome.
"""

from collections.abc import Mapping
from enum import StrEnum

RESTATED = "; restated as of "
"""Begins the suffix of a restatement's scope, which is compared with the scope's own runs."""


class BreakState(StrEnum):
    """The state of a break after a run."""

    NEW = "NEW"
    OPEN = "OPEN"
    REOPENED = "REOPENED"
    """Back after it was resolved or accepted, or no longer what was accepted."""
    EXPIRED = "EXPIRED"
    """Its acceptance ran out in this run, so it is open again."""
    ACCEPTED = "ACCEPTED"
    RESOLVED_SOURCE = "RESOLVED_SOURCE"
    RESOLVED_SERVICE = "RESOLVED_SERVICE"
    RESOLVED_NEITHER = "RESOLVED_NEITHER"
    """Gone, and neither side changed: the report's day moved on, or the break was signed since."""
    CHANGED_INTO = "CHANGED_INTO"
    """Gone but not resolved: another break now says what is wrong there."""
    NOT_LOOKED_AT = "NOT_LOOKED_AT"
    """The run did not look: its rules exclude the break, or a source of it is missing."""
    WAIVED_BY_RULE = "WAIVED_BY_RULE"
    """Still there, but within a tolerance or limit that the rules did not have before."""


class Choice(StrEnum):
    """A decision about a break."""

    ACCEPT = "accept"
    REOPEN = "reopen"
    RESOLVE = "resolve"
    """A claim; the next run checks that the difference is gone."""
    ASSIGN = "assign"
    COMMENT = "comment"
    PROPOSE = "propose"
    """An acceptance that takes effect once somebody else accepts it too."""


DONE: Mapping[str, str] = {
    Choice.ACCEPT: "accepted",
    Choice.REOPEN: "reopened",
    Choice.RESOLVE: "resolved",
    Choice.ASSIGN: "assigned",
    Choice.COMMENT: "commented on",
    Choice.PROPOSE: "proposed",
}
"""What was done, as a participle, for each decision."""
_TAKES_EFFECT = "This takes effect in the next reconciliation of the scope."
THEN: Mapping[str, str] = {
    **dict.fromkeys(Choice, _TAKES_EFFECT),
    Choice.PROPOSE: "Next, somebody else has to accept it with the same last day and ceiling, "
    "before the scope is reconciled again.",
    Choice.COMMENT: "",
}
"""What follows from each decision, as a sentence; empty if nothing does."""
NO_CHANGE = (Choice.ASSIGN, Choice.COMMENT, Choice.PROPOSE)
"""Decisions that do not change the state of a break."""


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
"""The command line's names for the terms of a decision; pages use other words."""


class Standing(StrEnum):
    """The effect of the decisions about a break on the day of a run; the last decision counts."""

    ACCEPTED = "accepted"
    LAPSED = "lapsed"
    """Accepted until a day that has passed."""
    CHANGED = "changed"
    """Accepted, but the break differs now from what was accepted."""
    REOPENED = "reopened"
    RESOLVED_SOURCE = "resolved_source"
    RESOLVED_SERVICE = "resolved_service"


class Look(StrEnum):
    """What somebody opened of a run at the desk, besides single breaks by their id."""

    REPORT = "report"
    """Its page, workbook or text."""
    ACCEPTED = "accepted"
    """The list of its accepted breaks."""


class Role(StrEnum):
    """What a signature stands for."""

    PREPARED = "prepared"
    APPROVED = "approved"


SIDES = {"source": BreakState.RESOLVED_SOURCE, "service": BreakState.RESOLVED_SERVICE}
"""The side on which a break was resolved: the delivered data, or what they are compared with."""

RECONCILED = ("RECONCILED", "RECONCILED_WITH_ACCEPTED")
"""Verdicts that can be approved."""
OPEN = (BreakState.NEW, BreakState.OPEN, BreakState.REOPENED, BreakState.EXPIRED)
"""States that require action."""
GONE: Mapping[str, str] = {
    BreakState.RESOLVED_SOURCE: "resolved at the source",
    BreakState.RESOLVED_SERVICE: "resolved at the target (database or service)",
    BreakState.RESOLVED_NEITHER: "gone, neither side having changed",
    BreakState.CHANGED_INTO: "changed into another break of the same field or row",
}
"""The states of breaks that a run no longer finds, in words."""
PLACES: Mapping[str, str] = {side: GONE[of].removeprefix("resolved ") for side, of in SIDES.items()}
"""Side of a claimed resolution -> the words for the state it leads to."""
RESOLVED = tuple(map(BreakState, GONE))
ASIDE = (BreakState.NOT_LOOKED_AT, BreakState.WAIVED_BY_RULE)
"""States of breaks that other terms might still show: neither open nor resolved."""
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
    # Claimed to be resolved, but still there.
    **{(state, Standing.RESOLVED_SOURCE): BreakState.REOPENED for state in UNRESOLVED},
    **{(state, Standing.RESOLVED_SERVICE): BreakState.REOPENED for state in UNRESOLVED},
}
"""(state before, standing) -> state of a break that is found again.

A break that is not found again is resolved: on neither side if neither changed, else on the side
that was claimed or that changed. If its field has another break now, it has changed into that. A
break that this run could not find, because it looks less far than the run that found it, is set
aside. A break that was already resolved and is not found is no longer carried.
"""

UNSEEN = (
    r"\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069"
    r"\ufe00-\ufe0f\ufeff"
)
"""Invisible characters in a name, as a regular expression's set for Python and PostgreSQL."""
