"""GET /openapi.json says what the tables say: paths, verbs, fields, kinds, rules and roles."""

from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from connectors.sandbox import SandboxOptions
from connectors.sandbox.description import Description, RecordSchemas
from connectors.sandbox.options import STYLES
from connectors.sandbox.rendering import camel
from schemas.field import Kind
from schemas.operations import OPERATIONS, Operation
from tests.sandbox.conftest import Host, running
from tests.sandbox.records import PAYMENT

TYPES = {
    Kind.INTEGER: ("integer", "int32"),
    Kind.INTEGER64: ("integer", "int64"),
    Kind.DOUBLE: ("number", "double"),
    Kind.STRING: ("string", None),
    Kind.BOOLEAN: ("boolean", None),
    Kind.DATETIME: ("string", "date-time"),
    Kind.DATETIME_OFFSET: ("string", "date-time"),
    Kind.LIST: ("array", None),
}


def described(**options: Any) -> dict[str, Any]:
    document: dict[str, Any] = Description(SandboxOptions(**options)).document()
    return document


def test_it_needs_no_account(pascal: Host) -> None:
    answer = pascal.caller.send("GET", "/openapi.json")
    assert (answer.status, answer.headers["content-type"]) == (
        200,
        "application/json; charset=utf-8",
    )
    assert answer.json() == described()
    assert pascal.caller.send("POST", "/openapi.json", b"{}").status == 404


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_every_operation_by_both_paths(operation: Operation) -> None:
    paths = described()["paths"]
    verbs = {verb.lower() for verb in (operation.method, *operation.also)}
    assert paths[operation.path].keys() == paths[f"/api/{operation.name}"].keys() == verbs
    assert (f"/api/{operation.name}[]" in paths) == (operation.method == "POST")


def test_nothing_but_the_operations_and_signing() -> None:
    known = {operation.path for operation in OPERATIONS}
    told = {path for path in described()["paths"] if not path.startswith("/api/")}
    assert told - known == {"/auth", "/auth/credentials", "/auth/logout"}


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_every_field_of_a_request(operation: Operation, style: str) -> None:
    schema = described(style=style)["components"]["schemas"][operation.name]
    written = camel if style == "camel-core" else str
    fields = {written(field.name): field for field in operation.table.delivered}
    assert list(schema["properties"]) == list(fields)
    assert schema["required"] == [name for name, field in fields.items() if field.needs_value]
    for name, field in fields.items():
        told = schema["properties"][name]
        kind, form = TYPES[field.kind]
        assert told["type"] == (kind if field.needs_value else [kind, "null"]), name
        if field.secret:
            form = "password"
        elif field.name == "EMail":
            form = "email"
        assert told.get("format") == form, name


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_roles_are_alternatives(operation: Operation) -> None:
    call = described()["paths"][operation.path][operation.method.lower()]
    asked = {(scheme, *roles) for wish in call["security"] for scheme, roles in wish.items()}
    schemes = ("basic", "bearer", "session")
    assert asked == {(scheme, role) for scheme in schemes for role in operation.roles}
    assert ("401" in call["responses"]) == bool(operation.roles)


def test_a_listing_is_asked_by_its_fields() -> None:
    call = described()["paths"]["/avatars"]["get"]
    assert [parameter["name"] for parameter in call["parameters"]] == [
        "TenantsId", "Name", "Gender", "AgeGroup", "Style", "ImageUrl", "EthnicGroup",
    ]  # fmt: skip
    assert not any(parameter["required"] for parameter in call["parameters"])


def test_a_hosts_own_names_and_missing_validators() -> None:
    schemas = described(
        operation_names={"EditPayment": "UpdatePayment"}, unvalidated=frozenset({"EditPayment"})
    )["components"]["schemas"]
    assert "EditPayment" not in schemas
    assert schemas["UpdatePayment"]["required"] == []


@pytest.mark.long
@pytest.mark.parametrize("style", STYLES)
def test_references_lead_somewhere(style: str) -> None:
    document = described(style=style)
    schemas = document["components"]["schemas"]
    found = set(_references(document))
    assert found
    assert {reference.rpartition("/")[2] for reference in found} <= schemas.keys()
    for schema in schemas.values():
        Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize("style", STYLES)
def test_an_answer_is_of_its_schema(style: str, database_url: str) -> None:
    schemas = RecordSchemas(SandboxOptions(style=style).traits)
    with running(database_url, style=style) as host:
        answer = host.caller.as_client("PUT", "/payments/12", PAYMENT).json()
        failed = host.caller.as_client("PUT", "/payments/12", {}).json()
    table = next(each.table for each in OPERATIONS if each.name == "EditPayment")
    schema = schemas.answer(table, status=False)
    Draft202012Validator({**schema, "additionalProperties": False}).validate(answer)
    assert set(failed) == {schemas.name("ResponseStatus")}


def _references(part: Any) -> list[str]:
    if isinstance(part, dict):
        own = [part["$ref"]] if "$ref" in part else []
        return own + [found for member in part.values() for found in _references(member)]
    if isinstance(part, list):
        return [found for element in part for found in _references(element)]
    return []
