"""What became of the applied rows at the service, and that they add up."""

from collections.abc import Mapping

from flows.steps.batch_report import PUSH_STATES, Pushed
from flows.steps.totals import Totals, add
from schemas.derived.views import APPLIED
from schemas.field import Table
from schemas.operations import PUSHES

UNSENT = "unsent"


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
