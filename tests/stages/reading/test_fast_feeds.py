"""Rows of feeds that take the fast path are what validating the same rows says.

The feeds are those of `docs/feeds`: of their own records, clean and dirty ones, any cell is drawn
anew from texts that are right in some form, and wrong in others.
"""

import csv
import io
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from connectors.files.chunks.chunk import Chunk
from connectors.files.chunks.reader import first_place, read_chunks
from connectors.files.layout.header import Header, read_header
from connectors.files.profiles.profile import Profile
from connectors.files.profiles.profile_file import load_profile
from connectors.files.text.content import open_content
from connectors.settings import MOST, Limits
from flows.stages.chunks.split_chunk import fast_rows
from flows.stages.workspace import Workspace
from tests.examples import examples
from tests.fast.test_both_ways import stored
from tests.stages.reading.test_fast_path import compare

GALLERY = Path(__file__).parents[3] / "docs" / "feeds"
FEEDS = {
    path.parent.name: profile
    for path in sorted(GALLERY.glob("*/profile.toml"))
    for profile in [load_profile(path)]
    if not (profile.positions or profile.sheet)
}
PLACES = [(0, 10), (10, 22), (22, 25), (25, 37), (37, 45), (45, 65)]
"""Where the cells of the mainframe's lines are."""
ODD = [
    *("", " ", "n/a", "N/A", '"', "'", "\N{NO-BREAK SPACE}", "é", "Ω", "\t5", "5 "),
    *("0", "-0", "00", "7", "007", "-7", "+7", "7-", "(7)", "7.", ".7", "1e3", "7,5", "7.50"),
    *("1.234", "1,234", "1.234,56", "1,234.56", "1.234,5678", "1.234.567,8", "12.34,5", "1.2345"),
    *("1 234,56 €", "1\N{NO-BREAK SPACE}234", "€5", "5€", "5 €", "£5", "(£5.00)", "£(5.00)", "-£5"),
    *("0.123", "0,00-", "123456789", "12345678,1234567", "99999999999999999999", "\u22125", "5%"),
    *("Rs.5", "Rs..5", "-Rs.5", "(Rs.5.25)", "Rs.1,234.5", "Rs5"),
    *("5,C", "5,D", "C", "D", "EUR", "eur", "GBP", "USD", "XXX", "EURO", "EU"),
    *("2147483647", "2147483648", "9223372036854775807", "9223372036854775808"),
    *("2026-01-02", "2026-01-02T10:00:00Z", "2026-01-02 10:00", "2026-01-02 10:00:00", "20260102"),
    *("20260230", "01.02.2026", "1.2.2026", "30.02.2026", "29.03.2026", "29.03.2026 02:30:00"),
    *("29/03/2026 02:30:00", "2026-10-25 02:30:00", "2026-10-25 10:00:00", "25.10.2026"),
    *("01/02/2026 10:00:00", "01/02/2026", "10:00:00", "24:00:00", "10:00:60", "10:00"),
    *("29.02.2024", "29.02.2100", "31.12.9999", "01.01.0001", "01.01.0000", "1 Feb 2026"),
    *("01 feb 2026", "01 FEB 2026", " 2 Nov 2026", "31 Feb 2026", "01 Mrz 2026", "01  Feb 2026"),
    *(
        "46327",
        "46327,5",
        "46327.5",
        "46327,123456",
        "46327,0000058",
        "60",
        "61",
        "2958465",
        "0046327",
    ),
    *(
        "INV-0012",
        "INV-000",
        "INV-",
        "INV-INV-7",
        "a INV-7b INV-8",
        "INV-7\N{ARABIC-INDIC DIGIT TWO}",
    ),
    *(
        "debt #",
        "debt #4",
        "debt #4, debt #5",
        "Forderung 12",
        "Forderung x Forderung 9",
        "forderung 1",
    ),
]


def read(
    path: Path, profile: Profile, strict_bytes: int = 0, block_bytes: int = Limits().block_bytes
) -> tuple[Header, list[Chunk]]:
    """The header of a file, and its records."""
    content = open_content(path, profile.encoding, name=path.name)
    header = read_header(content, None, profile, Limits())
    return header, [*read_chunks(content, header, first_place(header), block_bytes, strict_bytes)]


@cache
def samples(feed: str) -> tuple[str, str, str, list[list[str]], Header]:
    """A feed's clean sample: what is before its records, they, what is behind; all its records."""
    profile, rows = FEEDS[feed], []
    for path in [*GALLERY.glob(f"{feed}/dirty.*"), *GALLERY.glob(f"{feed}/clean.*")]:
        content = open_content(path, profile.encoding, name=path.name)
        header = read_header(content, None, profile, Limits())
        # Places are those of the text as it is read, which is UTF-8 where the file is in cp932.
        text = (
            path.read_bytes().decode(profile.encoding or content.encoding).encode(content.encoding)
        )
        end = header.footer.start if header.footer else len(text)
        before, body, behind = (
            piece.decode(content.encoding)
            for piece in (text[: header.body_start], text[header.body_start : end], text[end:])
        )
        found = csv.reader(io.StringIO(body), **header.dialect.signs)
        width = header.unpivot.width if header.unpivot else header.line_width
        rows += [row for row in found if len(row) == width]
    return before, body, behind, rows, header


@st.composite
def bodies(draw: st.DrawFn, feed: str) -> bytes:
    """A file of a feed, some of whose cells are odd ones, in quotes or not."""
    before, clean, behind, rows, header = samples(feed)
    signs = header.dialect.signs
    written = []
    for row in draw(st.lists(st.sampled_from(rows), min_size=1, max_size=12)):
        odd = draw(st.sets(st.integers(0, len(row) - 1), max_size=2))
        cells = []
        for place, cell in enumerate(row):
            text = draw(st.sampled_from(ODD)) if place in odd else cell
            quoted = draw(st.booleans()) or any(sign in text for sign in ("\n", *signs.values()))
            cells.append('"' + text.replace('"', '""') + '"' if quoted else text)
        written.append(signs["delimiter"].join(cells))
    text = "\n".join(written) + "\n"
    odd_bytes = draw(st.sampled_from([b"", b"\x81\n", b"\xff\n"]))
    plain = clean * len(written)  # So that enough of them take the fast path.
    encoding = FEEDS[feed].encoding or header.dialect.encoding
    above, below = (piece.encode(encoding, "replace") for piece in (before + text, plain + behind))
    return above + odd_bytes + below


@pytest.mark.long
@pytest.mark.parametrize("feed", FEEDS)
@settings(max_examples=examples(300, 20), deadline=None)
@given(data=st.data())
def test_the_fast_path_of_a_feed_is_what_validating_says(
    tmp_path_factory: pytest.TempPathFactory, feed: str, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("fast") / "feed.csv"
    path.write_bytes(data.draw(bodies(feed)))
    header, found = read(path, FEEDS[feed])
    for chunk in found:
        compare(header, chunk, FEEDS[feed])


@pytest.mark.long
@settings(max_examples=examples(300, 30), deadline=None)
@given(data=st.data())
def test_the_fast_path_of_lines_with_positions_is_what_validating_says(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Any cell of a mainframe's lines is drawn anew, cut to its width, in any encoding."""
    folder = GALLERY / "mainframe"
    profile = load_profile(folder / "profile.toml")
    first, *lines, last = (folder / "clean.txt").read_text(profile.encoding).splitlines()
    for line in data.draw(st.lists(st.sampled_from(lines), min_size=1, max_size=12)):
        text = line.ljust(65)
        for begin, end in data.draw(st.lists(st.sampled_from(PLACES), max_size=2)):
            cell = data.draw(st.sampled_from([*ODD, "00000000123", "0000012-"]))
            fitted = (cell.replace("\n", " ") + " " * 65)[: end - begin]
            text = text[:begin] + fitted + text[end:]
        lines.append(text if data.draw(st.booleans()) else text.rstrip())
    encoding = data.draw(st.sampled_from(["cp1252", "utf-8", "utf-16"]))
    path = tmp_path_factory.mktemp("fast") / "feed.txt"
    path.write_bytes(
        "\n".join([first, *lines, *lines[:3] * len(lines), last]).encode(encoding, "replace")
    )
    profile = replace(profile, encoding=encoding)
    header, (chunk,) = read(path, profile)
    assert fast_rows(chunk, header, profile)
    compare(header, chunk, profile)


@pytest.mark.long
@pytest.mark.parametrize("feed", FEEDS)
@settings(
    max_examples=examples(100),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_both_ways_store_the_same_of_a_feed(
    workspace: Workspace, tmp_path: Path, feed: str, data: st.DataObject
) -> None:
    path = tmp_path / "feed.csv"
    path.write_bytes(data.draw(bodies(feed)))
    ways = [
        stored(workspace, *read(path, FEEDS[feed], size), FEEDS[feed], size) for size in (0, MOST)
    ]
    assert ways[0] == ways[1]


@pytest.mark.long(but=("accounting-list",))
@pytest.mark.parametrize("feed", FEEDS)
def test_clean_records_of_a_feed_take_the_fast_path(feed: str, tmp_path: Path) -> None:
    (path,) = GALLERY.glob(f"{feed}/clean.*")
    header, (chunk,) = read(path, FEEDS[feed])
    fast = fast_rows(chunk, header, FEEDS[feed])
    assert fast is not None
    assert fast.rows.mean() > 0.5
