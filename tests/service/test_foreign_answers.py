"""What need not be the record that was made is no proof that it was."""

import json
from typing import Any

import pytest

from connectors.errors import ServiceUnusable
from connectors.service import Verdict
from connectors.service.classify import ClassifiedResponse
from connectors.service.encoding import CSV, JSON, read_record
from schemas.field import Kind, Table
from schemas.operations import Operation
from schemas.tables import FORM_RESPONSE, TABLES, USER_ACCOUNT
from tests.service.outbox import BY_NAME, LISTS, request
from tests.service.test_answer_bodies import listed
from tests.service.test_garbage import JUDGE, OPERATIONS, reply
from tests.service.test_two_hundreds import MADE, RESULTS

FORM, REGISTER = BY_NAME["SaveCampaignActionClientForm"], BY_NAME["ClientRegister"]
GATEWAYS: list[dict[str, Any]] = [
    {"name": "api-gateway", "status": "maintenance"},
    {"Name": "api-gateway", "Id": 7},
    {"id": "req-7f", "message": "queued for later"},
    {"id": 7, "message": "queued for later"},
    {"id": 7, "data": "queued", "company": "ACME Gateways"},
    {"Id": 7, "TenantsId": 1, "Name": "api-gateway", "Style": "x", "Company": "ACME"},
    {"email": "ops@acme.example", "id": 7, "lastName": "Gateway"},
    {"data": "maintenance", "hasError": True, "error": "x"},
]


def judged(operation: Operation, content: str, kind: str = JSON) -> ClassifiedResponse:
    made = request(operation, 1)
    return JUDGE.single(made, read_record(made.jsondata), reply(content.encode(), kind))


@OPERATIONS
@pytest.mark.parametrize("told", GATEWAYS, ids=json.dumps)
def test_what_stands_before_the_service_is_not_taken_for_it(
    operation: Operation, told: dict[str, Any]
) -> None:
    csv = f"{','.join(told)}\r\n{','.join(map(str, told.values()))}\r\n"
    for content, kind in ((json.dumps(told), JSON), (csv, CSV)):
        found = judged(operation, content, kind)
        assert (found.verdict, found.in_doubt) == (None, True)


@pytest.mark.parametrize(
    "told",
    [
        {"name": "api-gateway", "status": "maintenance"},
        {"name": "api-gateway", "style": "x", "id": 7, "status": "x", "message": "y"},
        {"message": "no"},
    ],
    ids=json.dumps,
)
def test_nor_is_its_list(told: dict[str, Any]) -> None:
    with pytest.raises(
        ServiceUnusable, match="at most half of the fields of row 1 are fields of avatar"
    ):
        listed(json.dumps([told]), JSON)


def test_a_listing_may_have_fields_that_nobody_knows() -> None:
    assert {"ListAvatars"} <= {operation.name for operation in LISTS}
    told = [{"TenantsId": 1, "Name": "a", "Status": 1}, {}, {"Name": "b"}]
    assert listed(json.dumps(told), JSON) == [{"TenantsId": 1, "Name": "a"}, {}, {"Name": "b"}]


JUNK: dict[Kind, list[Any]] = {
    Kind.INTEGER: ["x y z", {"a": 1}, [7], 1.5, 10**10, True],
    Kind.STRING: [5, True, {"a": 1}, ["a"]],
    Kind.DATETIME: ["soon", 5, True, "2026-13-01", "2026-01-02T03:04:05+14:01", {"a": 1}],
    Kind.RECORD: ["{oops", "text", 5, [], {"Comments": 5}, {"CampaignActionFiles": {"a": "b"}}],
    Kind.MAP: ["{oops", "[a]", 5, [], {"a": 1}, {"a": ["b"]}],
    Kind.LIST: ["[oops", "text", 5, {"a": "b"}, [5], [True]],
}
NOTHING = [None, "", 0, "0", 0.0, False, -1]
"""No key is any of these."""


def answered(table: Table) -> tuple[Operation, dict[str, Any]]:
    """An operation and a whole answer to it."""
    if table is FORM_RESPONSE:
        return FORM, {**MADE, "FormMetaResponses": RESULTS}
    sent = json.loads(request(REGISTER, 1).jsondata)
    shown = {name: sent[name] for name in ("FirstName", "LastName", "Company", "Roles")}
    return REGISTER, {"Id": 7, "Email": sent["EMail"], **shown}


def told(table: Table, shown: dict[str, Any]) -> str:
    wrapped = {"CampaignActionsFormResponses": shown} if table is FORM_RESPONSE else shown
    return json.dumps(wrapped)


FIELDS = [(table, field) for table in (FORM_RESPONSE, USER_ACCOUNT) for field in table]


@pytest.mark.parametrize(("table", "field"), FIELDS, ids=lambda one: one.name)
def test_no_field_of_a_record_that_was_made_is_junk(table: Table, field: Any) -> None:
    operation, whole = answered(table)
    assert judged(operation, told(table, whole)).verdict is Verdict.ACKNOWLEDGED
    for junk in JUNK[field.kind]:
        found = judged(operation, told(table, {**whole, field.name: junk}))
        assert (found.verdict, found.in_doubt) == (None, True), junk


@pytest.mark.parametrize("table", [FORM_RESPONSE, USER_ACCOUNT], ids=lambda one: one.name)
def test_a_record_that_was_made_has_a_key(table: Table) -> None:
    operation, whole = answered(table)
    assert table.key == ("Id",)
    for nothing in NOTHING:
        assert judged(operation, told(table, {**whole, "Id": nothing})).verdict is None, nothing
    for name in ("Id", *(field.name for field in table if field.required)):
        left = {key: value for key, value in whole.items() if key != name}
        assert judged(operation, told(table, left)).verdict is None, name


COMPUTED: list[tuple[Table, dict[str, Any]]] = [
    # what a service may fill in for itself
    (FORM_RESPONSE, {"ActionTimestamp": "2026-01-02T03:04:05.1234567Z", "CustomersId": None}),
    (FORM_RESPONSE, {"ActionTimestamp": "0001-01-01", "CampaignActionsId": 0}),
    (FORM_RESPONSE, {"FormMetaCustomResponses": {"a": None, "A": "b"}, "StatusCodesId": 0}),
    (FORM_RESPONSE, {"FormMetaCustomResponses": "{a:1}", "More": {"b": [1]}}),
    (FORM_RESPONSE, {"FormMetaResponses": {**RESULTS, "CustomFormResults": '{"a":1}', "More": 1}}),
    (USER_ACCOUNT, {"CreatedDate": "/Date(1767323045000-0500)/", "LockedDate": None}),
    (USER_ACCOUNT, {"LockedDate": "9999-12-31T23:59:59.9999999", "RefId": 0, "Permissions": []}),
    (USER_ACCOUNT, {"Meta": {"a": "1"}, "Salt": "x", "PhoneNumber": "", "BirthDate": "1990-01-02"}),
]


@pytest.mark.parametrize(("table", "more"), COMPUTED, ids=range(len(COMPUTED)))
def test_what_the_service_fills_in(table: Table, more: dict[str, Any]) -> None:
    operation, whole = answered(table)
    found = judged(operation, told(table, {**whole, **more}))
    assert (found.verdict, found.service_id) == (Verdict.ACKNOWLEDGED, "7")


def test_every_kind_of_what_is_answered_is_tried() -> None:
    answers = {operation.response for operation in (FORM, REGISTER)}
    assert {field.kind for name in answers for field in TABLES[name]} == JUNK.keys()
