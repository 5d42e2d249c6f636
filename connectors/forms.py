"""The form of what one process leaves for another: rows that wait, and hints for later stages.

It is derived from all of our code, from record kinds of one's own, and from the library that writes
frames, so that no change of a shape can be forgotten. What has another form is not read: all of it
can be made again from what the database holds, and that is done.
"""

import hashlib
from functools import cache
from importlib.metadata import version
from pathlib import Path

from schemas.own_definition import definition_of
from schemas.tables import OWN

_PACKAGES = ("connectors", "flows", "schemas")
_DIGITS = 16


@cache
def form_of_code() -> str:
    """The same for every process that runs this very code by the same definitions."""
    root, digest = Path(__file__).parents[1], hashlib.sha256(version("polars").encode())
    for package in _PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            digest.update(str(path.relative_to(root)).encode() + b"\0")
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    for table in OWN.tables.values():
        digest.update(f"{table.name}\0{definition_of(table)}\0".encode())
    return digest.hexdigest()[:_DIGITS]
