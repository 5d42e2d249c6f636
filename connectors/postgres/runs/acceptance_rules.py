"""Rules of acceptance as the audit trail has them, and breaks accepted by them."""

from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any

import psycopg
from psycopg.rows import dict_row

from connectors.postgres.accounts import has_accounts, scopes_seen, who
from connectors.postgres.query import one_value
from connectors.postgres.trail import detail_text, read_detail, write_trail
from schemas.derived.sql_names import SCHEMA
from schemas.guards.acceptance_rules import RULE_EVENTS, RULE_WITHDRAWN
from schemas.guards.decisions import RULE_APPROVED, RULE_PROPOSED


class RuleState(StrEnum):
    PROPOSED = "proposed"
    IN_FORCE = "in force"
    ENDED = "ended"
    """Its last day has passed."""
    WITHDRAWN = "withdrawn"
    SELF_DECLARED = "self-declared"
    """Proposed, and perhaps approved, under stated names before there were accounts.

    It accepts nothing now: somebody with an account has to propose it again.
    """


@dataclass(frozen=True, slots=True)
class RuleTerms:
    """Which breaks of a scope are accepted, up to what amount and until when."""

    scope: str
    code: str
    currency: int
    each: Decimal
    """Ceiling of one break."""
    total: Decimal
    """Ceiling of all breaks that the rule holds accepted in a run."""
    until: date
    """Last day on which it accepts breaks, and on which its acceptances hold."""
    reason: str
    record: str | None = None
    tenant: int | None = None


@dataclass(frozen=True, slots=True)
class RuleStep:
    by: str
    person: str | None
    at: datetime
    reason: str | None


@dataclass(frozen=True, slots=True)
class AcceptanceRule:
    number: int
    terms: RuleTerms
    proposed: RuleStep
    approved: RuleStep | None
    withdrawn: RuleStep | None
    takes_account: bool
    """Whether there are accounts, so that proposal and approval must be by one each."""

    def state(self, day: date) -> RuleState:
        if self.withdrawn:
            return RuleState.WITHDRAWN
        if day > self.terms.until:
            return RuleState.ENDED
        if self.takes_account and (self.approved or self.proposed).person is None:
            return RuleState.SELF_DECLARED
        return RuleState.IN_FORCE if self.approved else RuleState.PROPOSED


@dataclass(frozen=True, slots=True)
class RuleOutcome:
    """The effect of a rule in force on a run."""

    rule: int
    breaks: int
    """Number of breaks that it covers and had not accepted yet."""
    amount: Decimal
    """Amount of all breaks that it holds accepted, these included."""
    total: Decimal
    accepted: bool
    """Whether it accepted them; False if they exceed its ceiling, so that it accepts none."""


def propose_rule(connection: psycopg.Connection, terms: RuleTerms, by: str | None) -> int:
    """Record a proposed rule; gives its number. Raises AccountRefused."""
    detail: dict[str, object] = {
        "scope": terms.scope,
        "code": terms.code,
        "currency": terms.currency,
        "each": format(terms.each, "f"),
        "total": format(terms.total, "f"),
        "until": terms.until.isoformat(),
        "record": terms.record,
        "tenant": terms.tenant,
    }
    stated = {name: value for name, value in detail.items() if value is not None}
    name = who(connection, by)
    return write_trail(connection, "propose_rule", name, terms.reason, detail_text(stated))


def approve_rule(connection: psycopg.Connection, number: int, by: str | None, reason: str) -> None:
    """Put a rule in force that somebody else proposed; raises AccountRefused."""
    write_trail(connection, "approve_rule", number, who(connection, by), reason)


def withdraw_rule(connection: psycopg.Connection, number: int, by: str | None, reason: str) -> None:
    """End a rule or reject a proposal; breaks accepted by it stay accepted until its last day."""
    write_trail(connection, "withdraw_rule", number, who(connection, by), reason)


def accept_by_rules(connection: psycopg.Connection, number: int) -> list[RuleOutcome]:
    """Accept the breaks of a run that its scope's rules cover; the next run acts on this."""
    outcomes = one_value(connection.execute(f"SELECT {SCHEMA}.accept_by_rules(%s)", [number]))
    return [
        RuleOutcome(
            one["rule"],
            one["breaks"],
            Decimal(one["amount"]),
            Decimal(one["total"]),
            one["accepted"],
        )
        for one in outcomes
    ]


def list_rules(connection: psycopg.Connection) -> list[AcceptanceRule]:
    """Every rule that the acting user may see, latest first."""
    with connection.cursor(row_factory=dict_row) as cursor:
        events = cursor.execute(
            'SELECT id, at, what, "by", person, reason, detail FROM event '
            "WHERE what = ANY(%s) ORDER BY id",
            [list(RULE_EVENTS)],
        ).fetchall()
    steps: dict[tuple[int, str], RuleStep] = {}
    proposals = []
    for one in events:
        detail = read_detail(one["detail"])
        if not detail:
            continue  # A detail of an earlier version that cannot be read here, nor ever corrected.
        proposed = one["what"] == RULE_PROPOSED
        number = one["id"] if proposed else detail["rule"]
        steps[number, one["what"]] = RuleStep(one["by"], one["person"], one["at"], one["reason"])
        if proposed:
            proposals.append((number, _terms(detail, one["reason"])))
    accounts = has_accounts(connection)
    seen = scopes_seen(connection, {terms.scope for _, terms in proposals})
    return [
        AcceptanceRule(
            number,
            terms,
            steps[number, RULE_PROPOSED],
            steps.get((number, RULE_APPROVED)),
            steps.get((number, RULE_WITHDRAWN)),
            accounts,
        )
        for number, terms in reversed(proposals)
        if terms.scope in seen
    ]


def _terms(detail: dict[str, Any], reason: str) -> RuleTerms:
    return RuleTerms(
        detail["scope"],
        detail["code"],
        detail["currency"],
        Decimal(detail["each"]),
        Decimal(detail["total"]),
        date.fromisoformat(detail["until"]),
        reason,
        detail.get("record"),
        detail.get("tenant"),
    )
