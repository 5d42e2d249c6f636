"""Where backslashes escape the sign behind them, for a whole text at once."""

import numpy as np

from connectors.files.bitmask import Bytes, Places
from connectors.files.lines import CARRIAGE_RETURN, LINE_FEED

_BACKSLASH = ord("\\")


def escapes(text: Bytes) -> Places:
    """Where backslashes stand that mean something with the sign behind them, from left to right."""
    places = np.flatnonzero(text == _BACKSLASH)
    number = np.arange(len(places))
    begins = np.append(True, np.diff(places) != 1)[: len(places)]
    first_of_run = np.maximum.accumulate(np.where(begins, number, 0))
    found: Places = places[(number - first_of_run) % 2 == 0]
    return found


def covered_escapes(text: bytes, cover: int) -> bytes:
    """The text with each escape and the sign behind it covered, line ends excepted."""
    signs = np.frombuffer(text + b"\n", np.uint8).copy()
    places = escapes(signs)
    behind = signs[places + 1]
    places = places[(behind != LINE_FEED) & (behind != CARRIAGE_RETURN)]
    signs[places] = signs[places + 1] = cover
    return signs[:-1].tobytes()
