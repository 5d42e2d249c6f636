"""Reading that begins at any chunk gives that chunk and all later ones, exactly."""

import random
from pathlib import Path
from typing import Any

import pytest

from connectors.files.chunks.chunk import Chunk
from connectors.files.chunks.reader import first_place, read_chunks
from connectors.files.layout.header import read_header
from connectors.files.profiles.profile import DEFAULT
from connectors.files.text.content import open_content
from connectors.settings import Limits
from data_samples.generate import write_payments
from schemas.tables import FORM_REPLY
from tests.examples import ALL

SEED = 31
LIMITS = Limits(record_bytes=600, field_bytes=300, look_ahead_bytes=1_500)
PIECES = (
    *('1,2,"a",', '"a ""b"" c",', '"open', 'stray"quote,', "支払い,", "é", "x" * 250),
    *("\n", "\n", "\r\n", "\n\n\n", "\r", ",,,,,,,\n", '"\n', "y" * 700, "z" * 1_600),
    '\n1,"' + "1,2,3\n" * 60 + '",3,4,5,6,7,8\n',
)


def shape(chunk: Chunk) -> Any:
    records = chunk.records
    columns = (records.start, records.end, records.first_line, records.last_line, records.fault)
    return chunk.start, chunk.end, [column.tolist() for column in columns]


def settled(path: Path, encoding: str, table: Any) -> None:
    content = open_content(path, encoding)
    header = read_header(content, table, DEFAULT, LIMITS)
    for block_bytes in (700, 3_000):
        whole = list(read_chunks(content, header, first_place(header), block_bytes))
        assert len(whole) > 3
        for number, chunk in enumerate(whole):
            again = read_chunks(content, header, chunk.start, block_bytes)
            assert [shape(one) for one in again] == [shape(one) for one in whole[number:]]
            behind = read_chunks(content, header, chunk.end, block_bytes)
            assert [shape(one) for one in behind] == [shape(one) for one in whole[number + 1 :]]


@pytest.mark.long(but=("utf-16",))
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_dirty_payments(tmp_path: Path, encoding: str) -> None:
    write_payments(tmp_path, 150, 0.2, SEED)
    path = tmp_path / "payments.csv"
    path.write_bytes(path.read_bytes().decode().encode(encoding))
    settled(path, "utf-8", None)


@pytest.mark.long
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize("seed", range(SEED, SEED + (8 if ALL else 1)))
def test_anything(tmp_path: Path, encoding: str, seed: int) -> None:
    chance = random.Random(seed)
    header = ",".join(field.name for field in FORM_REPLY.delivered)
    text = header + "\n" + "".join(chance.choices(PIECES, k=250 if ALL else 100))
    path = tmp_path / "a.csv"
    path.write_bytes(text.encode(encoding))
    settled(path, "utf-8", FORM_REPLY)
