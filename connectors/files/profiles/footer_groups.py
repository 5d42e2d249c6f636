"""Groups of a footer; a total may be in several cells, such as an amount beside its sign."""

import re
from collections.abc import Mapping
from typing import Any

from connectors.files.text.linear_patterns import Groups

_NUMBERED = re.compile(r"(?P<field>[A-Za-z0-9]+)_(?P<number>[2-9])")


def field_of_group(group: str) -> tuple[str, int]:
    """The field whose total a group holds, and the number of its cell."""
    match = _NUMBERED.fullmatch(group)
    return (match["field"], int(match["number"])) if match else (group, 1)


def joined_groups(groups: Groups, fields: Mapping[str, Mapping[str, Any]]) -> Groups:
    """One text per field, its groups joined as the cells of its columns are."""
    cells: dict[str, list[str | None]] = {}
    for group in sorted(groups, key=lambda one: field_of_group(one)[1]):
        cells.setdefault(field_of_group(group)[0], []).append(groups[group])
    return {name: _joined(of, fields.get(name, {})) for name, of in cells.items()}


def _joined(cells: list[str | None], written: Mapping[str, Any]) -> str | None:
    if len(cells) == 1:
        return cells[0]
    found = [cell.strip(" ") for cell in cells if cell and cell.strip(" ")]
    return written.get("join", "").join(found) if found else None
