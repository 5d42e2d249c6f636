"""The framework's public Python client against the sandbox, typed classes in and out.

It reads the names of camel-core as they come. On a pascal-5 host it reads only members that are
called as declared, and of a failure no more than the status.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any, NamedTuple

import pytest

NOTICE = "servicestack is not installed: pip install --no-deps -c constraints.txt servicestack"
pytest.importorskip("servicestack", reason=NOTICE)

from servicestack import (  # type: ignore[import-untyped]
    Authenticate,
    JsonServiceClient,
    ResponseStatus,
    WebServiceException,
)
from servicestack.log import Log  # type: ignore[import-untyped]

from schemas.operations import OPERATIONS
from schemas.tables import TABLES
from tests.sandbox.conftest import NOW, Host, running
from tests.sandbox.public.dtos import AS_DECLARED, CAMEL, Names, Requests
from tests.sandbox.records import PAYMENT, RATE, REGISTRATION, TONE

PAID_AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone(timedelta(hours=2)))
AVATARS = "TenantsId,Name\r\n1,Ann\r\n1,Bob & Co\r\n2,Ann\r\n"


class Side(NamedTuple):
    """A host and the client's classes for it."""

    host: Host
    requests: Requests

    @contextmanager
    def client(self, user: str | None = "partner", base_path: str = "api") -> Iterator[Any]:
        made = JsonServiceClient(self.host.caller.base_url)
        made._session.trust_env = False
        made.set_base_path(base_path)
        if user:
            made.set_credentials(user, "p@ss")
        try:
            yield made
        finally:
            made._session.close()

    def read(self, answer: Any, field: str) -> Any:
        return getattr(answer, self.requests.member(field))

    def made(self, operation: str, record: dict[str, Any]) -> Any:
        return getattr(self.requests, operation)(**self.requests.given(record))


@pytest.fixture(autouse=True)
def silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Log, "levels", [])


SIDES = {"pascal": AS_DECLARED, "camel": CAMEL}


@pytest.fixture(params=SIDES)
def side(request: pytest.FixtureRequest) -> Side:
    """Each style of host with the names that can be read from it."""
    host: Host = request.getfixturevalue(request.param)
    host.sandbox.clear()
    return Side(host, Requests(SIDES[request.param]))


@pytest.fixture
def current(camel: Host) -> Side:
    camel.sandbox.clear()
    return Side(camel, Requests(CAMEL))


@pytest.fixture
def classic(pascal: Host) -> Side:
    pascal.sandbox.clear()
    return Side(pascal, Requests(AS_DECLARED))


def refused(call: Callable[[], object]) -> WebServiceException:
    with pytest.raises(WebServiceException) as caught:
        call()
    return caught.value


PATHS = ["api", ""]  # The client's two ways: /api/{Op} and /json/reply/{Op}.


@pytest.mark.parametrize("base_path", PATHS)
def test_create(side: Side, base_path: str) -> None:
    with side.client(base_path=base_path) as client:
        answer = client.post(side.made("AddMessageTone", TONE))
    assert {name: side.read(answer, name) for name in TONE} == TONE


@pytest.mark.parametrize("base_path", PATHS)
def test_edit_and_read_the_typed_echo(side: Side, base_path: str) -> None:
    paid_at = PAID_AT.astimezone(UTC)
    payment = {**PAYMENT, "Id": 2**53 + 1, "PaymentDate": paid_at, "PaidAmount": 0.1}
    with side.client(base_path=base_path) as client:
        answer = client.put(side.made("EditPayment", payment))
    assert {name: side.read(answer, name) for name in payment} == payment
    assert isinstance(side.read(answer, "PaymentDate"), datetime)


def test_edit_by_the_documented_path(side: Side) -> None:
    rate = {**RATE, "Id": 99, "EffectiveDate": datetime(2026, 1, 2, tzinfo=UTC)}
    request = side.made("EditCurrencyRate", rate)
    with side.client() as client:
        answer = client.put_url("/currency_rates/3", request)
    assert side.read(answer, "Id") == 3, "the path beats the body"
    assert side.read(answer, "EffectiveDate") == rate["EffectiveDate"]
    assert side.read(answer, "ExchangeRate") == rate["ExchangeRate"]


def test_an_offset_is_read_back_from_a_current_host_alone(side: Side) -> None:
    payment = {**PAYMENT, "PaymentDate": PAID_AT}
    with side.client() as client:
        answer = client.put(side.made("EditPayment", payment))
    read = side.read(answer, "PaymentDate")
    if side.host.sandbox.options.style == "camel-core":
        assert (read, read.utcoffset()) == (PAID_AT, timedelta(hours=2))
    else:
        # The classic /Date(...)/ counts the milliseconds of the wall clock, and the client takes
        # them for the instant: two hours late here.
        assert read == PAID_AT.replace(tzinfo=UTC)


@pytest.mark.long(but=("camel",))
def test_list_with_a_filter(side: Side, tmp_path: Path) -> None:
    listing = tmp_path / "avatars.csv"
    listing.write_text(AVATARS, newline="")
    side.host.sandbox.load("avatar", listing)
    with side.client() as client:
        everything = client.get(side.made("ListAvatars", {}))
        one = client.get(side.made("ListAvatars", {"Name": "Bob & Co", "TenantsId": 1}))
    assert [side.read(avatar, "TenantsId") for avatar in everything] == [1, 1, 2]
    assert [side.read(avatar, "Name") for avatar in one] == ["Bob & Co"]


def test_an_empty_list(side: Side) -> None:
    with side.client() as client:
        assert client.get(side.made("ListInsertBatchData", {})) == []


def test_the_account_and_the_form_reply_are_records_of_their_own(side: Side) -> None:
    registration = {**REGISTRATION, "Company": "B & Co"}
    reply = {"CommsGuid": "g", "Comments": "fine", "CampaignActionsRequestsId": 7}
    with side.client() as client:
        account = client.post(side.made("ClientRegister", registration))
        answer = client.post(side.made("SaveCampaignActionClientForm", reply))
    assert side.read(account, "Email") == REGISTRATION["EMail"]
    assert side.read(account, "Roles") == REGISTRATION["Roles"]
    assert side.read(account, "CreatedDate") == NOW
    assert side.read(account, "PasswordHash") is None
    response = side.read(answer, "CampaignActionsFormResponses")
    assert (side.read(response, "Id"), side.read(response, "FormMetaComments")) == (1, "fine")


@pytest.mark.long(but=("pascal-", "camel-api", "camel-"))
@pytest.mark.parametrize("base_path", PATHS)
def test_a_batch(side: Side, base_path: str) -> None:
    tones = [side.made("AddMessageTone", {**TONE, "Name": name}) for name in "xyz"]
    with side.client(base_path=base_path) as client:
        completed = []
        client.response_filter = lambda answer: completed.append(
            answer.headers["X-AutoBatch-Completed"]
        )
        answers = client.send_all(tones)
    assert [side.read(answer, "Name") for answer in answers] == list("xyz")
    assert completed == ["3"]


@pytest.mark.parametrize("base_path", PATHS)
def test_a_batch_that_nobody_waits_for(side: Side, base_path: str) -> None:
    replies = [{"CommsGuid": text} for text in "ab"]
    requests = [side.made("SaveCampaignActionClientForm", reply) for reply in replies]
    with side.client(base_path=base_path) as client:
        assert client.send_all_oneway(requests) is None
        answer = client.post(requests[0])
    assert side.read(side.read(answer, "CampaignActionsFormResponses"), "Id") == 3


def test_a_batch_stops_at_the_invalid_record(current: Side) -> None:
    tones = [current.made("AddMessageTone", record) for record in (TONE, TONE, {"TenantsId": 1})]
    with current.client() as client:
        failure = refused(lambda: client.send_all(tones))
    status: ResponseStatus = failure.response_status
    assert (failure.status_code, status.error_code) == (400, "NotNull")
    assert status.meta == {"AutoBatchIndex": "2"}
    assert [error.field_name for error in status.errors] == ["AvatarsId", "Name"]


@pytest.mark.long
def test_a_batch_of_edits_cannot_be_posted(current: Side) -> None:
    with current.client() as client:
        failure = refused(lambda: client.send_all([current.made("EditPayment", PAYMENT)]))
    assert (failure.status_code, failure.response_status.error_code) == (
        405,
        "NotImplementedException",
    )


def test_a_failed_validation_names_every_field(current: Side) -> None:
    with current.client() as client:
        failure = refused(
            lambda: client.post(current.made("ClientRegister", {"EMail": "bad", "FirstName": " "}))
        )
    assert (failure.status_code, failure.status_description) == (400, "Email")
    assert [(error.error_code, error.field_name) for error in failure.response_status.errors] == [
        ("Email", "EMail"),
        ("NotEmpty", "FirstName"),
        ("NotNull", "LastName"),
        ("NotEmpty", "LastName"),
        ("NotNull", "Password"),
        ("NotEmpty", "Password"),
        ("NotNull", "Company"),
    ]


def test_a_conflict(current: Side) -> None:
    with current.client() as client:
        request = current.made("ClientRegister", REGISTRATION)
        client.post(request)
        failure = refused(lambda: client.post(request))
    assert (failure.status_code, failure.response_status.error_code) == (409, "Conflict")


def test_of_a_pascal_case_failure_it_reads_the_status_alone(classic: Side) -> None:
    with classic.client() as client:
        failure = refused(lambda: client.post(classic.made("AddMessageTone", {})))
    assert (failure.status_code, failure.status_description) == (400, "NotNull")
    assert failure.response_status is None


def test_of_a_pascal_case_answer_it_reads_no_camel_case_member(pascal: Host) -> None:
    side = Side(pascal, Requests(CAMEL))
    with side.client() as client:
        answer = client.post(side.made("AddMessageTone", TONE))
        asked = client.post(side.made("AddMessageTone", TONE), args={"jsconfig": "eccn"})
    assert answer.tenants_id is None
    assert asked.tenants_id == TONE["TenantsId"], "jsconfig turns the names of one answer"


REFUSALS = [
    # user, status, reason, error code the client makes of an empty body
    (None, 401, "Unauthorized", "401"),
    ("nobody", 403, "Invalid Role", "403"),
]


@pytest.mark.parametrize(("user", "status", "reason", "code"), REFUSALS)
def test_refusals(side: Side, user: str | None, status: int, reason: str, code: str) -> None:
    with side.client(user) as client:
        failure = refused(lambda: client.get(side.made("ListAvatars", {})))
    assert (failure.status_code, failure.status_description) == (status, reason)
    assert failure.response_status.error_code == code


def test_a_wrong_password(current: Side) -> None:
    with current.client() as client:
        client.set_credentials("client", "no")
        failure = refused(lambda: client.get(current.made("ListAvatars", {})))
    assert (failure.status_code, failure.response_status.message) == (
        401,
        "Invalid Username or Password",
    )


@pytest.mark.parametrize("base_path", PATHS)
def test_sign_in_use_the_session_sign_out(current: Side, base_path: str) -> None:
    with current.client(None, base_path) as client:
        signed = client.post(
            Authenticate(provider="credentials", user_name="client", password="p@ss")
        )
        assert (signed.user_name, client._session.cookies["ss-id"]) == ("client", signed.session_id)
        assert set(client._session.cookies.keys()) == {"ss-id", "ss-pid", "ss-opt", "X-UAId"}
        assert client.get(current.made("ListAvatars", {})) == []
        client.post(Authenticate(provider="logout"))
        failure = refused(lambda: client.get(current.made("ListAvatars", {})))
    assert failure.status_code == 401


def test_a_bearer_token(current: Side) -> None:
    with current.client(None) as client:
        signed = client.post(Authenticate(user_name="client", password="p@ss"))
    with current.client(None) as client:
        client.set_bearer_token(signed.bearer_token)
        assert client.get(current.made("ListAvatars", {})) == []


def test_an_api_key(current: Side) -> None:
    with current.client(None) as client:
        client.set_bearer_token("key-of-client")
        assert client.get(current.made("ListAvatars", {})) == []


@pytest.mark.parametrize("names", [CAMEL, AS_DECLARED], ids=["camel", "as declared"])
def test_every_operation_has_a_class_of_all_its_fields(names: Names) -> None:
    requests = Requests(names)
    for operation in OPERATIONS:
        made = getattr(requests, operation.name)
        table = TABLES[operation.request]
        assert list(made.__dataclass_fields__) == [
            requests.member(field.name) for field in table.delivered
        ]


def test_a_renamed_operation_is_found_by_the_class_of_that_name(database_url: str) -> None:
    names = {"AddMessageTone": "CreateMessageTone"}
    with running(database_url, style="camel-core", operation_names=names) as host:
        side = Side(host, Requests(CAMEL))
        with side.client() as client:
            missing = refused(lambda: client.post(side.made("AddMessageTone", TONE)))
            side.requests.AddMessageTone.__name__ = "CreateMessageTone"
            answer = client.post(side.made("AddMessageTone", TONE))
    assert (missing.status_code, answer.name) == (404, "x")
