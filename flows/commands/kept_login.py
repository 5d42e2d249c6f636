"""The person at the command line: passwords as typed, and the login file of `recon login`."""

import sys
from getpass import getpass
from pathlib import Path

from connectors.errors import ReconError, SettingsError
from connectors.files.disk.atomic import write_file

NONE_THERE = (FileNotFoundError, NotADirectoryError)
"""Without a home folder, as in some containers, nobody has logged in."""
ELSEWHERE = "RECON_LOGIN_FILE names another place; by default it is in the home folder, HOME."


def kept_token(path: Path | None) -> str | None:
    """The kept token; None if nobody has logged in here."""
    if path is None:
        return None
    try:
        token = path.read_text("utf-8", "replace").strip()
    except NONE_THERE:
        return None
    except OSError as error:
        raise _unusable(path, "read", error) from None
    if not (token.isascii() and token.isprintable()):
        raise SettingsError(
            f"{path} cannot be read as a login. Remove it, then `recon login` again. {ELSEWHERE}"
        )
    return token or None


def keep_token(path: Path, token: str) -> None:
    """Keep a login in a private file; raises SettingsError if that fails."""
    try:
        write_file(path, f"{token}\n".encode())
    except ReconError as error:
        raise SettingsError(f"The login cannot be kept. {error} {ELSEWHERE}") from None


def drop_token(path: Path | None) -> None:
    if path is None:
        return
    try:
        path.unlink(missing_ok=True)
    except NONE_THERE:
        return
    except OSError as error:
        raise _unusable(path, "removed", error) from None


def _unusable(path: Path, what: str, error: OSError) -> SettingsError:
    return SettingsError(
        f"{path}: the login in it cannot be {what}: {error.strerror or type(error).__name__}. "
        f"{ELSEWHERE}"
    )


def typed(prompt: str, what: str) -> str:
    """Text that is typed without being shown, or the next line of standard input."""
    try:
        line = f"{getpass(prompt)}\n" if sys.stdin.isatty() else sys.stdin.readline()
    except EOFError:
        line = ""
    except UnicodeDecodeError:
        raise SettingsError(f"Standard input is not UTF-8 text. Give {what} as a line.") from None
    if not line:
        raise SettingsError(
            f"Standard input ended before {what}. Type it at a terminal, or give it there as a "
            "line."
        )
    return line.rstrip("\r\n")
