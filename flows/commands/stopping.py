"""How a command ends that is told to stop: in order first, then at once."""

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
"""What a command that was told to stop may take to end what it has under way."""
WAKE = signal.SIGUSR1
stopping = threading.Event()
"""Set once the command was told to stop."""


def _stops() -> list[signal.Signals]:
    """What stops a command; one that was begun to outlive its terminal, as by nohup, does."""
    outlives = signal.getsignal(CLOSED) is signal.SIG_IGN
    return [signal.SIGINT, signal.SIGTERM, *([] if outlives else [CLOSED])]


def stop_on_signal(exit_code: int) -> None:
    """End in order when told to; at the second time, or when that takes long, at once."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        for name in _stops():
            signal.signal(name, lambda *_: os._exit(exit_code))
        deadline = threading.Timer(STOP_SECONDS, os._exit, [exit_code])
        deadline.daemon = True
        deadline.start()
        stopping.set()
        # It would say of the connection that was left in the middle what nobody asks any more.
        logging.getLogger("psycopg").setLevel(logging.CRITICAL)
        interrupt()

    for name in _stops():
        signal.signal(name, stop)
    _wake_on_signal()


def note_stops(exit_code: int) -> None:
    """Let the end of a command, whose exit code is known, not be torn by a stop; a second one may.

    Where the command was told to stop before, the next one ends it at once anyway.
    """

    def note(_number: int, _frame: FrameType | None) -> None:
        for name in _stops():
            signal.signal(name, lambda *_: os._exit(exit_code))

    if not stopping.is_set():
        for name in _stops():
            signal.signal(name, note)


def stop_requested() -> threading.Event:
    """What is set once this process is told to stop, for servers that end by themselves then."""
    requested = threading.Event()
    for name in _stops():
        signal.signal(name, lambda *_: requested.set())
    return requested


def _wake_on_signal() -> None:
    """Let no signal find the main thread asleep.

    Whoever imports polars gets its handler for SIGINT in front of ours, and it lets a thread that
    waits for another sleep on: Ctrl-C would do nothing until the wait is over.
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
    """Raise KeyboardInterrupt here, or between two steps of the event loop that is running.

    Anywhere else within the loop it would tear out a step, and what waits for it waits for ever.
    """
    if "asyncio" in sys.modules:
        asyncio = sys.modules["asyncio"]
        with suppress(RuntimeError):
            asyncio.get_running_loop().call_soon_threadsafe(_raise)
            return
    _raise()


def _raise() -> None:
    raise KeyboardInterrupt
