"""The reconciliation report as one frozen value; every rendering shows this and nothing else.

It holds nothing of the run (no id, no clock): the same truths and rules give the same value, byte
for byte. Run, time and signatures of files are in the manifest beside it. Money is Decimal, never
summed across currencies; `currency` is the CurrenciesId as text, empty where a record names none.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime

from flows.steps.breaks.ageing import AgeingLine
from flows.steps.breaks.causes import CauseLine
from flows.steps.breaks.tolerated import ToleranceLine
from flows.steps.reconcile.allotment import PlanLine
from flows.steps.reconcile.batches import BatchLine
from flows.steps.reconcile.cut_off import AfterLine
from flows.steps.reconcile.debts import DebtLine
from flows.steps.reconcile.reported_breaks import Breaks
from flows.steps.reconcile.roll_forward import RollForward
from flows.steps.reconcile.self_test import SelfTest
from flows.steps.reconcile.totals import ChainLine, ControlLine, ExcludedLine, Proof, StatusLine
from flows.steps.reconcile.used_rates import RateLine
from schemas.life import RECONCILED

VERDICTS = (*RECONCILED, "NOT_RECONCILED", "INCOMPLETE")


@dataclass(frozen=True, slots=True)
class SourceLine:
    record: str
    expected: str
    """E, with the number of extracts."""
    found: tuple[str, ...]
    """Letters of the sources that were there: D, A, G."""
    missing: tuple[str, ...]
    """Letters of the sources that were asked for and not there."""
    note: str


@dataclass(frozen=True, slots=True)
class InputLine:
    """One file or listing that was compared."""

    name: str
    record: str
    bytes: int
    sha256: str
    rows: int
    batch_id: int | None = None


@dataclass(frozen=True, slots=True)
class PreviousLine:
    run: int
    as_of: date
    report_hash: str
    verdict: str


@dataclass(frozen=True, slots=True)
class Cover:
    title: str
    as_of: date
    period: tuple[date | None, date | None]
    """First and last business date of the records."""
    tenants: tuple[int, ...]
    truths: tuple[SourceLine, ...]
    inputs: tuple[InputLine, ...]
    rules_name: str
    rules_hash: str
    rules_text: str
    """Canonical TOML of the rules as they were used."""
    version: str
    previous: PreviousLine | None
    verdict: str
    because: tuple[str, ...]
    """Why the verdict is not RECONCILED, in the reader's words."""
    undated: tuple[str, ...] = ()
    """Record kinds without a business date: they are compared as they stand."""
    after: tuple[AfterLine, ...] = ()
    """What is dated after the day: in no total, tie or break."""
    restates: str = ""
    """Which run this one restates and why; empty: it is none."""
    zone: str = "UTC"
    """Where the day of the report ends."""


@dataclass(frozen=True, slots=True)
class SignatureLine:
    role: str
    by: str
    """The name that was given."""
    account: str
    at: datetime
    comment: str
    accepted_changes: str = ""
    """Hash of the changes of how the figures are made that were accepted with it."""


@dataclass(frozen=True, slots=True)
class RunLine:
    """Which run this is; its moment is in the manifest alone."""

    number: int
    by: str


@dataclass(frozen=True, slots=True)
class RuleChange:
    """One rule, key of a profile or setting that is another than it was."""

    key: str
    old: str
    """Empty: there was none."""
    new: str


@dataclass(frozen=True, slots=True)
class AsideLine:
    state: str
    because: str
    by_rules: bool
    breaks: int


@dataclass(frozen=True, slots=True)
class OutgrownLine:
    """A break that was accepted as something else than it is now."""

    id: str
    what: str
    """Its code, record kind, key and field."""
    accepted_as: str
    is_now: str


@dataclass(frozen=True, slots=True)
class AgainLine:
    """A break whose acceptance is another than when the last report was approved."""

    id: str
    what: str
    signed_as: str
    accepted_as: str


@dataclass(frozen=True, slots=True)
class Changes:
    """What is other than in the last signed run of the scope, beside its records."""

    since: str
    """Which run it is held against, in words; empty: there is none."""
    signed: bool = False
    """Whether that one is an approved run of the same scope."""
    accept: str = ""
    """Hash that names all that is other of how the figures are made, for whoever approves to
    accept it: rules, profiles, settings; empty: nothing is."""
    rules_before: str = ""
    """Hash."""
    rules: tuple[RuleChange, ...] = ()
    profiles: tuple[RuleChange, ...] = ()
    """Of feeds: how batches were read otherwise than was signed."""
    settings: tuple[RuleChange, ...] = ()
    """What is no rule and changes how the report reads: names of currencies, whose day it is, the
    version of recon."""
    aside: tuple[AsideLine, ...] = ()
    outgrown: tuple[OutgrownLine, ...] = ()
    """The largest first; the cover counts them all."""
    again: tuple[AgainLine, ...] = ()
    """Breaks that were accepted again as something else since, the largest first."""
    notes: tuple[str, ...] = ()
    """Anything else the approver has to know, a sentence each."""


@dataclass(frozen=True, slots=True)
class SignOff:
    """Who stood for the previous report of this scope, and whether it still holds."""

    run: int
    as_of: date
    prepared_by: str | None
    approved_by: str | None
    comment: str
    report_hash: str
    chain_hash: str
    changed_since: int
    """Records that differ from what was signed."""
    signatures: tuple[SignatureLine, ...] = ()
    compared: int | None = None
    """Signed records that were held against what is there; None: none were read."""
    not_compared: Mapping[str, int] = field(default_factory=dict)
    """Record kind -> signed records that were not, there being none of it in the scope any more."""

    @property
    def report(self) -> str:
        return f"reconciliation {self.run} as of {self.as_of}"


@dataclass(frozen=True, slots=True)
class ReconciliationReport:
    cover: Cover
    statuses: tuple[StatusLine, ...]
    chain: tuple[ChainLine, ...]
    controls: tuple[ControlLine, ...]
    proofs: tuple[Proof, ...]
    breaks: Breaks
    """Open, accepted and expired ones; most severe and largest first."""
    ageing: tuple[AgeingLine, ...]
    roll_forward: tuple[RollForward, ...]
    rates: tuple[RateLine, ...]
    plans: tuple[PlanLine, ...]
    debts: tuple[DebtLine, ...]
    batches: tuple[BatchLine, ...]
    tolerances: tuple[ToleranceLine, ...]
    causes: tuple[CauseLine, ...]
    sign_off: SignOff | None
    excluded: tuple[ExcludedLine, ...]
    self_test: SelfTest
    currencies: Mapping[str, str]
    """ISO codes by CurrenciesId as text; a currency not in it is shown by its number."""
    accepted_forward: tuple[RollForward, ...] = ()
    """The same of the accepted breaks: what became of each acceptance."""
    aside_forward: tuple[RollForward, ...] = ()
    """The same of the breaks that this run did not look at, or that its rules let pass."""
    run: RunLine | None = None
    changes: Changes | None = None
    left_out: Mapping[str, int] = field(default_factory=dict)
    """How many more lines a list of the report would have, by its name; all others are whole."""

    @property
    def status_counts(self) -> Mapping[str, Mapping[str, int]]:
        """By record kind, how many of its records have which status."""
        counts: dict[str, dict[str, int]] = {}
        for one in self.statuses:
            counts.setdefault(one.record, {})[one.status] = one.rows
        return counts

    @property
    def forwards(self) -> Mapping[str, Sequence[RollForward]]:
        pools = (self.roll_forward, self.accepted_forward, self.aside_forward)
        return dict(zip(("open", "accepted", "set aside"), pools, strict=True))

    @property
    def reconciles(self) -> bool:
        """Whether finance may sign: nothing open but what was accepted."""
        return self.cover.verdict in RECONCILED
