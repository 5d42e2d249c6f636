"""Columns of a fixed width: cells are where a layout says, and a line that is cut is rejected."""

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from openpyxl import Workbook

from connectors.errors import ExtractRefused, ProfileError
from connectors.files.chunks.reader import first_place, read_chunks
from connectors.files.layout.header import read_header
from connectors.files.profiles.profile import DEFAULT, Profile
from connectors.files.profiles.profile_file import read_profile
from connectors.files.text.content import open_content
from connectors.postgres.batches.ledger import State
from connectors.settings import Limits
from flows.stages.examining.examine import examine
from flows.stages.rows.locate import locate
from flows.stages.rows.rejects import write_rejects
from flows.stages.rows.spots import Spot
from flows.stages.sequence import import_delivery
from flows.stages.workspace import Workspace
from schemas.tables import EXTRACTS
from tests.examples import examples

SHAPE: dict[str, Any] = {
    "feed": "mainframe",
    "record": "payment",
    "date_format": "%Y%m%d",
    "offset": "Z",
    "first_line": 2,
    "footer": [r"TRAILER (?P<rows>\d+)"],
    "positions": {"No.": "1-4", "Amount": "5-12", "Day": "13-20", "Sort": "21"},
    "columns": {"No.": "Id", "Amount": "PaidAmount", "Day": "PaymentDate"},
    "fields": {"CurrenciesId": {"from": ["Sort"], "map": {"E": 978, "G": 826}}},
    "constants": {
        "TenantsId": 7,
        "ActionsId": 1,
        "DebtsId": 5,
        "CurrencyRatesId": 9,
        "DiscountAmount": "0.00",
    },
}
PROFILE = read_profile(SHAPE)
TOP, GOOD = "PAYMENTS", "0001   12.5020261101E"


def written(folder: Path, *lines: str, name: str = "list.txt") -> str:
    path = folder / name
    path.write_text("".join(f"{one}\n" for one in (TOP, *lines, f"TRAILER {len(lines):09}")))
    return str(path)


@pytest.mark.long
@pytest.mark.parametrize("stated", [DEFAULT, PROFILE], ids=["inherited", "stated"])
def test_a_list_is_imported_and_its_wrong_rows_corrected(
    workspace: Workspace, rows: Any, tmp_path: Path, stated: Profile
) -> None:
    path = written(tmp_path, GOOD, "0002   1,2,320261102G", "0003    7.50202")
    batch = import_delivery(workspace, [path], PROFILE).batch
    assert batch.state is State.COMPLETE_WITH_ERRORS
    with workspace.database.connect() as connection:
        (row,) = locate(workspace, connection, batch.id, "list.txt", Spot(line=3))
    assert row.data == "0002   1,2,320261102G"
    assert Path(path).read_bytes()[row.byte_start : row.byte_end].decode() == row.data
    (rejects,) = write_rejects(workspace, batch.id, tmp_path / "rejects", with_secrets=False)
    top, comma, cut = rejects.read_text().splitlines()
    assert top == "ReconRow,No.,Amount,Day,Sort"
    assert comma.endswith(',0002,"1,2,3",20261102,G')
    assert cut.endswith(",0003    7.50202")
    right = [comma.replace('"1,2,3"', "1.23"), cut.replace("0003    7.50202", "3,7.50,20261103,E")]
    rejects.write_text("".join(f"{one}\n" for one in (top, *right)))
    assert import_delivery(
        workspace, [str(rejects)], stated, corrects=batch.id
    ).batch.state is State.COMPLETE  # fmt: skip
    found = rows('SELECT "Id", "PaidAmount"::text, "CurrenciesId" FROM payment ORDER BY 1')
    assert found == [(1, "12.50", 978), (2, "1.23", 826), (3, "7.50", 978)]


LINES = [
    # line, whether short ones are filled, what is said of it
    (GOOD, False, None),
    (GOOD + "   ", False, None),
    (GOOD + " x", False, "TooManyFields"),
    (GOOD[:-1], False, "TooFewFields"),
    (GOOD[:-1], True, "NotNull"),
    (GOOD + "x", True, "TooManyFields"),
    (GOOD[:15], True, "TooFewFields"),
    (GOOD[:15] + "     ", True, "DateTime"),
    (GOOD.replace("E", "€"), False, "Integer"),
    (GOOD.replace(".", "\x1f"), False, "TooManyFields"),
    (GOOD.replace(".", "\x1e"), False, "StrayQuote"),
    (GOOD.replace(".", '"'), False, "Number"),
    (" " * 21, False, "NotNull"),
]


@pytest.mark.parametrize(("line", "filled", "code"), LINES)
def test_a_line_has_all_its_cells_or_is_rejected(
    still: Workspace, tmp_path: Path, line: str, filled: bool, code: str | None
) -> None:
    profile = replace(PROFILE, short_lines="filled" if filled else "refused")
    (verdict,) = examine(still.settings, [written(tmp_path, GOOD, line)], profile)
    wrong = [reject.errors[0]["ErrorCode"] for reject in verdict.rejects if reject.line == 3]
    # The same record twice is one; what is wrong with it is told of its line alone.
    assert wrong == ([code] if code else []), verdict.message


def test_a_line_is_not_cut_within_a_number(still: Workspace, tmp_path: Path) -> None:
    """The first digits of a number are a number too; a text, and what is not read, may be short."""
    sort = {"CurrenciesId": {**SHAPE["fields"]["CurrenciesId"], "default": 978}}
    more = {"positions": {**SHAPE["positions"], "Note": "25-34"}, "unknown_columns": "ignore"}
    profile = read_profile({**SHAPE, **more, "fields": sort, "short_lines": "filled"})
    line = GOOD + "   a note"
    cuts = [line[:signs] for signs in range(1, len(line) + 1)]
    (verdict,) = examine(still.settings, [written(tmp_path, *cuts)], profile)
    rejected = {reject.line - 1: reject.errors[0]["ErrorCode"] for reject in verdict.rejects}
    within = [*range(1, 4), *range(5, 12), *range(13, 20)]
    assert rejected == dict.fromkeys(within, "TooFewFields") | {4: "NotNull", 12: "NotNull"}


@pytest.mark.long
@pytest.mark.parametrize(
    ("encoding", "unit", "signs"),
    [
        ("utf-8", None, "ab1ü€ "),
        ("cp1252", None, "ab1ü€ "),
        ("utf-16", None, "ab1ü€ "),
        ("cp932", "characters", "ab1ソ表ｱ "),
        ("utf-8", "bytes", "ab1ü€𝄞 "),
        ("cp1252", "bytes", "ab1ü€ "),
        ("cp932", "bytes", "ab1ソ表ｱ "),
        ("gb18030", "bytes", "ab1中ü€ "),
        ("big5", "bytes", "ab1中文 "),
        ("euc-kr", "bytes", "ab1한국 "),
    ],
)
@pytest.mark.parametrize("seed", range(examples(40, few=2)))
def test_characters_are_counted_or_bytes(
    tmp_path: Path, encoding: str, unit: str | None, signs: str, seed: int
) -> None:
    chance = random.Random(seed)
    widths = [chance.randint(1, 7) for _ in range(5)]
    ends = [sum(widths[: place + 1]) for place in range(5)]
    positions = {
        f"C{at}": f"{end - wide + 1}-{end}"
        for at, (end, wide) in enumerate(zip(ends, widths, strict=True))
    }
    wanted = [
        [
            _fitting(
                [chance.choice(signs) for _ in range(chance.randint(0, wide))],
                wide,
                encoding if unit == "bytes" else None,
            )
            for wide in widths
        ]
        for _ in range(50)
    ]
    lines = [
        "".join(
            cell + " " * (wide - _size(cell, encoding if unit == "bytes" else None))
            for cell, wide in zip(row, widths, strict=True)
        )
        for row in wanted
    ]
    path = tmp_path / "list.txt"
    path.write_bytes(("\r\n".join(lines) + "\r\n").encode(encoding))
    shape = {**SHAPE, "positions": positions, "columns": {"C0": "Id"}, "fields": {}, "footer": []}
    constants: dict[str, object] = {"PaidAmount": "1", "CurrenciesId": 1}
    constants["PaymentDate"] = "2026-01-01T00:00:00Z"
    shape |= {"first_line": 1, "constants": {**SHAPE["constants"], **constants}}
    profile = read_profile(
        {**shape, "unknown_columns": "ignore", "encoding": encoding}
        | ({"position_unit": unit} if unit else {})
    )
    content = open_content(path, profile.encoding)
    header = read_header(content, None, profile, Limits())
    for size in (5, 64, 10_000):
        chunks = [*read_chunks(content, header, first_place(header), size)]
        found = [[cell or "" for cell in row] for one in chunks for row in one.cells(5).iter_rows()]
        assert found == wanted, f"seed {seed}"


def _size(text: str, encoding: str | None) -> int:
    return len(text.encode(encoding) if encoding else text)


def _fitting(signs: list[str], wide: int, encoding: str | None) -> str:
    while _size("".join(signs), encoding) > wide:
        signs.pop()
    return "".join(signs).strip()


BYTES: dict[str, Any] = {
    **SHAPE,
    "encoding": "cp932",
    "position_unit": "bytes",
    "positions": {"No.": "1-4", "Day": "5-12", "Name": "13-22", "Amount": "23-30", "Sort": "31"},
    "unknown_columns": "ignore",
}


@pytest.mark.parametrize(
    ("cells", "told"),
    [
        ("TANAKA    00012.50", []),
        ("山田太郎  00012.50", []),
        ("ﾀﾅｶ 山    00012.50", []),
        ("TANAKA 太 山012.50", ["Number"]),
        ("山田太郎 子0012.50", ["Encoding"]),  # A character is half of one cell, half of the next.
    ],
)
def test_an_amount_behind_wide_characters_is_where_its_bytes_are(
    workspace: Workspace, rows: Any, tmp_path: Path, cells: str, told: list[str]
) -> None:
    """By characters it would begin too far to the right: 12.50 became 2.50 and more."""
    path = tmp_path / "list.txt"
    line = f"000120261101{cells}E" + " " * 20
    path.write_bytes(f"{TOP}\r\n{line}\r\nTRAILER 000000001\r\n".encode("cp932"))
    profile = read_profile(BYTES)
    (verdict,) = examine(workspace.settings, [str(path)], profile)
    assert sorted({e["ErrorCode"] for one in verdict.rejects for e in one.errors}) == told
    import_delivery(workspace, [str(path)], profile)
    found = rows('SELECT "PaidAmount"::text FROM payment')
    assert found == ([] if told else [("12.50",)])


def test_a_workbook_is_no_such_list(tmp_path: Path) -> None:
    book, path = Workbook(), tmp_path / "a.xlsx"
    book.active.append(["0001   12.5020261101E"])
    book.save(path)
    with pytest.raises(ExtractRefused, match="a workbook has cells"):
        read_header(open_content(path), None, PROFILE, Limits())


MEANT_TWICE = [
    ({"delimiter": ";"}, "delimiter is not for lines without a sign between their cells"),
    ({"header_line": 3}, "header_line is not for lines"),
    ({"record": None}, "positions are of a record"),
    ({"positions": {"No.": "1-4", "Amount": "4-12"}}, "No. and Amount overlap"),
    ({"positions": {"No.": "4-1"}}, "'4-1' ends before it begins"),
    ({"positions": {"No.": "0-4"}}, "'0-4' is no range"),
    ({"positions": {"No.": 4}}, "not a text in quotes"),
    ({"positions": {"No.": "1", "no. ": "2"}}, "names a column twice"),
    ({"positions": {"No.": "1-4"}}, "positions: required columns are missing: Amount, Day, Sort"),
    ({"columns": {"Amount": "PaidAmount", "Day": "PaymentDate", "Nope": "Id"}}, "missing: Nope"),
    ({"leave_out": {"Nope": ["1"]}}, "positions: required columns are missing: Nope"),
    ({"positions": {}}, "first_line is for files without a header"),
    ({"keep": "reference"}, "not for lines with positions"),
    (
        {"encoding": "cp932"},
        "position_unit has to say what positions count: in cp932 a character has one byte or more",
    ),
    (
        {"encoding": "utf-16", "position_unit": "bytes"},
        "position_unit cannot count bytes of utf-16",
    ),
    ({"position_unit": "cells"}, "position_unit names 'cells', not an allowed value"),
    (
        {"unpivot": {"keep": ["No."], "name": "a", "value": "b"}, "footer": []},
        "unpivot is not for lines with positions",
    ),
]


@pytest.mark.parametrize(("keys", "said"), MEANT_TWICE)
def test_positions_that_cannot_be_meant(keys: dict[str, Any], said: str) -> None:
    shape = {name: one for name, one in {**SHAPE, **keys}.items() if one is not None}
    with pytest.raises(ProfileError) as caught:
        read_profile(shape)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("keys", "text", "said"),
    [
        ({}, TOP, "no line at its end fits"),
        ({"first_line": 9, "footer": []}, f"{TOP}\n{GOOD}\n", "The file has fewer lines"),
        ({"stated": "currency_rate"}, f"{TOP}\n{GOOD}\n", "the record is currency_rate"),
    ],
)
def test_a_file_that_is_no_such_list_is_refused(
    tmp_path: Path, keys: dict[str, Any], text: str, said: str
) -> None:
    path = tmp_path / "list.txt"
    path.write_text(text)
    stated = EXTRACTS.get(str(keys.pop("stated", "")))
    profile = read_profile({**SHAPE, **keys})
    with pytest.raises(ExtractRefused) as caught:
        read_header(open_content(path), stated, profile, Limits())
    assert said in str(caught.value)
