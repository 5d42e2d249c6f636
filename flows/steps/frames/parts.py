"""Sides in parts: the records of a large kind, loaded one part at a time.

Records with the same key are in the same part on every side, and parts are ordered by the first
number of the key. Iterating over parts holds one of them in memory; subscripting a side like any
mapping gives the whole kind.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import polars as pl

from flows.steps.frames.light import light
from schemas.amounts import BEYOND, UNREADABLE

Load = Callable[[], pl.DataFrame]
"""Reads a part from wherever it was put."""
Keep = Callable[[pl.DataFrame], Load]
"""Puts a frame aside."""
Change = Callable[[pl.DataFrame], pl.DataFrame]


@dataclass(frozen=True, slots=True)
class KeptFrame:
    """A part that was put aside and whose columns can be read selectively."""

    names: list[str]
    read: Callable[[list[str]], pl.DataFrame]

    def __call__(self) -> pl.DataFrame:
        return self.read(self.names)


@dataclass(frozen=True, slots=True)
class PartedRows:
    """Rows put aside a few thousand at a time, so that the frame is never whole in memory."""

    names: list[str]
    read: Callable[[list[str]], Iterable[pl.DataFrame]]
    """Reads the named columns, part by part."""

    def __iter__(self) -> Iterator[pl.DataFrame]:
        return iter(self.read(self.names))

    def hstack(self, more: pl.DataFrame) -> "PartedRows":
        """The rows with the columns of `more`, which has one row for each of them."""

        def read(names: list[str]) -> Iterator[pl.DataFrame]:
            at = 0
            own = [name for name in names if name not in more.columns]
            for part in self.read(own or self.names[:1]):
                yield part.hstack(more.slice(at, part.height)).select(names)
                at += part.height

        return PartedRows([*self.names, *more.columns], read)

    def filter(self, rows: pl.Expr) -> "PartedRows":
        asked = rows.meta.root_names()

        def read(names: list[str]) -> Iterator[pl.DataFrame]:
            for part in self.read(list(dict.fromkeys([*names, *asked]))):
                yield part.filter(rows).select(names)

        return PartedRows(self.names, read)

    def select(self, *names: str) -> pl.DataFrame:
        return light(pl.concat(self.read(list(names)), rechunk=True))

    def whole(self) -> pl.DataFrame:
        return self.select(*self.names)


def held_rows(frame: pl.DataFrame) -> PartedRows:
    """All rows of a frame as one part, kept in memory."""
    return PartedRows(frame.columns, lambda names: (frame.select(names),))


def columns_of(load: Load, names: Collection[str]) -> pl.DataFrame:
    """The named columns that a part has, with the texts beside amounts (`beyond`)."""
    if not isinstance(load, KeptFrame):
        part = load()
        return part.select(_asked(part.columns, names))
    return load.read(_asked(load.names, names))


def names_of(load: Load) -> Sequence[str]:
    """The columns of a part, known without reading it if it was put aside."""
    return load.names if isinstance(load, KeptFrame) else load().columns


def _asked(there: Sequence[str], names: Collection[str]) -> list[str]:
    return [one for one in there if own_name(one) in names]


def own_name(column: str) -> str:
    """The amount that a column of texts belongs to; for any other column its own name."""
    return column.removesuffix(BEYOND).removesuffix(UNREADABLE)


class PartedSide(Mapping[str, pl.DataFrame]):
    """Frames by record kind, with large kinds in parts."""

    def __init__(self, loads: Mapping[str, Sequence[Load]]) -> None:
        self.loads = dict(loads)

    def __getitem__(self, record: str) -> pl.DataFrame:
        return whole(self.loads[record])

    def __iter__(self) -> Iterator[str]:
        return iter(self.loads)

    def __len__(self) -> int:
        return len(self.loads)

    def __contains__(self, record: object) -> bool:
        return record in self.loads


def parts_of(side: Mapping[str, pl.DataFrame], record: str) -> Sequence[Load]:
    """The loaders of a record kind's parts; empty if the side has no such kind."""
    if record not in side:
        return ()
    return side.loads[record] if isinstance(side, PartedSide) else (held(side[record]),)


def with_parts(
    side: Mapping[str, pl.DataFrame], others: Mapping[str, Sequence[Load]]
) -> Mapping[str, pl.DataFrame]:
    """The side with the parts of some kinds replaced; the same side if `others` is empty."""
    parts = {name: parts_of(side, name) for name in side} | {**others}
    return PartedSide(parts) if others else side


def changed(side: Mapping[str, pl.DataFrame], change: Change) -> Mapping[str, pl.DataFrame]:
    """The side with every frame changed; frames in parts are changed when they are read."""
    if not isinstance(side, PartedSide):
        return {name: change(frame) for name, frame in side.items()}
    return PartedSide({name: _each(loads, change) for name, loads in side.loads.items()})


def filtered(load: Load, rows: pl.Series) -> Load:
    if isinstance(load, KeptFrame):
        return KeptFrame(load.names, lambda names: load.read(names).filter(rows))
    return lambda: load().filter(rows)


def whole(loads: Sequence[Load]) -> pl.DataFrame:
    """All parts as one frame, each column contiguous."""
    if len(loads) == 1:
        return loads[0]()
    return pl.concat((load() for load in loads), rechunk=True)


def with_rows_of(frame: pl.DataFrame, *others: pl.DataFrame) -> pl.DataFrame:
    """A frame with the rows of others; an empty one adds no columns either."""
    there = [other for other in others if other.height]
    return pl.concat([frame, *there], how="diagonal") if there else frame


def held(frame: pl.DataFrame) -> Load:
    """A loader of a frame that stays in memory."""
    return lambda: frame


def _each(loads: Sequence[Load], change: Change) -> Sequence[Load]:
    if len(loads) == 1:
        return (held(change(loads[0]())),)
    return [partial(_changed, load, change) for load in loads]


def _changed(load: Load, change: Change) -> pl.DataFrame:
    return change(load())
