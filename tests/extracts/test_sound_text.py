import pytest

from connectors.files.text.dialect import Dialect
from connectors.files.text.records import conserved, sound, split
from tests.extracts.cut_records import read


def test_sound_is_the_block_itself_when_nothing_changes() -> None:
    block = b'1,a\n2,"b\nc"\n'
    assert sound(block, split(block, 2, Dialect(), line=1, final=True)) is block


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"1,a\r\n2,b\r\n", b"1,a\n2,b\n"),
        (b'1,a\r\n2,"b\r\nc"\r3,d\n\n4,e', b'1,a\n2,"b\r\nc"\n3,d\n4,e\n'),
        (b"1,a\n2\n3,c\n", b"1,a\n3,c\n"),
        (b"1\n2\n", b""),
    ],
)
def test_sound_text(data: bytes, expected: bytes) -> None:
    assert read(data, 2, Dialect())[1] == expected


def test_conservation_can_fail() -> None:
    block = b"1,a\n2,b\n"
    settled = split(block, 2, Dialect(), line=1, final=True)
    settled.end[0] -= 1
    assert not conserved(block, settled)
