from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from connectors.errors import EvidenceBroken
from connectors.files.archived.archive import store
from connectors.files.archived.blocks import blocks
from connectors.files.archived.passages import Passages
from connectors.files.chunks.chunk import Place
from connectors.files.incoming.delivery import find_extract
from connectors.files.text.content import open_content, open_kept
from connectors.files.text.dialect import Dialect
from connectors.files.text.pieces import Pieces, record_pattern
from connectors.settings import Limits
from tests.examples import examples
from tests.extracts.cut_records import chunks

TEXT = "Id,Name\r\n1,Grüße 😀 支払\r\n2,\r\n"


@pytest.mark.parametrize(
    ("delivered", "whole"),
    [
        (TEXT.encode(), TEXT.encode()),
        (TEXT.encode("utf-8-sig"), TEXT.encode("utf-8-sig")),
        (b"\xff\xfe" + TEXT.encode("utf-16-le"), TEXT.encode()),
        (b"\xfe\xff" + TEXT.encode("utf-16-be"), TEXT.encode()),
        (b"", b""),
        (b"\xff\xfe", b""),
    ],
)
def test_every_start_and_size_gives_the_same_text(
    tmp_path: Path, delivered: bytes, whole: bytes
) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(delivered)
    content = open_content(path)
    for start in range(len(whole) + 2):
        for size in (1, 2, 3, 7, 1000):
            given = list(blocks(content, start, size))
            assert b"".join(given) == whole[start:], (start, size)
            assert all(0 < len(block) <= size for block in given), (start, size)


def test_a_lone_surrogate_costs_its_own_place_only(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes("\ufeffa\nb\ud800c\nd\n".encode("utf-16-le", "surrogatepass"))
    text = b"".join(blocks(open_content(path), 0, 4))
    good, bad, last = text.splitlines()
    assert (good, last) == (b"a", b"d")
    with pytest.raises(UnicodeDecodeError):
        bad.decode()


@pytest.mark.parametrize("signs", [b"\x81", b"\x810", b"\x810\x81", b"\xff", b"0"])
@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_no_byte_is_lost_where_a_file_ends_within_a_sign(
    tmp_path: Path, signs: bytes, size: int
) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"a,b\n1,\xc4\xe3" + signs)
    text = b"".join(blocks(open_content(path, "gb18030"), 0, size))
    assert text.decode("utf-8", "surrogatepass").encode("gb18030", "surrogateescape") == (
        path.read_bytes()
    )


@pytest.mark.parametrize(("start", "size"), [(-1, 10), (0, 0)])
def test_impossible_places_are_a_bug(tmp_path: Path, start: int, size: int) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"Id\n")
    with pytest.raises(ValueError, match="must be a place and a size"):
        blocks(open_content(path), start, size)


def test_pieces_of_a_line_have_their_own_text_whatever_is_blank_behind_them() -> None:
    dialect = Dialect(max_field_bytes=400, max_record_bytes=400, look_ahead_bytes=800)
    block = b"x" * 900 + b"\n\n\n"
    (chunk,) = chunks(Pieces(iter([block])), 2, dialect, Place(0, 1, 1))
    assert chunk.positions()["data"].to_list() == ["x" * 400, "x" * 400, "x" * 100]


@pytest.mark.long
@settings(max_examples=examples(500), deadline=None)
@given(
    text=st.text('a",\r\n', max_size=24).map(str.encode),
    begun=st.integers(1, 6),
    size=st.integers(1, 6),
    bound=st.integers(1, 24),
)
@example(text=b'"a"b' + 20 * b"c", begun=3, size=1, bound=24)
@example(text=b'"a""' + 20 * b'c"', begun=4, size=1, bound=24)
@example(text=b'a,"' + 20 * b"c", begun=3, size=1, bound=24)
def test_a_look_ahead_says_what_all_the_bytes_say(
    text: bytes, begun: int, size: int, bound: int
) -> None:
    dialect = Dialect(max_field_bytes=1, max_record_bytes=1, look_ahead_bytes=bound)
    behind = [text[at : at + size] for at in range(begun, len(text), size)]
    found = record_pattern(dialect).match(text, 0, bound + 1)
    expected = found.end() if found and found.end() <= bound else None
    assert Pieces(iter(behind)).record_size(text[:begun], dialect) == expected


def test_no_block_is_read_for_what_is_no_record_whatever_comes() -> None:
    blocks_read = 0

    def behind() -> Iterator[bytes]:
        nonlocal blocks_read
        while True:
            blocks_read += 1
            yield b"c" * 100

    dialect = Dialect(max_field_bytes=1, max_record_bytes=1, look_ahead_bytes=10_000)
    assert Pieces(behind()).record_size(b'"a"b', dialect) is None
    assert blocks_read == 1


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_passages_in_order_read_a_text_once(tmp_path: Path, encoding: str) -> None:
    """What is before a passage is read again for one further up alone."""
    lines = [f"{number},{'é' * 60}" for number in range(30_000)]
    path = tmp_path / "a.csv"
    path.write_bytes("\n".join(lines).encode(encoding))
    kept = store(find_extract(str(path), Limits()), tmp_path / "archive", Limits())
    content, passages = open_kept(kept.evidence, None, name="a.csv"), Passages()
    ends = [*accumulate(len(text.encode()) + 1 for text in lines)]

    def read(number: int) -> str:
        end = ends[number] - 1
        return passages.read(content, end - len(lines[number].encode()), end).decode()

    assert read(0) == lines[0]
    with kept.path.open("r+b") as file:
        file.write(b"x")
    assert [*map(read, range(20_000, 30_000, 997))] == lines[20_000::997]
    with pytest.raises(EvidenceBroken):
        read(0)
