"""What the service says is kept in the shape of ErrorData; a secret in it never is."""

import html
import json
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, quote_plus
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors.service import Credentials, Request, Scheme, Verdict
from connectors.service.classify import COMPLETED, Classifier
from connectors.service.connection import Reply as Answered
from connectors.service.encoding import CSV, JSON, body, read_record
from connectors.service.error_entries import Redaction
from schemas.derived import jsv
from schemas.tables import PAYMENT
from tests.examples import examples
from tests.service.faulty_server import FaultyServer, Reply, always, status
from tests.service.outbox import client, codes, request

UTC = ZoneInfo("UTC")
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
        operation="AddMessageTone",
        reply=refused(
            {
                "ErrorCode": "NotNull",
                "FieldName": "Name",
                "Message": "'Name' must not be empty.",
                "Meta": {"PropertyName": "Name", "PropertyValue": "x"},
            },
            {"ErrorCode": "Length", "FieldName": "NoSuchField", "Message": "too long"},
        ),
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
    reply = status(409, body={"ResponseStatus": {"ErrorCode": "C", "Message": "has tok-9876"}},
                   error_code="C")  # fmt: skip
    answer = answer_to(reply, "EditPayment")
    assert codes(answer) == [("C", "")]
    assert answer.errors[0]["Message"] == "has ***"


def test_of_a_record_with_secrets_codes_and_fields_are_kept() -> None:
    """NotNull and the like say nothing of a value, so their words are ours; all others may."""
    weak = {"ErrorCode": "Weak", "FieldName": "Password", "Message": "too like your name, A"}
    empty = {"ErrorCode": "NotEmpty", "FieldName": "FirstName", "Message": "secret-word-1",
             "Meta": {"PropertyName": "First Name", "PropertyValue": "secret-word-1"}}  # fmt: skip
    hidden = "What the service says is not shown: a record of this kind may hold a secret."
    meta = {"stage": "push", "status": "400"}
    assert list(answer_to(refused(weak, empty)).errors) == [
        {"ErrorCode": "Weak", "FieldName": "Password", "Message": hidden, "Meta": meta},
        {"ErrorCode": "NotEmpty", "FieldName": "FirstName",
         "Message": "'FirstName' should not be empty.", "Meta": meta},
    ]  # fmt: skip


MARKS = st.text(st.sampled_from(list("\"\\&<%,{}[]:;'/+ \n€\U0001f600")), min_size=1, max_size=4)
WRITTEN: list[Callable[[str], str]] = [
    # how a host may repeat a text
    str,
    lambda text: text.replace('"', '""'),
    lambda text: jsv.write([text]),
    json.dumps,
    lambda text: json.dumps(json.dumps(text, ensure_ascii=False)),
    html.escape,
    lambda text: html.escape(html.escape(json.dumps(text))),
    quote,
    quote_plus,
    lambda text: quote(quote(text, safe=""), safe=""),
]


@pytest.mark.parametrize("kind", [CSV, JSON])
@pytest.mark.parametrize("written", WRITTEN, ids=range(len(WRITTEN)))
@settings(max_examples=examples(10), deadline=None, derandomize=True)
@given(marks=MARKS)
def test_no_spelling_of_a_secret_is_shown(
    marks: str, written: Callable[[str], str], kind: str
) -> None:
    """The host repeats the body of the request, whole or cut, wherever it can."""
    secret = f"Tr0ub{marks}4dor"
    for name, changed in (
        ("ClientRegister", {"Password": secret, "ConfirmPassword": secret}),
        ("AddPaymentGateway", {"ServiceKey": secret}),
    ):
        made = request(name, 1, changed)
        sent = read_record(made.jsondata)
        table = made.operation.table
        text = body(kind, table, [(sent, made.jsondata)], UTC, many=False).decode()
        repeated = written(text)
        assert_hidden(Classifier(UTC, ()), made, repeated)
        assert_hidden(Classifier(UTC, ()), made, repeated[: repeated.index("Tr0ub") + 8])


@pytest.mark.parametrize("written", WRITTEN, ids=range(len(WRITTEN)))
@settings(max_examples=examples(10), deadline=None, derandomize=True)
@given(marks=MARKS)
def test_no_spelling_of_our_own_secret_is_shown(marks: str, written: Callable[[str], str]) -> None:
    secret = f"Tr0ub{marks}4dor"
    assert_hidden(Classifier(UTC, (secret,)), request("EditPayment", 1), written(secret))


def assert_hidden(judge: Classifier, made: Request, repeated: str) -> None:
    record = read_record(made.jsondata)
    error = {"ErrorCode": repeated, "FieldName": repeated, "Message": repeated,
             "Meta": {"PropertyValue": repeated, repeated: ""}}  # fmt: skip
    told = {**error, "Errors": [error]}
    shown = {**record, "Id": 7, "Name": repeated, "UserName": repeated, "Roles": [repeated]}
    answers = [
        Answered(400, {"content-type": JSON}, json.dumps({"ResponseStatus": one}).encode(), "said")
        for one in (told, {**told, "Errors": []})
    ]
    place = {"location": repeated, "content-type": repeated, COMPLETED: repeated}
    answers += [Answered(code, place, b"x", "said") for code in (200, 302, 307)]
    answers.append(Answered(200, {"content-type": JSON}, json.dumps(shown).encode(), "said"))
    for answer in answers:
        found = [judge.single(made, record, answer), *judge.batch([(made, record)], answer)]
        assert not re.search("Tr0ub|4dor", repr(found)), (answer, found)


def test_a_secret_inside_a_differing_echo() -> None:
    reply = Reply(body={"Id": 5, "Email": "secret-word-1", "FirstName": "A", "LastName": "B"})
    answer = answer_to(reply)
    assert (answer.verdict, answer.service_id) == (Verdict.DIFFERS, "5")
    assert "secret-word-1" not in repr(answer)


HIDING = [
    # our own secrets, what is said, what is shown
    (("a",), "a band: 'a' is weak", "*** band: '***' is weak"),
    (("secret", "secret-word-1"), "'secret-word-1' is weak", "'***' is weak"),
    (('pa"ss',), 'a "pa""ss" and pa&QUOT;ss', 'a "***" and ***'),
]


@pytest.mark.parametrize(("secrets", "told", "shown"), HIDING)
def test_how_much_is_hidden(secrets: tuple[str, ...], told: str, shown: str) -> None:
    assert Redaction(PAYMENT, [], secrets).text(told) == shown


def test_what_is_said_at_length_is_cut() -> None:
    error = {"ErrorCode": "E", "FieldName": "A", "Message": "m" * 10_000}
    answer = answer_to(refused(*[error] * 200), "EditPayment")
    assert len(answer.errors) == 50
    assert len(answer.errors[0]["Message"]) == 500


UNSAID = [
    # answer, code
    (Reply(404, (("Content-Type", "text/plain"),), "404"), "Unsent"),
    (Reply(413, (("Content-Type", "text/html"),), "<h1>too large</h1>"), "Unsent"),
    (Reply(400, body={"ResponseStatus": "text"}), "Unsent"),
    (Reply(400, body={"ResponseStatus": {"Errors": "text"}}), "Unsent"),
    (Reply(400, body={"ResponseStatus": {"Errors": [None, 1]}}), "Unsent"),
    (Reply(400, (("Content-Type", "text/csv"),), "ResponseStatus\r\n{{{\r\n"), "Unsent"),
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
    """Without a code and a field it is nothing that is said of the row."""
    answer = answer_to(reply, "EditPayment")
    verdict = Verdict.UNSENT if code == "Unsent" else Verdict.REFUSED
    assert (answer.verdict, codes(answer)) == (verdict, [(code, "")])


UNCODED = [
    # status of an answer whose field errors have no code, verdict of a record that is only added
    (400, Verdict.REFUSED, "Refused"),
    (403, Verdict.REFUSED, "Refused"),
    (408, Verdict.IN_DOUBT, "InDoubt"),
    (500, Verdict.IN_DOUBT, "InDoubt"),
    (503, Verdict.IN_DOUBT, "InDoubt"),
]


@pytest.mark.parametrize(("http_status", "verdict", "code"), UNCODED)
def test_field_errors_without_a_code(http_status: int, verdict: Verdict, code: str) -> None:
    told = {"Errors": [{"FieldName": "Name", "Message": "no"}]}
    answer = answer_to(status(http_status, body={"ResponseStatus": told}), "AddMessageTone")
    assert (answer.verdict, codes(answer)) == (verdict, [(code, "Name")])
