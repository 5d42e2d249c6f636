"""The sandbox: the documented service on a port of this machine, over a PostgreSQL database."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from connectors.errors import SettingsError
from connectors.sandbox.accounts import Accounts
from connectors.sandbox.authentication import Authentication, Sessions, Tokens
from connectors.sandbox.exchange import Exchange
from connectors.sandbox.listener import ADDRESS, Listener
from connectors.sandbox.listings import read_listing
from connectors.sandbox.options import SandboxOptions
from connectors.sandbox.service import SandboxService
from connectors.sandbox.shapes import RECORDS
from connectors.sandbox.signing import Signing
from connectors.sandbox.store import Store


class Sandbox:
    """A running host of the service; its records stay in the schema `sandbox` when it ends."""

    def __init__(self, options: SandboxOptions, database_url: str) -> None:
        self.options = options
        self._store = Store(database_url)
        self._accounts = Accounts(options, self._store)
        self._sessions = Sessions()
        tokens = Tokens()
        authentication = Authentication(options, self._accounts, self._sessions, tokens)
        signing = Signing(options, self._accounts, self._sessions, tokens, authentication)
        service = SandboxService(options, self._store, self._accounts)
        self._exchange = Exchange(options, service, authentication, signing)

    @contextmanager
    def running(self) -> Iterator[str]:
        """Serve in the background; yields the base URL. Raises DatabaseUnusable, SettingsError."""
        self._store.open()
        try:
            self._accounts.seed()
            try:
                listener = Listener(self.options.port, self._exchange.answer)
            except OSError as problem:
                raise SettingsError(
                    f"The sandbox cannot listen on {ADDRESS}:{self.options.port}: "
                    f"{os.strerror(problem.errno or 0)}. Stop what does, or choose another port; "
                    "0 is any free one."
                ) from None
            listener.start()
            try:
                yield f"http://{ADDRESS}:{listener.port}"
            finally:
                listener.stop()
        finally:
            self._store.close()

    def load(self, record: str, csv_path: Path) -> int:
        """Add the rows of a listing of `record` (a table name such as `avatar`); returns how many.

        The sandbox must be running. Raises SettingsError, ListingUnusable.
        """
        if record not in RECORDS:
            raise SettingsError(f"{record!r} is no record of the sandbox: {', '.join(RECORDS)}.")
        table = RECORDS[record]
        return self._store.append(table, read_listing(self.options, table, csv_path))

    def clear(self) -> None:
        """Delete every record and session and recreate the users; the sandbox must be running."""
        self._store.clear()
        self._sessions.end_all()
        self._accounts.forget()
        self._accounts.seed()
