"""Columns stated in lines or records above others, valid until the next such line.

A named group of `skip_lines` is such a column: the number of an account above its records, or the
customer in the heading of a group. So is a column of `fill_down`, which only the first record of a
group has.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from connectors.files.layout.first_record import first_lines, folded
from connectors.files.layout.unpivot import Unpivot
from connectors.files.profiles.profile import Profile
from connectors.files.text.content import Content
from connectors.files.text.dialect import Dialect
from connectors.files.text.linear_patterns import Groups, decoded, group_names, groups_of
from connectors.settings import Limits

Carried = tuple[str | None, ...]
"""The values stated so far, by column; None for a column without one."""


@dataclass(frozen=True, slots=True)
class CarriedColumns:
    """The columns stated in lines or records above others."""

    names: tuple[str, ...]
    above: Carried
    """Values stated above the header, for the columns that come from lines."""
    filled: "FilledColumns | None" = None
    """The remaining, last columns, which come from records above."""


@dataclass(frozen=True, slots=True)
class FilledColumns:
    """Columns that only the first record of a group has."""

    places: tuple[int, ...]
    group: int
    """Index of the column that tells groups apart."""
    ends: tuple[str, ...]
    """Patterns of its cells that begin no group."""
    width: int
    """Number of columns in a record's own line."""


def groups_of_lines(lines: Sequence[bytes], dialect: Dialect) -> list[Groups | None]:
    """The values each line states (lines given without ends); None for lines that state nothing."""
    # Rules and page headers are repeated again and again.
    texts = {line: decoded(line, dialect.encoding) for line in set(lines)}
    groups = dict(zip(texts, groups_of([*texts.values()], dialect.skip_lines), strict=True))
    return [groups[line] for line in lines]


def behind(values: Carried, groups: Groups | None, names: Sequence[str]) -> Carried:
    """The values that hold after a line with these groups."""
    if not groups:
        return values
    return tuple(
        groups[name] or None if name in groups else before
        for name, before in zip(names, values, strict=True)
    )


def record_columns(
    names: Sequence[str], unpivot: Unpivot | None, profile: Profile
) -> tuple[str, ...]:
    """The names above a record's cells; columns from lines above come after its own."""
    if unpivot:
        kept = [names[place] for place in unpivot.kept]
        names = (*kept, profile.unpivot_name or "", profile.unpivot_value or "")
    return (*names, *profile.carried_names)


def carried_columns(
    content: Content,
    profile: Profile,
    dialect: Dialect,
    limits: Limits,
    own: Sequence[str],
    *,
    above: int,
) -> CarriedColumns | None:
    """The columns stated in lines or records above others; None if the profile has none.

    `own` are the columns of a record's own line; the first `above` lines are above all records.
    """
    names = group_names(profile.skip_lines)
    if not profile.carried_names:
        return None
    values: Carried = (None,) * len(names)
    lines = [line.rstrip(b"\r\n") for line in first_lines(content, limits, above)]
    for groups in groups_of_lines(lines, dialect):
        values = behind(values, groups, names)
    return CarriedColumns(profile.carried_names, values, _filled(profile, own))


def _filled(profile: Profile, own: Sequence[str]) -> FilledColumns | None:
    places = {folded(name): place for place, name in reversed([*enumerate(own)])}
    # If one is missing, the header is refused for it.
    if not profile.fill_columns or any(folded(one) not in places for one in profile.fill_sources):
        return None
    columns = tuple(places[folded(name)] for name in profile.fill_columns)
    group = places[folded(str(profile.fill_group))]
    return FilledColumns(columns, group, profile.fill_end, len(own))
