"""The reconciliation report as one frozen value; every rendering shows this and nothing else.

It has no clock: the same sources and rules in the same run give the same value, byte for byte.
Time and signatures of files are in the manifest beside it. Money is Decimal, never summed across
currencies; `currency` is the CurrenciesId as text, empty if a record names none.
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
    """The letter E with the number of extracts."""
    found: tuple[str, ...]
    """Letters of the sources that were available: D, A, G."""
    missing: tuple[str, ...]
    """Letters of the sources that were asked for but missing."""
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
    """Record kinds without a business date, which are compared as they stand."""
    after: tuple[AfterLine, ...] = ()
    """Records dated after the day, which are in no total, tie or break."""
    restates: str = ""
    """Which run this one restates and why; empty if none."""
    zone: str = "UTC"
    """Time zone in which the day of the report ends."""


@dataclass(frozen=True, slots=True)
class SignatureLine:
    role: str
    by: str
    """The name that was given."""
    account: str
    at: datetime
    comment: str
    accepted_changes: str = ""
    """Hash of the changes of how figures are made that were accepted with the signature."""


@dataclass(frozen=True, slots=True)
class RunLine:
    """The run of the report; its time is only in the manifest."""

    number: int
    by: str


@dataclass(frozen=True, slots=True)
class RuleChange:
    """A rule, key of a profile or setting that has changed."""

    key: str
    old: str
    """Previous value; empty if there was none."""
    new: str


@dataclass(frozen=True, slots=True)
class AsideLine:
    state: str
    because: str
    by_rules: bool
    breaks: int


@dataclass(frozen=True, slots=True)
class OutgrownLine:
    """An accepted break that has changed since."""

    id: str
    what: str
    """Its code, record kind, key and field."""
    accepted_as: str
    is_now: str


@dataclass(frozen=True, slots=True)
class AgainLine:
    """A break whose acceptance has changed since the last report was approved."""

    id: str
    what: str
    signed_as: str
    accepted_as: str


@dataclass(frozen=True, slots=True)
class Changes:
    """What has changed since the last signed run of the scope, apart from its records."""

    since: str
    """The run that this one is compared with, in words; empty if there is none."""
    signed: bool = False
    """Whether that run is an approved run of the same scope."""
    accept: str = ""
    """Hash by which an approver accepts all changes of how the figures are made.

    These are changes of rules, profiles and settings; empty if there are none.
    """
    rules_before: str = ""
    """Hash of the rules of that run."""
    rules: tuple[RuleChange, ...] = ()
    profiles: tuple[RuleChange, ...] = ()
    """Changes of feed profiles by which batches were read."""
    settings: tuple[RuleChange, ...] = ()
    """Changes of what is no rule but affects the report.

    These are names of currencies, the time zone of the day and the version of recon.
    """
    aside: tuple[AsideLine, ...] = ()
    outgrown: tuple[OutgrownLine, ...] = ()
    """Largest first; the cover counts all of them."""
    again: tuple[AgainLine, ...] = ()
    """Breaks whose acceptance has changed since, largest first."""
    notes: tuple[str, ...] = ()
    """Anything else that the approver has to know, one sentence each."""


@dataclass(frozen=True, slots=True)
class SignOff:
    """Who signed the previous report of this scope, and whether it still holds."""

    run: int
    as_of: date
    prepared_by: str | None
    approved_by: str | None
    comment: str
    report_hash: str
    chain_hash: str
    changed_since: int
    """Number of records that differ from what was signed."""
    signatures: tuple[SignatureLine, ...] = ()
    compared: int | None = None
    """Number of signed records that were compared; None if none were read."""
    not_compared: Mapping[str, int] = field(default_factory=dict)
    """Number of signed records by kind, for kinds that the scope no longer has."""

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
    """Breaks that are not resolved, most severe and largest first."""
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
    """ISO codes by CurrenciesId as text; a currency without one is shown by its number."""
    accepted_forward: tuple[RollForward, ...] = ()
    """Roll-forward of accepted breaks: what became of each acceptance."""
    aside_forward: tuple[RollForward, ...] = ()
    """Roll-forward of breaks that this run did not look at, or that its rules let pass."""
    run: RunLine | None = None
    changes: Changes | None = None
    left_out: Mapping[str, int] = field(default_factory=dict)
    """How many lines of a list are not shown, by its name; lists not in it are complete."""

    @property
    def status_counts(self) -> Mapping[str, Mapping[str, int]]:
        """The number of records by record kind and status."""
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
        """Whether finance may sign: no break is open except accepted ones."""
        return self.cover.verdict in RECONCILED
