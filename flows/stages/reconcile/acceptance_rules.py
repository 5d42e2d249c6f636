"""Rules of acceptance: one person proposes, another approves; runs then accept breaks by them."""

import logging
from dataclasses import replace
from datetime import date

import psycopg

from connectors.errors import DecisionRefused
from connectors.postgres.runs import acceptance_rules
from connectors.postgres.runs.acceptance_rules import (
    AcceptanceRule,
    RuleOutcome,
    RuleState,
    RuleTerms,
)
from connectors.postgres.runs.reconciliations import Reconciliation
from flows.stages.reconcile.as_of import run_meant
from flows.stages.witness import witness_trail
from flows.stages.workspace import Workspace
from flows.steps.totals import plain
from schemas.amounts import is_ceiling
from schemas.breaks import BREAKS
from schemas.counting import quantity
from schemas.tables import EXTRACTS

log = logging.getLogger("recon.reconcile")


NO_RULE = "There is no rule of acceptance: only people accept breaks."


def propose_rule(workspace: Workspace, run: int | None, terms: RuleTerms, by: str | None) -> int:
    """Propose a rule for the scope of a run, by default the latest; gives its number.

    The scope in `terms` is ignored. Raises DecisionRefused and AccountRefused.
    """
    with workspace.database.connect() as connection:
        last = run_meant(connection, run)
        meant = replace(terms, scope=last.scope)
        _refuse_terms(meant, last.as_of)
        number = acceptance_rules.propose_rule(connection, meant, by)
        witness_trail(workspace, connection)
        return number


def approve_rule(workspace: Workspace, number: int, *, by: str | None, reason: str) -> None:
    """Put a rule in force that somebody else proposed; the next run accepts by it."""
    with workspace.database.connect() as connection:
        acceptance_rules.approve_rule(connection, number, by, reason)
        witness_trail(workspace, connection)


def withdraw_rule(workspace: Workspace, number: int, *, by: str | None, reason: str) -> None:
    """End a rule, or turn a proposal down."""
    with workspace.database.connect() as connection:
        acceptance_rules.withdraw_rule(connection, number, by, reason)
        witness_trail(workspace, connection)


def list_rules(workspace: Workspace) -> list[AcceptanceRule]:
    """Every rule that the acting account may see, the latest first."""
    with workspace.database.connect() as connection:
        return acceptance_rules.list_rules(connection)


def accept_by_rules(connection: psycopg.Connection, run: Reconciliation) -> list[RuleOutcome]:
    """Accept breaks of a just-saved run that its scope's rules cover; gives the outcomes.

    The next run acts on these as on any decision.
    """
    outcomes = acceptance_rules.accept_by_rules(connection, run.id)
    for one in outcomes:
        breaks = quantity(one.breaks, "break")
        if not one.accepted:
            log.warning(
                "Rule %s covers %s of reconciliation %s, and would hold %s accepted, more than "
                "its ceiling of %s: it accepted none",
                *(one.rule, breaks, run.id, plain(one.amount), plain(one.total)),
            )
        elif one.breaks:
            log.info("Rule %s accepted %s of reconciliation %s", one.rule, breaks, run.id)
    for rule in acceptance_rules.list_rules(connection):
        if rule.terms.scope == run.scope and rule.state(run.as_of) is RuleState.SELF_DECLARED:
            log.warning(
                "Rule %s accepts nothing: it was proposed or approved before there were accounts, "
                "by a name without a login. Withdraw it, and propose it again",
                rule.number,
            )
    return outcomes


def _refuse_terms(terms: RuleTerms, as_of: date) -> None:
    if terms.code not in BREAKS:
        raise DecisionRefused(
            "There is no break code {code!r}. Known: {known}. Nothing was proposed.",
            code=terms.code, known=", ".join(BREAKS),
        )  # fmt: skip
    if terms.record is not None and terms.record not in EXTRACTS:
        raise DecisionRefused(
            "There is no record kind {record!r}. Known: {known}. Nothing was proposed.",
            record=terms.record, known=", ".join(EXTRACTS),
        )  # fmt: skip
    if not terms.reason.strip():
        raise DecisionRefused("{give_reason}: every acceptance by the rule carries it.")
    if terms.until < as_of:
        raise DecisionRefused(
            "{until} {day} is before the day of the run, {as_of}. Nothing was proposed.",
            day=terms.until, as_of=as_of,
        )  # fmt: skip
    for amount in (terms.each, terms.total):
        if not is_ceiling(amount):
            raise DecisionRefused(
                "{amount} is no ceiling: give an amount above zero. Nothing was proposed.",
                amount=amount,
            )
    if terms.each > terms.total:
        raise DecisionRefused(
            "The ceiling of one break, {each}, is above the ceiling of all, {total}. Nothing was "
            "proposed.",
            each=terms.each, total=terms.total,
        )  # fmt: skip
