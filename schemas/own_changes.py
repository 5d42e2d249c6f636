"""What differs between two definitions of a record kind, and what each difference asks of its rows.

Rows that are there were checked, told apart and added up by the definition before. So what would
make something else of them is possible only where there are none.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto

from schemas.field import Field, Rule, Table


class Asks(Enum):
    """Where a change of a definition is possible."""

    NOTHING = auto()
    NONE_WAITING = auto()
    """Where no row was checked by the definition before and is still to become a record."""
    NO_RECORDS = auto()
    """Where the database has no record of the kind either: none would lack what is required now."""
    UNHELD = auto()
    """Where no row, of the records or as delivered, has a value of the field."""
    NO_ROWS = auto()
    """Where nothing of the kind was ever delivered."""


@dataclass(frozen=True, slots=True)
class Change:
    """One difference, in words."""

    told: str
    asks: Asks = Asks.NOTHING
    field: str = ""


def changes(before: Table, now: Table) -> Iterator[Change]:
    """Every difference, those of the record kind as a whole first."""
    if before.title != now.title:
        yield Change(f"its title was {before.title}")
    if before.key != now.key:
        yield Change(f"its key was {', '.join(before.key)}", Asks.NO_ROWS)
    elif before.has_plain_key != now.has_plain_key:
        how = "by the types of its fields, and whether they say required = true"
        yield Change(f"its key was kept in another way ({how})", Asks.NO_ROWS)
    if before.currency != now.currency:
        yield Change(f"its currency was {before.currency or 'none'}", Asks.NO_ROWS)
    for name, old in before.by_name.items():
        if name in now.by_name:
            yield from _of_field(old, now.by_name[name])
        else:
            asks = Asks.NO_ROWS if old.amount or old.secret else Asks.UNHELD
            yield Change(f"it had the field {name}", asks, name)
    for name, new in now.by_name.items():
        if name not in before.by_name:
            yield _of_new_field(new)
    if before.references != now.references:
        yield Change("it referred to other records")
    first = next(iter(before.amounts), None)
    if first in now.amounts and first != now.amounts[0]:
        # It is the money of breaks, of those that are signed too.
        yield Change(f"its first amount was {first}", Asks.NO_ROWS)
    order = [name for name in before.by_name if name in now.by_name]
    if order != [name for name in now.by_name if name in before.by_name]:
        yield Change("its fields had another order")


def _of_new_field(new: Field) -> Change:
    if new.secret:
        # Rows of the kind could be shown until now, with whatever slipped into another cell.
        return Change(f"{new.name} is new and secret", Asks.NO_ROWS, new.name)
    if new.required:
        return Change(f"{new.name} is new and required", Asks.NO_RECORDS, new.name)
    if new.needs_value:
        return Change(f"{new.name} is new and has to have a value", Asks.NONE_WAITING, new.name)
    return Change(f"{new.name} is new", field=new.name)


def _of_field(old: Field, new: Field) -> Iterator[Change]:
    name = old.name
    if old.kind is not new.kind:
        yield Change(f"{name} was of type {old.kind.value}", Asks.NO_ROWS, name)
    if old.amount != new.amount:
        yield Change(f"{name} was {'an' if old.amount else 'no'} amount", Asks.NO_ROWS, name)
    if old.secret != new.secret:
        yield Change(f"{name} was {'a' if old.secret else 'no'} secret", Asks.NO_ROWS, name)
    if new.required and not old.required:
        yield Change(f"{name} was not required", Asks.NO_RECORDS, name)
    if old.required and not new.required:
        yield Change(f"{name} was required", field=name)
    asked = {*old.rules, *([Rule.NOT_NULL] if old.required else [])}
    if stricter := [rule.value for rule in new.rules if rule not in asked]:
        yield Change(f"{name} had no rule {', '.join(stricter)}", Asks.NONE_WAITING, name)
    elif old.rules != new.rules:
        yield Change(f"{name} had other rules", field=name)
    if (old.version, old.business_date) != (new.version, new.business_date):
        yield Change(f"{name} was another version or business date", field=name)
    if old.note != new.note:
        yield Change(f"{name} had another note", field=name)
