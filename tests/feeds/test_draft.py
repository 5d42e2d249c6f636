"""`recon profile draft`: what a file tells of itself is stated, what it does not is marked."""

import json
import re
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from itertools import chain
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from connectors.errors import DeliveryError, ExtractRefused
from connectors.files.dialect import Dialect, RecordFault
from connectors.files.profile import Profile, number_form, written_of
from connectors.files.profile_file import read_profile
from connectors.files.shape import shape_of
from connectors.settings import read_settings
from flows.stages.draft_profile import draft_profile
from flows.stages.try_profile import try_profile
from flows.steps.draft_numbers import NumberSigns
from flows.steps.draft_times import DAYS, TimesFound, times_of
from schemas.cells.numbers import exact_number
from schemas.toml_text import read_toml
from tests.examples import examples, in_long
from tests.extracts.cut_records import read as read_records
from tests.feeds.test_gallery import FEEDS, GALLERY, file_of
from tests.governance.conftest import recon as recon  # noqa: PLC0414 -- the fixture.

TORTURE = sorted((Path(__file__).parents[1] / "torture").glob("*/*"))
STATED = ("encoding", "decimal", "thousands", "negative", "date_format")
DIVIDED = [
    feed for feed in FEEDS if "positions" not in (GALLERY / feed / "profile.toml").read_text()
]
"""Feeds with a sign between their cells: a layout of a fixed width is in no file."""


def drafted(
    path: str, record: str | None = "payment", sheet: str | None = None
) -> tuple[str, Profile]:
    text = draft_profile(read_settings(), path, "x", record, sheet)
    return text, read_profile(read_toml(text))


@pytest.mark.parametrize("feed", DIVIDED)
def test_what_a_file_of_the_gallery_tells_is_stated_as_its_profile_has_it(feed: str) -> None:
    shape = read_toml((GALLERY / feed / "profile.toml").read_text())
    text, draft = drafted(file_of(feed, "clean"), sheet=shape.get("sheet"))
    told = read_toml(text)
    assert told.get("sheet") == shape.get("sheet")
    for key in STATED:
        if isinstance(told.get(key), list):
            assert set(told[key]) <= set(shape[key]), key
        elif key in told:
            assert told[key] == shape.get(key, told[key]), key
    if shape.get("header_line") == "found":
        # Of a list in pages several lines look like one.
        assert told.get("header_line") in (3, 4) or "# ? header_line = " in text
    elif "header_lines" not in shape:
        assert draft.header_line == shape.get("header_line", 1)
    assert ("# ? footer" in text) == ("footer" in shape)


PERCENT = '# ? percent = "share" or "points"  # '


@pytest.mark.parametrize(
    ("cells", "told", "not_told"),
    [
        # One reading fits, or several: 1 February or 2 January.
        (("01/02/2026", "13/02/2026"), 'date_format = "%d/%m/%Y"', "%m/%d/%Y"),
        (("01/02/2026", "02/13/2026"), 'date_format = "%m/%d/%Y"', "%d/%m/%Y"),
        (("01/02/2026",), '# ? date_format = "%d/%m/%Y" or "%m/%d/%Y"', "\ndate_format"),
        (("13.02.2026 10:00",), 'date_format = "%d.%m.%Y %H:%M"', "# ? date"),
        # No sign between digits says which of them is the day.
        (("01.02.2026 10:00",), '"%d.%m.%Y %H:%M" or "%m.%d.%Y %H:%M"', "\ndate_format"),
        (("01-02-2026",), '# ? date_format = "%d-%m-%Y" or "%m-%d-%Y"', "\ndate_format"),
        (("13-04-85", "03-04-85"), 'date_format = "%d-%m-%y"\n', "2085"),
        (
            ("03-04-85",),
            '# ? date_format = "%d-%m-%y" or "%m-%d-%y"  # each fits every row\n',
            "\ndate_format",
        ),
        (
            ("13.04.55", "14.04.85"),
            'date_format = "%d.%m.%y"\n# ? "Value": 13.04.55 is in 2055 by "%d.%m.%y"; where',
            "2085",
        ),
        (
            ("13.02.2026", "13.02.2026 10:00:00", "13.02.2026 10:00:00.5"),
            'date_format = ["%d.%m.%Y", "%d.%m.%Y %H:%M:%S", "%d.%m.%Y %H:%M:%S.%f"]\n# ? zone',
            "# ? date",
        ),
        (
            ("01/02/2026", "01/02/2026 10:00"),
            '# ? date_format = ["%d/%m/%Y", "%d/%m/%Y %H:%M"] or ["%m/%d/%Y", "%m/%d/%Y %H:%M"]',
            "\ndate_format",
        ),
        (
            ("13.02.2026", "14.02.2026 soon"),
            '# ? date_format = "%d.%m.%Y"  # of most',
            "format = [",
        ),
        (("2026-11-01", "2026-11-01T10:30:00"), "# ? zone", "date_format"),
        (("2026-11-01 10:30:00", "2026-11-02 00:00"), "# ? zone", "date_format"),
        (("2026-11-01", "2026-1-1"), 'date_format = "%Y-%m-%d"', "# ? date_format"),
        (("2026-11-01 10:30:00 +0100",), 'date_format = "%Y-%m-%d %H:%M:%S %z"', "# ? zone"),
        (("2026-01-02T10:00:00+01:00",), 'unknown_columns = "ignore"', "date_format"),
        (("20260102",), 'unknown_columns = "ignore"', "date_format"),
        (
            ("Nov 1, 2026 1:30:00 AM PDT", "Nov 30, 2026 1:30:00 PM PST"),
            '# ? date_format = "%b %d, %Y %I:%M:%S %p %Z"\n# ? zones = { PDT = "", PST = "" }',
            "# ? zone =",
        ),
        (("1.11.2026 10:30CET", "30.11.2026 11:30MEZ"), '"%d.%m.%Y %H:%M%Z"', "# ? zone ="),
        (("1.11.2026 CET", "30.11.2026 CET"), 'unknown_columns = "ignore"', "%Z"),
        (("1.11.2026 10:30 CET", "30.11.2026 10:30"), 'unknown_columns = "ignore"', "%Z"),
        # An article is no amount of a currency.
        (("SKU-1", "SKU-2", "INV-3"), 'unknown_columns = "ignore"', "currency"),
        (("EUR-1", "EUR 2", "EUR-3"), 'currency = ["EUR 1", "EUR1"]', "unread"),
        # One thousand, or one and a bit.
        (("1.234",), '# ? decimal or thousands = "."', "\ndecimal"),
        (("1,234", "5"), '# ? decimal or thousands = ","', "\ndecimal"),
        (("1,234", "5,5"), 'decimal = ","', "thousands"),
        (("1.234", "5,5"), 'decimal = ","', "\nthousands"),
        (("1,234,567",), 'thousands = ","', "decimal"),
        (("1.234.567", "1.234"), 'decimal = ","\nthousands = "."\n', "? thousands"),
        (("1,234.5",), 'thousands = ","', "decimal"),
        (("12,34,567.89", "1,234.50"), 'thousands = ","\ngroups = "lakh"\n', "? groups"),
        (("123,456.5", "12,345.5"), 'thousands = ","', "groups"),
        (("12,34,567", "123,456.5"), '# ? groups = "lakh" or "thousands"', "\ngroups"),
        (("12 34 567", "12 34 568"), 'unknown_columns = "ignore"', "groups"),
        (("0.125",), 'unknown_columns = "ignore"', "decimal"),
        (("1 234,50",), 'thousands = "blank"', "?  "),
        (
            ("1.5", "1,5"),
            "# ? decimal and thousands: cells differ in them\n"
            '#   "Value": 1 cell such as 1.5; 1 cell such as 1,5\n',
            "\ndecimal",
        ),
        (("12-", "-3"), 'negative = ["-1", "1-"]', "positive"),
        (("12+", "3-", "0"), 'negative = ["1-"]\npositive = ["1", "1+"]\n', "too"),
        (("+12", "3", "-4"), 'unknown_columns = "ignore"', "tive ="),
        (
            ("12",) * 20 + ("2+",),
            '# ? positive: "1+" too?  # 1 of 21 cells with any, such as 2+\n',
            "\npositive",
        ),
        (("(12.50)",), 'negative = ["(1)"]', "positive"),
        (("\N{MINUS SIGN}12",), 'negative = ["\N{MINUS SIGN}1"]', "positive"),
        (("€12.50", "-€1"), 'currency = ["€1"]', "positive"),
        (("12.50 EUR",), 'currency = ["1 EUR"]', "positive"),
        (("EUR12.50",), 'currency = ["EUR1"]', "positive"),
        (
            ("12.50 EUR", "1.00 PLN", "2.00 PLN"),
            '# ? currency = ["1 EUR", "1 PLN"]  # only if a column says which it is\n'
            '#   "1 EUR": 1 cell, such as 12.50 EUR',
            "positive",
        ),
        (
            ("5.00",) * 99 + ("7.00 USD",),
            '# ? currency = ["1 USD"]  # only if the numbers without one are of this currency too\n'
            '#   "1 USD": 1 cell, such as 7.00 USD\n'
            '#   "Value": 99 cells without one, such as 5.00\n',
            "\ncurrency",
        ),
        (("ACC12", "ACC5"), 'unknown_columns = "ignore"', "currency"),
        (
            ("12.50 DR",),
            "negative or part: what stands around the 1 of 1 DR",
            "\npos",
        ),
        (("2026.11.01", "2026.11.02"), 'date_format = "%Y.%m.%d"', "\nthousands"),
        (("10.1.2", "10.1.3"), 'unknown_columns = "ignore"', "\nthousands"),
        (
            ("1.50",) * 1200 + ("1,50",),
            '#   "Value": 1,200 cells such as 1.50; 1 cell such as 1,50\n',
            "\ndecimal",
        ),
        # A cell that is wrong hides nothing about the others, and makes nothing certain.
        (
            ("13.02.2026",) * 9 + ("31.02.2026",),
            '# ? date_format = "%d.%m.%Y"  # of most cells\n'
            '# ? "Value": 1 of 10 cells is not "%d.%m.%Y", such as 31.02.2026\n',
            "\ndate_format",
        ),
        (
            ("01/02/2026",) * 9 + ("13/02/2026", "02/14/2026"),
            '# ? date_format = "%d/%m/%Y" or "%m/%d/%Y"  # each fits as many cells\n',
            "\ndate_format",
        ),
        (
            ("2026-01-02T10:00:00Z",) * 3 + ("tomorrow",),
            '# ? "Value": 1 of 4 cells is not of ISO 8601, such as tomorrow\n',
            "date_format",
        ),
        (
            ("13.02.2026", "N/A", "14.02.2026", "-"),
            '# ? null = ["", "-", "N/A"]  # such texts are in 2 cells of numbers and times\n'
            'date_format = "%d.%m.%Y"\n',
            "cells is not",
        ),
        (
            ("1,50",) * 9 + ("-(5,00)",),
            'decimal = ","\n# ? "Value": 1 of 10 cells is no number, such as -(5,00)\n',
            "negative",
        ),
        (
            ("-1.50",) * 19 + ("2.00-",),
            '# ? negative: "1-" too?  # 1 of 20 cells with any, such as 2.00-\n',
            "\nnegative",
        ),
        # A power of ten, as spreadsheets write it; without its sign it may be an article.
        (("1.50", "1.5E-05", "-2.234E+03"), 'unknown_columns = "ignore"', "? decimal"),
        (("1,5E-05", "2,234E+03"), 'decimal = ","\nunknown_columns', "thousands"),
        (("12E-05", "1.5E5"), 'unknown_columns = "ignore"', "\ndecimal"),
        (("150", "99"), '# ? "Value" = ""  # such as 150\n', "implied"),
        (("(1.50", "2"), 'unknown_columns = "ignore"', "negative"),
        (("5 %", "-7 %"), PERCENT + '"Value", such as 5 %: 5 % is 0.05, or it is 5\n', "negative"),
        (("5%", "12"), '# ? "Value": 1 of 2 cells is without a percent sign, such as 12\n', "1%"),
        (("%5", "%12"), "negative or part: what stands around the 1 of %1", "percent"),
    ],
)
def test_what_fits_two_readings_is_marked_and_not_stated(
    tmp_path: Path, cells: Sequence[str], told: str, not_told: str
) -> None:
    path = tmp_path / "a.csv"
    path.write_text("Name|Value\n" + "".join(f"x|{cell}\n" for cell in cells))
    text, _ = drafted(str(path))
    assert told in text
    assert not_told not in text


@pytest.mark.parametrize(
    ("name", "cells", "told"),
    [
        # A column with a field's own name is that field: whatever of it cannot be read is marked.
        (
            "PaymentDate",
            ("soon", "later"),
            "# ? date_format: no form was found for NAME, such as soon",
        ),
        (
            "PaymentDate",
            ("20261101", "20261130"),
            '# ? date_format = "%Y%m%d"  # of NAME, such as 20261101',
        ),
        (
            "PaymentDate",
            ("01122026",),
            '# ? date_format = "%d%m%Y" or "%m%d%Y"  # of NAME, such as 01122026',
        ),
        (
            "PaymentDate",
            ("010226",),
            '# ? date_format = "%y%m%d" or "%d%m%y" or "%m%d%y"  # of NAME, such as 010226',
        ),
        (
            "PaymentDate",
            ("46327", "46328"),
            '# ? date_format = "excel" or "excel-1904"  # of NAME, such as 46327',
        ),
        (
            "PaymentDate",
            ("46327.5", "46328"),
            '# ? date_format = "excel" or "excel-1904"  # of NAME, such as 46327.5',
        ),
        ("PaymentDate", ("1767225600",), '# ? date_format = "unix"  # of NAME, such as 1767225600'),
        (
            "PaymentDate",
            ("none", "-"),
            '# ? null = ["", "-", "none"]  # such texts are in 2 cells of numbers and times',
        ),
        (
            "paidamount",
            ("ab", "1.5", "c"),
            "# ? NAME: most of its cells are no numbers, such as ab",
        ),
        ("PaidAmount", ("1.5", "2.5", "x"), "# ? NAME: 1 of 3 cells is no number, such as x"),
        (
            "PaidAmount",
            ("00000150", "00012345"),
            "# ? NAME: implied_decimals, if the last digits are decimals, such as 00000150",
        ),
        ("PaidAmount", ("0", "15"), None),
        ("Id", ("4711", "4712.5"), "# ? NAME: some of its cells are no whole numbers"),
        ("PaymentDate", ("2026-11-01T10:00:00Z",), None),
        ("Id", ("4711", "4712"), None),
    ],
)
def test_what_a_field_cannot_be_read_from_is_marked(
    tmp_path: Path, name: str, cells: Sequence[str], told: str | None
) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"Name|{name}\n" + "".join(f"7|{cell}\n" for cell in cells))
    marked = drafted(str(path))[0].split("unknown_columns")[0].splitlines()
    said = [line for line in marked if line.startswith("# ? ") and "zone" not in line]
    assert said == ([told.replace("NAME", f'"{name}"')] if told else [])


NOTHINGS = [
    # names and rows, what is said of null, the sections at the end
    (
        ("Country;RefId;Fee", "NA;NA;-", "DE;7;1.5"),
        [
            '# ? null = ["", "-", "NA"]  # such texts are in 2 cells of numbers and times,',
            '#   and in 1 cell of "Country", which this would empty: "NA"',
        ],
        '\n# ? [fields.RefId]\n# ? null = ["", "NA"]\n'
        '\n# ? [fields.NAME]  # of "Fee"\n# ? null = ["", "-"]\n',
    ),
    (
        ("Country;RefId", "-;NA", "DE;7"),
        ['# ? null = ["", "NA"]  # such texts are in 1 cell of numbers and times'],
        "",
    ),
    (("Country;RefId", "NA;6", "DE;7"), [], ""),
]


@pytest.mark.parametrize(("rows", "said", "sections"), NOTHINGS)
def test_what_stands_for_no_value_may_be_a_text_elsewhere(
    tmp_path: Path, rows: Sequence[str], said: list[str], sections: str
) -> None:
    path = tmp_path / "a.csv"
    path.write_text("".join(f"{row}\n" for row in rows))
    text, _ = drafted(str(path), "user_account")
    top, _, behind = text.partition("[constants]")
    told = [line for line in top.splitlines() if line.startswith(("# ? null", "#   and in"))]
    assert told == said
    assert behind.endswith(sections)
    assert ("[fields." in behind) == bool(sections)


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (
            ("Date;Time;TimeZone", "13/02/2026;10:00:00;PST", "14/07/2026;09:30:00;PDT"),
            [
                '# If the columns "Date", "Time", "TimeZone" are one time, it is instead:',
                '# ? date_format = "%d/%m/%Y %H:%M:%S %Z"',
                '# ? zones = { PDT = "", PST = "" }  # what each means',
                "# ? [fields.PaymentDate]",
                '# ? from = ["Date", "Time", "TimeZone"]',
                '# ? join = " "',
            ],
        ),
        (
            ("Booked;TZ", "2026-02-13;CET"),
            ['# ? date_format = "%Y-%m-%d %Z"', '# ? from = ["Booked", "TZ"]'],
        ),
        (
            ("Day;At", "13.02.2026;1:30 PM"),
            ['# ? date_format = "%d.%m.%Y %I:%M %p"', '# ? from = ["Day", "At"]', "# ? zone ="],
        ),
    ],
)
def test_a_time_in_several_columns_is_told_with_the_names_of_its_zones(
    tmp_path: Path, lines: Sequence[str], told: Sequence[str]
) -> None:
    path = tmp_path / "a.csv"
    path.write_text("\n".join([*lines, ""]))
    text, _ = drafted(str(path))
    for one in told:
        assert one in text
    assert ("# ? zone =" in text) == ("# ? zone =" in told)


OF_ONE_FORM = [
    # rows of columns A, B and C, what is said of their form
    (
        ("01/02/2026;13/02/2026;",),
        [
            'date_format = "%d/%m/%Y"',
            '# ? "A": "%d/%m/%Y" or "%m/%d/%Y" in 1 cell such as 01/02/2026; only "B" says which',
        ],
    ),
    (("13/02/2026;14/02/2026;",), ['date_format = "%d/%m/%Y"']),
    (
        ("01/02/03;01/31/03;45/01/31",),
        [
            "# ? date_format: columns differ in it, see [fields.NAME]",
            '#   "A": "%y/%m/%d" or "%d/%m/%y" or "%m/%d/%y"',
            '#   "B": "%m/%d/%y"',
            '#   "C": "%y/%m/%d"',
        ],
    ),
    (
        ("01/02/2026;2026-02-13;",),
        [
            "# ? date_format: columns differ in it, see [fields.NAME]",
            '#   "A": "%d/%m/%Y" or "%m/%d/%Y"',
            '#   "B": of ISO 8601',
        ],
    ),
    (
        ("25/01/26;01/02/35;",),
        [
            '# ? date_format = "%d/%m/%y"  # no column tells it alone',
            '# ? "A": "%y/%m/%d" or "%d/%m/%y" in 1 cell such as 25/01/26',
            '# ? "B": "%d/%m/%y" or "%m/%d/%y" in 1 cell such as 01/02/35',
        ],
    ),
    (
        ("25/01/26;01/02/26;",),
        [
            '# ? date_format = "%y/%m/%d" or "%d/%m/%y"  # each fits every row',
            '# ? "B": "%y/%m/%d" or "%d/%m/%y" or "%m/%d/%y" in 1 cell such as 01/02/26; only "A" '
            "says which",
        ],
    ),
]


@pytest.mark.parametrize(("rows", "said"), OF_ONE_FORM)
def test_a_form_that_a_column_does_not_tell_no_other_column_decides(
    tmp_path: Path, rows: Sequence[str], said: list[str]
) -> None:
    path = tmp_path / "a.csv"
    path.write_text("".join(f"{row}\n" for row in ("A;B;C", *rows)))
    lines = drafted(str(path))[0].split("unknown_columns")[0].splitlines()
    told = [line for line in lines if "date_format" in line or re.match(r'#( \?|  ) "[ABC]"', line)]
    assert [line for line in told if "is in 20" not in line] == said


@given(
    st.sampled_from(DAYS[:-1]),
    st.lists(
        st.dates(min_value=date(1970, 1, 1), max_value=date(2037, 1, 1)),
        min_size=1,
    ),
)
def test_the_form_that_times_were_written_in_is_among_those_told(
    form: str, days: list[Any]
) -> None:
    cells = [day.strftime(form) for day in days]
    found = times_of(cells)
    assert found is None or (form,) in (found.forms or [("%Y-%m-%d",)])
    assert found or all(map(str.isdigit, cells))


@given(
    st.sampled_from([(".", ""), (".", ","), (",", "."), (",", ""), (".", "'"), (",", " ")]),
    st.lists(st.integers(-(10**12), 10**12), min_size=1, max_size=5),
    st.integers(0, 4),
)
def test_numbers_are_stated_as_they_were_written_or_not_at_all(
    signs: tuple[str, str], numbers: list[int], places: int
) -> None:
    decimal, thousands = signs
    each = [Decimal(number).scaleb(-places) for number in numbers]
    cells = [
        f"{one:,.{places}f}".replace(",", "T").replace(".", decimal).replace("T", thousands)
        for one in each
    ]
    found = NumberSigns()
    assert found.add(cells)
    assert found.decimal <= {decimal}
    assert found.thousands <= {"blank" if thousands == " " else thousands}
    if found.either - found.decimal - found.thousands or len(found.decimal | found.thousands) > 2:
        return  # It is marked.
    shape = {"feed": "x"}
    if found.decimal:
        shape["decimal"] = min(found.decimal)
    if found.thousands:
        shape["thousands"] = min(found.thousands)
    elif found.either - found.decimal:
        return
    if shape.get("decimal", ".") == shape.get("thousands"):
        shape["decimal"] = "," if shape["thousands"] == "." else "."
    form = number_form(written_of(read_profile(shape)))
    plain = pl.select(form.plain(pl.lit(pl.Series(cells)))).to_series().to_list()
    assert [exact_number(one) for one in plain] == each


PAID, DAY = "PaidAmount", "PaymentDate"
OTHERS = ("TenantsId", "ActionsId", "DebtsId", "DiscountAmount", "CurrenciesId", "CurrencyRatesId")
FORMS = ("%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%d %b %Y %H:%M", "%Y%m%d", "%y-%m-%d")
LEFT = "# ? zone = "
"""What a draft cannot know of times without an offset."""


@pytest.mark.long
@settings(max_examples=examples(300, 25))
@given(
    st.sampled_from(",;\t|"),
    st.sampled_from([(".", ""), (",", ""), (",", "."), (".", ","), (".", "'")]),
    st.sampled_from(FORMS),
    st.booleans(),
    st.permutations(("Id", PAID, DAY, *OTHERS)),
    st.lists(
        st.tuples(
            st.integers(-(10**9), 10**9),
            st.dates(min_value=date(1990, 1, 1), max_value=date(2037, 1, 1)),
        ),
        min_size=1,
        max_size=4,
    ),
)
def test_a_draft_reads_what_was_written_or_marks_what_it_cannot_tell(
    delimiter: str,
    signs: tuple[str, str],
    form: str,
    is_quoted: bool,
    names: list[str],
    written: list[tuple[int, date]],
) -> None:
    """Never a wrong value without a mark."""
    lines, meant = [delimiter.join(names)], []
    for number, (cents, day) in enumerate(written, 1):
        plain = f"{Decimal(cents).scaleb(-2):,.2f}"
        paid = plain.translate({ord("."): signs[0], ord(","): signs[1]})
        cells = dict.fromkeys(OTHERS, "7") | {
            "Id": str(number),
            PAID: paid,
            DAY: day.strftime(form),
        }
        row = (cells[name] for name in names)
        lines.append(
            delimiter.join(f'"{one}"' if is_quoted or delimiter in one else one for one in row)
        )
        meant.append((Decimal(cents).scaleb(-2), f"{day:%Y-%m-%d}"))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.csv"
        path.write_text("\n".join([*lines, ""]))
        text, draft = drafted(str(path))
        marked = [line for line in text.splitlines()[2:] if "# ?" in line]
        if any(not line.startswith(LEFT) for line in marked):
            return
        stated = replace(draft, offset="Z")
        tried = try_profile(read_settings(), str(path), stated, record=None, rows=len(written))
    assert not tried.verdict.rejects, text
    read = [(row.values[PAID][1], row.values[DAY][1]) for row in tried.rows]
    assert [(Decimal(str(paid)), str(day)[:10]) for paid, day in read] == meant, text


BOTH = "all of them look like one; header_lines where names have several rows"
SIGNS = [
    # the text, what the draft says of its signs
    ("Id||Paid\n1||2.50\n2||3.50\n", ['delimiter = "||"']),
    ("Id|Paid|Note\n1|2.50||\n2|3.50|a||b\n", ['delimiter = "|"']),
    ("# a\nId;Paid\n# b\n1;2.50\n", ['# ? comment = "#"  # 2 lines begin so']),
    # What has all cells may be a record, or the header.
    (
        "Id;Paid\n#1;2.50\n#2;3.50\n",
        [
            '# ? 2 lines begin with # and have all cells: records, or comment = "#"',
            '# ? "Paid" = "PaidAmount"  # such as 2.50',
        ],
    ),
    ("#;Paid\n1;2.50\n2;3.50\n", []),
    (
        "#;Paid\n1;2.50\n# 2\n2;3.50\n",
        ['# ? comment = "#"  # 1 line begins so, and the header too: it would be none'],
    ),
    ("Id\n# 1\n2\n", ['# ? 1 line begins with # and has all cells: records, or comment = "#"']),
    (
        'Id\tPaid\tNote\n1\t2.50\t\\N\n2\t3.50\t"a\\"b"\n3\t1\tC:\\\n',
        ['# ? escape = "\\\\"  # 2 lines have \\N or \\"'],
    ),
    ("Id;Paid\n1;2.50\n", []),
    # A column without a name, and names of two.
    (
        "Id;PaidAmount;\n1;2.50;\n",
        ['unknown_columns = "ignore"  # ? without it every column has to be mapped'],
    ),
    (
        "Bank\nId;;Paid\n1;x;2.50\n",
        [
            "# ? Nothing can be made of columns without a name, which have cells: 2.",
            '# ? names = ["Id", "Column 2", "Paid"]',
            "# ? first_line = 3",
        ],
    ),
    (
        "Id;Paid;paid;Paid 2\n1;2.50;x;y\n",
        [
            '# ? Several columns are called "Paid", "paid": a file is refused if one is read.',
            '# ? names = ["Id", "Paid", "paid 3", "Paid 2"]',
            "# ? first_line = 2",
        ],
    ),
    (
        "Bank\nId;Paid\n1;2.50;;\n2;3.50;;\n",
        [
            'header_line = 2  # or "found", where that differs by file',
            '# ? unnamed_columns = 2  # with unknown_columns = "ignore"',
        ],
    ),
    (
        "Id;Paid\n1;2.50;\n2;3.50;x\n",
        [
            '# ? unnamed_columns = 1  # with unknown_columns = "ignore"',
            "#   1 row has a text there, such as x: it would be left out",
            'delimiter = ";"',
        ],
    ),
    (
        "Id;Paid;Note\n1;2.50\n2;3.50\n",
        ["# ? Rows have 1 cell less than the header has names: they would be rejected."],
    ),
    ("A;B\nId;Paid\n1;2.50\n", ["# ? header_line = 1 or 2  # " + BOTH]),
    # A header has up to five rows: what goes on like that is a list of texts.
    ("A;B\n" + "a;b\n" * 5 + "1;2.50\n", ['delimiter = ";"']),
    ("No|Paid\n 1| 2.50\n 2|30.50\n", ['# ? blanks = "dropped"  # 3 cells have blanks around']),
    ("7;a\n8;b\n", ['# ? names = ["Column 1", "Column 2"]', '# ? "Column 1" = ""  # such as 7']),
    ("Bank\n7;a\n8;b\n", ["# ? first_line = 2"]),
    ("Id\n1\n2\n", ['# ? delimiter = ","  # no sign divides most of its lines; or [positions]']),
    # Decimal commas divide as many lines, a title another number of cells.
    ("Datum;Betrag, EUR;Text\na;4,50;x\na;5,50;x;y\n", ['delimiter = ";"']),
    ("Name;City\n1;Smith, John\n2;Ray, Ann, Dr\n", ['delimiter = ";"']),
    (
        'Id;Paid\n1;"2\n3;4\n',
        [
            '# ? 1 row without the 2 cells of the others, line 2: 1;"2',
            '#   1 with quotes out of place; quote = "none" where they are text',
        ],
    ),
]


@pytest.mark.parametrize(("text", "said"), SIGNS)
def test_a_draft_says_what_stands_beside_the_cells(
    tmp_path: Path, text: str, said: list[str]
) -> None:
    path = tmp_path / "a.csv"
    path.write_text(text)
    lines = drafted(str(path))[0].splitlines()
    assert [line for line in lines if line in said] == said
    marked = [
        [
            one
            for one in some
            if re.match(r"# \? (blanks|comment|escape|unnamed_columns|header_line) =", one)
        ]
        for some in (lines, said)
    ]
    assert marked[0] == marked[1]


RECORDS = "No;Paid;On;Text\n4711;1.234,56;01.11.2026;a\n4712;-20,00;02.11.2026;b\n"
ENDS = [
    # what the file ends with, the lines that are no records, the first row that is odd
    ('4713;5,00;03.11.2026;"two\nlines"\n', [], None),
    ('4713;5,00;03.11.2026;"a\nSumme;1"\n', [], None),
    ("4713;5,00;03.11.2026;b;x\n", [], "4713;5,00;03.11.2026;b;x"),
    ("4713;5,00;03.11.2026\n", [], "4713;5,00;03.11.2026"),
    ("4713;5,00;03.1", [], "4713;5,00;03.1"),
    ("4713;;03.11.2026;\n", [], None),
    # A name that begins as a total does is one sign, and a wrong number another.
    ("4713;5,00;03.11.2026;Total SE\n", [], None),
    ("x4713;5,00;03.11.2026;c\n", [], None),
    ("Summe;1.214,56;;\n", ["Summe;1.214,56;;"], None),
    ("Summe;1.214,56\n2 Buchungen\n", ["Summe;1.214,56", "2 Buchungen"], None),
    (";;Total;1.214,56\n\n", [";;Total;1.214,56"], None),
    ("4713;5,00;03.11.2026;c\nEnd of file\n", ["End of file"], None),
    ("4713;5,00\nTotal;1\n", ["Total;1"], "4713;5,00"),
    ("Total;1\n4713;5,00;03.11.2026;c\n", [], "Total;1"),
]


@pytest.mark.parametrize(("end", "behind", "odd"), ENDS)
def test_only_what_can_be_no_record_is_offered_as_a_footer(
    tmp_path: Path, end: str, behind: list[str], odd: str | None
) -> None:
    path = tmp_path / "a.csv"
    path.write_text(RECORDS + end)
    lines = drafted(str(path))[0].splitlines()
    begin = "# Behind the records: "
    assert [line.removeprefix(begin) for line in lines if line.startswith(begin)] == behind
    assert any(line.startswith("# ? footer") for line in lines) == bool(behind)
    told = [line for line in lines if line.startswith("# ? 1 row without the 4 cells")]
    assert [line.partition(": ")[2] for line in told] == ([odd] if odd else [])
    # Of a large file only the beginning and the end are looked at.
    rows = RECORDS.partition("\n")[2]
    shape = shape_of(RECORDS + rows, "of a cut line\n" + rows * 4 + end)
    assert (shape.behind, [one.text for one in shape.odd]) == (tuple(behind), [odd] * bool(odd))


ROWS = "4713;5,00;03.11.2026;c\n4714;6,00;03.11.2026;\n"
ACCOUNT = "#   Account becomes a column of the rows below; where it is none, write .* for it"
BETWEEN = [
    # lines above the header and between the rows, what is said of them
    ("Account: 1\n", "Account: 2\n", ["'Account: *(?P<Account>.*)'", "1 line", ACCOUNT]),
    ("", "Account: 2\nAccount: A3\n", ["'Account: *(?P<Account>.*)'", "2 lines", ACCOUNT]),
    ("", "Text: 2\nText: 3\n", [r"'Text: \d+'", "2 lines"]),
    # Of two kinds with one name the first says it: what is below it is no other one.
    (
        "",
        "Account: 2\nEnd of account: 5\n" * 2,
        [r"'Account: *(?P<Account>.*)', 'End of account: \d+'", "4 lines", ACCOUNT],
    ),
    ("", "Account;2;;\nAccount;3;;\n", ["'Account;(?P<Account>[^;]*).*'", "2 lines", ACCOUNT]),
    (
        "",
        "Account;2;Currency;EUR\nAccount;3;Currency;EUR\n",
        ["'Account;(?P<Account>[^;]*);Currency;(?P<Currency>[^;]*).*'", "2 lines", ACCOUNT],
    ),
    (
        "",
        "Account: 2 Currency: EUR\nAccount: 3 Currency: USD\n",
        ["'Account: *(?P<Account>.*?) *Currency: *(?P<Currency>.*)'", "2 lines", ACCOUNT],
    ),
    (
        "",
        '"Account: 2"\n"Account: 3"\n',
        ['\'"Account: *(?P<Account>[^"]*)".*\'', "2 lines", ACCOUNT],
    ),
    (
        "",
        "Account: 2;;;\nAccount: 3;;;\n",
        ["'Account: *(?P<Account>[^;]*).*'", "2 lines", ACCOUNT],
    ),
    (
        "",
        "Account  47 A\nAccount  51 B\n",
        [r"'Account\s+(?P<Account>[0-9]+).*'", "2 lines", ACCOUNT],
    ),
    # A sum below rows says nothing of those behind it, and may be longer on another page.
    ("", "Sum;;5,00;\nSum;;6,00;\n", ["'Sum.*'", "2 lines"]),
    ("", "Sum of 2: 5,00\nSum of 3: 6,00\n", ["'Sum of.*'", "2 lines"]),
    # What no group can be called, and no pattern can have.
    ("", "हिन्दी 47 a\nहिन्दी 51 b\n", ["'हिन्दी.*'", "2 lines"]),
    ("", "ReconRow: 4\nReconRow: 5\n", [r"'ReconRow: \d+'", "2 lines"]),
    ("", "a\0b;4\na\0b;5\n", []),
    ("", "No;Paid;On;Text\n", ["'No;Paid;On;Text'", "1 line"]),
    ("Page 1 (of 2)\n", "Page 2 (of 2)\n", [r"'Page \d+ \(of \d+\)'", "1 line"]),
    ("", "It's 4 B\nIt's 5 A\n", ['"It\'s.*"', "2 lines"]),
    ("", "----\n-;---;-\n", [r"'[\-;]+'", "2 lines"]),
    # What may be a record, or its beginning, is left to whoever decides.
    ("", "4720;7,00\n4721;8,00\n", []),
    ("", "N/A;7,00;03.11.2026;c\nN/A;8,00;03.11.2026;c\n", []),
    ("", "Account: 2\n", []),
    ("", "x;-;-;-\n", []),
    ("", '4730;7,00;03.11.2026;"Account: 1\nAccount: 2\nAccount: 3"\n', []),
]


@pytest.mark.parametrize(("above", "between", "said"), BETWEEN)
def test_lines_of_other_kinds_are_told_by_patterns(
    tmp_path: Path, above: str, between: str, said: list[str]
) -> None:
    path = tmp_path / "a.csv"
    path.write_text(above + RECORDS + between + ROWS)
    lines = drafted(str(path))[0].splitlines()
    told = [line for line in lines if line.startswith(("# ? skip_lines", "#   Account"))]
    wanted = [f"# ? skip_lines = [{said[0]}]  # {said[1]} between rows", *said[2:]] if said else []
    assert told == wanted
    # So read, every line below the header is one of these, or a row.
    patterns = [kind.pattern for kind in shape_of(above + RECORDS + between + ROWS).kinds]
    profile = read_profile({"feed": "x", "skip_lines": patterns})
    body = RECORDS.partition("\n")[2] + (between if said else "") + ROWS
    dialect = Dialect(b";", skip_lines=profile.skip_lines)
    found, _ = read_records(body.encode(), 4, dialect)
    assert [one.fault for one in found] == [RecordFault.NONE] * 4


ENCODED = [
    # what a file is written in, its header, the lines of the draft about that
    ("utf-8", "Nr;Empfänger", []),
    ("utf-16", "Nr;Empfänger", []),
    ("utf-16-be", "Nr;Empfänger", ['encoding = "utf-16-be"  # ? It looks like it, and no']),
    (
        "cp1252",
        "Nr;Empfänger",
        ['encoding = "cp1252"  # ? It is not UTF-8. Is this right: Nr;Empf'],
    ),
    # What has signs of two bytes may be in several encodings, and only a reader knows the words.
    ("cp932", "番号;日付", ['encoding = "cp932"  # ? It is not UTF-8. Is this right: 番号;日']),
    ("gbk", "编号;日期", ['#   or "gbk": 编号;日期']),
    ("cp949", "번호;날짜", ['#   or "cp949": 번호;날짜', '#   or "cp1252": ¹øÈ£;³¯Â¥']),
    ("cp950", "號碼;日期", ['#   or "cp950": 號碼;日']),
]


@pytest.mark.parametrize(("encoding", "header", "said"), ENCODED)
def test_a_draft_names_the_encodings_that_a_text_can_be_in(
    tmp_path: Path, encoding: str, header: str, said: list[str]
) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(f"{header}\n1;2026-11-01\n2;2026-11-02\n".encode(encoding))
    lines = drafted(str(path))[0].splitlines()
    told = [line for line in lines if line.startswith(("encoding", '#   or "'))]
    assert bool(told) == bool(said)
    assert [any(line.startswith(one) for line in told) for one in said] == [True] * len(said)


MUELLER = "1;Müller\n".encode()
MIXED = [
    # lines, what the draft says of their encoding
    (
        MUELLER * 500 + "2;Möller Köln\n".encode("cp1252") + MUELLER * 499,
        [
            '# ? encoding = "utf-8"  # 1 of 1,000 lines beyond ASCII is not, line 502',
            "#   in it: 1;Müller",
            '#   or "cp1252": 2;Möller Köln',
        ],
    ),
    (
        MUELLER * 5 + "2;Möller\n3;Böll\n".encode("cp1252"),
        [
            '# ? encoding = "utf-8"  # 2 of 7 lines beyond ASCII are not, the first line 7',
            "#   in it: 1;Müller",
            '#   or "cp1252": 2;Möller',
        ],
    ),
    (
        "2;Möller\n3;Böll\n".encode("cp1252") + MUELLER,
        [
            'encoding = "cp1252"  # ? It is not UTF-8. Is this right: 2;Möller',
            "# ? 1 of 3 lines beyond ASCII is UTF-8 all the same: 1;Müller",
        ],
    ),
    (MUELLER * 3, []),
]


@pytest.mark.parametrize(("lines", "said"), MIXED)
def test_lines_in_two_encodings_are_told_and_one_of_each_is_shown(
    tmp_path: Path, lines: bytes, said: list[str]
) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"Nr;Name\n" + lines)
    told = drafted(str(path))[0].split("delimiter")[0].splitlines()[5:]
    assert told == said


DIGITS = [
    # a record kind, what a column is called, its cells, a field, and whether it is offered for it
    ("user_account", "Postal code", ("10115", "20095"), "PostalCode", True),
    ("user_account", "Postal code", ("101.15",), "PostalCode", False),
    ("user_account", "Date of birth", ("19850403",), "BirthDate", True),
    ("user_account", "Birth date", ("850403", "1"), "BirthDate", False),
    ("insert_batch_data", "Is merged", ("1", "0"), "Merged", True),
    ("insert_batch_data", "Is merged", ("1", "2"), "Merged", False),
]


@pytest.mark.parametrize(("record", "column", "cells", "field", "is_offered"), DIGITS)
def test_digits_are_offered_for_texts_flags_and_times(
    tmp_path: Path, record: str, column: str, cells: Sequence[str], field: str, is_offered: bool
) -> None:
    path = tmp_path / "a.csv"
    rows = (f"Id;BatchId;{column}", *(f"1;2;{cell}" for cell in cells))
    path.write_text("".join(f"{row}\n" for row in rows))
    text, _ = drafted(str(path), record)
    (line,) = (one for one in text.splitlines() if one.startswith(f'# ? "{column}"'))
    assert (f'= "{field}"' in line) == is_offered
    asked = f'# ? date_format = "%Y%m%d"  # of "{column}", such as (not shown)'
    assert (asked in text) == (is_offered and field == "BirthDate")


HEADING = "Konto;DE02;Währung;EUR\n"
HEADERS = [
    # a text whose heading may be a header too, and what is said of its header
    (HEADING + RECORDS, ["# ? header_line = 1 or 2"]),
    (HEADING + RECORDS + HEADING.replace("2", "3") + RECORDS, ["header_line = 2"]),
    # Words alone are rows as well, also those that are there twice.
    ("Name;City\nSmith;Rome\nRay;Paris\nSmith;Rome\n", []),
    # A rule is no row of names.
    (RECORDS.replace("\n", "\n-----;----;--;-----\n", 1), []),
]


@pytest.mark.parametrize(("text", "said"), HEADERS)
def test_a_header_that_is_printed_anew_is_the_header(
    tmp_path: Path, text: str, said: list[str]
) -> None:
    path = tmp_path / "a.csv"
    path.write_text(text)
    lines = drafted(str(path))[0].splitlines()
    told = [line.partition("  #")[0] for line in lines if "header_line =" in line]
    assert told == said


def test_lines_of_other_kinds_hide_no_footer() -> None:
    page = HEADING + RECORDS + ROWS + "Summe;5,00;;\n"
    shape = shape_of(page + page.replace("2;W", "3;W") + "Gesamt;10,00;;\n8 Buchungen;;;\n")
    assert shape.behind == ("Gesamt;10,00;;", "8 Buchungen;;;")
    assert [kind.names for kind in shape.kinds] == [(), (), ("Konto", "Währung")]


def test_a_workbook_has_no_lines_of_other_kinds() -> None:
    text = RECORDS + "Account: 2,,\n" * 2 + ROWS
    assert (len(shape_of(text).kinds), shape_of(text, of_workbook=True).kinds) == (1, ())


@pytest.mark.parametrize("sign", ["\u2028", "\x0b", "\x0c", "\x1c", "\x85"])
def test_a_sign_that_ends_no_line_of_a_file_is_text(sign: str) -> None:
    shape = shape_of(f"{RECORDS}{sign}4713;5,00;03.11.2026;a{sign}b\n")
    assert (shape.odd, shape.rows[-1]) == ((), (f"{sign}4713", "5,00", "03.11.2026", f"a{sign}b"))


@given(st.data())
def test_an_odd_row_hides_neither_the_header_nor_the_delimiter(data: st.DataObject) -> None:
    width, unnamed = data.draw(st.integers(2, 5)), data.draw(st.integers(0, 1))
    header = ["Datum", "Betrag", "Text", "Mandant", "Ref"][:width]
    rows = [
        [*["01.11.2026", f"{n},50", "abc", "7", "x1"][:width], *[""] * unnamed]
        for n in range(data.draw(st.integers(4, 7)))
    ]
    odd = data.draw(st.sampled_from(rows))
    odd[-1:] = data.draw(st.sampled_from([[], ["z", "y"], ["z", "y", "x"]]))
    above = data.draw(st.lists(st.sampled_from(["Bank", "Konto;1;2", ""]), max_size=3))
    lines = [*above, *(";".join(row) for row in (header, *rows))]
    usual = width + unnamed - 1
    counts = Counter(line.count(";") for line in lines)
    # Else others may be the records, or those above may be.
    assume(all(counts[usual] > count for signs, count in counts.items() if signs != usual))
    assume(sum(line.count(";") == usual for line in above) < len(rows) - 1)
    shape = shape_of("\n".join(lines))
    assert (shape.delimiter, shape.headed, shape.header_line) == (";", True, len(above) + 1)
    assert len(shape.rows) == len(rows) - 1
    assert [record.cells for record in shape.odd] == [tuple(odd)]


TABLES = [
    # header and line, what is guessed
    ("Date,USD,JPY,CYP,", "2014-08-25,1.32,137.13,N/A,", ("Date", "Currency", "USD, JPY, CYP")),
    ("Account;2026-01;2026-02;2026-03", "A;1;2;3", ("Account", "Month", "2026-01, 2026-02")),
    ("Debt;Name;Jan 26;Feb 26;Mar 26", "1;x;1;;3", ("Debt", "Month", "Jan 26, Feb 26, Mar 26")),
    ("Month;01.01.2026;02.01.2026;03.01.2026", "a;1;2;3", ("Month", "Day", "01.01.2026")),
    ("Code;4711;4712;4713;4714", "a;1;2;3;4", ("Code", "Code of the column", "and 1 more")),
    ("Date,USD,JPY", "2014-08-25,1.32,137.13", None),
    ("Date,USD,JPY,CYP", "2014-08-25,a,b,c", None),
    ("Date,USD,JPY,CYP", "2014-08-25,-,-,-", None),
    ("Id,PaidAmount,TAX,FEE,NET,Name,Currency", "1,2,3,4,5,x,EUR", None),
    ("USD,JPY,CYP", "1.32,137.13,2", None),
]


@pytest.mark.parametrize(("header", "line", "guess"), TABLES)
def test_a_table_with_a_column_for_each_currency_or_month_is_guessed_and_marked(
    tmp_path: Path, header: str, line: str, guess: tuple[str, str, str] | None
) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"{header}\n{line}\n")
    text, draft = drafted(str(path))
    assert not draft.unpivots
    assert ("# ? [unpivot]" in text) == bool(guess)
    if guess is not None:
        keep, name, columns = guess
        assert f"{columns}" in text.split("# ? [unpivot]")[0]
        stated = re.sub(
            r"^# [?] (\[unpivot\]|(?:keep|name|value) =)", r"\1", text, flags=re.MULTILINE
        )
        profile = read_profile(read_toml(stated))
        assert (profile.unpivot_keep[0], profile.unpivot_name) == (keep, name)
        assert f'# ? "{name}" = ' in text.split("[columns]")[1]
        assert '# ? "USD"' not in text


@pytest.mark.long(but=("blank_line_middle.csv", "gz_truncated.csv.gz"))
@pytest.mark.parametrize(
    "path",
    [in_long(one) if "10000" in one.name else one for one in TORTURE],
    ids=lambda path: path.name,
)
def test_a_hostile_file_has_a_draft_that_can_be_loaded_or_is_refused(path: Path) -> None:
    try:
        drafted(str(path))
    except (DeliveryError, ExtractRefused):
        return


@settings(deadline=None)
@given(st.lists(st.text(max_size=20), min_size=1, max_size=4))
def test_whatever_columns_are_called_the_draft_can_be_loaded(names: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.csv"
        path.write_bytes((";".join(names) + "\n1;2\n").encode("utf-8", "surrogatepass"))
        try:
            text, _ = drafted(str(path), None)
        except ExtractRefused:
            return
    mapped = re.sub(r'^# [?] (".*") = "" ', r'\1 = "Id" ', text, flags=re.MULTILINE)
    read_toml(mapped)


def test_the_command_prints_it_and_trying_it_says_what_is_left(recon: Any, tmp_path: Path) -> None:
    path = file_of("german-bank", "clean")
    code, out, err = recon("profile", "draft", path, "--record", "payment", "--feed", "bank")
    assert (code, err) == (0, "")
    assert out.startswith("# Drafted from clean.csv, the first 3 rows of it.\n# Decide what begins")
    assert '# ? "Buchungstag" = "PaymentDate"  # such as 02.11.2026' in out
    draft = tmp_path / "bank.toml"
    draft.write_text(out)
    code, out, _ = recon("profile", "try", path, "--profile", str(draft), "--json")
    assert (code, json.loads(out)["refused"]) == (1, "missing_column")


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (("no.csv",), "no such file"),
        (("a.csv", "--record", "refund"), "There is no record kind 'refund'"),
        (("a.csv", "--feed", "a b"), "feed = 'a b' is not a name"),
    ],
)
def test_what_cannot_be_drafted(
    recon: Any, tmp_path: Path, asked: tuple[str, ...], told: str
) -> None:
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")
    code, out, err = recon("profile", "draft", str(tmp_path / asked[0]), *asked[1:])
    assert (code, out) == (2, "")
    assert told in " ".join(err.split())


def test_days_are_looked_at_however_many_there_are() -> None:
    days = [(date(2026, 1, 1) + timedelta(days=n)).strftime("%d/%m/%Y") for n in range(400)]
    assert times_of(days) == TimesFound((("%d/%m/%Y",),), 0, "")


@pytest.mark.parametrize(
    ("cells", "forms"),
    [
        (["26/11/01", "26/11/28"], {"%d/%m/%y", "%y/%m/%d"}),
        (["26.11.01", "26.11.28"], {"%d.%m.%y", "%y.%m.%d"}),
        (["01/02/03"], {"%d/%m/%y", "%m/%d/%y", "%y/%m/%d"}),
        (["2026-11-03 10:11:12 -0500"], {"%Y-%m-%d %H:%M:%S %z"}),
        (["03-Nov-26"], {"%d-%b-%y"}),
    ],
)
def test_every_order_of_a_date_is_tried(cells: list[str], forms: set[str]) -> None:
    """Of two that fit neither is stated: a year at the front is read as a day without a word."""
    found = times_of(cells)
    assert found is not None
    assert {*chain(*found.forms)} == forms


@pytest.mark.parametrize(
    ("column", "cells", "field", "is_offered"),
    [
        # What the column is called, its cells, a field with such a name, and whether it is offered.
        ("Payment", ("1/3", "2/3"), DAY, False),
        ("Payment", ("Café Account", "Rent"), DAY, False),
        ("Payment", ("4711", "x", "y"), DAY, False),
        ("Payment", ("03.11.", "x"), DAY, True),
        ("Payment", ("11/2026",), DAY, True),
        ("Payment", ("3 janv. 2026",), DAY, True),
        ("Payment", ("1 46327 x", "y"), DAY, True),
        ("Payment", ("-", "n/a"), DAY, True),
        ("Payment", (), DAY, True),
        ("Paid", ("Café Account", "Rent"), PAID, False),
        ("Paid", ("-", "n/a"), PAID, True),
        ("Paid", ("Rent 2 of 3",), PAID, True),
        ("Paid", ("\u0664\u0665",), PAID, True),
        # Digits may be a name of something, a flag, or a time, and decimals are none of these.
        ("Payment date", ("20261101", "20261130"), DAY, True),
        ("Payment day", ("99", "4711"), DAY, False),
        ("Payment", ("4711.5", "4712"), DAY, False),
        ("Payment date", ("46327.5", "46328"), DAY, True),
        ("Amount in cents", ("150", "99"), f'"{PAID}"  # such as 150, with implied_decimals', True),
        ("Amount in cents", ("1.50", "99"), "implied_decimals", False),
        # A map makes a number of any text.
        ("Currency", ("EUR", "USD"), "CurrenciesId", True),
    ],
)
def test_a_column_is_offered_for_what_its_cells_can_be(
    tmp_path: Path, column: str, cells: Sequence[str], field: str, is_offered: bool
) -> None:
    path = tmp_path / "a.csv"
    path.write_text("".join(f"{cell}\n" for cell in (f"No|{column}", *(f"1|{c}" for c in cells))))
    offered = drafted(str(path))[0].split("[columns]")[1].split("[constants]")[0]
    (line,) = (one for one in offered.splitlines() if one.startswith(f'# ? "{column}"'))
    assert (field in line) == is_offered


ACCOUNT = "Id;UserName;PasswordHash;Salt;RefId\n"
SECRET = [
    # a record kind, or none; a text, in which each secret begins with sec; what it is written in
    ("user_account", ACCOUNT + "1;u;sec1;sec2;7\n2;u;sec3;sec4;8\n", "utf-8"),
    (None, ACCOUNT + "1;u;sec1;sec2;7\n2;u;sec3;sec4;8\n", "utf-8"),
    ("user_account", "Id;UserName;Kennwort\n1;u;sec1\n", "utf-8"),
    (None, "Password;Kennwort\nsec1;sec2\n", "utf-8"),
    # A cell that is lost moves a secret anywhere.
    ("user_account", ACCOUNT + "1;u;x;x;7\n2;u;secret1;7\n3;sec ;x;sec2\n", "utf-8"),
    ("user_account", ACCOUNT + "1;u;x;x;7\n2;u;x;x;8\n3;u;x;x;9\nTotal;sec;sec\n", "utf-8"),
    ("user_account", ACCOUNT + "1;u;x;x;7\nSec: 1\n2;u;x;x;8\nSec: 2\n3;u;x;x;9\n", "utf-8"),
    ("user_account", ACCOUNT + "1;u;s\u00e9c;x;7\n", "cp1252"),
    ("user_account", ACCOUNT + "1;u;x;x;7\n2;u;x;x;7\n3;u;x;x;secret\n", "utf-8"),
    ("user_account", ACCOUNT + "1;u;3 sec. 2026;x;7\n", "utf-8"),
    ("user_account", ACCOUNT + "1;u;Sec 1.5;x;7\n", "utf-8"),
    ("user_account", "UserName;IsActive\nu;sec1\nu;sec2\n", "utf-8"),
    ("user_account", "UserName;BirthDate;TZ\nu;2026-01-01;Sec\nu;2026-01-02;Sec\n", "utf-8"),
    # What is no header for certain may be one.
    ("user_account", "u;sec1\nv;sec2\n", "utf-8"),
    ("user_account", "1;sec1\n2;sec2\n", "utf-8"),
    ("insert_batch_data", "Id;BatchId;Jsondata\n1;2;sec\n", "utf-8"),
]


@pytest.mark.parametrize(("record", "text", "encoding"), SECRET)
def test_a_draft_shows_no_cell_that_may_be_a_secret(
    tmp_path: Path, record: str | None, text: str, encoding: str
) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(text.encode(encoding))
    draft, _ = drafted(str(path), record)
    assert not re.search("s[e\u00e9]c", draft, re.IGNORECASE), draft
