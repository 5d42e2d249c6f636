"""A process that is measured until it ends."""

import os
import resource
import subprocess
import time
from collections.abc import Callable

LOOK_SECONDS = 0.02


def watched(
    process: "subprocess.Popen[bytes] | subprocess.Popen[str]", peak_mib: Callable[[int], float]
) -> tuple[resource.struct_rusage, float]:
    """Wait for a process: what it used, and its largest resident memory in MiB."""
    peak = 0.0
    while True:
        ended, status, usage = os.wait4(process.pid, os.WNOHANG)
        if ended:
            process.returncode = os.waitstatus_to_exitcode(status)
            return usage, peak
        peak = max(peak, peak_mib(process.pid))
        time.sleep(LOOK_SECONDS)
