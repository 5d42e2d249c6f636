"""Auto-batches: all are checked first, then run in order until one fails."""

import json

import pytest

from tests.sandbox.conftest import Host
from tests.sandbox.records import PAYMENT, PAYMENT_CSV, REGISTRATION, TONE

COMPLETED = "x-autobatch-completed"


def registrations(*mails: str) -> list[dict[str, object]]:
    return [{**REGISTRATION, "EMail": mail} for mail in mails]


@pytest.mark.parametrize(
    "path", ["/json/reply/AddMessageTone[]", "/api/AddMessageTone%5B%5D", "/API/addmessagetone[]"]
)
def test_every_record_is_answered(host: Host, path: str) -> None:
    tones = [{**TONE, "Name": name} for name in "xyz"]
    answer = host.caller.as_client("POST", path, tones)
    assert (answer.status, answer.headers[COMPLETED], answer.json()) == (200, "3", tones)


def test_csv_rows_in_csv_rows_out(host: Host) -> None:
    body = PAYMENT_CSV + PAYMENT_CSV.split("\r\n")[1].replace("12,", "13,", 1) + "\r\n"
    answer = host.caller.as_client("PUT", "/csv/reply/EditPayment[]", body, "text/csv", "text/csv")
    assert answer.headers["content-disposition"] == "attachment;filename=EditPayment[].csv"
    assert [line.split(",")[0] for line in answer.body.splitlines()] == ["Id", "12", "13"]
    assert answer.headers[COMPLETED] == "2"


def test_one_invalid_record_stops_all(host: Host) -> None:
    batch = [*registrations("a@b.co"), {}, *registrations("bad")]
    answer = host.caller.as_client("POST", "/json/reply/ClientRegister[]", batch, user="partner")
    assert (answer.status, answer.reason) == (400, "NotNull")
    assert COMPLETED not in answer.headers
    assert "Meta" not in answer.json()["ResponseStatus"]
    again = host.caller.as_client("POST", "/clientregister", REGISTRATION, user="partner")
    assert again.status == 200, "the first record of the batch was executed"


TONES = "/api/AddMessageTone[]"
NAMED = [
    # path, records, status, index of the record the failure is about
    (TONES, [TONE, TONE, {}], 400, "2"),
    (TONES, [{}], 400, "0"),
    (TONES, [{}, TONE, {}], 400, "0"),
    ("/api/ClientRegister[]", registrations("a@b", "b@b", "A@b", "c@b"), 409, "2"),
    ("/api/EditPayment[]", [PAYMENT], 405, "0"),
]


@pytest.mark.parametrize(("path", "records", "status", "index"), NAMED)
def test_a_newer_host_names_the_record(
    camel: Host, path: str, records: list[dict[str, object]], status: int, index: str
) -> None:
    camel.sandbox.clear()
    answer = camel.caller.as_client("POST", path, records, user="partner")
    assert answer.status == status
    assert answer.json()["responseStatus"]["meta"] == {"AutoBatchIndex": index}


def test_a_single_request_has_no_index(camel: Host) -> None:
    answer = camel.caller.as_client("POST", "/message_tones", {})
    assert "meta" not in answer.json()["responseStatus"]


def test_an_exception_stops_in_the_middle(host: Host) -> None:
    batch = registrations("a@b.co", "b@b.co", "A@B.co", "c@b.co")
    answer = host.caller.as_client("POST", "/json/reply/ClientRegister[]", batch, user="partner")
    assert (answer.status, answer.reason) == (409, "Conflict")
    assert answer.headers[COMPLETED] == "2"
    done = [
        host.caller.as_client("POST", "/clientregister", body, user="partner").status
        for body in registrations("b@b.co", "c@b.co")
    ]
    assert done == [409, 200]


EMPTY = [
    # path, body, Content-Type, body that comes back
    ("/json/reply/AddMessageTone[]", "[]", "application/json", "[]"),
    ("/csv/reply/AddMessageTone[]", json.dumps([TONE]), "application/json", ""),
    ("/csv/reply/AddMessageTone[]", "TenantsId,AvatarsId,Name\r\n", "text/csv", ""),
]


@pytest.mark.parametrize(("path", "body", "content_type", "expected"), EMPTY)
def test_nothing_is_executed_for_no_records(
    host: Host, path: str, body: str, content_type: str, expected: str
) -> None:
    answer = host.caller.as_client("POST", path, body, "application/json", content_type)
    assert (answer.status, answer.body) == (200, expected)
    assert COMPLETED not in answer.headers


def test_one_object_is_no_batch(host: Host) -> None:
    answer = host.caller.as_client("POST", "/json/reply/AddMessageTone[]", TONE)
    assert (answer.status, answer.reason) == (400, "Bad Request")


def test_edits_are_put_in_batches_not_posted(host: Host) -> None:
    batch = [{**PAYMENT, "Id": number} for number in (1, 2)]
    put = host.caller.as_client("PUT", "/json/reply/EditPayment[]", batch)
    assert [record["Id"] for record in put.json()] == [1, 2]
    assert host.caller.as_client("PUT", "/api/EditPayment[]", batch).status == 404
    posted = host.caller.as_client("POST", "/json/reply/EditPayment[]", batch)
    assert (posted.status, posted.reason) == (405, "NotImplementedException")
    assert posted.headers[COMPLETED] == "0"
