"""The field tables of the service document: every record, every field, in its order.

This is the one place where a field is written. Adding a field is one line here; adding a record
is one table (and one operation where an endpoint takes it).
"""

import os

from schemas.field import Field, Kind, Reference, Rule, Table, named
from schemas.own_tables import FOLDER, OwnTables, own_folder, read_own_tables

INTEGER, INTEGER64, DOUBLE = Kind.INTEGER, Kind.INTEGER64, Kind.DOUBLE
STRING, BOOLEAN = Kind.STRING, Kind.BOOLEAN
DATETIME, DATETIME_OFFSET = Kind.DATETIME, Kind.DATETIME_OFFSET
MAP, LIST, RECORD = Kind.MAP, Kind.LIST, Kind.RECORD
NOT_NULL, NOT_EMPTY, EMAIL = Rule.NOT_NULL, Rule.NOT_EMPTY, Rule.EMAIL

FIELD_ERROR = Table(
    name="field_error",
    title="Field error",
    extract=False,
    fields=(
        Field("ErrorCode", STRING),
        Field("FieldName", STRING),
        Field("Message", STRING),
        Field("Meta", MAP),
    ),
)

RESPONSE_STATUS = Table(
    name="response_status",
    title="ResponseStatus",
    extract=False,
    fields=(
        Field("ErrorCode", STRING),
        Field("Message", STRING),
        Field("StackTrace", STRING),
        Field("Errors", LIST, of="field_error"),
        Field("Meta", MAP),
    ),
)

CAMPAIGN_ACTION_FILE = Table(
    name="campaign_action_file",
    title="CampaignActionFile",
    extract=False,
    fields=(
        Field("Name", STRING),
        Field("FileType", STRING),
        Field("FileSize", STRING),
        Field("Extension", STRING),
        Field("UploadUrl", STRING),
    ),
)

CAMPAIGN_ACTION_FORM_RESULTS = Table(
    name="campaign_action_form_results",
    title="CampaignActionFormResults",
    extract=False,
    fields=(
        Field("CustomFormResults", STRING),
        Field("Comments", STRING),
        Field("CampaignActionFiles", LIST, of="campaign_action_file"),
    ),
)

FORM_RESPONSE = Table(
    name="campaign_actions_form_responses",
    title="CampaignActionsFormResponses",
    key=("Id",),
    fields=(
        Field("Id", INTEGER, required=True),
        Field("CampaignActionsId", INTEGER, required=True),
        Field("CustomersId", INTEGER),
        Field("ActionTimestamp", DATETIME, required=True, note="computed by the service"),
        Field("FormMetaResponses", RECORD, of="campaign_action_form_results"),
        Field("FormMetaCustomResponses", MAP, nullable_values=True),
        Field("CampaignInstanceCommsId", INTEGER),
        Field("FormMetaFilesResponses", LIST, of="campaign_action_file"),
        Field("FormMetaComments", STRING),
        Field("StatusCodesId", INTEGER),
        Field("SentToEmailAddress", STRING),
        Field("VersionNumber", INTEGER),
    ),
)

FORM_REPLY = Table(
    name="form_reply",
    title="SaveCampaignActionClientForm",
    key=("CommsGuid", "CampaignActionsRequestsId"),
    fields=(
        Field("CommsGuid", STRING),
        Field("CampaignActionsRequestsId", INTEGER),
        Field("Comments", STRING),
        Field("CampaignActionFiles", LIST, of="campaign_action_file"),
    ),
)

PAYMENT_GATEWAY = Table(
    name="payment_gateway",
    title="Payment gateway",
    key=("TenantsId", "PaymentActionsId", "Name"),
    fields=(
        Field("TenantsId", INTEGER, required=True),
        Field("PaymentActionsId", INTEGER, required=True),
        Field("Name", STRING, required=True),
        Field("ServiceKey", STRING, secret=True),
        Field("NotifyUrl", STRING),
        Field("RedirectUrl", STRING),
    ),
)

PAYMENT = Table(
    name="payment",
    title="Payment",
    key=("Id", "TenantsId"),
    currency="CurrenciesId",
    references=(Reference("CurrencyRatesId", "currency_rate", same_tenant=True),),
    fields=(
        Field("Id", INTEGER64, required=True),
        Field("TenantsId", INTEGER, required=True),
        Field("ActionsId", INTEGER64, required=True),
        Field("DebtsId", INTEGER64, required=True),
        Field("PaymentDate", DATETIME_OFFSET, required=True, version=True, business_date=True),
        Field("PaidAmount", DOUBLE, required=True, amount=True),
        Field("DiscountAmount", DOUBLE, required=True, amount=True),
        Field("CurrenciesId", INTEGER, required=True),
        Field("CurrencyRatesId", INTEGER64, required=True),
    ),
)

CURRENCY_RATE = Table(
    name="currency_rate",
    title="Currency rate",
    key=("Id", "TenantsId"),
    fields=(
        Field("Id", INTEGER64, required=True),
        Field("TenantsId", INTEGER, required=True),
        Field("FromCurrenciesId", INTEGER, required=True),
        Field("ToCurrenciesId", INTEGER, required=True),
        Field("ExchangeRate", DOUBLE, required=True),
        Field("EffectiveDate", DATETIME, required=True, version=True, business_date=True),
    ),
)

INVOICE_FILE = Table(
    name="invoice_file",
    title="Invoice file",
    key=("Id", "TenantsId"),
    fields=(
        Field("Id", INTEGER64, required=True),
        Field("TenantsId", INTEGER, required=True),
        Field("DebtsId", INTEGER64, required=True),
        Field("InvoiceUrl", STRING, required=True),
    ),
)

AVATAR = Table(
    name="avatar",
    title="Avatar",
    fields=(
        Field("TenantsId", INTEGER),
        Field("Name", STRING),
        Field("Gender", STRING),
        Field("AgeGroup", STRING),
        Field("Style", STRING),
        Field("ImageUrl", STRING),
        Field("EthnicGroup", STRING),
    ),
)

PAYMENT_PLAN_DETAIL = Table(
    name="payment_plan_detail",
    title="Payment plan detail",
    currency="PlannedCurrenciesId",
    references=(Reference("PaymentsId", "payment"),),
    fields=(
        Field("PaymentPlansId", INTEGER),
        Field("PlannedDate", DATETIME, business_date=True),
        Field("PlannedAmount", DOUBLE, amount=True),
        Field("PlannedCurrenciesId", INTEGER),
        Field("PaymentsId", INTEGER),
        Field("StatusCodesId", INTEGER),
    ),
)

MESSAGE_TONE = Table(
    name="message_tone",
    title="Message tone",
    key=("TenantsId", "AvatarsId", "Name"),
    fields=(
        Field("TenantsId", INTEGER, required=True),
        Field("AvatarsId", INTEGER, required=True),
        Field("Name", STRING, required=True),
    ),
)

INSERT_BATCH_DATA = Table(
    name="insert_batch_data",
    title="Insert batch data",
    holds_records=True,
    fields=(
        Field("Data", STRING),
        Field("HasError", BOOLEAN),
        Field("Merged", BOOLEAN),
        Field("BatchId", INTEGER),
        Field("Jsondata", STRING),
        Field("ErrorData", STRING),
    ),
)

ACTION_DOCUMENT = Table(
    name="action_document",
    title="Action document",
    key=("TenantsId", "ActionsId", "DocumentUrl"),
    fields=(
        Field("TenantsId", INTEGER, required=True),
        Field("ActionsId", INTEGER64, required=True),
        Field("DocumentUrl", STRING, required=True),
    ),
)

CLIENT_REGISTRATION = Table(
    name="client_registration",
    title="Client registration request",
    key=("EMail",),
    fields=(
        Field("EMail", STRING, rules=(EMAIL,)),
        Field("FirstName", STRING, rules=(NOT_NULL, NOT_EMPTY)),
        Field("LastName", STRING, rules=(NOT_NULL, NOT_EMPTY)),
        Field("Password", STRING, rules=(NOT_NULL, NOT_EMPTY), secret=True),
        Field("ConfirmPassword", STRING, secret=True),
        Field("Company", STRING, rules=(NOT_NULL,)),
        Field("PartnerUserID", INTEGER),
        Field("Roles", LIST, of="string"),
        Field("ResponseStatus", RECORD, of="response_status", output_only=True),
    ),
)

USER_ACCOUNT = Table(
    name="user_account",
    title="User account record",
    key=("Id",),
    fields=(
        Field("Id", INTEGER),
        Field("UserName", STRING),
        Field("Email", STRING),
        Field("PrimaryEmail", STRING),
        Field("PhoneNumber", STRING),
        Field("FirstName", STRING),
        Field("LastName", STRING),
        Field("DisplayName", STRING),
        Field("Company", STRING),
        Field("BirthDate", DATETIME),
        Field("BirthDateRaw", STRING),
        Field("Address", STRING),
        Field("Address2", STRING),
        Field("City", STRING),
        Field("State", STRING),
        Field("Country", STRING),
        Field("Culture", STRING),
        Field("FullName", STRING),
        Field("Gender", STRING),
        Field("Language", STRING),
        Field("MailAddress", STRING),
        Field("Nickname", STRING),
        Field("PostalCode", STRING),
        Field("TimeZone", STRING),
        Field("Salt", STRING, secret=True),
        Field("PasswordHash", STRING, secret=True),
        Field("DigestHa1Hash", STRING, secret=True),
        Field("Roles", LIST, of="string"),
        Field("Permissions", LIST, of="string"),
        Field("CreatedDate", DATETIME),
        Field("ModifiedDate", DATETIME),
        Field("InvalidLoginAttempts", INTEGER),
        Field("LastLoginAttempt", DATETIME),
        Field("LockedDate", DATETIME),
        Field("RecoveryToken", STRING, secret=True),
        Field("RefId", INTEGER),
        Field("RefIdStr", STRING),
        Field("Meta", MAP),
    ),
)

DOCUMENTED: dict[str, Table] = named(
    RESPONSE_STATUS,
    FIELD_ERROR,
    CAMPAIGN_ACTION_FILE,
    CAMPAIGN_ACTION_FORM_RESULTS,
    FORM_RESPONSE,
    FORM_REPLY,
    PAYMENT_GATEWAY,
    PAYMENT,
    CURRENCY_RATE,
    INVOICE_FILE,
    AVATAR,
    PAYMENT_PLAN_DETAIL,
    MESSAGE_TONE,
    INSERT_BATCH_DATA,
    ACTION_DOCUMENT,
    CLIENT_REGISTRATION,
    USER_ACCOUNT,
)
"""Every record of the service document by its snake_case name."""
OWN: OwnTables = read_own_tables(own_folder(), DOCUMENTED, named=bool(os.environ.get(FOLDER)))
"""Record kinds of our own, which follow the documented ones."""
TABLES: dict[str, Table] = {**DOCUMENTED, **OWN.tables}
EXTRACTS: dict[str, Table] = {name: table for name, table in TABLES.items() if table.extract}
"""The records that can be delivered as an extract."""


def title_of(record: str) -> str:
    """The title people know a record kind by; an unknown kind keeps its name."""
    return EXTRACTS[record].title if record in EXTRACTS else record


SECRETS = frozenset(name for table in EXTRACTS.values() for name in table.secrets)
"""Names of the fields whose values are never shown, over all records.

A field with such a name is secret in every record (`own_checks.named_like_secrets`).
"""


def by_dependency() -> list[Table]:
    """Every deliverable record, references first, otherwise in the document's order."""
    ordered: dict[str, Table] = {}

    def add(table: Table) -> None:
        for reference in table.references:
            if reference.table not in ordered:
                add(EXTRACTS[reference.table])
        ordered.setdefault(table.name, table)

    for table in EXTRACTS.values():
        add(table)
    return list(ordered.values())
