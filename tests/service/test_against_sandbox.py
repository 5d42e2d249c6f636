"""All operations against the sandbox: both styles of host, both representations."""

from collections import Counter

import psycopg
import pytest

from connectors.sandbox import Fault, FaultKind, Faults
from connectors.sandbox.options import STYLES
from connectors.service import Credentials, Verdict
from connectors.service.encoding import read_record
from schemas.operations import Operation
from tests.sandbox.conftest import Host, running
from tests.service.outbox import (
    BY_NAME,
    CLIENT,
    PARTNER,
    WRITES,
    by_number,
    client,
    codes,
    request,
    requests,
)

ZONE = "America/New_York"
FORMS = ("csv", "json")
FORMATS = pytest.mark.parametrize("form", FORMS)
PAIRED = tuple(
    f"{style}-{operation.name}-{form}"
    for number, operation in enumerate(WRITES)
    for style, form in zip(STYLES, FORMS[:: -1 if number % 2 else 1], strict=True)
)
"""Every operation meets either style and either form once, and these two meet in each way."""


def credentials_for(operation: Operation) -> Credentials:
    return PARTNER if operation.roles == ("Partner",) else CLIENT


@pytest.mark.long(but=PAIRED)
@FORMATS
@pytest.mark.parametrize("operation", WRITES, ids=lambda operation: operation.name)
def test_every_write_is_acknowledged(host: Host, operation: Operation, form: str) -> None:
    host.sandbox.clear()
    url = host.caller.base_url
    with client(url, credentials_for(operation), format=form, zone=ZONE) as service:
        answers = by_number(service.send(requests(operation, 6)))
    assert [(answer.verdict, answer.errors) for answer in answers] == [
        (Verdict.ACKNOWLEDGED, ())
    ] * 6
    given = {answer.service_id for answer in answers}
    assert len(given) == (1 if operation.request == operation.response else 6)


# One in five leaves a POST in doubt: often enough, and not eight in a row, which ends a run.
FAULTS = (
    Fault(FaultKind.RESET, probability=0.05),
    Fault(FaultKind.RESET, probability=0.05, applied=True),
    Fault(FaultKind.TRUNCATED_BODY, probability=0.05),
    Fault(FaultKind.WRONG_ECHO, probability=0.1),
    Fault(FaultKind.STATUS, probability=0.05, status=500, applied=True),
    Fault(FaultKind.STATUS, probability=0.1, status=503, retry_after=0),
    Fault(FaultKind.STATUS, probability=0.1, status=429, retry_after=0),
)


@pytest.mark.long
@FORMATS
@pytest.mark.parametrize("operation", [BY_NAME["EditPayment"], BY_NAME["AddMessageTone"]])
def test_what_is_stored_agrees_with_every_verdict(
    sandbox_database: str, operation: Operation, form: str
) -> None:
    """A host with faults of every kind, and its own tables as the ledger of effects."""
    sent = requests(operation, 150)
    column = "Id" if operation.keyed else "Name"
    with (
        running(sandbox_database, faults=Faults(faults=FAULTS, seed=5)) as host,
        client(host.caller.base_url, format=form, attempts=20, breaker=1000) as service,
    ):
        answers = by_number(service.send(sent))
    with psycopg.connect(sandbox_database) as connection:
        rows = connection.execute(f'SELECT "{column}" FROM sandbox.{operation.request}').fetchall()
    stored = Counter(str(value) for (value,) in rows)
    assert service.stopped is None
    for made, answer in zip(sent, answers, strict=True):
        times = stored[str(read_record(made.jsondata)[column])]
        assert times <= 1, answer
        if answer.verdict in (Verdict.ACKNOWLEDGED, Verdict.DIFFERS):
            assert times == 1, answer
        else:
            assert (answer.verdict, operation.keyed) == (Verdict.IN_DOUBT, False), answer
    assert {answer.verdict for answer in answers} == {
        Verdict.ACKNOWLEDGED,
        Verdict.DIFFERS,
        *([] if operation.keyed else [Verdict.IN_DOUBT]),
    }


@FORMATS
def test_a_record_the_service_refuses(host: Host, form: str) -> None:
    """One refused row of three, with the service's own field errors."""
    host.sandbox.clear()
    sent = [
        request("ClientRegister", 1),
        request("ClientRegister", 2, {"FirstName": "  ", "EMail": "nobody"}),
        request("ClientRegister", 3, {"EMail": "A1@b.co"}),
    ]
    url = host.caller.base_url
    with client(url, PARTNER, format=form, zone=ZONE, concurrency=1) as service:
        answers = by_number(service.send(sent))
    assert [answer.verdict for answer in answers] == [
        Verdict.ACKNOWLEDGED,
        Verdict.REFUSED,
        Verdict.REFUSED,
    ]
    assert codes(answers[1]) == [("Email", "EMail"), ("NotEmpty", "FirstName")]
    assert codes(answers[2]) == [("Conflict", "")]
    assert [answer.status for answer in answers] == [200, 400, 409]
    assert "secret-word" not in repr(answers)
