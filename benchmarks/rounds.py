"""Several runs of one case as one figure."""

from collections.abc import Callable, Sequence
from typing import Any

Figure = dict[str, Any]
_PEAKS = ("peak", "peak_mib")


def middle(runs: Sequence[Figure], cost: Callable[[Figure], float]) -> Figure:
    """The run of median cost, with the `least` and the `most` of all and their largest peak."""
    ordered = sorted(runs, key=cost)
    peaks = {name: max(one[name] for one in runs) for name in _PEAKS if name in runs[0]}
    ends = {"least": round(cost(ordered[0]), 2), "most": round(cost(ordered[-1]), 2)}
    return ordered[(len(ordered) - 1) // 2] | peaks | ends
