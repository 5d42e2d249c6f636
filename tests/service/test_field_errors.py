"""What the service says is kept in the shape of ErrorData; a secret in it never is."""

from typing import Any

import pytest

from connectors.service import Credentials, Scheme, Verdict
from tests.service.faulty_server import FaultyServer, Reply, always, status
from tests.service.outbox import client, codes, request

TRACE = "at Host.Save(String password) secret-word-1 in C:\\\\host.cs"


def refused(*errors: dict[str, Any], **told: Any) -> Reply:
    body = {"ErrorCode": "X", "Message": "no", "StackTrace": TRACE, "Errors": [*errors], **told}
    return status(400, body={"ResponseStatus": body}, errors=[{"ErrorCode": "X"}])


def answer_to(reply: Reply, operation: str = "ClientRegister") -> Any:
    bearer = Credentials(Scheme.BEARER, secret="tok-9876")
    with FaultyServer(always(reply)) as server, client(server.url, bearer) as service:
        (answer,) = service.send([request(operation, 1)])
    return answer


def test_every_field_error_is_kept() -> None:
    answer = answer_to(
        refused(
            {
                "ErrorCode": "NotNull",
                "FieldName": "Name",
                "Message": "'Name' must not be empty.",
                "Meta": {"PropertyName": "Name", "PropertyValue": "x"},
            },
            {"ErrorCode": "Length", "FieldName": "NoSuchField", "Message": "too long"},
        )
    )
    assert answer.verdict is Verdict.REFUSED
    assert list(answer.errors) == [
        {
            "ErrorCode": "NotNull",
            "FieldName": "Name",
            "Message": "'Name' must not be empty.",
            "Meta": {
                "stage": "push",
                "status": "400",
                "PropertyName": "Name",
                "PropertyValue": "x",
            },
        },
        {
            "ErrorCode": "Length",
            "FieldName": "NoSuchField",
            "Message": "too long",
            "Meta": {"stage": "push", "status": "400"},
        },
    ]


SECRETS = [
    # what the service says
    {"ErrorCode": "Weak", "FieldName": "Password", "Message": "'secret-word-1' is weak"},
    {"ErrorCode": "Weak", "FieldName": "Unknown", "Message": "got secret-word-1 and more"},
    {"ErrorCode": "Weak", "FieldName": "secret-word-1", "Message": "that field"},
    {"ErrorCode": "secret-word-1", "FieldName": "A", "Message": "that code"},
    {"ErrorCode": "Weak", "FieldName": "A", "Message": "first\nat Host.Save(secret-word-1)"},
    {"ErrorCode": "Auth", "FieldName": "A", "Message": "the token tok-9876 is old"},
    {
        "ErrorCode": "Weak",
        "FieldName": "Password",
        "Message": "no",
        "Meta": {"PropertyValue": "a form of it that we do not know"},
    },
    {
        "ErrorCode": "Weak",
        "FieldName": "confirmPassword",
        "Message": "no",
        "Meta": {"PropertyValue": "a form of it that we do not know"},
    },
    {
        "ErrorCode": "W",
        "FieldName": "A",
        "Message": "no",
        "Meta": {"PropertyValue": "secret-word-1"},
    },
    {"ErrorCode": "W", "FieldName": "A", "Message": "no", "Meta": {"secret-word-1": "x"}},
]


@pytest.mark.parametrize("error", SECRETS, ids=range(len(SECRETS)))
def test_secrets_are_left_out(error: dict[str, Any]) -> None:
    shown = repr(answer_to(refused(error)))
    for secret in ("secret-word-1", "tok-9876", "that we do not know", "host.cs", "StackTrace"):
        assert secret not in shown


def test_a_secret_in_the_message_of_the_status() -> None:
    reply = status(409, body={"ResponseStatus": {"ErrorCode": "C", "Message": "has secret-word-1"}},
                   error_code="C")  # fmt: skip
    answer = answer_to(reply)
    assert codes(answer) == [("C", "")]
    assert answer.errors[0]["Message"] == "has ***"


def test_a_secret_inside_a_differing_echo() -> None:
    reply = Reply(body={"Id": 5, "Email": "secret-word-1", "FirstName": "A", "LastName": "B"})
    answer = answer_to(reply)
    assert (answer.verdict, answer.service_id) == (Verdict.DIFFERS, "5")
    assert "secret-word-1" not in repr(answer)


def test_a_short_secret_does_not_tear_words_apart() -> None:
    reply = refused({"ErrorCode": "Weak", "FieldName": "A", "Message": "a band: 'a' is weak"})
    with FaultyServer(always(reply)) as server, client(server.url) as service:
        (answer,) = service.send([request("ClientRegister", 1, {"Password": "a"})])
    assert answer.errors[0]["Message"] == "*** band: '***' is weak"


def test_a_secret_that_another_text_begins_is_hidden_whole() -> None:
    """ClientRegister has secrets, so that all of its texts are hidden."""
    reply = refused({"ErrorCode": "Weak", "FieldName": "A", "Message": "'secret-word-1' is weak"})
    with FaultyServer(always(reply)) as server, client(server.url) as service:
        changed = {"FirstName": "secret", "Password": "secret-word-1"}
        (answer,) = service.send([request("ClientRegister", 1, changed)])
    assert answer.errors[0]["Message"] == "'***' is weak"


def test_what_is_said_at_length_is_cut() -> None:
    error = {"ErrorCode": "E", "FieldName": "A", "Message": "m" * 10_000}
    answer = answer_to(refused(*[error] * 200))
    assert len(answer.errors) == 50
    assert len(answer.errors[0]["Message"]) == 500


UNSAID = [
    # answer, code
    (Reply(404, (("Content-Type", "text/plain"),), "404"), "Refused"),
    (Reply(413, (("Content-Type", "text/html"),), "<h1>too large</h1>"), "Refused"),
    (Reply(400, body={"ResponseStatus": "text"}), "Refused"),
    (Reply(400, body={"ResponseStatus": {"Errors": "text"}}), "Refused"),
    (Reply(400, body={"ResponseStatus": {"Errors": [None, 1]}}), "Refused"),
    (Reply(400, (("Content-Type", "text/csv"),), "ResponseStatus\r\n{{{\r\n"), "Refused"),
    (
        Reply(
            400,
            (("Content-Type", "text/csv"),),
            'Id,ResponseStatus\r\n,"{ErrorCode:NotNull,Message:no}"\r\n',
        ),
        "NotNull",
    ),
]


@pytest.mark.parametrize(("reply", "code"), UNSAID, ids=range(len(UNSAID)))
def test_a_refusal_that_says_little(reply: Reply, code: str) -> None:
    answer = answer_to(reply, "EditPayment")
    assert (answer.verdict, codes(answer)) == (Verdict.REFUSED, [(code, "")])


UNCODED = [
    # status of an answer whose field errors have no code, verdict of a record that is only added
    (400, Verdict.REFUSED, "Refused"),
    (408, Verdict.IN_DOUBT, "InDoubt"),
    (500, Verdict.IN_DOUBT, "InDoubt"),
    (503, Verdict.IN_DOUBT, "InDoubt"),
]


@pytest.mark.parametrize(("http_status", "verdict", "code"), UNCODED)
def test_field_errors_without_a_code(http_status: int, verdict: Verdict, code: str) -> None:
    told = {"Errors": [{"FieldName": "Name", "Message": "no"}]}
    answer = answer_to(status(http_status, body={"ResponseStatus": told}), "AddMessageTone")
    assert (answer.verdict, codes(answer)) == (verdict, [(code, "Name")])
