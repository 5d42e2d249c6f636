"""Properties of encodings and their bytes."""

from functools import cache, partial
from itertools import chain, product
from pathlib import Path

from connectors.settings import MIB


@cache
def contains_ascii(encoding: str) -> bool:
    """Whether the bytes of ASCII mean the same in this encoding."""
    plain = bytes(range(128))
    return plain.decode(encoding, "replace") == plain.decode("ascii")


@cache
def can_be_divided(encoding: str) -> bool:
    """Whether every ASCII byte always means its ASCII character, so bytes can be split as such.

    False for UTF-16, but also for encodings such as Shift JIS whose second bytes look like ASCII.
    """
    if "escape" in encoding:
        # Not a text encoding: a backslash begins an escape sequence.
        return False
    ascii_bytes = bytes(range(128))
    probes = ascii_bytes + b"+AEE-~{VP~}"
    if probes.decode(encoding, "replace") != probes.decode("ascii"):
        return False
    for lead in range(128, 256):
        for sign in ascii_bytes:
            text = bytes((lead, sign)).decode(encoding, "replace")
            if not text.endswith(chr(sign)) or len(text) < 2:
                return False
    return True


@cache
def stands_alone(encoding: str, sign: bytes) -> bool:
    """Whether a sign is never the second half of another character."""
    pairs = (bytes([lead]) + sign for lead in range(128, 256))
    return all(pair.decode(encoding, "replace").endswith(sign.decode("ascii")) for pair in pairs)


@cache
def utf8_sizes(encoding: str) -> bytes | None:
    """UTF-8 length of the character of each byte; None if characters may have several bytes."""
    signs = [bytes([byte]).decode(encoding, "replace") for byte in range(256)]
    # A character of several bytes has a high one; searching from the top finds it soonest.
    for lead in reversed(range(256)):
        pairs = bytes(chain(*product((lead,), range(256))))
        if pairs.decode(encoding, "replace") != "".join(signs[byte] for byte in pairs):
            return None
    return bytes(len(sign.encode()) for sign in signs)


@cache
def no_signs(encoding: str) -> bytes | None:
    """The bytes that are no characters; None if that depends on the bytes beside them."""
    if utf8_sizes(encoding) is None:
        return None
    return bytes(byte for byte in range(256) if not bytes([byte]).decode(encoding, "ignore"))


def is_utf8(path: Path) -> bool:
    """Whether a text without a byte-order mark is UTF-8 and has characters beyond ASCII."""
    ascii_alone = True
    with path.open(encoding="utf-8", newline="") as file:
        try:
            for number, part in enumerate(iter(partial(file.read, MIB), "")):
                if number == 0 and part.startswith("\ufeff"):
                    return False
                ascii_alone &= part.isascii()
        except UnicodeDecodeError:
            return False
    return not ascii_alone
