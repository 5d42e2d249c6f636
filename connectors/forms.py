"""The form of data one process leaves for another: waiting rows and hints for later stages.

It is derived from all of our code, from own record kinds, and from the library that writes frames,
so that no change of a shape can be missed. Data of another form is not read but made again from
what the database holds.
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
    """A digest equal for all processes that run this very code with the same own kinds."""
    root, digest = Path(__file__).parents[1], hashlib.sha256(version("polars").encode())
    for package in _PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            digest.update(str(path.relative_to(root)).encode() + b"\0")
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    for table in OWN.tables.values():
        digest.update(f"{table.name}\0{definition_of(table)}\0".encode())
    return digest.hexdigest()[:_DIGITS]
