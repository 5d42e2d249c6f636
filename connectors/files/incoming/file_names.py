"""What a file's name says: an extract, a companion of extracts, or neither."""

from typing import NamedTuple

from connectors.files.incoming.unpack import PACKED
from connectors.files.text.content import WORKBOOKS
from connectors.printable import shown

TEXT_SUFFIXES = (".csv", ".tsv", ".tab")
LOOSE_SUFFIXES = (".txt", *WORKBOOKS)
"""Endings of files of any sort: extracts only if they are named, or a pattern names them."""
UNFINISHED = (".part", ".partial", ".filepart", ".crdownload", ".tmp", ".temp")
"""Endings of files that are still being written."""
EXTRACT_SUFFIXES = tuple(
    f"{text}{packed}" for text in (*TEXT_SUFFIXES, *LOOSE_SUFFIXES) for packed in ("", *PACKED)
)
CONTROL_NAME = "manifest.json"
WHY = ".why.txt"
"""Ending of the reason beside a file that was put aside; it may come back with the file."""
# Descriptions, checksums, signatures and completion marks that travel with extracts.
COMPANION_SUFFIXES = (
    *(".json", ".toml", ".md", ".md5", ".sha1", ".sha256", ".sha512"),
    *(".asc", ".sig", ".done", ".ok", ".ready", ".ctl", ".trg"),
)


class DeliveryFault(NamedTuple):
    """Why a source is refused when it is opened: a file refusal code and its detail."""

    code: str
    detail: str


def is_extract_like(lower_name: str) -> bool:
    """Whether a file counts as an extract even if nobody named it."""
    return lower_name.endswith(".zip") or any(one in lower_name for one in TEXT_SUFFIXES)


def is_control(lower_name: str) -> bool:
    return lower_name == CONTROL_NAME or lower_name.endswith(".manifest.json")


def about_file(control: str) -> str | None:
    """The file a control manifest's own name says it is about; None: its folder."""
    return control[: -len(".manifest.json")] if control.lower() != CONTROL_NAME else None


def is_companion(lower_name: str) -> bool:
    """Whether a file is hidden or travels with extracts."""
    return (
        lower_name.startswith(".")
        or lower_name.endswith((*COMPANION_SUFFIXES, WHY))
        or ".manifest." in lower_name
    )


def name_fault(lower_name: str, *, named: bool) -> DeliveryFault | None:
    """Why a file's name disqualifies it as an extract; a file named by itself may have any name."""
    if lower_name.endswith(EXTRACT_SUFFIXES):
        return None
    detail = f"the name ends in .{shown(lower_name.rpartition('.')[2], 20)}"
    if lower_name.endswith(UNFINISHED):
        detail += ", as what is still being written does: rename it once it is complete"
    elif is_companion(lower_name):
        detail += ", which stands beside extracts"
    elif lower_name.endswith(".zip"):
        detail = "a zip archive within another"
    elif named:
        return None
    else:
        detail += ": rename it to .csv, or name the file by itself"
    return DeliveryFault("unsupported_format", detail)


def states_ending(lower_pattern: str) -> bool:
    """Whether a pattern states the ending of the names it means, instead of matching any ending."""
    ending = lower_pattern.rpartition("/")[2].rpartition(".")[2]
    stated = "." in lower_pattern.rpartition("/")[2] and not {*"*?[]"} & {*ending}
    return stated or any(one in lower_pattern for one in LOOSE_SUFFIXES)
