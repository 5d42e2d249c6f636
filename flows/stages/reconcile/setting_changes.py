"""Settings that are no rules, and were others when a report was written that a run is held against.

The same money under another currency's name is another report.
"""

from collections.abc import Iterator, Mapping

from flows.stages.reconcile.method import Method
from flows.steps.reconcile.report import RuleChange
from schemas.counting import quantity

NAMES = "names of currencies (RECON_CURRENCIES)"
ZONE = "time zone (RECON_TIME_ZONE)"
VERSION = "version of recon"
NOT_TOLD = "not told"


def setting_changes(before: Method, now: Method) -> Iterator[RuleChange]:
    """How the settings of a run, and the version it was made by, differ from an earlier one's."""
    if before.currencies is None:
        yield RuleChange(f"{NAMES} and time zone", f"{NOT_TOLD} by {before.told_by}", "")
    else:
        if before.zone != now.zone:
            yield RuleChange(ZONE, before.zone or NOT_TOLD, now.zone or NOT_TOLD)
        yield from _names(before.currencies, now.currencies or {})
    if before.version != now.version:
        yield RuleChange(VERSION, before.version or NOT_TOLD, now.version or NOT_TOLD)


def _names(before: Mapping[str, str], now: Mapping[str, str]) -> Iterator[RuleChange]:
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
    for key in other:
        # Each of them: whoever approves accepts what is told here, by its hash.
        yield RuleChange(f"name of currency {key}", before.get(key, ""), now.get(key, ""))


def _count(names: Mapping[str, str]) -> str:
    return quantity(len(names), "currency") if names else ""
