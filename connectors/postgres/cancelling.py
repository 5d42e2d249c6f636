"""What connections are asked, given up from another thread."""

from collections.abc import Callable, Iterable
from contextlib import suppress

import psycopg

CANCEL_SECONDS = 1
"""Between two requests to cancel: one that comes between two statements cancels nothing."""


def give_up(
    asked: Callable[[], Iterable[psycopg.Connection]], ended: Callable[[float], bool]
) -> None:
    """Have what connections are asked end: it may wait for a lock that is held for long.

    `asked` gives those that are asked something still, `ended` waits up to so many seconds for the
    end of all of it. One whose server is gone is asked nothing any more.
    """
    while not ended(0):
        for connection in asked():
            with suppress(psycopg.Error):
                connection.cancel_safe(timeout=CANCEL_SECONDS)
        if ended(CANCEL_SECONDS):
            return
