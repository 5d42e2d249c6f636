"""An answer with other values has a break for each field that differs by the push, and no other."""
# ruff: noqa: DTZ001 -- wall clocks; their offsets stand beside them.

import json
from datetime import datetime
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import polars as pl
import pytest

from connectors.service import Verdict
from connectors.service.classify import Classifier
from connectors.service.connection import Reply
from connectors.service.encoding import read_record
from flows.steps.reconcile.answers import echo_differences
from schemas.kinds import OFFSET
from tests.service.outbox import BY_NAME, of_record, record

FORM = "SaveCampaignActionClientForm"
FILES = [{"Name": "a,b.pdf", "FileSize": "12"}]
MADE = {"Id": 7, "CampaignActionsId": 3, "ActionTimestamp": "2026-01-02"}
ACCOUNT = {"Id": 7, "Email": "a1@b.co", "FirstName": "A", "LastName": "B", "Roles": "[Client,x]"}
ANSWERS: list[tuple[str, dict[str, Any], dict[str, Any], list[tuple[str, str | None]]]] = [
    # operation, what else is sent, what is answered otherwise, each field that differs as it came
    ("EditPayment", {}, {"DebtsId": 9}, [("DebtsId", "9")]),
    ("EditPayment", {}, {"DebtsId": 9, "DiscountAmount": None},
     [("DebtsId", "9"), ("DiscountAmount", None)]),
    # Written by the service in its own way, these are what was sent.
    ("EditPayment", {"PaidAmount": Decimal("0.30000000000000004")},
     {"PaidAmount": 0.3, "DebtsId": 9}, [("DebtsId", "9")]),
    ("EditPayment", {"PaymentDate": (datetime(2026, 1, 2, 3, 4, 5, 678901), 120)},
     {"PaymentDate": "/Date(1767323045678+0200)/", "DebtsId": 9}, [("DebtsId", "9")]),
    ("EditCurrencyRate", {"EffectiveDate": (datetime(2026, 1, 2, 3, 4, 5), None)},
     {"EffectiveDate": "2026-01-02T03:04:05-05:00", "ExchangeRate": 9.5},
     [("ExchangeRate", "9.5")]),
    ("AddPaymentGateway", {}, {"ServiceKey": "other"}, [("ServiceKey", "(secret)")]),
    ("AddPaymentGateway", {}, {"NotifyUrl": "other"}, [("NotifyUrl", "***")]),
    # Answered with another record, which holds them elsewhere.
    (FORM, {}, {"FormMetaComments": "other", "FormMetaFilesResponses": FILES},
     [("Comments", "other")]),
    ("ClientRegister", {"Roles": '["Client","x"]'}, ACCOUNT | {"LastName": "C"},
     [("LastName", "***")]),
    ("ClientRegister", {"Roles": '["Client","x"]'}, ACCOUNT | {"Email": "c@b.co"},
     [("EMail", "(secret)")]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "values", "otherwise", "found"), ANSWERS)
def test_the_fields_that_differ_are_those_that_the_push_found(
    name: str,
    values: dict[str, Any],
    otherwise: dict[str, Any],
    found: list[tuple[str, str | None]],
) -> None:
    operation = BY_NAME[name]
    sent = record(operation, 1) | values
    made = of_record(operation, 1, sent)
    same = operation.request == operation.response
    answered = json.loads(made.jsondata) | otherwise if same else otherwise
    if name == FORM:
        answered = {"CampaignActionsFormResponses": MADE | otherwise}
    reply = Reply(200, {"content-type": "application/json"}, json.dumps(answered).encode(), "said")
    classified = Classifier(ZoneInfo("America/New_York"), ()).single(
        made, read_record(made.jsondata), reply
    )
    assert classified.verdict is Verdict.DIFFERS
    row: dict[str, Any] = {field.name: sent.get(field.name) for field in operation.table.delivered}
    for field, value in sent.items():
        if isinstance(value, tuple):
            row[field], row[field + OFFSET] = value
    answer = {"row": [0], "echo": [classified.echo], "errors": [json.dumps(classified.errors)]}
    lines = echo_differences(operation.table, pl.DataFrame([row]), pl.DataFrame(answer))
    assert [*lines.select("field", "found").iter_rows()] == found
