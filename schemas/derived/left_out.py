"""What a record is called that a reconciliation leaves out and no rule names: by its own state.

An exclusion of a rule file has an id of its own beside these words.
"""

from schemas.breaks import Status
from schemas.derived.views import AGAIN, BY_KEY

SUPERSEDED = "superseded"
NO_LISTING = "no listing"
"""Of insert-batch data: there is nothing to compare it with."""
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
"""End state of a row -> its status and the word that stands for a rule; others are compared."""
WORDS = frozenset({NO_LISTING, *(word for _, word in OWN.values() if word)})


def means_a_state(name: str) -> bool:
    """Whether an id would be read as one of these words."""
    return " ".join(name.split()).casefold() in WORDS
