import pytest

from schemas.cells.reading import Unread
from schemas.derived.json_text import read_json_record, recognise
from schemas.field import Table
from schemas.reasons import REASONS
from schemas.tables import (
    AVATAR,
    CLIENT_REGISTRATION,
    EXTRACTS,
    FORM_RESPONSE,
    INSERT_BATCH_DATA,
    MESSAGE_TONE,
    PAYMENT,
    TABLES,
    USER_ACCOUNT,
)


def cells(table: Table, **given: str) -> dict[str, str | None]:
    return dict.fromkeys(table.columns) | given


INSIDE = [
    (PAYMENT, "{}", cells(PAYMENT)),
    (
        PAYMENT,
        '{"Id": 9007199254740993, "PaidAmount": 10.50, "DiscountAmount": 1E+2, "TenantsId": null}',
        cells(PAYMENT, Id="9007199254740993", PaidAmount="10.50", DiscountAmount="1E+2"),
    ),
    (PAYMENT, '{"id": "12", "paidAmount": NaN}', cells(PAYMENT, Id="12", PaidAmount="NaN")),
    (
        PAYMENT,
        "{Id:12,PaidAmount:10.50,PaymentDate:2026-01-02T03:04:05Z}",
        cells(PAYMENT, Id="12", PaidAmount="10.50", PaymentDate="2026-01-02T03:04:05Z"),
    ),
    (
        INSERT_BATCH_DATA,
        r'{"HasError": true, "Merged": false, "Data": "", "Jsondata": "{\"a\":1}"}',
        cells(INSERT_BATCH_DATA, HasError="True", Merged="False", Data="", Jsondata='{"a":1}'),
    ),
    (
        FORM_RESPONSE,
        '{"FormMetaFilesResponses": [ {"FileSize": 1.0} ], "FormMetaCustomResponses": "{a:b}"}',
        cells(
            FORM_RESPONSE,
            FormMetaFilesResponses='[{"FileSize":1.0}]',
            FormMetaCustomResponses="{a:b}",
        ),
    ),
    (
        FORM_RESPONSE,
        "{FormMetaFilesResponses:[{FileSize:1}]}",
        cells(FORM_RESPONSE, FormMetaFilesResponses='[{"FileSize":"1"}]'),
    ),
    (
        CLIENT_REGISTRATION,
        r'{"Roles": ["C:\\new"]}',
        cells(CLIENT_REGISTRATION, Roles=r'[ "C:\\new"]'),
    ),
]


@pytest.mark.parametrize(("table", "text", "expected"), INSIDE)
def test_a_record_inside_a_cell_becomes_cells(
    table: Table, text: str, expected: dict[str, str | None]
) -> None:
    assert read_json_record(table, text) == expected


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "a value is missing"),
        ("12", "a number where a payment record"),
        ("[]", "a list where a payment record"),
        ('[{"Id":1}]', "a list where"),
        ("null", "null where"),
        ("Id", "a text where"),
        ('{"Id":1', "JSON is ill-formed at character 8"),
        ('{"Id":1} {"Id":2}', "JSON is ill-formed at character 10"),
        ('{"Id":1,"Id":2}', "named twice"),
        ('{"Id":1,"id":1}', "member Id is given twice"),
        ('{"Name":"x"}', 'member "Name" is not a field of payment'),
        ('{"ResponseStatus":{}}', '"ResponseStatus" is not a field'),
        ('{"Id":{"a":1}}', 'member "Id" is an object'),
        ('{"Id":[1]}', 'member "Id" is a list'),
        (r'{"Id":"\u0000"}', "NUL"),
        (r'{"Id":"\ud800"}', "surrogate"),
    ],
)
def test_anything_else_inside_a_cell_is_refused(text: str, problem: str) -> None:
    unread = read_json_record(PAYMENT, text)
    assert isinstance(unread, Unread)
    assert unread.code == "InnerRecord"
    assert problem in unread.facts["value"]
    assert REASONS["InnerRecord"].message(**unread.facts)


@pytest.mark.parametrize(
    "text",
    [
        '{"Password":"hunter2"',
        '{"Password":"hunter2","Password":"hunter2"}',
        "{Password:hunter2",
        '{Password:"hunter2"x}',
        '{"Password":["hunter2"]}',
        '{"Password":"hunter2","Extra":"hunter2"}',
        r'{"Password":"hunter2\u0000"}',
    ],
)
def test_a_refused_record_shows_no_value(text: str) -> None:
    unread = read_json_record(CLIENT_REGISTRATION, text)
    assert isinstance(unread, Unread)
    assert "hunter" not in repr(unread)


@pytest.mark.parametrize("table", EXTRACTS.values(), ids=EXTRACTS)
def test_a_whole_header_is_recognised_in_any_case_and_order(table: Table) -> None:
    names = [name.lower() for name in reversed(table.columns)]
    assert recognise((*names,)) is (None if table is INSERT_BATCH_DATA else table)
    assert recognise((*names, "surplus")) is None


@pytest.mark.parametrize(
    ("names", "table"),
    [
        ([], None),
        (["TenantsId", "AvatarsId", "Name"], MESSAGE_TONE),
        (["TenantsId", "Name"], AVATAR),
        (["Gender"], None),
        ([field.name for field in PAYMENT if field.name != "Id"], None),
        (["FirstName", "LastName", "Password", "Company"], CLIENT_REGISTRATION),
        (["FirstName", "LastName", "Company"], USER_ACCOUNT),
        (["CampaignActionFiles"], TABLES["form_reply"]),
        (["CustomFormResults"], None),
    ],
)
def test_a_part_of_a_header_is_recognised_where_it_can_be_one(
    names: list[str], table: Table | None
) -> None:
    assert recognise((*names,)) is table
