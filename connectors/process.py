"""What this process is called where others have to know who it is, and those that outlive it."""

import getpass
import os
import socket
import subprocess
import threading
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import IO


def user_name() -> str:
    """Who runs this process; a user without a name, as of containers, by number."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"


def holding() -> str:
    """Who holds something from now on, for those who wait for it."""
    return f"{whoami()} since {datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"


def user_at_host() -> str:
    """Who decides here without saying who it is: one name in however many processes."""
    return f"{user_name()}@{socket.gethostname()}"


def whoami() -> str:
    """User, host and process, for leases, locked files and the audit trail."""
    return f"{user_at_host()} pid {os.getpid()}"


def start_detached(
    command: Sequence[str], environment: Mapping[str, str], output: IO[bytes] | None = None
) -> subprocess.Popen[bytes]:
    """Start a process that outlives this one, with what it says in a file, or nowhere."""
    sink = subprocess.DEVNULL if output is None else output
    child = subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=sink,
        stderr=sink,
        start_new_session=True,
    )
    # Somebody has to hear of its end, or it stays in the list of processes.
    threading.Thread(target=child.wait, name=f"process {child.pid}", daemon=True).start()
    return child
