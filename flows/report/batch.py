"""The batch report as a value: what came in, what became of every row, and that it adds up.

It holds nothing of the run (no id, no time): the same input gives the same report, byte for byte.
Run and time are in the manifest beside it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from flows.steps.totals import Totals

STATES = (
    "rejected",
    "conflict",
    "superseded",
    "stale",
    "inserted",
    "updated",
    "unchanged",
    "pending",
)
"""The end states of a row, in the order reports show them; every row is in exactly one."""


@dataclass(frozen=True, slots=True)
class FileLine:
    """One delivered file."""

    name: str
    record: str | None
    bytes: int | None
    sha256: str | None
    rows: int
    rejected: int
    refused: str | None
    """Refusal code; None: the file was read."""
    message: str | None


@dataclass(frozen=True, slots=True)
class ChainLine:
    """One link of the completeness chain of a record kind."""

    stage: str
    totals: Totals
    change: Totals
    """Against the link before; what the explanation accounts for."""
    explained: str
    residual: Totals
    """What the explanation does not account for: zero, or the batch does not tie."""


@dataclass(frozen=True, slots=True)
class Chain:
    """The completeness chain of one record kind, from the file to the database."""

    record: str
    title: str
    amounts: tuple[str, ...]
    """Names of the amount fields, in order."""
    lines: tuple[ChainLine, ...]
    states: Mapping[str, Totals]
    """End state -> control totals; they add up to the rows read."""

    @property
    def ties(self) -> bool:
        """Whether no link leaves a residual."""
        return all(line.residual.is_zero for line in self.lines)


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
    value: str
    """As shown in ErrorData; secrets never are."""


@dataclass(frozen=True, slots=True)
class NoteLine:
    """A finding that rejected no row."""

    record: str
    code: str
    field: str
    value: str
    rows: int
    file: str
    record_number: int
    message: str


@dataclass(frozen=True, slots=True)
class BatchReport:
    """Everything the report of one batch shows."""

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
    """Codes by CurrenciesId, where the setting names them."""

    @property
    def rows(self) -> int:
        """Rows read, over all readable files."""
        return sum(file.rows for file in self.files)

    @property
    def errors(self) -> int:
        """Rows that carry HasError."""
        return sum(
            chain.states[state].rows
            for chain in self.chains
            for state in ("rejected", "conflict")
            if state in chain.states
        )
