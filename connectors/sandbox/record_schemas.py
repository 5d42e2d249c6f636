"""JSON Schemas of the records, as one host reads and writes them, derived from the field tables."""

from collections.abc import Mapping
from typing import TypeAlias

from connectors.sandbox.options import Style
from connectors.sandbox.rendering import camel
from schemas.field import Field, Kind, Rule, Table
from schemas.tables import TABLES

Schema: TypeAlias = dict[str, object]

_SCALARS: Mapping[Kind, Schema] = {
    Kind.INTEGER: {"type": "integer", "format": "int32", "minimum": -(2**31), "maximum": 2**31 - 1},
    Kind.INTEGER64: {
        "type": "integer",
        "format": "int64",
        "minimum": -(2**63),
        "maximum": 2**63 - 1,
    },
    Kind.DOUBLE: {"type": "number", "format": "double"},
    Kind.STRING: {"type": "string"},
    Kind.BOOLEAN: {"type": "boolean"},
    Kind.DATETIME: {"type": "string", "format": "date-time"},
    Kind.DATETIME_OFFSET: {"type": "string", "format": "date-time"},
}
_TEXT = _SCALARS[Kind.STRING]
_CLASSIC_TIME: Schema = {"type": "string", "pattern": r"^/Date\(-?[0-9]+([+-][0-9]{4})?\)/$"}
# System.Text.Json leaves out the zone of a DateTime that has none.
_ISO_TIME: Schema = {"type": "string", "pattern": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]{8,16}"}
_RULES: Mapping[Rule, Schema] = {
    Rule.NOT_NULL: {},
    Rule.NOT_EMPTY: {"minLength": 1, "pattern": r"\S"},
    Rule.EMAIL: {"format": "email"},
}


class RecordSchemas:
    """The schemas of one host; the embedded records are collected as they are referred to."""

    def __init__(self, style: Style) -> None:
        self._style = style
        self.embedded: dict[str, Schema] = {}
        """Schemas by the name under which `$ref` finds them."""

    def name(self, field: str) -> str:
        """How the host writes the name of a member."""
        return camel(field) if self._style.camel_case else field

    def request(self, table: Table, *, validated: bool) -> Schema:
        """What is bound: a field without a rule against null may be null or absent."""
        needed = [field for field in table.delivered if validated and field.needs_value]
        return {
            "type": "object",
            "title": table.title,
            "properties": {
                self.name(field.name): self.given(field, validated=validated)
                if field in needed
                else _or_null(self.given(field, validated=validated))
                for field in table.delivered
            },
            "required": [self.name(field.name) for field in needed],
        }

    def given(self, field: Field, *, validated: bool = True) -> Schema:
        """A value the field takes, null apart."""
        schema = self._value(field, answered=False)
        for rule in field.validations if validated else ():
            schema.update(_RULES[rule])
        if field.secret:
            schema["format"] = "password"
        if field.note:
            schema["description"] = field.note
        return schema

    def answer(self, table: Table, *, status: bool) -> Schema:
        """What comes back: nulls are left out."""
        properties = self._members(table, answered=True)
        if status:
            properties[self.name("ResponseStatus")] = self.reference(TABLES["response_status"])
        return {"type": "object", "title": table.title, "properties": properties}

    def reference(self, table: Table) -> Schema:
        """A `$ref` to an embedded record."""
        name = "".join(word[:1].upper() + word[1:] for word in table.title.split())
        if name not in self.embedded:
            self.embedded[name] = {}
            properties = self._members(table, answered=True)
            self.embedded[name].update({"type": "object", "properties": properties})
        return {"$ref": f"#/components/schemas/{name}"}

    def _members(self, table: Table, *, answered: bool) -> Schema:
        return {
            self.name(field.name): self._value(field, answered=answered) for field in table.fields
        }

    def _value(self, field: Field, *, answered: bool) -> Schema:
        match field.kind:
            case Kind.MAP:
                text: Schema = {"type": ["string", "null"] if field.nullable_values else "string"}
                return {"type": "object", "additionalProperties": text}
            case Kind.LIST:
                element = self.reference(TABLES[field.of]) if field.of in TABLES else _TEXT
                # A null inside a list comes back as it was sent.
                return {"type": "array", "items": _or_null(element) if answered else element}
            case Kind.RECORD if field.of:
                return self.reference(TABLES[field.of])
            case Kind.DATETIME | Kind.DATETIME_OFFSET if answered:
                return dict(_ISO_TIME if self._style.system_json else _CLASSIC_TIME)
        return dict(_SCALARS[field.kind])


def _or_null(schema: Schema) -> Schema:
    if "type" not in schema:
        return {"anyOf": [schema, {"type": "null"}]}
    return {**schema, "type": [schema["type"], "null"]}
