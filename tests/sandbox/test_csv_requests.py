"""CSV bodies as the service reads them, faults of its reader included."""

import gzip
import json
from typing import Any

import pytest

from tests.sandbox.caller import basic
from tests.sandbox.conftest import Host
from tests.sandbox.records import PAYMENT, PAYMENT_CSV, PAYMENT_HEADER

TONE_HEADER = "TenantsId,AvatarsId,Name"

ACCEPTED: list[tuple[str, str, Any]] = [
    # what, body, Name that comes back
    ("CR LF", f"{TONE_HEADER}\r\n1,2,x\r\n", "x"),
    ("LF", f"{TONE_HEADER}\n1,2,x\n", "x"),
    ("no last newline", f"{TONE_HEADER}\n1,2,x", "x"),
    ("blank lines", f"\r\n{TONE_HEADER}\r\n\r\n1,2,x\r\n\r\n", "x"),
    ("byte order mark", f"\ufeff{TONE_HEADER}\r\n1,2,x\r\n", "x"),
    ("quoted header", '"TenantsId","AvatarsId","Name"\r\n1,2,x\r\n', "x"),
    ("header in any case", "tenantsid,AVATARSID,name\r\n1,2,x\r\n", "x"),
    ("unknown column", f"{TONE_HEADER},More\r\n1,2,x,y\r\n", "x"),
    ("other order", "Name,AvatarsId,TenantsId\r\nx,2,1\r\n", "x"),
    ("only the first row", f"{TONE_HEADER}\r\n1,2,x\r\n1,2,y\r\n", "x"),
    ("quoted", f'{TONE_HEADER}\r\n1,2,"a,""b""\r\nc"\r\n', 'a,"b"\r\nc'),
    ("two quotes are empty", f'{TONE_HEADER}\r\n1,2,""\r\n', ""),
    ("blanks are kept", f"{TONE_HEADER}\r\n1,2, x \r\n", " x "),
    ("braces unquoted", f"{TONE_HEADER}\r\n1,2,{{a,b}}\r\n", "{a,b}"),
    ("brackets unquoted", f"{TONE_HEADER}\r\n1,2,[a,b]\r\n", "[a,b]"),
    ("braces quoted", f'{TONE_HEADER}\r\n1,2,"{{""a"":1}}"\r\n', '{"a":1}'),
    ("beyond ASCII", f"{TONE_HEADER}\r\n1,2,été €\r\n", "été €"),
]


@pytest.mark.parametrize(("what", "body", "name"), ACCEPTED, ids=lambda value: str(value)[:20])
def test_accepted(host: Host, what: str, body: str, name: str) -> None:
    answer = host.caller.as_client("POST", "/message_tones", body, content_type="text/csv")
    assert (answer.status, answer.json()) == (200, {"TenantsId": 1, "AvatarsId": 2, "Name": name})


MISSING = [
    ("bare empty is null", f"{TONE_HEADER}\r\n1,2,\r\n", ["Name"]),
    ("short row", f"{TONE_HEADER}\r\n1,2\r\n", ["Name"]),
    ("header only", f"{TONE_HEADER}\r\n", ["TenantsId", "AvatarsId", "Name"]),
    ("nothing", "", ["TenantsId", "AvatarsId", "Name"]),
    ("semicolons", "TenantsId;AvatarsId;Name\r\n1;2;x\r\n", ["TenantsId", "AvatarsId", "Name"]),
    ("blank before a name", "TenantsId, AvatarsId,Name\r\n1,2,x\r\n", ["AvatarsId"]),
    ("JSON", '{"TenantsId":1,"AvatarsId":2,"Name":"x"}', ["TenantsId", "AvatarsId", "Name"]),
]


@pytest.mark.parametrize(("what", "body", "fields"), MISSING, ids=lambda value: str(value)[:20])
def test_columns_that_are_not_found_are_null(
    host: Host, what: str, body: str, fields: list[str]
) -> None:
    answer = host.caller.as_client("POST", "/message_tones", body, content_type="text/csv")
    assert (answer.status, answer.reason) == (400, "NotNull")
    assert answer.codes == [("NotNull", field) for field in fields]


REFUSED = [
    ("more cells than columns", f"{TONE_HEADER}\r\n1,2,x,y\r\n"),
    ("text after a quote", f'{TONE_HEADER}\r\n1,2,"x" tail\r\n'),
    ("closing brace first", f"{TONE_HEADER}\r\n1,2,}}x\r\n"),
    ("closing brace inside", f"{TONE_HEADER}\r\n1,2,x}}y\r\n"),
    ("no number", f"{TONE_HEADER}\r\none,2,x\r\n"),
    ("too large", f"{TONE_HEADER}\r\n99999999999,2,x\r\n"),
    ("a later row", f"{TONE_HEADER}\r\n1,2,x\r\n1,2,y,z\r\n"),
]


@pytest.mark.parametrize(("what", "body"), REFUSED, ids=lambda value: str(value)[:20])
def test_refused(host: Host, what: str, body: str) -> None:
    answer = host.caller.as_client("POST", "/message_tones", body, content_type="text/csv")
    assert (answer.status, answer.reason) == (400, "Bad Request")
    assert answer.json()["ResponseStatus"]["ErrorCode"] == "SerializationException"


def test_a_payment_comes_back_as_it_was_written(host: Host) -> None:
    answer = host.caller.as_client("PUT", "/payments/12", PAYMENT_CSV, "text/csv", "text/csv")
    row = PAYMENT_CSV.split("\r\n")[1]
    assert answer.body == f"{PAYMENT_HEADER},ResponseStatus\r\n{row},\r\n"
    assert answer.headers["content-disposition"] == "attachment;filename=EditPayment.csv"


def test_group_commas_are_read(host: Host) -> None:
    body = PAYMENT_CSV.replace(",10.5,", ',"1,234.5",')
    answer = host.caller.as_client("PUT", "/payments/12", body, content_type="text/csv")
    assert answer.json()["PaidAmount"] == 1234.5


def test_nested_values_are_jsv_in_a_cell(host: Host) -> None:
    body = 'CommsGuid,CampaignActionFiles\r\ng,"[{Name:""f,1"",FileSize:3},{name:b,Other:c}]"\r\n'
    answer = host.caller.send(
        "POST",
        "/campaign/inbox/form",
        body,
        {"Accept": "application/json", "Content-Type": "text/csv"},
    )
    files = [{"Name": "f,1", "FileSize": "3"}, {"Name": "b"}]
    response = answer.json()["CampaignActionsFormResponses"]
    assert response["FormMetaFilesResponses"] == files
    assert response["FormMetaResponses"]["CampaignActionFiles"] == files


def test_blanks_around_names_do_not_count_on_a_newer_host(camel: Host) -> None:
    body = "TenantsId, AvatarsId ,Name\r\n1,2,x\r\n"
    answer = camel.caller.as_client("POST", "/message_tones", body, content_type="text/csv")
    assert answer.json() == {"tenantsId": 1, "avatarsId": 2, "name": "x"}


def _headers(content_type: str) -> dict[str, str]:
    return {
        "Accept": "application/json",
        "Authorization": basic("client"),
        "Content-Type": content_type,
    }


def test_a_chunked_body_is_no_body(host: Host) -> None:
    body = json.dumps(PAYMENT)
    headers = _headers("application/json")
    answer = host.caller.send("PUT", "/payments/12", body, headers, chunked=True)
    assert answer.reason == "NotNull"
    assert ("NotNull", "Id") not in answer.codes, "the path still counts"


@pytest.mark.parametrize("content_type", ["application/pdf", "text/plain", "text/jsv"])
def test_a_body_of_an_unknown_type_is_no_body(host: Host, content_type: str) -> None:
    answer = host.caller.as_client("PUT", "/payments/12", PAYMENT, content_type=content_type)
    assert (answer.status, answer.reason) == (400, "NotNull")


def test_a_compressed_body_is_read(host: Host) -> None:
    headers = _headers("text/csv") | {"Content-Encoding": "gzip"}
    body = gzip.compress(PAYMENT_CSV.encode())
    answer = host.caller.send("PUT", "/payments/12", body, headers)
    assert (answer.status, answer.json()["PaidAmount"]) == (200, 10.5)
    broken = host.caller.send("PUT", "/payments/12", b"\x1f\x8bbroken", headers)
    assert (broken.status, broken.reason) == (400, "Bad Request")


def test_a_caller_that_waits_to_send_its_body_is_told_to(host: Host) -> None:
    headers = _headers("text/csv") | {"Expect": "100-continue"}
    answer = host.caller.send("PUT", "/payments/12", PAYMENT_CSV, headers)
    assert answer.status == 200
