"""The options of `recon up`, and reasons to refuse them; nothing is started here."""

import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

from connectors.addresses import is_loopback
from connectors.errors import SettingsError
from flows.ops.running import Running, describe
from flows.ops.whose_server import holder_of, who_answers


@dataclass(frozen=True, slots=True)
class UpOptions:
    host: str = "127.0.0.1"
    port: int = 4200
    sandbox_port: int = 8080
    desk_port: int = 8300
    pages: str = "v1"
    """Which of Prefect's two user interfaces; v2 fetches its configuration from outside."""

    @property
    def address(self) -> str:
        """Where clients on this machine find the Prefect server."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)  # noqa: S104
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}"


def refuse_open_doors(choice: UpOptions, login: str | None) -> None:
    """Raise SettingsError for a server that others could reach without a login."""
    if login is not None and not all(login.partition(":")):
        # The text is not shown, because it contains a password.
        raise SettingsError("RECON_UP_AUTH must be NAME:PASSWORD.")
    if not is_loopback(choice.host) and login is None:
        raise SettingsError(
            f"--host {choice.host} can be reached from other machines, and whoever reaches the "
            "server may run anything. Set RECON_UP_AUTH=NAME:PASSWORD, or stay on 127.0.0.1."
        )


def refuse_other_terms(running: Running | None, asked: Mapping[str, object]) -> None:
    """Raise SettingsError if it is already up with other options."""
    if running is None or not running.process.alive():
        return
    other = [
        f"--{name.replace('_', '-')} {value} (it is {running.terms[name]})"
        for name, value in asked.items()
        if name in running.terms and running.terms[name] != str(value)
    ]
    if other:
        raise SettingsError(
            f"recon is up already, with other options: {', '.join(other)}. Nothing was "
            f"changed. Stop it first: `recon down`.\n{describe(running)}"
        )


def refuse_taken_ports(choice: UpOptions, login: str | None) -> None:
    """Raise SettingsError if one of the ports is not free, before anything is started."""
    refuse_taken_port(choice, login)
    own = {"sandbox": choice.sandbox_port, "desk": choice.desk_port}
    for part, port in own.items():
        if port and [choice.port, *own.values()].count(port) > 1:
            raise SettingsError(
                f"Port {port} is asked for twice. Choose another one with --{part}-port; 0 is "
                "any free one."
            )
        try:
            socket.create_server(("127.0.0.1", port)).close()
        except OSError as error:
            raise SettingsError(
                f"Port {port}, where the {part} would listen, cannot be used: {error.strerror}"
                f"{holder_of(port)}. Nothing was started. Stop what uses it, or choose another "
                f"port with --{part}-port; 0 is any free one."
            ) from None


def refuse_taken_port(choice: UpOptions, login: str | None) -> None:
    """Raise SettingsError if somebody answers at the address, without touching them."""
    answering = who_answers(choice.address, login)
    if answering is None and not _is_listened_to(choice):
        return
    who = f"{answering or 'something that does not answer'}{holder_of(choice.port)}"
    raise SettingsError(
        f"Port {choice.port} is already in use by {who}. It is not what `recon up` started in this "
        "RECON_HOME, so it was left alone; nothing was started and nothing registered. Take "
        f"another port: recon up --port {choice.port + 1}. To register with that server instead: "
        f"PREFECT_API_URL={choice.address}/api recon deploy"
    )


def _is_listened_to(choice: UpOptions) -> bool:
    place = urlsplit(choice.address)
    with suppress(OSError), socket.create_connection((place.hostname, place.port), timeout=5):
        return True
    return False
