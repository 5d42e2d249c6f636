"""The host describes itself: OpenAPI 3.1, derived from the operations and the field tables."""

import json
from importlib.metadata import version

from connectors.sandbox.messages import Response, media_type
from connectors.sandbox.options import SandboxOptions
from connectors.sandbox.record_schemas import RecordSchemas, Schema
from connectors.sandbox.rendering import RESPONSE_STATUS, Format
from connectors.sandbox.routes import AUTHENTICATE as NAME
from connectors.sandbox.routes import COMPLETED
from connectors.sandbox.service import FORM, carries_status
from connectors.sandbox.signing import ANSWER, AUTHENTICATE
from schemas.field import Field, Table
from schemas.operations import OPERATIONS, Operation
from schemas.tables import TABLES

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
# What is refused for want of credentials or a role has no body, and so no Content-Type.
_BODILESS = ("401", "403")


class Description:
    """The description of one host, made when it is first asked for."""

    def __init__(self, options: SandboxOptions) -> None:
        self._options = options
        self._schemas = RecordSchemas(options.traits)

    def response(self) -> Response:
        """The answer to a request for it."""
        body = json.dumps(self.document(), ensure_ascii=False, indent=2).encode()
        return Response(200, "OK", [("Content-Type", Format.JSON.value)], body)

    def document(self) -> Schema:
        """The whole description."""
        paths: dict[str, Schema] = {}
        components: Schema = {}
        for operation in OPERATIONS:
            name = self._options.name_of(operation)
            validated = operation.name not in self._options.unvalidated
            components[name] = self._schemas.request(operation.table, validated=validated)
            components[f"{name}Response"] = self._answer(operation)
            paths[operation.path] = self._verbs(operation, name)
            paths[f"/api/{name}"] = self._verbs(operation, name, predefined=True)
            if operation.method == "POST":
                paths[f"/api/{name}[]"] = {"post": self._batch(operation, name)}
        components[NAME] = self._schemas.request(AUTHENTICATE, validated=True)
        components[f"{NAME}Response"] = self._schemas.answer(ANSWER, status=True)
        paths.update(self._signing())
        status = {self._schemas.name(RESPONSE_STATUS): self._schemas.reference(_STATUS)}
        components[ERROR] = {"type": "object", "properties": status, "required": list(status)}
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

    def _verbs(self, operation: Operation, name: str, *, predefined: bool = False) -> Schema:
        return {
            verb.lower(): self._call(operation, name, verb, predefined=predefined)
            for verb in (operation.method, *operation.also)
        }

    def _call(self, operation: Operation, name: str, verb: str, *, predefined: bool) -> Schema:
        number = "" if verb == operation.method else f"By{verb.capitalize()}"
        placed = () if predefined else _placed(operation)
        parameters = [self._parameter(field, "path") for field in placed]
        called: Schema = {
            "operationId": f"{'Api' if predefined else ''}{name}{number}",
            "tags": [operation.table.title],
            "security": self._security(operation),
            "responses": self._responses(operation, f"{name}Response"),
        }
        if verb == "GET":
            parameters += [self._parameter(field, "query") for field in operation.table.delivered]
        else:
            read = (_JSON, _FORM) if predefined else (_JSON, _CSV, _JSV, _FORM)
            called["requestBody"] = _body({"$ref": f"#/components/schemas/{name}"}, read)
        return {**called, "parameters": parameters} if parameters else called

    def _batch(self, operation: Operation, name: str) -> Schema:
        """Many records in one request, carried out in order until the first failure."""
        responses = self._responses(operation, f"{name}Response", many=True)
        completed = {
            "description": "How many records were carried out; absent where none was tried.",
            "schema": {"type": "integer"},
        }
        for answered in responses.values():
            answered["headers"] = {COMPLETED: completed}
        records: Schema = {"type": "array", "items": {"$ref": f"#/components/schemas/{name}"}}
        return {
            "operationId": f"Batch{name}",
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
        """Any one of the schemes with any one of the roles; none: anybody may call."""
        schemes = [*_SCHEMES, *(_KEY_SCHEME if self._options.traits.api_key_header else ())]
        return [{scheme: [role]} for scheme in schemes for role in operation.roles]

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
        answer = _answered("The account.", {"$ref": f"#/components/schemas/{NAME}Response"})
        given = _body({"$ref": f"#/components/schemas/{NAME}"}, (_JSON, _CSV, _JSV, _FORM))
        known = {"200": answer} | _failures("401", bodiless=())
        signed = {"200": answer} | _failures("400", "401", "404", bodiless=())
        return {
            "/auth": {"get": {"operationId": "WhoAmI", "responses": known, "security": _ANYBODY}},
            "/auth/credentials": {
                "post": {"operationId": "SignIn", "requestBody": given, "responses": signed}
            },
            "/auth/logout": {"post": {"operationId": "SignOut", "responses": {"200": answer}}},
        }


_STATUS: Table = TABLES["response_status"]
_ANYBODY: list[Schema] = [{scheme: []} for scheme in _SCHEMES]


def _placed(operation: Operation) -> tuple[Field, ...]:
    fields = operation.table.delivered
    return tuple(field for field in fields if f"{{{field.name}}}" in operation.path)


def _body(schema: Schema, media_types: tuple[str, ...]) -> Schema:
    return {"required": True, "content": {name: {"schema": schema} for name in media_types}}


def _answered(told: str, schema: Schema) -> Schema:
    texts: Schema = {name: {"schema": {"type": "string"}} for name in (_CSV, _JSV, _HTML)}
    return {"description": told, "content": {_JSON: {"schema": schema}, **texts}}


def _failures(*statuses: str, bodiless: tuple[str, ...] = _BODILESS) -> dict[str, Schema]:
    error: Schema = {"$ref": f"#/components/schemas/{ERROR}"}
    return {
        status: {"description": _FAILED[status]}
        if status in bodiless
        else _answered(_FAILED[status], error)
        for status in statuses
    }
