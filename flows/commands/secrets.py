"""Secrets from whoever types them, or from standard input: never from the command line."""

import sys
from getpass import getpass

from connectors.errors import SettingsError


def typed(prompt: str, what: str) -> str:
    """What is typed without being shown, or the next line of standard input."""
    try:
        line = f"{getpass(prompt)}\n" if sys.stdin.isatty() else sys.stdin.readline()
    except EOFError:
        line = ""
    except UnicodeDecodeError:
        raise SettingsError(f"Standard input is no text in UTF-8. Give {what} as a line.") from None
    if not line:
        raise SettingsError(
            f"Standard input has ended without {what}. Type it at a terminal, or give it there as "
            "a line."
        )
    return line.rstrip("\r\n")
