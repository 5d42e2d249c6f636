"""Clues: what a chunk's receipt says beside its counts.

Hints say where later stages need to look, who can do without: they are kept under the form of the
code that left them, and another version's are not read. Lines that are no record, and cells by
which rows were left out, are counted where the chunk is read and nowhere else: every version reads
what is kept of them.
"""

import json
from collections.abc import Mapping
from typing import Any

from connectors.forms import form_of_code

COMMENTS = "comments"
"""Lines that are no record, as the feed says of them: how many, and the first."""
VALUELESS = "valueless"
"""The same of lines that become no record."""
LEFT_OUT = "excluded"
"""By column and cell: how many rows were left out, and the first of them."""
LASTING = (COMMENTS, VALUELESS, LEFT_OUT)
_LASTING = "lasting"

Clues = Mapping[str, Mapping[str, Any]]
"""By record kind."""


def clues_text(clues: Clues) -> str | None:
    """Clues as they are kept: hints under the form they have, and what lasts."""
    if not clues:
        return None
    lasting = {
        record: kept
        for record, by_name in clues.items()
        if (kept := {name: by_name[name] for name in LASTING if name in by_name})
    }
    hints = {
        record: {name: one for name, one in by_name.items() if name not in LASTING}
        for record, by_name in clues.items()
    }
    return json.dumps({form_of_code(): hints, **({_LASTING: lasting} if lasting else {})})


def readable_clues(text: str) -> dict[str, dict[str, Any]]:
    """What lasts, and the hints where they have this form."""
    kept = json.loads(text)
    hints, lasting = (kept.get(name, {}) for name in (form_of_code(), _LASTING))
    return {
        record: {**hints.get(record, {}), **lasting.get(record, {})}
        for record in {**hints, **lasting}
    }
