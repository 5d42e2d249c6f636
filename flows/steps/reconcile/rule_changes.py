"""What changed from one set of rules to another, key by key, from their canonical texts."""

import tomllib
from collections.abc import Mapping
from typing import Any

from flows.report.reconciliation import RuleChange

_NAMED = {
    "tolerance": ("record", "field", "currency", "tenant"),
    "window": ("record",),
    "exclude": ("id",),
}
"""Sections that repeat, and what tells one from another."""


def rule_changes(old: str, new: str) -> tuple[RuleChange, ...]:
    """Every key that is not the same in both texts; a key that one of them lacks is empty there."""
    before, after = _keys(old), _keys(new)
    return tuple(
        RuleChange(key, before.get(key, ""), after.get(key, ""))
        for key in sorted({*before, *after})
        if before.get(key) != after.get(key)
    )


def _keys(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in tomllib.loads(text).items():
        match value:
            case Mapping():
                found |= _section(name, value)
            case list() if name in _NAMED:
                for one in value:
                    found |= _section(_title(name, one, found), one)
            case _:
                found[name] = _told(value)
    return found


def _section(title: str, values: Mapping[str, Any]) -> dict[str, str]:
    return {f"{title}: {key}": _told(value) for key, value in values.items()}


def _title(name: str, values: Mapping[str, Any], found: Mapping[str, str]) -> str:
    title = " ".join([name, *(str(values[key]) for key in _NAMED[name] if key in values)])
    number = 2
    base = title
    while any(key.startswith(f"{title}: ") for key in found):
        title, number = f"{base} ({number})", number + 1
    return title


def _told(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(_told, value)) or "none"
    return str(value).lower() if isinstance(value, bool) else str(value)
