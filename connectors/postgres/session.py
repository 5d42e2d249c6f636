"""How sessions of ours are opened, and what holds in them whatever a database or a role says."""

from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from connectors.postgres.addresses import CONNECT_SECONDS

SILENT_PEER: dict[str, Any] = {
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
}
"""A server that vanished without a word is noticed within a minute."""
TRANSACTIONS = (
    r"-c default_transaction_isolation=read\ committed -c default_transaction_deferrable=off"
)
"""Options: who waits for a lock reads afterwards what the one before has committed.

In one moment is read where a transaction says so itself.
"""


class Session(psycopg.Connection):
    """A connection that knows why the server ended it.

    What comes behind an answer reaches the client as a notice; the statement after it is told of
    nothing but a closed socket.
    """

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.last_words: psycopg.errors.Diagnostic | None = None
        self.add_notice_handler(self._heard)

    def _heard(self, notice: psycopg.errors.Diagnostic) -> None:
        if notice.severity_nonlocalized == "FATAL":
            self.last_words = notice


def open_session(url: str, options: str, *, autocommit: bool = True) -> Session:
    """A session with these options of the server beside those of the address and of all."""
    # Of an option that is given twice the last one counts.
    given = conninfo_to_dict(url).get("options") or ""
    return Session.connect(
        url,
        autocommit=autocommit,
        connect_timeout=CONNECT_SECONDS,
        options=f"{given} {TRANSACTIONS} {options}",
        **SILENT_PEER,
    )
