"""What defines a record kind of one's own, as a database keeps it and as a file says it."""

import json

from schemas.field import Field, Kind, Reference, Rule, Table

MARKS = ("amount", "version", "business_date", "secret")
"""What a field may be: for the totals and the days of its record, and for who may see it."""


def definition_of(table: Table) -> str:
    """What defines a record kind, as JSON: the same whatever the file's spelling and comments."""
    shape = {
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
    return json.dumps(shape, sort_keys=True)


def reference_shape(reference: Reference) -> dict[str, str | bool]:
    """A reference by the keys that a file says it with."""
    return {
        "field": reference.field,
        "record": reference.table,
        "column": reference.column,
        "same_tenant": reference.same_tenant,
    }


def table_of(name: str, definition: str) -> Table:
    """The record kind that `definition_of` was written of."""
    shape = json.loads(definition)
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
    )


def toml_of(table: Table) -> str:
    """A file that defines a record kind."""
    shape = json.loads(definition_of(table))
    text = json.dumps
    lines = [f"name = {text(table.name)}", f"title = {text(table.title, ensure_ascii=False)}"]
    lines += [f"key = {text(table.key)}"]
    lines += [f"currency = {text(table.currency)}"] if table.currency else []
    for one in shape["fields"]:
        lines += ["", f"[fields.{one.pop('name')}]"]
        lines += [
            f"{key} = {text(value, ensure_ascii=False)}" for key, value in one.items() if value
        ]
    for one in shape["references"]:
        lines += ["", "[[references]]"]
        lines += [f"{key} = {text(value)}" for key, value in one.items() if value]
    return "\n".join(lines) + "\n"
