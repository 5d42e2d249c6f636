"""Reading environment variables: an empty one counts as unset."""

import os
from collections.abc import Mapping


def setting(name: str, environment: Mapping[str, str] = os.environ) -> str | None:
    """The text of a setting; None if it is unset, or empty as a template leaves it."""
    return environment.get(name) or None
