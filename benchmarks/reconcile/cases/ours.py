"""Our comparison of two sides, all differences written to a folder, as `recon compare` does it."""

import sys
from pathlib import Path

from clock import Clock

from flows.stages.comparing.compare_run import run_comparison
from schemas.breaks import Status


def main(server: str, left: str, right: str, out: Path) -> None:
    clock = Clock(int(server) or None)
    result = run_comparison(left, right, key="Id,TenantsId", folder=out)
    clock.lap("compare")
    clock.report(
        different=result.statuses[Status.MISMATCH],
        only_left=result.statuses[Status.MISSING_IN_TARGET],
        only_right=result.statuses[Status.MISSING_IN_EXTRACT],
        method=result.method,
    )


if __name__ == "__main__":
    main(*sys.argv[1:4], Path(sys.argv[4]))
