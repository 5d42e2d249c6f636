"""Record kinds of one's own among the rules: their definitions decide about figures as these do."""

import json
from collections.abc import Mapping
from dataclasses import replace

from flows.steps.rules.rules import Rules
from schemas.field import Table
from schemas.own_definition import definition_of, table_of
from schemas.tables import EXTRACTS, OWN, TABLES


def with_own_kinds(rules: Rules) -> Rules:
    """The rules, by the record kinds as they are defined now."""
    return replace(rules, records=tuple((name, decides(of)) for name, of in OWN.tables.items()))


def decides(table: Table) -> str:
    """What of a definition decides about figures: all but its notes."""
    return definition_of(replace(table, fields=tuple(replace(of, note="") for of in table)))


def tables_by(rules: Rules) -> Mapping[str, Table]:
    """All record kinds, those of one's own as some rules have them, with the columns of now."""
    then = {
        name: _as_then(EXTRACTS[name], table_of(name, definition))
        for name, definition in rules.records
        if name in EXTRACTS and definition != decides(EXTRACTS[name])
    }
    return {**EXTRACTS, **then} if then else EXTRACTS


def _as_then(now: Table, then: Table) -> Table:
    """What of a definition may have been other where rows are: references, version and date.

    A field that is gone had no value in any row, so no reference of it led anywhere.
    """
    marks = {of.name: (of.version, of.business_date) for of in then}
    fields = []
    for of in now:
        version, business_date = marks.get(of.name, (False, False))
        fields.append(replace(of, version=version, business_date=business_date))
    return replace(
        now,
        fields=tuple(fields),
        references=tuple(
            one for one in then.references if one.field in now.by_name and one.table in TABLES
        ),
    )


def told_keys(name: str, definition: str) -> dict[str, str]:
    """What a definition says, key by key, each as a change of it is told."""
    shape = json.loads(definition)
    keys = {key: shape[key] for key in ("title", "currency") if shape[key]}
    keys["key"] = ", ".join(shape["key"])
    for one in shape["fields"]:
        said = [one["type"], *(mark for mark, is_so in one.items() if is_so is True), *one["rules"]]
        keys[f"field {one['name']}"] = ", ".join(said)
    for one in shape["references"]:
        same = " of the same tenant" if one["same_tenant"] else ""
        keys[f"reference {one['field']}"] = f"{one['record']}.{one['column']}{same}"
    return {f"record kind {name}: {key}": text for key, text in keys.items()}
