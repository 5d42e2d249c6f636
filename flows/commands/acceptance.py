"""Rules of acceptance: `recon acceptance propose`, `approve`, `withdraw` and `list`."""

from dataclasses import asdict
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from flows.commands.batches import By, Reason
from flows.commands.breaks import Run
from flows.commands.console import ANY_ID, LISTED, answer, out, print_json, print_table, workspace
from flows.commands.deliver import Json

if TYPE_CHECKING:
    from connectors.postgres.runs.acceptance_rules import AcceptanceRule

acceptance_command = App(
    name="acceptance", help="Propose, approve, withdraw and list rules that accept small breaks."
)
Number = Annotated[
    int,
    Parameter(help="Number of the rule, as `recon acceptance list` shows it.", validator=ANY_ID),
]


@acceptance_command.command(name="propose")
def propose_command(
    *,
    code: Annotated[str, Parameter(help="Code of the breaks, such as AMOUNT.")],
    currency: Annotated[
        int,
        Parameter(help="CurrenciesId of the breaks and of both ceilings.", validator=LISTED),
    ],
    each: Annotated[Decimal, Parameter(help="Largest amount of one break.")],
    total: Annotated[
        Decimal, Parameter(help="Largest sum of all breaks that the rule holds accepted in a run.")
    ],
    until: Annotated[
        date, Parameter(help="Last day of the rule and of what it accepts, YYYY-MM-DD.")
    ],
    reason: Reason,
    record: Annotated[str | None, Parameter(help="Only breaks of this record kind.")] = None,
    tenant: Annotated[
        int | None, Parameter(help="Only breaks of this TenantsId.", validator=ANY_ID)
    ] = None,
    run: Run = None,
    by: By = None,
    json: Json = False,
) -> int:
    """Propose a rule by which small breaks are accepted; somebody else approves it.

    The rule holds for the scope of one run, by default the latest.

    Example: `recon acceptance propose --code AMOUNT --currency 978 --each 1 --total 50
    --until 2026-12-31 --reason "bank charges"`
    """
    from connectors.postgres.runs.acceptance_rules import RuleTerms
    from flows.stages.reconcile.acceptance_rules import propose_rule

    terms = RuleTerms("", code, currency, each, total, until, reason, record, tenant)
    with workspace("acceptance propose") as place:
        number = propose_rule(place, run, terms, by)
    text = f"Rule {number} is proposed. Somebody else puts it in force: "
    return answer(json, {"rule": number}, f"{text}`recon acceptance approve {number}`.")


@acceptance_command.command(name="approve")
def approve_command(
    number: Number, *, reason: Reason = "approved", by: By = None, json: Json = False
) -> int:
    """Put a rule in force that somebody else proposed; every run of its scope then applies it.

    Example: `recon acceptance approve 1042`
    """
    from flows.stages.reconcile.acceptance_rules import approve_rule

    with workspace("acceptance approve") as place:
        approve_rule(place, number, by=by, reason=reason)
    text = f"Rule {number} is in force: the next reconciliation of its scope uses it."
    return answer(json, {"rule": number, "state": "in force"}, text)


@acceptance_command.command(name="withdraw")
def withdraw_command(number: Number, *, reason: Reason, by: By = None, json: Json = False) -> int:
    """End a rule or turn a proposal down; breaks it accepted stay accepted until its last day.

    Example: `recon acceptance withdraw 1042 --reason "charges are booked now"`
    """
    from flows.stages.reconcile.acceptance_rules import withdraw_rule

    with workspace("acceptance withdraw") as place:
        withdraw_rule(place, number, by=by, reason=reason)
    return answer(json, {"rule": number, "state": "withdrawn"}, f"Rule {number} is withdrawn.")


@acceptance_command.command(name="list")
def list_command(*, json: Json = False) -> int:
    """List the rules of acceptance, the latest first, with who proposed and approved each.

    Example: `recon acceptance list`
    """
    from flows.stages.reconcile.acceptance_rules import NO_RULE, list_rules
    from flows.stages.reconcile.as_of import today

    with workspace("acceptance list") as place:
        rules = list_rules(place)
    now = today(place.settings.time_zone)
    if json:
        print_json({"rules": [_as_json(one, now) for one in rules]})
    elif rules:
        print_table(
            ("Rule", "State", "Scope", "Code", "Record", "TenantsId", "CurrenciesId", "Each",
             "Total", "Until", "Proposed", "Approved", "Why"),
            [
                (one.number, one.state(now), one.terms.scope, one.terms.code, one.terms.record,
                 one.terms.tenant, one.terms.currency, format(one.terms.each, "f"),
                 format(one.terms.total, "f"), one.terms.until, one.proposed.by,
                 one.approved.by if one.approved else "", one.terms.reason)
                for one in rules
            ],
            right=("Rule", "TenantsId", "CurrenciesId", "Each", "Total"),
        )  # fmt: skip
    else:
        out().print(NO_RULE)
    return 0


def _as_json(rule: "AcceptanceRule", today: date) -> dict[str, Any]:
    facts = asdict(rule)
    ceilings = {name: format(facts["terms"][name], "f") for name in ("each", "total")}
    steps = {name: facts[name] for name in ("proposed", "approved", "withdrawn")}
    return {"rule": rule.number, "state": rule.state(today), **facts["terms"], **ceilings, **steps}
