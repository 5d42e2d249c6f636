"""The client of the service: every write gets one verdict, and no outcome is guessed."""

from connectors.service.contract import Answer, Request, Verdict
from connectors.service.credentials import Credentials, Scheme, read_credentials
from connectors.service.listing import Listing
from connectors.service.service import Service, open_service
from connectors.settings import ServiceSettings

__all__ = [
    "Answer",
    "Credentials",
    "Listing",
    "Request",
    "Scheme",
    "Service",
    "ServiceSettings",
    "Verdict",
    "open_service",
    "read_credentials",
]
