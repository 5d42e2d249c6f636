"""Own record kinds as part of the rules: their definitions influence figures as rules do."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from flows.steps.rules.rules import Rules
from schemas.field import INTEGERS, Reference, Table
from schemas.own_checks import Others, reference_faults
from schemas.own_definition import definition_of, reference_shape, table_of
from schemas.own_endpoint import ENDPOINT_KEYS, SECTION
from schemas.tables import EXTRACTS, OWN


def with_own_kinds(rules: Rules) -> Rules:
    """The rules with the present definitions of own record kinds."""
    return replace(rules, records=tuple((name, decides(of)) for name, of in OWN.tables.items()))


def decides(table: Table) -> str:
    """The part of a definition that influences figures: everything except its notes."""
    return definition_of(replace(table, fields=tuple(replace(of, note="") for of in table)))


def unlike_now(records: Mapping[str, Any]) -> Iterator[str]:
    """Names of record kinds that `records` define differently from the present definitions."""
    now = dict(with_own_kinds(Rules()).records)
    return (name for name, definition in records.items() if now.get(name) != definition)


def tables_by(rules: Rules) -> Mapping[str, Table]:
    """All record kinds, own ones as the rules define them but with their present columns."""
    then = {now.name: _as_then(now, then) for now, then in _defined_otherwise(rules)}
    return {**EXTRACTS, **then} if then else EXTRACTS


def out_of_reach(rules: Rules) -> set[tuple[str, str]]:
    """Record kind and field of references in the rules that can no longer be followed.

    Their target lost the column, or it changed, so whether the target exists cannot be told.
    """
    return {
        (now.name, one.field)
        for now, then in _defined_otherwise(rules)
        for one in _references_held(now, then)
        if not _can_be_followed(now, one)
    }


def _defined_otherwise(rules: Rules) -> Iterator[tuple[Table, Table]]:
    """The kinds that the rules define differently from the present: as now, and as then."""
    for name, definition in rules.records:
        if name in EXTRACTS and definition != decides(EXTRACTS[name]):
            yield EXTRACTS[name], table_of(name, definition)


def _as_then(now: Table, then: Table) -> Table:
    """The present table with those parts that can change while it has rows as they were then.

    These are references, version and business date.
    """
    marks = {of.name: (of.version, of.business_date) for of in then}
    fields = []
    for of in now:
        version, business_date = marks.get(of.name, (False, False))
        fields.append(replace(of, version=version, business_date=business_date))
    followed = (one for one in _references_held(now, then) if _can_be_followed(now, one))
    return replace(now, fields=tuple(fields), references=tuple(followed))


def _references_held(now: Table, then: Table) -> Iterator[Reference]:
    """The earlier references for which rows may have a value.

    A field that is gone, or came back as another type, had no value in any row.
    """
    for one in then.references:
        if one.field in now.by_name and now.by_name[one.field].kind in INTEGERS:
            yield one


def _can_be_followed(now: Table, reference: Reference) -> bool:
    """Whether a present definition could have the reference."""
    others = Others(EXTRACTS, {}, complete=True)
    return not any(reference_faults("", now, (), reference_shape(reference), others))


def definition_keys(name: str, definition: str) -> dict[str, str]:
    """The content of a definition by key, in the form in which changes of it are reported."""
    shape = json.loads(definition)
    keys = {key: shape[key] for key in ("title", "currency") if shape[key]}
    keys["key"] = ", ".join(shape["key"])
    if sent := shape.get(SECTION):
        keys[SECTION] = " ".join(sent[key] for key in ENDPOINT_KEYS)
    for one in shape["fields"]:
        marks = (mark for mark, is_so in one.items() if is_so is True)
        keys[f"field {one['name']}"] = ", ".join([one["type"], *marks, *one["rules"]])
    for one in shape["references"]:
        same = " of the same tenant" if one["same_tenant"] else ""
        keys[f"reference {one['field']}"] = f"{one['record']}.{one['column']}{same}"
    return {f"record kind {name}: {key}": text for key, text in keys.items()}
