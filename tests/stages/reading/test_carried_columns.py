"""Values that stand in a line above records: a column of all of them, up to the next such line."""

import random
import tracemalloc
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from connectors.errors import ExtractRefused, ProfileError
from connectors.files.chunks.cells import split_cells
from connectors.files.chunks.reader import first_place, read_chunks
from connectors.files.layout.header import read_header
from connectors.files.profiles.profile_file import load_profile, read_profile
from connectors.files.text.content import open_content
from connectors.postgres.batches.ledger import State
from connectors.settings import Limits, Settings
from flows.stages.examining.examine import examine
from flows.stages.held import would_be_held
from flows.stages.rows.locate import Spot, locate
from flows.stages.rows.made_of import made_fields
from flows.stages.rows.rejects import write_rejects
from flows.stages.sequence import import_delivery, release_batch
from flows.stages.workspace import Workspace
from tests.examples import seeds
from tests.recon import run
from tests.scale.workers import import_in_partitions

CONSTANTS = {
    **dict.fromkeys(("TenantsId", "ActionsId", "CurrenciesId"), 7),
    "CurrencyRatesId": 9,
    "DiscountAmount": "0",
    "PaymentDate": "2026-01-01T00:00:00Z",
}
STATEMENT = """Kontoauszug 11/2026;;
Konto;DE02;
Zahlung;Betrag;Text
1;1.50;one
2;2,50;two
Konto;DE03;
3;3.50;"three
Konto;DE09;
"
4;4.50
Konto;;
5;5.50;five
Konto;"DE04";
6;6.50;six
"""
SHAPE: dict[str, Any] = {
    "feed": "statement",
    "record": "payment",
    "delimiter": ";",
    "header_line": "found",
    "unknown_columns": "ignore",
    "skip_lines": ['Konto;"?(?P<Account>[^;"]*)"?;'],
    "columns": {"Zahlung": "Id", "Betrag": "PaidAmount"},
    "fields": {
        "DebtsId": {"from": ["Account"], "map": {"DE02": 2, "DE03": 3, "DE04": 4, "DE05": 5}}
    },
    "constants": CONSTANTS,
    "budget": {"errors": 9},
}
PROFILE = read_profile(SHAPE)
UNDECIDED = replace(PROFILE, budget_errors=None)
"""Says nothing of how many rows may have errors."""
DEBTS = 'SELECT "Id", "DebtsId", "PaidAmount"::text FROM payment ORDER BY 1'


@pytest.mark.long
def test_records_have_what_the_line_above_them_says(
    workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    path = tmp_path / "statement.csv"
    path.write_text(STATEMENT)
    batch = import_delivery(workspace, [str(path)], PROFILE).batch
    assert batch.state is State.COMPLETE_WITH_ERRORS
    assert rows(DEBTS) == [(1, 2, "1.50"), (3, 3, "3.50"), (6, 4, "6.50")]
    with workspace.database.connect() as connection:
        (row,) = locate(workspace, connection, batch.id, path.name, Spot(line=8))
        assert row.data == '3;3.50;"three\nKonto;DE09;\n";DE03'
        whole = STATEMENT.encode()[row.byte_start : row.byte_end].decode()
        assert row.data == f"{whole};DE03"
        made = {one.field: one for one in made_fields(workspace, connection, row, row.data)}
        assert made["DebtsId"][1:] == ("Account of line 6", "DE03", "3")


@pytest.mark.long
def test_a_row_is_corrected_by_itself(workspace: Workspace, rows: Any, tmp_path: Path) -> None:
    path = tmp_path / "statement.csv"
    path.write_text(STATEMENT)
    batch = import_delivery(workspace, [str(path)], UNDECIDED).batch
    assert batch.state is State.HELD
    release_batch(workspace, batch.id, by="A", reason="3 records, and no heading")
    (rejects,) = write_rejects(workspace, batch.id, tmp_path / "out", with_secrets=False)
    top, two, four, five = rejects.read_text().splitlines()
    assert top == "ReconRow;Zahlung;Betrag;Text;Account"
    assert [one.split(";", 1)[1] for one in (two, four, five)] == [
        "2;2,50;two;DE02",
        "4;4.50;DE03",
        "5;5.50;five;",
    ]
    again = import_delivery(workspace, [str(rejects)], UNDECIDED, corrects=batch.id).batch
    assert again.state is State.COMPLETE_WITH_ERRORS
    right = [two.replace("2,50", "2.50"), four.replace(";DE", ";;DE"), f"{five}DE05"]
    rejects.write_text("".join(f"{one}\n" for one in (top, *right)))
    assert import_delivery(workspace, [str(rejects)], UNDECIDED, corrects=batch.id).batch.state is (
        State.COMPLETE
    )
    found = {number: debt for number, debt, _ in rows(DEBTS)}
    assert found == {1: 2, 2: 2, 3: 3, 4: 3, 5: 5, 6: 4}


def test_a_heading_that_no_pattern_fits_lets_nothing_below_it_pass(
    still: Workspace, tmp_path: Path
) -> None:
    """Nobody knows whose the rows below it are: not those of the heading before."""
    path = tmp_path / "statement.csv"
    path.write_text("Konto;DE02;\nZahlung;Betrag;Text\n1;1.50;one\nKonto DE03;;\n2;2.50;two\n")
    verdicts = examine(still.settings, [str(path)], UNDECIDED)
    assert "1 of 3 rows has errors, and such a row may be a heading" in str(
        would_be_held(verdicts, UNDECIDED)
    )
    assert would_be_held(verdicts, PROFILE) is None
    booked = replace(UNDECIDED, keep_only={"Text": ("one", "two")})
    verdicts = examine(still.settings, [str(path)], booked)
    assert "1 of 3 rows is left out by an empty cell" in str(would_be_held(verdicts, booked))
    assert [len(one.rejects) for one in verdicts] == [0]
    said = replace(booked, leave_out={"Text": ("",)})
    assert would_be_held(examine(still.settings, [str(path)], said), said) is None
    path.write_text("Konto;DE02;\nZahlung;Betrag;Text\n1;1.50;one\nKonto;DE03;\n2;2.50;two\n")
    assert would_be_held(examine(still.settings, [str(path)], UNDECIDED), UNDECIDED) is None


def test_rows_are_left_out_by_it_and_a_field_may_be_called_like_it(
    still: Workspace, tmp_path: Path
) -> None:
    path = tmp_path / "statement.csv"
    path.write_text("DebtsId 2\nId;PaidAmount\n1;1\nDebtsId 3\n2;1\nDebtsId x\n3;1\n")
    profile = read_profile(
        {
            **{key: SHAPE[key] for key in ("feed", "record", "delimiter", "constants")},
            "header_line": 2,
            "skip_lines": ["DebtsId (?P<DebtsId>.*)"],
            "leave_out": {"debtsid": ["3"]},
        }
    )
    (verdict,) = examine(still.settings, [str(path)], profile)
    assert (verdict.rows_in, verdict.excluded, verdict.comments.lines) == (3, 1, 2)
    assert [(one.line, one.errors[0]["FieldName"]) for one in verdict.rejects] == [(7, "DebtsId")]


@dataclass
class Told:
    """What a file of drawn lines is: its text, and of each record what is to be read."""

    text: list[str] = field(default_factory=list)
    rows: list[tuple[int, int, str, str | None, str | None]] = field(default_factory=list)
    """First line, byte at which it begins, its own text, and what the two columns hold."""
    skipped: int = 0


TEXTS: list[dict[str, Any]] = [
    {},
    {"encoding": "cp1252"},
    {"encoding": "euc-kr"},
    {"blanks": "dropped"},
    {"escape": "\\"},
    {"quote": "none"},
]
"""How a text is written that has signs between its cells."""
FORMS: list[dict[str, Any]] = [
    *TEXTS,
    {"positions": {"No.": "1-3", "Text": "5-7"}, "short_lines": "filled"},
]
SKIPPED = [r"K=(?P<A>.*)", r"G( (?P<B>[^;]*)(;(?P<A>.*))?)?", "-+"]
ACCOUNTS = ["DE1", "", "a;b", "  x ", 'q"r', "가", "back\\slash"]
RECORDS = ["123;abc", "  1; x ", "12;가"]


def drawn(chance: random.Random, form: dict[str, Any]) -> Told:
    """Lines of all kinds, and a simple model of what stands above each."""
    told, line, size = Told(), 1, 0
    above: dict[str, str | None] = {"A": None, "B": None}
    encoding = form.get("encoding", "utf-8")
    accounts = [one for one in ACCOUNTS if encoding != "cp1252" or one.isascii()]
    records = [one for one in RECORDS if encoding != "cp1252" or one.isascii()]
    quoted = "positions" not in form and "quote" not in form
    for _ in range(chance.randrange(30)):
        kind = chance.choice(["row", "row", "broken", "quoted", "K", "G", "G;", "rule", "#", ""])
        text = {"rule": "---", "#": "# K=no", "": ""}.get(kind, kind)
        if kind == "K":
            above["A"] = chance.choice(accounts)
            text = f"K={above['A']}"
        elif kind == "G":
            above |= {"A": None, "B": chance.choice([None, "b", "c d"])}
            text = "G" if above["B"] is None else f"G {above['B']}"
        elif kind == "G;":
            above |= {"A": chance.choice(accounts), "B": "g"}
            text = f"G g;{above['A']}"
        elif kind in ("row", "quoted", "broken"):
            text = chance.choice(records)
            if kind == "quoted" and quoted:
                text = '7;"x\nK=no\n-"'
            elif kind == "broken":
                text = "12;abc;def;ghi"
            cells = (above[name] or None for name in ("A", "B"))
            told.rows.append((line, size, text, *cells))
        told.skipped += kind in ("K", "G", "G;", "rule", "#")
        told.text.append(text)
        line += 1 + text.count("\n")
        size += len(f"{text}\n".encode(encoding))
    return told


@pytest.mark.long(
    but=(
        "1-quote",
        "1-positions-short_lines",
        "2-blanks",
    )
)
@pytest.mark.parametrize("form", FORMS, ids=lambda form: "-".join(form) or "plain")
@pytest.mark.parametrize("seed", seeds(2, 200))
def test_the_cells_are_those_of_a_simple_model_wherever_it_is_cut(
    tmp_path: Path, seed: int, form: dict[str, Any]
) -> None:
    chance = random.Random(f"{seed} {form}")
    told = drawn(chance, form)
    path = tmp_path / "list.txt"
    encoding = form.get("encoding", "utf-8")
    path.write_bytes("".join(f"{one}\n" for one in told.text).encode(encoding))
    names = {} if "positions" in form else {"delimiter": ";", "names": ["No.", "Text"]}
    profile = read_profile(
        {
            "feed": "list",
            "record": "payment",
            "comment": "#",
            "skip_lines": SKIPPED,
            "unknown_columns": "ignore",
            "columns": {"No.": "Id"},
            "constants": {**CONSTANTS, "DebtsId": 1, "PaidAmount": "1"},
            **names,
            **form,
        }
    )
    content = open_content(path, encoding)
    header = read_header(content, None, profile, Limits())
    for size in (1, 2, 3, 7, 40, 10_000):
        chunks = [*read_chunks(content, header, first_place(header), size)]
        assert all(chunk.conserved() for chunk in chunks)
        assert sum(chunk.comments.lines for chunk in chunks) == (told.skipped if chunks else 0)
        found = [row for chunk in chunks for row in chunk.positions().rows(named=True)]
        assert [(one["first_line"], one["byte_start"]) for one in found] == [
            one[:2] for one in told.rows
        ]
        ends = [at + len(text.encode(encoding)) for _, at, text, _, _ in told.rows]
        assert [one["byte_end"] for one in found] == ends
        sound = []
        for one, (_, _, text, *cells) in zip(found, told.rows, strict=True):
            assert one["data"].startswith(text)
            split = split_cells(one["data"], header)
            assert bool(split) == (text.count(";") != 3), text
            if split:
                assert [cell or None for cell in split[-2:]] == cells
                sound.append(cells)
        read = [list(row[-2:]) for chunk in chunks for row in chunk.cells(header.width).rows()]
        assert read == sound
        with_records = [at for at, chunk in enumerate(chunks) if chunk.height]
        for at in chance.sample(with_records, min(2, len(with_records))):
            chunk = chunks[at]
            for place, rest in ((chunk.start, chunks[at:]), (chunk.end, chunks[at + 1 :])):
                again = [*read_chunks(content, header, place, size)]
                assert [(one.start, one.end) for one in again] == [
                    (one.start, one.end) for one in rest
                ]
                assert [one.positions().rows() for one in again] == [
                    one.positions().rows() for one in rest
                ]


def test_what_stands_between_two_records_costs_its_own_bytes_and_no_more(tmp_path: Path) -> None:
    path = tmp_path / "statement.csv"
    between = "#\n" * 20_000
    records = "".join(f"{number};1;\n" for number in range(2, 5_000))
    path.write_text(f"Zahlung;Betrag;Text\nKonto;DE02;\n1;1;a\n{between}{records}")
    content = open_content(path)
    header = read_header(content, None, replace(PROFILE, comment=("#",)), Limits())
    tracemalloc.start()
    try:
        (chunk,) = read_chunks(content, header, first_place(header), Limits().block_bytes)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert {cells[-1] for cells in chunk.cells(header.width).rows()} == {"DE02"}
    assert (chunk.height, chunk.comments.lines) == (4_999, 20_001)
    assert peak < 100 * path.stat().st_size


@pytest.mark.long
@pytest.mark.parametrize("table", [False, True], ids=["carried", "unpivoted"])
def test_a_quote_that_closes_blocks_later_moves_no_cut_of_what_it_does_not_hold(
    tmp_path: Path, table: bool
) -> None:
    """Its record fails: others begin in blocks that were held for it, and a run may go on there."""
    unpivot = {"keep": ["Zahlung"], "name": "Text", "value": "Betrag"}
    keys = ("feed", "record", "unknown_columns")
    told = {name: SHAPE[name] for name in keys} | {
        "columns": {"Zahlung": "Id"},
        "constants": CONSTANTS | {"DebtsId": 1},
        "unpivot": unpivot,
        "fields": {"PaidAmount": {"from": ["Betrag"]}},
    }
    profile = read_profile(told | {"delimiter": ";"}) if table else PROFILE
    path, rows = tmp_path / "statement.csv", list[str]()
    for number in range(1, 500):
        rows.append(f"{number};1.50;2.50\n")
        rows += [f'{number};"open\n'] * (number % 220 == 20)
        rows += ['close"\n'] * (number % 220 == 200)
    path.write_text("Zahlung;Betrag;Text\n" + "Konto;DE02;\n" * (not table) + "".join(rows))
    content = open_content(path)
    header = read_header(content, None, profile, Limits())
    chunks = [*read_chunks(content, header, first_place(header), 512)]
    places = [(chunk.start, chunk.end) for chunk in chunks]
    for at, (start, _) in enumerate(places):
        again = [(one.start, one.end) for one in read_chunks(content, header, start, 512)]
        assert again == places[at:]


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (b"\x81", "Encoding"),
        (b"DE\x00", "NulCharacter"),
        (b"x" * 41, "FieldTooLarge"),
    ],
)
def test_a_value_that_could_be_in_no_record_is_in_none(
    tmp_path: Path, value: bytes, code: str
) -> None:
    path = tmp_path / "statement.csv"
    path.write_bytes(b"Zahlung;Betrag;Text\nKonto;%s;\n1;1;a\n2;1;\nKonto;DE02;\n3;1;\n" % value)
    content = open_content(path)
    limits = Limits(field_bytes=40)
    header = read_header(content, None, PROFILE, limits)
    chunks = read_chunks(content, header, first_place(header), 1000)
    assert [one for chunk in chunks for one in chunk.codes] == [code, code, None]


def test_half_a_quoted_cell_of_a_line_above_is_in_no_record(tmp_path: Path) -> None:
    path = tmp_path / "statement.csv"
    path.write_text('Zahlung;Betrag;Text\nKonto;"DE;02";\n1;1;a\nKonto;DE"02;\n2;1;\n')
    profile = replace(PROFILE, skip_lines=("Konto;(?P<Account>[^;]*);.*",))
    content = open_content(path)
    header = read_header(content, None, profile, Limits())
    chunks = read_chunks(content, header, first_place(header), 1000)
    assert [one for chunk in chunks for one in chunk.codes] == ["StrayQuote", None]


@pytest.mark.parametrize("keys", [{"delimiter": ";"}, {"positions": {"Zahlung": "1-1"}}])
def test_a_row_says_that_its_fault_is_in_a_line_above(
    still: Workspace, tmp_path: Path, keys: dict[str, object]
) -> None:
    path = tmp_path / "statement.csv"
    path.write_bytes(b"Zahlung\nKonto 2\x81\n1\n\x81\nKonto 3\n3\n")
    fixed = {"names": ["Zahlung"]} if "delimiter" in keys else {}
    profile = read_profile(
        {
            **keys,
            **fixed,
            "feed": "x",
            "record": "payment",
            "first_line": 2,
            "skip_lines": ["Konto (?P<DebtsId>.*)"],
            "columns": {"Zahlung": "Id"},
            "constants": {"TenantsId": 7, "ActionsId": 1, "CurrencyRatesId": 9, "CurrenciesId": 978}
            | {"PaidAmount": "1.00", "DiscountAmount": "0.00", "PaymentDate": "2026-11-01T00:00Z"},
        }
    )
    (verdict,) = examine(still.settings, [str(path)], profile)
    said = {one.line: one.errors[0]["Message"] for one in verdict.rejects}
    ends = "It is in what a line above says of the records below it (skip_lines)."
    # What is wrong with the line itself is the first to mend.
    assert [(line, text.endswith(ends)) for line, text in said.items()] == [(3, True), (4, False)]


def test_a_record_that_fails_does_not_take_in_the_line_above_others(
    still: Workspace, tmp_path: Path
) -> None:
    path = tmp_path / "statement.csv"
    path.write_text('Zahlung;Betrag;Text\nKonto;DE02;\n1;1;"a\nKonto;DE03;\n2;1;b\n')
    (verdict,) = examine(still.settings, [str(path)], PROFILE)
    assert [(one.line, one.errors[0]["ErrorCode"]) for one in verdict.rejects] == [
        (3, "UnterminatedQuote")
    ]
    content = open_content(path)
    header = read_header(content, None, PROFILE, Limits())
    (chunk,) = read_chunks(content, header, first_place(header), 1000)
    assert chunk.cells(header.width).rows() == [("2", "1", "b", "DE03")]


def test_the_fields_of_its_line_are_counted_alone(still: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "statement.csv"
    path.write_text("Zahlung;Betrag;Text\nKonto;DE02;\n1;1\n2;1;b;c\n3;1;d\n")
    (verdict,) = examine(still.settings, [str(path)], PROFILE)
    few, many = (one.errors[0]["Message"] for one in verdict.rejects)
    assert few.endswith("It has 2 fields instead of 3.")
    assert many.endswith("It has 4 fields instead of 3.")


def test_an_escape_at_the_end_of_a_line_takes_no_field_from_it(tmp_path: Path) -> None:
    path = tmp_path / "statement.csv"
    path.write_text("Zahlung;Betrag;Text\nKonto;DE02;\n1;1\\\n2;1;C:\\Users;c\n3;1;d\n")
    profile = replace(PROFILE, escape="\\")
    (verdict,) = examine(Settings(tmp_path / "home"), [str(path)], profile)
    few, many = (one.errors[0]["Message"] for one in verdict.rejects)
    assert few.endswith("It has 2 fields instead of 3.")
    assert many.endswith("It has 4 fields instead of 3.")


@pytest.mark.parametrize(
    ("column", "group", "twice"),
    [("account", "Account", "account"), ("debtsid", "DebtsId", "DebtsId")],
)
def test_a_column_of_a_file_may_not_be_called_like_it(
    tmp_path: Path, column: str, group: str, twice: str
) -> None:
    path = tmp_path / "statement.csv"
    path.write_text(f"Zahlung;Betrag;{column}\n1;1;a\n")
    fields = SHAPE["fields"] if group == "Account" else {}
    keys = {"skip_lines": [f"Konto (?P<{group}>.*)"], "header_line": 1, "fields": fields}
    said = (
        f"more than once: .*{twice}. The file has such a column, and .* of that name: {group}. Call"
    )
    with pytest.raises(ExtractRefused, match=said):
        read_header(open_content(path), None, read_profile({**SHAPE, **keys}), Limits())


@pytest.mark.parametrize("keys", [{}, {"record": "payment", "columns": {"Nr": "Id"}}])
def test_a_record_is_no_header_by_what_a_line_above_says(
    tmp_path: Path, keys: dict[str, object]
) -> None:
    path = tmp_path / "statement.csv"
    path.write_text("geheim;a;b\ngeheim;c;d\n")
    stated = {"feed": "x", "delimiter": ";", "skip_lines": ["Konto (?P<DebtsId>.*)"], **keys}
    with pytest.raises(ExtractRefused, match="None of the 3 columns is a field") as refusal:
        read_header(open_content(path), None, read_profile(stated), Limits())
    assert "geheim" not in str(refusal.value)


@pytest.mark.parametrize(
    ("group", "unknown", "said"),
    [
        # a group with a slip, and one that no field is made of
        ("Acount", "ignore", "missing: Account. .* there are Zahlung, Betrag, Text, Acount. Take"),
        (
            "Account>.)(?P<Other",
            "refuse",
            "Text, Other. .* Groups of skip_lines, and of fill_down, are columns: Other.",
        ),
    ],
)
def test_a_column_that_nothing_is_made_of_is_told_as_a_group(
    tmp_path: Path, group: str, unknown: str, said: str
) -> None:
    path = tmp_path / "statement.csv"
    path.write_text("Zahlung;Betrag;Text\n1;1;a\n")
    keys = {"skip_lines": [f"Konto (?P<{group}>.*)"], "header_line": 1, "unknown_columns": unknown}
    with pytest.raises(ExtractRefused, match=said):
        read_header(open_content(path), None, read_profile({**SHAPE, **keys}), Limits())


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"skip_lines": ["x(?P<reconrow>.)"]}, "group reconrow is called like another column"),
        ({"skip_lines": ["x(?P<A>.)", "y(?P<a>.)"]}, "group a is called like another column"),
        ({"keep": "reference"}, 'keep = "reference" has no place for it'),
        ({"delimiter": "||"}, "a delimiter of several signs has no place"),
        ({"unpivot": {"keep": ["D"], "name": "N", "value": "V"}}, "unpivot has no place"),
        (
            {"record": "payment", "delimiter": ",", "names": ["a", "Id"]},
            "group A is called like another column",
        ),
    ],
)
def test_a_profile_that_cannot_be_meant(keys: dict[str, object], said: str) -> None:
    with pytest.raises(ProfileError, match=said):
        read_profile({"feed": "x", "skip_lines": ["x(?P<A>.*)"], **keys})


def accounts(folder: Path) -> tuple[Path, Path, list[tuple[int, int]]]:
    """A long statement with its profile, and by payment the debt that its account says."""
    path, profile = folder / "statement.csv", folder / "profile.toml"
    text, wanted, debt = ["Zahlung;Betrag;Text"], [], 2
    for number in range(1, 401):
        if number % 37 == 1:
            debt = 2 + number % 3
            text.append(f"Konto;DE0{debt};")
        text.append(f"{number};1.50;")
        wanted.append((number, debt))
    path.write_text("".join(f"{one}\n" for one in text))
    constants = "".join(f'{name} = "{value}"\n' for name, value in CONSTANTS.items())
    profile.write_text(
        'feed = "statement"\nrecord = "payment"\ndelimiter = ";"\nunknown_columns = "ignore"\n'
        "skip_lines = ['Konto;(?P<Account>[^;]*);']\n"
        '[columns]\nZahlung = "Id"\nBetrag = "PaidAmount"\n'
        '[fields.DebtsId]\nfrom = ["Account"]\nmap = { DE02 = 2, DE03 = 3, DE04 = 4 }\n'
        f"[constants]\n{constants}"
    )
    return path, profile, wanted


@pytest.mark.long
def test_a_run_that_died_goes_on_with_what_was_said(
    workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    path, profile, wanted = accounts(tmp_path)
    url, home = str(workspace.settings.database_url), workspace.settings.home
    sizes = {"RECON_LIMIT_BLOCK_BYTES": "512", "RECON_LIMIT_STRICT_BYTES": "1"}
    given = {**sizes, "CRASH_AT": "chunk:2"}
    killed = run(url, home, "import", str(path), "--profile", str(profile), **given)
    assert killed.returncode == -9, killed.stderr
    again = run(url, home, "rerun", "1", **sizes)
    assert again.returncode == 0, again.stderr
    assert rows('SELECT "Id", "DebtsId" FROM payment ORDER BY 1') == wanted


@pytest.mark.long
def test_workers_find_what_was_said_before_their_part(
    workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    path, profile, wanted = accounts(tmp_path)
    limits = replace(workspace.settings.limits, block_bytes=512)
    here = replace(workspace, settings=replace(workspace.settings, limits=limits))
    import_in_partitions(here, [path], load_profile(profile))
    assert rows('SELECT "Id", "DebtsId" FROM payment ORDER BY 1') == wanted
