"""Whatever the service echoes for a valid record is that record, and nothing else is."""

from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from connectors.service import Verdict
from connectors.service.classify import Classifier
from connectors.service.connection import Reply
from connectors.service.encoding import CSV, JSON, body, read_record, target
from schemas.field import Rule
from schemas.operations import Operation
from tests.examples import examples
from tests.sandbox.caller import basic
from tests.sandbox.conftest import Host
from tests.service.outbox import CLIENT, PARTNER, WRITES, by_number, client, of_record
from tests.service.test_against_sandbox import FORMATS, PAIRED, ZONE, credentials_for
from tests.service.valid_records import comparable_fields, number_duplicates, records, values

IN_PAIRS = pytest.mark.long(but=PAIRED)
OPERATIONS = pytest.mark.parametrize("operation", WRITES, ids=lambda operation: operation.name)


def thorough(tried: int) -> settings:
    return settings(
        max_examples=tried,
        deadline=None,
        derandomize=True,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )


def addressed(operation: Operation, values: dict[str, Any], number: int) -> dict[str, Any]:
    """The record under a key of its own."""
    if "EMail" in operation.table.by_name:
        return {**values, "EMail": f"a{number}@b.co"}
    return values


@IN_PAIRS
@FORMATS
@OPERATIONS
@thorough(examples(40, 2))
@given(data=st.data())
def test_every_valid_record_comes_back(
    host: Host, operation: Operation, form: str, data: st.DataObject
) -> None:
    host.sandbox.clear()
    drawn = data.draw(st.lists(records(operation.table), min_size=1, max_size=30))
    sent = [
        of_record(operation, number, addressed(operation, values, number))
        for number, values in enumerate(drawn)
    ]
    url = host.caller.base_url
    with client(url, credentials_for(operation), format=form, zone=ZONE) as service:
        answers = by_number(service.send(sent))
    failed = [
        (answer, request.jsondata)
        for answer, request in zip(answers, sent, strict=True)
        if answer.verdict is not Verdict.ACKNOWLEDGED
    ]
    assert failed == []


@pytest.mark.long(
    but=(
        "pascal-5-EditCurrencyRate-csv",
        "pascal-5-EditInvoiceFile-json",
        "camel-core-EditPayment-csv",
        "camel-core-AddActionDocument-csv",
    )
)
@IN_PAIRS
@FORMATS
@OPERATIONS
@thorough(examples(80, 4))
@given(data=st.data())
def test_no_other_record_is_taken_for_it(
    host: Host, operation: Operation, form: str, data: st.DataObject
) -> None:
    host.sandbox.clear()
    own = addressed(operation, data.draw(records(operation.table)), 1)
    field = data.draw(st.sampled_from(comparable_fields(operation)))
    if field.name in ("Id", "EMail"):
        other = (
            own[field.name] + (1 if own[field.name] in (0, 1) else -1)
            if (field.name == "Id")
            else "other@b.co"
        )
    else:
        other = data.draw(
            values(field).filter(lambda value: number_duplicates(field, own[field.name], value))
        )
    # What another record has that was not sent, the service may know from elsewhere.
    assume(operation.request == operation.response or own[field.name] is not None)
    assume(Rule.NOT_EMPTY not in field.rules or str(other).strip())
    changed = {**own, field.name: other}
    kind = CSV if form == "csv" else JSON
    zone = ZoneInfo(ZONE)
    wanted, sent = of_record(operation, 1, own), of_record(operation, 1, changed)
    sent_record = read_record(sent.jsondata)
    told = host.caller.send(
        operation.method,
        target(operation, sent_record),
        body(kind, operation.table, [(sent_record, sent.jsondata)], zone, many=False),
        {
            "Accept": kind,
            "Content-Type": kind,
            "Authorization": basic(
                "partner" if credentials_for(operation) is PARTNER else CLIENT.user or ""
            ),
        },
    )
    assert told.status == 200, told
    reply = Reply(200, told.headers, told.body.encode(), "Content-Length read")
    judge = Classifier(zone, ())
    assert judge.single(sent, sent_record, reply).verdict is Verdict.ACKNOWLEDGED
    judged = judge.single(wanted, read_record(wanted.jsondata), reply)
    assert judged.verdict is Verdict.DIFFERS
    assert [error["FieldName"] for error in judged.errors] == [field.name]
