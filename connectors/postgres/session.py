"""How our sessions are opened, and what holds in them whatever a database or a role sets.

When an address leads to no database, the message says why and shows no secret. libpq repeats the
part of an address that it cannot read, which may be the password. Once libpq has read the address,
libpq and the server quote names, not passwords.
"""

import re
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import psycopg
from psycopg.conninfo import conninfo_to_dict

from connectors.addresses import SECRET_PARAMETERS

CONNECT_SECONDS = 10
NO_CONNECTION = (psycopg.Error, ValueError, OverflowError)
"""All that opening a connection raises; Python reads hosts and numbers before libpq does."""
NOT_SHOWN = (
    "the address cannot be read, and what is wrong with it is not shown because it repeats "
    "a secret; write % as %25, a blank as %20"
)


def why_no_connection(error: BaseException, url: str) -> str:
    """One line about an error of `NO_CONNECTION`, without full stop or secrets of `url`."""
    if isinstance(error, UnicodeError):
        return "the host in its address is no name of a host"
    first = (str(error).strip().splitlines() or [type(error).__name__])[0]
    try:
        secrets = _secrets(url)
    except ValueError:
        return NOT_SHOWN
    if isinstance(error, psycopg.OperationalError):
        # A password may equal a harmless word of the message, such as the name of its user.
        for one in secrets - _names(url):
            first = re.sub(rf"(?<!\w){re.escape(one)}(?!\w)", "***", first)
    elif any(one in first for one in secrets):
        return NOT_SHOWN
    return first.rstrip(".")


def no_connection(error: BaseException, url: str, named_by: str) -> str:
    """The same with what to check, first of all the setting that names this address."""
    return (
        f"The database cannot be used: {why_no_connection(error, url)}. "
        f"Check {named_by}, the server and the role's rights."
    )


def _names(url: str) -> set[str]:
    """The parts of an address that are no secret."""
    parts = urlsplit(url)
    hosts = re.split(r"[:,]", parts.netloc.rpartition("@")[2])
    given = [parts.username or "", *hosts, parts.path.removeprefix("/")]
    return {unquote(one) for one in given}


def _secrets(url: str) -> set[str]:
    """The secrets of an address, both percent-encoded and decoded."""
    parts = urlsplit(url)
    queries = (part.partition("=") for part in parts.query.split("&"))
    written = [value for name, _, value in queries if _is_secret(name)]
    meant = [value for name, value in parse_qsl(parts.query) if _is_secret(name)]
    given = [parts.password or "", *written, *meant]
    return {one for text in given for one in (text, unquote(text)) if one}


def _is_secret(parameter: str) -> bool:
    """Whether the value of a parameter is secret, also if its name is misspelled."""
    return "password" in parameter.lower() or parameter in SECRET_PARAMETERS


SILENT_PEER: dict[str, Any] = {
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
}
"""A server that vanished without a word is noticed within a minute."""
TRANSACTIONS = (
    r"-c default_transaction_isolation=read\ committed -c default_transaction_deferrable=off"
)
"""Options: a statement that has waited for a lock reads what its former holder has committed.

A transaction that must read everything at one moment sets its isolation level itself.
"""
PLAIN = (
    "-c standard_conforming_strings=on -c row_security=on "
    "-c quote_all_identifiers=off -c array_nulls=on"
)
"""Options: backslashes in a literal stand for themselves; tables with policies show the rows these
allow instead of refusing; the server describes triggers in the words that are kept of them; and
NULL in an array literal is a null."""

TEXTS_OF_VALUES = (
    "SET client_encoding = UTF8; SET timezone = 'UTC'; SET datestyle = ISO; "
    "SET intervalstyle = postgres; SET extra_float_digits = 1; SET bytea_output = hex; "
    "SET lc_monetary = 'C'"
)
"""How the server writes values, whatever a role, a database or the environment (PGTZ) says.

Connection options are not enough: settings from the environment are applied after them.
"""


class Session(psycopg.Connection):
    """A connection that knows why the server ended it.

    The reason may come after an answer, and reaches the client as a notice. The next statement
    only finds a closed socket.
    """

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.last_words: psycopg.errors.Diagnostic | None = None
        self.add_notice_handler(self._keep_last_words)

    def _keep_last_words(self, notice: psycopg.errors.Diagnostic) -> None:
        if notice.severity_nonlocalized == "FATAL":
            self.last_words = notice


def open_session(url: str, options: str) -> Session:
    """Open a session with these server options, beside those of the address and our own."""
    # The last one counts of an option given twice.
    given = conninfo_to_dict(url).get("options") or ""
    return Session.connect(
        url,
        autocommit=True,
        connect_timeout=CONNECT_SECONDS,
        options=f"{given} {TRANSACTIONS} {PLAIN} {options}",
        **SILENT_PEER,
    )


def plain_session(url: str, options: str) -> Session:
    """Open a session with `TEXTS_OF_VALUES` applied, for callers that set up nothing else."""
    session = open_session(url, options)
    session.execute(TEXTS_OF_VALUES)
    return session
