"""The text of files that people write, such as rules; its content is validated elsewhere."""

from pathlib import Path

from connectors.errors import RulesError
from connectors.files.disk.system_errors import unread
from schemas.toml_text import MOST_BYTES, written_text


def rule_file_text(path: Path) -> str:
    """The file's text; raises RulesError if it cannot be read."""
    try:
        return written_text(path)
    except OSError as error:
        raise RulesError(f"{path}: {unread(error)}") from error
    except UnicodeDecodeError as error:
        raise RulesError(f"{path}: is not UTF-8 text: byte {error.start}.") from error
    except ValueError as error:
        raise RulesError(f"{path}: a rule file has at most {MOST_BYTES} bytes.") from error
