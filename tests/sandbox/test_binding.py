"""JSON, JSV, forms, paths and queries become values, as leniently as the framework has it."""

from typing import Any

import psycopg
import pytest

from tests.sandbox.conftest import Host
from tests.sandbox.records import PAYMENT, TONE

PRECEDENCE = [
    # path, Id in the body, Id that comes back
    ("/payments/12", 99, 12),
    ("/payments/12?Id=55", 99, 55),
    ("/payments/12?id=55", 99, 55),
    ("/payments/12?Unknown=55&Skip=1", 99, 12),
    ("/payments/12?Id=", 99, 12),
    ("/json/reply/EditPayment", 99, 99),
    ("/api/EditPayment?Id=55", 99, 55),
]


@pytest.mark.parametrize(("path", "sent", "expected"), PRECEDENCE)
def test_path_beats_body_and_query_beats_path(
    host: Host, path: str, sent: int, expected: int
) -> None:
    answer = host.caller.as_client("PUT", path, {**PAYMENT, "Id": sent})
    assert (answer.status, answer.json()["Id"]) == (200, expected)


def test_form_beats_query(host: Host) -> None:
    form = "tenantsid=1&AvatarsId=2&Name=from+form%26more"
    answer = host.caller.as_client(
        "POST",
        "/message_tones?Name=query&AvatarsId=7",
        form,
        content_type="application/x-www-form-urlencoded",
    )
    assert answer.json() == {"TenantsId": 1, "AvatarsId": 2, "Name": "from form&more"}


MEMBERS: list[tuple[str, Any, Any]] = [
    # field, value sent as JSON, value that comes back or None for NotNull
    ("PaidAmount", "10.50", 10.5),
    ("PaidAmount", " 1,234.5 ", 1234.5),
    ("PaidAmount", 1e16, 1e16),
    ("PaidAmount", "x", None),
    ("PaidAmount", True, None),
    ("PaidAmount", [1], None),
    ("TenantsId", "7", 7),
    ("TenantsId", 1.5, None),
    ("TenantsId", 99999999999, None),
    ("TenantsId", -(2**31), -(2**31)),
    ("TenantsId", 2**31, None),
    ("TenantsId", "", None),
    ("TenantsId", None, None),
    ("DebtsId", 2**63 - 1, 2**63 - 1),
    ("DebtsId", 2**63, None),
    ("PaymentDate", "junk", None),
    ("PaymentDate", "2026-02-30", None),
    ("PaymentDate", 5, None),
]


@pytest.mark.parametrize(("field", "sent", "expected"), MEMBERS)
def test_a_member_that_cannot_be_read_is_null(
    host: Host, field: str, sent: object, expected: object
) -> None:
    answer = host.caller.as_client("PUT", "/payments/12", {**PAYMENT, field: sent})
    if expected is None:
        assert (answer.status, answer.codes) == (400, [("NotNull", field)])
    else:
        assert (answer.status, answer.json()[field]) == (200, expected)


TEXTS: list[tuple[str, str]] = [
    ('"x"', "x"),
    ("5", "5"),
    ("1.50", "1.50"),
    ("true", "true"),
    ('{"a":[1,null]}', '{"a":[1,null]}'),
    (r'"\ud800"', "\ufffd"),
    ('"line\nbreak"', "line\nbreak"),
]


@pytest.mark.parametrize(("sent", "expected"), TEXTS)
def test_a_text_takes_whatever_is_written(host: Host, sent: str, expected: str) -> None:
    body = f'{{"TenantsId":1,"AvatarsId":2,"Name":{sent}}}'
    answer = host.caller.as_client("POST", "/message_tones", body)
    assert answer.json()["Name"] == expected


BODIES = [
    # body, status, ErrorCode, fields that are missing
    ('{"TenantsId":1,"AvatarsId":2,"Na', 400, "NotNull", ["Name"]),
    ('{"TenantsId":1,"AvatarsId":2', 400, "NotNull", ["Name"]),
    ("{", 400, "NotNull", ["TenantsId", "AvatarsId", "Name"]),
    ("", 400, "NotNull", ["TenantsId", "AvatarsId", "Name"]),
    ("  ", 400, "NotNull", ["TenantsId", "AvatarsId", "Name"]),
    ("[]", 400, "SerializationException", []),
    ("5", 400, "SerializationException", []),
    ("null", 400, "SerializationException", []),
    ("nonsense", 400, "SerializationException", []),
    ("[" * 100_000, 400, "SerializationException", []),
]


@pytest.mark.parametrize(("body", "status", "code", "fields"), BODIES, ids=lambda v: str(v)[:30])
def test_bodies_that_are_no_json_object(
    host: Host, body: str, status: int, code: str, fields: list[str]
) -> None:
    answer = host.caller.as_client("POST", "/message_tones", body)
    assert (answer.status, answer.json()["ResponseStatus"]["ErrorCode"]) == (status, code)
    assert [field for _, field in answer.codes] == fields


def test_a_strict_host_refuses_what_the_classic_one_reads_as_null(camel: Host) -> None:
    rate = '{"tenantsId":1,"fromCurrenciesId":1,"toCurrenciesId":2,"exchangeRate":%s}'
    no_json = [rate % constant for constant in ("NaN", "Infinity", "-Infinity")]
    for body in ('{"tenantsId":"x"}', '{"tenantsId":1', "[]", '{"name":"a\tb"}', *no_json):
        answer = camel.caller.as_client("POST", "/message_tones", body)
        status = answer.json()["responseStatus"]
        assert (answer.status, status["errorCode"]) == (400, "SerializationException")
        assert "Could not deserialize 'application/json' request" in status["message"]


def test_not_a_number_is_kept_bare(host: Host) -> None:
    body = '{"TenantsId":1,"FromCurrenciesId":1,"ToCurrenciesId":2,"ExchangeRate":NaN,'
    answer = host.caller.as_client(
        "PUT", "/currency_rates/3", body + '"EffectiveDate":"2026-01-02"}'
    )
    assert '"ExchangeRate":NaN' in answer.body


def test_jsv_bodies(host: Host) -> None:
    body = '{TenantsId:1,AvatarsId:2,Name:"a,""b"""}'
    answer = host.caller.as_client(
        "POST", "/message_tones", body, "application/jsv", "application/jsv"
    )
    assert (answer.headers["content-type"], answer.body) == ("application/jsv", body)


UNBOUND = [
    ("GET", "/insert_batch_data?BatchId=abc", [("BatchId", "abc")]),
    ("GET", "/insert_batch_data?HasError=yes&BatchId=1", [("HasError", "yes")]),
    ("GET", "/insert_batch_data?HasError=yes&BatchId=x", [("HasError", "yes"), ("BatchId", "x")]),
    ("PUT", "/payments/1.5", [("Id", "1.5")]),
    ("PUT", "/payments/9223372036854775808", [("Id", "9223372036854775808")]),
]


@pytest.mark.parametrize(("method", "path", "fields"), UNBOUND)
def test_a_bad_value_in_path_or_query_is_refused(
    host: Host, method: str, path: str, fields: list[tuple[str, str]]
) -> None:
    body = PAYMENT if method == "PUT" else None
    answer = host.caller.as_client(method, path, body)
    status = answer.json()["ResponseStatus"]
    assert (answer.status, answer.reason) == (400, "Bad Request")
    assert status["Message"].startswith("Unable to bind to request '")
    assert [(error["FieldName"], error["Message"]) for error in status["Errors"]] == [
        (field, f"'{text}' is an Invalid value for '{field}'") for field, text in fields
    ]


BOOLEANS = [("true", 1), ("True", 1), ("TRUE", 1), ("1", 1), ("on", 1), ("false", 0), ("0", 0)]


@pytest.mark.parametrize(("text", "expected"), [*BOOLEANS, ("", 2)])
def test_booleans_of_a_query(
    host: Host, tmp_path_factory: pytest.TempPathFactory, text: str, expected: int
) -> None:
    listing = tmp_path_factory.mktemp("listing") / "batch.csv"
    listing.write_text("HasError,BatchId\nFalse,0\nTrue,1\n")
    host.sandbox.load("insert_batch_data", listing)
    answer = host.caller.as_client("GET", f"/insert_batch_data?HasError={text}")
    numbers = [row["BatchId"] for row in answer.json()]
    assert numbers == ([0, 1] if expected == 2 else [expected])


def test_what_the_database_refuses_is_a_failure_and_no_crash(host: Host, database_url: str) -> None:
    table = "ALTER TABLE sandbox.message_tone"
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(f"{table} ADD CONSTRAINT unwanted CHECK (\"Name\" <> 'no')")
        try:
            answer = host.caller.as_client("POST", "/message_tones", {**TONE, "Name": "no"})
        finally:
            connection.execute(f"{table} DROP CONSTRAINT unwanted")
    assert (answer.status, answer.reason) == (500, "CheckViolation")
    assert answer.json()["ResponseStatus"]["ErrorCode"] == answer.reason
    assert host.caller.as_client("POST", "/message_tones", TONE).status == 200
