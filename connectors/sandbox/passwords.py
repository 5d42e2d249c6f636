"""Passwords are kept as scrypt hashes that name their own cost."""

import hashlib
import hmac
import secrets

_BLOCK = 8


def hash_password(password: str, cost: int) -> str:
    """A new salted hash; `cost` is scrypt's n."""
    salt = secrets.token_bytes(16)
    return f"scrypt${cost}${salt.hex()}${_derive(password, salt, cost).hex()}"


def matches(password: str, kept: str) -> bool:
    """Whether the password is the one that was hashed."""
    _, cost, salt, derived = kept.split("$")
    found = _derive(password, bytes.fromhex(salt), int(cost))
    return hmac.compare_digest(found, bytes.fromhex(derived))


def _derive(password: str, salt: bytes, cost: int) -> bytes:
    return hashlib.scrypt(
        password.encode(errors="surrogatepass"),
        salt=salt,
        n=cost,
        r=_BLOCK,
        p=1,
        maxmem=256 * cost * _BLOCK,
    )
