"""What batches do to the target, and what taking them back does, in plain Python."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.governance.period_facts import COUNTS, Key, Payment, Row

NOBODY = 0
"""In place of a batch: somebody wrote it by hand."""


@dataclass
class Batches:
    rows: list[Row] = field(default_factory=list)
    """Of batches in force, those applied last behind the others."""
    target: dict[Key, Payment] = field(default_factory=dict)
    writer: dict[Key, int] = field(default_factory=dict)
    images: dict[tuple[int, Key], tuple[Payment, int]] = field(default_factory=dict)
    """What a batch wrote over, and which batch had written that."""
    corrects: dict[int, int | None] = field(default_factory=dict)
    """Each batch that was delivered, and what it corrects."""
    held: set[int] = field(default_factory=set)
    taken_back: dict[int, str] = field(default_factory=dict)
    undone: dict[tuple[int, int], Row] = field(default_factory=dict)
    """Rows of batches that were taken back, by batch and number."""
    applied: dict[int, int] = field(default_factory=dict)
    """When a batch was applied."""
    step: int = 0

    def deliver(self, batch: int, rows: Sequence[Row], corrects: int | None, *, hold: bool) -> None:
        self.step += 1
        self.corrects[batch] = corrects
        numbered = [row._replace(batch=batch, number=place) for place, row in enumerate(rows, 1)]
        if hold:
            self.held.add(batch)
            self.rows += [row._replace(verdict="rejected" if row.bad else "pending")
                          for row in numbered]  # fmt: skip
        else:
            self._apply(batch, numbered)

    def release(self, batch: int) -> None:
        self.step += 1
        self.held.remove(batch)
        mine = [row for row in self.rows if row.batch == batch]
        self.rows = [row for row in self.rows if row.batch != batch]
        self._apply(batch, mine)

    def discard(self, batch: int) -> None:
        self.step += 1
        self.held.remove(batch)
        self._leave(batch, "discarded")

    def _apply(self, batch: int, rows: Sequence[Row]) -> None:
        self.applied[batch] = self.step
        for row in rows:
            verdict = "rejected" if row.bad else self._verdict(row)
            self.rows.append(row._replace(verdict=verdict))
            if verdict == "updated":
                self.images[batch, row.key] = self.target[row.key], self.writer[row.key]
            if verdict in ("inserted", "updated"):
                self.target[row.key], self.writer[row.key] = row.payment, batch

    def _verdict(self, row: Row) -> str:
        there = self.target.get(row.key)
        if there is None:
            return "inserted"
        if row.payment.at < there.at:
            return "stale"
        return "unchanged" if row.payment.same(there) else "updated"

    def why_not_undone(self, batch: int) -> str:
        """What an undo is refused for, in a word of the refusal."""
        if any(of == batch and one not in self.taken_back for one, of in self.corrects.items()):
            return "corrects it"
        mine = self._wrote(batch)
        others = [
            row
            for row in self.rows
            if row.batch != batch and self.applied.get(row.batch, 0) > self.applied[batch]
        ]
        if any(self.writer[row.key] != batch for row in mine if row.key in self.target):
            return "has since written"
        away = any(row.key not in self.target for row in mine)
        over = (self.images.get((row.batch, row.key)) for row in others
                if row.verdict == "updated")  # fmt: skip
        if away and any(image is not None and image[1] == batch for image in over):
            return "has since written"
        found = (row.key for row in others if row.verdict in ("unchanged", "stale"))
        if any(key in self.target and self.writer[key] == batch for key in found):
            return "wrote none of them"
        return ""

    def by_hand(self, batch: int) -> bool:
        """Whether somebody changed or deleted what it wrote."""
        now = ((row, self.target.get(row.key)) for row in self._wrote(batch))
        return any(there is None or not there.same(row.payment) for row, there in now)

    def undo(self, batch: int) -> None:
        self.step += 1
        for row in self._wrote(batch):
            image = self.images.get((batch, row.key))
            if image is None:
                self.target.pop(row.key, None)
            else:
                self.target[row.key], self.writer[row.key] = image
        self._leave(batch, "undone")

    def _wrote(self, batch: int) -> list[Row]:
        return [row for row in self.rows
                if row.batch == batch and row.verdict in ("inserted", "updated")]  # fmt: skip

    def _leave(self, batch: int, how: str) -> None:
        self.taken_back[batch] = how
        mine = [row for row in self.rows if row.batch == batch]
        self.rows = [row for row in self.rows if row.batch != batch]
        self.undone |= {(batch, row.number): row for row in mine}

    def of(self, key: Key) -> list[Row]:
        return [row for row in self.rows if row.key == key]

    def counting(self, key: Key) -> Row | None:
        good = [row for row in self.of(key) if row.verdict in COUNTS]
        return good[-1] if good else None

    def corrected(self, row: Row) -> bool:
        """Whether a row in error was delivered again without one."""
        mine = self.of(row.key)
        behind = mine[mine.index(row) + 1 :]
        return bool(row.bad) and any(not one.bad and one.verdict != "pending" for one in behind)
