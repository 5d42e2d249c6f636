"""Push keys: the name of one effect, the same whenever the same thing is sent again.

Each follows from facts that are there, so it is derived and not stored: a row that is sent again,
by this run or by any later one, carries the key it was first sent with. A PUT whose record may have
been overwritten meanwhile asks for another effect: to a host that answers a repeated key with its
first answer, the same key would say that nothing is to be done.
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
    """When its batch was opened: a restored database gives the same numbers again, not the time."""
    epoch: int
    """Grows when a PUT is to be sent anew behind what may have overwritten it."""
    reading: str
    """How the file was read, where the record has secrets: a hash of the profile; else empty."""


ASKING = len(AskingRow._fields)


def push_key(
    operation: Operation, canonical: str, key: tuple[object, ...], asking: AskingRow
) -> str:
    """Of a POST the row that asks for it and what it asks for; of a keyed PUT also when.

    The same row of the same file, taken in once more, asks for the same POST and for another PUT;
    read by another profile it is another record. `canonical` is the record's canonical JSON, `key`
    its business key.
    """
    if operation.table.secrets:
        # A key is shown: it must not be what a guess at a secret can be held against.
        content = asking.reading
    else:
        if operation.table.endpoint:  # A record of one's own: the same in any order of its fields.
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
