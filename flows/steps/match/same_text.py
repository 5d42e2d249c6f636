"""Texts that say the same, or may: how a text of a second key is compared.

Certainly the same are addresses that RFC 3986 (6.2.2, 6.2.3) calls equivalent: they differ only in
the case of scheme, host or escapes, or in the default port of the scheme. Possibly the same are
texts whose difference nobody sees: blanks at either end, or the Unicode form (NFC or NFD).
"""

import re
import unicodedata

_OWN_PORTS = {"http": ":80", "https": ":443"}
_SCHEME = re.compile("[A-Za-z][A-Za-z0-9+.-]*")
_AUTHORITY = re.compile("[^/?#]*")
_ESCAPE = re.compile("%[0-9A-Fa-f]{2}")


def same(text: str) -> str:
    """A form of the text that is equal for texts that certainly say the same."""
    scheme, found, after = text.partition("://")
    if not found or not _SCHEME.fullmatch(scheme):
        return text
    authority = _AUTHORITY.match(after)
    whose = authority[0] if authority else ""
    scheme, rest = scheme.lower(), after[len(whose) :] or "/"
    user, at, host = whose.rpartition("@")
    host = host.lower().removesuffix(_OWN_PORTS.get(scheme, ":")).removesuffix(":")
    address = f"{scheme}://{user}{at}{host}{rest}"
    if "%" in address:
        return _ESCAPE.sub(lambda escape: escape[0].upper(), address)
    return address


def maybe_same(text: str) -> str:
    """A form of the text that is equal for texts that may say the same."""
    return same(unicodedata.normalize("NFC", text).strip())
