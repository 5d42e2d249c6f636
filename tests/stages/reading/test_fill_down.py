"""Values that only the first record of a group has: `fill_down` gives them to the others."""

import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import xlsxwriter

from connectors.errors import ProfileError
from connectors.files.chunks.cells import split_cells
from connectors.files.chunks.reader import first_place, read_chunks
from connectors.files.layout.header import read_header
from connectors.files.profiles.profile import DEFAULT
from connectors.files.profiles.profile_file import read_profile
from connectors.files.text.content import open_content
from connectors.postgres.batches.ledger import State
from connectors.settings import Limits
from flows.stages.examining.examine import examine
from flows.stages.held import would_be_held
from flows.stages.rows.locate import Spot, locate
from flows.stages.rows.made_of import made_fields
from flows.stages.rows.rejects import write_rejects
from flows.stages.sequence import import_delivery
from flows.stages.workspace import Workspace
from tests.examples import seeds
from tests.stages.reading.test_carried_columns import CONSTANTS, TEXTS

JOURNAL = """Entry;Day;Debt;Amount;Line
;;;0.50;0
J1;01.11.2026;2;1.50;1
;;;2.50;2
;;3;3.50;3
;;;4.50;4
J2;02.11.2026;;5.50;5
;;;6.50;6
J3;;5;7.50;7
Total J3;;;24.00;8
;;;8.50;9
J4;03.11.2026;4;9.50;10
J4;;;10.50;11
"broken;;
;;;11.50;12
"""
SHAPE: dict[str, Any] = {
    "feed": "journal",
    "record": "payment",
    "delimiter": ";",
    "date_format": "%d.%m.%Y",
    "offset": "Z",
    "unknown_columns": "ignore",
    "fill_down": {
        "group": "Entry",
        "end": ["Total .*"],
        "columns": {"Day": "Day of entry", "Debt": "Debt of entry"},
    },
    "leave_out": {"Entry": ["Total J3"]},
    "columns": {
        "Line": "Id",
        "Amount": "PaidAmount",
        "Day of entry": "PaymentDate",
        "Debt of entry": "DebtsId",
    },
    "constants": {name: of for name, of in CONSTANTS.items() if name != "PaymentDate"},
}
PROFILE = read_profile(SHAPE)


def journal(folder: Path) -> str:
    path = folder / "journal.csv"
    path.write_text(JOURNAL)
    return str(path)


def test_a_record_has_what_the_first_one_of_its_group_has_and_no_other(
    workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    path = journal(tmp_path)
    (verdict,) = examine(workspace.settings, [path], PROFILE)
    wrong: dict[int, set[str]] = {}
    for one in verdict.rejects:
        wrong[one.line] = {error["FieldName"] for error in one.errors}
    assert wrong == {
        2: {"PaymentDate", "DebtsId"},  # above the first group
        7: {"DebtsId"},  # of a group that has none: not that of the group before
        8: {"DebtsId"},
        9: {"PaymentDate"},
        11: {"PaymentDate", "DebtsId"},  # behind the end of a group
        14: {""},  # what cannot be divided may begin one
        15: {"PaymentDate", "DebtsId"},
    }
    assert (verdict.rows_in, verdict.excluded) == (14, 1)
    # A row in error begins no group that nobody knows of: its cells are read, or none go on.
    assert would_be_held([verdict], PROFILE) is None
    batch = import_delivery(workspace, [path], PROFILE).batch
    assert batch.state is State.COMPLETE_WITH_ERRORS
    assert rows('SELECT "Id", "DebtsId", "PaymentDate"::date::text FROM payment ORDER BY 1') == [
        (1, 2, "2026-11-01"),
        (2, 2, "2026-11-01"),
        (3, 3, "2026-11-01"),
        (4, 3, "2026-11-01"),
        (10, 4, "2026-11-03"),
        (11, 4, "2026-11-03"),
    ]
    with workspace.database.connect() as connection:
        said = {}
        for line in (3, 4, 6, 13):
            (row,) = locate(workspace, connection, batch.id, "journal.csv", Spot(line=line))
            made = {one.field: one for one in made_fields(workspace, connection, row, row.data)}
            said[line] = (made["PaymentDate"].comes_from, made["DebtsId"].comes_from)
            assert row.data.startswith(JOURNAL.splitlines()[line - 1] + ";")
    assert said == {
        3: ("Day of entry", "Debt of entry"),
        4: ("Day of entry of line 3", "Debt of entry of line 3"),
        6: ("Day of entry of line 3", "Debt of entry of line 5"),
        13: ("Day of entry of line 12", "Debt of entry of line 12"),
    }


@pytest.mark.parametrize("stated", [DEFAULT, PROFILE], ids=["inherited", "stated"])
def test_a_row_is_corrected_by_itself(
    workspace: Workspace, rows: Any, tmp_path: Path, stated: Any
) -> None:
    batch = import_delivery(workspace, [journal(tmp_path)], PROFILE).batch
    (rejects,) = write_rejects(workspace, batch.id, tmp_path / "out", with_secrets=False)
    top, first, *_ = rejects.read_text().splitlines()
    assert top == "ReconRow;Entry;Day;Debt;Amount;Line;Day of entry;Debt of entry"
    assert first.split(";", 1)[1] == ";;;0.50;0;;"
    rejects.write_text(f"{top}\n{first[:-1]}01.11.2026;9\n")
    assert import_delivery(
        workspace, [str(rejects)], stated, corrects=batch.id
    ).batch.state is State.COMPLETE  # fmt: skip
    assert rows('SELECT "DebtsId" FROM payment WHERE "Id" = 0') == [(9,)]


def test_the_rows_of_a_sheet_are_filled_too(still: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "journal.xlsx"
    book = xlsxwriter.Workbook(str(path))
    sheet = book.add_worksheet("Data")
    lines = [line for line in JOURNAL.splitlines() if '"' not in line]
    for at, text in enumerate(lines):
        sheet.write_row(at, 0, text.split(";"))
    book.close()
    shape = {key: of for key, of in SHAPE.items() if key != "delimiter"}
    (verdict,) = examine(still.settings, [str(path)], read_profile(shape))
    assert [one.line for one in verdict.rejects] == [2, 7, 8, 9, 11]


@dataclass
class Told:
    """Lines that were drawn, and what each record is to have by a simple model."""

    text: list[str] = field(default_factory=list)
    rows: list[tuple[int, list[str | None]]] = field(default_factory=list)


FORMS: list[dict[str, Any]] = [
    *TEXTS,
    {"positions": {"G": "1-3", "A": "5-7", "B": "9-11"}, "short_lines": "filled"},
]
WORDS = ["", "", "", "a", "b", "  ", "x y", "가"]


def drawn(chance: random.Random, form: dict[str, Any]) -> Told:
    told, line, group = Told(), 1, ""
    held: list[str | None] = [None, None]
    heading: str | None = None
    words = [one for one in WORDS if form.get("encoding") != "cp1252" or one.isascii()]
    fixed, quoted = "positions" in form, "positions" not in form and "quote" not in form
    for _ in range(chance.randrange(40)):
        kind = chance.choice(["row", "row", "row", "row", "broken", "end", "K", "#", "quoted"])
        if kind == "K":
            heading = chance.choice(["k", "l", ""]) or None
            text = f"K={heading or ''}"
        elif kind == "#":
            text = "# J9;a;b"
        elif kind == "broken":
            text, group, held = "J9;a;b;c;d;e;f", "", [None, None]
            told.rows.append((line, []))
        else:
            name = chance.choice(["J1", "J2", "", "", "", " "]) if kind != "end" else "End"
            cells = [chance.choice(words) for _ in range(2)]
            shown = [*cells]
            if kind == "quoted" and quoted:
                cells[0] = 'two\nlines;and "a'
                shown[0] = '"two\nlines;and ""a"'
            if fixed:
                text = "".join(one.ljust(4) for one in (name, *cells))
            else:
                text = ";".join((name, *shown))
            own = [one if one.strip() else None for one in cells]
            if fixed or form.get("blanks") == "dropped":
                own = [one and one.strip() for one in own]
            if kind == "end":
                group, held = "", [None, None]
            elif name.strip() and name.strip() != group:
                group, held = name.strip(), [None, None]
            has = [mine or above for mine, above in zip(own, held, strict=True)]
            if group:
                held = has
            told.rows.append((line, [heading, *has]))
        told.text.append(text)
        line += 1 + text.count("\n")
    return told


@pytest.mark.long(but=("1-quote", "1-positions-short_lines", "2-blanks", "1-escape"))
@pytest.mark.parametrize("form", FORMS, ids=lambda form: "-".join(form) or "plain")
@pytest.mark.parametrize("seed", seeds(2, 200))
def test_the_cells_are_those_of_a_simple_model_wherever_it_is_cut(
    tmp_path: Path, seed: int, form: dict[str, Any]
) -> None:
    chance = random.Random(f"{seed} {form}")
    told = drawn(chance, form)
    path, encoding = tmp_path / "list.txt", form.get("encoding", "utf-8")
    path.write_bytes("".join(f"{one}\n" for one in told.text).encode(encoding))
    names = {} if "positions" in form else {"delimiter": ";", "names": ["G", "A", "B"]}
    unit = {"position_unit": "characters"} if "positions" in form and encoding != "utf-8" else {}
    profile = read_profile(
        {
            "feed": "list",
            "record": "payment",
            "comment": "#",
            "skip_lines": ["K=(?P<K>.*)"],
            "fill_down": {"group": "G", "end": ["End"], "columns": {"A": "A of", "B": "B of"}},
            "unknown_columns": "ignore",
            "columns": {"G": "Id"},
            "constants": {**CONSTANTS, "DebtsId": 1, "PaidAmount": "1"},
            **names,
            **unit,
            **form,
        }
    )
    content = open_content(path, encoding)
    header = read_header(content, None, profile, Limits())
    wanted = [cells for _, cells in told.rows if cells]
    for size in (1, 2, 3, 7, 40, 10_000):
        chunks = [*read_chunks(content, header, first_place(header), size)]
        assert all(chunk.conserved() for chunk in chunks)
        found = [row for chunk in chunks for row in chunk.positions().rows(named=True)]
        assert [one["first_line"] for one in found] == [line for line, _ in told.rows]
        for one, (_, cells) in zip(found, told.rows, strict=True):
            split = split_cells(one["data"], header)
            assert bool(split) == bool(cells)
            if cells:
                assert [cell or None for cell in split[-3:]] == cells
        read = [list(row[-3:]) for chunk in chunks for row in chunk.cells(header.width).rows()]
        assert read == wanted
        for at in chance.sample(range(len(chunks)), min(2, len(chunks))):
            again = [*read_chunks(content, header, chunks[at].start, size)]
            assert [one.positions().rows() for one in again] == [
                one.positions().rows() for one in chunks[at:]
            ]


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"columns": {"Day": "D"}}, "fill_down.group is missing"),
        ({"group": "Entry"}, "fill_down.columns is missing"),
        ({"group": "Entry", "columns": {"Day": "D", "Debt": "d"}}, "fill_down.columns = .* once"),
        (
            {"group": "Entry", "columns": {"Day": " day"}},
            "columns.Day = 'day' .* a name of its own",
        ),
        ({"group": "Entry", "columns": {"Day": "D"}, "end": ["("]}, "fill_down.end: '.*' is no"),
        ({"group": "Entry", "columns": {"Day": "D"}, "more": 1}, "fill_down.more"),
    ],
)
def test_what_cannot_be_meant_is_refused(keys: dict[str, Any], said: str) -> None:
    with pytest.raises(ProfileError, match=said):
        read_profile({**SHAPE, "columns": {}, "fill_down": keys})


def test_a_file_without_such_a_column_is_refused(still: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "journal.csv"
    path.write_text(JOURNAL.replace("Entry;", "No;", 1))
    (verdict,) = examine(still.settings, [str(path)], read_profile({**SHAPE, "leave_out": {}}))
    assert verdict.refused == "missing_column"
    assert "Entry" in (verdict.message or "")
    path.write_text(JOURNAL.replace("Line", "Day of entry", 1))
    (verdict,) = examine(still.settings, [str(path)], read_profile({**SHAPE, "leave_out": {}}))
    assert verdict.refused in ("duplicate_column", "missing_column")


def test_what_nobody_sees_begins_no_group_and_is_no_value(still: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "journal.csv"
    path.write_text(
        "Entry;Day;Debt;Amount;Line\n"
        "J1;01.11.2026;2;1.50;1\n"
        "\u200b;\u00a0;\ufeff;2.50;2\n"
        "J1\u00a0;;\u200b;3.50;3\n"
        "\ufeffTotal\u00a0J1;;;7.50;4\n"
        ";;;4.50;5\n"
    )
    (verdict,) = examine(still.settings, [str(path)], read_profile({**SHAPE, "leave_out": {}}))
    assert [one.line for one in verdict.rejects] == [5, 6]  # behind the end of the group
