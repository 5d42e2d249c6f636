"""Cells as feeds write them: read as the profile states, or rejected with the delivered text."""

from dataclasses import fields
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from connectors.errors import ProfileError
from connectors.files.profiles.profile_file import read_profile
from connectors.files.profiles.profile_writing import WRITTEN
from connectors.settings import Settings
from flows.stages.examining.examine import examine
from flows.stages.rows.writing import writing_of
from flows.steps.validate.normalise import normalise
from schemas.cells.numbers import GROUPS, NumberForm, plain_number
from schemas.cells.reading import UNFIT, Number, read_number
from schemas.tables import EXTRACTS
from tests.stages.payments import wide

PAYMENT = EXTRACTS["payment"]


def normal(field: str, cell: str, **stated: Any) -> str:
    writing = writing_of(read_profile({"feed": "bank-x", **stated}))
    cells = pl.DataFrame({"0": [cell]})
    text: str = normalise(PAYMENT, cells, [field], writing, {})[field][0]
    return text and text.replace(UNFIT, "")


EXCEL = {"date_format": "excel"}
UNIX = {"date_format": "unix"}
UNIX_MS = {"date_format": "unix-ms"}
MONTHS = [
    "Januar",
    "Februar",
    "März",
    "April",
    "Mai",
    "Juni",
    "Juli",
    "August",
    "September",
    "Oktober",
    "November",
    "Dezember",
]
GERMAN = {"date_format": "%d. %B %Y", "months": MONTHS}
NAMED = {
    "date_format": "%b %d, %Y %I:%M:%S %p %Z",
    "zones": {"PST": "-08:00", "PDT": "-07:00", "P": "Z", "Berlin": "Europe/Berlin"},
}
"""With names of zones behind times, one of which begins another."""
COMMA = {"decimal": ",", "thousands": "."}
LAKH = {"thousands": ",", "groups": "lakh"}


@pytest.mark.parametrize(
    ("stated", "cell", "number"),
    [
        (COMMA, "1.234.567,80", "1234567.80"),
        (COMMA, " -1.234 ", "-1234"),
        (COMMA, ",5", ".5"),
        (COMMA, "1,5e-3", "1.5e-3"),
        ({"thousands": ","}, "1,234.50", "1234.50"),
        ({"thousands": ","}, "1234.50", "1234.50"),
        ({"thousands": "'"}, "+1'234'567", "1234567"),
        ({"thousands": "\N{NO-BREAK SPACE}"}, "1\N{NO-BREAK SPACE}234.5", "1234.5"),
        (LAKH, "12,34,567.89", "1234567.89"),
        (LAKH, "-1,00,00,00,000", "-1000000000"),
        (LAKH, "99,999", "99999"),
        (LAKH, "1234567.89", "1234567.89"),
        (LAKH | {"thousands": "blank"}, "1 23 456.5", "123456.5"),
    ],
)
def test_number(stated: dict[str, str], cell: str, number: str) -> None:
    assert normal("PaidAmount", cell, **stated) == number


@pytest.mark.parametrize(
    ("stated", "cell"),
    [
        (COMMA, "0.923"),
        (COMMA, "00.123"),
        (COMMA, "1.23,4"),
        (COMMA, "1234.567"),
        (COMMA, "1,234,567"),
        (COMMA, "1,."),
        (COMMA, "1,5,"),
        (COMMA, "\N{NO-BREAK SPACE}1,5"),
        (COMMA, "1.2e4,5"),
        ({"decimal": ","}, "1.5"),
        ({"thousands": ","}, "12,34.50"),
        ({"thousands": ","}, "1,234,5"),
        ({"thousands": ","}, "12,34,567.89"),
        (LAKH, "1,234,567.89"),
        (LAKH, "123,456"),
        (LAKH, "12,345,67"),
        (LAKH, "1,23"),
        (LAKH, "01,23,456"),
    ],
)
def test_a_number_of_another_writing_is_not_guessed(stated: dict[str, str], cell: str) -> None:
    assert normal("PaidAmount", cell, **stated).startswith(f"{cell} (decimal sign is ")


@pytest.mark.parametrize(
    ("stated", "said"),
    [
        (COMMA, "(decimal sign is ','; thousands sign is '.')"),
        ({"thousands": "blank"}, "(decimal sign is '.'; thousands sign is a blank)"),
        (LAKH, "(decimal sign is '.'; thousands sign is ','; groups are those of lakh)"),
        ({"currency": ["€1", "1 EUR"]}, "(decimal sign is '.'; with a currency it is 1 EUR or €1)"),
        ({"negative": []}, "(decimal sign is '.'; no number is below zero)"),
        ({"date_format": "%d %b %Y"}, "(not written as %d %b %Y, with English names)"),
    ],
)
def test_a_cell_that_is_none_is_told_how_it_is_written(stated: dict[str, Any], said: str) -> None:
    field = "PaymentDate" if "date_format" in stated else "PaidAmount"
    assert str(normal(field, "1,x", **stated)).endswith(said)


@pytest.mark.parametrize(
    "text", ["1", "1.", "-1.", "+1.", "1.50", ".5", " 1. ", "1.e3", "1E-2", "007"]
)
@pytest.mark.parametrize(
    "stated",
    [
        {"thousands": ","},
        LAKH,
        {"thousands": "blank", "negative": ["-1", "1-"]},
        {"decimal": ",", "thousands": "."},
    ],
)
def test_what_says_a_number_without_a_form_says_it_in_one(
    stated: dict[str, Any], text: str
) -> None:
    plain = read_number(text)
    assert isinstance(plain, Number)
    written = text.replace(".", stated.get("decimal", "."))
    assert read_number(normal("PaidAmount", written, **stated)) == plain


@pytest.mark.parametrize(
    ("cell", "number"),
    [
        ("5.", "5"),
        ("-5.", "-5"),
        ("€5.", "5"),
        ("5.Kr", "5"),
        ("1.50.Kr", "1.50"),
        ("5. EUR", None),
        ("1.5.", None),
    ],
)
def test_a_decimal_sign_beside_a_currency_is_that_of_a_number_or_stated(
    cell: str, number: str | None
) -> None:
    read = normal("PaidAmount", cell, currency=["1.Kr", "€1", "1 EUR"])
    if number is None:
        assert read.startswith(f"{cell} (decimal sign is ")
    else:
        assert plain_number(read) == Decimal(number)


OFF_DEFAULT: dict[str, tuple[Any, str]] = {
    "decimal": (",", "','"),
    "thousands": ("'", '"\'"'),
    "negative": (("1 D",), "minus one is 1 D"),
    "positive": (("1 C", "1"), "plus one is 1 C or 1"),
    "currency": (("1 EUR",), "1 EUR"),
    "percent": ("share", "percent"),
    "implied": (2, "the last 2"),
    "decimals": (2, "at most 2 decimals"),
    "zero": (("-", "nil"), "zero is - or nil"),
    "groups": ("lakh", "lakh"),
    "sign": ("overpunched", "overpunched"),
}


@pytest.mark.parametrize("key", [key.name for key in fields(NumberForm)])
def test_whatever_a_form_states_is_told_with_it(key: str) -> None:
    value, said = OFF_DEFAULT[key]
    assert said not in NumberForm().description
    assert said in NumberForm(**{key: value}).description


PUNCHED = {"sign": "overpunched", "implied_decimals": 2}
NIL = {"zero": ["-", "€ -", "nil"], "currency": ["€1"]}
SAP = COMMA | {"negative": ["1-"]}
BOOKED = {"thousands": ",", "negative": ["(1)", "\N{MINUS SIGN}1"], "currency": ["€1", "1 EUR"]}
FLAGGED = {"negative": ["1 DR"], "positive": ["1 CR"]}
WIDE = {
    "width": "folded",
    "thousands": ",",
    "negative": [wide("-") + "1", "(1)"],
    "currency": ["1" + wide("EUR"), "￥1"],
}
RUPEES = {"thousands": ",", "negative": ["(1)", "-1"], "currency": ["Rs.1", "Rs. 1", "1 Kc.", "€1"]}


@pytest.mark.parametrize(
    ("stated", "cell", "number"),
    [
        (SAP, "1.234,56-", "-1234.56"),
        (SAP, "1.234,56", "1234.56"),
        (SAP, "-1,00", None),
        (SAP, "1-", "-1"),
        (SAP, "1--", None),
        (BOOKED, "(1,234.56)", "-1234.56"),
        (BOOKED, "\N{MINUS SIGN}12", "-12"),
        (BOOKED, "(\N{MINUS SIGN}12)", None),
        (BOOKED, "€5", "5"),
        (BOOKED, "(€5)", "-5"),
        (BOOKED, "€(5)", "-5"),
        (BOOKED, "5\N{NARROW NO-BREAK SPACE}EUR", "5"),
        (BOOKED, "5EUR", None),
        (BOOKED, "€5 EUR", None),
        (BOOKED, "$5", None),
        (FLAGGED, "12.50 DR", "-12.50"),
        (FLAGGED, "12.50 CR", "12.50"),
        (FLAGGED, "12.50", None),
        (FLAGGED, "12.50 dr", None),
        (RUPEES, "Rs.1,234.50", "1234.50"),
        (RUPEES, "Rs. 500", "500"),
        (RUPEES, "Rs.\N{NO-BREAK SPACE}.5", ".5"),
        (RUPEES, "(Rs.5)", "-5"),
        (RUPEES, "-Rs.5", "-5"),
        (RUPEES, "Rs.-5.1", "-5.1"),
        (RUPEES, "1.5 Kc.", "1.5"),
        (RUPEES, "€.5", ".5"),
        (RUPEES, "Rs..5", None),
        (RUPEES, "Rs500", None),
        (RUPEES, "rs.500", None),
        (RUPEES, "Rs.500.", None),
        (RUPEES, "XRs.500", None),
        (RUPEES, "\ue000500", None),
        (RUPEES, "Rs.5 Kc.", None),
        (RUPEES, "€5.50", "5.50"),
        ({"currency": ["Rs.1"]}, "Rs.500", "500"),
        ({"decimal": ",", "currency": ["Rs.1"]}, "Rs.500,5", "500.5"),
        ({"currency": ["Rs1"]}, "Rs.500", None),
        ({"thousands": "blank"}, "1 234\N{NO-BREAK SPACE}567", "1234567"),
        ({"thousands": "blank"}, "1  234", None),
        ({"implied_decimals": 2}, "123456", "1234.56"),
        ({"implied_decimals": 2, "negative": ["1-"]}, "000000001050-", "-10.50"),
        ({"implied_decimals": 2, "negative": ["1 D"]}, "0001234 D", "-12.34"),
        ({"implied_decimals": 2, "negative": ["1DR"]}, "0001234DR", "-12.34"),
        ({"implied_decimals": 2, "currency": ["R1"]}, "R0001234", "12.34"),
        ({"implied_decimals": 2}, "0001234A", None),
        *(
            (PUNCHED, f"00123{last}", f"{minus}12.3{digit}")
            for minus, signs in (("", "{ABCDEFGHI"), ("-", "}JKLMNOPQR"), ("", "0123456789"))
            for digit, last in enumerate(signs)
        ),
        (PUNCHED, "}", "-0.00"),
        (PUNCHED, " 1J ", "-0.11"),
        (PUNCHED | {"implied_decimals": 0}, "12{", "120"),
        *((PUNCHED, cell, None) for cell in ("12S", "12j", "12p", "-12J", "12J-", "J12", "1.2J")),
        *(
            (PUNCHED, cell, None)
            for cell in ("+12", "1 2J", "12JJ", "1e5", "1\N{ARABIC-INDIC DIGIT TWO}")
        ),
        ({"implied_decimals": 2}, "1234.56", None),
        ({"implied_decimals": 2}, "1e5", None),
        ({"implied_decimals": 2, "thousands": ","}, "1,234,56", None),
        ({"implied_decimals": 3, "percent": "share"}, "12500%", "12.500e-2"),
        ({"percent": "share"}, "12.5%", "12.5e-2"),
        ({"percent": "share"}, "-12.5 %", "-12.5e-2"),
        ({"percent": "share"}, "12.5", None),
        ({"implied_decimals": 2, "currency": ["€1"]}, "1234.", None),
        ({"decimals": 0}, "12345", "12345"),
        *(({"decimals": 0}, cell, None) for cell in ("123.45", "123.00", "5.", ".5", "1e3")),
        ({"decimals": 0, "thousands": ",", "negative": ["(1)"]}, "(1,234)", "-1234"),
        ({"decimals": 0, "decimal": ","}, "1.234", None),
        *(({"decimals": 2}, cell, cell) for cell in ("12.5", "-.50", "12")),
        ({"decimals": 2}, "5.", "5."),
        *(({"decimals": 2}, cell, None) for cell in ("1.234", "1.500", "1.2e1", "1e-1")),
        ({"decimals": 2, "currency": ["£1"]}, "£1.234", None),
        ({"decimals": 2, "percent": "share"}, "12.50%", "12.50e-2"),
        ({"decimals": 2, "percent": "share"}, "12.505%", None),
        ({"decimals": 0, "fields": {"PaidAmount": {"implied_decimals": 2}}}, "123", "1.23"),
        ({"percent": "points"}, "12.5 %", "12.5"),
        *((NIL, cell, "0") for cell in ("-", " - ", "€ -", "€\N{NO-BREAK SPACE}-", "nil")),
        *((NIL, cell, cell) for cell in ("\N{EN DASH}", "Nil", "€-", "(-)")),
        (NIL, "-1", "-1"),
        (NIL, "€5", "5"),
        (NIL, "", None),
        (NIL | {"negative": [], "implied_decimals": 2}, "-", "0"),
        ({"zero": ["-"], "percent": "share"}, "-", "0"),
        ({"negative": []}, "64.2", "64.2"),
        ({"negative": []}, "+1e-3", "1e-3"),
        *(
            ({"negative": []}, cell, None)
            for cell in ("-9999", "-64.2", "1-", "(1)", "\N{MINUS SIGN}1")
        ),
        ({"negative": [], "currency": ["€1"], "thousands": ","}, "€1,234", "1234"),
        ({"negative": [], "currency": ["€1"], "thousands": ","}, "-€1,234", None),
        ({"negative": ["▲1", "△1"], "thousands": ","}, "▲1,234", "-1234"),
        (WIDE, wide("1,234.50"), "1234.50"),
        (WIDE, "1,234.50", "1234.50"),
        (WIDE, wide("-12"), "-12"),
        (WIDE, wide("(12)"), "-12"),
        (WIDE, "\u3000" + wide("12EUR"), "12"),
        (WIDE, "￥" + wide("12"), "12"),
        (WIDE, "▲12", None),
        ({"thousands": ","}, wide("12"), None),
    ],
)
def test_a_sign_is_where_the_feed_says(
    stated: dict[str, Any], cell: str, number: str | None
) -> None:
    read = normal("PaidAmount", cell, **stated)
    said = (f"{cell} (decimal sign is ", f"{cell} (digits alone, ")
    assert read == number if number or not cell else read.startswith(said)


TURKISH = [
    "Ocak",
    "Şubat",
    "Mart",
    "Nisan",
    "May\u0131s",
    "Haziran",
    "Temmuz",
    "Ağustos",
    "Eylül",
    "Ekim",
    "Kas\u0131m",
    "Aral\u0131k",
]
WIDE_DAY = {"width": "folded", "date_format": "%Y" + wide("/") + "%m" + wide("/") + "%d"}
MARQUESAS = {
    "date_format": "%d %B %Y %H:%M %Z",
    "months": TURKISH,
    "zones": {"MART": "-09:30"},
}
"""With a zone that is called like a month."""


@pytest.mark.parametrize(
    ("stated", "cell", "time"),
    [
        ({"date_format": "%d.%m.%Y %H:%M%z"}, "31.12.2026 23:59+0130", "2026-12-31T23:59:00+01:30"),
        ({"date_format": "%d.%m.%Y %H:%M%z"}, "31.12.2026 23:59-02", "2026-12-31T23:59:00-02:00"),
        ({"date_format": "%d.%m.%Y %H:%M%z"}, "31.12.2026 23:59Z", "2026-12-31T23:59:00+00:00"),
        ({"date_format": "%Y年%m月%d日"}, "2026年11月1日", "2026-11-01T00:00:00"),
        (WIDE_DAY, wide("2026/11/1"), "2026-11-01T00:00:00"),
        (WIDE_DAY, "2026/11/01", "2026-11-01T00:00:00"),
        ({"width": "folded"}, wide("2026-11-01"), "2026-11-01"),
        ({"width": "folded", "date_format": "excel"}, wide("45292"), "2024-01-01T00:00:00"),
        ({"zone": "Europe/Berlin"}, "2026-07-01T10:00:00", "2026-07-01T10:00:00+02:00"),
        ({"zone": "Europe/Berlin"}, "2026-07-01T10:00:00Z", "2026-07-01T10:00:00Z"),
        (EXCEL, "45292", "2024-01-01T00:00:00"),
        (EXCEL, "45292.75", "2024-01-01T18:00:00"),
        (EXCEL, "45292.4270833333", "2024-01-01T10:15:00"),
        (EXCEL, "45292.42708333333", "2024-01-01T10:15:00"),
        (EXCEL, "45292.42708333", "2024-01-01T10:15:00"),
        (EXCEL, "45292.427083338", "2024-01-01T10:15:00.0004"),
        (EXCEL, "46356.99999", "2026-11-30T23:59:59.136"),
        (EXCEL, "46356.99999999", "2026-11-30T23:59:59.999"),
        (EXCEL, "46356.99999999999", "2026-11-30T23:59:59.999999"),
        (EXCEL, "61", "1900-03-01T00:00:00"),
        ({"date_format": "excel-1904"}, "0", "1904-01-01T00:00:00"),
        (UNIX, "0", "1970-01-01T00:00:00+00:00"),
        (UNIX, "1767225600", "2026-01-01T00:00:00+00:00"),
        (UNIX, " 1767225600", "2026-01-01T00:00:00+00:00"),
        (UNIX, "1767225600.000001", "2026-01-01T00:00:00.000001+00:00"),
        (UNIX | {"decimal": ","}, "1767225600,5", "2026-01-01T00:00:00.500000+00:00"),
        (UNIX_MS, "1767225600000", "2026-01-01T00:00:00+00:00"),
        (UNIX_MS, "1767225600007", "2026-01-01T00:00:00.007000+00:00"),
        (UNIX_MS, "100000000000", "1973-03-03T09:46:40+00:00"),
        (NAMED, "Nov 1, 2026 01:30:00 AM PDT", "2026-11-01T01:30:00-07:00"),
        (NAMED, "Nov 1, 2026 01:30:00 AM PST", "2026-11-01T01:30:00-08:00"),
        (NAMED, " Jul 1, 2026 12:00:00 PM P", "2026-07-01T12:00:00+00:00"),
        (NAMED, "Jul 1, 2026 12:00:00 PM Berlin", "2026-07-01T12:00:00+02:00"),
        (NAMED, "Dec 1, 2026 12:00:00 PM Berlin", "2026-12-01T12:00:00+01:00"),
        (
            GERMAN | {"date_format": "%d. %B %Y %H:%M%Z", "zones": {"MEZ": "+01:00"}},
            "3. März 2026 10:00MEZ",
            "2026-03-03T10:00:00+01:00",
        ),
        (
            {"date_format": "%d%m%y %Z", "date_zeros": "dropped", "zones": {"MEZ": "+01:00"}},
            "30326 MEZ",
            "2026-03-03T00:00:00+01:00",
        ),
        (GERMAN, "3. märz 2026", "2026-03-03T00:00:00"),
        (GERMAN, "31. Dezember 2026", "2026-12-31T00:00:00"),
        # A name has no digits, so that the day beside it may be short.
        (GERMAN | {"date_format": "%d%B%Y"}, "3MÄRZ2026", "2026-03-03T00:00:00"),
        (GERMAN | {"date_format": "%a %d%b%Y"}, "tue 3März2026", "2026-03-03T00:00:00"),
        (MARQUESAS, "2 MART 2026 10:00 MART", "2026-03-02T10:00:00-09:30"),
        (MARQUESAS, "2 Ocak 2026 10:00 MART", "2026-01-02T10:00:00-09:30"),
    ],
)
def test_time(stated: dict[str, Any], cell: str, time: str) -> None:
    assert normal("PaymentDate", cell, **stated) == time


@pytest.mark.parametrize("name", [*TURKISH, "MAYIS", "HAZ\u0130RAN", "KASIM", "şubat", "ARALIK"])
def test_a_month_in_any_case_is_one_or_said_to_be_none(name: str) -> None:
    text = normal("PaymentDate", f"2 {name} 2026", date_format="%d %B %Y", months=TURKISH)
    known = [month for month in TURKISH if month.casefold() == name.casefold()]
    months = {"MAYIS": 5, "HAZ\u0130RAN": 6, "KASIM": 11, "ARALIK": 12}
    number = TURKISH.index(known[0]) + 1 if known else months[name]
    assert text == f"2026-{number:02}-02T00:00:00"


SHORT = ["Jan", "Feb", "Mar", "Apr", "Mai", "Jun", "Jul", "Aug", "Sep", "Okt", "Nov", "Dez"]
ZONED, IN_MONTHS = {"date_format": "%Y/%m/%d %Z"}, {"date_format": "%Y-%b-%d"}
SAID_WIDE: dict[str, tuple[dict[str, Any], str, str] | str] = {
    # by key what states it full-width, with a cell in the usual form and what that says; or why not
    "blanks": "not an allowed value",
    "decimal": "not an allowed value",
    "thousands": "not an allowed value",
    "groups": "not an allowed value",
    "negative": ({"negative": [wide("(") + "1" + wide(")")]}, "(5)", "-5"),
    "positive": ({"positive": ["1" + wide("H")]}, "5H", "5"),
    "currency": ({"currency": [wide("EUR") + "1"]}, "EUR5", "5"),
    "percent": "not an allowed value",
    "implied_decimals": "is not a whole number",
    "decimals": "is not a whole number",
    "zero": ({"zero": [wide("-")]}, "-", "0"),
    "sign": "not an allowed value",
    "width": "not an allowed value",
    "date_format": ({"date_format": f"%Y{wide('/')}%m{wide('/')}%d"}, "2026/11/01", "2026-11-01"),
    "date_zeros": "not an allowed value",
    "year_zero": "is not a whole number",
    "months": (IN_MONTHS | {"months": [*map(wide, SHORT)]}, "2026-Okt-01", "2026-10-01"),
    "offset": "is no offset",
    "zone": "is no IANA time zone",
    "zones": (ZONED | {"zones": {wide("JST"): "+09:00"}}, "2026/11/01 JST", "2026-11-01"),
    "null": "",
    "true": "",
    "false": "",
}
"""Of no number or time, which alone are folded, is a text without a reason."""


@pytest.mark.parametrize("key", WRITTEN)
def test_what_is_stated_full_width_is_folded_with_the_cells(key: str) -> None:
    told = SAID_WIDE[key]
    if isinstance(told, str):
        if told:
            with pytest.raises(ProfileError, match=told):
                read_profile({"feed": "x", "width": "folded", key: wide("1")})
        return
    stated, cell, plain = told
    numbers = ("negative", "positive", "currency", "zero")
    field = "PaidAmount" if key in numbers else "PaymentDate"
    for one in (cell, wide(cell)):
        assert normal(field, one, width="folded", **stated).startswith(plain)


@pytest.mark.parametrize(
    "stated",
    [
        ZONED | {"zones": {"JST": "+09:00", wide("JST"): "+08:00"}},
        IN_MONTHS | {"months": [wide("Feb"), *SHORT[1:]]},
    ],
)
def test_two_names_that_are_one_when_folded_are_refused(stated: dict[str, Any]) -> None:
    read_profile({"feed": "x", **stated})
    with pytest.raises(ProfileError, match="has one name twice"):
        read_profile({"feed": "x", "width": "folded", **stated})


DROPPED = {"date_zeros": "dropped"}
REIWA, BUDDHA = {"year_zero": 2018}, {"year_zero": -543}
AMBIGUOUS = "not written as"
NO_DAY = "no such day or time"


@pytest.mark.parametrize(
    ("form", "stated", "cell", "said"),
    [
        ("%d%m%Y", {}, "01022026", "2026-02-01T00:00:00"),
        ("%d%m%Y", {}, "1022026", AMBIGUOUS),
        ("%d%m%Y", {}, "010220260", AMBIGUOUS),
        ("%Y-%m%d", {}, "2026-0201", "2026-02-01T00:00:00"),
        ("%Y-%m%d", {}, "2026-201", AMBIGUOUS),
        ("%d%m%Y", DROPPED, "1022026", "2026-02-01T00:00:00"),
        ("%d%m%Y", DROPPED, "01022026", "2026-02-01T00:00:00"),
        ("%d%m%Y", DROPPED, "122026", NO_DAY),
        ("%Y%m%d", DROPPED, "260201", AMBIGUOUS),
        ("%y%m%d", {}, "60201", AMBIGUOUS),
        ("%y%m%d", DROPPED, "60201", "2006-02-01T00:00:00"),
        ("%y%m%d", {}, "680201", "2068-02-01T00:00:00"),
        ("%y%m%d", {}, "690201", "1969-02-01T00:00:00"),
        ("%y%m%d", REIWA, "080229", NO_DAY),
        ("%y%m%d", REIWA, "100229", "2028-02-29T00:00:00"),
        ("%y%m%d", REIWA, "80201", AMBIGUOUS),
        ("%y%m%d", REIWA | DROPPED, "80201", "2026-02-01T00:00:00"),
        ("令和%y年%m月%d日", REIWA, "令和8年2月1日", "2026-02-01T00:00:00"),
        ("R%y.%m.%d", REIWA, "R08.02.01", "2026-02-01T00:00:00"),
        ("R%y.%m.%d", REIWA, "H31.02.01", AMBIGUOUS),
        ("%Y%m%d", {"year_zero": 1911}, "1150201", "2026-02-01T00:00:00"),
        ("%Y/%m/%d", {"year_zero": 1911}, "115/2/1", "2026-02-01T00:00:00"),
        ("%Y/%m/%d", {"year_zero": 1911}, "2026/02/01", AMBIGUOUS),
        ("%a %d/%m/%Y", BUDDHA, "Sun 01/02/2569", "2026-02-01T00:00:00"),
        ("%a %d/%m/%Y", BUDDHA, "Mon 01/02/2569", NO_DAY),
        ("%d/%m/%Y", BUDDHA, "01/02/2026", NO_DAY),
        ("%d/%m/%y", {"year_zero": 1957}, "01/02/69", "2026-02-01T00:00:00"),
        ("%Y%j", {}, "2026032", "2026-02-01T00:00:00"),
        ("%Y%j", {}, "202632", AMBIGUOUS),
        ("%d%b%Y", {}, "1Feb2026", AMBIGUOUS),
        ("%d%b%Y", {}, "01FEB2026", "2026-02-01T00:00:00"),
        ("%d%b%Y", DROPPED, "1feb2026", "2026-02-01T00:00:00"),
        ("%Y%m%dT%H%M%S", {}, "20260201T101112", "2026-02-01T10:11:12"),
        ("%Y%m%dT%H%M%S", {}, "20260201T11112", AMBIGUOUS),
        ("%Y%m%dT%H%M%S", DROPPED, "20260201T509", "2026-02-01T00:05:09"),
        ("%Y%m%d%H%M%z", {}, "202602011011+0100", "2026-02-01T10:11:00+01:00"),
        ("%Y%m%d%H%M%z", {}, "20260201101+0100", AMBIGUOUS),
        ("%H:%M%z %Y%m%d", {}, "10:11+01 20260201", "2026-02-01T10:11:00+01:00"),
        ("%H:%M%z%Y%m%d", {}, "10:11+0120260201", AMBIGUOUS),
        ("%H:%M%z%Y%m%d", {}, "10:11+010020260201", "2026-02-01T10:11:00+01:00"),
        ("%Y%m%d%H%M%z", {}, "202602011011+1", AMBIGUOUS),
        ("%d.%m.%Y", {}, "1.2.2026", "2026-02-01T00:00:00"),
        ("%d.%m.%Y", {}, " 01.02.2026 ", "2026-02-01T00:00:00"),
        ("%d.%m.%Y", {}, "01.02.26", AMBIGUOUS),
        ("%d.%m.%Y", {}, "01.13.2026", NO_DAY),
        ("%d.%m.%Y %H:%M", {}, "01.02.2026  10:11", AMBIGUOUS),
        ("%d.%m.%Y %H:%M", {}, "01.02.2026\u00a010:11", AMBIGUOUS),
        ("%d.%m.%Y %H:%M:%S.%f", {}, "01.02.2026 10:11:12.5", "2026-02-01T10:11:12.5"),
        ("%d.%m.%Y um %H Uhr", {}, "01.02.2026 UM 9 Uhr", AMBIGUOUS),
        ("%d.%m.%Y um %H Uhr", {}, "01.02.2026 um 9 Uhr", "2026-02-01T09:00:00"),
        ("%b %d %Y", {}, "Feb  1 2026", "2026-02-01T00:00:00"),
        ("%a %d.%m.%Y", {}, "Sun 01.02.2026", "2026-02-01T00:00:00"),
        ("%a %d.%m.%Y", {}, "Mon 01.02.2026", NO_DAY),
        ("%d.%m.%Y %I:%M %p", {}, "01.02.2026 10:11 pm", "2026-02-01T22:11:00"),
        ("%d.%m.%Y %H:%M %p", {}, "01.02.2026 10:11 pm", NO_DAY),
        ("%G-W%V-%u", {}, "2026-W05-7", "2026-02-01T00:00:00"),
    ],
)
def test_a_date_has_one_reading_or_none(
    form: str, stated: dict[str, Any], cell: str, said: str
) -> None:
    text = normal("PaymentDate", cell, date_format=form, **stated)
    if said in (AMBIGUOUS, NO_DAY):
        assert text.startswith(f"{cell} (not written as {form}")
        assert (NO_DAY in text) == (said == NO_DAY)
    else:
        assert text == said


DAY = {"date_format": "%d.%m.%Y", "zone": "Europe/Berlin"}


SANTIAGO, HAVANA = "America/Santiago", "America/Havana"


@pytest.mark.parametrize(
    ("form", "zone", "cell", "expected"),
    [
        ("%d.%m.%Y", SANTIAGO, "06.09.2026", "2026-09-06T01:00:00-03:00"),
        ("%d.%m.%Y", SANTIAGO, "07.09.2026", "2026-09-07T00:00:00-03:00"),
        ("%d.%m.%Y", HAVANA, "01.11.2026", "2026-11-01T00:00:00-04:00"),
        ("excel", SANTIAGO, "46271", "2026-09-06T01:00:00-03:00"),
        (None, SANTIAGO, "2026-09-06", "2026-09-06T01:00:00-03:00"),
        ("%d.%m.%Y %H:%M", SANTIAGO, "06.09.2026 00:00", None),
        ("excel", SANTIAGO, "46271.0", None),
        (None, SANTIAGO, "2026-09-06T00:00:00", None),
        (None, HAVANA, "2026-11-01T00:00:00", None),
    ],
)
def test_a_day_alone_is_its_first_moment(
    form: str | None, zone: str, cell: str, expected: str | None
) -> None:
    """Where the clocks change at midnight that is skipped, or comes twice."""
    text = normal("PaymentDate", cell, zone=zone, **({"date_format": form} if form else {}))
    skipped = f"{cell} (the clocks skip this time in {SANTIAGO})"
    twice = f"{cell} (this time comes twice in {HAVANA}: write its offset)"
    assert text == (expected or {SANTIAGO: skipped, HAVANA: twice}[zone])


@pytest.mark.parametrize(
    ("stated", "cell", "why"),
    [
        (DAY, "1\N{ARABIC-INDIC DIGIT THREE}.01.2026", "not written as %d.%m.%Y"),
        (DAY, "31.02.2026", "not written as %d.%m.%Y"),
        (EXCEL, "60", "a day before 1 March 1900"),
        (EXCEL, "2024-01-01", "not a number of days of excel"),
        (EXCEL, "9999999", "no such day"),
        (EXCEL, "46356.9999999999999", "at midnight, and nobody knows of which day"),
        (EXCEL, "45,292", "not a number of days"),
        (UNIX, "1767225600000", "not a number of seconds of unix"),
        (UNIX, "-1", "not a number of seconds of unix"),
        (UNIX, "1,767,225,600", "not a number of seconds of unix"),
        (UNIX, "999999999999", "no such day"),
        (UNIX_MS, "1767225600", "before 3 March 1973, unless they are seconds"),
        (UNIX_MS, "1767225600.5", "not a number of milliseconds of unix-ms"),
        (GERMAN, "3. 03 2026", "not written as %d. %B %Y, with Januar or Februar or"),
        (GERMAN, "3. March 2026", "November or Dezember for %B)"),
        (GERMAN, "31. Februar 2026", "no such day"),
        (GERMAN, "Mai. Mai 2026", "for %B)"),
        (GERMAN, "3. Mai 26", "for %B)"),
        (GERMAN | {"date_format": "%a %d. %B %Y"}, "Mon 3. Mai 2026", "no such day"),
        (
            GERMAN | {"date_format": "%a %d. %B %Y"},
            "x 3. Mai 2026",
            "with English names and Januar",
        ),
        (MARQUESAS, "2 Ocak 2026 10:00 UTC", "Aral\u0131k for %B and MART for %Z)"),
        (NAMED, "Jul 1, 2026 12:00:00 PM EST", "and PST or PDT or P or Berlin for %Z"),
        (NAMED, "Jul 1, 2026 12:00:00 PM pst", "and PST or PDT or P or Berlin for %Z"),
        (NAMED, "Jul 1, 2026 12:00:00 PM", "and PST or PDT or P or Berlin for %Z"),
        (NAMED, "Feb 30, 2026 12:00:00 PM PST", "no such day"),
        (NAMED, "Oct 25, 2026 02:30:00 AM Berlin", "comes twice in Europe/Berlin: write its"),
        (DAY, "01.01.1890", "its offset in Europe/Berlin has seconds"),
        ({"zone": "Europe/Berlin"}, "2026-03-29T02:30:00", "the clocks skip this time in Eu"),
        ({"zone": "Europe/Berlin"}, "2026-10-25T02:30:00", "this time comes twice in Europe"),
    ],
)
def test_a_time_that_may_be_another_is_not_guessed(
    stated: dict[str, Any], cell: str, why: str
) -> None:
    text = normal("PaymentDate", cell, **stated)
    assert text.startswith(f"{cell} (")
    assert why in text


@pytest.mark.parametrize(
    ("stated", "rejected"),
    [
        ({}, ["bare"]),
        ({"null": [""]}, ["bare"]),
        ({"null": ["NULL"]}, ["NULL", '"NULL"', "bare"]),
        ({"null": ["", "NULL"]}, ["NULL", '"NULL"', "bare", '""']),
    ],
)
def test_a_null_text_counts_in_quotes_too(
    tmp_path: Path, stated: dict[str, list[str]], rejected: list[str]
) -> None:
    cells = {"NULL": "NULL", '"NULL"': '"NULL"', "bare": "", '""': '""', "null": "null"}
    lines = [f"7,{number},{cell}" for number, cell in enumerate(cells.values())]
    path = tmp_path / "tones.csv"
    path.write_text("\n".join(["TenantsId,AvatarsId,Name", *lines, "7,9, NULL"]) + "\n")
    profile = read_profile({"feed": "bank-x", **stated})
    [verdict] = examine(Settings(tmp_path), [str(path)], profile)
    assert [list(cells)[one.record_number - 1] for one in verdict.rejects] == rejected


@pytest.mark.parametrize(
    ("cell", "said"),
    [("ja", "true"), ("JA ", "true"), ("n", "false"), ("yes", None), ("true", None), ("1", None)],
)
def test_truth_in_the_words_of_the_feed(cell: str, said: str | None) -> None:
    writing = writing_of(read_profile({"feed": "x", "true": ["ja", "j"], "false": ["nein", "n"]}))
    cells = pl.DataFrame({"0": [cell]})
    read = normalise(EXTRACTS["insert_batch_data"], cells, ["Merged"], writing, {})["Merged"][0]
    assert read.replace(UNFIT, "") == (said or f"{cell} (true is j or ja, false is n or nein)")


def grouped(number: Decimal, groups: str) -> str:
    """A number with commas between its groups, written from its end on."""
    digits, decimals = f"{number:.2f}".split(".")
    found, rest = digits[-3:], digits[:-3]
    while rest:
        found, rest = f"{rest[-GROUPS[groups] :]},{found}", rest[: -GROUPS[groups]]
    return f"{found}.{decimals}"


SIGNS = ("-1", "1-", "(1)", "\N{MINUS SIGN}1", "1 DR", "<1>")


@pytest.mark.long
@settings(deadline=None)
@given(
    number=st.decimals(-(10**9), 10**9, places=2),
    decimal=st.sampled_from(".,"),
    thousands=st.sampled_from([None, ".", ",", "'", " ", "blank"]),
    groups=st.sampled_from(sorted(GROUPS)),
    negative=st.lists(st.sampled_from(SIGNS), min_size=1, max_size=3, unique=True),
    currency=st.sampled_from([None, "€1", "1 EUR", "CHF 1", "Rs.1", "1 Kc."]),
    drawn=st.randoms(use_true_random=False),
)
def test_what_is_written_in_a_stated_form_is_read_back(
    number: Decimal,
    decimal: str,
    thousands: str | None,
    groups: str,
    negative: list[str],
    currency: str | None,
    drawn: Random,
) -> None:
    """And no other form of the same number is, where it is not stated."""
    assume(thousands != decimal)
    stated: dict[str, Any] = {"decimal": decimal, "negative": negative}
    stated |= {"thousands": thousands, "groups": groups} if thousands else {}
    stated |= {"currency": [currency]} if currency else {}

    def written(form: str) -> str:
        digits = grouped(abs(number), groups)
        group = {"blank": "\N{NO-BREAK SPACE}", None: ""}.get(thousands, thousands)
        digits = digits.translate({ord(","): group, ord("."): decimal})
        if currency and drawn.random() < 0.5:
            digits = currency.replace("1", digits)
        return form.replace("1", digits) if number < 0 else digits

    text = written(drawn.choice(negative))
    assert Decimal(normal("PaidAmount", text, **stated)) == number
    if thousands:
        (other,) = GROUPS.keys() - {groups}
        read = normal("PaidAmount", text, **stated | {"groups": other})
        alike = grouped(abs(number), groups) == grouped(abs(number), other)
        assert Decimal(read) == number if alike else read.startswith(f"{text} (decimal sign is")
    plain = stated == {"decimal": ".", "negative": ["-1"]}
    for other in {*SIGNS} - {*negative}:
        if number < 0:
            text = written(other)
            read = normal("PaidAmount", text, **stated)
            # What is written as the document does stays as it is, and is no number there either.
            assert read == text if plain else "(decimal sign is" in read
