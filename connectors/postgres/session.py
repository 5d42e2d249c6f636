"""How sessions of ours are opened, and what holds in them whatever a database or a role says.

Of an address that leads to no database is told why, and never a secret in it. libpq repeats the
part of an address that it cannot read, which may be the password. Of one that it has read, it and
the server tell names, not passwords.
"""

import re
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import psycopg
from psycopg.conninfo import conninfo_to_dict

from connectors.addresses import SECRET_PARAMETERS

CONNECT_SECONDS = 10
NO_CONNECTION = (psycopg.Error, ValueError, OverflowError)
"""All that opening a connection raises: hosts and numbers are read before libpq has its say."""
NOT_SHOWN = (
    "the address cannot be read, and what is wrong with it is not shown because it repeats "
    "a secret; write % as %25, a blank as %20"
)


def why_no_connection(error: BaseException, url: str) -> str:
    """One line about an error of `NO_CONNECTION`, without a full stop; no secret of `url` in it."""
    if isinstance(error, UnicodeError):
        return "the host in its address is no name of a host"
    first = (str(error).strip().splitlines() or [type(error).__name__])[0]
    try:
        secrets = _secrets(url)
    except ValueError:
        return NOT_SHOWN
    if isinstance(error, psycopg.OperationalError):
        # A password may be a word of what is told, above all the name of its user.
        for one in secrets - _names(url):
            first = re.sub(rf"(?<!\w){re.escape(one)}(?!\w)", "***", first)
    elif any(one in first for one in secrets):
        return NOT_SHOWN
    return first.rstrip(".")


def no_connection(error: BaseException, url: str, named_by: str) -> str:
    """The same with what to look at: above all what names this address."""
    return (
        f"The database cannot be used: {why_no_connection(error, url)}. "
        f"Check {named_by}, the server and the role's rights."
    )


def _names(url: str) -> set[str]:
    """What of an address is told to everybody."""
    parts = urlsplit(url)
    hosts = re.split(r"[:,]", parts.netloc.rpartition("@")[2])
    given = [parts.username or "", *hosts, parts.path.removeprefix("/")]
    return {unquote(one) for one in given}


def _secrets(url: str) -> set[str]:
    """As they are written and as they are meant."""
    parts = urlsplit(url)
    queries = (part.partition("=") for part in parts.query.split("&"))
    written = [value for name, _, value in queries if _is_secret(name)]
    meant = [value for name, value in parse_qsl(parts.query) if _is_secret(name)]
    given = [parts.password or "", *written, *meant]
    return {one for text in given for one in (text, unquote(text)) if one}


def _is_secret(parameter: str) -> bool:
    """Whether its value is; also of one that is misspelled."""
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
"""Options: who waits for a lock reads afterwards what the one before has committed.

In one moment is read where a transaction says so itself.
"""
PLAIN = (
    "-c standard_conforming_strings=on -c row_security=on "
    "-c quote_all_identifiers=off -c array_nulls=on"
)
"""Options: a text within a statement is what it is, with its backslashes; of a table with policies
is shown what these let be seen, where it would be refused; the server tells what a trigger is in
the words that are kept of it; and an array may hold nothing at a place."""

TEXTS_OF_VALUES = (
    "SET client_encoding = UTF8; SET timezone = 'UTC'; SET datestyle = ISO; "
    "SET intervalstyle = postgres; SET extra_float_digits = 1; SET bytea_output = hex; "
    "SET lc_monetary = 'C'"
)
"""How the server writes values, whatever a role, a database or the environment (PGTZ) says.

Options of a connection are not enough: what is in the environment is heard after them.
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


def open_session(url: str, options: str) -> Session:
    """A session with these options of the server beside those of the address and of all."""
    # Of an option that is given twice the last one counts.
    given = conninfo_to_dict(url).get("options") or ""
    return Session.connect(
        url,
        autocommit=True,
        connect_timeout=CONNECT_SECONDS,
        options=f"{given} {TRANSACTIONS} {PLAIN} {options}",
        **SILENT_PEER,
    )


def plain_session(url: str, options: str) -> Session:
    """The same for who says nothing else at first: values are written as `TEXTS_OF_VALUES` says."""
    session = open_session(url, options)
    session.execute(TEXTS_OF_VALUES)
    return session
