import re
from base64 import b64decode
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from flows.report.markdown import MOST, escape, rejects_table, summary_markdown
from schemas.reasons import REASONS
from tests.report.sample_reports import HOSTILE, REPORTS, hostile, with_errors

PICTURE = re.compile(r"\(data:image/svg\+xml;base64,([A-Za-z0-9+/=]+)\)")
ADDRESS = re.compile(r"https?://|www\.|\w@\w", re.IGNORECASE)


@pytest.mark.parametrize("name", REPORTS)
def test_markdown_reads_tables_and_our_pictures_and_nothing_else(name: str) -> None:
    kinds = {token.type for token in _tokens(summary_markdown(REPORTS[name]()))}
    allowed = {"heading", "paragraph", "table", "thead", "tbody", "tr", "th", "td", "strong"}
    assert {kind.removesuffix("_open").removesuffix("_close") for kind in kinds} <= allowed | {
        "inline",
        "text",
        "text_special",
        "image",
    }


def test_hostile_text_reads_back_as_itself() -> None:
    shown = "".join(
        child.content
        for token in _tokens(summary_markdown(hostile()))
        for child in token.children or ()
    ).replace("\u2060", "")
    for name in ("formula", "markup", "link", "table", "entity", "closing"):
        assert HOSTILE[name] in shown, name
    assert r"1.0\r\n2026-01-01 INFO" in shown


@pytest.mark.parametrize("name", [name for name in REPORTS if name != "hostile"])
def test_no_mark_of_our_own_numbers_is_spelled_out(name: str) -> None:
    assert r"\u" not in PICTURE.sub("", summary_markdown(REPORTS[name]()))


def test_no_address_is_left_for_a_renderer_to_find() -> None:
    assert not ADDRESS.search(PICTURE.sub("", summary_markdown(hostile())))
    for row in rejects_table(hostile()):
        assert not any(ADDRESS.search(cell) for cell in row.values())


@pytest.mark.parametrize("mark", "\\`*_[]()<>|~&!#")
def test_every_mark_is_escaped(mark: str) -> None:
    assert escape(f"a{mark}b") == f"a\\{mark}b"


def test_a_line_break_cannot_leave_its_cell() -> None:
    assert escape("a\r\n# b\u2028c") == r"a\\r\\n\# b\\u2028c"


def test_every_table_row_has_as_many_cells_as_its_head() -> None:
    tokens = _tokens(summary_markdown(hostile()))
    widths: list[int] = []
    head = 0
    for token in tokens:
        if token.type == "tr_open":
            widths.append(0)
        elif token.type in ("th_open", "td_open"):
            widths[-1] += 1
            head = widths[-1] if token.type == "th_open" else head
        elif token.type == "tr_close":
            assert widths[-1] == head
    assert len(widths) > 40


def test_pages_and_tables_are_capped_and_say_what_is_left_out() -> None:
    report = with_errors()
    long = replace(report, reasons=report.reasons * 100, notes=report.notes * 1000)
    page = summary_markdown(long)
    rows = [token for token in _tokens(page) if token.type == "tr_open"]
    heads = [token for token in _tokens(page) if token.type == "thead_open"]
    assert len(rows) - len(heads) == MOST
    # 17 rows of end states, 12 of money and 2 refused files come before 169 of 900 reasons.
    assert "\n731 more are in the report." in page
    assert page.endswith("## Notes\n\n1\u202f000 more are in the report.\n")
    assert len(rejects_table(long)) == MOST


def test_the_rejects_table_is_narrow_and_all_text() -> None:
    for report in (with_errors(), hostile()):
        for row in rejects_table(report):
            assert len(row) <= 8
            for cell in row.values():
                assert isinstance(cell, str)
                assert "\n" not in cell
                assert not cell.startswith(("=", "+", "-", "@", "\t"))


def test_the_rejects_table_shows_where_the_first_row_is() -> None:
    assert rejects_table(with_errors())[3] == {
        "Record": "Payment",
        "Reason": "Number",
        "Field": "PaidAmount",
        "Rows": "19",
        "File": r"payments\_2026-03.csv",
        "Line": "418",
        "Value": "“1.204,50 EUR”",
        "Next": REASONS["Number"].remedy,
    }


def test_the_picture_is_well_formed_and_needs_nothing_else() -> None:
    pictures = PICTURE.findall(summary_markdown(with_errors()))
    assert len(pictures) == 3
    for picture in pictures:
        svg = ElementTree.fromstring(b64decode(picture))
        assert svg.tag == "{http://www.w3.org/2000/svg}svg"
        assert not [key for part in svg.iter() for key in part.attrib if "href" in key]


def test_what_a_picture_shows_is_told_in_words_and_plain_numbers() -> None:
    told = re.findall(r"!\[([^\]]*)\]\(data:", summary_markdown(with_errors()))
    assert told[1] == "superseded 2, inserted 5120; 5122 rows in all"


def test_the_columns_that_are_seen_first_say_what_is_wrong_and_where() -> None:
    first = ["Reason", "Rows", "File", "Line", "Field", "Value"]
    assert list(rejects_table(with_errors())[0])[:6] == first


def _tokens(page: str) -> list[Token]:
    tokens = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).parse(page)
    return [each for token in tokens for each in (token, *(token.children or ()))]
