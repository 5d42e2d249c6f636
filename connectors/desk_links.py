"""Addresses of pages at the desk, for what names a batch or a run elsewhere."""

import os
from collections.abc import Mapping
from enum import StrEnum
from urllib.parse import SplitResult

from connectors.addresses import parts_of_http
from connectors.environment import setting
from connectors.errors import SettingsError
from schemas.counting import first_of

MOST_LINKS = 10
"""Of one sentence."""


class DeskPage(StrEnum):
    """What has a page of its own, by its number."""

    BATCH = "batches"
    RUN = "runs"


def parts_of_pages(url: str) -> SplitResult | None:
    """The parts of an address that links to pages begin with; None: it is none, or says more.

    A user, a password, a query and a fragment would stand in every link, for everybody.
    """
    parts = parts_of_http(url)
    if parts is None:
        return None
    more = "@" in parts.netloc or any(sign in url for sign in "?# ") or not url.isprintable()
    return None if more else parts


def desk_url(environment: Mapping[str, str] = os.environ) -> str | None:
    """What people open the desk by; None: none is set. Raises SettingsError."""
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
    """The page of this number; None where no desk is set."""
    url = desk_url()
    return url and f"{url}/{page}/{number}"


def linked(page: DeskPage, number: int) -> str:
    """The number, which leads to its page where a desk is set, in Markdown."""
    link = desk_link(page, number)
    return f"[{number}]({link})" if link else str(number)


def desk_sentence(page: DeskPage, *numbers: int) -> str:
    """A sentence with the links, in Markdown; empty where no desk is set."""
    if not numbers or not desk_url():
        return ""
    if len(numbers) == 1:
        return f" [Open it at the desk]({desk_link(page, numbers[0])})."
    return f" At the desk: {first_of(numbers, MOST_LINKS, lambda one: linked(page, one))}."
