"""Ports of this machine that stay a test's own, also while nobody listens at them.

What has just ended leaves a port that the system gives to the next who asks. Tests run in several
processes: a request to what is meant to be gone would arrive at the server of another test.
"""

import socket
from collections import deque

LOOPBACK = "127.0.0.1"
_KEPT: deque[socket.socket] = deque()
_AT_MOST = 128
"""So many of the last ones are kept; each costs a file descriptor."""


def own_port() -> int:
    """A port that nobody is given from now on; to listen there takes SO_REUSEADDR, as servers do.

    Until somebody listens there, a connection to it is refused.
    """
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind((LOOPBACK, 0))
    _KEPT.append(held)
    while len(_KEPT) > _AT_MOST:
        _KEPT.popleft().close()
    return int(held.getsockname()[1])
