"""Column names that look like others but consist of other characters."""

import json
import re
import unicodedata
from collections.abc import Iterable

from connectors.files.layout.first_record import folded
from schemas.life import UNSEEN


def look_alikes(wanted: Iterable[str], there: Iterable[str]) -> str:
    """A sentence about wanted names that only look like present ones; empty if there are none."""
    found = {_looks(name): name for name in there}
    alike = [found[_looks(name)] for name in wanted if _looks(name) in found]
    if not alike:
        return ""
    written = ", ".join(f"{json.dumps(name)}" for name in alike)
    return f" Look-alikes have other characters. The file writes them so: {written}."


def _looks(name: str) -> str:
    visible = re.sub(f"[{UNSEEN}]", "", unicodedata.normalize("NFKC", name))
    return folded(" ".join(visible.split()))
