"""Names of all settings, and misspelt names among the variables that are set."""

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
"""How alike a name must be to a setting to count as a misspelling of it."""


def misspelt(environment: Mapping[str, str] = os.environ) -> Iterator[tuple[str, str]]:
    """Variables that are set and no setting, with the setting each was probably meant for.

    A name that resembles no setting is somebody else's: a cluster with a service called recon sets
    RECON_SERVICE_HOST. The common prefix of a group of settings does not count as resemblance.
    """
    for name in sorted(environment):
        if not name.startswith(PREFIX) or name in SETTINGS:
            continue
        ending = name.removeprefix(PREFIX)
        group = next((one for one in _GROUPS if ending.startswith(one)), "")
        known = _GROUPS[group] if group else [one.removeprefix(PREFIX) for one in sorted(SETTINGS)]
        for meant in get_close_matches(ending.removeprefix(group), known, 1, ALIKE):
            yield name, f"{PREFIX}{group}{meant}"
