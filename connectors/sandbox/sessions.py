"""Who is signed in, by session cookie; sessions end with the host."""

import secrets
import threading

from connectors.sandbox.accounts import ServiceAccount

MOST_SESSIONS = 10_000


class Sessions:
    """The sessions of one host."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._accounts: dict[str, ServiceAccount] = {}

    def begin(self, account: ServiceAccount) -> str:
        """The id of a new session; the oldest one ends where there are too many."""
        session = secrets.token_urlsafe(15)
        with self._lock:
            if len(self._accounts) >= MOST_SESSIONS:
                self._accounts.pop(next(iter(self._accounts)))
            self._accounts[session] = account
        return session

    def find(self, session: str) -> ServiceAccount | None:
        """Whose session it is."""
        return self._accounts.get(session)

    def end(self, session: str) -> None:
        """Sign out."""
        with self._lock:
            self._accounts.pop(session, None)

    def end_all(self) -> None:
        """Sign everyone out."""
        with self._lock:
            self._accounts.clear()
