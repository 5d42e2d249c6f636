"""Links to the pages of batches and runs at the desk, for use elsewhere."""

import os
from collections.abc import Mapping
from enum import StrEnum
from urllib.parse import SplitResult

from connectors.addresses import parts_of_http
from connectors.environment import setting
from connectors.errors import SettingsError
from schemas.counting import first_of

MOST_LINKS = 10
"""Most links in one sentence."""


class DeskPage(StrEnum):
    """The kinds of things that have a page of their own, by number."""

    BATCH = "batches"
    RUN = "runs"


def parts_of_pages(url: str) -> SplitResult | None:
    """The parts of a base address for links to pages; None if it is none or holds more.

    A user, a password, a query or a fragment would be visible to everybody in every link.
    """
    parts = parts_of_http(url)
    if parts is None:
        return None
    more = "@" in parts.netloc or any(sign in url for sign in "?# ") or not url.isprintable()
    return None if more else parts


def desk_url(environment: Mapping[str, str] = os.environ) -> str | None:
    """The address people open the desk by; None if none is set. Raises SettingsError."""
    url = setting("RECON_DESK_URL", environment)
    if not url:
        return None
    parts = parts_of_pages(url)
    if parts is None or parts.path.strip("/"):
        raise SettingsError(
            "RECON_DESK_URL is no address of a desk. Write https://HOST, with no path and no user."
        )
    return url.rstrip("/")


def desk_link(page: DeskPage, number: int) -> str | None:
    """The address of the page with this number; None if no desk is set."""
    url = desk_url()
    return url and f"{url}/{page}/{number}"


def linked(page: DeskPage, number: int) -> str:
    """The number in Markdown, linked to its page if a desk is set."""
    link = desk_link(page, number)
    return f"[{number}]({link})" if link else str(number)


def desk_sentence(page: DeskPage, *numbers: int) -> str:
    """A sentence with the links, in Markdown; empty if no desk is set."""
    if not numbers or not desk_url():
        return ""
    if len(numbers) == 1:
        return f" [Open it at the desk]({desk_link(page, numbers[0])})."
    return f" At the desk: {first_of(numbers, MOST_LINKS, lambda one: linked(page, one))}."
