"""What a stretch of work costs: wall, CPU of this process, CPU of the database server.

Read from /proc, so that it works in every environment without a package; Linux only.
"""

import json
import os
import resource
import time
from pathlib import Path
from typing import NamedTuple

TICKS = os.sysconf("SC_CLK_TCK")
MIB = 1024


class Cost(NamedTuple):
    """Seconds since some moment; differences are what counts."""

    wall: float
    client: float
    server: float

    def since(self, earlier: "Cost") -> "Cost":
        """What was spent between two moments."""
        return Cost(*(round(now - then, 4) for now, then in zip(self, earlier, strict=True)))


def cost(server: int | None) -> Cost:
    """All that was spent up to now; `server` is the process id of the postmaster."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    client = own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime
    return Cost(time.perf_counter(), client, server_seconds(server))


def server_seconds(postmaster: int | None) -> float:
    """CPU seconds of the postmaster and of every process it ever started, in steps of 10 ms."""
    if postmaster is None:
        return 0.0
    before = None
    # A process that ends while we look is booked on the postmaster: look again when that happens.
    while (ended := _ticks(postmaster, ended=True)) != before:
        before = ended
        alive = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
        running = sum(_ticks(int(child), ended=False) for child in alive)
    return (ended + running) / TICKS


def busy_seconds() -> float:
    """CPU seconds that all processes of the machine spent since it started."""
    user, nice, system, _, _, interrupt, soft, *_ = (
        int(ticks) for ticks in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    )
    return (user + nice + system + interrupt + soft) / TICKS


def _ticks(process: int, *, ended: bool) -> int:
    try:
        stat = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return 0  # It ended between two looks; the postmaster accounts for it from now on.
    # The name in parentheses may hold blanks; behind it come fields 3, 4 ... of proc(5).
    numbers = stat.rsplit(")", 1)[1].split()
    return sum(map(int, numbers[11 : 15 if ended else 13]))


def peak_mib(process: int | str = "self") -> float:
    """Largest resident memory of a process so far; 0 when it has ended.

    `ru_maxrss` would not do: it survives exec, so a small program seems as large as its parent.
    """
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return 0.0
    lines = [line for line in status.splitlines() if line.startswith("VmHWM")]
    return int(lines[0].split()[1]) / MIB if lines else 0.0


class Clock:
    """Cost of the parts of one case, from the moment it is made."""

    def __init__(self, server: int | None = None) -> None:
        self.server = server
        self.parts: dict[str, Cost] = {}
        self.begin = self.last = cost(server)

    def lap(self, name: str) -> None:
        """Book what was spent since the last lap."""
        now = cost(self.server)
        self.parts[name] = now.since(self.last)
        self.last = now

    def report(self, *, total: str | None = None, **facts: object) -> None:
        """Print the measurement as the last line; `total` is the lap the headline ends with."""
        spent = self.last.since(self.begin)
        if total is not None:
            names = list(self.parts)
            counted = names[: names.index(total) + 1]
            spent = Cost(
                *(sum(column) for column in zip(*map(self.parts.get, counted), strict=True))
            )
        measured = spent._asdict() | {"peak_mib": round(peak_mib(), 1)}
        parts = {name: part._asdict() for name, part in self.parts.items()}
        print(json.dumps(measured | {"parts": parts, "facts": facts}, default=str))
