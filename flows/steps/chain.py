"""The completeness chain: the totals of each stage, and what explains the step to the next.

Behind it, what became of the applied rows at the service, and that they add up.
"""

from collections.abc import Mapping

from flows.steps.batch_report import PUSH_STATES, STATES, BatchChainLine, Chain, Pushed
from flows.steps.totals import Totals, add
from schemas.derived.views import APPLIED, ERRORS, WRITTEN
from schemas.field import Table
from schemas.operations import PUSHES

UNSENT = "unsent"


def build_chain(
    table: Table,
    read: Mapping[str, Totals],
    staged: Mapping[str, Totals],
    database: Mapping[str, Totals],
    *,
    applied: bool = False,
) -> Chain:
    """Tie what was read, what is staged, what was applied and what the database holds.

    `read` is what the reader added up by verdict, `staged` what the staged rows add up to by end
    state, `database` what the target holds of the rows this batch wrote, and of those that it found
    there. Each comes from its own count, so a residual of zero is a proof and not a repetition. A
    row that is pending explains nothing once the batch is `applied`: nothing comes after it.
    """
    everything_read, everything_staged = add(read.values()), add(staged.values())
    corrected = staged.get("corrected", Totals())
    refused = _sum(staged, *ERRORS) + corrected
    waits = ("pending",) if "pending" not in staged or not applied else ()
    beside = _sum(staged, "superseded", "excluded", "stale", "listed", *waits)
    written = _sum(staged, *WRITTEN)
    held = add(totals for state, totals in database.items() if state != "unchanged")
    also = "".join(f", {state}" for state in ("excluded", "listed") if state in staged)
    in_error = "rejected, conflict and corrected" if corrected.rows else "rejected and conflict"
    links = [
        ("read", everything_read, "", Totals()),
        ("staged", everything_staged, "every record is kept", Totals()),
        ("without errors", everything_staged - refused, in_error, refused),
        (
            "applied",
            _sum(staged, *APPLIED),
            " and ".join((f"superseded, stale{also}", *waits)),
            beside,
        ),
        ("written", written, "unchanged: the database had them", _sum(database, "unchanged")),
        ("in the database", held, "read back by key", Totals()),
    ]
    lines = []
    before = everything_read
    for stage, totals, explained, accounted in links:
        change = totals - before
        lines.append(BatchChainLine(stage, totals, change, explained, change + accounted))
        before = totals
    states = {state: staged[state] for state in STATES if state in staged}
    return Chain(table.name, table.title, table.amounts, tuple(lines), states)


def build_pushed(
    table: Table, staged: Mapping[str, Totals], sends: Mapping[str, Totals], *, planned: bool
) -> Pushed:
    """Tie the rows the database applied and the sends of them, each from its own count.

    Before the sends are planned, every applied row is unsent.
    """
    applied = add(staged[name] for name in APPLIED if name in staged)
    found = sends if planned or sends else {UNSENT: applied}
    states = {state: found[state] for state in PUSH_STATES if state in found and found[state].rows}
    return Pushed(
        operation=PUSHES[table.name].name,
        record=table.name,
        title=table.title,
        amounts=table.amounts,
        planned=applied,
        states=states,
        residual=applied - add(found.values()),
    )


def _sum(states: Mapping[str, Totals], *names: str) -> Totals:
    return add(states[name] for name in names if name in states)
