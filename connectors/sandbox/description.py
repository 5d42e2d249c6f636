"""The host's description of itself: OpenAPI 3.1, derived from operations and field tables.

The record schemas show records as this host reads and writes them.
"""

import json
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from typing import TypeAlias

from connectors.sandbox.messages import Response, media_type
from connectors.sandbox.options import SandboxOptions, Style
from connectors.sandbox.rendering import RESPONSE_STATUS, Format, camel
from connectors.sandbox.routes import AUTHENTICATE as NAME
from connectors.sandbox.routes import COMPLETED
from connectors.sandbox.service import FORM, carries_status
from connectors.sandbox.signing import ANSWER, AUTHENTICATE
from schemas.field import Field, Kind, Rule, Table
from schemas.operations import OPERATIONS, Operation
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
# System.Text.Json leaves out the zone if a DateTime has none.
_ISO_TIME: Schema = {"type": "string", "pattern": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]{8,16}"}
_RULES: Mapping[Rule, Schema] = {
    Rule.NOT_NULL: {},
    Rule.NOT_EMPTY: {"minLength": 1, "pattern": r"\S"},
    Rule.EMAIL: {"format": "email"},
}


class RecordSchemas:
    """The schemas of one host; embedded records are collected as they are referred to."""

    def __init__(self, style: Style) -> None:
        self._style = style
        self.embedded: dict[str, Schema] = {}
        """Schemas by the name that `$ref` gives."""

    def name(self, field: str) -> str:
        """A member's name as the host writes it."""
        return camel(field) if self._style.camel_case else field

    def request(self, table: Table, *, validated: bool) -> Schema:
        """The schema of a request: a field without a rule against null may be null or absent."""
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
        """The schema of a field's value, null apart."""
        schema = self._value(field, answered=False)
        for rule in field.validations if validated else ():
            schema.update(_RULES[rule])
        if field.secret:
            schema["format"] = "password"
        if field.note:
            schema["description"] = field.note
        return schema

    def answer(self, table: Table, *, status: bool) -> Schema:
        """The schema of an answer, which leaves out nulls."""
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


PATH = "/openapi.json"
ERROR = "ErrorResponse"
_JSON, _JSV, _CSV, _HTML = (media_type(form.value) for form in Format)
_FORM = "application/x-www-form-urlencoded"

_SCHEMES: Schema = {
    "basic": {"type": "http", "scheme": "basic"},
    "bearer": {"type": "http", "scheme": "bearer", "description": "A token or an API key."},
    "session": {"type": "apiKey", "in": "cookie", "name": "ss-id"},
}
_KEY_SCHEME: Schema = {"key": {"type": "apiKey", "in": "header", "name": "X-Api-Key"}}
_FAILED = {
    "400": "The request cannot be bound, or a rule of its fields does not hold.",
    "401": "No credentials: the body is empty. Wrong ones: the body has a ResponseStatus.",
    "403": "The account has none of the roles; the body is empty.",
    "404": "The API key is unknown.",
    "409": "The e-mail address is taken.",
}
# A refusal for lack of credentials or of a role has no body, and so no Content-Type.
_BODILESS = ("401", "403")


class _Names:
    """Gives each name once: an own operation may have the name of another schema."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = {*taken}

    def free(self, name: str) -> str:
        """The name, extended until it is free; taken from now on."""
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        return name


class Description:
    """The description of one host, built when it is first asked for."""

    def __init__(self, options: SandboxOptions) -> None:
        self._options = options
        self._schemas = RecordSchemas(options.traits)
        self._calls = _Names()

    def response(self) -> Response:
        body = json.dumps(self.document(), ensure_ascii=False, indent=2).encode()
        return Response(200, "OK", [("Content-Type", Format.JSON.value)], body)

    def document(self) -> Schema:
        paths: dict[str, Schema] = {}
        status = {self._schemas.name(RESPONSE_STATUS): self._schemas.reference(_STATUS)}
        components: Schema = {
            NAME: self._schemas.request(AUTHENTICATE, validated=True),
            f"{NAME}Response": self._schemas.answer(ANSWER, status=True),
            ERROR: {"type": "object", "properties": status, "required": list(status)},
        }
        self._calls = _Names()
        signing = self._signing()
        bodies = [(one, self._request(one), self._answer(one)) for one in OPERATIONS]
        # Everything embedded gets its name first, then documented operations, then own ones.
        names = _Names([*components, *self._schemas.embedded])
        for operation, request, answer in bodies:
            name = self._options.name_of(operation)
            sent, got = names.free(name), names.free(f"{name}Response")
            components |= {sent: request, got: answer}
            # An own record may be posted to the path at which a documented listing is read.
            verbs = self._verbs(operation, sent, got)
            paths.setdefault(operation.path, {}).update(verbs)
            paths[f"/api/{name}"] = self._verbs(operation, sent, got, predefined=True)
            if operation.method == "POST":
                paths[f"/api/{name}[]"] = {"post": self._batch(operation, sent, got)}
        paths.update(signing)
        keys = _KEY_SCHEME if self._options.traits.api_key_header else {}
        return {
            "openapi": "3.1.0",
            "info": {
                "title": "Engagement, Payments and Account Web Service Interface",
                "description": f"A sandbox of the service, style {self._options.style}.",
                "version": version("recon"),
            },
            "servers": [{"url": "/"}],
            "paths": paths,
            "components": {
                "schemas": components | self._schemas.embedded,
                "securitySchemes": _SCHEMES | keys,
            },
        }

    def _verbs(
        self, operation: Operation, sent: str, got: str, *, predefined: bool = False
    ) -> Schema:
        return {
            verb.lower(): self._call(operation, sent, got, verb, predefined=predefined)
            for verb in (operation.method, *operation.also)
        }

    def _call(
        self, operation: Operation, sent: str, got: str, verb: str, *, predefined: bool
    ) -> Schema:
        """`sent` and `got` are the names of the request and answer schemas."""
        name = self._options.name_of(operation)
        number = "" if verb == operation.method else f"By{verb.capitalize()}"
        parameters = [
            self._parameter(field, "path")
            for field in operation.table.delivered
            if not predefined and f"{{{field.name}}}" in operation.path
        ]
        called: Schema = {
            "operationId": self._calls.free(f"{'Api' if predefined else ''}{name}{number}"),
            "tags": [operation.table.title],
            "security": self._security(operation),
            "responses": self._responses(operation, got),
        }
        if verb == "GET":
            parameters += [self._parameter(field, "query") for field in operation.table.delivered]
        else:
            read = (_JSON, _FORM) if predefined else (_JSON, _CSV, _JSV, _FORM)
            called["requestBody"] = _body({"$ref": f"#/components/schemas/{sent}"}, read)
        return {**called, "parameters": parameters} if parameters else called

    def _batch(self, operation: Operation, sent: str, got: str) -> Schema:
        """Many records in one request, carried out in order until the first failure."""
        responses = self._responses(operation, got, many=True)
        completed = {
            "description": "How many records were carried out; absent where none was tried.",
            "schema": {"type": "integer"},
        }
        for answered in responses.values():
            answered["headers"] = {COMPLETED: completed}
        records: Schema = {"type": "array", "items": {"$ref": f"#/components/schemas/{sent}"}}
        return {
            "operationId": self._calls.free(f"Batch{self._options.name_of(operation)}"),
            "tags": [operation.table.title],
            "security": self._security(operation),
            "requestBody": _body(records, (_JSON,)),
            "responses": responses,
        }

    def _parameter(self, field: Field, place: str) -> Schema:
        return {
            "name": field.name,
            "in": place,
            "required": place == "path",
            "schema": self._schemas.given(field),
        }

    def _security(self, operation: Operation) -> list[Schema]:
        """Any one of the schemes with any one of the roles; empty if anybody may call."""
        schemes = [*_SCHEMES, *(_KEY_SCHEME if self._options.traits.api_key_header else ())]
        return [{scheme: [role]} for scheme in schemes for role in operation.roles]

    def _request(self, operation: Operation) -> Schema:
        validated = operation.name not in self._options.unvalidated
        return self._schemas.request(operation.table, validated=validated)

    def _answer(self, operation: Operation) -> Schema:
        table = TABLES[operation.response]
        if operation.response_name:
            members: Schema = {
                self._schemas.name(FORM): self._schemas.reference(table),
                self._schemas.name(RESPONSE_STATUS): self._schemas.reference(_STATUS),
            }
            return {"type": "object", "title": operation.response_name, "properties": members}
        record = self._schemas.answer(table, status=carries_status(operation))
        return {"type": "array", "items": record} if operation.returns_list else record

    def _responses(
        self, operation: Operation, answer: str, *, many: bool = False
    ) -> dict[str, Schema]:
        schema: Schema = {"$ref": f"#/components/schemas/{answer}"}
        statuses = ["400", *(("401", "403", "404") if operation.roles else ())]
        if operation.request == "client_registration":
            statuses.append("409")
        done = _answered("Done.", {"type": "array", "items": schema} if many else schema)
        return {"200": done} | _failures(*statuses)

    def _signing(self) -> dict[str, Schema]:
        """The framework's own operations: sign in, who am I, sign out."""
        free = self._calls.free
        answer = _answered("The account.", {"$ref": f"#/components/schemas/{NAME}Response"})
        given = _body({"$ref": f"#/components/schemas/{NAME}"}, (_JSON, _CSV, _JSV, _FORM))
        known = {"200": answer} | _failures("401", bodiless=())
        signed = {"200": answer} | _failures("400", "401", "404", bodiless=())
        return {
            "/auth": {
                "get": {"operationId": free("WhoAmI"), "responses": known, "security": _ANYBODY}
            },
            "/auth/credentials": {
                "post": {"operationId": free("SignIn"), "requestBody": given, "responses": signed}
            },
            "/auth/logout": {
                "post": {"operationId": free("SignOut"), "responses": {"200": answer}}
            },
        }


_STATUS: Table = TABLES["response_status"]
_ANYBODY: list[Schema] = [{scheme: []} for scheme in _SCHEMES]


def _body(schema: Schema, media_types: tuple[str, ...]) -> Schema:
    return {"required": True, "content": {name: {"schema": schema} for name in media_types}}


def _answered(description: str, schema: Schema) -> Schema:
    texts: Schema = {name: {"schema": {"type": "string"}} for name in (_CSV, _JSV, _HTML)}
    return {"description": description, "content": {_JSON: {"schema": schema}, **texts}}


def _failures(*statuses: str, bodiless: tuple[str, ...] = _BODILESS) -> dict[str, Schema]:
    error: Schema = {"$ref": f"#/components/schemas/{ERROR}"}
    return {
        status: {"description": _FAILED[status]}
        if status in bodiless
        else _answered(_FAILED[status], error)
        for status in statuses
    }
