"""The verdict of a reconciliation in words."""

from collections.abc import Mapping
from typing import NamedTuple

from flows.report.spelling import visible


class VerdictWords(NamedTuple):
    word: str
    meaning: str
    tone: str
    """One of good, warn and bad."""


VERDICTS: Mapping[str, VerdictWords] = {
    "RECONCILED": VerdictWords(
        "Reconciled", "Both sides agree, and every difference is explained.", "good"
    ),
    "RECONCILED_WITH_ACCEPTED": VerdictWords(
        "Reconciled with accepted breaks",
        "Every difference is explained; those that remain were accepted by name, until a day, or "
        "are set aside.",
        "warn",
    ),
    "NOT_RECONCILED": VerdictWords(
        "Not reconciled", "There are differences that nobody has resolved or accepted.", "bad"
    ),
    "INCOMPLETE": VerdictWords(
        "Incomplete", "Something that was to be compared is missing: there is no verdict.", "bad"
    ),
}


def word_of(verdict: str) -> str:
    """A verdict in a word or two; an unknown verdict is shown as it is."""
    known = VERDICTS.get(verdict)
    return known.word if known else visible(verdict)
