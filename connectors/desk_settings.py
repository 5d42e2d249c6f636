"""Settings of the desk: its address, and who proves to it who somebody is."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

from connectors.desk_links import desk_url, parts_of_pages
from connectors.environment import setting
from connectors.errors import SettingsError
from connectors.oidc import ProviderSettings

SHORTEST_SECRET = 16
PROOF = "X-Recon-Proxy"
"""The header in which a proxy sends the secret."""


@dataclass(frozen=True, slots=True)
class ProxySettings:
    """A proxy in front of the desk that names the user in a header and proves to be the proxy."""

    header: str
    secret: str


@dataclass(frozen=True, slots=True)
class DeskSettings:
    """The desk's own settings."""

    url: str | None = None
    """The address people open the desk by; None: the one it listens at."""
    provider: ProviderSettings | None = None
    proxy: ProxySettings | None = None
    prefect_ui: str | None = None
    """Where Prefect's pages are, which show the runs of jobs; None if unknown."""


def read_desk_settings(environment: Mapping[str, str] = os.environ) -> DeskSettings:
    """The desk settings of this process; raises SettingsError, without a part of a secret."""
    return DeskSettings(
        desk_url(environment), _provider(environment), _proxy(environment), _prefect(environment)
    )


def _prefect(environment: Mapping[str, str]) -> str | None:
    """Where Prefect's own settings place its pages; None if that is no usable address."""
    api = environment.get("PREFECT_API_URL", "").rstrip("/")
    pages = setting("PREFECT_UI_URL", environment) or api.removesuffix("/api")
    return None if parts_of_pages(pages) is None else pages.rstrip("/")


def _provider(environment: Mapping[str, str]) -> ProviderSettings | None:
    issuer = setting("RECON_OIDC_ISSUER", environment)
    if not issuer:
        return None
    client = setting("RECON_OIDC_CLIENT_ID", environment)
    if not client:
        raise SettingsError(
            "RECON_OIDC_ISSUER is set, and RECON_OIDC_CLIENT_ID is not: set it to the client id "
            "under which the provider knows the desk."
        )
    secret = setting("RECON_OIDC_CLIENT_SECRET", environment)
    return ProviderSettings(
        issuer, client, secret, setting("RECON_OIDC_CLAIM", environment) or "sub"
    )


def _proxy(environment: Mapping[str, str]) -> ProxySettings | None:
    header = setting("RECON_PROXY_HEADER", environment)
    if not header:
        return None
    secret = environment.get("RECON_PROXY_SECRET", "")
    if len(secret) < SHORTEST_SECRET or not secret.isascii() or not secret.isprintable():
        raise SettingsError(
            f"RECON_PROXY_HEADER is set, and RECON_PROXY_SECRET is not, or has less than "
            f"{SHORTEST_SECRET} characters. The proxy sends it as {PROOF}: without it "
            "anybody on this machine could pass for anybody else."
        )
    if not re.fullmatch(r"[A-Za-z0-9-]+", header):
        raise SettingsError(f"RECON_PROXY_HEADER={header!r} is no name of a header.")
    if header.lower() == PROOF.lower():
        raise SettingsError(
            f"RECON_PROXY_HEADER={header!r} has the secret. Name the header that says who "
            "somebody is."
        )
    return ProxySettings(header, secret)
