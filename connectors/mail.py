"""Messages by e-mail: the settings of the server, and one message given to it.

A password never leaves this machine without TLS, and nothing that is raised here holds one.
"""

import os
import re
import smtplib
import ssl
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from email.message import EmailMessage
from enum import StrEnum

from connectors.addresses import is_loopback
from connectors.environment import setting
from connectors.errors import MailRefused, MailTooLarge, MailUnusable, SettingsError
from schemas.accounts import ADDRESS, LONGEST_ADDRESS

WAIT_SECONDS = 20.0
"""For each answer of the server."""
SUBMISSION, IMPLICIT_PORT = 587, 465
TOO_LARGE = 552
"""What servers answer to a message beyond their limit, before it begins or at its end."""


class Tls(StrEnum):
    """How a connection to the server is kept from being read."""

    STARTTLS = "starttls"
    IMPLICIT = "implicit"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class MailSettings:
    """How the mail server is reached, and who messages are from."""

    host: str
    port: int
    sender: str
    tls: Tls = Tls.STARTTLS
    user: str | None = None
    password: str | None = field(default=None, repr=False)


def read_mail_settings(environment: Mapping[str, str] = os.environ) -> MailSettings | None:
    """The settings of this process; None: no server is set. Raises SettingsError."""
    server = setting("RECON_MAIL_SERVER", environment)
    if not server:
        return None
    host, port = _place(server)
    sender = setting("RECON_MAIL_FROM", environment) or ""
    if len(sender) > LONGEST_ADDRESS or re.fullmatch(ADDRESS, sender) is None:
        raise SettingsError(
            "RECON_MAIL_FROM is no address to send from. Write recon@example.com, without a name."
        )
    told = setting("RECON_MAIL_TLS", environment) or (
        Tls.IMPLICIT if port == IMPLICIT_PORT else Tls.STARTTLS
    )
    if told not in [*Tls]:
        raise SettingsError(f"RECON_MAIL_TLS={told!r} is none of {', '.join(Tls)}.")
    user = setting("RECON_MAIL_USER", environment)
    password = setting("RECON_MAIL_PASSWORD", environment)
    if (user is None) != (password is None):
        raise SettingsError("RECON_MAIL_USER and RECON_MAIL_PASSWORD are set together, or neither.")
    if not f"{user}{password}".isascii():
        raise SettingsError(
            "RECON_MAIL_USER or RECON_MAIL_PASSWORD has a letter beyond ASCII, which no login here "
            "can send. Choose others at the mail server."
        )
    if told == Tls.NONE and not is_loopback(host):
        raise SettingsError(
            "RECON_MAIL_TLS=none lets everybody on the way read the reports. It is taken for a "
            "server on this machine alone; use starttls or implicit."
        )
    if told == Tls.NONE and user:
        raise SettingsError(
            "RECON_MAIL_TLS=none would send RECON_MAIL_PASSWORD for everybody to read. Use "
            "starttls or implicit, or leave user and password out."
        )
    return MailSettings(host, port, sender, Tls(told), user, password)


def _place(server: str) -> tuple[str, int]:
    host, colon, port = server.rpartition(":")
    if not colon:
        host, port = server, str(SUBMISSION)
    host = host.removeprefix("[").removesuffix("]")
    sound = port.isascii() and port.isdigit() and len(port) < 6 and 0 < int(port) < 65536
    if not sound or not host or not host.isprintable() or any(sign in host for sign in "@/ "):
        raise SettingsError(
            "RECON_MAIL_SERVER is no mail server. Write HOST:PORT, with no user and no scheme."
        )
    return host, int(port)


def send(settings: MailSettings, message: EmailMessage, address: str) -> None:
    """Give one message for one address to the server.

    Raises MailRefused where it refuses this one, MailTooLarge for its size, MailUnusable where it
    can be used for none. When the server dies before it answers, it may have the message all the
    same.
    """
    where = f"The mail server {settings.host}:{settings.port}"
    try:
        with closing(_connected(settings)) as server:
            if settings.user and settings.password:
                server.login(settings.user, settings.password)
            server.send_message(message, settings.sender, [address])
            # It has the message: what it says to a farewell changes nothing.
            with suppress(smtplib.SMTPException, OSError):
                server.quit()
    except smtplib.SMTPRecipientsRefused as error:
        code, said = next(iter(error.recipients.values()))
        raise MailRefused(f"{where} refused {address}: {_answer(code, said)}") from None
    except (smtplib.SMTPDataError, smtplib.SMTPSenderRefused) as error:
        told = _answer(error.smtp_code, error.smtp_error)
        refusal = f"{where} refused the message for {address}: {told}"
        if error.smtp_code == TOO_LARGE:
            raise MailTooLarge(refusal) from None
        if isinstance(error, smtplib.SMTPDataError):
            raise MailRefused(refusal) from None
        raise MailUnusable(f"{where} cannot be used: {told}") from None
    except smtplib.SMTPAuthenticationError as error:
        # What it says of a login may repeat what it was given.
        raise MailUnusable(
            f"{where} refused RECON_MAIL_USER with RECON_MAIL_PASSWORD ({error.smtp_code})"
        ) from None
    except smtplib.SMTPResponseException as error:
        told = _answer(error.smtp_code, error.smtp_error)
        raise MailUnusable(f"{where} cannot be used: {told}") from None
    except smtplib.SMTPNotSupportedError:
        what = "login" if settings.tls is Tls.IMPLICIT else "STARTTLS, or no login behind it"
        raise MailUnusable(f"{where} offers no {what}") from None
    except ssl.SSLCertVerificationError as error:
        raise MailUnusable(
            f"{where} is not trusted: {error.verify_message}. A certificate of one's own is named "
            "by SSL_CERT_FILE"
        ) from None
    except (smtplib.SMTPException, OSError, ValueError) as error:
        # Without its text: of what cannot be encoded it has the value.
        name = type(error).__name__
        if type(error) is smtplib.SMTPException:
            raise MailUnusable(f"{where} offers no login that we know") from None
        what = "reached" if isinstance(error, OSError) else "used"
        raise MailUnusable(f"{where} cannot be {what} ({name})") from None


def _connected(settings: MailSettings) -> smtplib.SMTP:
    if settings.tls is Tls.IMPLICIT:
        return smtplib.SMTP_SSL(
            settings.host,
            settings.port,
            timeout=WAIT_SECONDS,
            context=ssl.create_default_context(),
        )
    server = smtplib.SMTP(settings.host, settings.port, timeout=WAIT_SECONDS)
    if settings.tls is Tls.STARTTLS:
        try:
            server.starttls(context=ssl.create_default_context())
        except BaseException:
            server.close()
            raise
    return server


def _answer(code: int, said: bytes | str) -> str:
    text = said.decode("ascii", "replace") if isinstance(said, bytes) else said
    return f"{code} {''.join(sign if sign.isprintable() else ' ' for sign in text[:200])}".strip()
