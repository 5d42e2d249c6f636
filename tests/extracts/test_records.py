import pytest

from connectors.files.text.dialect import Dialect
from connectors.files.text.records import split
from tests.extracts import slow_records
from tests.extracts.cut_records import read, summary

TIGHT = Dialect(max_field_bytes=8, max_record_bytes=20, look_ahead_bytes=40)

# What is delivered, its width, and for each record its first line, last line and fault.
TABLE: list[tuple[str, bytes, int, list[tuple[int, int, str]]]] = [
    ("nothing", b"", 2, []),
    ("blank lines only", b"\n\r\n\r\n\n", 2, []),
    ("no last line end", b"1,a", 2, [(1, 1, "None")]),
    ("LF, CRLF and CR", b"1,a\n2,b\r\n3,c\r4,d", 2, [(n, n, "None") for n in (1, 2, 3, 4)]),
    ("CR CR LF is one blank line", b"1,a\r\r\n2,b\n", 2, [(1, 1, "None"), (3, 3, "None")]),
    ("blank line between", b"1,a\n\n2,b\n", 2, [(1, 1, "None"), (3, 3, "None")]),
    ("blank line, width 1", b"a\n\nb\n", 1, [(1, 1, "None"), (3, 3, "None")]),
    ("quoted empty, width 1", b'a\n""\nb\n', 1, [(n, n, "None") for n in (1, 2, 3)]),
    (
        "line of spaces",
        b"1,a\n   \n2,b",
        2,
        [(1, 1, "None"), (2, 2, "TooFewFields"), (3, 3, "None")],
    ),
    ("only delimiters", b",,\n", 3, [(1, 1, "None")]),
    ("extra empty field", b"1,a,\n2,b\n", 2, [(1, 1, "TooManyFields"), (2, 2, "None")]),
    ("missing field", b"1\n2,b\n", 2, [(1, 1, "TooFewFields"), (2, 2, "None")]),
    ("10,000 fields", b"," * 9999 + b"\n1,b\n", 2, [(1, 1, "TooManyFields"), (2, 2, "None")]),
    ("quoted delimiter", b'1,"a,b"\n', 2, [(1, 1, "None")]),
    ("doubled quotes", b'1,"a ""b"" c"\n2,""""\n3,""\n', 2, [(n, n, "None") for n in (1, 2, 3)]),
    ("quoted LF", b'1,"a\nb"\n2,c\n', 2, [(1, 2, "None"), (3, 3, "None")]),
    ("quoted CRLF and CR", b'1,"a\r\nb\rc"\r\n2,c\r\n', 2, [(1, 3, "None"), (4, 4, "None")]),
    ("quoted blank lines", b'1,"a\n\n\nb"\n2,c\n', 2, [(1, 4, "None"), (5, 5, "None")]),
    ("quoted lines like records", b'1,"a\n2,b\n3,c"\n4,d\n', 2, [(1, 3, "None"), (4, 4, "None")]),
    ("quote at the very end", b'1,"a"', 2, [(1, 1, "None")]),
    ("inches", b'1,5" pipe\n2,b\n', 2, [(1, 1, "StrayQuote"), (2, 2, "None")]),
    ("inches twice", b'1,5" x 6"\n2,b\n', 2, [(1, 1, "StrayQuote"), (2, 2, "None")]),
    (
        "inches on every line",
        b'1,5" pipe\n2,6" pipe\n3,7" pipe\n',
        2,
        [(n, n, "StrayQuote") for n in (1, 2, 3)],
    ),
    ("text after quote", b'1,"a"b\n2,b\n', 2, [(1, 1, "StrayQuote"), (2, 2, "None")]),
    ("space after quote", b'1,"a" \n2,b\n', 2, [(1, 1, "StrayQuote"), (2, 2, "None")]),
    ("space before quote", b'1, "a"\n2,b\n', 2, [(1, 1, "StrayQuote"), (2, 2, "None")]),
    ("quotes not doubled", b'1,"say "hi" now"\n2,b\n', 2, [(1, 1, "StrayQuote"), (2, 2, "None")]),
    (
        "quotes not doubled, on every line",
        b'1,"a "b" c"\n2,"d "e" f"\n3,"g"h"\n',
        2,
        [(n, n, "StrayQuote") for n in (1, 2, 3)],
    ),
    (
        "quotes not doubled, then a line that is no record",
        b'1,"say "hi" now"\n2\n3,b\n',
        2,
        [(1, 1, "StrayQuote"), (2, 2, "TooFewFields"), (3, 3, "None")],
    ),
    (
        "quotes not doubled in the first of two lines",
        b'1,"say "hi"\nnow"\n2,b\n',
        2,
        [(1, 1, "StrayQuote"), (2, 2, "StrayQuote"), (3, 3, "None")],
    ),
    (
        "text after quote, on a later line",
        b'1,"a\nb"c\n2,d\n',
        2,
        [(1, 2, "StrayQuote"), (3, 3, "None")],
    ),
    (
        "quotes not doubled in text of three lines",
        b'1,"one\nsay "hi"\nthree"\n2,d\n',
        2,
        [(1, 3, "StrayQuote"), (4, 4, "None")],
    ),
    (
        "quotes not doubled in text of three lines, on one as wide as a record",
        b'1,"one\nwell, "hi"\nthree"\n2,d\n',
        2,
        [(1, 3, "StrayQuote"), (4, 4, "None")],
    ),
    (
        "never closed",
        b'1,"a\n2,b\n3,c\n',
        2,
        [(1, 1, "UnterminatedQuote"), (2, 2, "None"), (3, 3, "None")],
    ),
    ("never closed, last", b'1,a\n2,"b', 2, [(1, 1, "None"), (2, 2, "UnterminatedQuote")]),
    ("never closed, then blanks", b'1,"b\n\n\n', 2, [(1, 1, "UnterminatedQuote")]),
    (
        "never closed, blank line, good line",
        b'1,"a\n\n2,b\n',
        2,
        [(1, 1, "UnterminatedQuote"), (3, 3, "None")],
    ),
    (
        "never closed, nothing good follows",
        b'1,"a\nb\n\nc\n\n',
        2,
        [(1, 4, "UnterminatedQuote")],
    ),
    (
        "never closed, then a field that is quoted",
        b'1,"a\n2,b\n3,"c"\n4,d\n',
        2,
        [(1, 1, "UnterminatedQuote"), (2, 2, "None"), (3, 3, "None"), (4, 4, "None")],
    ),
    (
        "closed far away with the wrong width",
        b'1,"a,x\n2,b,x\n3,c",x,y\n4,d,x\n',
        3,
        [(1, 1, "UnterminatedQuote"), (2, 2, "None"), (3, 3, "StrayQuote"), (4, 4, "None")],
    ),
    (
        "the closing line begins a record",
        b'"a\n1,"\nx"\n2,b\n',
        2,
        [(1, 1, "UnterminatedQuote"), (2, 3, "None"), (4, 4, "None")],
    ),
    (
        "two lines with the wrong width, none of them a record",
        b'1,"a\nb",x\n2,b\n',
        2,
        [(1, 2, "TooManyFields"), (3, 3, "None")],
    ),
    (
        "resumes at a record of several lines",
        b'1,"a\nb"c\n2,"d\ne"\n3,f\n',
        2,
        [(1, 2, "StrayQuote"), (3, 4, "None"), (5, 5, "None")],
    ),
    ("NUL", b"1,a\0\n2,b\n", 2, [(1, 1, "NulCharacter"), (2, 2, "None")]),
    ("lone byte", b"1,\xff\n2,b\n", 2, [(1, 1, "Encoding"), (2, 2, "None")]),
    ("overlong", b"1,\xc0\xaf\n2,b\n", 2, [(1, 1, "Encoding"), (2, 2, "None")]),
    ("surrogate", b"1,\xed\xa0\x80\n2,b\n", 2, [(1, 1, "Encoding"), (2, 2, "None")]),
    (
        "cut character",
        b"1,\xc3\n\xa9,b\n3,c\n",
        2,
        [(1, 1, "Encoding"), (2, 2, "Encoding"), (3, 3, "None")],
    ),
    ("accents", "1,é\n2,€\n".encode(), 2, [(1, 1, "None"), (2, 2, "None")]),
    ("bad byte within quotes", b'1,"a\n\xff"\n2,b\n', 2, [(1, 2, "Encoding"), (3, 3, "None")]),
    ("quotes before width", b'1,2,3,5"\n', 2, [(1, 1, "StrayQuote")]),
    ("NUL before width", b"1,\0,\n", 2, [(1, 1, "NulCharacter")]),
    ("NUL before quotes", b'1,\0"\n2,b\n', 2, [(1, 1, "NulCharacter"), (2, 2, "None")]),
    ("NUL before an open quote", b'1,b\n2,"\0', 2, [(1, 1, "None"), (2, 2, "NulCharacter")]),
    ("a tail of NUL", b"1,b\n" + bytes(9), 2, [(1, 1, "None"), (2, 2, "NulCharacter")]),
    ("encoding before width", b"1\xff\n2,b\n", 2, [(1, 1, "Encoding"), (2, 2, "None")]),
    ("encoding before quotes", b'1,\xff"\n2,b\n', 2, [(1, 1, "Encoding"), (2, 2, "None")]),
    ("NUL before encoding", b"1,\0\xff\n", 2, [(1, 1, "NulCharacter")]),
]

LIMITS: list[tuple[str, bytes, int, list[tuple[int, int, str]]]] = [
    ("field of 8", b"1,12345678\n2,b\n", 2, [(1, 1, "None"), (2, 2, "None")]),
    ("field of 9", b"1,123456789\n2,b\n", 2, [(1, 1, "FieldTooLarge"), (2, 2, "None")]),
    ("quoted field of 8", b'1,"123456"\n', 2, [(1, 1, "None")]),
    ("quoted field of 9", b'1,"1234567"\n2,b\n', 2, [(1, 1, "FieldTooLarge"), (2, 2, "None")]),
    (
        "quoted field of 8 over lines",
        b'1,"a\n2,bc"\n4,d\n',
        2,
        [(1, 2, "None"), (3, 3, "None")],
    ),
    (
        "quoted field of 9 over lines, the inner one like a record",
        b'1,"a\n2,bcd"\n4,d\n',
        2,
        [(1, 2, "FieldTooLarge"), (3, 3, "None")],
    ),
    (
        "several, in the first and in the last column",
        b'"\n2,b\n3,c\n",d\n5,e\n6,"\n7,f\n8,g"\n9,"\n10,hi\n"',
        2,
        [
            (1, 4, "FieldTooLarge"),
            (5, 5, "None"),
            (6, 8, "FieldTooLarge"),
            (9, 11, "FieldTooLarge"),
        ],
    ),
    (
        "record of 20 over lines",
        b'1,"a\n2,bc",3,"a\n4,b"\n1,2,3,4\n',
        4,
        [(1, 3, "None"), (4, 4, "None")],
    ),
    (
        "record of 21 over lines, an inner one like a record",
        b'1,"a\n2,bc",3,"a\n2,bc"\n1,2,3,4\n',
        4,
        [(1, 3, "RecordTooLarge"), (4, 4, "None")],
    ),
    (
        "closes after 40 bytes: one record",
        b'1,"a\n' + b"2,bcdef\n" * 4 + b'3,"\n4,d\n',
        2,
        [(1, 6, "RecordTooLarge"), (7, 7, "None")],
    ),
    (
        "closes after 41 bytes, too far to be looked for",
        b'1,"a\n' + b"2,bcdef\n" * 4 + b'3,c"\n4,d\n',
        2,
        [
            (1, 1, "UnterminatedQuote"),
            *((line, line, "None") for line in (2, 3, 4, 5)),
            (6, 6, "StrayQuote"),
            (7, 7, "None"),
        ],
    ),
    (
        "never closed: the good lines behind it are records",
        b'1,"a\n' + b"2,bcdef\n" * 4 + b"3,cd\n",
        2,
        [(1, 1, "UnterminatedQuote"), *((line, line, "None") for line in (2, 3, 4, 5, 6))],
    ),
    (
        "closes far away with the wrong width",
        b'1,"a\n2,bcdef\n",x\n3,c\n',
        2,
        [(1, 1, "UnterminatedQuote"), (2, 2, "None"), (3, 3, "UnterminatedQuote"), (4, 4, "None")],
    ),
    (
        "quoted field of 9, then a stray quote",
        b'"1234567",5"\nx\n2,b\n',
        2,
        [(1, 1, "StrayQuote"), (2, 2, "TooFewFields"), (3, 3, "None")],
    ),
    (
        "quoted field of 8, then text",
        b'1,"123456"b\nx\n2,b\n',
        2,
        [(1, 1, "StrayQuote"), (2, 2, "TooFewFields"), (3, 3, "None")],
    ),
    (
        "quoted field of 9, then text",
        b'1,"1234567"b\nx\n2,b\n',
        2,
        [(1, 1, "StrayQuote"), (2, 2, "TooFewFields"), (3, 3, "None")],
    ),
    (
        "a stray quote, then a quoted field of 9",
        b'5"b","1234567" c"\nx\n2,b\n',
        2,
        [(1, 1, "StrayQuote"), (2, 2, "TooFewFields"), (3, 3, "None")],
    ),
    ("record of 20", b"1,2345678,2345678,20\n", 4, [(1, 1, "None")]),
    (
        "record of 21",
        b"1,2345678,2345678,021\n1,2,3,4\n",
        4,
        [(1, 1, "RecordTooLarge"), (2, 2, "None")],
    ),
    (
        "line of 40",
        b"x" * 30 + b"345678,b,c\n1,2,3\n",
        3,
        [(1, 1, "RecordTooLarge"), (2, 2, "None")],
    ),
    (
        "line of 50: three pieces, the last of them like a record",
        b"x" * 40 + b"345678,b,c\n1,2,3\n",
        3,
        [(1, 1, "RecordTooLarge")] * 3 + [(2, 2, "None")],
    ),
    (
        "never closed, then a record of 20 over lines",
        b'"\n2,2345678,456,"d\nef"\n5,6,7,8\n',
        4,
        [(1, 1, "UnterminatedQuote"), (2, 3, "None"), (4, 4, "None")],
    ),
    (
        "never closed, then what would be a record of 21 over lines",
        b'"\n2,2345678,4567,"d\nef"\n5,6,7,8\n',
        4,
        [(1, 2, "StrayQuote"), (3, 3, "StrayQuote"), (4, 4, "None")],
    ),
    (
        "an endless quote is given up after 20 bytes",
        b'1,"a\n' + b"bbb\n" * 5 + b"2,b\n",
        2,
        [
            (1, 5, "UnterminatedQuote"),
            (6, 6, "TooFewFields"),
            (7, 7, "None"),
        ],
    ),
]


@pytest.mark.parametrize(
    ("data", "width", "expected"), [row[1:] for row in TABLE], ids=[r[0] for r in TABLE]
)
def test_hostile_cases(data: bytes, width: int, expected: list[tuple[int, int, str]]) -> None:
    assert summary(slow_records.read(data, width, Dialect())) == expected
    assert summary(read(data, width, Dialect())[0]) == expected
    # By single bytes, but where they are many.
    sizes = [1 + len(data) // 200] * len(data)
    assert summary(read(data, width, Dialect(), sizes)[0]) == expected


@pytest.mark.parametrize(
    ("data", "width", "expected"), [row[1:] for row in LIMITS], ids=[r[0] for r in LIMITS]
)
def test_limits(data: bytes, width: int, expected: list[tuple[int, int, str]]) -> None:
    assert summary(slow_records.read(data, width, TIGHT)) == expected
    assert summary(read(data, width, TIGHT)[0]) == expected
    assert summary(read(data, width, TIGHT, [1] * len(data))[0]) == expected


def test_block_may_be_a_view() -> None:
    settled = split(memoryview(b"xx1,a\n2")[2:], 2, Dialect(), line=5, final=False)
    assert (settled.consumed, settled.lines, settled.first_line.tolist()) == (4, 1, [5])


@pytest.mark.parametrize("block", [b'1,"a', b'1,"a"', b"1,a\r", b"1,a"])
def test_waits_for_what_may_follow(block: bytes) -> None:
    settled = split(block, 2, Dialect(), line=1, final=False)
    assert (len(settled), settled.consumed, settled.lines) == (0, 0, 0)


def test_empty_block_stays_inside_a_line_that_is_too_large() -> None:
    assert split(b"", 2, Dialect(), line=1, final=False, inside=True).inside


@pytest.mark.long(but=("0", "1", "64", "129"))
@pytest.mark.parametrize("pad", range(130))
def test_quotes_at_every_place_of_a_word(pad: int) -> None:
    data = b"x" * pad + b',"a","b ""c"""\n"d",e,"f"\n'
    assert summary(read(data, 3, Dialect())[0]) == [(1, 1, "None"), (2, 2, "None")]
    wrong = b"x" * pad + b'x",a\n1,"a"b\n'
    assert [code for _, _, code in summary(read(wrong, 2, Dialect())[0])] == ["StrayQuote"] * 2
