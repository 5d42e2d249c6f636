"""Turning each line of a table with a column per currency, month or account into several records.

Each record repeats the kept columns of its line, with the name of one other column and the cell
below it.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from connectors.files.layout.first_record import folded
from connectors.files.layout.header_names import listed
from connectors.files.profiles.profile import DEFAULT, Profile, written_of
from connectors.files.profiles.profile_made import kinds_of
from connectors.files.text.content import refused
from schemas.field import Kind


@dataclass(frozen=True, slots=True)
class Unpivot:
    """The conversion of a table's columns, by their indices."""

    width: int
    """Number of cells in a line."""
    kept: tuple[int, ...]
    labels: tuple[tuple[int, str], ...]
    """The other columns, each with its name."""
    null: tuple[str, ...]
    """Texts of a cell that holds no value."""
    blanks_dropped: bool
    """Whether the blanks around a cell are dropped first."""
    empty_text: bool = False
    """Whether `""` is a value: the empty text."""
    nameless: tuple[int, ...] = ()
    """Columns without a name, in which no line may have a value."""


def unpivot_of(names: Sequence[str], profile: Profile) -> Unpivot | None:
    """How lines below these names become records; None if they are no table of this feed."""
    if not profile.unpivots:
        return None
    places = {folded(name): place for place, name in enumerate(names)}
    stated = [folded(name) for name in profile.unpivot_keep or profile.unpivot_columns]
    if not all(name in places for name in stated):
        return None
    chosen = {places[name] for name in stated}
    others = {place for place, name in enumerate(names) if name} - chosen
    kept, unpivoted = (chosen, others) if profile.unpivot_keep else (others, chosen)
    if not unpivoted:
        return None
    field = _field_of(profile, profile.unpivot_value or "")
    written = written_of(profile, field)
    null, dropped = tuple(written["null"]), written["blanks"] == "dropped"
    is_usual = null == DEFAULT.null  # Only a bare empty cell.
    is_text = kinds_of(profile, field) == {Kind.STRING}
    return Unpivot(
        width=len(names),
        kept=tuple(sorted(kept)),
        labels=tuple((place, names[place]) for place in sorted(unpivoted)),
        null=null,
        blanks_dropped=dropped,
        empty_text=is_text and not dropped and (is_usual or "" not in null),
        nameless=tuple(place for place, name in enumerate(names) if not name),
    )


def check_unpivots(
    extract: str, line: int, names: Sequence[str], unpivot: Unpivot | None, profile: Profile
) -> None:
    """Refuse a table that lacks a column its profile names, or has one of them twice.

    Raises ExtractRefused: missing_column, duplicate_column, inconsistent_columns.
    """
    if not profile.unpivots:
        return
    stated = profile.unpivot_keep or profile.unpivot_columns
    counts = Counter(map(folded, filter(None, names)))
    if unpivot is None:
        missing = [name for name in stated if folded(name) not in counts] or ["all others"]
        raise refused(
            "missing_column",
            extract,
            line=line,
            columns=listed(missing),
            found=f"Found: {listed(names)}; the feed profile unpivots by {listed(stated)}.",
        )
    if twice := [name for name in names if counts[folded(name)] > 1]:
        raise refused("duplicate_column", extract, line=line, columns=listed(sorted({*twice})))
    if profile.unpivot_keep and "" in names and profile.unknown_columns == "refuse":
        nameless = f"column {names.index('') + 1} without a name"
        raise refused("inconsistent_columns", extract, line=line, columns=nameless)


def _field_of(profile: Profile, column: str) -> str:
    """The first field that a column is, or is a part of."""
    own = {folded(name): name for name in profile.fields}
    ours = {folded(theirs): name for theirs, name in profile.columns.items()}
    parts = {folded(one): name for name, of in profile.sources.items() for one in of}
    return {**own, **parts, **ours}.get(folded(column), column)
