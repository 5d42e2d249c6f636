import hashlib
import json
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.cells.reading import Moment, Number, Unread, read, read_moment, read_number
from schemas.derived.json_text import (
    canonical_json,
    content_hash,
    csv_template,
    datetime_text,
    number_text,
    read_json_record,
)
from schemas.field import Field, Kind, Table
from schemas.tables import (
    AVATAR,
    CLIENT_REGISTRATION,
    FORM_RESPONSE,
    INSERT_BATCH_DATA,
    MESSAGE_TONE,
    PAYMENT,
    TABLES,
)

WALL = datetime(2026, 1, 2, 3, 4, 5)  # noqa: DTZ001
FIRST, LAST = WALL.replace(year=2), WALL.replace(year=9998)

PAYMENT_RECORD: dict[str, object] = {
    "PaidAmount": Number(10.5, Decimal("10.50")),
    "Id": 9007199254740993,
    "TenantsId": 7,
    "ActionsId": -1,
    "DebtsId": 0,
    "PaymentDate": Moment(WALL, 120),
    "DiscountAmount": 0.1,
    "CurrenciesId": 1,
    "CurrencyRatesId": None,
}


def test_a_record_is_written_in_the_tables_order() -> None:
    assert canonical_json(PAYMENT, PAYMENT_RECORD) == (
        '{"Id":9007199254740993,"TenantsId":7,"ActionsId":-1,"DebtsId":0,'
        '"PaymentDate":"2026-01-02T03:04:05+02:00","PaidAmount":10.5,"DiscountAmount":0.1,'
        '"CurrenciesId":1}'
    )


def test_booleans_texts_and_nested_values_stand_as_what_they_are() -> None:
    batch = {"Data": 'a,"b"\n', "HasError": True, "Merged": False, "BatchId": 3, "ErrorData": ""}
    written = '{"Data":"a,\\"b\\"\\n","HasError":true,"Merged":false,"BatchId":3,"ErrorData":""}'
    assert canonical_json(INSERT_BATCH_DATA, batch) == written
    reply = {
        "FormMetaResponses": '{"Comments":"c"}',
        "FormMetaFilesResponses": "[]",
        "ActionTimestamp": (WALL, None),
    }
    assert canonical_json(FORM_RESPONSE, reply) == (
        '{"ActionTimestamp":"2026-01-02T03:04:05","FormMetaResponses":{"Comments":"c"},'
        '"FormMetaFilesResponses":[]}'
    )
    assert canonical_json(PAYMENT, {}) == "{}"


@pytest.mark.parametrize(
    ("table", "name", "value"),
    [
        (PAYMENT, "Id", "12"),
        (PAYMENT, "Id", True),
        (PAYMENT, "Id", 1.0),
        (PAYMENT, "PaidAmount", "1.5"),
        (PAYMENT, "PaidAmount", True),
        (PAYMENT, "PaymentDate", "2026-01-02T03:04:05Z"),
        (PAYMENT, "PaymentDate", WALL),
        (INSERT_BATCH_DATA, "HasError", 1),
        (INSERT_BATCH_DATA, "Data", 1),
        (FORM_RESPONSE, "FormMetaCustomResponses", {"a": "b"}),
    ],
)
def test_a_value_of_another_type_is_never_written(table: Table, name: str, value: object) -> None:
    with pytest.raises(TypeError, match=f"{table.name}.{name}"):
        canonical_json(table, {name: value})


def test_a_name_that_is_no_field_is_never_dropped() -> None:
    with pytest.raises(ValueError, match="PaymentDate_offset"):
        canonical_json(PAYMENT, {"PaymentDate_offset": 120})


# PostgreSQL's to_json(text) gives these very bytes, checked for every character but NUL.
@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("\b\f\n\r\t", r"\b\f\n\r\t"),
        ('"\\/', r"\"\\/"),
        ("\x01\x0b\x0e\x1f", r"\u0001\u000b\u000e\u001f"),
        ("\x7f\x80\x9f\u2028\u2029é€😀", "\x7f\x80\x9f\u2028\u2029é€😀"),
        ("</script>&'", "</script>&'"),
    ],
)
def test_texts_are_escaped_as_the_database_does(text: str, escaped: str) -> None:
    assert canonical_json(AVATAR, {"Name": text}) == f'{{"Name":"{escaped}"}}'


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1e16, "10000000000000000"),
        (1e-5, "0.00001"),
        (Decimal("12.50"), "12.5"),
        (Decimal("-12.00"), "-12"),
        (Decimal("1E+3"), "1000"),
        (100.0, "100"),
        (100, "100"),
        (-0.0, "0"),
        (Decimal("-0.00"), "0"),
        (Decimal("0E+5"), "0"),
        (0.1 + 0.2, "0.30000000000000004"),
        (Decimal("123456789012345678901234567890.123456789"),) * 2,
        (5e-324, "0." + "0" * 323 + "5"),
        (1.7976931348623157e308, "17976931348623157" + "0" * 292),
    ],
)
def test_a_number_is_written_plainly(value: float | Decimal, text: object) -> None:
    assert number_text(value) == str(text)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), Decimal("-Infinity")])
def test_a_number_without_a_value_is_never_written(value: float | Decimal) -> None:
    with pytest.raises(ValueError, match="finite"):
        number_text(value)


@pytest.mark.parametrize(
    ("wall", "offset", "text"),
    [
        (WALL, None, "2026-01-02T03:04:05"),
        (WALL, 0, "2026-01-02T03:04:05+00:00"),
        (WALL, 120, "2026-01-02T03:04:05+02:00"),
        (WALL, -330, "2026-01-02T03:04:05-05:30"),
        (WALL, -30, "2026-01-02T03:04:05-00:30"),
        (WALL.replace(second=0, microsecond=250_000), 840, "2026-01-02T03:04:00.25+14:00"),
        (WALL.replace(microsecond=1), None, "2026-01-02T03:04:05.000001"),
        (WALL.replace(microsecond=100), None, "2026-01-02T03:04:05.0001"),
        (WALL.replace(hour=0, minute=0, second=0), None, "2026-01-02T00:00:00"),
        (WALL.replace(year=1), None, "0001-01-02T03:04:05"),
        (WALL.replace(tzinfo=UTC), 120, "2026-01-02T05:04:05+02:00"),
        (WALL.replace(tzinfo=UTC), -330, "2026-01-01T21:34:05-05:30"),
    ],
)
def test_a_time_keeps_its_offset(wall: datetime, offset: int | None, text: str) -> None:
    assert datetime_text(wall, offset) == text


def test_an_instant_is_not_shown_without_an_offset() -> None:
    with pytest.raises(ValueError, match="offset"):
        datetime_text(WALL.replace(tzinfo=UTC), None)


def test_the_hash_is_of_the_bytes() -> None:
    assert content_hash('{"Name":"é"}') == hashlib.sha256(b'{"Name":"\xc3\xa9"}').hexdigest()


def test_a_template_is_the_header_of_what_can_be_delivered() -> None:
    assert csv_template(MESSAGE_TONE) == "TenantsId,AvatarsId,Name\n"
    assert "ResponseStatus" not in csv_template(CLIENT_REGISTRATION)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_double_is_read_back(value: float) -> None:
    text = number_text(value)
    assert float(text) == value
    assert "e" not in text.lower()
    assert read_number(text) == Number(value, Decimal(repr(value)))


@given(
    st.datetimes(FIRST, LAST),
    st.none() | st.integers(-840, 840),
)
def test_every_time_is_read_back(wall: datetime, offset: int | None) -> None:
    moment = Moment(wall, offset)
    assert read_moment(datetime_text(wall, offset), offset_required=False) == moment
    if offset is not None:
        assert datetime_text(moment.instant, offset) == datetime_text(wall, offset)


VALUES: dict[Kind, st.SearchStrategy[object]] = {
    Kind.INTEGER: st.integers(-(2**31), 2**31 - 1),
    Kind.INTEGER64: st.integers(-(2**63), 2**63 - 1),
    Kind.DOUBLE: st.floats(allow_nan=False, allow_infinity=False).map(
        lambda value: Number(value, Decimal(repr(value)))
    ),
    Kind.STRING: st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00")),
    Kind.BOOLEAN: st.booleans(),
    Kind.DATETIME: st.datetimes(FIRST).map(lambda wall: Moment(wall, None)),
    Kind.DATETIME_OFFSET: st.builds(
        Moment,
        st.datetimes(FIRST, LAST),
        st.integers(-840, 840),
    ),
}


@st.composite
def records(draw: st.DrawFn) -> tuple[Table, dict[str, object]]:
    table = draw(st.sampled_from([PAYMENT, INSERT_BATCH_DATA, TABLES["payment_plan_detail"]]))
    return table, {field.name: draw(st.none() | VALUES[field.kind]) for field in table}


def no_nested(field: Field, text: str) -> Unread:
    raise AssertionError(f"{field.name} is not nested: {text}")


@given(records())
def test_a_canonical_record_is_read_back_value_by_value(
    drawn: tuple[Table, dict[str, object]],
) -> None:
    table, record = drawn
    canonical = canonical_json(table, record)
    assert json.loads(canonical).keys() == {name for name in record if record[name] is not None}
    found = read_json_record(table, canonical)
    assert not isinstance(found, Unread)
    for name, cell in found.items():
        value = None if cell is None else read(table.by_name[name], cell, no_nested)
        assert value == record[name]
