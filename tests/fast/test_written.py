"""One cell in every form: the loops say what the strict path says, or nothing."""

from collections.abc import Mapping
from decimal import Decimal
from itertools import product

import numpy as np
import polars as pl
import pytest

from flows.steps.fast.book import Bookmaker
from flows.steps.fast.typed import Delivered, typed_records
from flows.steps.fast.written import all_is_seen
from flows.steps.validate.arithmetic import ColumnSum
from flows.steps.validate.check import check
from flows.steps.validate.normalise import CellForm, Writing, normalise
from flows.steps.validate.rows import stored
from flows.steps.validate.times import TimeForm
from schemas.cells.date_forms import DateForms
from schemas.cells.numbers import BESIDE, BLANK, OVERPUNCHED, NumberForm
from schemas.cells.unseen import as_seen
from schemas.field import Field, Kind, Table
from schemas.millionths import in_millionths, plain_rows
from tests.stages.reading.test_fast_feeds import ODD

BLANKS = ["\N{NO-BREAK SPACE}", "\N{NARROW NO-BREAK SPACE}", "\N{THIN SPACE}", " "]
NUMBERS = [
    sign.format(number)
    for sign, number in product(
        [
            "{}",
            "-{}",
            "{}-",
            "({})",
            "\u2212{}",
            "+{}",
            "{} DR",
            "{} CR",
            "€{}",
            "{} €",
            "-€{}",
            "€-{}",
            " {} ",
        ],
        ["0", "5", "0.50", "0,5", "012,5", "123.4", "1.234", "1,234", "0.123", "0,123", "1.234,5"]
        + [
            "1,234.5",
            "1234.567,8",
            "12.34",
            "1.2345",
            "1.234.567",
            "12.345.678",
            "123.456.789",
            "1.",
            ".5",
        ]
        + ["12345678", "123456789", "1.1234567", "1,123456", "1'234", "5e1", "", "x"]
        + [f"1{blank}234,5" for blank in BLANKS],
    )
]
NUMBER_FORMS = [
    NumberForm(decimal, thousands, *signs)
    for (decimal, thousands), signs in product(
        [(".", ""), (",", ""), (",", "."), (".", ","), (",", BLANK), (".", "'")],
        [
            (),
            (("1-",),),
            (("(1)", "-1"), ("1",), ("€1", "1 €")),
            (("1 DR",), ("1 CR",)),
            (("1",), ("-1",)),
            (("\u22121",),),
            ((),),
            (("(1)",), ("1",), (), None, 0, "thousands", None, ("x", "-")),
        ],
    )
] + [NumberForm(percent="share"), NumberForm(percent="points")]
NUMBER_FORMS += [NumberForm(implied=2), NumberForm(",", ".", ("1-",), implied=6)]
NUMBER_FORMS += [NumberForm(decimals=0), NumberForm(decimals=2), NumberForm(",", ".", decimals=1)]
LAKH = [
    *(NumberForm(thousands=",", groups="lakh"), NumberForm(",", BLANK, ("1-",), groups="lakh")),
    NumberForm(thousands=",", implied=2, groups="lakh"),
]
GROUPED = [
    "".join(signs)
    for size in (3, 5, 7)
    for signs in product(*(f"{place}," for place in range(1, size + 1)))
]
"""Of digits and commas in any order."""
TIMES = [
    day.format(year, month, date) + clock
    for day in ("{0}-{1}-{2}", "{2}.{1}.{0}", "{2}/{1}/{0}", "{0}{1}{2}", "{2}{1}{0}")
    for year, month, date in [
        *(("2026", "01", "15"), ("2024", "02", "29"), ("2026", "02", "29"), ("2100", "02", "29")),
        *(("2026", "03", "29"), ("2026", "10", "25"), ("26", "12", "31"), ("68", "01", "01")),
        *(("69", "01", "01"), ("2026", "1", "5"), ("9999", "01", "01"), ("0001", "01", "01")),
        *(("2026", "13", "01"), ("2026", "00", "01"), ("2026", "06", "31"), ("2026", "06", "00")),
    ]
    for clock in (
        "",
        " 02:30",
        " 2:30",
        "T23:59:59",
        " 24:00",
        " 12:60",
        "T02:30:00Z",
        "T02:30:00+01:00",
    )
] + [
    *("2026-01-15T02:30:00+01:00", "2026-01-15T02:30:00.5Z", "2026-01-15T02:30Z"),
    *("15 Jan 2026", "15 jan 2026", "5 MAY 2026", "15 Mai 2026", "15 Janu 2026", "30 feb 2026"),
    *("Jan 5, 2026", "day 5 of 6", " 15.01.2026 ", "\t2026-01-15", "15.01.2026x", "15. 1.2026"),
]
COUNTS = [
    *("0", "1", "60", "61", "46300", "46301.25", "46301,25", "46327", "046327", "46327,5"),
    *("46327.5", "46327,0000058", "46327,00001", "46327,123456", "46327,1234567", "46327,", ",5"),
    *("2958464", "2958465", "2958466", "9999999", "1767225600", "1767225600.5", "1767225600,25"),
    *("253370764799", "253370764800", "999999999999", "1767225600123", "99999999999"),
    *("100000000000", "253370764799999", "253370764800000", "-5"),
    *("00000046327", "0000001767225600", "000001767225600"),
]
DATE_FORMS = [
    *(None, "%d.%m.%Y", "%d/%m/%y", "%Y%m%d", "%d%m%Y", "%d%m%y", "%d %b %Y", "%b %d, %Y"),
    *("%Y-%m-%d %H:%M", "%d.%m.%Y %H:%M", "%Y-%m-%dT%H:%M:%S", "%d.%m.%Y%H", "%j %Y", "%d.%m"),
]
ZONES: list[dict[str, object]] = [
    {},
    {"offset_minutes": 0},
    {"offset_minutes": -330},
    {"zone": "Europe/Berlin"},
    {"zone": "America/St_Johns"},
]
WORDS = ["EUR", "eur", "EU", "EURO", "", " EUR ", "USD", "Ω", "€", "A", "Z", "aa"]
PARTS = [r"INV-0*(\d+)", r"INV-(\d+)", r"([0-9]+)", r"INV-x*(\d+)", r"(\d\d)", r"a.(\d+)"]
TEXTS = [
    *("INV-7", "INV-007", "INV-000", "INV-", "INV-INV-8", "an INV-x INV-9", "INV-xx8", "inv-7"),
    *("INV-\N{ARABIC-INDIC DIGIT TWO} INV-8", "INV-8\N{ARABIC-INDIC DIGIT TWO}", "é 12", "INV-0x8"),
    *(
        "INV-" + "9" * 20,
        "INV-00" + "9" * 16,
        "INV-2147483648",
        *("INV-2147483647 INV-1", "INV-00 INV-7", "INV-xx INV-x8"),
        "12",
        "a:12",
    ),
]


Row = tuple[str, ...]


def table_of(kind: Kind) -> Table:
    return Table("one", "One", (Field("Value", kind),), key=("Value",))


def agree(kind: Kind, form: CellForm, rows: list[Row]) -> Mapping[Row, object]:
    """Read rows of cells both ways; returns what the loops say, by row."""
    table, width = table_of(kind), len(rows[0])
    writing, sources = Writing(fields={"Value": form}), {"Value": tuple(range(width))}
    names = ["Value", *[None] * (width - 1)]
    written = ["|".join('"' + one.replace('"', '""') + '"' for one in row) for row in rows]
    ends = np.cumsum([len(one.encode()) + 1 for one in written]) - 1
    starts = np.append(0, ends[:-1] + 1)
    text = np.frombuffer("".join(one + "\n" for one in written).encode(), np.uint8)
    sound = np.array([not any("\n" in one for one in row) for row in rows])
    delivered = Delivered(text, starts, ends, sound, b"|", b'"')
    found = typed_records(table, names, delivered, writing, sources)
    assert found is not None
    chosen = found.rows.copy()
    chosen[np.flatnonzero(chosen)[~found.sound]] = False
    fast = found.frame.filter(pl.Series(found.sound))
    cells = pl.DataFrame(
        [[one or None for one in row] for row in rows],
        schema={str(place): pl.String for place in range(width)},
        orient="row",
    )
    checked = check(table, normalise(table, cells, names, writing, sources))
    strict = checked.typed.select(stored(table))
    wrong = np.isin(np.arange(len(rows)), checked.errors.rows)
    odd = [row for row, taken, bad in zip(rows, chosen, wrong, strict=True) if taken and bad]
    assert odd == []
    strict = strict.filter(pl.Series(chosen))
    assert plain_rows(table, strict).all()
    assert fast.rows() == in_millionths(table, strict).select(fast.columns).rows()
    return dict(
        zip([row for row, one in zip(rows, chosen, strict=True) if one], fast.rows(), strict=True)
    )


@pytest.mark.parametrize("number", NUMBER_FORMS, ids=str)
def test_amounts(number: NumberForm) -> None:
    found = agree(Kind.DOUBLE, CellForm(number=number), [(one,) for one in NUMBERS + ODD])
    assert len(found) >= 5 or number.percent


@pytest.mark.parametrize("number", [NumberForm(thousands=","), *LAKH], ids=str)
def test_groups(number: NumberForm) -> None:
    sign = " " if number.thousands == BLANK else ","
    cells = ["0,12,345", "12,34,56,78,901", *GROUPED, *(f"1,1{one}1.5" for one in GROUPED)]
    rows = [(one.replace(",", sign),) for one in cells]
    found = agree(Kind.DOUBLE, CellForm(number=number), rows)
    assert len(found) >= 4


@pytest.mark.long(but=("{}-datetime", "{}-datetime with offset"))
@pytest.mark.parametrize("kind", [Kind.DATETIME, Kind.DATETIME_OFFSET])
@pytest.mark.parametrize("zone", ZONES, ids=str)
def test_times(zone: dict[str, object], kind: Kind) -> None:
    for date_format, dropped in product(DATE_FORMS, (False, True)):
        dates = DateForms((date_format,) if date_format else (), dropped)
        form = TimeForm(dates, **zone)
        agree(kind, CellForm(time=form), [(one,) for one in TIMES + ODD])


def test_overpunched_signs_are_left_to_the_strict_path() -> None:
    one = table_of(Kind.DOUBLE).fields[0]
    forms = [NumberForm(implied=2, sign=sign) for sign in (BESIDE, OVERPUNCHED)]
    lines = [Bookmaker().add(one, CellForm(number=form), [0]) for form in forms]
    assert [*map(len, lines)] == [1, 0]


@pytest.mark.parametrize("kind", [Kind.DATETIME, Kind.DATETIME_OFFSET])
def test_years_of_another_calendar_are_left_to_the_strict_path(kind: Kind) -> None:
    """Its digits are those of a year of ours as well: 081001 is in 2026 or in 2008."""
    times = {
        year_zero: TimeForm(DateForms(("%y%m%d",), year_zero=year_zero), 0)
        for year_zero in (0, 2018)
    }
    one = table_of(kind).fields[0]
    lines = {zero: Bookmaker().add(one, CellForm(time=time), [0]) for zero, time in times.items()}
    assert [*map(len, lines.values())] == [1, 0]


@pytest.mark.parametrize("form", ["excel", "excel-1904", "unix", "unix-ms"])
@pytest.mark.parametrize("decimal", [".", ","])
def test_counts(form: str, decimal: str) -> None:
    for zone in ZONES:
        time = TimeForm(DateForms((form,), decimal=decimal), **zone)
        found = agree(Kind.DATETIME, CellForm(time=time), [(one,) for one in COUNTS + ODD])
        assert len(found) > 2


@pytest.mark.long
@pytest.mark.parametrize("kind", [Kind.INTEGER, Kind.INTEGER64])
def test_integers_and_words(kind: Kind) -> None:
    rows = [(one,) for one in [*ODD, *NUMBERS, *WORDS, *TEXTS]]
    for number in NUMBER_FORMS:
        agree(kind, CellForm(number=number), rows)
    words = {"EUR": "978", "€": "1", "A": "2", "Ω": "3", "aa": "4", "EU": "5"}
    assert len(agree(kind, CellForm(map=words), rows)) >= 6
    assert agree(kind, CellForm(map=words, default="7"), rows)["",] == (7,)
    for part in PARTS:
        assert agree(kind, CellForm(part=part), rows)


@pytest.mark.parametrize("dropped", [False, True])
@pytest.mark.parametrize("null", [("",), ("", "n/a"), ("", "0", "-"), (" ", "5 ", "é", '"')])
@pytest.mark.parametrize("default", [None, "12.50"])
def test_nothing(null: tuple[str, ...], default: str | None, dropped: bool) -> None:
    rows = [(one,) for one in [*ODD, "n/a", " n/a ", "-", "\t0\t", "5 "]]
    for number in (NumberForm(), NumberForm(",", ".")):
        form = CellForm(number=number, null=null, default=default, blanks_dropped=dropped)
        assert len(agree(Kind.DOUBLE, form, rows)) > 5


@pytest.mark.parametrize("join", ["", ",", " "])
def test_several_columns(join: str) -> None:
    first, second = (
        ["5", "5.50", "", "n/a", "x", "-5", '"', "1" * 300],
        ["D", "C", "", "7", "-", "n/a"],
    )
    rows = [*product(first, second), *product(second, first)]
    for signs in ((), ((f"1{join}D",), (f"1{join}C",)), (("1-",),)):
        form = CellForm(number=NumberForm(".", "", *signs), null=("", "n/a"), join=join)
        assert agree(Kind.DOUBLE, form, rows)
    days, clocks = ["15.01.2026", "15.1.2026", ""], ["10:00", "", "25:00", "1:00"]
    time = TimeForm(DateForms((f"%d.%m.%Y{join}%H:%M",)), zone="Europe/Berlin")
    assert agree(Kind.DATETIME, CellForm(time=time, join=join), [*product(days, clocks)])


@pytest.mark.parametrize("default", [None, "12.50"])
@pytest.mark.parametrize("added", [0, 1, 2, 3])
def test_sums(added: int, default: str | None) -> None:
    cells = ["5", "1,019.99", "-0.10", "", "n/a", " 7 ", "x", '"', "0.1234560", "99999999.5", "(2)"]
    rows = [*product(cells, cells, ["", "0.0", "-5"])]
    for number in (
        *(NumberForm(), NumberForm(thousands=","), NumberForm(".", ",", ("(1)", "-1"))),
        NumberForm(decimals=2),
    ):
        form = CellForm(number=number, null=("", "n/a"), default=default, sum=ColumnSum(added))
        found = agree(Kind.DOUBLE, form, rows)
        assert len(found) > len(rows) / 8
        assert (found["", "n/a", ""] == (None, 0)) == (default is None)
        assert added or found["5", "-0.10", "0.0"] == (-4_900_000, 2)
    # Of amounts that are each short enough, the sum may not be.
    for columns in (10, 11):
        long, short = ("-99999999.5",) * columns, ("5",) * columns
        found = agree(Kind.DOUBLE, CellForm(sum=ColumnSum(columns)), [long, short])
        assert (long in found) == (columns == 10)
    one = CellForm(sum=ColumnSum(0))
    assert agree(Kind.DOUBLE, one, [("5",), ("-0.50",), ("",)])["5",] == (-5_000_000, 0)
    by_rate = CellForm(sum=ColumnSum(1, Decimal("0.01")))
    assert agree(Kind.DOUBLE, by_rate, [("5",), ("-0.50",)])["-0.50",] == (-5_000, 4)


def test_a_cell_whose_bytes_are_all_seen_is_what_it_looks_like() -> None:
    signs = pl.DataFrame({"sign": [chr(at) for at in range(0x110000) if not 0xD800 <= at < 0xE000]})
    around = pl.concat_str(pl.lit("a"), pl.col("sign"), pl.lit("b"))
    other = signs.filter((as_seen(around) != around) & (pl.col("sign") != " "))["sign"]
    assert {"\t", "\u00a0", "\u00ad", "\u200b", "\u202f", "\u3000", "\ufeff"} <= {*other}
    for sign in other:
        text = np.frombuffer(sign.encode(), np.uint8)
        assert not all_is_seen(text, 0, len(text)), ascii(sign)
    text = np.frombuffer("Überweisung 入金 ok".encode(), np.uint8)
    assert all_is_seen(text, 0, len("Überweisung".encode()))
