"""The 11 operations of the service: method, path, roles, request and response record.

Source: the service document, "Endpoints" and "Authentication".
"""

from dataclasses import dataclass

from schemas.field import Table
from schemas.tables import TABLES

ANY_ROLE = ("Client", "Admin", "Partner")


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of the service on one record."""

    name: str
    """Default operation name; only SaveCampaignActionClientForm and ClientRegister are given."""
    method: str
    path: str
    request: str
    response: str
    roles: tuple[str, ...] = ANY_ROLE
    """Any one of them is enough; empty: the document shows no requirement."""
    also: tuple[str, ...] = ()
    """Other methods the document lists for the path."""
    returns_list: bool = False
    response_name: str | None = None
    """Name of the wrapper record, where the response is not the record itself."""

    @property
    def table(self) -> Table:
        """The field table of the request."""
        return TABLES[self.request]

    @property
    def keyed(self) -> bool:
        """Whether repeating the request is harmless: the path names the record it replaces."""
        return self.method == "PUT"


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "SaveCampaignActionClientForm",
        "POST",
        "/campaign/inbox/form",
        request="form_reply",
        response="campaign_actions_form_responses",
        roles=(),
        also=("PUT",),
        response_name="SaveCampaignActionClientFormResponse",
    ),
    Operation(
        "ClientRegister",
        "POST",
        "/clientregister",
        request="client_registration",
        response="user_account",
        roles=("Partner",),
    ),
    Operation(
        "AddPaymentGateway", "POST", "/payment_gateways", "payment_gateway", "payment_gateway"
    ),
    Operation("EditPayment", "PUT", "/payments/{Id}", "payment", "payment"),
    Operation("EditCurrencyRate", "PUT", "/currency_rates/{Id}", "currency_rate", "currency_rate"),
    Operation("EditInvoiceFile", "PUT", "/invoice_files/{Id}", "invoice_file", "invoice_file"),
    Operation("ListAvatars", "GET", "/avatars", "avatar", "avatar", returns_list=True),
    Operation(
        "ListPaymentPlanDetails",
        "GET",
        "/payment_plan_details",
        "payment_plan_detail",
        "payment_plan_detail",
        returns_list=True,
    ),
    Operation("AddMessageTone", "POST", "/message_tones", "message_tone", "message_tone"),
    Operation(
        "ListInsertBatchData",
        "GET",
        "/insert_batch_data",
        "insert_batch_data",
        "insert_batch_data",
        returns_list=True,
    ),
    Operation(
        "AddActionDocument", "POST", "/action_documents", "action_document", "action_document"
    ),
)
"""In the document's order."""

PUSHES: dict[str, Operation] = {
    operation.request: operation for operation in OPERATIONS if not operation.returns_list
}
"""The operation that takes a record, by the record's name; a record without one is never sent."""
