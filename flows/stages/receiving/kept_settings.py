"""Kept settings: those settings of a process that decide verdicts, kept with each batch.

The rows of a batch are read in several runs, on several machines, and again years later, always by
the settings the batch was opened with. A batch from before settings were kept is read by the
settings of the reading process.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from connectors.currencies import read_currencies
from connectors.files.layout.header import Header
from connectors.files.profiles.profile import Profile
from connectors.settings import Settings, is_limit

CURRENCIES, LIMITS = "currencies", "limits"
DECIDING = ("columns", "field_bytes", "look_ahead_bytes", "record_bytes")
"""Limits that matter each time a kept file is read; those for receiving it no longer do."""


def with_settings(profile: Profile, settings: Settings, headers: Iterable[Header]) -> Profile:
    """Add to a profile the settings to keep for a batch of files with these headers.

    Settings that it has already stay, such as those a correction has from the batch it corrects.
    Raises SettingsError if a sheet needs a table of currencies that cannot be used.
    """
    limits = {name: getattr(settings.limits, name) for name in DECIDING}
    kept: dict[str, Any] = {LIMITS: limits, **profile.kept_settings}
    if CURRENCIES not in kept and any(needs_currencies(header) for header in headers):
        kept[CURRENCIES] = read_currencies(settings.currencies)
    return replace(profile, kept_settings=kept)


def needs_currencies(header: Header) -> bool:
    """Whether the cells of a file may name currencies; only sheets do."""
    return header.of_workbook and header.table.currency is not None


def currencies_of(profile: Profile, settings: Settings) -> Mapping[str, str]:
    """The codes of currencies by number, for the rows of a batch with this profile.

    Raises SettingsError if the table has to be read now and cannot be used.
    """
    kept: Mapping[str, str] | None = profile.kept_settings.get(CURRENCIES)
    return read_currencies(settings.currencies) if kept is None else kept


def broken_settings(kept: object) -> str:
    """The part of kept settings that could never have been kept; empty if there is none."""
    if not isinstance(kept, dict):
        return f"kept_settings = {json.dumps(kept)}"
    for name, is_sound in _SOUND.items():
        if not isinstance(of := kept.get(name, {}), dict):
            return f"{name} = {json.dumps(of)}"
        for key, value in of.items():
            if not is_sound(key, value):
                return f"{name}.{key} = {json.dumps(value)}"
    return ""


_SOUND: Mapping[str, Callable[[str, object], bool]] = {
    CURRENCIES: lambda _, code: isinstance(code, str),
    # A limit that this version does not know is refused elsewhere.
    LIMITS: lambda name, value: name not in DECIDING or is_limit(name, value),
}
"""Kept setting -> whether one of its values is valid."""


def unknown_settings(kept: Mapping[str, Any]) -> list[str]:
    """Kept settings that this version does not know, and so could not follow."""
    names = {*kept} - {*_SOUND} | {*kept.get(LIMITS, {})} - {*DECIDING}
    return sorted(names)


def inherited(profile: Profile) -> Mapping[str, Any]:
    """The kept settings that a correction inherits from the batch it corrects.

    Limits are not inherited: a row that exceeded them may be delivered again because they were
    raised.
    """
    return {name: of for name, of in profile.kept_settings.items() if name == CURRENCIES}


def other_settings(then: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """The settings in which two batches differ, as far as both have kept them."""
    if CURRENCIES in then.keys() & now.keys() and then[CURRENCIES] != now[CURRENCIES]:
        yield "RECON_CURRENCIES"
    one, other = then.get(LIMITS, {}), now.get(LIMITS, {})
    for name in sorted(one.keys() & other.keys()):
        if one[name] != other[name]:
            yield f"RECON_LIMIT_{name.upper()}"
