"""Our staged rows and the service's insert-batch data, compared as they are, batch by batch."""

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from schemas.tables import INSERT_BATCH_DATA


@dataclass(frozen=True, slots=True)
class Compared:
    """The rows of one BatchId on both sides; rows are equal when all their fields are."""

    batch_id: int | None
    ours: int
    theirs: int
    same: int

    @property
    def differs(self) -> bool:
        """Whether a side has a row that the other one has not."""
        return not self.ours == self.theirs == self.same


def compare_rows(
    ours: Iterable[Mapping[str, Any]], theirs: Iterable[Mapping[str, Any]]
) -> list[Compared]:
    """Every BatchId of either side, in order; a row that is there twice counts twice.

    The service writes no value and an empty text alike, so they are equal here.
    """
    mine, other = _contents(ours), _contents(theirs)
    return [
        Compared(
            batch,
            mine[batch].total(),
            other[batch].total(),
            (mine[batch] & other[batch]).total(),
        )
        for batch in sorted({*mine, *other}, key=lambda one: (one is not None, one or 0))
    ]


def _contents(rows: Iterable[Mapping[str, Any]]) -> defaultdict[int | None, Counter[bytes]]:
    found: defaultdict[int | None, Counter[bytes]] = defaultdict(Counter)
    for row in rows:
        values = [row.get(name) for name in INSERT_BATCH_DATA.columns]
        text = json.dumps([None if value == "" else value for value in values])
        found[row.get("BatchId")][hashlib.sha256(text.encode()).digest()] += 1
    return found
