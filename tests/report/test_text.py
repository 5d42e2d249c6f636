import re
from dataclasses import replace
from decimal import Decimal

import polars as pl
import pytest

from connectors.files.text.content import refused
from flows.report.html import render_html
from flows.report.markdown import summary_markdown
from flows.report.spelling import digits, neutral, shortened, shortened_pair, visible
from flows.report.text import WIDTH, refusal, render_text
from flows.steps.batch_report import FileLine
from schemas.cells.formula_columns import formulas
from schemas.cells.reading import MORE, SHOWN_CHARACTERS
from schemas.reasons import REFUSALS
from tests.report.sample_reports import HOSTILE, REPORTS, hostile, with_errors

NARROW, MINUS = "\u202f", "\u2212"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, "0"),
        (999, "999"),
        (1234, "1 234"),
        (-1234567, "-1 234 567"),
        (2**100, "1 267 650 600 228 229 401 496 703 205 376"),
        (Decimal(0), "0.00"),
        (Decimal("-0.000"), "0.00"),
        (Decimal("1234567.89"), "1 234 567.89"),
        (Decimal("1E+3"), "1 000.00"),
        (Decimal("-0.5"), "-0.50"),
        (Decimal("10.10000"), "10.10"),
        (Decimal("77310.0000001"), "77 310.0000001"),
        (Decimal("9007199254740993.01"), "9 007 199 254 740 993.01"),
        (Decimal("0.1") + Decimal("0.2"), "0.30"),
        (Decimal("1" * 40 + ".123456789"), "1" + " 111" * 13 + ".123456789"),
    ],
)
def test_numbers_are_exact_and_of_no_locale(value: int | Decimal, expected: str) -> None:
    assert digits(value) == expected.replace(" ", NARROW).replace("-", MINUS)


@pytest.mark.parametrize(
    ("value", "expected"),
    [(5, "+5"), (-5, MINUS + "5"), (0, "0"), (Decimal("0.00"), "0.00"), (Decimal("0.1"), "+0.10")],
)
def test_changes_carry_their_sign(value: int | Decimal, expected: str) -> None:
    assert digits(value, signed=True) == expected


@pytest.mark.parametrize(
    ("delivered", "shown"),
    [
        ("Müller, 東京, שלום", "Müller, 東京, שלום"),
        ("a\r\nb", r"a\r\nb"),
        ("\x1b[31m", r"\e[31m"),
        ("\0\t\x85\u2029", r"\0\t\u0085\u2029"),
        ("\u202egpj.exe", r"\u202egpj.exe"),
        ("\ud800", r"\ud800"),
        ("1\u00a0204", r"1\u00a0204"),
        ("\u22125", r"\u22125"),
        ("\U000e0041", r"\ue0041"),
    ],
)
def test_what_cannot_be_seen_is_spelled_out(delivered: str, shown: str) -> None:
    assert visible(delivered) == shown
    assert visible(shown) == shown


@pytest.mark.parametrize(
    ("delivered", "shown"),
    [
        ("payments.csv", "payments.csv"),
        ("=1+1.csv", "'=1+1.csv"),
        ("  @SUM(A1)", "'  @SUM(A1)"),
        ("-2.csv", "'-2.csv"),
        ("\uff1d1", "'\uff1d1"),
        ("\t=1", r"'\t=1"),
        ("-0.25", "-0.25"),
        ("+30", "+30"),
        ("-0.25+1", "'-0.25+1"),
        ("-1\n", r"'-1\n"),
        ("-1,5", "'-1,5"),
        ("-", "'-"),
        ("", ""),
    ],
)
def test_what_begins_like_a_formula_is_marked_as_in_data_files(delivered: str, shown: str) -> None:
    """A number is no formula, whatever its sign."""
    assert neutral(delivered) == shown
    assert pl.select(formulas(pl.lit(delivered))).item() == shown.startswith("'")


def test_what_is_cut_is_counted() -> None:
    assert shortened("9" * 200, 60) == "9" * 60 + "... (200 characters)"
    assert shortened("9" * 60, 60) == "9" * 60


def test_what_an_error_keeps_the_beginning_of_is_not_counted() -> None:
    """How long it was delivered is not known any more: its 121 signs would be no one's."""
    kept = "9" * SHOWN_CHARACTERS + MORE
    assert shortened(kept, 60) == "9" * 60 + "..."
    assert shortened(kept, 400) == kept
    assert shortened(kept + "9", 60) == "9" * 60 + "... (122 characters)"


def test_delivered_text_moves_no_cursor_and_forges_no_line() -> None:
    text = render_text(hostile())
    assert not re.search("[\0-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]", text)
    assert not re.search("^(2026|1\\.0)", text, re.MULTILINE)


@pytest.mark.parametrize("name", ["complete", "complete_with_errors", "held", "does_not_tie"])
def test_the_text_fits_a_terminal(name: str) -> None:
    for line in render_text(REPORTS[name]()).splitlines():
        assert len(line) <= WIDTH
        assert line == line.rstrip()


def test_the_text_is_plain_where_nothing_else_was_delivered() -> None:
    assert render_text(with_errors()).isascii()


def test_every_state_and_the_sum_are_in_the_text() -> None:
    text = render_text(with_errors())
    for line in ("rejected        61", "sum         12 480", "read        12 480"):
        assert f"\n  {line}" in text


def test_a_residual_is_loud() -> None:
    assert "RESIDUAL Rows: -1; Hash total of keys: -50 001;" in render_text(
        REPORTS["does_not_tie"]()
    )
    assert "RESIDUAL" not in render_text(with_errors())


def test_long_lists_say_what_they_leave_out() -> None:
    report = with_errors()
    text = render_text(replace(report, notes=report.notes * 201))
    assert "  1 more is in the full report." in text


def test_a_delivered_value_is_quoted_as_it_was() -> None:
    assert '"1.204,50 EUR"' in render_text(with_errors())
    assert HOSTILE["link"] in render_text(hostile()).replace("\n" + " " * 17, " ")


@pytest.mark.parametrize("code", REFUSALS)
@pytest.mark.parametrize("found", ["", "Found: " + "column, " * 200 + "end."])
def test_what_to_do_about_a_refused_file_is_said_once(code: str, found: str) -> None:
    """A refusal is kept with its remedy, which may stand behind more than is shown."""
    facts = dict.fromkeys(
        (
            *("columns", "comment", "detail", "encoding", "first", "header", "kinds", "of"),
            "title",
        ),
        "x",
    )
    told = refusal(FileLine("a.csv", None, 1, "9f", 0, 0, code, str(_kept(code, found, facts))))
    assert told.startswith(f"{code} ({REFUSALS[code].title}): a.csv, line 1: ")
    assert told.endswith(f". {REFUSALS[code].remedy}")
    assert told.count(REFUSALS[code].remedy) == 1


def _kept(code: str, found: str, facts: dict[str, str]) -> Exception:
    return refused(code, "a.csv", line=1, found=found, **facts)


def test_a_batch_of_refused_files_alone_says_that_it_has_no_content() -> None:
    report = with_errors()
    report = replace(report, files=report.files[-1:], content_id="", chains=(), reasons=())
    assert "\nContent   none: no file was taken in\n" in render_text(report)
    assert "1 file, 1 refused; no content" in summary_markdown(report)
    page = render_html(report)
    assert '<dd class="short mono">none</dd>' in page
    assert "Content id in full" not in page
    assert "<title>Batch report, payments-daily: " in page


LOOK_ALIKE = [
    # two values, and how they are shown beside each other
    ("Bob", "Bob ", "Bob", r"Bob\u0020"),
    (" Bob", "Bob", r"\u0020Bob", "Bob"),
    ("a  b c", "a b c", r"a \u0020b c", "a b c"),
    ("a\tb", "a b", r"a\tb", r"a\u0020b"),
    ("a\u00a0b", "a b", r"a\u00a0b", r"a\u0020b"),
    ("caf\u00e9 au lait", "cafe\u0301 au lait", r"caf\u00e9 au lait", r"caf\u0065\u0301 au lait"),
    ("", " ", "", r"\u0020"),
    ("a b", "a c", "a b", "a c"),
    ("\u00e9", "e", "\u00e9", "e"),
    ("a ", None, "a ", None),
    ("x" * 90 + "y ", "x" * 90 + "y",
     r"... from character 92:   (92 characters)", "... from character 92:  (91 characters)"),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other", "first", "second"), LOOK_ALIKE)
def test_two_values_that_differ_never_look_the_same(
    one: str, other: str | None, first: str, second: str | None
) -> None:
    assert shortened_pair(one, other, 80) == (first, second)
    assert shortened_pair(other, one, 80) == (second, first)
