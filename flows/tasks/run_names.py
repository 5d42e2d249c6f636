"""The name of a run: the one somebody gave it, or else a description of what it does.

Prefect makes up a name for every run, and its page suggests one in the form. Only such names are
replaced; a textual `flow_run_name` would overwrite all others as well.
"""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo

from coolname.data import config as words_of  # Prefect makes up its names with this library.
from prefect.context import FlowRunContext

from connectors.printable import shown
from flows.stages.reconcile.as_of import day_at
from flows.tasks.attempts import this_run

PAGE = re.compile(
    r"(alpha|beta|gamma|delta|epsilon|zeta|eta|theta|iota|kappa|lambda|mu|nu|xi|omicron|pi|rho"
    r"|sigma|tau|upsilon|phi|chi|psi|omega)[0-9]*-[a-z]+(-[a-z]+)*"
)
"""The form of names that Prefect's page suggests: `gamma3-orionis-belt`."""


def called(what: Callable[[Mapping[str, Any]], str]) -> Callable[[], str]:
    """For `@flow(flow_run_name=...)`: `what` makes the name from the run's parameters.

    Parameters are typed by people, and lists of runs show a name in one line.
    """

    def name() -> str:
        context = FlowRunContext.get()
        assert context is not None
        run = context.flow_run
        if run is not None and not is_made_up(run.name):
            return str(run.name)
        return shown(what(context.parameters or {}))

    return name


def is_made_up(name: str | None) -> bool:
    """Whether nobody has chosen this name."""
    if not name or PAGE.fullmatch(name):
        return True
    words = name.split("-")
    return len(words) == 2 and set(words) <= _vocabulary()


@cache
def _vocabulary() -> frozenset[str]:
    lists: Mapping[str, Any] = words_of
    return frozenset(word for one in lists.values() for word in one.get("words", ()))


def day_of(as_of: date | None, zone: ZoneInfo) -> date:
    """The day a reconciliation is about: as asked, or the day its run was scheduled for."""
    run = this_run()
    planned = run.expected_start_time if run else None
    return as_of or day_at(planned or datetime.now(UTC), zone)
