"""Our staged rows compared with the service's insert-batch data, in what the two share.

They share the record inside a row, and HasError. Each side numbers its own batches, and Merged and
ErrorData say what each side did with the row. Only rows that were delivered as insert-batch data
share BatchId, because they bring the service's number along.
"""

import hashlib
import json
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from flows.steps.reconcile.insert_batch import cells_of, read_insert_batch_record
from schemas.tables import INSERT_BATCH_DATA

SHARED = ("the record in Data or Jsondata", "HasError")
"""What is compared."""


@dataclass(frozen=True, slots=True)
class Compared:
    """The rows that the service lists under one BatchId of its own."""

    batch_id: int | None
    theirs: int
    same: int
    """How many of them are here with the same record."""
    here: tuple[tuple[int, int], ...]
    """Our batches that hold these, each with their number."""
    otherwise: int
    """How many of these have another HasError here."""
    missing: int
    """Records delivered here under this BatchId that the service does not list."""

    @property
    def differs(self) -> bool:
        """Whether a side has a row that the other lacks, or a row has another HasError."""
        return self.theirs != self.same or bool(self.otherwise or self.missing)


class _Ours(NamedTuple):
    number: int
    batch: int
    source: int | None
    error: bool | None


def kinds_of(theirs: Iterable[Mapping[str, Any]]) -> list[str] | None:
    """The record kinds inside rows; None if one cannot be told, so that it may be any kind."""
    records = [_insert_batch_record(row) for row in theirs]
    kinds = {read_insert_batch_record(row.get("Data"), row.get("Jsondata")).kind for row in records}
    # A row may also be staged here as insert-batch data that was not unwrapped.
    own = {INSERT_BATCH_DATA.name}
    return None if None in kinds else sorted(own.union(kind.name for kind in kinds if kind))


def compare_rows(
    ours: Iterable[Mapping[str, Any]], theirs: Sequence[Mapping[str, Any]]
) -> list[Compared]:
    """Compare rows for every BatchId the service lists, in order; equal rows each count.

    A BatchId that it does not list is included if a record was delivered here under it and is
    listed under none. `ours` have `source_batch_id` too. Rows are the same if their Data is the
    same, or else the record inside.
    """
    listed: defaultdict[int | None, list[int]] = defaultdict(list)
    for number, row in enumerate(theirs):
        listed[row.get("BatchId")].append(number)
    listed_keys = [_keys(row) for row in theirs]
    wanted = {key for keys in listed_keys for key in keys}
    free: defaultdict[bytes, _Free] = defaultdict(_Free)
    sources: defaultdict[int | None, set[bytes]] = defaultdict(set)
    for number, row in enumerate(ours):
        source, keys = row.get("source_batch_id"), _keys(row)
        for key in wanted.intersection(keys):
            free[key].add(_Ours(number, row["BatchId"], source, row.get("HasError")))
        if source is not None and (source in listed or wanted.isdisjoint(keys)):
            # A set, because a record that was delivered again is the same record.
            sources[source].add(keys[-1])
    pairs = _paired(theirs, listed_keys, free)
    compared = []
    for batch in sorted(listed | sources, key=lambda one: (one is not None, one or 0)):
        rows = listed.get(batch, [])
        mine = [
            (theirs[number].get("HasError"), pairs[number]) for number in rows if number in pairs
        ]
        there = (key for number in rows for key in listed_keys[number])
        compared.append(
            Compared(
                batch,
                theirs=len(rows),
                same=len(mine),
                here=tuple(sorted(Counter(one.batch for _, one in mine).items())),
                otherwise=sum(error not in (None, one.error) for error, one in mine),
                missing=len(sources.get(batch, set()).difference(there)),
            )
        )
    return compared


class _Free:
    """Our rows with one content that are not paired yet, in our order."""

    def __init__(self) -> None:
        self._all: deque[_Ours] = deque()
        self._by_source: defaultdict[int | None, deque[_Ours]] = defaultdict(deque)

    def add(self, row: _Ours) -> None:
        self._all.append(row)
        self._by_source[row.source].append(row)

    def first(self, source: int | None, used: set[int]) -> _Ours | None:
        """The first free row that was delivered under this BatchId, or else the first of all."""
        for rows in (self._by_source.get(source), self._all):
            while rows and rows[0].number in used:
                rows.popleft()
            if rows:
                return rows[0]
        return None


def _paired(
    theirs: Sequence[Mapping[str, Any]],
    keys: Sequence[tuple[bytes, ...]],
    free: Mapping[bytes, _Free],
) -> dict[int, _Ours]:
    """Our row for the number of each of theirs that has one; by Data first, then by record."""
    pairs: dict[int, _Ours] = {}
    used: set[int] = set()
    for place in (0, -1):
        for number, row in enumerate(theirs):
            alike = None if number in pairs else free.get(keys[number][place])
            best = alike.first(row.get("BatchId"), used) if alike else None
            if best is not None:
                pairs[number] = best
                used.add(best.number)
    return pairs


def _insert_batch_record(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """A row without the insert-batch record it may have been delivered in."""
    held = _record(row.get("Jsondata")) or _record(row.get("Data"))
    if held is not None:
        inside = {"Data": held.get("Data"), "Jsondata": held.get("Jsondata")}
        return inside if any(inside.values()) else row
    cells = cells_of(INSERT_BATCH_DATA, row.get("Data") or "")
    # Another record with the same number of cells has no flags in these places.
    if cells is None or not all(flag.lower() in ("true", "false", "") for flag in cells[1:3]):
        return row
    record = dict(zip(INSERT_BATCH_DATA.columns, cells, strict=True))
    return {"Data": record["Data"], "Jsondata": row.get("Jsondata") or record["Jsondata"]}


def _record(text: str | None) -> Mapping[str, Any] | None:
    if not text or not text.startswith("{"):
        return None
    try:
        tree = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return tree if isinstance(tree, dict) and {"Data", "BatchId"} <= tree.keys() else None


def _keys(row: Mapping[str, Any]) -> tuple[bytes, ...]:
    """Hashes of Data, if there is any, and of the record inside."""
    record = _insert_batch_record(row)
    data, jsondata = record.get("Data") or None, record.get("Jsondata") or None
    inside = _hash("record", read_insert_batch_record(data, jsondata).content(data, jsondata))
    return (_hash("data", data), inside) if data else (inside,)


def _hash(what: str, text: str) -> bytes:
    return hashlib.sha256(f"{what}\x1f{text}".encode()).digest()[:16]
