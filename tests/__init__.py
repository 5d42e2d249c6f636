"""Tests of recon; a package, so that no installed one called `tests` is taken for it."""

import os

if "PYTEST_XDIST_WORKER" in os.environ:
    # As many threads as there are cores, in each of as many processes, wait for one another.
    os.environ.setdefault("POLARS_MAX_THREADS", "1")
