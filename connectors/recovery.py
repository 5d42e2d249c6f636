"""Named recovery points: where a run may die, and tests make it die, without losing anything."""

import os
import signal
from collections import Counter

_reached: Counter[str] = Counter()


def reach(point: str) -> None:
    """Mark a recovery point; `CRASH_AT=point[:n]` kills this process at its n-th passing.

    The kill is SIGKILL, so that nothing is tidied up: a rerun finds what a power cut leaves.
    """
    wanted = os.environ.get("CRASH_AT")
    if not wanted:
        return
    _reached[point] += 1
    name, _, count = wanted.partition(":")
    if name == point and _reached[point] == int(count or 1):
        os.kill(os.getpid(), signal.SIGKILL)
