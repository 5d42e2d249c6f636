"""The columns a field needs, by its Kind.

A field may have a companion beside its own column: a time keeps its offset, a double the decimal
it stands for. Companions are named `<Field>_<suffix>` in frames and tables alike. Column types are
in `schemas.frame_types` and `schemas.derived.sql`, each with the library it needs.
"""

from schemas.field import Field, Kind, Table

OFFSET = "_offset"
"""Suffix: minutes east of UTC as delivered, null where none was given."""
EXACT = "_exact"
"""Suffix: the decimal text of a double; frames only, SQL holds it as numeric."""

SCALE = "_scale"
"""Suffix: how many decimal digits were written of a double that is held in millionths."""

STORED_COMPANIONS = {Kind.DATETIME: OFFSET, Kind.DATETIME_OFFSET: OFFSET}
"""Suffix of the companion column in a database table."""


def stored_names(field: Field) -> tuple[str, ...]:
    """The SQL columns of a field: its own and its companion."""
    suffix = STORED_COMPANIONS.get(field.kind)
    return (field.name,) if suffix is None else (field.name, field.name + suffix)


def identity_columns(table: Table) -> tuple[str, ...]:
    """The columns that tell two records apart; a time at another offset is another time."""
    return tuple(column for name in table.identity for column in stored_names(table.by_name[name]))


def stored_columns(table: Table) -> tuple[str, ...]:
    """The SQL columns of a table's delivered fields, in order."""
    return tuple(name for field in table.delivered for name in stored_names(field))
