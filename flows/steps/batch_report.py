"""The batch report as a value: what was delivered, what became of every row, and that it ties.

It has nothing of the run (no id, no time): the same input gives the same report, byte for byte.
Run and time are in the manifest beside it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from flows.steps.totals import Totals, add
from schemas.counting import agree, quantity
from schemas.derived.views import APPLIED, ERRORS, SEND_ERRORS, WRITTEN
from schemas.field import Table
from schemas.operations import PUSHES
from schemas.reasons import NOT_READ, OF_ROW

STATES = (
    "rejected",
    "conflict",
    "corrected",
    "superseded",
    "excluded",
    "stale",
    "inserted",
    "updated",
    "unchanged",
    "listed",
    "pending",
)
"""The end states of a row, in the order reports show them; every row is in exactly one."""
PUSH_STATES = (
    "acknowledged",
    "refused",
    "differs",
    "in_doubt",
    "abandoned",
    "superseded",
    "sending",
    "unsent",
)
"""The states of an applied row at the service, in the order reports show them."""
MOST_NOTES = 2_000
"""Most notes of a report; there may be many, as a note about a reference names a single value."""
PUSH_LEFT = ("sending", "unsent")
"""The states of rows that are still to be sent."""
UNSENT = "unsent"


@dataclass(frozen=True, slots=True)
class FileLine:
    name: str
    record: str | None
    bytes: int | None
    sha256: str | None
    rows: int
    rejected: int
    refused: str | None
    """Refusal code; None if the file was read."""
    message: str | None
    excluded: int = 0
    """Rows that the feed profile leaves out."""
    taken: bool = False
    """Whether the file was refused, but taken since."""


@dataclass(frozen=True, slots=True)
class BatchChainLine:
    """One link of the completeness chain of a record kind."""

    stage: str
    totals: Totals
    change: Totals
    """Change against the link before, which the explanation accounts for."""
    explained: str
    residual: Totals
    """The part of the change that is not accounted for: zero, or the batch does not tie."""


@dataclass(frozen=True, slots=True)
class Chain:
    """The completeness chain of one record kind, from the file to the database."""

    record: str
    title: str
    amounts: tuple[str, ...]
    """Names of the amount fields, in order."""
    lines: tuple[BatchChainLine, ...]
    states: Mapping[str, Totals]
    """End state -> control totals; they add up to the rows read."""
    order: tuple[str, ...] = STATES
    """The states in the order reports show them."""

    @property
    def ties(self) -> bool:
        """Whether no link leaves a residual."""
        return all(line.residual.is_zero for line in self.lines)


@dataclass(frozen=True, slots=True)
class Pushed:
    """What became of the applied rows of one record kind at the service."""

    operation: str
    record: str
    title: str
    amounts: tuple[str, ...]
    planned: Totals
    """Inserted, updated and unchanged rows, all of which are to reach the service in the end."""
    states: Mapping[str, Totals]
    """State at the service -> control totals, which add up to what was planned."""
    residual: Totals
    """Zero, or the states do not tie."""

    @property
    def ties(self) -> bool:
        """Whether every applied row is in exactly one state at the service."""
        return self.residual.is_zero

    @property
    def chain(self) -> Chain:
        """The same as a chain of one link, from planned rows to reported ones."""
        reported = self.planned - self.residual
        change = reported - self.planned
        lines = (
            BatchChainLine("planned", self.planned, Totals(), "", Totals()),
            BatchChainLine(
                "told", reported, change, "every applied row is told of once", self.residual
            ),
        )
        return Chain(self.record, self.title, self.amounts, lines, self.states, PUSH_STATES)

    @property
    def waits(self) -> int:
        """Number of rows that are still to be sent."""
        return _sum(self.states, *PUSH_LEFT).rows

    @property
    def undecided(self) -> int:
        """Number of rows that somebody has to decide about."""
        return _sum(self.states, *SEND_ERRORS).rows


@dataclass(frozen=True, slots=True)
class ReasonLine:
    """Rejected rows by reason, with the first of them."""

    record: str
    code: str
    field: str
    rows: int
    title: str
    remedy: str
    file: str
    line: int
    record_number: int
    value: str
    """As shown in ErrorData; secrets never are."""
    of_service: bool = False
    """Whether the reason is the service's, in its own words, against rows that were applied."""

    def takes(self, record: str, amount: str) -> bool:
        """Whether its rows have no readable amount: that field was not read, or no field was."""
        unread = self.code in OF_ROW or (self.field == amount and self.code in NOT_READ)
        return unread and self.record == record and not self.of_service


@dataclass(frozen=True, slots=True)
class NoteLine:
    """A finding that rejected no row."""

    record: str
    code: str
    field: str
    value: str
    rows: int
    file: str
    line: int
    record_number: int
    message: str


@dataclass(frozen=True, slots=True)
class BatchReport:
    feed: str
    content_id: str
    verdict: str
    """complete, complete_with_errors, held, or does_not_tie."""
    held_because: str | None
    files: tuple[FileLine, ...]
    chains: tuple[Chain, ...]
    reasons: tuple[ReasonLine, ...]
    notes: tuple[NoteLine, ...]
    currencies: Mapping[str, str]
    """Codes by CurrenciesId, as far as the setting names them."""
    service: str | None = None
    """Base URL of the service the batch goes to; None if it goes to the database only."""
    pushed: tuple[Pushed, ...] = ()
    again: int = 0
    """Rows in error that were delivered again, still in error, and are corrected from there."""
    notes_beyond: int = 0
    """How many more notes there are."""
    taken_back: str | None = None
    """Who undid or discarded the batch, and why."""
    left_at_service: Mapping[str, int] = field(default_factory=dict)
    """Operation -> rows of an undone batch that the service has or may have."""

    @property
    def note_count(self) -> int:
        return len(self.notes) + self.notes_beyond

    def unreadable(self, chain: Chain) -> tuple[str, ...]:
        """Say which amounts of rows in error are in no sum because they cannot be read."""
        return tuple(
            f"{quantity(rows, 'rejected row')} {agree(rows, 'has', 'have')} no readable {name}: "
            "what was delivered there is in none of these sums."
            for name in chain.amounts
            if (rows := sum(one.rows for one in self.reasons if one.takes(chain.record, name)))
        )

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)

    @property
    def to_deliver(self) -> int:
        """Number of refused files that were not taken since."""
        return sum(file.refused is not None and not file.taken for file in self.files)

    @property
    def errors(self) -> int:
        """Number of rows with HasError."""
        rejected = sum(_sum(chain.states, *ERRORS).rows for chain in self.chains)
        return sum(one.undecided for one in self.pushed) + rejected


def build_chain(
    table: Table,
    read: Mapping[str, Totals],
    staged: Mapping[str, Totals],
    database: Mapping[str, Totals],
    *,
    applied: bool = False,
    undone: bool = False,
) -> Chain:
    """Tie what was read, what is staged, what was applied and what the database holds.

    `read` are the reader's totals by verdict, `staged` those of the staged rows by end state,
    `database` those of the target's records that this batch wrote or found there. Each is counted
    independently, so a residual of zero is a proof and not a repetition. Pending rows explain
    nothing once the batch is `applied`, because no stage follows. A batch that is `undone` must
    have left nothing in the target; what it had found unchanged is then taken from `staged`.
    """
    everything_read, everything_staged = add(read.values()), add(staged.values())
    corrected = staged.get("corrected", Totals())
    refused = _sum(staged, *ERRORS) + corrected
    waits = ("pending",) if "pending" not in staged or not applied else ()
    not_applied = _sum(staged, "superseded", "excluded", "stale", "listed", *waits)
    written = _sum(staged, *WRITTEN)
    found = staged if undone else database
    held = add(totals for state, totals in database.items() if state != "unchanged")
    back = ("taken back", written) if undone else ("read back by key", Totals())
    also = "".join(f", {state}" for state in ("excluded", "listed") if state in staged)
    in_error = "rejected, conflict and corrected" if corrected.rows else "rejected and conflict"
    left = " and ".join((f"superseded, stale{also}", *waits))
    links = [
        ("read", everything_read, "", Totals()),
        ("staged", everything_staged, "every record is kept", Totals()),
        ("without errors", everything_staged - refused, in_error, refused),
        ("applied", _sum(staged, *APPLIED), left, not_applied),
        ("written", written, "unchanged: the database had them", _sum(found, "unchanged")),
        ("in the database", held, *back),
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
    """Tie the applied rows and their sends, each counted independently.

    Before the sends are planned, every applied row is unsent.
    """
    applied = _sum(staged, *APPLIED)
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
