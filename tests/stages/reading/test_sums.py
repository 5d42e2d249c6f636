"""Amounts that are sums of columns: exact, never rounded, rejected where a part is no number."""

from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors.errors import ProfileError
from connectors.files.profiles.profile import DEFAULT
from connectors.files.profiles.profile_file import read_profile
from connectors.postgres.batches.ledger import State
from flows.stages.chunks.split_chunk import fast_rows
from flows.stages.examining.examine import examine
from flows.stages.rows.locate import Spot, locate
from flows.stages.rows.made_of import made_fields
from flows.stages.rows.rejects import write_rejects
from flows.stages.rows.writing import writing_of
from flows.stages.sequence import import_delivery
from flows.stages.workspace import Workspace
from flows.steps.validate.arithmetic import ColumnSum
from schemas.cells.reading import Number, read_number
from schemas.tables import EXTRACTS
from tests.examples import examples
from tests.stages.reading.test_fast_path import chunks, compare

HEADER = "No;Net;Tax;Fee;Cents\n"
SHAPE: dict[str, Any] = {
    "feed": "shop",
    "record": "payment",
    "decimal": ",",
    "thousands": ".",
    "negative": ["1-", "-1"],
    "columns": {"No": "Id"},
    "constants": {
        **dict.fromkeys(("TenantsId", "ActionsId", "DebtsId", "CurrenciesId"), 7),
        "CurrencyRatesId": 9,
        "PaymentDate": "2026-11-01T00:00:00Z",
    },
    "fields": {
        "PaidAmount": {"sum": ["Net", "Tax"], "minus": ["Fee"]},
        "DiscountAmount": {"sum": ["Cents"], "scale": "0.01", "decimals": 0, "default": "0.00"},
    },
}
PROFILE = read_profile(SHAPE)
ROWS = [
    # the row, what is paid, what is discounted; None: rejected
    ("1;1.000,10;190,02;0,12;1234", ("1190.00", "12.34")),
    ("2;100,00;;;5-", ("100.00", "-0.05")),
    ("3;0,1;0,2;0,3;", ("0.0", "0.00")),
    ("4;;;2,50;100", ("-2.50", "1.00")),
    ("5;1;1;1;1.000.000", ("1", "10000.00")),
    ("6;;;;1", None),
    ("7;1,00;x;1,00;1", None),
    ("8;999999999999999,99;0,0001;;1", None),
    ("9;1.2,3;1;;1", None),
]


@pytest.mark.long
def test_sums_are_imported_shown_and_corrected(
    workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    path = tmp_path / "a.csv"
    path.write_text(HEADER + "".join(f"{row}\n" for row, _ in ROWS))
    batch = import_delivery(workspace, [str(path)], PROFILE).batch
    assert batch.state is State.COMPLETE_WITH_ERRORS
    found = rows('SELECT "PaidAmount"::text, "DiscountAmount"::text FROM payment ORDER BY "Id"')
    assert [tuple(map(Decimal, one)) for one in found] == [
        tuple(map(Decimal, wanted)) for _, wanted in ROWS if wanted
    ]
    with workspace.database.connect() as connection:
        (row,) = locate(workspace, connection, batch.id, "a.csv", Spot(line=2))
        made = {one.field: one for one in made_fields(workspace, connection, row, row.data)}
    assert made["PaidAmount"][1:] == ("Net + Tax - Fee", "1.000,10 | 190,02 | 0,12", "1190.00")
    assert made["DiscountAmount"][1:] == (
        "(Cents) * 0.01, or '0.00' where it is empty", "1234", "12.34",
    )  # fmt: skip
    (rejects,) = write_rejects(workspace, batch.id, tmp_path / "out", with_secrets=False)
    top, *lines = rejects.read_text().splitlines()
    assert top == "ReconRow;" + HEADER.strip()
    assert [one.split(";", 1)[1] for one in lines] == [row for row, told in ROWS if not told]
    (seventh,) = (one for one in lines if ";7;" in one)
    rejects.write_text(f"{top}\n{seventh.replace('x', '0,19')}\n")
    corrected = import_delivery(workspace, [str(rejects)], DEFAULT, corrects=batch.id).batch
    assert corrected.state is State.COMPLETE
    assert rows('SELECT "PaidAmount"::text FROM payment WHERE "Id" = 7') == [("0.19",)]


@pytest.mark.parametrize(
    ("row", "code", "said"),
    [
        ("1;;;;1", "NotNull", "'PaidAmount' must not be empty"),
        ("1;1,00;x;2-;1", "Number", "1,00 + x - 2- ('x' is no number: decimal sign is ','"),
        ("1;999999999999999,99;0,0001;;1", "Precision", "999999999999999.9901 becomes"),
        ("1;1;1;1;1,5,5", "Number", "1,5,5 (digits alone, no decimals"),
        ("1;1;1;1;123,45", "Number", "123,45 (digits alone, no decimals"),
        ("1;1;NaN;1;1", "Number", "1 + NaN - 1 ('NaN' is no number: "),
        (f"1;1;x.{'y' * 128};1;1", "Number", f"… ('x.{'y' * 18}…' is no number: "),
    ],
)
def test_what_is_no_sum_is_rejected(
    still: Workspace, tmp_path: Path, row: str, code: str, said: str
) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"{HEADER}{row}\n")
    (verdict,) = examine(still.settings, [str(path)], PROFILE)
    (reject,) = verdict.rejects
    assert reject.errors[0]["ErrorCode"] == code
    assert said in reject.errors[0]["Message"]


@pytest.mark.parametrize("text", ["5.", "5.e1", "1e100", "0" * 31 + "5", "1e-00002", " 7.0e000 "])
def test_what_a_field_takes_alone_a_sum_takes_too(text: str) -> None:
    alone = read_number(text)
    assert isinstance(alone, Number)
    frame = pl.DataFrame({"0": [text], "1": [None]}, {"0": pl.String, "1": pl.String})
    of = [pl.col(name) for name in frame.columns]
    (found,) = frame.select(ColumnSum(2).of(of, of, "said").alias("sum"))["sum"]
    assert Decimal(found) == alone.exact


@pytest.mark.parametrize(
    ("cells", "sum_"), [("500", "5"), ("1", "0.01"), ("0", "0"), ("1e5", "1000")]
)
def test_a_whole_number_is_written_as_one(cells: str, sum_: str) -> None:
    """A `scale` has decimals, and leaves none of them where the sum has none."""
    shape = {**SHAPE, "fields": {"DebtsId": {"sum": ["Cents"], "scale": "0.01"}}}
    del shape["constants"]
    form = writing_of(read_profile(shape)).fields["DebtsId"]
    frame = pl.DataFrame({"Cents": [cells]})
    made = form.made(EXTRACTS["payment"].by_name["DebtsId"], [pl.col("Cents")])
    assert frame.select(made).item() == sum_


ONE_OF = [
    # money out, money in, what is paid; a text: why it is rejected
    ("", "1.234,56", "1234.56"),
    ("20,00", "", "-20.00"),
    ("0,00", "7,00", "7.00"),
    ("0", "-0,00", "0.00"),
    ("20,00", "7,00", "7,00 - 20,00 (more than one of its columns has a number)"),
    ("-20,00", "7,00", "7,00 - -20,00 (more than one of its columns has a number)"),
    ("1e-30", "7,00", "7,00 - 1e-30 (more than one of its columns has a number)"),
    ("x", "7,00", "7,00 - x ('x' is no number: decimal sign is ','"),
    (" ", "7,00", "7,00 -   (' ' is no number: decimal sign is ','"),
]
STATEMENT = read_profile(
    {
        **SHAPE,
        "columns": {"No": "Id"},
        "constants": {**SHAPE["constants"], "DiscountAmount": "0.00"},
        "fields": {"PaidAmount": {"sum": ["In"], "minus": ["Out"], "filled": "one"}},
    }
)


@pytest.mark.parametrize(("out", "into", "told"), ONE_OF)
def test_of_debit_and_credit_no_more_than_one_may_be_filled(out: str, into: str, told: str) -> None:
    form = writing_of(STATEMENT).fields["PaidAmount"]
    frame = pl.DataFrame({"In": [into], "Out": [out]})
    made = form.made(EXTRACTS["payment"].by_name["PaidAmount"], [pl.col("In"), pl.col("Out")])
    assert str(frame.select(made).item()).replace("\0", "").startswith(told)


def test_the_fast_path_takes_one_of_debit_and_credit_too(tmp_path: Path) -> None:
    path = tmp_path / "payments.csv"
    good = [f"{number};;{number},50\n" for number in range(10, 60)]
    rows = [f"{number};{out};{into}\n" for number, (out, into, _) in enumerate(ONE_OF)]
    path.write_text("No;Out;In\n" + "".join([*good, *rows]))
    header, found = chunks(path, STATEMENT)
    for chunk in found:
        compare(header, chunk, STATEMENT)


UNITS = [
    # the rate, its units by a column, what one unit is worth; a text: why it is rejected
    ("15,2", "100 JPY", "0.152"),
    ("15,2", "1 USD", "15.2"),
    ("1.234,5", "1.000 IDR", "1.2345"),
    ("0", "100 JPY", "0"),
    ("", "100 JPY", None),
    ("15,2", "3 XXX", "'3' is no number of units: 1, 10, 100 ... (the amount is 15,2)"),
    ("15,2", "0,1 XXX", "'0.1' is no number of units"),
    ("15,2", "JPY", "'JPY (no part of it fits ^([0-9.,]+) )' is no number of units"),
    ("15,2", "", "'' is no number of units"),
    ("x", "100 JPY", "x (decimal sign is"),
]


PER_UNITS = read_profile(
    {
        **SHAPE,
        "fields": {
            "PaidAmount": {
                "sum": ["Rate", "More"],
                "per": {"column": "Units", "part": "^([0-9.,]+) "},
            },
            "DiscountAmount": {
                "sum": ["More"],
                "per": {"column": "Units", "map": {"100 JPY": 100}, "others": 1},
                "default": "0.00",
            },
        },
    }
)


def test_the_fast_path_divides_as_validating_does(tmp_path: Path) -> None:
    path = tmp_path / "payments.csv"
    units = ("1 USD", "100 JPY", '"1000 IDR"', "1.000 IDR", "1000000 X", "1e2 X")
    good = [f"{at};{at},5;0,2{at % 3};{units[at % 5]}\n" for at in range(10, 90)]
    rows = [f"{at};{rate};;{of}\n" for at, (rate, of, _) in enumerate(UNITS)]
    rows += [f"9{zeros};0,1;;1{'0' * zeros} X\n" for zeros in (32_767, 40_000)]
    path.write_text("No;Rate;More;Units\n" + "".join([*good, *rows, f"99;;1;{units[5]}\n"]))
    header, found = chunks(path, PER_UNITS)
    assert header.table.name == "payment"
    for chunk in found:
        compare(header, chunk, PER_UNITS)
        fast = fast_rows(chunk, header, PER_UNITS)
        assert fast is not None
        assert fast.rows[: len(good)].sum() == len(good) - len(good) // 5


@pytest.mark.parametrize(("rate", "units", "told"), UNITS)
def test_an_amount_for_several_units_is_divided_exactly(
    rate: str, units: str, told: str | None
) -> None:
    per = {"column": "Currency", "part": "^([0-9.,]+) "}
    shape = {**SHAPE, "fields": {"DiscountAmount": {"sum": ["Rate"], "per": per}}}
    form = writing_of(read_profile(shape)).fields["DiscountAmount"]
    frame = pl.DataFrame({"Rate": [rate], "Currency": [units]})
    of = EXTRACTS["payment"].by_name["DiscountAmount"]
    found = frame.select(form.made(of, [pl.col("Rate"), pl.col("Currency")])).item()
    if told is None:
        assert found is None
    else:
        assert found.replace("\0", "").startswith(told)


CODED = read_profile(
    {
        **SHAPE,
        "fields": {
            "PaidAmount": {
                "sum": ["Cents", "More"],
                "decimals": 0,
                "scale": "0.01",
                "per": {"column": "Code", "map": {"22": 1, "27": -1, "37": "-100"}},
            },
            "DiscountAmount": {"sum": ["More"], "per": {"column": "Units"}, "default": "0.00"},
        },
    }
)
BY_CODE = [
    # the cents, the code beside them, what is paid
    ("123456", "22", "1234.56"),
    ("5000", "27", "-50.00"),
    ("5000", " 27 ", "-50.00"),
    ("-5000", "27", "50.00"),
    ("0", "27", "0.00"),
    ("5000", "37", "-0.5000"),
    ("1234567890123456789", "27", "-12345678901234567.89"),
    ("", "27", None),
    ("5000", "28", "is no number of units"),
    ("5000", "-22", "is no number of units"),
    ("5000", "", "is no number of units"),
]


@pytest.mark.parametrize(("cents", "code", "told"), BY_CODE)
def test_a_code_says_the_sign_of_a_sum(cents: str, code: str, told: str | None) -> None:
    form = writing_of(CODED).fields["PaidAmount"]
    frame = pl.DataFrame({"Cents": [cents], "More": [""], "Code": [code]})
    made = form.made(EXTRACTS["payment"].by_name["PaidAmount"], [*map(pl.col, frame.columns)])
    found = frame.select(made).item()
    if told is None or told.startswith("is"):
        assert found is None if told is None else told in found
    else:
        assert (Decimal(found), "-0" in found and not Decimal(found)) == (Decimal(told), False)


def test_the_fast_path_takes_a_sign_by_a_code_as_validating_does(tmp_path: Path) -> None:
    path = tmp_path / "payments.csv"
    good = [f"{at};{at}50;;{(22, 27)[at % 2]};1\n" for at in range(10, 90)]
    rows = [f"{at};{cents};;{code};1\n" for at, (cents, code, _) in enumerate(BY_CODE)]
    path.write_text("No;Cents;More;Code;Units\n" + "".join([*good, *rows, "99;1;1;22;-1\n"]))
    header, found = chunks(path, CODED)
    for chunk in found:
        compare(header, chunk, CODED)


def test_a_cell_that_is_a_number_of_units_itself_says_no_sign() -> None:
    form = writing_of(CODED).fields["DiscountAmount"]
    frame = pl.DataFrame({"More": ["5"], "Units": ["-1"]})
    made = form.made(EXTRACTS["payment"].by_name["DiscountAmount"], [*map(pl.col, frame.columns)])
    assert "'-1' is no number of units" in frame.select(made).item().replace("\0", "")


LOOKED_UP = [
    # the text that units follow from, whether others may be for 100, what 15,2 is worth then
    *((text, others, "15.2") for text in ("JPY", " JPY", "JPY\t", "\xa0JPY ") for others in (0, 1)),
    *((text, 0, None) for text in ("EUR", "", " ", "#N/A", "#NV", "####")),
    ("EUR", 1, "0.152"),
    (" EUR ", 1, "0.152"),
    *(
        (text, 1, None)
        for text in ("", " ", "-", " - ", "#N/A", " #REF!", "#NV", "#BEZUG!", "####")
    ),
    *((text, 1, None) for text in ("#N/D", "#\xa1REF!", "#GETTING_DATA", "Err:502")),
]


@pytest.mark.parametrize("part", [{}, {"part": "^(?:X|)(.*)$"}], ids=["whole", "part"])
@pytest.mark.parametrize(("text", "others", "told"), LOOKED_UP)
def test_units_are_looked_up_without_blanks_and_never_guessed(
    text: str, others: int, told: str | None, part: dict[str, str]
) -> None:
    per = {"column": "C", "map": {"JPY": 1}, **part, **({"others": 100} if others else {})}
    told_of = {"sum": ["Rate"], "per": per, "null": ["", "-"]}
    form = writing_of(read_profile({**SHAPE, "fields": {"PaidAmount": told_of}})).fields
    frame = pl.DataFrame({"Rate": ["15,2"], "C": [text]})
    of = EXTRACTS["payment"].by_name["PaidAmount"]
    found = frame.select(form[of.name].made(of, [pl.col("Rate"), pl.col("C")])).item()
    assert (found == told) if told else "is no number of units" in found


NUMBERS = st.one_of(
    st.none(),
    st.decimals(-(10**20), 10**20, allow_nan=False, places=9).map("{:f}".format),
    st.decimals(-(10**9) + 1, 10**9 - 1, allow_nan=False, places=2).map("{:f}".format),
    st.sampled_from(["0", "-0.00", "0.00", "00", "-007.10", "999999999.999999", "0.1234560"]),
    st.sampled_from(["+5", ".5", "1e3", "5e-2", " 7 ", "0.1", "1" * 30]),
)


@settings(max_examples=examples(500, 50), deadline=None)
@given(
    st.lists(NUMBERS, min_size=1, max_size=6),
    st.integers(0, 6),
    st.sampled_from(["1", "0.01", "-1", "1000"]),
)
def test_a_sum_is_exact(numbers: list[str | None], added: int, scale: str) -> None:
    found = ColumnSum(added, Decimal(scale))._one(numbers, numbers, "")
    given = [(at, Fraction(one.strip())) for at, one in enumerate(numbers) if one is not None]
    if not given:
        assert found is None
    else:
        assert found is not None
        assert not found.startswith("-0") or Fraction(found) < 0
        total = sum(one if at < added else -one for at, one in given) * Fraction(scale)
        assert Fraction(found) == total


@pytest.mark.long
@settings(max_examples=examples(300, 30), deadline=None)
@given(
    st.data(),
    st.integers(1, 4),
    st.integers(0, 4),
    st.sampled_from(["1", "0.01", "0.010", "1000"]),
    st.booleans(),
)
def test_many_sums_are_those_of_each_row(
    data: st.DataObject, columns: int, added: int, scale: str, one_filled: bool
) -> None:
    cells = st.one_of(NUMBERS, st.sampled_from(["", "x", "5.", "1.2.3"]))
    rows = data.draw(st.lists(st.tuples(*[cells] * columns), max_size=12))
    units = data.draw(
        st.lists(st.sampled_from(["1", "100", "10000000", "1e3", " 10.0", "3", None]), max_size=12)
    )
    rows, units = rows[: len(units)], units[: len(rows)]
    total = ColumnSum(added, Decimal(scale), one_filled)
    names = [f"{at}" for at in range(columns)]
    frame = pl.DataFrame(rows, dict.fromkeys(names, pl.String), orient="row")
    frame = frame.with_columns(pl.Series("units", units, pl.String))
    of = [pl.col(name) for name in names]
    found = frame.select(total.of(of, of, "said").alias("sum"))["sum"].to_list()
    assert found == [total._one(row, row, "said") for row in rows]
    found = frame.select(total.of(of, of, "said", pl.col("units")).alias("sum"))["sum"].to_list()
    assert found == [
        total._one(row, row, "said", one) for row, one in zip(rows, units, strict=True)
    ]


@pytest.mark.parametrize("other", ["0.5", "0.1234567"], ids=["at once", "one by one"])
def test_an_amount_of_a_fixed_scale_is_a_number_whatever_it_is_added_to(other: str) -> None:
    """Databases write zeros up to their scale; another cell says which way the sum is made."""
    frame = pl.DataFrame({"0": ["10.5" + "0" * 37], "1": [other]})
    of = [pl.col(name) for name in frame.columns]
    (found,) = frame.select(ColumnSum(2, Decimal(1)).of(of, of, "said").alias("sum"))["sum"]
    assert Decimal(found) == Decimal("10.5") + Decimal(other)


@pytest.mark.long
def test_the_fast_path_sums_as_validating_does(tmp_path: Path) -> None:
    path = tmp_path / "payments.csv"
    good = [f"{number};{number},50;1,25;0,25;{number}\n" for number in range(10, 60)]
    path.write_text(HEADER + "".join(good) + "".join(f"{row}\n" for row, _ in ROWS))
    header, found = chunks(path, PROFILE)
    for chunk in found:
        compare(header, chunk, PROFILE)


@pytest.mark.parametrize(
    ("name", "told", "said"),
    [
        (
            "PaymentDate",
            {"sum": ["A"]},
            "is for amounts and other numbers",
        ),
        ("PaidAmount", {"scale": "0.01"}, "scale multiplies a sum"),
        ("PaidAmount", {"sum": ["A"], "scale": "0"}, "is not a number to multiply by"),
        ("PaidAmount", {"sum": ["A"], "scale": "1,5"}, "is not a number to multiply by"),
        ("PaidAmount", {"sum": ["A"], "scale": 0.01}, "scale = 0.01 is not a text in quotes"),
        ("PaidAmount", {"sum": ["A"], "minus": [" a"]}, "'a' is in sum and in minus"),
        ("PaidAmount", {"sum": ["A", "A"]}, "each of them once"),
        ("PaidAmount", {"sum": ["A"], "from": ["B"]}, "from both say what PaidAmount is"),
        ("PaidAmount", {"minus": ["A"], "map": {"a": "1"}}, "map both say what PaidAmount is"),
        ("PaidAmount", {"filled": "one"}, "filled says which columns may make a sum"),
        ("PaidAmount", {"sum": ["A"], "filled": "one"}, "there is one column"),
        ("PaidAmount", {"per": {"column": "B"}}, "per divides a sum"),
        ("PaidAmount", {"sum": ["A"], "per": {"part": "(1)"}}, "does not say which column"),
        ("PaidAmount", {"sum": ["A"], "per": {"column": "a"}}, "'a' is a part of the sum itself"),
        (
            "PaidAmount",
            {"sum": ["A"], "per": {"column": "B", "others": "1"}},
            "others is for texts",
        ),
        (
            "PaidAmount",
            {"sum": ["A"], "per": {"column": "B", "map": {"x": "3"}}},
            "per.map.x = '3'",
        ),
        (
            "PaidAmount",
            {"sum": ["A"], "per": {"column": "B", "map": {" JPY": "1"}}},
            "has blanks around it",
        ),
        ("PaidAmount", {"sum": ["A"], "per": {"by": "B"}}, "per.by is not a key"),
        ("Id", {"sum": ["A"]}, "columns and fields.Id.sum both say what Id is"),
        ("TenantsId", {"sum": ["A"]}, "constants.TenantsId and fields.TenantsId.sum both"),
    ],
)
def test_a_profile_that_cannot_be_meant(name: str, told: dict[str, object], said: str) -> None:
    constants = {one: of for one, of in SHAPE["constants"].items() if one != "PaymentDate"}
    with pytest.raises(ProfileError, match=said):
        read_profile({**SHAPE, "constants": constants, "fields": {name: told}})
