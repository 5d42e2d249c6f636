"""The text of a file that people write: rules, profiles. What it says is judged elsewhere."""

from pathlib import Path

from connectors.errors import RulesError
from connectors.files.disk.system_errors import unread

MOST_BYTES = 1024 * 1024
"""Of a rule file or a profile: what is larger is another file, named by mistake."""


def written_text(path: Path) -> str:
    """The file's text; raises OSError, and ValueError for what is too large or no UTF-8."""
    with path.open("rb") as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise ValueError(f"it has more than {MOST_BYTES} bytes")
    return content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")


def rule_file_text(path: Path) -> str:
    """The file's text; raises RulesError where it cannot be read."""
    try:
        return written_text(path)
    except OSError as error:
        raise RulesError(f"{path}: {unread(error)}") from error
    except UnicodeDecodeError as error:
        raise RulesError(f"{path}: is not UTF-8 text: byte {error.start}.") from error
    except ValueError as error:
        raise RulesError(f"{path}: a rule file has at most {MOST_BYTES} bytes.") from error
