"""What deliveries, corrections and decisions come to, as the pages say it: in dicts, row by row."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

ERRORS = ("rejected", "conflict")
APPLIED = ("inserted", "updated", "unchanged")
REPAIRING = (*APPLIED, "superseded", "stale", "corrected", "excluded")
COUNTS_NOT = (*ERRORS, "corrected", "superseded", "excluded")
FOR_NONE = "superseded by a row in error"
ENDED = ("complete", "complete_with_errors")
REFERS_TO = {"payment": "currency_rate", "payment_plan_detail": "payment"}
KINDS = ("form_reply", "currency_rate", "payment", "avatar", "payment_plan_detail")
"""References first."""
KEYLESS = ("avatar", "payment_plan_detail")
"""Their key is their content."""


class Refused(Exception):
    """The decision cannot be taken; nothing has changed."""


@dataclass(frozen=True)
class Terms:
    duplicate: str = "conflict"
    repeats: str = "superseded"
    reference: str = "flag"
    complete: bool = False
    budget: int | None = None
    tenant: int | None = None
    change_records: bool = False


@dataclass(eq=False)
class Row:
    kind: str
    key: Any
    """None: it cannot be read."""
    content: Any
    version: tuple[int, int | None] | None = None
    """Minutes as a clock shows them, and the offset."""
    reference: tuple[int, int | None] | None = None
    """Number and tenant of what it refers to."""
    fault: bool = False
    undivided: bool = False
    parent: str = ""
    verdict: str = ""
    equal: bool = False
    """Whether it is in conflict with an equal row."""
    place: tuple[int, int] = (0, 0)
    batch: "Batch" = None  # type: ignore[assignment]

    @property
    def own(self) -> str:
        """Its state, whatever was done to repair it."""
        return "rejected" if self.fault else self.verdict or "pending"

    @property
    def name(self) -> str:
        return f"{self.place[0]}:{self.place[1]}"

    @property
    def record(self) -> tuple[str, Any]:
        return self.kind, self.key

    def age(self, *others: "Row") -> int:
        """Beside other versions: as a moment where all of them are one."""
        if self.version is None:
            return 0
        wall, offset = self.version
        moments = all(one.version and one.version[1] is not None for one in (self, *others))
        return wall - offset if moments and offset is not None else wall


@dataclass(eq=False)
class Batch:
    id: int
    terms: Terms
    corrects: "Batch | None"
    rows: list[Row]
    state: str = "staged"
    applied: int = 0
    wrote: dict[Any, tuple[Row, Row | None]] = field(default_factory=dict)
    """By record the row, and that of the record before."""
    found: set[Any] = field(default_factory=set)
    """Records that were there, so that it wrote nothing."""

    def __post_init__(self) -> None:
        for row in self.rows:
            row.batch = self

    @property
    def stands(self) -> bool:
        return self.state not in ("discarded", "undone")

    def ready(self, kind: str | None = None) -> list[Row]:
        return [row for row in self.rows if row.own == "pending" and kind in (None, row.kind)]


class Ledger:
    def __init__(self) -> None:
        self.batches: dict[int, Batch] = {}
        self.target: dict[Any, Row] = {}

    def state(self, row: Row) -> str:
        """The state of a row whose batch stands."""
        corrected = row.own in ERRORS and any(
            self._repairs(by, row)
            for one in self.batches.values()
            if one.corrects is row.batch and one.state in ENDED
            for by in one.rows
        )
        return "corrected" if corrected else row.own

    def repair_state(self, row: Row) -> str:
        """The same of a repair: one that is superseded by a row in error repairs nothing."""
        if row.own == "superseded" and not any(
            one.record == row.record and self.state(one) not in (*ERRORS, "superseded")
            for one in row.batch.rows
        ):
            return FOR_NONE
        return self.state(row)

    def _repairs(self, by: Row, row: Row) -> bool:
        state = self.repair_state(by)
        if by.parent:
            return by.parent == row.name and by.kind == row.kind and state in REPAIRING
        known = row.key is not None and row.kind not in KEYLESS and by.record == row.record
        one_record = not row.equal or by.batch.terms.repeats == "superseded"
        return known and one_record and state in REPAIRING and state != "excluded"

    def parent(self, row: Row) -> Row | None:
        of = row.batch.corrects.rows if row.batch.corrects and row.parent else []
        return next((one for one in of if (one.name, one.kind) == (row.parent, row.kind)), None)

    def origin(self, row: Row) -> Row:
        above = self.parent(row)
        return row if above is None else self.origin(above)

    def delivery(self, batch: Batch) -> list[Batch]:
        while batch.corrects is not None:
            batch = batch.corrects
        found = [batch]
        for one in self.batches.values():  # In the order they came, each behind what it corrects.
            if one.corrects in found:
                found.append(one)
        return [one for one in found if one.stands]

    # What is done.

    def take(self, batch: Batch) -> None:
        self.batches[batch.id] = batch
        self._check(batch)
        errors = sum(row.own in ERRORS for row in batch.rows)
        if batch.terms.budget is not None and errors > batch.terms.budget:
            batch.state = "held"
        else:
            self._apply(batch)

    def release(self, batch: Batch) -> None:
        if batch.state != "held":
            raise Refused
        self._apply(batch)

    def discard(self, batch: Batch) -> None:
        if batch.state != "held":
            raise Refused
        batch.state = "discarded"

    def undo(self, batch: Batch) -> None:
        standing = [one for one in self.batches.values() if one.stands and one is not batch]
        if (
            not batch.stands
            or any(one.corrects is batch for one in standing)
            or any(self.target[record] is not row for record, (row, _) in batch.wrote.items())
            or any(
                self.target[record].batch is batch
                for one in standing
                if one.applied > batch.applied
                for record in one.found & self.target.keys()
            )
        ):
            raise Refused
        for record, (_, before) in batch.wrote.items():
            if before is None:
                del self.target[record]
            else:
                self.target[record] = before
        batch.state = "undone"

    # What a check says.

    def _check(self, batch: Batch) -> None:
        if batch.corrects is not None:
            self._check_repairs(batch)
        for kind in KINDS:
            self._reject_taken(batch, batch.ready(kind))
            same_key = defaultdict(list)
            for row in batch.ready(kind):
                same_key[row.key].append(row)
            for rows in same_key.values():
                if len(rows) > 1:
                    self._judge_same_key(batch.terms, rows)
            if batch.terms.complete or batch.terms.reference == "reject":
                known = self._known(batch, REFERS_TO.get(kind))
                for row in batch.ready(kind):
                    if row.reference and not any(
                        row.reference in ((key[0], None), key) for key in known
                    ):
                        row.verdict = "rejected"

    def _judge_same_key(self, terms: Terms, rows: list[Row]) -> None:
        equal = len({row.content for row in rows}) == 1
        if terms.repeats == "conflict" or not (equal or terms.duplicate == "last_wins"):
            for row in rows:
                row.verdict, row.equal = "conflict", equal
            return
        counts = rows[0]
        if terms.duplicate == "last_wins":
            counts = max(rows, key=lambda row: (row.age(*rows), row.place))
        for row in rows:
            row.verdict = "" if row is counts else "superseded"

    def _known(self, batch: Batch, kind: str | None) -> list[Any]:
        known = [row.key for row in batch.ready(kind)]
        if not batch.terms.complete:
            return known + [key for of, key in self.target if of == kind]
        others = (one for one in self.delivery(batch) if one is not batch)
        rows = (row for one in others for row in one.rows if row.kind == kind)
        return known + [row.key for row in rows if self.state(row) not in COUNTS_NOT]

    def _check_repairs(self, batch: Batch) -> None:
        repairs = [row for row in batch.ready() if row.parent]
        _reject(row for row in repairs if self.parent(row) is None)
        claims = defaultdict(list)
        for row in repairs:
            above = self.parent(row)
            if above is None or above.undivided:
                continue
            while (higher := self.parent(above)) and not higher.undivided:
                above = higher
            claims[above].append(row)
        for rows in claims.values():
            if len({row.key for row in rows}) > 1:
                _reject(rows)
        for row in repairs:
            above = self.parent(row)
            if above and self.state(above) in APPLIED and above.key != row.key:
                _reject([row])

    def _reject_taken(self, batch: Batch, rows: Iterable[Row]) -> None:
        """Repairs with the key of what they do not repair, asked at the check and as applied."""
        repairs = [row for row in rows if row.parent and row.kind not in KEYLESS]
        delivery = self.delivery(batch)
        last: dict[Row, Row] = {}
        for one in delivery if repairs else ():
            for row in one.rows:
                if row.parent and self.repair_state(row) not in (*ERRORS, FOR_NONE):
                    origin = self.origin(row)
                    last[origin] = max(row, last.get(origin, row), key=_order)
        others = [row for one in delivery if one is not batch for row in one.rows]
        if batch.terms.duplicate != "last_wins":
            _reject([row for row in repairs if self._has_key_of_another(row, others, last)])
        for row in repairs:
            there = self.target.get(row.record)
            if (
                row.own == "pending"
                and not batch.terms.change_records
                and there is not None
                and there.batch not in delivery
                and there.content != row.content
                and self.origin(row).key != row.key
            ):
                _reject([row])

    def _has_key_of_another(self, row: Row, others: list[Row], last: dict[Row, Row]) -> bool:
        for other in others:
            if other.record != row.record or self.state(other) in COUNTS_NOT:
                continue
            merges = row.batch.terms.repeats == "superseded"
            if other.name == row.parent or (merges and other.content == row.content):
                continue
            origins = {self.origin(other)}
            if not other.parent:  # It repairs those with its key, if it comes behind them.
                before = [one for one in others if one.batch.id < other.batch.id]
                by_key = {self.origin(one) for one in before if one.record == other.record}
                origins = by_key or origins
            is_last = any(_order(last.get(of, other)) <= _order(other) for of in origins)
            if is_last and self.origin(row) not in origins:
                return True
        return False

    # What is applied.

    def _apply(self, batch: Batch) -> None:
        batch.applied = 1 + max(one.applied for one in self.batches.values())
        for kind in KINDS:
            for extract in sorted({row.place[0] for row in batch.rows}):
                rows = [row for row in batch.ready(kind) if row.place[0] == extract]
                self._reject_taken(batch, rows)
                for row in rows:
                    if row.own == "pending":
                        row.verdict = self._apply_row(row)
        batch.state = "complete"

    def _apply_row(self, row: Row) -> str:
        there = self.target.get(row.record)
        if there is not None:
            same = there.content == row.content
            if same or row.age(there) < there.age(row):
                row.batch.found.add(row.record)
                return "unchanged" if same else "stale"
        row.batch.wrote[row.record] = row, there
        self.target[row.record] = row
        return "updated" if there else "inserted"


def _order(row: Row) -> tuple[int, int, int]:
    return row.batch.id, *row.place


def _reject(rows: Iterable[Row]) -> None:
    for row in list(rows):
        row.verdict = "rejected"
