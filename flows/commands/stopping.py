"""How a command ends when it is told to stop: in order first, then at once."""

import logging
import os
import signal
import sys
import threading
from contextlib import suppress
from types import FrameType

CLOSED = signal.SIGHUP
"""The terminal was closed, or the connection to it was lost."""
STOP_SECONDS = 30
"""How long a command may take to end its work in progress after it was told to stop."""
WAKE = signal.SIGUSR1
stopping = threading.Event()
"""Set once the command was told to stop."""


def _stops() -> list[signal.Signals]:
    """The signals that stop a command; one started under nohup outlives its terminal."""
    outlives = signal.getsignal(CLOSED) is signal.SIG_IGN
    return [signal.SIGINT, signal.SIGTERM, *([] if outlives else [CLOSED])]


def stop_on_signal(exit_code: int) -> None:
    """End in order when told to; at once if told again, or if that takes long."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        for name in _stops():
            signal.signal(name, lambda *_: os._exit(exit_code))
        deadline = threading.Timer(STOP_SECONDS, os._exit, [exit_code])
        deadline.daemon = True
        deadline.start()
        stopping.set()
        # psycopg would warn about the interrupted connection, which no longer matters.
        logging.getLogger("psycopg").setLevel(logging.CRITICAL)
        interrupt()

    for name in _stops():
        signal.signal(name, stop)
    _wake_on_signal()


def note_stops(exit_code: int) -> None:
    """Keep a stop from tearing the end of a command whose exit code is known; a second stop may.

    If the command was told to stop before, the next signal ends it at once anyway.
    """

    def note(_number: int, _frame: FrameType | None) -> None:
        for name in _stops():
            signal.signal(name, lambda *_: os._exit(exit_code))

    if not stopping.is_set():
        for name in _stops():
            signal.signal(name, note)


def stop_requested() -> threading.Event:
    """An event set once this process is told to stop, for servers that then end by themselves."""
    requested = threading.Event()
    for name in _stops():
        signal.signal(name, lambda *_: requested.set())
    return requested


def _wake_on_signal() -> None:
    """Wake the main thread for every signal.

    Importing polars puts its own handler for SIGINT before ours, and that lets a thread that waits
    for another sleep on: Ctrl-C would do nothing until the wait is over.
    """
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    signal.signal(WAKE, lambda *_: None)
    main = threading.main_thread().ident
    assert main is not None

    def wake() -> None:
        while number := os.read(reader, 1):
            if number[0] != WAKE:
                signal.pthread_kill(main, WAKE)

    threading.Thread(target=wake, name="wake", daemon=True).start()


def interrupt() -> None:
    """Raise KeyboardInterrupt here, or between two steps of a running event loop.

    Within a step it would tear the step out of the loop, and whatever waits for it would hang.
    """
    if "asyncio" in sys.modules:
        asyncio = sys.modules["asyncio"]
        with suppress(RuntimeError):
            asyncio.get_running_loop().call_soon_threadsafe(_raise)
            return
    _raise()


def _raise() -> None:
    raise KeyboardInterrupt
