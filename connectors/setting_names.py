"""Names of all settings, and of what is set and was meant for one."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import fields
from difflib import get_close_matches

from connectors.settings import Limits, ServiceSettings

PREFIX = "RECON_"
_GROUPS = {
    "LIMIT_": [limit.name.upper() for limit in fields(Limits)],
    "SERVICE_": [
        *(one.name.upper() for one in fields(ServiceSettings)),
        *("USER", "PASSWORD", "TOKEN", "API_KEY", "SCHEME"),
    ],
}
_OTHERS = (
    *("HOME", "DATABASE_URL", "RECORDS", "CURRENCIES", "TIME_ZONE", "LOGIN_FILE", "TRACEBACK"),
    *("AUDIT_WITNESS", "AUDIT_KEY", "AUDIT_PUBLIC_KEY", "DESK_URL", "UP_AUTH", "NOTIFY_URL"),
    *("MAIL_SERVER", "MAIL_FROM", "MAIL_USER", "MAIL_PASSWORD", "MAIL_TLS"),
    *("OIDC_ISSUER", "OIDC_CLIENT_ID", "OIDC_CLIENT_SECRET", "OIDC_CLAIM"),
    *("PROXY_HEADER", "PROXY_SECRET", "SANDBOX_PASSWORD", "DASK", "DASK_AT_ONCE"),
)
SETTINGS = {
    *(f"{PREFIX}{name}" for name in _OTHERS),
    *(f"{PREFIX}{group}{name}" for group, names in _GROUPS.items() for name in names),
}
ALIKE = 0.8
"""How much two names have in common, of which one was meant for the other."""


def misspelt(environment: Mapping[str, str] = os.environ) -> Iterator[tuple[str, str]]:
    """What is set and is no setting, and the one that it is nearly called as.

    A name that is like none is somebody else's: a cluster that has a service called recon sets
    RECON_SERVICE_HOST. What a group of settings has in common says nothing about how alike two are.
    """
    for name in sorted(environment):
        if not name.startswith(PREFIX) or name in SETTINGS:
            continue
        ending = name.removeprefix(PREFIX)
        group = next((one for one in _GROUPS if ending.startswith(one)), "")
        known = _GROUPS[group] if group else [one.removeprefix(PREFIX) for one in sorted(SETTINGS)]
        for meant in get_close_matches(ending.removeprefix(group), known, 1, ALIKE):
            yield name, f"{PREFIX}{group}{meant}"
