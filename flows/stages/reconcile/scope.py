"""What a reconciliation is asked for: a scope (batches, feeds and tenants), a day, and rules."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import date

import psycopg

from connectors.errors import SettingsError
from connectors.postgres.batches.ledger import Batch
from connectors.postgres.runs.reconciliations import latest_runs
from connectors.printable import shown
from flows.stages.reconcile.as_of import OPTIONS, Names
from flows.steps.rules.rules import Rules
from schemas.ledger import FEED_NAME
from schemas.life import RESTATED

EVERYTHING = "everything"
_ONE = {"batches": "batch", "feeds": "feed", "tenants": "tenant"}
_MANY = {one: many for many, one in _ONE.items()}
_TITLED = re.compile(r"(^|; )(batch|feed|tenant)(?= )")
_OF_ONE = re.compile(r"(^|; )(batches|feeds|tenants)(?= [^,;]+(?:;|$))")
_FEED = FEED_NAME.pattern
_SCOPE = re.compile(
    rf"(?:batches (\d+(?:, \d+)*))?(?:(?:^|; )feeds ({_FEED}(?:, {_FEED})*))?"
    r"(?:(?:^|; )tenants (-?\d+(?:, -?\d+)*))?"
)


@dataclass(frozen=True, slots=True)
class Scope:
    """What a reconciliation is about; runs of one scope form a sequence.

    The order and number of times a batch, feed or tenant is named do not matter: it is one scope
    with one text. Raises SettingsError for a feed that no profile could name.
    """

    batches: tuple[int, ...] = ()
    """Empty: every batch that was not taken back."""
    feeds: tuple[str, ...] = ()
    """Empty: every feed."""
    tenants: tuple[int, ...] = ()
    """Empty: every tenant."""
    kept: str = field(default="", compare=False)
    """The text under which an earlier version kept its runs, if that differs: see `as_kept`."""

    def __post_init__(self) -> None:
        for feed in self.feeds:
            if not FEED_NAME.fullmatch(feed):
                raise SettingsError(
                    f"{shown(feed)!r} is not the name of a feed. Name each feed by itself, as its "
                    "profile does and `recon status` shows it."
                )
        for name in _ONE:
            object.__setattr__(self, name, tuple(sorted({*getattr(self, name)})))

    @property
    def text(self) -> str:
        """The scope as reports and the ledger name it."""
        if self.kept:
            return self.kept
        parts = [
            f"{name} {', '.join(map(str, values))}"
            for name in _ONE
            if (values := getattr(self, name))
        ]
        return "; ".join(parts) or EVERYTHING

    @property
    def options(self) -> list[str]:
        return [f"--{one} {value}" for name, one in _ONE.items() for value in getattr(self, name)]

    @property
    def narrow(self) -> bool:
        """Whether it covers only some batches, and not all that the service has."""
        return bool(self.batches or self.feeds)

    def may_have(self, batch: Batch) -> bool:
        """Whether a batch may have rows of the scope, judging by its feed and its tenant."""
        return (not self.feeds or batch.feed in self.feeds) and (
            not self.tenants or batch.tenant is None or batch.tenant in self.tenants
        )

    @classmethod
    def read(cls, text: str) -> "Scope | None":
        """The scope that `text` names; None if it names none, such as a restatement's."""
        if text == EVERYTHING:
            return cls()
        found = _SCOPE.fullmatch(text)
        if found is None:
            return None
        batches, feeds, tenants = (part.split(", ") if part else [] for part in found.groups())
        return cls(tuple(map(int, batches)), tuple(feeds), tuple(map(int, tenants)))

    def covers(self, other: "Scope") -> bool:
        """Whether all that the other one is about belongs to this one."""
        return all(
            not mine or (theirs and {*theirs} <= {*mine}) for mine, theirs in self._pairs(other)
        )

    def overlaps(self, other: "Scope") -> bool:
        """Whether a record may belong to both; scopes of batches need their feeds named as well."""
        return all(
            not mine or not theirs or {*mine} & {*theirs} for mine, theirs in self._pairs(other)
        )

    def _pairs(self, other: "Scope") -> list[tuple[Collection[object], Collection[object]]]:
        return [(getattr(self, name), getattr(other, name)) for name in _ONE]


def scope_title(text: str) -> str:
    """The text of a scope for titles: `batch 2` if it is about a single one."""
    return _OF_ONE.sub(lambda found: found[1] + _ONE[found[2]], text)


def scope_meant(title: str) -> str:
    """The text of the scope that a title names: `tenant 7` gives `tenants 7`."""
    return _TITLED.sub(lambda found: found[1] + _MANY[found[2]], title)


def is_one_scope(text: str, other: str) -> bool:
    """Whether two texts name the same scope; an earlier version kept the order of names."""
    named = Scope.read(text)
    return text == other or (named is not None and named == Scope.read(other))


def as_kept(connection: psycopg.Connection, scope: Scope) -> Scope:
    """A scope with the text that its runs are kept under, so that the next run follows them.

    An earlier version kept names in the given order, and so several texts for one scope. The one
    with the latest day is continued.
    """
    kept = [run for run in latest_runs(connection) if Scope.read(run.scope) == scope]
    last = max(kept, key=lambda run: (run.as_of, run.id), default=None)
    return replace(scope, kept=last.scope) if last else scope


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be reconciled, on which day and by which rules."""

    scope: Scope
    as_of: date
    rules: Rules
    by: str | None = None
    restate: str | None = None
    """Why a day before the last run of the scope is reconciled again."""
    unread: Mapping[str, str] = field(default_factory=dict)
    """Record kinds whose listings could not be pulled for this run, and why."""
    names: Names = OPTIONS
    """The names of day and reason in refusals."""

    @property
    def scope_text(self) -> str:
        """The scope as the ledger names it; a restatement is a scope of its own.

        So its decisions and signatures do not apply to the runs that it restates.
        """
        restated = "" if self.restate is None else f"{RESTATED}{self.as_of}"
        return self.scope.text + restated
