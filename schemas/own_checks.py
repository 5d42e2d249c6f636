"""Contradictions within a record kind of one's own, all reported at once, each with its key.

A field or reference that is itself faulty is skipped in checks that depend on its meaning, so
that one mistake is reported once.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from schemas.field import INTEGERS, TENANT, TIMES, Kind, Rule, Table
from schemas.toml_text import suggestion

INSERT_BATCH_DATA = "insert_batch_data"
"""The one documented record without a table of its own, so nothing can refer to its rows."""
REFERENCES = "references."
"""Prefix of a reference's key, followed by the reference's number to look up its line."""


class KeyFault(ValueError):
    def __init__(self, key: str, message: str) -> None:
        self.key = key
        if key.startswith(REFERENCES):
            # Authors of [[references]] do not count them; the line number identifies one.
            named = key.removeprefix(REFERENCES).partition(".")[2]
            key = f"{REFERENCES}{named}".rstrip(".")
        # A quoted key may contain line breaks and characters that reverse the text after them.
        display = "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in key)
        super().__init__(f"{display} {message}".lstrip())


@dataclass(frozen=True, slots=True)
class Others:
    """The record kinds that a kind of one's own may refer to."""

    tables: Mapping[str, Table]
    unsure: Mapping[str, Collection[str]]
    """By kind, the fields whose meaning is unknown because their definition is faulty."""
    complete: bool
    """Whether all kinds are known: every file says what it defines."""


def table_faults(
    table: Table, unsure: Collection[str], *, has_currency: bool
) -> Iterator[KeyFault]:
    """Faults of fields in combination, each field being right by itself.

    `has_currency` says that a currency is stated, whether or not it is right.
    """
    yield from _marks(table, unsure)
    yield from _secrets(table, unsure)
    sure = {name: of for name, of in table.by_name.items() if name not in unsure}
    if table.amounts and not has_currency:
        yield KeyFault("currency", "is missing. Name the field that says what money is in.")
    if table.currency in sure and sure[table.currency].kind is not Kind.INTEGER:
        yield KeyFault("currency", "has to be of type integer, as currencies are everywhere.")
    for name in table.key:
        if name in sure and not sure[name].needs_value:
            yield KeyFault(f"fields.{name}", "is of the key. Make it required = true.")
        if name in sure and sure[name].amount:
            # An amount too large for its column would be missing from the key.
            message = "is for a field that is not of the key. Take it out of one of the two."
            yield KeyFault(f"fields.{name}.amount", message)
    if table.tenant in sure and sure[table.tenant].kind is not Kind.INTEGER:
        yield KeyFault(f"fields.{TENANT}", "says whose a record is: it has to be an integer.")
    for one in sure.values():
        of_text = [rule.value for rule in one.rules if rule is not Rule.NOT_NULL]
        if of_text and one.kind is not Kind.STRING:
            yield KeyFault(f"fields.{one.name}.rules", f"has {of_text[0]}, which is for a string.")


def _marks(table: Table, unsure: Collection[str]) -> Iterator[KeyFault]:
    for mark, kinds, what in (
        ("amount", (Kind.DOUBLE,), "a double"),
        ("version", (*TIMES, *INTEGERS), "a datetime or an integer"),
        ("business_date", TIMES, "a datetime"),
    ):
        marked = [one for one in table.fields if getattr(one, mark)]
        fitting = [one for one in marked if one.name in unsure or one.kind in kinds]
        for one in marked:
            if one not in fitting:
                yield KeyFault(f"fields.{one.name}.{mark}", f"is for {what}.")
        for one in fitting[1:] if mark != "amount" else ():
            yield KeyFault(f"fields.{one.name}.{mark}", "is said of another field already.")
        for one in fitting[:1] if mark == "version" else ():
            if not one.required and one.name not in unsure:
                # Without a version nobody can say whether a record is the older one.
                at = f"fields.{one.name}.version"
                yield KeyFault(at, "is for a field that all records have. Make it required = true.")


def _secrets(table: Table, unsure: Collection[str]) -> Iterator[KeyFault]:
    for one in table.fields:
        at = f"fields.{one.name}.secret"
        if one.secret and one.name not in unsure and one.kind is not Kind.STRING:
            yield KeyFault(at, "is for a string.")
        if one.secret and one.name in table.key:
            yield KeyFault(at, "is for a field that is not of the key, which every list shows.")


def named_like_secrets(
    table: Table, unsure: Collection[str], secrets: Mapping[str, str], public: Mapping[str, str]
) -> Iterator[KeyFault]:
    """Report fields that are named like a secret but are none; masking often goes by name.

    `secrets` maps lower-case names to the kind in which each is a secret; `public` does the same
    for the public fields of documented kinds, whose names no secret may have.
    """
    for one in table.fields:
        if one.secret and (kind := public.get(one.name.casefold())):
            yield KeyFault(
                f"fields.{one.name}.secret",
                f"is for no field with the name of one that is shown, of {kind}. "
                "Name it otherwise.",
            )
        kind = secrets.get(one.name.casefold())
        if kind is not None and not one.secret and one.name not in unsure:
            yield KeyFault(
                f"fields.{one.name}",
                f"is the name of a secret of {kind}. Make it secret = true, or name it otherwise.",
            )


def reference_faults(
    at: str, table: Table, unsure: Collection[str], keys: Mapping[str, Any], others: Others
) -> Iterator[KeyFault]:
    """Faults of a reference in combination; each of its `keys` is right by itself."""
    known = {
        name: of for name, of in others.tables.items() if of.extract and name != INSERT_BATCH_DATA
    }
    record = keys.get("record")
    if record not in known:
        if record is not None and others.complete:
            yield KeyFault(f"{at}.record", f"= {record!r}: {suggestion(record, [*known])}")
        return
    target, unsure_there = known[record], others.unsure.get(record, ())
    column, field = keys.get("column"), keys.get("field")
    if column is not None and column not in target.by_name:
        hint = suggestion(column, target.columns, "Its fields")
        yield KeyFault(f"{at}.column", f"= {column!r}: {hint}")
        column = None
    ends = [
        of.by_name[name].kind
        for of, name, left in ((table, field, unsure), (target, column, unsure_there))
        if name is not None and name not in left
    ]
    if len(ends) == 2 and not {*ends} <= {*INTEGERS}:
        yield KeyFault(at, "is not from an integer to an integer, as a reference has to be.")
    if not keys.get("same_tenant"):
        return
    if not (table.tenant and target.tenant):
        yield KeyFault(f"{at}.same_tenant", "is for records with TenantsId on both sides.")
        return
    tenants = [
        of.by_name[of.tenant]
        for of, left in ((table, unsure), (target, unsure_there))
        if of.tenant and of.tenant not in left
    ]
    if not all(one.required for one in tenants):
        yield KeyFault(f"{at}.same_tenant", "is for records that all have a TenantsId: required.")
