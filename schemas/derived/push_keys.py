"""Push keys: the name of one effect, which stays the same when the same thing is sent again.

A key follows from existing facts, so it is derived and not stored: a row that is sent again, by
this run or a later one, has the key it was first sent with. A PUT whose record may have been
overwritten meanwhile asks for another effect: a host that answers a repeated key with its first
answer would take the same key as nothing to do.
"""

import json
from datetime import UTC, datetime
from typing import NamedTuple
from uuid import UUID, uuid5

from schemas.derived.json_text import content_hash
from schemas.operations import Operation

_NAMESPACE = UUID("5b0a5f5e-7c1d-5a9e-9a44-6b1f0f5a7d21")


class AskingRow(NamedTuple):
    """The delivered row that asks for an effect."""

    extract: str
    """SHA-256 of the file that brought it."""
    record_number: int
    opened_at: datetime
    """When its batch was opened: a restored database repeats numbers, but not this time."""
    epoch: int
    """Grows when a PUT has to be sent again because its record may have been overwritten."""
    reading: str
    """Hash of the profile the file was read by if the record has secrets; else empty."""


ASKING = len(AskingRow._fields)


def push_key(
    operation: Operation, canonical: str, key: tuple[object, ...], asking: AskingRow
) -> str:
    """The push key of a row: for a POST, the row and its content; for a keyed PUT, also the time.

    The same row of the same file, taken in again, asks for the same POST but for another PUT. Read
    by another profile, it is another record. `canonical` is the record's canonical JSON, `key` its
    business key.
    """
    if operation.table.secrets:
        # Keys are shown, so a key must not allow testing guesses of a secret.
        content = asking.reading
    else:
        if operation.table.endpoint:  # Own records: the order of fields must not matter.
            members = json.loads(canonical, parse_float=str, parse_int=str)
            canonical = json.dumps(members, sort_keys=True)
        content = content_hash(canonical)
    facts: tuple[object, ...] = (operation.name, asking.extract, asking.record_number)
    if operation.keyed and None not in key:
        opened_at = asking.opened_at.astimezone(UTC).isoformat()
        facts += (*key, content, opened_at, asking.epoch)
    else:
        facts += (content,)
    return str(uuid5(_NAMESPACE, json.dumps(facts, ensure_ascii=True)))
