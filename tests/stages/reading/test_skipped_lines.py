"""Lines that a feed profile says are no records, by patterns: counted, told, and nothing else."""

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
from flows.stages.examining.try_profile import try_profile
from flows.stages.receiving.terms import other_terms
from flows.stages.rows.locate import Spot, locate
from flows.stages.sequence import import_delivery
from flows.stages.workspace import Workspace
from tests.stages.payments import HEADER, line

CONSTANTS = {
    **dict.fromkeys(("TenantsId", "ActionsId", "DebtsId", "CurrenciesId"), 7),
    "CurrencyRatesId": 9,
    "DiscountAmount": "0",
    "PaymentDate": "2026-01-01T00:00:00Z",
}
LIST = """Open items                    Seite 1
-------------------
|  Doc |Text  |    Amount |
|------|------|-----------|
|  4711|one   |       1.50|
|  4712|"two
|  Doc |Text  |    Amount |
Seite 3"|       2.50|

Open items                    Seite 2
|  Doc |Text  |    Amount |
|------|------|-----------|
|  4713|three |     3 Euro|
-------------------
|  Sum |      |       4.00|
-------------------
"""
SHAPE: dict[str, Any] = {
    "feed": "list",
    "record": "payment",
    "delimiter": "|",
    "blanks": "dropped",
    "header_line": "found",
    "unknown_columns": "ignore",
    "skip_lines": [r"\|  Doc \|.*", r"\|?-[|-]*", r".* Seite \d+"],
    "footer": [r"\|  Sum \|      \|(?P<PaidAmount>[^|]*)\|"],
    "columns": {"Doc": "Id", "Amount": "PaidAmount"},
    "constants": CONSTANTS,
}


def told(profile: Profile, workspace: Workspace, path: Path) -> tuple[int, int, list[Any]]:
    """Rows, skipped lines, and by line what is wrong."""
    (verdict,) = examine(workspace.settings, [str(path)], profile)
    assert verdict.refused is None, verdict.message
    wrong = [(one.line, one.errors[0]["ErrorCode"]) for one in verdict.rejects]
    return verdict.rows_in, verdict.comments.lines, wrong


@pytest.mark.long
def test_pages_of_a_list_are_one_table(workspace: Workspace, rows: Any, tmp_path: Path) -> None:
    path = tmp_path / "list.txt"
    path.write_text(LIST)
    profile = read_profile(SHAPE)
    assert told(profile, workspace, path) == (3, 5, [(13, "Number")])
    ended = import_delivery(workspace, [str(path)], profile)
    assert rows('SELECT "Id" FROM payment ORDER BY 1') == [(4711,), (4712,)]
    noted = [(one.code, one.rows, one.line) for one in ended.report.notes]
    assert ("Comment", 5, 4) in noted
    with workspace.database.connect() as connection:
        (row,) = locate(workspace, connection, ended.batch.id, path.name, Spot(line=7))
        assert (row.first_line, row.last_line) == (6, 8)
        with pytest.raises(BatchUnknown, match=r"is one that skip_lines .* says \(\.\* Seite"):
            locate(workspace, connection, ended.batch.id, path.name, Spot(line=10))
    assert ended.batch.state is State.COMPLETE_WITH_ERRORS
    other = read_profile({**SHAPE, "skip_lines": [*SHAPE["skip_lines"], "x"]})
    assert other_terms(ended.batch, other) == ["skip_lines"]


def test_a_first_cell_in_quotes_tells_a_line_of_another_kind(
    still: Workspace, tmp_path: Path
) -> None:
    path = tmp_path / "report.csv"
    both = f'"RH","ACME"\n"CH",{HEADER}\n"SB",{line(1)}\n"SF",1\n"SB",{line(2)}x\n"SC","RH",1\n'
    path.write_text(both)
    profile = read_profile(
        {
            "feed": "settlement",
            "header_line": 2,
            "unknown_columns": "ignore",
            "skip_lines": ['"(RH|RF|SH|SF|SC)",.*'],
        }
    )
    assert told(profile, still, path) == (2, 2, [(5, "Integer")])


def test_lines_of_a_fixed_width_have_their_kind_at_a_fixed_place(
    still: Workspace, tmp_path: Path
) -> None:
    path = tmp_path / "list.txt"
    path.write_text("H   2026\nD0001  1.50\n    T   1\nD0002  2.5x\nDH003  1.50\nX\n")
    profile = read_profile(
        {
            "feed": "mainframe",
            "record": "payment",
            "skip_lines": ["H.*", " {4}T.*"],
            "positions": {"Kind": "1", "No.": "2-5", "Amount": "6-11"},
            "short_lines": "filled",
            "unknown_columns": "ignore",
            "columns": {"No.": "Id", "Amount": "PaidAmount"},
            "constants": CONSTANTS,
        }
    )
    assert told(profile, still, path) == (
        4,
        2,
        [(4, "Number"), (5, "Integer"), (6, "NotNull")],
    )


@pytest.mark.parametrize("top", ["", "Page 1\n\n"])
def test_a_header_is_found_before_lines_are_skipped(tmp_path: Path, top: str) -> None:
    path = tmp_path / "payments.csv"
    path.write_text(f"{top}{HEADER}\n{line(1)}\n")
    profile = read_profile(
        {"feed": "x", "record": "payment", "header_line": "found", "skip_lines": ["Id,.*", "P.*"]}
    )
    header = read_header(open_content(path), None, profile, Limits())
    assert path.read_bytes()[header.body_start :].decode() == f"{line(1)}\n"


def test_what_no_pattern_fits_as_a_whole_is_a_record(still: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "payments.csv"
    path.write_bytes(
        f"{HEADER}\r\nPage 1\r\nPage 2 \r\n Page 3\r\nPage\0\xff4\r\n".encode("cp1252")
    )
    profile = read_profile({"feed": "x", "skip_lines": [r"Page.*\S"]})
    assert told(profile, still, path) == (2, 2, [(3, "TooFewFields"), (4, "TooFewFields")])


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"skip_lines": "Page"}, "is not a list of texts such as"),
        ({"skip_lines": ["Page ("]}, "'Page \\(' is no pattern"),
        ({"skip_lines": [".*"]}, "'\\.\\*' fits an empty line"),
        ({"skip_lines": ["a", "a"]}, "names a line twice"),
        ({"skip_lines": ["a"], "sheet": 1}, "skip_lines is not for a sheet"),
    ],
)
def test_a_profile_that_cannot_be_meant(keys: dict[str, object], said: str) -> None:
    with pytest.raises(ProfileError, match=said):
        read_profile({"feed": "x", **keys})


def test_a_workbook_has_none(tmp_path: Path) -> None:
    path = tmp_path / "book.xlsx"
    path.write_bytes(b"PK\x03\x04")
    profile = replace(DEFAULT, skip_lines=("a",))
    with pytest.raises(ExtractRefused, match="a workbook has no comments or other lines of a text"):
        read_header(open_content(path), None, profile, Limits())


ITEMS = {"feed": "list", "record": "payment", "delimiter": ";", "constants": CONSTANTS}
TABLE = {
    "feed": "rates",
    "record": "currency_rate",
    "unpivot": {"keep": ["Date"], "name": "Currency", "value": "Rate"},
    "columns": {"Date": "EffectiveDate", "Currency": "ToCurrenciesId", "Rate": "ExchangeRate"},
    "fields": {"ToCurrenciesId": {"map": {"USD": "840"}}},
    "constants": {"Id": 1, "TenantsId": 7, "FromCurrenciesId": 978},
}
"""A table whose cells become the records."""
WITHOUT_A_RECORD: list[tuple[dict[str, Any], str, int, list[tuple[str, str, int]]]] = [
    # profile, file, comments, and code, first line and lines of each note
    (ITEMS | {"skip_lines": [r"\d+;.*"]}, "Id;PaidAmount\n4711;1.50\n4712;2.50\n\n4713;3.50\n", 3,
     [("Comment", "2", 3)]),
    (TABLE | {"skip_lines": [r"Page \d"]}, "Date,USD\nPage 1\n\nPage 2\n", 2,
     [("Comment", "2", 2)]),
    (TABLE, "Date,USD\n2026-03-02,\n2026-03-03,\n2026-03-04,\n", 0, [("NoValue", "2", 3)]),
    (TABLE | {"skip_lines": [r"Page \d"]},
     "Date,USD\nPage 1\n2026-03-02,\nPage 2\n2026-03-03,\nPage 3\n", 3,
     [("Comment", "2", 3), ("NoValue", "3", 2)]),
]  # fmt: skip


@pytest.mark.parametrize("block_bytes", [4, 100_000])
@pytest.mark.parametrize(("shape", "text", "comments", "notes"), WITHOUT_A_RECORD)
def test_lines_of_a_file_without_a_record_are_told(
    workspace: Workspace,
    rows: Any,
    tmp_path: Path,
    shape: dict[str, Any],
    text: str,
    comments: int,
    notes: list[tuple[str, str, int]],
    block_bytes: int,
) -> None:
    path = tmp_path / "list.csv"
    path.write_text(text)
    profile = read_profile(shape)
    limits = replace(workspace.settings.limits, block_bytes=block_bytes)
    settings = replace(workspace.settings, limits=limits)
    (verdict,) = examine(settings, [str(path)], profile)
    assert (verdict.rows_in, verdict.comments.lines) == (0, comments)
    without = sum(lines for code, _, lines in notes if code == "NoValue")
    assert verdict.valueless.lines == without
    assert try_profile(settings, str(path), profile, record=None, rows=3).rows == ()
    narrow = replace(workspace, settings=settings)
    batch = import_delivery(narrow, [str(path)], profile).batch
    told = "SELECT code, value, rows FROM note ORDER BY code"
    assert rows(told) == notes
    assert import_delivery(narrow, [str(path)], profile).batch.id == batch.id
    assert rows(told) == notes


@pytest.mark.parametrize("block_bytes", [4, 100_000])
@pytest.mark.parametrize(("shape", "text", "comments", "notes"), WITHOUT_A_RECORD)
def test_a_run_that_goes_on_behind_such_lines_tells_them_once(
    tmp_path: Path,
    shape: dict[str, Any],
    text: str,
    comments: int,
    notes: list[tuple[str, str, int]],
    block_bytes: int,
) -> None:
    path = tmp_path / "list.csv"
    path.write_text(text)
    content, profile = open_content(path), read_profile(shape)
    header = read_header(content, None, profile, Limits())
    (chunk,) = read_chunks(content, header, first_place(header), block_bytes)
    assert (chunk.height, chunk.comments.lines) == (0, comments)
    assert list(read_chunks(content, header, chunk.end, block_bytes)) == []


NUMBERED = {"feed": "list", "skip_lines": [r"Page \d"]}


ALONE = [
    (NUMBERED, f"{HEADER}\nPage 1\n\nPage 2\n"),
    (TABLE | NUMBERED, "Date,USD\nPage 1\n\nPage 2\n"),
    (TABLE | NUMBERED, "Date,USD\nPage 1\n2026-03-02,\n"),
    (TABLE, "Date,USD\n2026-03-02,\n2026-03-03,\n"),
]


@pytest.mark.parametrize(
    ("shape", "text", "least", "held"),
    [
        *((*one, 0.01, True) for one in ALONE),
        (*ALONE[0], None, False),
        (*ALONE[0], 0.0, False),
    ],
)
def test_a_batch_of_such_lines_alone_is_not_read(
    workspace: Workspace,
    tmp_path: Path,
    shape: dict[str, Any],
    text: str,
    least: float | None,
    held: bool,
) -> None:
    path = tmp_path / "payments.csv"
    path.write_text(text)
    profile = read_profile(shape)
    batch = import_delivery(workspace, [str(path)], replace(profile, budget_read=least)).batch
    assert (batch.state is State.HELD) == held
    assert batch.held_because == (
        "there is no row: 2 lines behind the header are no record, as the feed profile says; at "
        "least 1.00% have to be read"
        if held
        else None
    )
