"""Settings that are no rules, and were others when a report was written that a run is held against.

The same money under another currency's name is another report.
"""

import json
from collections.abc import Iterator
from typing import Any

from connectors.currencies import read_currencies
from connectors.reconciliations import Reconciliation
from flows.report.reconciliation import RuleChange
from flows.stages.rules import TOTALS
from flows.stages.workspace import Workspace
from schemas.counting import quantity

SHOWN = 10
"""Currencies that are told one by one."""
NAMES = "names of currencies (RECON_CURRENCIES)"
ZONE = "time zone (RECON_TIME_ZONE)"


def setting_changes(workspace: Workspace, base: Reconciliation) -> Iterator[RuleChange]:
    """How the settings of a run differ from those of an earlier one, as its totals have them."""
    told = _totals(workspace, base)
    if told is None:
        yield RuleChange(f"{NAMES} and time zone", f"not told by {base.folder}/{TOTALS}", "")
        return
    zone, now = told["cover"].get("zone", ""), workspace.settings.time_zone.key
    if zone and zone != now:
        yield RuleChange(ZONE, zone, now)
    yield from _names(told["currencies"], read_currencies(workspace.settings.currencies))


def _names(before: dict[str, str], now: dict[str, str]) -> Iterator[RuleChange]:
    if not (before and now):
        # All of them are named now, or none any more: numbers and names cannot be mixed up.
        if before or now:
            yield RuleChange(NAMES, _count(before), _count(now))
        return
    other = [
        key
        for key in sorted(before.keys() | now.keys(), key=lambda key: (len(key), key))
        if before.get(key) != now.get(key)
    ]
    for key in other[:SHOWN]:
        yield RuleChange(f"name of currency {key}", before.get(key, ""), now.get(key, ""))
    if len(other) > SHOWN:
        left = quantity(len(other) - SHOWN, "currency")
        yield RuleChange(f"names of {left} beside these", "", "")


def _count(names: dict[str, str]) -> str:
    return quantity(len(names), "currency") if names else ""


def _totals(workspace: Workspace, run: Reconciliation) -> Any:
    """What the totals of a run say; None where they cannot be read."""
    try:
        told = json.loads((workspace.settings.reports / run.folder / TOTALS).read_bytes())
        return told if told["cover"] is not None and told["currencies"] is not None else None
    except (OSError, ValueError, TypeError, KeyError):
        return None
