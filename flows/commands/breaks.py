"""Breaks: `recon breaks list`, `accept`, `propose`, `reopen`, `resolve`, `assign` and `comment`."""

from collections.abc import Mapping
from dataclasses import astuple, dataclass
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Parameter

from flows.commands.batches import By, Reason
from flows.commands.console import (
    ANY_ID,
    LISTED,
    out,
    print_json,
    print_table,
    stated,
    within,
    workspace,
)
from flows.commands.deliver import Json
from schemas.amounts import BEYOND
from schemas.counting import agree, quantity
from schemas.life import PLACES, THEN, Choice

if TYPE_CHECKING:
    from flows.stages.reconcile.breaks import Chosen, Decided

breaks_command = App(
    name="breaks", help="List breaks; accept, reopen, resolve, assign or comment on them."
)

Ids = Annotated[str, Parameter(help="Ids of the breaks; instead, a filter can choose them.")]
Run = Annotated[
    int | None,
    Parameter(
        help="Number of the reconciliation; default: the latest of all. Decisions about a "
        "restatement need its number.",
        validator=LISTED,
    ),
]


@dataclass(frozen=True, slots=True)
class Filter:
    """Breaks that match everything given."""

    code: Annotated[str | None, Parameter(help="Only breaks with this code, such as AMOUNT.")] = (
        None
    )
    state: Annotated[
        str | None,
        Parameter(
            help="Only breaks in this state, such as NEW, or in one of the groups open, aside and "
            "resolved."
        ),
    ] = None
    record: Annotated[str | None, Parameter(help="Only breaks of this record kind.")] = None
    tenant: Annotated[
        int | None, Parameter(help="Only breaks of this TenantsId.", validator=ANY_ID)
    ] = None
    currency: Annotated[
        int | None, Parameter(help="Only breaks in this CurrenciesId.", validator=ANY_ID)
    ] = None
    cause: Annotated[
        str | None, Parameter(help="Only breaks of this cause group, as the report names it.")
    ] = None

    def chosen(self, ids: tuple[str, ...]) -> "Chosen":
        """These breaks, limited to the ids if any are given."""
        from flows.stages.reconcile.breaks import Chosen

        return Chosen(ids, *astuple(self))


Which = Annotated[Filter, Parameter(name="*")]
EVERY = Filter()


@dataclass(frozen=True, slots=True)
class AskedBreaks:
    """Who decides about which breaks of which run, and the form of the output."""

    by: By = None
    which: Which = EVERY
    run: Run = None
    json: Json = False


Deciding = Annotated[AskedBreaks, Parameter(name="*")]
ABOUT_ALL = AskedBreaks()


@breaks_command.command(name="list")
def list_command(
    *ids: Annotated[str, Parameter(help="Ids of the breaks; default: all.")],
    which: Which = EVERY,
    run: Run = None,
    most: Annotated[
        int,
        Parameter(
            help="How many breaks to list; --json lists all.", validator=within(0, 1_000_000)
        ),
    ] = 50,
    json: Json = False,
) -> int:
    """List the breaks of a reconciliation as they stand now, the largest first.

    Example: `recon breaks list --code AMOUNT --state open`
    """
    from connectors.currencies import read_currencies
    from flows.stages.reconcile.breaks import list_breaks

    with workspace("breaks list") as place:
        names = read_currencies(place.settings.currencies)
        found, breaks = list_breaks(place, run, which.chosen(ids))
    lines = [_facts(row) for row in breaks.iter_rows(named=True)]
    if json:
        print_json({"reconciliation": found.id, "as_of": found.as_of, "breaks": lines})
        return 0
    print_table(
        ("Id", "Code", "Record", "Key", "Field", "State", "Currency", "Amount",
         "Amount is", "Expected", "Found", "Batch", "File", "Line", "First seen", "Until", "Owner",
         "Due"),
        [
            (line["id"], line["code"], line["record"], _key(line),
             line["field"], _state(line), _currency(line["currency"], names),
             _money(line["amount"]),
             line["basis"], line["expected"], line["found"], line["batch_id"], line["file"],
             line["line"], line["first_seen"], line["accepted_until"], line["owner"], line["due"])
            for line in lines[:most]
        ],
        right=("Amount", "Batch", "Line"),
    )  # fmt: skip
    outgrown = [line for line in lines[:most] if line["outgrown"]]
    if outgrown:
        out().print("Accepted as they were, and different now:")
        print_table(
            ("Id", "Accepted by", "Until", "As it was accepted", "As it is now"),
            [
                (line["id"], line["accepted_by"], line["accepted_until"], line["accepted_as"],
                 line["is_now"])
                for line in outgrown
            ],
        )  # fmt: skip
    limit_text = f", {most} of them shown" if len(lines) > most else ""
    count = quantity(len(lines), "break")
    out().print(f"{count} of reconciliation {found.id}, as of {found.as_of}{limit_text}.")
    if any(line["file"] for line in lines[:most]):
        out().print("To show the row behind a break: recon row BATCH FILE --line LINE")
    return 0


@breaks_command.command(name="accept")
def accept_command(
    *ids: Ids,
    reason: Reason,
    until: Annotated[date, Parameter(help="Last day of the acceptance, YYYY-MM-DD.")],
    up_to: Annotated[
        Decimal | None,
        Parameter(
            help="Ceiling, an amount: the acceptance holds while the difference keeps its "
            "direction and is no larger; default: only while nothing changes."
        ),
    ] = None,
    asked: Deciding = ABOUT_ALL,
) -> int:
    """Accept breaks as they are, up to and including a day; then they are open again.

    An acceptance covers what was seen: expected, found, difference and amount. A break that
    differs in a later run is open again, unless it stays within --up-to in the same direction.

    Example: `recon breaks accept --code OFFSET --reason "feed tells UTC" --until 2026-12-31`
    """
    return _decide(ids, asked, Choice.ACCEPT, reason, until=until, up_to=up_to)


@breaks_command.command(name="propose")
def propose_command(
    *ids: Ids,
    reason: Reason,
    until: Annotated[date, Parameter(help="Last day of the acceptance, YYYY-MM-DD.")],
    up_to: Annotated[
        Decimal | None,
        Parameter(help="Ceiling, an amount, as in `recon breaks accept`; default: none."),
    ] = None,
    asked: Deciding = ABOUT_ALL,
) -> int:
    """Propose an acceptance that takes two people: somebody else accepts it on the same terms.

    `recon user limit` lists the amounts above which two people are needed. A proposal lasts until
    the scope is reconciled again.

    Example: `recon breaks propose --code OFFSET --reason "feed tells UTC" --until 2026-12-31`
    """
    return _decide(ids, asked, Choice.PROPOSE, reason, until=until, up_to=up_to)


@breaks_command.command(name="reopen")
def reopen_command(*ids: Ids, reason: Reason, asked: Deciding = ABOUT_ALL) -> int:
    """Take back an acceptance, or a claim that a break is resolved.

    Example: `recon breaks reopen 1f0c2a9b7e3d4c55 --reason "the bank has not paid"`
    """
    return _decide(ids, asked, Choice.REOPEN, reason)


@breaks_command.command(name="resolve")
def resolve_command(
    *ids: Ids,
    reason: Reason,
    at: Annotated[Literal["source", "service"], Parameter(help="Where they were put right.")],
    asked: Deciding = ABOUT_ALL,
) -> int:
    """Claim that breaks were put right; the next reconciliation reopens those that were not.

    Example: `recon breaks resolve 1f0c2a9b7e3d4c55 --at service --reason "corrected by hand"`
    """
    return _decide(ids, asked, Choice.RESOLVE, reason, side=at)


@breaks_command.command(name="assign")
def assign_command(
    *ids: Ids,
    owner: Annotated[str, Parameter(help="Name of the person who looks after them from now on.")],
    due: Annotated[
        date | None, Parameter(help="Day they are due, YYYY-MM-DD; default: none.")
    ] = None,
    reason: Reason = "assigned",
    asked: Deciding = ABOUT_ALL,
) -> int:
    """Give breaks an owner; reports name the owner until somebody else is named.

    Example: `recon breaks assign --code RATE_MISSING --owner "treasury" --due 2026-12-31`
    """
    return _decide(ids, asked, Choice.ASSIGN, reason, owner=owner, until=due)


@breaks_command.command(name="comment")
def comment_command(
    *ids: Ids,
    reason: Annotated[str, Parameter(name="--text", help="Text of the comment.", validator=stated)],
    asked: Deciding = ABOUT_ALL,
) -> int:
    """Comment on breaks without changing their state.

    Example: `recon breaks comment 1f0c2a9b7e3d4c55 --text "asked the bank"`
    """
    return _decide(ids, asked, Choice.COMMENT, reason)


def _decide(
    ids: tuple[str, ...],
    asked: AskedBreaks,
    what: Choice,
    reason: str,
    *,
    until: date | None = None,
    side: str | None = None,
    owner: str | None = None,
    up_to: Decimal | None = None,
) -> int:
    from connectors.currencies import read_currencies
    from connectors.postgres.runs.breaks import Decision
    from flows.stages.reconcile.breaks import decide_breaks

    decision = Decision(what, reason, asked.by, until, side, owner, up_to)
    with workspace(f"breaks {what}") as place:
        names = read_currencies(place.settings.currencies)
        decided = decide_breaks(place, asked.run, asked.which.chosen(ids), decision)
    _show_decided(decided, names, as_json=asked.json)
    return 0


def _show_decided(decided: "Decided", names: Mapping[str, str], *, as_json: bool) -> None:
    from flows.report.spelling import currency_named
    from flows.steps.totals import plain

    decision, count = decided.decision, len(decided.ids)
    amounts, gross = (
        {currency: plain(amount) for currency, amount in sums.items()}
        for sums in (decided.amounts, decided.gross)
    )
    if as_json:
        print_json(
            {
                "reconciliation": decided.run.id,
                "decision": decision.what.value,
                "count": count,
                "amounts": amounts,
                "gross": gross,
                "unreadable": decided.unreadable,
                "counted_elsewhere": decided.elsewhere,
                "until": decision.until,
                "breaks": decided.ids,
            }
            | ({} if decision.up_to is None else {"up_to": plain(decision.up_to)})
        )
        return
    ceiling = "" if decision.up_to is None else f", up to {_money(plain(decision.up_to))}"
    due = f", due {decision.until}" if decision.until else ""
    done = {
        Choice.ACCEPT: f"accepted until {decision.until}{ceiling}",
        Choice.PROPOSE: f"proposed to be accepted until {decision.until}{ceiling}",
        Choice.REOPEN: "reopened",
        Choice.RESOLVE: f"said to be resolved {PLACES.get(decision.side or '', '')}",
        Choice.ASSIGN: f"assigned to {decision.owner}{due}",
        Choice.COMMENT: "commented on",
    }[decision.what]
    money = ", ".join(
        f"{what}{_money(amount)} in {currency_named(currency, names)}"
        for sums, what in ((amounts, ""), (gross, "gross "))
        for currency, amount in sums.items()
    )
    out().print(
        f"{quantity(count, 'break')} of reconciliation {decided.run.id} {done}: "
        f"{money or 'no money'}."
    )
    if unread := decided.unreadable:
        have = agree(unread, "has an amount that is", "have amounts that are")
        out().print(f"{quantity(unread, 'break')} {have} not readable, and in no sum.")
    if decided.elsewhere:
        out().print(
            f"The money of {quantity(decided.elsewhere, 'break')} is counted with another break of "
            "the same record."
        )
    if then := THEN[decision.what]:
        out().print(then)


def _facts(row: dict[str, Any]) -> dict[str, Any]:
    from flows.steps.totals import plain

    exact = {name: plain(value) for name, value in row.items() if isinstance(value, Decimal)}
    texts = {name: value for name, value in row.items() if name.endswith(BEYOND)}
    # A value that no exact column holds replaces the amount.
    whole = {name.removesuffix(BEYOND): value for name, value in texts.items() if value is not None}
    return {name: value for name, value in (row | exact | whole).items() if name not in texts}


def _state(line: dict[str, Any]) -> str:
    claimed = line["claimed"]
    return f"{line['state']}, said to be resolved {PLACES[claimed]}" if claimed else line["state"]


def _key(line: dict[str, Any]) -> str:
    """The key, with the tenant if the key lacks it: two tenants may have a debt with one number."""
    key, tenant = str(line["key"]), line["tenant"]
    return key if tenant is None or key.endswith(f"/{tenant}") else f"{key} tenant {tenant}"


def _currency(number: int | None, names: Mapping[str, str]) -> str | None:
    from flows.report.spelling import currency_named

    return None if number is None else currency_named(str(number), names)


def _money(plain: str | None) -> str | None:
    """An amount as in reports: at least two decimals, a very long one with powers of ten."""
    from flows.report.spelling import ungrouped

    number = Decimal(plain or "NaN")
    return ungrouped(number) if number.is_finite() else plain
