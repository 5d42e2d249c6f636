"""How a run's figures are made: its rules, its feeds' profiles, its settings and version."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import psycopg

from connectors.currencies import read_currencies
from connectors.errors import SignatureRefused
from connectors.postgres.runs.reconciliations import Reconciliation
from flows.stages.reconcile.report_files import TOTALS, read_totals
from flows.stages.reconcile.rules import text_of
from flows.stages.reconcile.sources import Gathered
from flows.stages.workspace import Workspace
from flows.steps.reconcile.report import RuleChange
from flows.steps.rules.canonical import rules_hash, rules_text
from flows.steps.rules.rules import Rules
from schemas.counting import quantity

NAMES = "names of currencies (RECON_CURRENCIES)"
ZONE = "time zone (RECON_TIME_ZONE)"
VERSION = "version of recon"
NOT_STATED = "not told"


@dataclass(frozen=True, slots=True)
class Method:
    """Everything that decides a run's figures besides its records."""

    rules_hash: str
    rules_text: str | None
    """The canonical text; None if it is not kept."""
    version: str = ""
    """As `_version` gives it; empty if not known, as for runs of an earlier version."""
    zone: str = ""
    """The time zone of its day; empty if not known."""
    currencies: Mapping[str, str] | None = None
    """Names by CurrenciesId; None if not known."""
    batches: frozenset[int] | None = None
    """The batches it read, whose profiles the ledger keeps; None if not known."""
    source: str = ""
    """The file that says all this; empty while the run is under way."""


def method_now(workspace: Workspace, rules: Rules, gathered: Gathered) -> Method:
    """How the figures of a run under way are made."""
    return Method(
        rules_hash(rules),
        rules_text(rules),
        _version(rules),
        workspace.settings.time_zone.key,
        read_currencies(workspace.settings.currencies),
        frozenset(one.batch_id for one in (*gathered.extracts, *gathered.listings)),
    )


def _version(rules: Rules) -> str:
    """The version of recon and, if the rules name a calendar, of the library with its holidays."""
    calendar = f", holidays {version('holidays')}" if rules.calendar else ""
    return f"{version('recon')}{calendar}"


def method_of(workspace: Workspace, connection: psycopg.Connection, run: Reconciliation) -> Method:
    """How the figures of an earlier run were made, as far as its totals say.

    Altered totals count for nothing, because they could hide a change.
    """
    text = text_of(workspace, connection, run.rules_hash)
    path = f"{run.folder}/{TOTALS}"
    try:
        totals: Any = read_totals(workspace, run)
        cover = totals["cover"]
        batches = [one["batch_id"] for one in cover["inputs"]]
        return Method(
            run.rules_hash,
            text,
            str(cover.get("version") or run.version or ""),
            str(cover.get("zone") or ""),
            dict(totals["currencies"]),
            None if None in batches else frozenset(map(int, batches)),
            path,
        )
    except SignatureRefused:
        path = f"{path}, which is not as it was written"
    except (ValueError, TypeError, KeyError, AttributeError):
        pass
    return Method(run.rules_hash, text, run.version or "", source=path)


def setting_changes(before: Method, now: Method) -> Iterator[RuleChange]:
    """How the settings and version of a run differ from an earlier one's."""
    if before.currencies is None:
        yield RuleChange(f"{NAMES} and time zone", f"{NOT_STATED} by {before.source}", "")
    else:
        if before.zone != now.zone:
            yield RuleChange(ZONE, before.zone or NOT_STATED, now.zone or NOT_STATED)
        yield from _names(before.currencies, now.currencies or {})
    if before.version != now.version:
        yield RuleChange(VERSION, before.version or NOT_STATED, now.version or NOT_STATED)


def _names(before: Mapping[str, str], now: Mapping[str, str]) -> Iterator[RuleChange]:
    if not (before and now):
        # All were named or all unnamed since: numbers and names cannot be mixed up.
        if before or now:
            yield RuleChange(NAMES, _count(before), _count(now))
        return
    other = [
        key
        for key in sorted(before.keys() | now.keys(), key=lambda key: (len(key), key))
        if before.get(key) != now.get(key)
    ]
    for key in other:
        # Each one is listed, because approval accepts this list by its hash.
        yield RuleChange(f"name of currency {key}", before.get(key, ""), now.get(key, ""))


def _count(names: Mapping[str, str]) -> str:
    return quantity(len(names), "currency") if names else ""
