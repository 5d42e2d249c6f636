"""One line to several records: of a table with a column per currency, month or account.

The columns that are kept stand in each record of a line, beside the name of one other column and
the cell below it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from connectors.files.first_record import folded
from connectors.files.profile import Profile, written_of


@dataclass(frozen=True, slots=True)
class Unpivot:
    """What the columns of a table become, by their places."""

    width: int
    """How many cells a line has."""
    kept: tuple[int, ...]
    labels: tuple[tuple[int, str], ...]
    """The others, each with its name."""
    null: tuple[str, ...]
    """Texts of a cell that holds no value."""
    blanks_dropped: bool
    """Whether blanks around it are dropped before."""


def unpivot_of(names: Sequence[str], profile: Profile) -> Unpivot | None:
    """How lines under these names become records; None: they are no table of this feed."""
    if not profile.unpivots:
        return None
    places = {folded(name): place for place, name in enumerate(names)}
    stated = [folded(name) for name in profile.unpivot_keep or profile.unpivot_columns]
    if not all(name in places for name in stated):
        return None
    chosen = {places[name] for name in stated}
    others = {place for place, name in enumerate(names) if name} - chosen
    kept, told = (chosen, others) if profile.unpivot_keep else (others, chosen)
    if not told:
        return None
    written = written_of(profile, _field_of(profile, profile.unpivot_value or ""))
    return Unpivot(
        width=len(names),
        kept=tuple(sorted(kept)),
        labels=tuple((place, names[place]) for place in sorted(told)),
        null=written["null"],
        blanks_dropped=written["blanks"] == "dropped",
    )


def record_names(names: Sequence[str], unpivot: Unpivot, profile: Profile) -> tuple[str, ...]:
    """The names above the cells of a record."""
    kept = (names[place] for place in unpivot.kept)
    return (*kept, profile.unpivot_name or "", profile.unpivot_value or "")


def _field_of(profile: Profile, column: str) -> str:
    """The first field that a column is, or is a part of."""
    own = {folded(name): name for name in profile.fields}
    ours = {folded(theirs): name for theirs, name in profile.columns.items()}
    parts = {folded(one): name for name, of in profile.sources.items() for one in of}
    return {**own, **parts, **ours}.get(folded(column), column)
