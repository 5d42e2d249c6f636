"""Columns that stand in lines above the records, and hold for all of them until the next such line.

A group of `skip_lines` that has a name is one: the number of an account that stands above its
records, or the customer in the heading of a group. So is a column of `fill_down`: what only the
first record of a group has.
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
"""What the lines so far say, by column; None: nothing."""


@dataclass(frozen=True, slots=True)
class CarriedColumns:
    """The columns that stand in lines above the records."""

    names: tuple[str, ...]
    above: Carried
    """What the lines above the header say, of the columns that lines say."""
    filled: "FilledColumns | None" = None
    """The others, which are last: what records above have."""


@dataclass(frozen=True, slots=True)
class FilledColumns:
    """Columns of records that only the first record of a group has."""

    places: tuple[int, ...]
    group: int
    """Place of the column that tells the groups."""
    ends: tuple[str, ...]
    """Patterns of its cells that begin no group."""
    width: int
    """How many columns a record's own line has."""


def groups_of_lines(lines: Sequence[bytes], dialect: Dialect) -> list[Groups | None]:
    """What each of these lines says, which are given without their ends; None: nothing."""
    # Rules, and headers of pages, are the same again and again.
    texts = {line: decoded(line, dialect.encoding) for line in set(lines)}
    groups = dict(zip(texts, groups_of([*texts.values()], dialect.skip_lines), strict=True))
    return [groups[line] for line in lines]


def behind(values: Carried, groups: Groups | None, names: Sequence[str]) -> Carried:
    """What is said behind a line that says this."""
    if not groups:
        return values
    return tuple(
        groups[name] or None if name in groups else before
        for name, before in zip(names, values, strict=True)
    )


def record_columns(
    names: Sequence[str], unpivot: Unpivot | None, profile: Profile
) -> tuple[str, ...]:
    """The names above the cells of a record, those of lines above it behind those of its own."""
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
    """The columns that stand in lines or records above others.

    `own` are those of a record's own line; so many lines are `above` all of them.
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
    # Where one is not there, the header is refused for it.
    if not profile.fill_columns or any(folded(one) not in places for one in profile.fill_sources):
        return None
    columns = tuple(places[folded(name)] for name in profile.fill_columns)
    group = places[folded(str(profile.fill_group))]
    return FilledColumns(columns, group, profile.fill_end, len(own))
