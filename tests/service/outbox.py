"""Records of every write operation as requests, and clients that do not keep a test waiting."""
# ruff: noqa: DTZ001 -- wall clocks; their offsets stand beside them.

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Any

from connectors.service import (
    Answer,
    Credentials,
    Request,
    Scheme,
    Service,
    ServiceSettings,
    open_service,
)
from schemas.derived.json_text import canonical_json
from schemas.operations import OPERATIONS, Operation
from schemas.tables import TABLES

BY_NAME = {operation.name: operation for operation in OPERATIONS}
WRITES = tuple(operation for operation in OPERATIONS if not operation.returns_list)
LISTS = tuple(operation for operation in OPERATIONS if operation.returns_list)

QUICK = ServiceSettings(
    concurrency=4,
    format="json",
    backoff_seconds=0.002,
    backoff_most_seconds=0.01,
    connect_seconds=30.0,
    answer_seconds=30.0,
    seed=1,
)
CLIENT = Credentials(Scheme.BASIC, "client", "p@ss")
PARTNER = Credentials(Scheme.BASIC, "partner", "p@ss")

_PAYMENT_DATE = (datetime(2026, 1, 2, 3, 4, 5), 120)
_RECORDS: dict[str, dict[str, Any]] = {
    "SaveCampaignActionClientForm": {
        "CommsGuid": "a3f0",
        "CampaignActionsRequestsId": 5,
        "Comments": 'He said "no", {then} left',
        "CampaignActionFiles": '[{"Name":"a,b.pdf","FileSize":"12"}]',
    },
    "ClientRegister": {
        "EMail": "a{n}@b.co",
        "FirstName": "A",
        "LastName": "B",
        "Password": "secret-word-{n}",
        "ConfirmPassword": "secret-word-{n}",
        "Company": "",
        "Roles": '["Client","x,y"]',
    },
    "AddPaymentGateway": {
        "TenantsId": 1,
        "PaymentActionsId": 2,
        "Name": "gate{n}",
        "ServiceKey": "sk_live_{n}",
        "NotifyUrl": "https://a.example/?x=1,2",
    },
    "EditPayment": {
        "Id": 0,
        "TenantsId": 1,
        "ActionsId": 2,
        "DebtsId": 3,
        "PaymentDate": _PAYMENT_DATE,
        "PaidAmount": Decimal("10.5"),
        "DiscountAmount": 0,
        "CurrenciesId": 1,
        "CurrencyRatesId": 4,
    },
    "EditCurrencyRate": {
        "Id": 0,
        "TenantsId": 1,
        "FromCurrenciesId": 1,
        "ToCurrenciesId": 2,
        "ExchangeRate": Decimal("1.0712"),
        "EffectiveDate": (datetime(2026, 1, 2), None),
    },
    "EditInvoiceFile": {"Id": 0, "TenantsId": 1, "DebtsId": 3, "InvoiceUrl": "https://x/{n}.pdf"},
    "AddMessageTone": {"TenantsId": 1, "AvatarsId": 2, "Name": "tone {n}"},
    "AddActionDocument": {"TenantsId": 1, "ActionsId": 2, "DocumentUrl": "https://x/{n}"},
}


def record(operation: Operation, number: int) -> dict[str, Any]:
    """A valid record; those of two numbers have different keys."""
    made = {
        name: value.replace("{n}", str(number)) if isinstance(value, str) else value
        for name, value in _RECORDS[operation.name].items()
    }
    if "Id" in made:
        made["Id"] = number
    if "CampaignActionsRequestsId" in made:
        made["CampaignActionsRequestsId"] = number
    return made


def request(operation: Operation | str, number: int, values: Mapping[str, Any] = {}) -> Request:
    """The request for that record, with some values changed."""
    found = BY_NAME[operation] if isinstance(operation, str) else operation
    changed = {**record(found, number), **values}
    return of_record(found, number, changed)


def of_record(operation: Operation, number: int, values: Mapping[str, Any]) -> Request:
    jsondata = canonical_json(TABLES[operation.request], values)
    return Request(number, operation, jsondata, f"key-{number}")


def requests(operation: Operation | str, count: int) -> list[Request]:
    return [request(operation, number) for number in range(1, count + 1)]


@contextmanager
def client(
    url: str,
    credentials: Credentials = CLIENT,
    settings: ServiceSettings = QUICK,
    *,
    counts: bool | None = True,
    **chosen: Any,
) -> Iterator[Service]:
    """A client; with `counts` as after a first request that the host counted, None: the first."""
    with open_service(replace(settings, url=url, **chosen), credentials) as service:
        service.classifier.counts = counts
        yield service


def by_number(answers: Iterator[Answer]) -> list[Answer]:
    return sorted(answers, key=lambda answer: answer.number)


def codes(answer: Answer) -> list[tuple[str, str]]:
    """Code and field of every error."""
    return [(error["ErrorCode"], error["FieldName"]) for error in answer.errors]
