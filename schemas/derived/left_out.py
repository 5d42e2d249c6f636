"""The words for why a reconciliation leaves a record out because of the record's own state.

A rule file's exclusion has an id of its own instead of these words.
"""

from schemas.breaks import Status
from schemas.derived.views import AGAIN, BY_KEY

SUPERSEDED = "superseded"
NO_LISTING = "no listing"
"""For insert-batch data: there is no listing to compare it with."""
OWN: dict[str, tuple[Status, str]] = {
    "rejected": (Status.REJECTED, ""),
    "conflict": (Status.DUPLICATE, ""),
    "superseded": (Status.EXCLUDED, SUPERSEDED),
    "excluded": (Status.EXCLUDED, "left out"),
    "stale": (Status.EXCLUDED, "stale"),
    "corrected": (Status.EXCLUDED, "corrected"),
    BY_KEY: (Status.EXCLUDED, BY_KEY),
    AGAIN: (Status.EXCLUDED, AGAIN),
    "undone": (Status.EXCLUDED, "undone"),
    "discarded": (Status.EXCLUDED, "discarded"),
    "listed": (Status.EXCLUDED, "listed"),
}
"""End state of a row -> its status and its word; rows in other states are compared."""
WORDS = frozenset({NO_LISTING, *(word for _, word in OWN.values() if word)})


def means_a_state(name: str) -> bool:
    """Whether a rule's id would be taken for one of these words."""
    return " ".join(name.split()).casefold() in WORDS
