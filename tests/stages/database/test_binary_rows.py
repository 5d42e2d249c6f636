"""Amounts and texts written in binary, as COPY reads them."""

from decimal import Decimal

import numpy as np
import pytest

from connectors.postgres.bulk.binary_copy import HEAD, TAIL
from connectors.postgres.bulk.binary_rows import room, write_rows
from flows.stages.workspace import Workspace

EDGES = {10**power + step for power in range(19) for step in (-1, 0, 1)} | {2**63 - 1}
MICRO = [sign * edge for edge in sorted(EDGES) for sign in (1, -1)]
TEXT = bytes(range(256))
NOWHERE = np.empty(0, np.int64)
EMPTY = np.frombuffer(b"", np.uint8)
WAYS = pytest.mark.parametrize("way", ["compiled", "as it stands"])


def written(way: str, *arrays: object) -> bytes:
    """What the loop writes, by itself or as machine code, within the room it is given."""
    *_, out = arrays
    assert isinstance(out, np.ndarray)
    write = write_rows if way == "compiled" else write_rows.__wrapped__  # type: ignore[attr-defined]
    return bytes(out[: write(*arrays)])


@WAYS
def test_the_server_reads_each_amount_as_it_is(way: str, still: Workspace) -> None:
    """Millionths at each border between groups of digits, up to the largest there is."""
    sizes, shape = np.zeros(1, np.int64), (1, len(MICRO))
    values, scales = np.array([MICRO], np.int64), np.full(shape, 6, np.int8)
    out = np.empty(room(sizes, len(MICRO)), np.uint8)
    rows = written(
        way, values, scales, np.ones(shape, np.bool_), sizes, EMPTY, NOWHERE, NOWHERE, out
    )
    with still.database.connect() as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TEMP TABLE amounts (number serial, amount numeric)")
        with cursor.copy("COPY amounts (amount) FROM STDIN (FORMAT BINARY)") as copy:
            copy.write(HEAD + rows + TAIL)
        found = cursor.execute("SELECT amount::text FROM amounts ORDER BY number").fetchall()
    assert found == [(f"{Decimal(micro).scaleb(-6):f}",) for micro in MICRO]


@WAYS
def test_a_text_of_any_length_is_written_whole(way: str) -> None:
    start = np.array([at for at in range(0, 40, 3) for _ in range(40)], np.int64)
    stop = start + np.array([*range(40)] * len(range(0, 40, 3)), np.int64)
    none, shape = np.empty(0, np.int64), (0, len(start))
    out = np.empty(room(none, len(start)) + int((stop - start).sum()), np.uint8)
    found = written(
        way, np.empty(shape, np.int64), np.empty(shape, np.int8), np.empty(shape, np.bool_),
        none, np.frombuffer(TEXT, np.uint8), start, stop, out,
    )  # fmt: skip
    texts = (TEXT[a:b] for a, b in zip(start.tolist(), stop.tolist(), strict=True))
    assert found == b"".join(b"\0\1" + len(text).to_bytes(4) + text for text in texts)
