"""Texts that say the same, or may: how a text of a second key is compared.

Certain is what RFC 3986 (6.2.2, 6.2.3) says of addresses: case of scheme, host and of escapes, and
the port that is the scheme's own, tell no two of them apart. Suspicious is what people cannot see:
blanks at either end, and the form of Unicode (NFC or NFD) a letter is written in.
"""

import re
import unicodedata

_OWN_PORTS = {"http": ":80", "https": ":443"}
_SCHEME = re.compile("[A-Za-z][A-Za-z0-9+.-]*")
_AUTHORITY = re.compile("[^/?#]*")
_ESCAPE = re.compile("%[0-9A-Fa-f]{2}")


def same(text: str) -> str:
    """A text by which two that certainly say the same are equal."""
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
    """A text by which two that may say the same are equal."""
    return same(unicodedata.normalize("NFC", text).strip())
