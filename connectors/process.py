"""How this process names itself to others, and how it starts processes that outlive it."""

import getpass
import os
import socket
import subprocess
import threading
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import IO


def user_name() -> str:
    """The user who runs this process; by number if it has no name, as in containers."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"


def holding() -> str:
    """Who holds something, and since now; shown to those who wait for it."""
    return f"{whoami()} since {datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"


def user_at_host() -> str:
    """Who decides here without a login: one name for all processes of the user."""
    return f"{user_name()}@{socket.gethostname()}"


def whoami() -> str:
    """User, host and process, for leases, locked files and the audit trail."""
    return f"{user_at_host()} pid {os.getpid()}"


def start_detached(
    command: Sequence[str], environment: Mapping[str, str], output: IO[bytes] | None = None
) -> subprocess.Popen[bytes]:
    """Start a process that outlives this one, with its output in a file or nowhere."""
    sink = subprocess.DEVNULL if output is None else output
    child = subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=sink,
        stderr=sink,
        start_new_session=True,
    )
    # Somebody has to wait for its end, or it stays in the process list.
    threading.Thread(target=child.wait, name=f"process {child.pid}", daemon=True).start()
    return child
