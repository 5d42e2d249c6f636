"""Accounts of people: their roles, and which of them may do what.

The database holds to it in the functions that write decisions and signatures
(`schemas.guards.accounts`), whatever program asks.
"""

import re
from collections.abc import Mapping
from enum import StrEnum

from schemas.life import Choice, Role


class AccountRole(StrEnum):
    """What an account may do; one account may have several."""

    VIEWER = "viewer"
    """Sees runs, batches and the trail. Every account does."""
    OPERATOR = "operator"
    """Repairs batches: uploads, releases, discards, reruns, settles; assigns breaks."""
    PREPARER = "preparer"
    """Decides about breaks and prepares reports."""
    APPROVER = "approver"
    """Decides about breaks and approves what somebody else prepared."""
    ADMINISTRATOR = "administrator"
    """Keeps accounts; nothing else."""


DECIDERS = (AccountRole.PREPARER, AccountRole.APPROVER)
MAY_DECIDE: Mapping[Choice, tuple[AccountRole, ...]] = {
    Choice.ACCEPT: DECIDERS,
    Choice.REOPEN: DECIDERS,
    Choice.RESOLVE: (AccountRole.OPERATOR, *DECIDERS),
    Choice.ASSIGN: (AccountRole.OPERATOR, *DECIDERS),
    Choice.COMMENT: (AccountRole.OPERATOR, *DECIDERS),
    Choice.PROPOSE: DECIDERS,
}
MAY_SIGN: Mapping[Role, tuple[AccountRole, ...]] = {
    Role.PREPARED: (AccountRole.PREPARER,),
    Role.APPROVED: (AccountRole.APPROVER,),
}
ACTS: Mapping[Choice | Role, str] = {
    Choice.ACCEPT: "accepting a break",
    Choice.REOPEN: "reopening a break",
    Choice.RESOLVE: "resolving a break",
    Choice.ASSIGN: "assigning a break",
    Choice.COMMENT: "commenting on a break",
    Choice.PROPOSE: "proposing an acceptance",
    Role.PREPARED: "preparing a report",
    Role.APPROVED: "approving a report",
}
"""What is done, as a refusal names it."""
NAME = r"[a-z0-9][a-z0-9._@-]{0,63}"
"""What an account may be called, as a pattern that Python and PostgreSQL read alike."""
_ATOM = "[A-Za-z0-9_+'&!#/=~-]+"
ADDRESS = rf"(?=[^@]{{1,64}}@){_ATOM}([.]{_ATOM})*@[A-Za-z0-9-]+([.][A-Za-z0-9-]+)*"
"""An address that reports are mailed to, as a pattern that Python and PostgreSQL read alike."""
LONGEST_ADDRESS = 254
FULL_NAME = 100
"""Characters of a full name at most."""
HOURS = 12
"""How long a login lasts at the longest."""
SELF_DECLARED = "self-declared"
"""What is said of a name that no login stands behind."""
APPROVED, APPROVED_SELF_DECLARED = "APPROVED", "APPROVED_SELF_DECLARED"


class How(StrEnum):
    """How somebody showed who they are."""

    PASSWORD = "password"  # noqa: S105 -- a word.
    OIDC = "oidc"
    PROXY = "proxy"


def is_name(text: str) -> bool:
    return re.fullmatch(NAME, text) is not None


def approval(people: Mapping[Role, str | None]) -> str | None:
    """What two signatures amount to, by the account behind each; None: it is not approved."""
    if Role.APPROVED not in people:
        return None
    return APPROVED if all(people.get(role) for role in Role) else APPROVED_SELF_DECLARED
