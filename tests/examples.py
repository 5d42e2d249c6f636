"""How many examples a law is tried on: a share of them, or all where faults are looked for."""

import os

FEWEST = 25
ALL = bool(os.environ.get("RECON_TEST_FAULTS") or os.environ.get("RECON_LONG"))


def examples(full: int) -> int:
    """All of so many where RECON_TEST_FAULTS or RECON_LONG is set; a quarter, but 25, elsewhere."""
    return full if ALL else max(FEWEST, full // 4)
