"""What the environment says: one that is set and empty says as much as one that is not there."""

import os
from collections.abc import Mapping


def setting(name: str, environment: Mapping[str, str] = os.environ) -> str | None:
    """The text of a setting; None: it is unset, or empty, as a template leaves it."""
    return environment.get(name) or None
