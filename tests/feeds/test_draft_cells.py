"""What cells tell of numbers, forms and missing values: stated where it is one, marked else."""

import re
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.files.profiles.profile import number_form, written_of
from connectors.files.profiles.profile_file import read_profile
from flows.stages.draft.columns import CENTS
from flows.steps.draft_numbers import NumberSigns
from schemas.cells.numbers import exact_number
from tests.feeds.test_draft import drafted
from tests.governance.conftest import recon as recon  # noqa: PLC0414 -- the fixture.

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
            ("13/04/99", "14/03/99"),
            'date_format = "%d/%m/%y"\n# ? "Value": 13/04/99 is in 1999 by "%d/%m/%y", and',
            "year_zero =",
        ),
        (
            ("13/04/2569", "14/03/2569"),
            '# ? year_zero = -543  # "Value": 13/04/2569 is in 2569 by "%d/%m/%Y"; in',
            "is in 2008",
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
        (("20260102",), '# ? date_format = "%Y%m%d"  # of "Value", such as', "\ndate_format"),
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
        # No decimals behind the sign, as in messages of the SWIFT kind.
        (("20,", "7,5"), 'decimal = ","\nunknown_columns', "is no number"),
        (("20,", "(3,)"), 'decimal = ","\nnegative = ["(1)"]\nunknown_columns', "is no number"),
        (("1.234,", "20, EUR"), 'decimal = ","\nthousands = "."\n', "is no number"),
        (("20.", "7.5"), 'delimiter = "|"\nunknown_columns', "decimal ="),
        # Nor a digit before it, as Oracle writes them.
        ((",5", "7,5", "-,125"), 'decimal = ","\nunknown_columns', "is no number"),
        ((",567",), 'decimal = ","\nunknown_columns', "thousands"),
        ((".5", "(.75)", "a.5"), "1 of 3 cells is no number, such as a.5", "decimal"),
        ((",123,456", "20", "30"), "1 of 3 cells is no number, such as ,123,456", "\nthousands"),
        (("1,234,", "20", "30"), "1 of 3 cells is no number, such as 1,234,", "\ndecimal"),
        (("20,-",) + ("7,5",) * 3, "1 of 4 cells is no number, such as 20,-", '"1-"'),
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
            'stands around the 1 in 1 DR of "Value", 1 cell such as 12.50 DR\n',
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
        (
            ("0001234}", "000123J", "0000"),
            '# ? sign = "overpunched"  # of "Value", such as 0001234}; mostly',
            "negative",
        ),
        (("12J", "13J"), 'unknown_columns = "ignore"', "overpunched"),
        (("12J", "13K", "4B2"), 'unknown_columns = "ignore"', "overpunched"),
        (("(1.50", "2"), 'unknown_columns = "ignore"', "negative"),
        (("5 %", "-7 %"), PERCENT + '"Value", such as 5 %: 5 % is 0.05, or it is 5\n', "negative"),
        (("5%", "12"), '# ? "Value": 1 of 2 cells is without a percent sign, such as 12\n', "1%"),
        (("%5", "%12"), 'stands around the 1 in %1 of "Value", 2 cells such as %5\n', "percent"),
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
        (
            "PaidAmount",
            ("1.5", "2", "1.50 h", "\N{DEVANAGARI DIGIT ONE}", "d"),
            "# ? NAME: most of its cells are no numbers, such as 1.50 h",
        ),
        ("PaidAmount", ("1.5", "2.5", "x"), "# ? NAME: 1 of 3 cells is no number, such as x"),
        (
            "PaidAmount",
            ("00000150", "00012345"),
            f"# ? NAME: {CENTS}, such as 00000150",
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


@pytest.mark.parametrize("whole", ["0", "1", "12", "123", "999", "1234", "12345678", "012"])
@pytest.mark.parametrize(("sign", "other"), [(".", ","), (",", ".")])
@pytest.mark.parametrize("around", ["1", "-1", "(1)", "1-"])
def test_a_sign_is_one_or_the_other_where_both_readings_are_numbers(
    whole: str, sign: str, other: str, around: str
) -> None:
    cell = around.replace("1", f"{whole}{sign}567")
    found = NumberSigns()
    assert found.add([cell])
    readings = []
    for signs in ({"decimal": sign}, {"decimal": other, "thousands": sign}):
        shape = {"feed": "x", "negative": ["-1", "(1)", "1-"], **signs}
        form = number_form(written_of(read_profile(shape)))
        readings.append(exact_number(pl.select(form.plain(pl.lit(cell))).item()) is not None)
    assert readings[0]
    assert found.either == ({sign} if all(readings) else set())
    assert found.decimal == (set() if all(readings) else {sign})


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
