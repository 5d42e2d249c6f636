"""Escapes, delimiters of several signs and blanks beside quotes, as a slow reader reads them."""

from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors.files.chunks.chunk import Place
from connectors.files.text.dialect import NEVER, OURS, Dialect, RecordFault
from connectors.files.text.pieces import Pieces
from tests.examples import examples
from tests.extracts import slow_records
from tests.extracts.cut_records import chunked, chunks, read


class Signs(NamedTuple):
    """What a dialect states beside the usual."""

    delimiter: bytes = b","
    quote: bytes = b'"'
    escape: bytes = b""
    blanks_dropped: bool = False
    comment: tuple[bytes, ...] = ()
    skip_lines: tuple[str, ...] = ()


FORMS = [
    Signs(escape=b"\\"),
    Signs(b"\t", escape=b"\\"),
    *(Signs(b"\t", none) for none in (NEVER, OURS)),
    Signs(b"||", NEVER, b"\\", comment=(b"#",)),
    Signs(b"||"),
    Signs(b"~|~"),
    Signs(b"||", escape=b"\\", blanks_dropped=True),
    Signs(blanks_dropped=True),
    Signs(b"\t", blanks_dropped=True),
    Signs(b" ", blanks_dropped=True, comment=(b"#",)),
    Signs(b"||", comment=(b"#", b"a||")),
    Signs(b"||", skip_lines=(r"\|\|a.*", '"a"?')),
    Signs(escape=b"\\", skip_lines=(r'.*\\"?', '[^"]*"a')),
]
PIECES = [
    *(b"D", b"D", b"D", b'"', b'"', b"\n", b"\r\n", b"a", b"\\", b"\\", b"|", b"~", b" ", b"\t"),
    *(b'D"', b'"D', b'\n"', b'"\n', b'D "', b'" D', b'\\"', b"\\D", b"\\n", b"\\N", b"D\\ND"),
    *(b"\1a\1D", b"\n\1", b"\1\n"),
    *(
        b"aDa\n",
        b'aD"aDa"\n',
        b"aD\\N\n",
        b"#",
        b"\n#",
        b"\x1f",
        b"\0",
        b"\1",
        "é".encode(),
        b"\xff",
    ),
]


@st.composite
def delivered(draw: st.DrawFn) -> tuple[bytes, Dialect]:
    signs = draw(st.sampled_from(FORMS))
    field = draw(st.sampled_from([3, 8, 1000]))
    record = field + draw(st.sampled_from([0, 20, 1000]))
    dialect = Dialect(
        **signs._asdict(),
        encoding=draw(st.sampled_from(["utf-8", "cp1252"])),
        max_field_bytes=field,
        max_record_bytes=record,
        look_ahead_bytes=record + draw(st.sampled_from([0, 10, 1000])),
        line_breaks=draw(st.booleans()),
    )
    pieces = draw(st.lists(st.sampled_from(PIECES), max_size=60))
    return b"".join(pieces).replace(b"D", signs.delimiter), dialect


@pytest.mark.long
@settings(max_examples=examples(1500, 200), deadline=None)
@given(delivered(), st.integers(1, 4), st.lists(st.integers(0, 20), max_size=100))
def test_like_the_slow_reader_however_cut(
    given: tuple[bytes, Dialect], width: int, sizes: list[int]
) -> None:
    data, dialect = given
    expected = slow_records.read(data, width, dialect)
    assert read(data, width, dialect)[0] == expected
    assert read(data, width, dialect, sizes)[0] == expected
    assert chunked(data, width, dialect, sizes) == expected


@pytest.mark.long
@settings(max_examples=examples(1500, 200), deadline=None)
@given(delivered(), st.integers(1, 4))
def test_cells_are_those_of_the_slow_reader(given: tuple[bytes, Dialect], width: int) -> None:
    data, dialect = given
    wanted = [
        [
            None if cell is None else cell.decode(dialect.encoding)
            for cell in slow_records.cells(data[one.start : one.end], dialect)
        ]
        for one in slow_records.read(data, width, dialect)
        if one.fault is RecordFault.NONE
    ]
    found = [
        list(row)
        for chunk in chunks(Pieces(iter([data])), width, dialect, Place(0, 1, 1))
        for row in chunk.cells(width).rows()
    ]
    assert found == wanted


@pytest.mark.long
@pytest.mark.parametrize(
    ("signs", "data"),
    [
        (Signs(b"||"), b'"aaaaaa\nb"||c\na||b\n'),
        (Signs(b"||"), b'"aaaaaa\nb"|||c"\na||b\n'),
        (Signs(b"~|~"), b'"aaaaaa\nb"~|~c\na~|~b\n'),
        (Signs(escape=b"\\"), b'"aaaaaa\nb\\\\\\""",c\na,b\n'),
        (Signs(escape=b"\\"), b'"aaaaaa\nb"\\,c\na,b\n'),
        (Signs(b"||", escape=b"\\"), b'"aaaaaa\nb\\\\"||c\na\\||||b\n'),
        (Signs(blanks_dropped=True), b'"aaaaaa\nb"  , "c" \na,b\n'),
        (Signs(b"||", comment=(b"##",)), b'"aaaaaa\nb\n## "\n##\na||b\n'),
        (Signs(skip_lines=("##.*",)), b'"aaaaaa\nb\n## "\n##"\na,b\n'),
    ],
)
@pytest.mark.parametrize("quote_limit", [6, 1000])
def test_cut_at_every_byte(signs: Signs, data: bytes, quote_limit: int) -> None:
    dialect = Dialect(
        **signs._asdict(),
        max_field_bytes=6,
        max_record_bytes=6,
        look_ahead_bytes=quote_limit,
    )
    expected = slow_records.read(data, 2, dialect)
    for at in range(1, len(data)):
        assert read(data, 2, dialect, [at, 1, 1])[0] == expected, at
        assert chunked(data, 2, dialect, [at, 1, 1]) == expected, at


@pytest.mark.parametrize(
    ("record", "cells"),
    [
        (rb'1,"a\"b"', ["1", 'a"b']),
        (rb'1,"a""b\\"', ["1", 'a"b\\']),
        (rb"1,a\,b\n\t\r\b\f\v", ["1", "a,b\n\t\r\b\f\v"]),
        (rb"\N,\\N", [None, r"\N"]),
        (rb',""', [None, ""]),
        (b'1,"a\\\nb"', ["1", "a\nb"]),
        (rb'1,"\N"', None),
        (rb'1,"a,\N,b"', None),
        (rb"1,a\N", None),
        (rb"\Na,1", None),
        (rb"1,\q", None),
        (rb"1,\x41", None),
        (rb"1,\0", None),
        ("1,\\é".encode(), None),
        (b"1,a\\", None),
    ],
)
def test_which_escapes_are_known(record: bytes, cells: list[str | None] | None) -> None:
    dialect = Dialect(escape=b"\\")
    (chunk,) = chunks(Pieces(iter([record + b"\n1,2\n"])), 2, dialect, Place(0, 1, 1))
    assert list(chunk.faults.values()) == ([] if cells else ["StrayEscape"])
    assert chunk.cells(2).rows() == [*([tuple(cells)] if cells else []), ("1", "2")]
