"""Clues: what a chunk's receipt says besides its counts.

Hints tell later stages where to look, which work without them. Hints are kept under the form of the
code that wrote them, and other versions ignore them. Counts of lines that are no record, and of
rows left out by a cell, exist only here, since they are counted as the chunk is read; every version
reads them.
"""

import json
from collections.abc import Mapping
from typing import Any

from connectors.forms import form_of_code

COMMENTS = "comments"
"""Comment lines, as the feed defines them: how many, and the first."""
VALUELESS = "valueless"
"""The same for lines without values, which become no record."""
LEFT_OUT = "excluded"
"""By column and cell, how many rows were left out, and the first of them."""
LASTING = (COMMENTS, VALUELESS, LEFT_OUT)
_LASTING = "lasting"

Clues = Mapping[str, Mapping[str, Any]]
"""Clues by record kind."""


def clues_text(clues: Clues) -> str | None:
    """Clues as text to store: the hints under this code's form, and the lasting ones."""
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
    """The lasting clues, and the hints if they have this code's form."""
    kept = json.loads(text)
    hints, lasting = (kept.get(name, {}) for name in (form_of_code(), _LASTING))
    return {
        record: {**hints.get(record, {}), **lasting.get(record, {})}
        for record in {**hints, **lasting}
    }
