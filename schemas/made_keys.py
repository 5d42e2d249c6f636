"""Keys that numbers are made of, for records that their sender gives none."""

import json
from typing import NamedTuple


class MadeKey(NamedTuple):
    names: tuple[str, ...]
    """The fields whose values make the number, in their order."""
    namespace: str | None = None
    """Whose numbers they are: one key makes another number in another namespace."""

    @property
    def around(self) -> tuple[str, str]:
        """What is hashed before and behind the list of values, so that no two keys are one text."""
        return ("", "") if self.namespace is None else (f"{{{json.dumps(self.namespace)}: ", "}")
