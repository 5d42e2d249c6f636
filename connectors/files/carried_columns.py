"""Columns that stand in lines above the records, and hold for all of them until the next such line.

A group of `skip_lines` that has a name is one: the number of an account that stands above its
records, or the customer in the heading of a group.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from connectors.files.content import Content
from connectors.files.dialect import Dialect
from connectors.files.first_record import first_lines
from connectors.files.linear_patterns import Groups, decoded, group_names, groups_of
from connectors.files.profile import Profile
from connectors.files.unpivot import Unpivot, record_names
from connectors.settings import Limits

Said = tuple[str | None, ...]
"""What the lines so far say, by column; None: nothing."""


@dataclass(frozen=True, slots=True)
class CarriedColumns:
    """The columns that stand in lines above the records."""

    names: tuple[str, ...]
    above: Said
    """What the lines above the header say."""


def groups_of_lines(lines: Sequence[bytes], dialect: Dialect) -> list[Groups | None]:
    """What each of these lines says, which are given without their ends; None: nothing."""
    # Rules, and headers of pages, are the same again and again.
    texts = {line: decoded(line, dialect.encoding) for line in set(lines)}
    said = dict(zip(texts, groups_of([*texts.values()], dialect.skip_lines), strict=True))
    return [said[line] for line in lines]


def behind(said: Said, groups: Groups | None, names: Sequence[str]) -> Said:
    """What is said behind a line that says this."""
    if not groups:
        return said
    return tuple(
        groups[name] or None if name in groups else before
        for name, before in zip(names, said, strict=True)
    )


def record_columns(
    names: Sequence[str], unpivot: Unpivot | None, profile: Profile
) -> tuple[str, ...]:
    """The names above the cells of a record, those of lines above it behind those of its own."""
    own = record_names(names, unpivot, profile) if unpivot else names
    return (*own, *group_names(profile.skip_lines))


def carried_columns(
    content: Content, profile: Profile, dialect: Dialect, limits: Limits, *, above: int
) -> CarriedColumns | None:
    """The columns that stand in lines above the records; so many lines are above all of them."""
    names = group_names(profile.skip_lines)
    if not names:
        return None
    said: Said = (None,) * len(names)
    lines = [line.rstrip(b"\r\n") for line in first_lines(content, limits, above)]
    for groups in groups_of_lines(lines, dialect):
        said = behind(said, groups, names)
    return CarriedColumns(names, said)
