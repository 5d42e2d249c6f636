"""Makes what the first pages need before anybody asks for them, beside those who ask."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from connectors.errors import ReconError
from connectors.postgres.reconciliations import latest_runs
from flows.desk.kept import FRAMES, Kept
from flows.stages.workspace import Workspace

log = logging.getLogger("recon.desk")

LOOK_SECONDS, STOP_SECONDS = 15, 5
"""Between two looks for runs that came since; for the end of one that is under way."""


@contextmanager
def warming(place: Workspace, kept: Kept) -> Iterator[None]:
    """Until the block ends, read the last run of each scope once, the newest first.

    Who may see a run is asked where it is shown, and not here.
    """
    stopped = threading.Event()
    known: set[tuple[int, str]] = set()

    def go() -> None:
        while not stopped.is_set():
            try:
                warm(place, kept, known, stopped)
            except ReconError as error:  # A page that needs the database says so itself.
                log.warning("Nothing is read ahead: %s", error)
            stopped.wait(LOOK_SECONDS)

    thread = threading.Thread(target=go, name="warming", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join(STOP_SECONDS)


def warm(
    place: Workspace, kept: Kept, known: set[tuple[int, str]], stopped: threading.Event
) -> None:
    """Read runs that are not `known`, as many as are kept, and add them to those."""
    with place.database.connect() as connection:
        latest = sorted(latest_runs(connection), key=lambda run: run.id, reverse=True)
    for run in latest[:FRAMES]:
        if (run.id, run.chain_hash) in known or stopped.is_set():
            continue
        # A connection for each: none stays idle while another run is read.
        with place.database.connect() as connection:
            kept.review(place, connection, run)
            kept.changes(place, connection, run)
        known.add((run.id, run.chain_hash))
