"""How a record stands in a delivered file: CSV cells, JSV lists and canonical JSON."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

Row = tuple[str | None, ...]
"""Cells in the order of the columns; None is a bare empty cell, "" an empty text."""

COLUMNS: Mapping[str, tuple[str, ...]] = {
    name: tuple(header.split(","))
    for name, header in {
        "currency_rates": "Id,TenantsId,FromCurrenciesId,ToCurrenciesId,ExchangeRate,EffectiveDate",
        "payments": "Id,TenantsId,ActionsId,DebtsId,PaymentDate,PaidAmount,DiscountAmount,"
        "CurrenciesId,CurrencyRatesId",
        "payment_plan_details": "PaymentPlansId,PlannedDate,PlannedAmount,PlannedCurrenciesId,"
        "PaymentsId,StatusCodesId",
        "invoice_files": "Id,TenantsId,DebtsId,InvoiceUrl",
        "avatars": "TenantsId,Name,Gender,AgeGroup,Style,ImageUrl,EthnicGroup",
        "payment_gateways": "TenantsId,PaymentActionsId,Name,ServiceKey,NotifyUrl,RedirectUrl",
        "message_tones": "TenantsId,AvatarsId,Name",
        "action_documents": "TenantsId,ActionsId,DocumentUrl",
        "client_registrations": "EMail,FirstName,LastName,Password,ConfirmPassword,Company,"
        "PartnerUserID,Roles",
        "form_replies": "CommsGuid,CampaignActionsRequestsId,Comments,CampaignActionFiles",
        "campaign_actions_form_responses": "Id,CampaignActionsId,CustomersId,ActionTimestamp,"
        "FormMetaResponses,FormMetaCustomResponses,CampaignInstanceCommsId,"
        "FormMetaFilesResponses,FormMetaComments,StatusCodesId,SentToEmailAddress,VersionNumber",
        "insert_batch_data": "Data,HasError,Merged,BatchId,Jsondata,ErrorData",
    }.items()
}
"""The extracts of a delivery, in the order in which they are read."""

KINDS: Mapping[str, str] = {
    "currency_rates": "currency_rate",
    "payments": "payment",
    "payment_plan_details": "payment_plan_detail",
    "invoice_files": "invoice_file",
    "avatars": "avatar",
    "payment_gateways": "payment_gateway",
    "message_tones": "message_tone",
    "action_documents": "action_document",
    "client_registrations": "client_registration",
    "form_replies": "form_reply",
    "campaign_actions_form_responses": "campaign_actions_form_responses",
    "insert_batch_data": "insert_batch_data",
}
"""The record kind of each extract."""

NUMBERS = frozenset({"PaidAmount", "DiscountAmount", "ExchangeRate", "PlannedAmount"})
TEXTS = frozenset({"PaymentDate", "EffectiveDate", "PlannedDate", "InvoiceUrl"})


@dataclass(frozen=True, slots=True)
class Extract:
    """The records of one file before they are written."""

    name: str
    rows: tuple[Row, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The header."""
        return COLUMNS[self.name]


def cell(value: str | None) -> str:
    """A CSV cell, quoted where a reader could take it for something else."""
    if value is None:
        return ""
    if value == "" or value[0] in "{[" or any(sign in value for sign in '",\r\n'):
        return '"' + value.replace('"', '""') + '"'
    return value


def line(row: Iterable[str | None]) -> str:
    """A CSV record without its line end."""
    return ",".join(cell(value) for value in row)


def jsv(value: object) -> str:
    """The form of nested values in CSV cells of the service; absent members are left out."""
    if isinstance(value, Mapping):
        members = (f"{key}:{jsv(each)}" for key, each in value.items() if each is not None)
        return "{" + ",".join(members) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(jsv(each) for each in value) + "]"
    text = str(value)
    if text == "" or any(sign in text for sign in '":,{}[]\r\n'):
        return '"' + text.replace('"', '""') + '"'
    return text


def canonical_json(columns: Sequence[str], row: Row) -> str:
    """The record as one JSON object: fields in order, plain numbers, times as given."""
    members = []
    for name, value in zip(columns, row, strict=True):
        if value is None:
            text = "null"
        elif name in TEXTS:
            text = json.dumps(value, ensure_ascii=False)
        elif name in NUMBERS:
            text = plain(value)
        else:
            text = str(int(value))
        members.append(f'"{name}":{text}')
    return "{" + ",".join(members) + "}"


def plain(number: str) -> str:
    """A decimal without exponent and without trailing zeros."""
    text = f"{Decimal(number):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
