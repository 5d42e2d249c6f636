"""Accounts of people: their roles, and which role may do what.

The database enforces this in the functions that write decisions and signatures
(`schemas.guards.accounts`), whatever program calls them.
"""

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum

from schemas.life import Choice, Role


class AccountRole(StrEnum):
    """What an account may do; one account may have several."""

    VIEWER = "viewer"
    """Sees runs, batches and the trail, as every account does."""
    OPERATOR = "operator"
    """Repairs batches: uploads, releases, discards, reruns, settles; assigns breaks."""
    PREPARER = "preparer"
    """Decides about breaks and prepares reports."""
    APPROVER = "approver"
    """Decides about breaks and approves what somebody else prepared."""
    ADMINISTRATOR = "administrator"
    """Manages accounts and does nothing else."""


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
"""The name of each act in the message of a refusal."""
NAME = r"[a-z0-9][a-z0-9._@-]{0,63}"
"""Allowed account names, as a pattern that Python and PostgreSQL read alike."""
_ATOM = "[A-Za-z0-9_+'&!#/=~-]+"
ADDRESS = rf"(?=[^@]{{1,64}}@){_ATOM}([.]{_ATOM})*@[A-Za-z0-9-]+([.][A-Za-z0-9-]+)*"
"""A mail address for reports, as a pattern that Python and PostgreSQL read alike."""
LONGEST_ADDRESS = 254
FULL_NAME = 100
"""The most characters of a full name."""
HOURS = 12
"""The most hours a login lasts."""
SELF_DECLARED = "self-declared"
"""The note beside a name that no login stands behind."""
APPROVED, APPROVED_SELF_DECLARED = "APPROVED", "APPROVED_SELF_DECLARED"


class How(StrEnum):
    """How somebody showed who they are."""

    PASSWORD = "password"  # noqa: S105 -- a word.
    OIDC = "oidc"
    PROXY = "proxy"


SUBJECT = f'"{How.OIDC} ISSUER SUBJECT" or "{How.PROXY} NAME"'
"""How the subject of an account is written, for people."""


def takes_role(act: str, roles: Iterable[AccountRole]) -> str:
    """Say which role an act takes, and what somebody without it does next."""
    return (
        f"{act[:1].upper()}{act[1:]} takes the role {' or '.join(roles)}. Ask somebody who has it, "
        "or an administrator for the role."
    )


def is_name(text: str) -> bool:
    return re.fullmatch(NAME, text) is not None


def is_subject(text: str) -> bool:
    """Whether a provider or proxy can show somebody to be this: written as `SUBJECT` says."""
    written = re.fullmatch(rf"({How.OIDC} \S+|{How.PROXY}) \S(.*\S)?", text)
    return written is not None and text.isprintable()


def approval(people: Mapping[Role, str | None]) -> str | None:
    """The status that the signatures give, by the account behind each; None if not approved."""
    if Role.APPROVED not in people:
        return None
    return APPROVED if all(people.get(role) for role in Role) else APPROVED_SELF_DECLARED
