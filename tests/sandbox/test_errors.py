"""Failures in every representation, their fields, and what they never tell."""

import psycopg
import pytest

from connectors.sandbox.options import STYLES
from connectors.sandbox.validation import display_name, is_mail_address
from tests.sandbox.caller import basic
from tests.sandbox.conftest import Host
from tests.sandbox.records import PAYMENT, PAYMENT_HEADER, REGISTRATION

TONE_ERROR = (
    "{ErrorCode:NotNull,Message:'Name' must not be empty.,Errors:[{ErrorCode:NotNull,"
    "FieldName:Name,Message:'Name' must not be empty.,Meta:{PropertyName:Name}}]}"
)
NUMBER_ERROR = (
    "{ErrorCode:SerializationException,Message:Unable to bind to request '%s',"
    "Errors:[{ErrorCode:SerializationException,FieldName:%s,"
    "Message:'abc' is an Invalid value for '%s'}]}"
)
DESERIALIZE_ERROR = (
    "{ErrorCode:SerializationException,Message:"
    "Could not deserialize 'application/json' request using 'AddMessageTone',Errors:[]}"
)
IN_CSV = [
    # method, path, body, user, header, cells before the error, error
    (
        "POST", "/message_tones", {"TenantsId": 1, "AvatarsId": 2}, "client",
        "TenantsId,AvatarsId,Name,ResponseStatus", 3, TONE_ERROR,
    ),
    (
        "GET", "/insert_batch_data?BatchId=abc", None, "client",
        "ResponseStatus", 0, NUMBER_ERROR % ("ListInsertBatchData", "BatchId", "BatchId"),
    ),
    (
        "PUT", "/payments/abc", PAYMENT, "client",
        "ResponseStatus", 0, NUMBER_ERROR % ("EditPayment", "Id", "Id"),
    ),
    ("POST", "/message_tones", "nonsense", "client", "ResponseStatus", 0, DESERIALIZE_ERROR),
]  # fmt: skip


@pytest.mark.parametrize(
    ("method", "path", "body", "user", "header", "cells", "error"),
    IN_CSV,
    ids=lambda v: str(v)[:25],
)
def test_in_csv(
    pascal: Host,
    method: str,
    path: str,
    body: object,
    user: str,
    header: str,
    cells: int,
    error: str,
) -> None:
    answer = pascal.caller.as_client(method, path, body, "text/csv", user=user)
    assert answer.body == f'{header}\r\n{"," * cells}"{error}"\r\n'
    assert (answer.status, answer.headers["content-type"]) == (400, "text/csv")
    assert "content-disposition" not in answer.headers


def test_a_registration_has_no_status_column(pascal: Host) -> None:
    body = {**REGISTRATION, "EMail": "bad"}
    answer = pascal.caller.as_client("POST", "/clientregister", body, "text/csv", user="partner")
    header, row, _ = answer.body.split("\r\n")
    assert header == "ResponseStatus"
    assert row.startswith('"{ErrorCode:Email,')


def test_a_wrong_password_in_csv(pascal: Host) -> None:
    headers = {"Accept": "text/csv", "Authorization": basic("client", "no")}
    answer = pascal.caller.send("PUT", "/payments/1", "{}", headers)
    told = "{ErrorCode:Unauthorized,Message:Invalid UserName or Password,Errors:[]}"
    assert answer.body == f'ResponseStatus\r\n"{told}"\r\n'


def test_an_exception_inside_names_the_file(host: Host) -> None:
    """405 on a predefined path comes from inside the service, so all columns stand before it."""
    answer = host.caller.as_client("POST", "/csv/reply/EditPayment", PAYMENT, "text/csv")
    assert answer.reason == "NotNull", "a body under /csv/reply is CSV, whatever it says it is"
    row = ",".join(str(value) for value in PAYMENT.values())
    thrown = host.caller.as_client(
        "POST", "/csv/reply/EditPayment", f"{PAYMENT_HEADER}\r\n{row}\r\n", "text/csv", "text/csv"
    )
    assert thrown.status == 405
    assert thrown.headers["content-disposition"] == "attachment;filename=EditPayment.csv"
    assert thrown.body.startswith(
        f'{PAYMENT_HEADER},ResponseStatus\r\n{"," * 9}"{{ErrorCode:NotImpl'
    )


def test_jsv_error(pascal: Host) -> None:
    body = {"TenantsId": 1, "AvatarsId": 2}
    answer = pascal.caller.as_client("POST", "/message_tones", body, "application/jsv")
    assert answer.body == f"{{ResponseStatus:{TONE_ERROR}}}"


def test_every_rule_that_fails_is_told_in_order(pascal: Host) -> None:
    body: dict[str, object] = {
        "EMail": "",
        "FirstName": None,
        "LastName": "\t ",
        "Password": "",
        "Roles": [],
    }
    answer = pascal.caller.as_client("POST", "/clientregister", body, user="partner")
    assert answer.codes == [
        ("Email", "EMail"),
        ("NotNull", "FirstName"),
        ("NotEmpty", "FirstName"),
        ("NotEmpty", "LastName"),
        ("NotEmpty", "Password"),
        ("NotNull", "Company"),
    ]
    assert answer.reason == "Email"


def test_a_secret_is_never_repeated(pascal: Host) -> None:
    body = {**REGISTRATION, "Password": "   "}
    answer = pascal.caller.as_client("POST", "/clientregister", body, user="partner")
    (error,) = answer.json()["ResponseStatus"]["Errors"]
    assert (error["FieldName"], error["Meta"]) == ("Password", {"PropertyName": "Password"})


def test_camel_case_changes_names_and_no_data(camel: Host) -> None:
    body = {**REGISTRATION, "EMail": "bad", "FirstName": ""}
    answer = camel.caller.as_client("POST", "/clientregister", body, user="partner")
    assert answer.json() == {
        "responseStatus": {
            "errorCode": "Email",
            "message": "'E Mail' is not a valid email address.",
            "errors": [
                {
                    "errorCode": "Email",
                    "fieldName": "EMail",
                    "message": "'E Mail' is not a valid email address.",
                    "meta": {"PropertyName": "E Mail", "PropertyValue": "bad"},
                },
                {
                    "errorCode": "NotEmpty",
                    "fieldName": "FirstName",
                    "message": "'First Name' must not be empty.",
                    "meta": {"PropertyName": "First Name", "PropertyValue": ""},
                },
            ],
        }
    }


ADDRESSES = [
    # text, accepted by pascal-5, by camel-core
    ("a@b.co", True, True),
    ("first.last+tag@mail.example.org", True, True),
    ("a@b", False, True),
    ("", False, False),
    ("a", False, False),
    ("@b.co", False, False),
    ("a@", False, False),
    ("a@b@c.de", False, False),
    ("a b@c.de", False, True),
    ("a..b@c.de", False, True),
]


@pytest.mark.parametrize(("text", "classic", "newer"), ADDRESSES)
def test_mail_addresses(text: str, classic: bool, newer: bool) -> None:
    accepted = [is_mail_address(style, text) for style in STYLES.values()]
    assert accepted == [classic, newer]


@pytest.mark.parametrize(
    ("name", "shown"),
    [("TenantsId", "Tenants Id"), ("EMail", "E Mail"), ("Jsondata", "Jsondata"), ("Id", "Id")],
)
def test_display_name(name: str, shown: str) -> None:
    assert display_name(name) == shown


BROKEN = [
    # method, target, Authorization, body
    ("POST", "/auth/credentials", "", '{"UserName":"unseen","Password":"unsaid"}'),
    ("POST", "/api/Authenticate", "", '{"UserName":"unseen","Password":"unsaid"}'),
    ("POST", "/message_tones", basic("unseen", "unsaid"), "{}"),
]


@pytest.mark.parametrize(("method", "target", "authorization", "body"), BROKEN)
def test_what_breaks_inside_is_an_answer_and_tells_no_secret(
    pascal: Host,
    database_url: str,
    caplog: pytest.LogCaptureFixture,
    method: str,
    target: str,
    authorization: str,
    body: str,
) -> None:
    headers = {"Accept": "application/json", "Content-Type": "application/json"}
    if authorization:
        headers["Authorization"] = authorization
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("ALTER TABLE sandbox.user_account RENAME TO elsewhere")
        try:
            answer = pascal.caller.send(method, target, body, headers)
        finally:
            connection.execute("ALTER TABLE sandbox.elsewhere RENAME TO user_account")
    assert (answer.status, answer.reason) == (500, "UndefinedTable")
    assert answer.json()["ResponseStatus"]["Message"] == "Internal error"
    assert f"{method} {target} failed: UndefinedTable" in caplog.text
    assert "unseen" not in caplog.text
    assert "unsaid" not in caplog.text
