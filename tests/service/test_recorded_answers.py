"""Every answer that was recorded from a host is taken for what it says."""
# ruff: noqa: DTZ001 -- wall clocks; their offsets stand beside them.

from datetime import datetime
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from connectors.errors import ServiceUnusable
from connectors.service import Verdict
from connectors.service.classify import ClassifiedResponse, Classifier
from connectors.service.encoding import read_record
from tests.service.faulty_server import FaultyServer, Reply, always
from tests.service.outbox import BY_NAME, client, request
from tests.service.transcripts import EXCHANGES, recorded_reply

A, R, DIFFERS = Verdict.ACKNOWLEDGED, Verdict.REFUSED, Verdict.DIFFERS
PAID = request("EditPayment", 12)
RATE = request(
    "EditCurrencyRate",
    3,
    dict.fromkeys(("TenantsId", "FromCurrenciesId", "ToCurrenciesId"))
    | {"EffectiveDate": (datetime(2026, 1, 2, 3, 4, 5), 120)},
)
NAMED, NAMELESS, SECOND = (request("AddMessageTone", 1, {"Name": name}) for name in ("x", "", "y"))
QUOTED = request("AddMessageTone", 1, {"Name": "y,z"})
ACCOUNT = request("ClientRegister", 1, {"EMail": "a@b.co"})
FILES = {"CampaignActionFiles": '[{"Name":"f,1","FileSize":"3"}]', "Comments": 'a, "b"'}
FORM = request("SaveCampaignActionClientForm", 1, FILES)
NOT_NULL = [("NotNull", field.name) for field in PAID.operation.table.fields[2:]]
SENT: list[tuple[str, list[Any], list[Verdict | None], list[tuple[str, str]]]] = [
    # exchange, what was sent, verdicts, errors of the last
    ("pay-json-json", [PAID], [A], []),
    ("pay-json-csv", [PAID], [A], []),
    ("pay-camel-strings", [PAID], [A], []),
    ("pay-jsconfig", [PAID], [A], []),
    ("pay-accept-any", [PAID], [A], []),
    ("pay-missing-json", [PAID], [R], NOT_NULL),
    ("pay-badid", [PAID], [R], [("SerializationException", "Id")]),
    ("pay-wrongverb", [PAID], [R], [("Refused", "")]),
    ("rate-offset-json", [RATE], [A], []),
    ("rate-offset-csv", [RATE], [A], []),
    ("tone-ok", [NAMED], [A], []),
    ("tone-emptyname-json", [NAMELESS], [A], []),
    ("tone-csv-bare-empty", [NAMELESS], [R], [("NotNull", "Name")]),
    ("batch-json-ok", [NAMED, SECOND], [A, A], []),
    ("batch-csv-ok", [NAMED, QUOTED], [A, A], []),
    ("reg-norole", [ACCOUNT], [None], [("Unsent", "")]),
    ("reg-empty", [ACCOUNT], [R], [
        *((code, name) for name in ("FirstName", "LastName", "Password")
          for code in ("NotNull", "NotEmpty")), ("NotNull", "Company")]),
    ("reg-bad", [ACCOUNT], [R], [
        ("Email", "EMail"), ("NotEmpty", "FirstName"), ("NotEmpty", "LastName")]),
    ("reg-ok-json", [ACCOUNT], [A], []),
    ("form-json", [FORM], [DIFFERS], [("EchoDiffers", "Comments")]),
    ("form-csv", [FORM], [DIFFERS], [("EchoDiffers", "Comments")]),
    ("form-jsv", [FORM], [None], [("InDoubt", "")]),
]  # fmt: skip
LISTED: list[tuple[str, str, int | str]] = [
    # exchange, operation, how many rows or why there are none
    ("list-json", "ListInsertBatchData", 4),
    ("list-csv", "ListInsertBatchData", 4),
    ("list-format-qs", "ListInsertBatchData", 4),
    ("list-empty-json", "ListInsertBatchData", 0),
    ("plan-json", "ListPaymentPlanDetails", 7),
    ("list-anon-json", "ListInsertBatchData", "401, so it refuses our credentials"),
    ("list-anon-csv", "ListInsertBatchData", "401, so it refuses our credentials"),
    ("list-norole", "ListInsertBatchData", "403, so it refuses our credentials"),
    ("list-badint-json", "ListInsertBatchData", "400 .SerializationException: "),
]  # fmt: skip


@pytest.mark.parametrize(("name", "sent", "verdicts", "errors"), SENT)
def test_an_answer_is_classified(
    name: str, sent: list[Any], verdicts: list[Verdict | None], errors: list[tuple[str, str]]
) -> None:
    reply = recorded_reply(name)
    rows = [(made, read_record(made.jsondata)) for made in sent]
    classifier = Classifier(ZoneInfo("UTC"), ())
    found: list[ClassifiedResponse]
    found = classifier.batch(rows, reply) if len(rows) > 1 else [classifier.single(*rows[0], reply)]
    assert [one.verdict for one in found] == verdicts
    assert [(one["ErrorCode"], one["FieldName"]) for one in found[-1].errors] == errors


@pytest.mark.parametrize(("name", "operation", "rows"), LISTED)
def test_a_listing_is_read_or_refused(name: str, operation: str, rows: int | str) -> None:
    response = EXCHANGES[name]["response"]
    headers = tuple(one for one in response["headers"].items() if one[0] != "content-length")
    answer = Reply(response["status"], headers, response["body"])
    with FaultyServer(always(answer)) as server, client(server.url) as service:
        if isinstance(rows, str):
            with pytest.raises(ServiceUnusable, match=rows):
                service.listing(BY_NAME[operation])
            return
        found = service.listing(BY_NAME[operation]).rows
    assert len(found) == rows
    if name.startswith("list-") and rows:
        assert found[1] == {"Jsondata": "[1,2]", "ErrorData": 'line1\nline2 "q"'}
    if operation == "ListPaymentPlanDetails":
        assert [row["PlannedAmount"].exact for row in found if row] == [
            Decimal(text) for text in ("10", "0.3", "1E+16", "0.00001", "-1.5")
        ]


def test_every_recorded_exchange_is_in_a_table() -> None:
    assert sorted(EXCHANGES) == sorted(name for name, *_ in (*SENT, *LISTED))
