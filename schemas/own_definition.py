"""The definition of a record kind of one's own, as a database keeps it and as a file says it.

Existing rows were checked, told apart and added up by the earlier definition. So a change that
would give them another meaning is possible only while there are none.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from schemas.endpoints import Endpoint
from schemas.field import Field, Kind, Reference, Rule, Table
from schemas.own_endpoint import ENDPOINT_KEYS, SECTION

MARKS = ("amount", "version", "business_date", "secret")
"""Marks of a field: how it counts in the totals and days of its record, and who may see it."""
MADE, CHANGED, REMOVED = (f"record kind {what}" for what in ("made", "changed", "removed"))
"""Events about a definition, with the definition `now` and the one `before`."""


def definition_of(table: Table) -> str:
    """A record kind's definition as JSON, whatever the spelling and comments of its file."""
    shape: dict[str, Any] = {
        "title": table.title,
        "key": table.key,
        "currency": table.currency,
        "fields": [
            {
                "name": of.name,
                "type": of.kind.value,
                "required": of.required,
                "rules": [rule.value for rule in of.rules],
                **{mark: True for mark in MARKS if getattr(of, mark)},
                **({"note": of.note} if of.note else {}),
            }
            for of in table.fields
        ],
        "references": [reference_shape(one) for one in table.references],
    }
    if table.endpoint:
        shape[SECTION] = {key: getattr(table.endpoint, key) for key in ENDPOINT_KEYS}
    return json.dumps(shape, sort_keys=True)


def reference_shape(reference: Reference) -> dict[str, str | bool]:
    """A reference, by the keys it has in a file."""
    return {
        "field": reference.field,
        "record": reference.table,
        "column": reference.column,
        "same_tenant": reference.same_tenant,
    }


def table_of(name: str, definition: str) -> Table:
    """Rebuild the record kind from what `definition_of` wrote."""
    shape = json.loads(definition)
    sent = shape.get(SECTION)
    return Table(
        name=name,
        title=shape["title"],
        key=tuple(shape["key"]),
        currency=shape["currency"],
        fields=tuple(
            Field(
                one["name"],
                Kind(one["type"]),
                required=one["required"],
                rules=tuple(map(Rule, one["rules"])),
                note=one.get("note", ""),
                **{mark: one.get(mark, False) for mark in MARKS},
            )
            for one in shape["fields"]
        ),
        references=tuple(
            Reference(one["field"], one["record"], one["column"], same_tenant=one["same_tenant"])
            for one in shape["references"]
        ),
        endpoint=Endpoint(**sent, request=name, response=name) if sent else None,
    )


def toml_of(table: Table) -> str:
    shape = json.loads(definition_of(table))
    text = json.dumps
    lines = [f"name = {text(table.name)}", f"title = {text(table.title, ensure_ascii=False)}"]
    lines += [f"key = {text(table.key)}"]
    lines += [f"currency = {text(table.currency)}"] if table.currency else []
    if table.endpoint:
        lines += ["", f"[{SECTION}]"]
        lines += [f"{key} = {text(value)}" for key, value in shape[SECTION].items()]
    for one in shape["fields"]:
        lines += ["", f"[fields.{one.pop('name')}]"]
        lines += [
            f"{key} = {text(value, ensure_ascii=False)}" for key, value in one.items() if value
        ]
    for one in shape["references"]:
        lines += ["", "[[references]]"]
        lines += [f"{key} = {text(value)}" for key, value in one.items() if value]
    return "\n".join(lines) + "\n"


class Asks(Enum):
    """The condition under which a change of a definition is possible."""

    NOTHING = auto()
    NONE_WAITING = auto()
    """No row that the earlier definition checked is still waiting to become a record."""
    NO_RECORDS = auto()
    """As NONE_WAITING, and no record of the kind exists, which would lack a required value."""
    UNHELD = auto()
    """No record and no delivered row has a value in the field."""
    NO_LINES = auto()
    """No feed brought records of the kind as lines, whose cells are told apart by position only."""
    UNSENT = auto()
    """No batch that goes to the service has rows of the kind."""
    NO_ROWS = auto()
    """Nothing of the kind was ever delivered."""


@dataclass(frozen=True, slots=True)
class Change:
    text: str
    asks: Asks = Asks.NOTHING
    field: str = ""


def changes(before: Table, now: Table) -> Iterator[Change]:
    """Every difference, those about the record kind as a whole first."""
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
    if added := [one for one in now.references if one not in before.references]:
        # The targets of references were looked up when the waiting rows were checked.
        texts = [f"{one.field} did not refer to {one.table}.{one.column}" for one in added]
        yield Change(", ".join(texts), Asks.NONE_WAITING)
    elif before.references != now.references:
        yield Change("it referred to other records")
    yield from _of_endpoint(before.endpoint, now.endpoint)
    first = next(iter(before.amounts), None)
    if first in now.amounts and first != now.amounts[0]:
        # The first amount is the money of breaks, including those already signed.
        yield Change(f"its first amount was {first}", Asks.NO_ROWS)
    yield from _of_order(before.columns, now.columns)


def _of_order(before: Sequence[str], now: Sequence[str]) -> Iterator[Change]:
    """Changes that would move a cell told by its position to another field."""
    order = [name for name in before if name in now]
    if order != [name for name in now if name in before]:
        yield Change("its fields had another order", Asks.NO_LINES)
    elif moved := [name for name in order if before.index(name) != now.index(name)]:
        place = before.index(moved[0]) + 1
        yield Change(f"{moved[0]} was field {place} of it", Asks.NO_LINES, moved[0])


def _of_endpoint(old: Endpoint | None, new: Endpoint | None) -> Iterator[Change]:
    if old is None and new is not None:
        yield Change("it was not sent to the service", Asks.UNSENT)
    elif old is not None and old != new:
        # Sends are kept by operation name, and repeating a PUT differs from repeating a POST.
        as_kept = new is not None and (old.name, old.method) == (new.name, new.method)
        text = f"it was sent by {old.name}, {old.method} {old.path}"
        yield Change(text, Asks.NOTHING if as_kept else Asks.UNSENT)


def _of_new_field(new: Field) -> Change:
    if new.secret:
        # Until now rows of the kind could be shown, including values that slipped into other cells.
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
    if stricter := [rule.value for rule in new.rules if rule not in old.validations]:
        yield Change(f"{name} had no rule {', '.join(stricter)}", Asks.NONE_WAITING, name)
    elif old.rules != new.rules:
        yield Change(f"{name} had other rules", field=name)
    if old.version != new.version:
        # Waiting rows with the same key were already ordered by this field.
        text = f"{name} {'told' if old.version else 'did not tell'} which of two versions is newer"
        yield Change(text, Asks.NONE_WAITING, name)
    if old.business_date != new.business_date:
        yield Change(f"{name} was {'the' if old.business_date else 'no'} business date", field=name)
    if old.note != new.note:
        yield Change(f"{name} had another note", field=name)
