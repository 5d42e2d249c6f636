"""Changes between two sets of rules, key by key, from their canonical texts.

Also the hash by which an approver accepts all changes of how figures are made.
"""

import hashlib
import json
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from itertools import chain, count
from typing import Any

from flows.steps.reconcile.report import Changes, RuleChange
from flows.steps.rules.own_kinds import definition_keys
from flows.steps.rules.values import RECORDS

HASH = 12
"""How many characters of a hash are shown."""
NOT_SET = "not set"
_NAMED = {
    "tolerance": ("record", "field", "currency", "tenant"),
    "window": ("record",),
    "exclude": ("id",),
}
"""Sections that repeat, and the keys that identify each."""


def rule_changes(old: str, new: str) -> tuple[RuleChange, ...]:
    """Every key that differs between the texts; the value is empty where a text lacks the key."""
    before, after = _keys(old), _keys(new)
    return tuple(
        RuleChange(key, *(_display(keys[key]) if key in keys else "" for keys in (before, after)))
        for key in sorted({*before, *after})
        if before.get(key) != after.get(key)
    )


def accepted_by(changes: Changes, rules_hash: str) -> Changes:
    """The changes with the hash by which an approver accepts them; no hash if nothing changed.

    Breaks that the rules set aside are a change as well if nobody has signed for these rules in the
    scope, whatever rules there were in between.
    """
    rows = method_rows(changes, rules_hash)
    set_aside = not changes.signed and any(one.by_rules for one in changes.aside)
    text = json.dumps([changes.rules_before, rules_hash, rows])
    accept = hashlib.sha256(text.encode()).hexdigest()
    return replace(changes, accept=accept if changes.since and (rows or set_aside) else "")


def method_rows(changes: Changes, rules_hash: str) -> list[tuple[str, str, str]]:
    """All changes of how the figures are made: what, before and now, as shown on page one."""
    before, now = changes.rules_before[:HASH], rules_hash[:HASH]
    same = not changes.since or changes.rules_before == rules_hash
    return [
        *([] if same else [("rules, by their hash", before, now)]),
        *(
            (named + one.key, one.old or NOT_SET, one.new or NOT_SET)
            for named, rows in (
                ("rule ", changes.rules),
                ("profile of feed ", changes.profiles),
                ("", changes.settings),
            )
            for one in rows
        ),
    ]


def _keys(text: str) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, value in tomllib.loads(text).items():
        match value:
            case Mapping() if name == RECORDS:
                for record, definition in value.items():
                    found |= definition_keys(record, definition)
            case Mapping():
                found |= _section(name, value)
            case list() if name in _NAMED:
                for one in value:
                    found |= _section(_title(name, one, found), one)
            case _:
                found[name] = value
    return found


def _section(title: str, values: Mapping[str, Any]) -> dict[str, object]:
    return {f"{title}: {key}": value for key, value in values.items()}


def _title(name: str, values: Mapping[str, Any], found: Mapping[str, object]) -> str:
    base = " ".join([name, *(str(values[key]) for key in _NAMED[name] if key in values)])
    titles = chain([base], (f"{base} ({number})" for number in count(2)))
    return next(one for one in titles if not any(key.startswith(f"{one}: ") for key in found))


def _display(value: object) -> str:
    if isinstance(value, list):
        # In quotes, because a value may contain a comma or be the word "none".
        return ", ".join(json.dumps(one, ensure_ascii=False) for one in value) or "none"
    return str(value).lower() if isinstance(value, bool) else str(value)
