"""The 11 operations of the service: method, path, roles, request and response record.

Source: the service document, "Endpoints" and "Authentication".
"""

import re
from dataclasses import dataclass

ANY_ROLE = ("Client", "Admin", "Partner")
PUT, POST = "PUT", "POST"
PLACEHOLDER = re.compile(r"\{(\w+)\}")
"""A placeholder of a path: the field whose value stands there."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a record is sent to, or listed; records are known by name here."""

    name: str
    """Operation name. The document gives only SaveCampaignActionClientForm and ClientRegister; the
    others are default names."""
    method: str
    path: str
    request: str
    response: str
    roles: tuple[str, ...] = ANY_ROLE
    """Any one of them is enough; empty if the document shows no requirement."""
    also: tuple[str, ...] = ()
    """Other methods that the document lists for the path."""
    returns_list: bool = False
    response_name: str | None = None
    """Name of the wrapper record, if the response is not the record itself."""

    @property
    def keyed(self) -> bool:
        """Whether repeating the request is harmless: the path names the record it replaces."""
        return self.method == PUT

    @property
    def addressed(self) -> tuple[str, ...]:
        """The fields whose values stand in the path."""
        return tuple(PLACEHOLDER.findall(self.path))


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "SaveCampaignActionClientForm",
        "POST",
        "/campaign/inbox/form",
        request="form_reply",
        response="campaign_actions_form_responses",
        roles=(),
        also=("PUT",),
        response_name="SaveCampaignActionClientFormResponse",
    ),
    Endpoint(
        "ClientRegister",
        "POST",
        "/clientregister",
        request="client_registration",
        response="user_account",
        roles=("Partner",),
    ),
    Endpoint(
        "AddPaymentGateway", "POST", "/payment_gateways", "payment_gateway", "payment_gateway"
    ),
    Endpoint("EditPayment", "PUT", "/payments/{Id}", "payment", "payment"),
    Endpoint("EditCurrencyRate", "PUT", "/currency_rates/{Id}", "currency_rate", "currency_rate"),
    Endpoint("EditInvoiceFile", "PUT", "/invoice_files/{Id}", "invoice_file", "invoice_file"),
    Endpoint("ListAvatars", "GET", "/avatars", "avatar", "avatar", returns_list=True),
    Endpoint(
        "ListPaymentPlanDetails",
        "GET",
        "/payment_plan_details",
        "payment_plan_detail",
        "payment_plan_detail",
        returns_list=True,
    ),
    Endpoint("AddMessageTone", "POST", "/message_tones", "message_tone", "message_tone"),
    Endpoint(
        "ListInsertBatchData",
        "GET",
        "/insert_batch_data",
        "insert_batch_data",
        "insert_batch_data",
        returns_list=True,
    ),
    Endpoint(
        "AddActionDocument", "POST", "/action_documents", "action_document", "action_document"
    ),
)
"""In the document's order."""
