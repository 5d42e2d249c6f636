"""Comment lines: each is counted, none is a record, and what only looks like one is untouched."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from connectors.errors import BatchUnknown, ExtractRefused, ProfileError
from connectors.files.chunks.reader import first_place, read_chunks
from connectors.files.layout.header import read_header
from connectors.files.profiles.profile import DEFAULT, Profile
from connectors.files.profiles.profile_file import read_profile
from connectors.files.text.content import open_content
from connectors.postgres.batches.ledger import State
from connectors.settings import Limits
from flows.stages.examining.examine import examine
from flows.stages.rows.locate import Spot, locate
from flows.stages.rows.rejects import write_rejects
from flows.stages.sequence import import_delivery
from flows.stages.workspace import Workspace
from tests.stages.payments import HEADER, line

PROFILE = read_profile({"feed": "bank", "comment": "#", "unknown_columns": "ignore"})
FILE = "\n".join(
    [
        '# made by "bank", 5" wide',
        "# second, line",
        f"{HEADER},Note",
        '#,of,the,first,"part',
        line(1) + ',"one\n# no comment\n#"',
        "",
        "# total to come \0",
        line(2, amount="ten") + ",two",
        "# end",
    ]
)


@pytest.mark.long
@pytest.mark.parametrize("stated", [DEFAULT, PROFILE], ids=["inherited", "stated"])
def test_comments_are_noted_and_rows_keep_their_lines(
    workspace: Workspace, rows: Any, tmp_path: Path, stated: Profile
) -> None:
    path = tmp_path / "payments.csv"
    path.write_text(FILE)
    ended = import_delivery(workspace, [str(path)], PROFILE)
    assert ended.batch.state is State.COMPLETE_WITH_ERRORS
    assert [(one.code, one.rows, one.line) for one in ended.report.notes if one.rows == 3] == [
        ("Comment", 3, 4)
    ]
    with workspace.database.connect() as connection:
        for number, data in {
            5: line(1) + ',"one\n# no comment\n#"',
            10: line(2, amount="ten") + ",two",
        }.items():
            spot = Spot(line=number)
            (row,) = locate(workspace, connection, ended.batch.id, path.name, spot)
            assert row.data == data
            assert FILE.encode()[row.byte_start : row.byte_end].decode() == row.data
        with pytest.raises(BatchUnknown, match="is a comment, and belongs to no record"):
            locate(workspace, connection, ended.batch.id, path.name, Spot(line=9))
    (rejects,) = write_rejects(workspace, ended.batch.id, tmp_path / "out", with_secrets=False)
    rejects.write_text(rejects.read_text().replace("ten", "10"))
    corrected = import_delivery(workspace, [str(rejects)], stated, corrects=ended.batch.id).batch
    assert corrected.state is State.COMPLETE
    assert rows('SELECT "Id" FROM payment ORDER BY 1') == [(1,), (2,)]


def test_a_check_says_how_many_there_are(still: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "payments.csv"
    path.write_text(FILE)
    (verdict,) = examine(still.settings, [str(path)], PROFILE)
    assert (verdict.rows_in, verdict.comments.lines) == (2, 3)
    (plain,) = examine(still.settings, [str(path)], replace(PROFILE, comment=()))
    assert plain.refused


@pytest.mark.long
@pytest.mark.parametrize("text", ["", "H", "T"])
def test_lines_of_other_kinds_are_told_by_their_first_cell(
    workspace: Workspace, rows: Any, tmp_path: Path, text: str
) -> None:
    """Files of several batches, each with a head and a total of its own width."""
    path = tmp_path / "payments.txt"
    one, two = (f"D,{line(number)},{text}" for number in (1, 2))
    path.write_text(f"H,ACME\n{one}\nT,1\n# half\nH,ACME\n{two}\nT\nT,1,2,3\nD,T,1\n")
    profile = read_profile(
        {
            "feed": "batches",
            "record": "payment",
            "delimiter": ",",
            "comment": ["T,", "#", "H,"],
            "names": ["Kind", *HEADER.split(","), "Note"],
            "unknown_columns": "ignore",
        }
    )
    (verdict,) = examine(workspace.settings, [str(path)], profile)
    assert (verdict.rows_in, verdict.comments.lines) == (4, 5)
    assert [(one.line, one.errors[0]["ErrorCode"]) for one in verdict.rejects] == [
        (7, "TooFewFields"),
        (9, "TooFewFields"),
    ]
    import_delivery(workspace, [str(path)], profile)
    assert rows('SELECT "Id" FROM payment ORDER BY 1') == [(1,), (2,)]


@pytest.mark.long
@pytest.mark.parametrize("block", [1, 2, 3, 7, 20, 1000])
def test_comments_are_counted_once_wherever_blocks_are_cut(tmp_path: Path, block: int) -> None:
    path = tmp_path / "payments.csv"
    lines = [*["# a"] * 30, line(1), *["# b"] * 30, line(2), *["# c"] * 30]
    path.write_text("\n".join([HEADER, *lines]))
    content = open_content(path)
    header = read_header(content, None, PROFILE, Limits())
    chunks = [*read_chunks(content, header, first_place(header), block)]
    assert all(chunk.conserved() for chunk in chunks)
    assert sum(chunk.comments.lines for chunk in chunks) == 90
    assert chunks[0].comments.first == 2
    assert [int(at) for chunk in chunks for at in chunk.records.first_line] == [32, 63]


@pytest.mark.parametrize(
    ("top", "names", "keys"),
    [
        ("# a\n\n# b\n", HEADER, {}),
        ("Statement\n# Id,TenantsId\n", HEADER, {"header_line": 2}),
        ("Statement\n# Id,TenantsId\n", HEADER, {"header_line": "found", "record": "payment"}),
        ("", HEADER.replace("Id,", "Payment,", 1) + "\n# a\nNumber,,,,,,,,", {"header_lines": 2}),
    ],
)
def test_a_comment_is_no_header(tmp_path: Path, top: str, names: str, keys: dict[str, Any]) -> None:
    path = tmp_path / "payments.csv"
    path.write_text(f"{top}{names}\n{line(1)}\n")
    columns = {"Payment Number": "Id"} if "header_lines" in keys else {}
    profile = read_profile({"feed": "x", "comment": "#", "columns": columns, **keys})
    header = read_header(open_content(path), None, profile, Limits())
    assert header.fields[0] == "Id"
    assert path.read_bytes()[header.body_start :].decode() == f"{line(1)}\n"


def test_a_footer_may_begin_as_comments_do(tmp_path: Path) -> None:
    path = tmp_path / "payments.csv"
    path.write_text(f"{HEADER}\n{line(1)}\n# 1 row\n# bye\n")
    profile = read_profile({"feed": "x", "comment": "#", "footer": [r"# (?P<rows>\d+) row"]})
    header = read_header(open_content(path), None, profile, Limits())
    assert header.footer is not None
    assert header.footer.rows == 1


def test_lines_with_positions_have_comments_too(still: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "list.txt"
    path.write_text("* list\n0001  1.50\n* half\n0002  2.5x\n")
    profile = read_profile(
        {
            "feed": "x",
            "record": "payment",
            "comment": "*",
            "positions": {"No.": "1-4", "Amount": "5-10"},
            "columns": {"No.": "Id", "Amount": "PaidAmount"},
            "constants": {
                **dict.fromkeys(("TenantsId", "ActionsId", "DebtsId", "CurrenciesId"), 7),
                "CurrencyRatesId": 9,
                "DiscountAmount": "0",
                "PaymentDate": "2026-01-01T00:00:00Z",
            },
        }
    )
    (verdict,) = examine(still.settings, [str(path)], profile)
    assert (verdict.rows_in, verdict.comments.lines) == (2, 2)
    assert [(one.line, one.errors[0]["FieldName"]) for one in verdict.rejects] == [
        (4, "PaidAmount")
    ]


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"comment": ""}, "not one to 10 ASCII signs"),
        ({"comment": "№"}, "not one to 10 ASCII signs"),
        ({"comment": []}, "not one or more texts"),
        ({"comment": ["#", "#"]}, "not one or more texts, each of them once"),
        ({"comment": 1}, "is not a list of texts such as"),
        ({"comment": "REM"}, "may also begin a record"),
        ({"comment": ["#", "H,"]}, "'H,' may also begin a record"),
        ({"comment": "H,", "delimiter": ";"}, "'H,' may also begin a record"),
        ({"comment": "-"}, "may also begin a record"),
        ({"comment": '#"'}, "has the quote in it"),
        ({"comment": ";;"}, "begins like the delimiter"),
        ({"comment": "#", "delimiter": "#"}, "begins like the delimiter"),
        ({"comment": "#", "sheet": 1}, "comment is not for a sheet"),
        ({"comment": "$", "currency": ["$1"]}, "may also begin a record: with a number"),
        (
            {"comment": "--", "fields": {"PaidAmount": {"negative": ["--1"]}}},
            "may also begin a record: with a number",
        ),
        ({"comment": "$5", "currency": ["$1"]}, "may also begin a record: with a number"),
        ({"delimiter": "\x1f|"}, "has U\\+001F in it"),
        ({"delimiter": "||", "quote": "\x1f"}, "has U\\+001F in it"),
        ({"null": ["", "a\0"]}, "null has a NUL in it"),
        ({"record": "payment", "delimiter": ",", "names": ["Id", "reconrow"]}, "column of our own"),
    ],
)
def test_a_profile_that_cannot_be_meant(keys: dict[str, object], said: str) -> None:
    with pytest.raises(ProfileError, match=said):
        read_profile({"feed": "x", **keys})


def test_a_comment_may_look_like_a_sign_and_something_else() -> None:
    assert read_profile({"feed": "x", "comment": "--", "negative": ["-1"]}).comment == ("--",)
    assert read_profile({"feed": "x", "comment": "$$", "currency": ["$1"]}).comment == ("$$",)


def test_a_workbook_has_none(tmp_path: Path) -> None:
    path = tmp_path / "book.xlsx"
    path.write_bytes(b"PK\x03\x04")
    with pytest.raises(ExtractRefused, match="a workbook has no comments"):
        read_header(open_content(path), None, PROFILE, Limits())


@pytest.mark.parametrize("block", [5, 40, 1000])
def test_comments_between_the_lines_of_a_table_are_counted(
    still: Workspace, tmp_path: Path, block: int
) -> None:
    path = tmp_path / "rates.csv"
    rows = ["# a", "2014-08-25,1.32,137.13", *["# b", "2014-08-24,,"] * 9, "# c"]
    path.write_text("\n".join(["Date,USD,JPY", *rows, "2014-08-22,1.3,", "# d"]))
    profile = read_profile(
        {
            "feed": "rates",
            "record": "currency_rate",
            "comment": "#",
            "offset": "Z",
            "unpivot": {"keep": ["Date"], "name": "Currency", "value": "Rate"},
            "columns": {"Date": "EffectiveDate", "Rate": "ExchangeRate"},
            "fields": {
                "ToCurrenciesId": {"from": ["Currency"], "map": {"USD": 840, "JPY": 392}},
                "Id": {"key": ["EffectiveDate", "ToCurrenciesId"]},
            },
            "constants": {"TenantsId": 7, "FromCurrenciesId": 978},
        }
    )
    content = open_content(path)
    header = read_header(content, None, profile, Limits())
    chunks = [*read_chunks(content, header, first_place(header), block)]
    assert all(chunk.conserved() for chunk in chunks)
    assert sum(chunk.comments.lines for chunk in chunks) == 12
    assert sum(chunk.valueless.lines for chunk in chunks) == 9
    (verdict,) = examine(still.settings, [str(path)], profile)
    assert (verdict.rows_in, verdict.comments.lines, verdict.valueless.lines) == (3, 12, 9)


@pytest.mark.long
def test_comments_of_insert_batch_data_are_noted_once(workspace: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    inner = '"{""Id"":1,""TenantsId"":7,""DebtsId"":5,""InvoiceUrl"":""a""}"'
    path.write_text(f"Data,HasError,Merged,BatchId,Jsondata,ErrorData\n# a\n,,,,{inner},\n# b\n")
    profile = read_profile({"feed": "x", "comment": "#", "inner_record": "invoice_file"})
    ended = import_delivery(workspace, [str(path)], profile)
    assert [(one.code, one.rows) for one in ended.report.notes if one.code == "Comment"] == [
        ("Comment", 2)
    ]
