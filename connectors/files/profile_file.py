"""Feed profiles as files: one small TOML file per feed, read and proven to make sense."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from connectors.errors import ExtractRefused, ProfileError
from connectors.files.carried_columns import record_columns
from connectors.files.content import shown
from connectors.files.header_names import HeaderNames
from connectors.files.lookups import told_of_lookup, with_lookups
from connectors.files.positions import in_order
from connectors.files.profile import Profile
from connectors.files.profile_checks import check_tenant, check_together
from connectors.files.profile_keys import KEYS, SECTIONS
from connectors.files.profile_values import as_section, known
from connectors.files.rule_files import written_text
from connectors.files.unpivot import unpivot_of
from schemas.tables import EXTRACTS
from schemas.toml_text import key_lines, read_toml

_BEHIND_KEY = (" ", ":", ".", "")
"""What stands behind the key that a message begins with."""


def load_profile(path: Path) -> Profile:
    """The profile in `path`; ProfileError names the file, the key and what is allowed."""
    try:
        text = written_text(path)
        document = read_toml(text)
    except OSError as error:
        raise ProfileError(f"{path}: cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise ProfileError(f"{path}: is not TOML: {error}.") from error
    try:
        return read_profile(with_lookups(document, path.parent))
    except ProfileError as error:
        said = told_of_lookup(str(error), document, path.parent)
        raise ProfileError(f"{path}{_line_of(said, text)}: {said}") from error


def _line_of(error: str, text: str) -> str:
    """Where the key stands that an error begins with, or what it is in.

    The longest that it may be: what a column is called has blanks, and may begin as another does.
    """
    lines = {".".join(map(str, path)): line for path, line in key_lines(text).items()}
    begun = [
        (len(spelled), line)
        for key, line in lines.items()
        for spelled in {key, shown(key)}
        if error.startswith(spelled) and error[len(spelled) : len(spelled) + 1] in _BEHIND_KEY
    ]
    return f", line {max(begun)[1]}" if begun else ""


def read_profile(document: Mapping[str, Any]) -> Profile:
    """The profile a TOML document states; ProfileError names the key and what is allowed."""
    if "feed" not in document:
        raise ProfileError('feed is missing. Name the feed: feed = "bank-x".')
    values: dict[str, Any] = {}
    _refuse_nul(document)
    for key, value in document.items():
        if key in SECTIONS:
            readers = SECTIONS[key]
            for inner, inner_value in as_section(key, value).items():
                name, reader = known(f"{key}.{inner}", inner, readers)
                values[name] = reader(f"{key}.{inner}", inner_value)
        else:
            name, reader = known(key, key, KEYS, also=SECTIONS)
            values[name] = reader(key, value)
    profile = Profile(**values)
    check_together(profile)
    if profile.positions or profile.names:
        _check_columns(profile)
    return profile


def _refuse_nul(value: object, key: str = "") -> None:
    """Refuse a text with NUL, which no text that is kept can have; raises ProfileError."""
    if isinstance(value, Mapping):
        for name, one in value.items():
            _refuse_nul(name, f"{key}.{name}".lstrip("."))
            _refuse_nul(one, f"{key}.{name}".lstrip("."))
    elif isinstance(value, list | tuple):
        for one in value:
            _refuse_nul(one, key)
    elif isinstance(value, str) and "\0" in value:
        raise ProfileError(f"{key} has a NUL in it. No delivered text has one: take it out.")


def _check_columns(profile: Profile) -> None:
    """Refuse columns without a header that are none of a record: no file says anything of them."""
    key = "names" if profile.names else "positions"
    stated = profile.names or tuple(in_order(profile.positions))
    unpivot = unpivot_of(stated, profile)
    if profile.unpivots and unpivot is None:
        raise ProfileError(f"{key}: unpivot names a column that is none of them, or all of them.")
    stated = record_columns(stated, unpivot, profile)
    names = HeaderNames(key, None, stated, profile)
    try:
        names.fields_of(EXTRACTS[profile.record or ""])
    except ExtractRefused as refusal:
        raise ProfileError(str(refusal)) from None


def with_terms(profile: Profile, terms: Mapping[str, Any]) -> Profile:
    """The profile with what is stated for one delivery; None is not stated. Raises ProfileError."""
    given = {name: value for name, value in terms.items() if value is not None}
    readers = dict(chain(KEYS.values(), *(section.values() for section in SECTIONS.values())))
    stated = {name: readers[name](name, value) for name, value in given.items()}
    profile = replace(profile, **stated)
    check_tenant(profile)
    return profile
