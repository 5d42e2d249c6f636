from pathlib import Path

import pytest

from connectors.errors import ExtractRefused
from connectors.files.incoming.unpack import packing_of
from connectors.files.text.content import canonical_encoding, foreign_format, open_content, refused
from connectors.files.text.encodings import can_be_divided
from connectors.printable import shown
from schemas.reasons import REFUSALS

ROOT = Path(__file__).parents[2]
TEXT = "Id,Name\r\n1,Grüße\r\n"


@pytest.mark.parametrize(
    ("delivered", "stated", "encoding", "delivered_encoding", "text_start"),
    [
        (TEXT.encode(), None, "utf-8", "utf-8", 0),
        (TEXT.encode("utf-8-sig"), None, "utf-8", "utf-8", 3),
        (TEXT.encode("utf-8-sig"), "cp1252", "utf-8", "utf-8", 3),
        (TEXT.encode("cp1252"), "cp1252", "cp1252", "cp1252", 0),
        (TEXT.encode("cp1252"), None, "utf-8", "utf-8", 0),
        (b"\xff\xfe" + TEXT.encode("utf-16-le"), None, "utf-8", "utf-16-le", 0),
        (b"\xfe\xff" + TEXT.encode("utf-16-be"), None, "utf-8", "utf-16-be", 0),
        (b"\xfe\xff" + TEXT.encode("utf-16-be"), "utf-16", "utf-8", "utf-16-be", 0),
        (TEXT.encode("utf-16-be"), "utf-16-be", "utf-8", "utf-16-be", 0),
        (b"", None, "utf-8", "utf-8", 0),
    ],
)
def test_encoding(
    tmp_path: Path,
    *,
    delivered: bytes,
    stated: str | None,
    encoding: str,
    delivered_encoding: str,
    text_start: int,
) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(delivered)
    content = open_content(path, stated, name="bank.zip/a.csv")
    assert (content.encoding, content.delivered_encoding) == (encoding, delivered_encoding)
    assert (content.text_start, content.size) == (text_start, len(delivered))
    assert content.name == "bank.zip/a.csv"


@pytest.mark.parametrize(
    ("delivered", "stated", "said"),
    [
        (b"\xff\xfe" + TEXT.encode("utf-16-le")[:-1], None, "odd number of bytes"),
        (TEXT.encode("utf-16-le") + b"x", "utf-16-le", "odd number of bytes"),
        (TEXT.encode("utf-16-le"), None, "it looks like utf-16-le"),
        (TEXT.encode("utf-16-be"), "cp1252", "it looks like utf-16-be"),
        (TEXT.encode("utf-16-le"), "utf-16", "no byte-order mark"),
        (TEXT.encode("utf-32"), None, "utf-32"),
    ],
)
def test_bad_encoding(tmp_path: Path, delivered: bytes, stated: str | None, said: str) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(delivered)
    with pytest.raises(ExtractRefused, match=rf"^a\.csv: .*{said}") as caught:
        open_content(path, stated)
    assert caught.value.code == "bad_encoding"


@pytest.mark.parametrize(
    ("names", "usable"),
    [
        ("utf-8 ascii cp1252 latin-1 iso8859-15 cp437 cp850 koi8-r mac-roman tis-620", True),
        ("utf-16 utf-32 utf-7 cp037 shift_jis gbk big5 hz iso2022_jp unicode_escape", False),
        ("raw_unicode_escape punycode gb18030 cp932", False),
    ],
)
def test_which_encodings_keep_ascii_apart(names: str, usable: bool) -> None:
    assert {name: can_be_divided(name) for name in names.split()} == dict.fromkeys(
        names.split(), usable
    )


def test_one_spelling_per_encoding() -> None:
    spellings = ("UTF8", "utf_8", "utf-8-sig", "Utf-8")
    assert {canonical_encoding(name) for name in spellings} == {"utf-8"}


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("tail", [bytes(4000), b"\0\x01\n" * 900, "1,x\n".encode("utf-16-le") * 99])
def test_a_text_that_turns_binary_is_read_as_far_as_it_goes(
    tmp_path: Path, end: str, tail: bytes
) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(f"{end}Id,Name{end}1,x{end}".encode() + tail)
    assert foreign_format(path.read_bytes()[:4096]) is None
    assert open_content(path).encoding == "utf-8"
    assert foreign_format(b"\x01\x02,Name\n" + tail) == "binary data"


@pytest.mark.parametrize(
    "head",
    [
        *(b"Id,Name\n", b"\xef\xbb\xbfId\n", b"PK,Name\n", b"", b"BM;Id\n"),
        *("Nämn,Id".encode("cp1252"), b"ORCHARD BANK\n", b"PAR1;PAR2\n", b"RIFF\tId\n"),
        *(b"BZhang,1\n", b"ARROW1,Id\n", b"[Account 7]\n", b"[EUR];Id\n", b"{Name};Id\n"),
    ],
)
def test_text_is_not_taken_for_something_else(head: bytes) -> None:
    assert foreign_format(head) is None
    assert packing_of(head) is None


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("payments.csv", "payments.csv"),
        ("a\r\nINFO all rows imported", "a\\r\\nINFO all rows imported"),
        ("safe\N{RIGHT-TO-LEFT OVERRIDE}vsc.exe", "safe\\u202evsc.exe"),
        ("\udc80\x1b[31m", "\\udc80\\x1b[31m"),
        ("Grüße 支払", "Grüße 支払"),
        ("x" * 300, "x" * 200 + "..."),
    ],
)
def test_shown(text: str, safe: str) -> None:
    assert shown(text) == safe


@pytest.mark.parametrize("code", REFUSALS)
def test_a_refusal_says_where_what_and_what_next(code: str) -> None:
    facts = dict.fromkeys(
        (
            *("columns", "comment", "detail", "encoding", "first", "header", "kinds", "of"),
            "title",
        ),
        "{X}",
    )
    error = refused(code, "a.csv", line=3, found="Y.", **facts)
    assert str(error).startswith("a.csv, line 3: ")
    assert str(error).endswith(f". Y. {REFUSALS[code].remedy}")
    assert (error.code, error.line) == (code, 3)


def test_a_refusal_that_is_documented_is_one_that_happens() -> None:
    rooms = ("connectors", "flows")
    written = "".join(path.read_text() for room in rooms for path in (ROOT / room).rglob("*.py"))
    never = [one for one in REFUSALS if f'"{one}"' not in written]
    assert never == [], "nothing raises these: delete them"
