"""Kept settings: what the settings of a process say that decides verdicts, kept with a batch once.

The rows of a batch are read in several runs, on several machines, and years later again; each of
them goes by what its batch was opened with. A batch that was opened before this was kept goes by
the settings of whoever reads it.
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
"""Limits that decide each time a kept file is read; those of receiving it are past by then."""


def with_settings(profile: Profile, settings: Settings, headers: Iterable[Header]) -> Profile:
    """A profile with what is kept of the settings for a batch of files with these headers.

    What it has already stays, as a correction has it from the batch it corrects. Raises
    SettingsError for a table of currencies that a sheet needs and that cannot be used.
    """
    limits = {name: getattr(settings.limits, name) for name in DECIDING}
    kept: dict[str, Any] = {LIMITS: limits, **profile.kept_settings}
    if CURRENCIES not in kept and any(needs_currencies(header) for header in headers):
        kept[CURRENCIES] = read_currencies(settings.currencies)
    return replace(profile, kept_settings=kept)


def needs_currencies(header: Header) -> bool:
    """Whether the cells of a file may name currencies, which no text does."""
    return header.of_workbook and header.table.currency is not None


def currencies_of(profile: Profile, settings: Settings) -> Mapping[str, str]:
    """What currencies are called, by number, for the rows of a batch with this profile.

    Raises SettingsError for a table that is read now and cannot be used.
    """
    kept: Mapping[str, str] | None = profile.kept_settings.get(CURRENCIES)
    return read_currencies(settings.currencies) if kept is None else kept


def broken_settings(kept: object) -> str:
    """What of kept settings is none that was ever kept; empty: nothing."""
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
    # One that this version does not know stops it elsewhere.
    LIMITS: lambda name, value: name not in DECIDING or is_limit(name, value),
}
"""What is kept of settings -> whether a value of it is one that they may have."""


def unknown_settings(kept: Mapping[str, Any]) -> list[str]:
    """Kept settings that this version does not know, so that it would not go by them."""
    names = {*kept} - {*_SOUND} | {*kept.get(LIMITS, {})} - {*DECIDING}
    return sorted(names)


def inherited(profile: Profile) -> Mapping[str, Any]:
    """What a correction has of the kept settings of the batch it corrects.

    Not its limits: higher ones are why a row that was over them may be delivered again.
    """
    return {name: of for name, of in profile.kept_settings.items() if name == CURRENCIES}


def other_settings(then: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """The settings that two batches were opened with otherwise, as far as both have kept them."""
    if CURRENCIES in then.keys() & now.keys() and then[CURRENCIES] != now[CURRENCIES]:
        yield "RECON_CURRENCIES"
    one, other = then.get(LIMITS, {}), now.get(LIMITS, {})
    for name in sorted(one.keys() & other.keys()):
        if one[name] != other[name]:
            yield f"RECON_LIMIT_{name.upper()}"
