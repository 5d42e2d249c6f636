"""The text of a rule file; what it says is judged by `flows.steps.rules.file`."""

from pathlib import Path

from connectors.errors import RulesError

MOST_BYTES = 1024 * 1024
"""A rule file is written by people."""


def rule_file_text(path: Path) -> str:
    """The file's text; raises RulesError where it cannot be read."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise RulesError(f"{path}: a rule file has at most {MOST_BYTES} bytes.")
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise RulesError(f"{path}: cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise RulesError(f"{path}: is not UTF-8 text: byte {error.start}.") from error
