import csv
import io

import numpy as np
import polars as pl
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from connectors.files.chunks.chunk import _slow_cells
from connectors.files.text import readings
from connectors.files.text.dialect import Dialect
from connectors.files.text.lines import physical_lines
from tests.examples import examples
from tests.extracts import slow_records
from tests.extracts.cut_records import chunked, read

ALPHABETS = (
    [b",", b'"', b"\n", b"a"],
    [b",", b'"', b"\n", b"\r", b"\r\n", b"a", b"1", b" ", b"\0", b"\xff", "é".encode(), b"\x81"],
    [b'"', b'""', b',"', b'",', b"a", b"\n", b'\n"', b'"\n'],
    [b"a,a\n", b'"', b'a,"a', b'a"\n', b'"a","a"\n', b"\n", b"\r\n", b","],
    [b"a,a\n", b'a,"a"a"\n', b'"a""",b\n', b"a" * 12, b'x,y"\n', b'"'],
    [b"a,a\n", b'a,"', b'"\n', b'",a\n', b"aaaaaaaa\n", b"a,aaaaaa\n"],
    [b"a,a\n", b'a,"a "b" c"\n', b'"a"b\n', b'"123456"', b',"', b'a"', b"\n", b","],
    [
        b"#",
        b"##",
        b"\n#",
        b'\n##"',
        b"\r\n##a\0",
        b'a,"a\n##',
        b'"\n',
        b"a,a\n",
        b'"',
        b"\n##\xff\n",
    ],
)
SKIPPED: list[tuple[tuple[bytes, ...], tuple[str, ...]]] = [
    *[((), ())] * 2,
    *[((b"#",), ()), ((b"##",), ()), ((b"##", b"a,"), ())],
    *[((), ('#+|"?a,.*"',)), ((), (r"a{2,}", r"[^,]*,\"[^a]*")), ((b"##",), (r"\W+",))],
]
"""Comments, and patterns of whole lines."""
texts = st.sampled_from(ALPHABETS).flatmap(
    lambda alphabet: st.lists(st.sampled_from(alphabet), max_size=120).map(b"".join)
)
dialects = st.builds(
    lambda field, more, ahead, encoding, line_breaks, skipped: Dialect(
        encoding=encoding,
        max_field_bytes=field,
        max_record_bytes=field + more,
        look_ahead_bytes=field + more + ahead,
        line_breaks=line_breaks,
        comment=skipped[0],
        skip_lines=skipped[1],
    ),
    st.sampled_from([3, 8, 1000]),
    st.sampled_from([0, 2, 20, 1000]),
    st.sampled_from([0, 1, 10, 60, 1000]),
    st.sampled_from(["utf-8", "cp1252", "latin-1"]),
    st.booleans(),
    st.sampled_from(SKIPPED),
)
cuts = st.lists(st.integers(0, 20), max_size=150)


@pytest.mark.long
@settings(max_examples=examples(200), deadline=None)
@given(texts, st.booleans(), st.booleans())
def test_lines_with_a_quote_are_read_apart_as_among_all(
    data: bytes, final: bool, blanks_dropped: bool
) -> None:
    text, dialect = np.frombuffer(data, np.uint8), Dialect(blanks_dropped=blanks_dropped)
    lines = physical_lines(text, final=final, returns=b"\r" in data)
    each = zip(
        readings._followed_apart(text, lines, dialect),
        readings._followed_all(text, lines, dialect),
        strict=True,
    )
    assert all(np.array_equal(apart, among_all) for apart, among_all in each)


@pytest.mark.long
@settings(max_examples=examples(400), deadline=None)
@given(texts, st.integers(1, 4), dialects, cuts)
def test_like_the_slow_reader_however_cut(
    data: bytes, width: int, dialect: Dialect, sizes: list[int]
) -> None:
    expected = slow_records.read(data, width, dialect)
    whole, clean = read(data, width, dialect)
    assert whole == expected
    cut, clean_of_cut = read(data, width, dialect, sizes)
    assert cut == expected
    assert chunked(data, width, dialect, sizes) == expected
    good = [data[start:end] for start, end, _, _, fault in expected if not fault]
    assert clean == clean_of_cut == b"".join(record + b"\n" for record in good)


@settings(max_examples=examples(200), deadline=None)
@given(texts, st.integers(1, 4))
def test_other_readers_agree_on_sound_text(data: bytes, width: int) -> None:
    found, clean = read(data, width, Dialect())
    count = sum(not record.fault for record in found)
    note(repr(clean))
    rows = list(csv.reader(io.StringIO(clean.decode(), newline=""), strict=True))
    assert [len(row) for row in rows] == [width] * count
    if count:
        frame = pl.read_csv(clean, has_header=False, infer_schema=False)
        assert frame.shape == (count, width)
        assert [[value or "" for value in row] for row in frame.rows()] == rows
        slow = _slow_cells(clean, frame.columns, Dialect())
        assert slow.schema == frame.schema
        assert [[value or "" for value in row] for row in slow.rows()] == rows
