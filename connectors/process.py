"""What this process is called where others have to know who it is."""

import getpass
import os
import socket


def whoami() -> str:
    """User, host and process, for leases, locked files and the audit trail."""
    return f"{getpass.getuser()}@{socket.gethostname()} pid {os.getpid()}"
