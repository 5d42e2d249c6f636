"""Messages by e-mail: the settings of the server, and giving it one message.

A password never leaves this machine without TLS, and no error raised here holds one.
"""

import os
import re
import smtplib
import ssl
import time
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from email.message import EmailMessage
from enum import StrEnum
from io import BufferedReader, RawIOBase
from socket import socket
from typing import TYPE_CHECKING, Any

from connectors.addresses import is_loopback
from connectors.environment import setting
from connectors.errors import MailRefused, MailTooLarge, MailUnusable, SettingsError
from schemas.accounts import ADDRESS, LONGEST_ADDRESS

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

WAIT_SECONDS = 20.0
"""How long the server may take to say or to accept anything at all."""
MESSAGE_SECONDS = 300.0
"""Longest time for a whole message: a large one takes minutes on a slow line."""
MOST_ANSWERED = 64 * 1024
"""Most bytes a server may say for one message; a normal one says hundreds."""
BLOCK = 64 * 1024
"""Bytes sent at once."""
_PLACE = re.compile(r"(?:\[([^]@/ ]+)\]|([^]:@/ []+))(?::([0-9]{1,5}))?")
"""A host, an IPv6 one in brackets, and a port."""
_CLOSED = "Connection unexpectedly closed: "
"""Prefix that `smtplib` puts before every reason."""
SUBMISSION, IMPLICIT_PORT = 587, 465
CLOSING = 421
"""Servers answer this before they break off: they take nobody's message now."""
TOO_LARGE = 552
"""Servers answer this to a message beyond their size limit, before it begins or at its end."""


class Tls(StrEnum):
    """How a connection to the server is protected from being read."""

    STARTTLS = "starttls"
    IMPLICIT = "implicit"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class MailSettings:
    """How the mail server is reached, and the sender of messages."""

    host: str
    port: int
    sender: str
    tls: Tls = Tls.STARTTLS
    user: str | None = None
    password: str | None = field(default=None, repr=False)


def read_mail_settings(environment: Mapping[str, str] = os.environ) -> MailSettings | None:
    """The settings of this process; None if no server is set. Raises SettingsError."""
    server = setting("RECON_MAIL_SERVER", environment)
    if not server:
        return None
    host, port = _place(server)
    sender = setting("RECON_MAIL_FROM", environment) or ""
    if len(sender) > LONGEST_ADDRESS or re.fullmatch(ADDRESS, sender) is None:
        raise SettingsError(
            "RECON_MAIL_FROM is no address to send from. Write recon@example.com, without a name."
        )
    tls = setting("RECON_MAIL_TLS", environment) or (
        Tls.IMPLICIT if port == IMPLICIT_PORT else Tls.STARTTLS
    )
    if tls not in [*Tls]:
        raise SettingsError(f"RECON_MAIL_TLS={tls!r} is none of {', '.join(Tls)}.")
    user = setting("RECON_MAIL_USER", environment)
    password = setting("RECON_MAIL_PASSWORD", environment)
    if (user is None) != (password is None):
        raise SettingsError("RECON_MAIL_USER and RECON_MAIL_PASSWORD are set together, or neither.")
    if not f"{user}{password}".isascii():
        raise SettingsError(
            "RECON_MAIL_USER or RECON_MAIL_PASSWORD has a letter beyond ASCII, which no login here "
            "can send. Choose others at the mail server."
        )
    if tls == Tls.NONE and not is_loopback(host):
        raise SettingsError(
            "RECON_MAIL_TLS=none lets everybody on the way read the reports. It is taken for a "
            "server on this machine alone; use starttls or implicit."
        )
    if tls == Tls.NONE and user:
        raise SettingsError(
            "RECON_MAIL_TLS=none would send RECON_MAIL_PASSWORD for everybody to read. Use "
            "starttls or implicit, or leave user and password out."
        )
    return MailSettings(host, port, sender, Tls(tls), user, password)


def _place(server: str) -> tuple[str, int]:
    found = _PLACE.fullmatch(server)
    host, port = (found[1] or found[2], int(found[3] or SUBMISSION)) if found else ("", 0)
    if not host.isprintable() or not 0 < port < 65536:
        raise SettingsError(
            "RECON_MAIL_SERVER is no mail server. Write HOST:PORT, with no user and no scheme."
        )
    return host, port


class _Conversation(smtplib.SMTP):
    """The dialogue for one message, with a limit `smtplib` lacks for a server that is slow."""

    def __init__(self, settings: MailSettings, **options: Any) -> None:
        self._until = time.monotonic() + MESSAGE_SECONDS
        self._wait = WAIT_SECONDS
        super().__init__(settings.host, settings.port, timeout=WAIT_SECONDS, **options)

    def may_wait(self, sock: socket) -> None:
        """Set how long the next step may take; raises SMTPServerDisconnected after the last."""
        left = self._until - time.monotonic()
        if left <= 0:
            raise smtplib.SMTPServerDisconnected(f"not done in {MESSAGE_SECONDS:g} s")
        sock.settimeout(min(self._wait, left))

    def getreply(self) -> tuple[int, bytes]:
        """The server's answer, within the limits on time and size."""
        if self.file is None and self.sock is not None:  # A new connection, or TLS has begun.
            self.file = BufferedReader(_Answers(self, self.sock))
        return super().getreply()

    def send(self, s: "ReadableBuffer | str") -> None:
        """Send in blocks, so that a slow line gets the waiting time for each block."""
        self._wait = WAIT_SECONDS
        content = memoryview(s.encode("ascii") if isinstance(s, str) else s)
        for start in range(0, len(content), BLOCK):
            if self.sock is not None:
                self.may_wait(self.sock)
            super().send(content[start : start + BLOCK])
        if not isinstance(s, str):
            # Many servers scan a message before they take it: given up now, it would come twice.
            self._wait = MESSAGE_SECONDS


class _ImplicitTls(_Conversation, smtplib.SMTP_SSL):
    """The same dialogue, encrypted from its first byte."""


class _Answers(RawIOBase):
    """The server's answers, up to a total size."""

    def __init__(self, conversation: _Conversation, sock: socket) -> None:
        self._conversation, self._sock, self._left = conversation, sock, MOST_ANSWERED

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        self._conversation.may_wait(self._sock)
        taken = self._sock.recv_into(buffer)
        self._left -= taken
        if self._left < 0:
            raise smtplib.SMTPServerDisconnected("it says more than there is to say")
        return taken


def send(settings: MailSettings, message: EmailMessage, address: str) -> None:
    """Give the server one message for one address.

    Raises MailRefused if the server refuses this message, MailTooLarge if it is too large, and
    MailUnusable if the server takes no message at all. A server that dies before it answers may
    still have the message.
    """
    where = f"The mail server {settings.host}:{settings.port}"
    try:
        with closing(_connected(settings)) as server:
            if settings.user and settings.password:
                server.login(settings.user, settings.password)
            server.send_message(message, settings.sender, [address])
            # The message is accepted: the answer to a farewell changes nothing.
            with suppress(smtplib.SMTPException, OSError):
                server.quit()
    except smtplib.SMTPRecipientsRefused as error:
        code, reply = next(iter(error.recipients.values()))
        refusal = f"{where} refused {address}: {_answer(code, reply)}"
        raise (MailUnusable if code == CLOSING else MailRefused)(refusal) from None
    except (smtplib.SMTPDataError, smtplib.SMTPSenderRefused) as error:
        answer = _answer(error.smtp_code, error.smtp_error)
        refusal = f"{where} refused the message for {address}: {answer}"
        if error.smtp_code == TOO_LARGE:
            raise MailTooLarge(refusal) from None
        if isinstance(error, smtplib.SMTPDataError) and error.smtp_code != CLOSING:
            raise MailRefused(refusal) from None
        raise MailUnusable(f"{where} cannot be used: {answer}") from None
    except smtplib.SMTPAuthenticationError as error:
        # The answer to a login may repeat the password.
        raise MailUnusable(
            f"{where} refused RECON_MAIL_USER with RECON_MAIL_PASSWORD ({error.smtp_code})"
        ) from None
    except smtplib.SMTPResponseException as error:
        answer = _answer(error.smtp_code, error.smtp_error)
        raise MailUnusable(f"{where} cannot be used: {answer}") from None
    except smtplib.SMTPNotSupportedError:
        what = "login" if settings.tls is Tls.IMPLICIT else "STARTTLS, or no login behind it"
        raise MailUnusable(f"{where} offers no {what}") from None
    except ssl.SSLCertVerificationError as error:
        raise MailUnusable(
            f"{where} is not trusted: {error.verify_message}. A certificate of one's own is named "
            "by SSL_CERT_FILE"
        ) from None
    except smtplib.SMTPServerDisconnected as error:
        raise MailUnusable(f"{where} broke off: {str(error).removeprefix(_CLOSED)}") from None
    except (smtplib.SMTPException, OSError, ValueError) as error:
        # Without the error's text: for text that cannot be encoded it quotes the value.
        name = error.reason if isinstance(error, ssl.SSLError) else type(error).__name__
        if type(error) is smtplib.SMTPException:
            raise MailUnusable(f"{where} offers no login that we know") from None
        what = "reached" if isinstance(error, OSError) else "used"
        raise MailUnusable(f"{where} cannot be {what} ({name})") from None


def _connected(settings: MailSettings) -> smtplib.SMTP:
    if settings.tls is Tls.IMPLICIT:
        return _ImplicitTls(settings, context=ssl.create_default_context())
    server = _Conversation(settings)
    if settings.tls is Tls.STARTTLS:
        try:
            server.starttls(context=ssl.create_default_context())
        except BaseException:
            server.close()
            raise
    return server


def _answer(code: int, reply: bytes | str) -> str:
    text = reply.decode("utf-8", "replace") if isinstance(reply, bytes) else reply
    return f"{code} {''.join(sign if sign.isprintable() else ' ' for sign in text[:200])}".strip()
