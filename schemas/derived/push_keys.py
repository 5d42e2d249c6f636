"""Push keys: the name of one effect, the same whenever the same thing is sent again.

Each follows from facts that never change, so it is derived and not stored: a record that is sent
again, by this run or by any later one, carries the key it was first sent with.
"""

import json
from uuid import UUID, uuid5

from schemas.derived.json_text import content_hash
from schemas.operations import Operation

_NAMESPACE = UUID("5b0a5f5e-7c1d-5a9e-9a44-6b1f0f5a7d21")


def push_key(
    operation: Operation, canonical: str, key: tuple[object, ...], extract: str, record_number: int
) -> str:
    """Of a keyed PUT the record and its content, of any other the delivered row that asks for it.

    `canonical` is the record's canonical JSON, `key` its business key, `extract` the SHA-256 of
    the file that brought it.
    """
    if operation.keyed and None not in key:
        facts: tuple[object, ...] = (operation.name, *key, content_hash(canonical))
    else:
        facts = (operation.name, extract, record_number)
    return str(uuid5(_NAMESPACE, json.dumps(facts, ensure_ascii=True)))
