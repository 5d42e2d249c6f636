"""Rules as canonical text, which the cover of a report shows and their hash is computed from."""

import hashlib
import re
from collections.abc import Iterable
from dataclasses import fields
from decimal import Decimal
from typing import Any

from flows.steps.rules.rules import Rules
from flows.steps.rules.values import NEVER, RECORDS
from schemas.derived.json_text import number_text


def rules_text(rules: Rules) -> str:
    """The rules as canonical TOML: every rule, in one order, defaults included.

    Rules added in later versions, such as `calendar`, are left out if they have their default, so
    that signed rules keep their hash. Exclusions keep their order: the first that names a record
    applies.

    `read_rules_text` reads it back to equal rules.
    """
    lines = [
        f"name = {_quoted(rules.name)}",
        *([f"calendar = {_quoted(rules.calendar)}"] if rules.calendar else []),
        f"offset = {_quoted(rules.offset)}",
        f"references = {_list(sorted(rules.references))}",
    ]
    for section in ("budget", "rates", "plans", "severities"):
        lines += ["", f"[{section}]", *_assignments(getattr(rules, section), section)]
    repeated: dict[str, Iterable[object]] = {
        "tolerance": sorted(rules.tolerances, key=repr),
        "window": sorted(rules.windows, key=repr),
        "exclude": rules.exclusions,
    }
    for section, values in repeated.items():
        for one in values:
            lines += ["", f"[[{section}]]", *_assignments(one, section)]
    if rules.records:
        lines += ["", f"[{RECORDS}]"]
        lines += [f"{name} = {_quoted(definition)}" for name, definition in rules.records]
    return "\n".join(lines) + "\n"


def rules_hash(rules: Rules) -> str:
    """Hash of the rules: independent of spelling, order and comments of their file."""
    return hashlib.sha256(rules_text(rules).encode()).hexdigest()


def _assignments(value: object, section: str) -> list[str]:
    lines = []
    for field in fields(value):  # type: ignore[arg-type]
        one = getattr(value, field.name)
        if one is None and (section, field.name) in _LIMITS:
            lines.append(f"{field.name} = {_quoted(NEVER)}")
        elif one is not None and not (section == "tolerance" and one == field.default):
            lines.append(f"{field.name} = {_value(one)}")
    return lines


def _value(value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case int():
            return str(value)
        case Decimal():
            return _quoted(number_text(value))
        case tuple():
            return _list(value)
        case _:
            return _quoted(str(value))


def _list(values: Any) -> str:
    return f"[{', '.join(_quoted(value) for value in values)}]"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    escaped = re.sub(r"[\x00-\x1f\x7f]", lambda sign: f"\\u{ord(sign[0]):04x}", escaped)
    return f'"{escaped}"'


# Rules that hold by default and can be switched off; writing "never" is the only way to say so.
_LIMITS = {
    ("rates", "stale_days"),
    ("rates", "jump_percent"),
    ("rates", "inverse_tolerance"),
    ("plans", "early_days"),
    ("plans", "late_days"),
}
