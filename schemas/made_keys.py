"""Keys made from other fields, for records whose sender gives them none."""

import json
from typing import NamedTuple


class MadeKey(NamedTuple):
    names: tuple[str, ...]
    """The fields from whose values the number is made, in this order."""
    namespace: str | None = None
    """Whose numbers they are; the same key gives different numbers in different namespaces."""

    @property
    def around(self) -> tuple[str, str]:
        """The texts hashed before and after the values, so that no two keys give one text."""
        return ("", "") if self.namespace is None else (f"{{{json.dumps(self.namespace)}: ", "}")
