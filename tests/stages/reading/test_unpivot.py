"""A table with a column per currency: each line is several records, and each has its line."""

import csv
import io
import json
import random
from dataclasses import replace
from datetime import date
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from connectors.errors import BatchUnknown, EvidenceBroken, ExtractRefused, ProfileError
from connectors.files.chunks.reader import first_place, read_chunks
from connectors.files.layout.header import read_header
from connectors.files.profiles.profile import DEFAULT, Profile
from connectors.files.profiles.profile_file import read_profile
from connectors.files.text.content import open_content
from connectors.postgres.batches.ledger import State
from connectors.settings import MOST, Limits, Settings
from flows.report.text import render_text
from flows.stages.examining.examine import examine
from flows.stages.reconcile.behind_break import look_behind
from flows.stages.reconcile.rules import read_rules
from flows.stages.reconcile.run import Asked, reconcile
from flows.stages.reconcile.scope import Scope
from flows.stages.rows.locate import locate
from flows.stages.rows.made_of import made_fields
from flows.stages.rows.rejects import write_rejects
from flows.stages.rows.spots import Spot
from flows.stages.rows.writing import writing_of
from flows.stages.sequence import import_delivery
from flows.stages.workspace import Workspace
from flows.steps.validate import key_ids
from tests.examples import examples
from tests.governance.conftest import recon as recon  # noqa: PLC0414 -- the fixture.

CODES = {"USD": "840", "JPY": "392", "CYP": "196", "GBP": "826"}
SHAPE: dict[str, Any] = {
    "feed": "rates",
    "record": "currency_rate",
    "offset": "Z",
    "null": ["", "N/A"],
    "unknown_columns": "ignore",
    "unpivot": {"keep": ["Date"], "name": "Currency", "value": "Rate"},
    "columns": {"Date": "EffectiveDate", "Currency": "ToCurrenciesId", "Rate": "ExchangeRate"},
    "fields": {
        "ToCurrenciesId": {"map": CODES},
        "Id": {"key": ["EffectiveDate", "FromCurrenciesId", "ToCurrenciesId"]},
    },
    "constants": {"TenantsId": 7, "FromCurrenciesId": 978},
}
PROFILE = read_profile(SHAPE)
HISTORY = """Date,USD,JPY,CYP,
2014-08-25,1.32,137.13,N/A,
2014-08-24,N/A,N/A,N/A,
2014-08-22,1.3267,137.7,0.5843,
"""
DAILY = "Date, USD, JPY, \n26 August 2014, 1.3192, 137.10, \n"


def write(folder: Path, text: str, name: str = "rates.csv") -> str:
    path = folder / name
    path.write_text(text)
    return str(path)


def rates(rows: Any) -> list[tuple[str, int, str]]:
    found = rows(
        'SELECT "EffectiveDate"::date::text, "ToCurrenciesId", "ExchangeRate"::text '
        "FROM currency_rate ORDER BY 1, 2"
    )
    return [tuple(row) for row in found]


@pytest.mark.long
def test_a_daily_file_on_top_of_the_history_adds_its_day_alone(
    workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    history = import_delivery(workspace, [write(tmp_path, HISTORY)], PROFILE)
    assert history.batch.state is State.COMPLETE
    noted = [(one.code, one.rows, one.line) for one in history.report.notes]
    assert ("NoValue", 1, 3) in noted
    daily = replace(PROFILE, date_format="%d %B %Y", blanks="dropped")
    import_delivery(workspace, [write(tmp_path, DAILY, "daily.csv")], daily)
    assert rates(rows) == [
        ("2014-08-22", 196, "0.5843"),
        ("2014-08-22", 392, "137.7"),
        ("2014-08-22", 840, "1.3267"),
        ("2014-08-25", 392, "137.13"),
        ("2014-08-25", 840, "1.32"),
        ("2014-08-26", 392, "137.10"),
        ("2014-08-26", 840, "1.3192"),
    ]
    # The next history has that day too, written in the other way: it is the same records.
    top, *days = HISTORY.splitlines(keepends=True)
    again = "".join(
        [top, "2014-08-27,1.3178,136.9,N/A,\n", "2014-08-26,1.3192,137.1,N/A,\n", *days]
    )
    last = import_delivery(workspace, [write(tmp_path, again)], PROFILE).batch
    states = rows(
        "SELECT state, count(*) FROM staged_row WHERE batch_id = %s GROUP BY 1", [last.id]
    )
    assert dict(states) == {"inserted": 2, "unchanged": 7}


PER_100 = {"column": "Currency", "map": {"JPY": "100", "HUF": 100}, "others": "1"}


def test_rates_for_100_units_stand_beside_rates_for_one(
    workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    fields = {**SHAPE["fields"], "ExchangeRate": {"sum": ["Rate"], "per": PER_100}}
    columns = {"Date": "EffectiveDate", "Currency": "ToCurrenciesId"}
    profile = read_profile({**SHAPE, "columns": columns, "fields": fields})
    batch = import_delivery(workspace, [write(tmp_path, HISTORY)], profile).batch
    assert batch.state is State.COMPLETE
    assert rates(rows) == [
        ("2014-08-22", 196, "0.5843"),
        ("2014-08-22", 392, "1.377"),
        ("2014-08-22", 840, "1.3267"),
        ("2014-08-25", 392, "1.3713"),
        ("2014-08-25", 840, "1.32"),
    ]
    with workspace.database.connect() as connection:
        row = locate(workspace, connection, batch.id, "rates.csv", Spot(line=2))[1]
        made = {one.field: one for one in made_fields(workspace, connection, row, row.data)}
    assert made["ExchangeRate"][1:] == ("Rate / units by Currency", "137.13 | JPY", "1.3713")


@pytest.mark.long
def test_each_record_has_the_line_it_comes_from(
    workspace: Workspace, recon: Any, rows: Any, tmp_path: Path
) -> None:
    path = write(tmp_path, HISTORY)
    batch = import_delivery(workspace, [path], PROFILE).batch
    file = Path(path).read_bytes()
    with workspace.database.connect() as connection:
        for line, texts in {
            2: ["2014-08-25,USD,1.32", "2014-08-25,JPY,137.13"],
            4: ["2014-08-22,USD,1.3267", "2014-08-22,JPY,137.7", "2014-08-22,CYP,0.5843"],
        }.items():
            found = locate(workspace, connection, batch.id, "rates.csv", Spot(line=line))
            assert [row.data for row in found] == texts
            for row in found:
                whole = file[row.byte_start : row.byte_end].decode()
                assert whole == HISTORY.splitlines()[line - 1]
        with pytest.raises(BatchUnknown, match="is without a value in any column that makes"):
            locate(workspace, connection, batch.id, "rates.csv", Spot(line=3))
        (one,) = locate(workspace, connection, batch.id, "rates.csv", Spot(record=4))
        assert (one.first_line, one.data) == (4, "2014-08-22,JPY,137.7")
        told = recon("row", str(batch.id), "rates.csv", "--line", "4", "--json")[1]
        assert [one["data"] for one in json.loads(told)["rows"]] == texts
        connection.execute("UPDATE staged_currency_rate SET data = replace(data, '137.7', '1')")
        with pytest.raises(EvidenceBroken, match="says another text in record 4"):
            locate(workspace, connection, batch.id, "rates.csv", Spot(record=4))


@pytest.mark.long
def test_a_row_is_held_against_what_a_version_before_made_of_its_line(
    workspace: Workspace, tmp_path: Path
) -> None:
    """It made records of a line with a value in a column without a name: nobody added them."""
    shifted = "Date,USD,JPY,CYP,\n2014-08-25,1,32,137,0.5\n2014-08-22,1.3,137,0.5,\n"
    import_delivery(workspace, [write(tmp_path, shifted)], PROFILE)
    for text, told in (("2014-08-25,USD,1", "are not those that were staged"), ("x", "says anot")):
        with workspace.database.connect() as connection:
            connection.execute(
                "UPDATE staged_currency_rate SET data = %s, byte_end = 41 WHERE record_number = 1",
                [text],
            )
            with pytest.raises(EvidenceBroken, match=told):
                locate(workspace, connection, 1, "rates.csv", Spot(record=1))


@pytest.mark.long
@pytest.mark.parametrize("stated", [DEFAULT, PROFILE], ids=["inherited", "stated"])
def test_rejected_records_and_lines_are_corrected(
    workspace: Workspace, rows: Any, tmp_path: Path, stated: Profile
) -> None:
    dirty = "Date,USD,JPY,CYP,\n2014-08-25,1.32,137.1E,N/A,\n2014-08-22,1.3267\n"
    batch = import_delivery(workspace, [write(tmp_path, dirty)], PROFILE).batch
    assert batch.state is State.COMPLETE_WITH_ERRORS
    (rejects,) = write_rejects(workspace, batch.id, tmp_path / "rejects", with_secrets=False)
    top, record, line = rejects.read_text().splitlines()
    assert top == "ReconRow,Date,Currency,Rate"
    assert record.endswith("2014-08-25,JPY,137.1E")
    name, broken = line.split(",", 1)
    assert broken == '"2014-08-22,1.3267"'
    # The line was two records: the number behind its name is that of the line.
    right = [record.replace("137.1E", "137.13"), f"{name},2014-08-22,USD,1.3267"]
    right.append(f"{name},2014-08-22,JPY,137.7")
    rejects.write_text("".join(f"{one}\n" for one in (top, *right)))
    corrected = import_delivery(workspace, [str(rejects)], stated, corrects=batch.id).batch
    assert corrected.state is State.COMPLETE
    assert rates(rows) == [
        ("2014-08-22", 392, "137.7"),
        ("2014-08-22", 840, "1.3267"),
        ("2014-08-25", 392, "137.13"),
        ("2014-08-25", 840, "1.32"),
    ]


@pytest.mark.long
def test_a_broken_line_is_never_read_as_a_record(
    workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    """As it is cut here it has as many cells as a record, and other ones."""
    cut = "Date,USD,JPY,CYP,\n2014-08-25,USD,137.13\n"
    batch = import_delivery(workspace, [write(tmp_path, cut)], PROFILE).batch
    with workspace.database.connect() as connection:
        (row,) = locate(workspace, connection, batch.id, "rates.csv", Spot(line=2))
        assert made_fields(workspace, connection, row, row.data) == []
    (rejects,) = write_rejects(workspace, batch.id, tmp_path / "rejects", with_secrets=False)
    import_delivery(workspace, [str(rejects)], DEFAULT, corrects=batch.id)
    assert rates(rows) == []


@pytest.mark.long
@pytest.mark.parametrize("duplicate", ["conflict", "last_wins"])
def test_records_that_get_one_number_are_never_merged(
    workspace: Workspace,
    rows: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    duplicate: str,
) -> None:
    monkeypatch.setattr(key_ids, "BITS", 4)  # As if there were a million million records.
    days = [f"2014-{month:02}-{day:02}" for month in (7, 8) for day in range(1, 21)]
    profile = replace(PROFILE, duplicate=duplicate)
    numbers: list[set[str]] = []
    for number, half in enumerate((days[:12], days[12:])):
        text = "Date,USD,\n" + "".join(f"{day},1.{at},\n" for at, day in enumerate(half, 1))
        batch = import_delivery(workspace, [write(tmp_path, text, f"{number}.csv")], profile).batch
        found = rows(
            "SELECT state, error_data, data FROM staged_row WHERE batch_id = %s", [batch.id]
        )
        codes = {"conflict": "ConflictingKey", "rejected": "KeyCollision"}
        assert {state for state, *_ in found} <= {"inserted", *codes}
        for state, errors, _ in found:
            assert state not in codes or codes[state] in errors
        numbers.append({data for state, _, data in found if state == "inserted"})
    # What went in is there as it was delivered, and nothing was written over.
    assert {f"{day},USD,{rate}" for day, _, rate in rates(rows)} == numbers[0] | numbers[1]
    assert numbers[0]
    assert len(rows("SELECT 1 FROM outcome WHERE error_data LIKE '%%KeyCollision%%'")) > 0


@pytest.mark.long
def test_the_same_record_in_another_offset_is_no_collision(
    workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    plain = replace(PROFILE, offset=None)
    table = "Date,USD,\n{},1.32,\n"
    import_delivery(workspace, [write(tmp_path, table.format("2014-08-25T10:00:00Z"))], plain)
    other = write(tmp_path, table.format("2014-08-25T12:00:00+02:00"), "b.csv")
    assert import_delivery(workspace, [other], plain).batch.state is State.COMPLETE
    assert len(rates(rows)) == 1


@pytest.mark.long
@pytest.mark.parametrize("seed", range(examples(80, few=3)))
def test_a_table_cut_anywhere_is_the_same_records(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    cells = ["1.5", "N/A", "", " ", "7", "é", *chance.choice(((), ('""', '"a,b"', '"x ""y"""')))]
    width = chance.randint(1, 5)
    names = [f"C{number}" for number in range(width)]
    comments = chance.choice([0, 0.3])
    lines = [
        "# no record"
        if chance.random() < comments
        else ",".join([str(day), *(chance.choice(cells) for _ in names)])
        for day in range(1, 30)
    ]
    path = write(tmp_path, "\n".join([",".join(["Date", *names]), *lines]) + "\n")
    wanted = [
        (number, [day, name, cell])
        for number, (day, *row) in enumerate(csv.reader(lines), 2)
        if day[0] != "#"
        for name, cell in zip(names, row, strict=True)
        if cell not in ("", "N/A")
    ]
    profile = replace(PROFILE, comment=("#",))
    content = open_content(Path(path))
    header = read_header(content, None, profile, Limits())
    for size, strict_bytes in product((5, 64, 10_000), (0, MOST)):
        chunks = [*read_chunks(content, header, first_place(header), size, strict_bytes)]
        assert all(chunk.conserved() for chunk in chunks)
        told = pl.concat(chunk.positions()["data"] for chunk in chunks)
        # What is written out counts, not how short the lines are that say it.
        assert sum(chunk.size for chunk in chunks) == told.str.len_bytes().sum() + len(told)
        found = [
            (line, next(csv.reader(io.StringIO(text))))
            for chunk in chunks
            for line, text in chunk.positions().select("first_line", "data").iter_rows()
        ]
        assert found == wanted, f"seed {seed}"
        read = [list(row) for chunk in chunks for row in chunk.cells(3).iter_rows()]
        assert read == [record for _, record in wanted]
        numbers = [number for chunk in chunks for number in chunk.numbers]
        assert numbers == [*range(1, len(wanted) + 1)]
        at = chance.randrange(len(chunks))
        behind = [*read_chunks(content, header, chunks[at].end, size, MOST - strict_bytes)]
        again, before = (
            [(one.start, one.comments.lines, one.valueless, one.height) for one in some]
            for some in (behind, chunks[at + 1 :])
        )
        assert again == before
        assert sum(one.comments.lines for one in chunks) == sum(one[0] == "#" for one in lines)


@pytest.mark.long
def test_a_line_that_becomes_much_text_is_a_chunk_of_its_own(tmp_path: Path) -> None:
    """Memory follows from the size of blocks, and not from how often a cell is written again."""
    names = [f"C{number}" for number in range(500)]
    lines = [",".join([f"{day}{'x' * 2_000}", *["7"] * len(names)]) for day in range(8)]
    text = "\n".join([",".join(["Date", *names]), "#", *lines[:3], "# 3 more", *lines[3:], "#", ""])
    path, profile = write(tmp_path, text), replace(PROFILE, comment=("#",))
    content = open_content(Path(path))
    header = read_header(content, None, profile, Limits())
    cut = []
    for strict_bytes in (0, MOST):
        chunks = [*read_chunks(content, header, first_place(header), 100_000, strict_bytes)]
        assert [chunk.height for chunk in chunks] == [len(names)] * len(lines)
        assert sum(chunk.comments.lines for chunk in chunks) == 3
        assert all(chunk.conserved() for chunk in chunks)
        cut.append([(chunk.start, chunk.end, chunk.positions().rows()) for chunk in chunks])
    assert cut[0] == cut[1]


REFUSED = [
    # first line, keys of unpivot, what is said
    ("Day,USD,", {}, "missing: Date"),
    ("Date", {}, "missing: all others"),
    ("Date,USD,usd", {}, "USD, usd"),
    ("Date,USD", {"columns": ["JPY"], "keep": None}, "missing: JPY"),
]


@pytest.mark.parametrize(("top", "keys", "said"), REFUSED)
def test_a_file_that_is_no_such_table_is_refused(
    tmp_path: Path, top: str, keys: dict[str, Any], said: str
) -> None:
    shape = {name: one for name, one in {**SHAPE["unpivot"], **keys}.items() if one}
    profile = read_profile({**SHAPE, "unpivot": shape})
    path = write(tmp_path, f"{top}\n2014-08-25,1.32,\n")
    with pytest.raises(ExtractRefused) as caught:
        read_header(open_content(Path(path)), None, profile, Limits())
    assert said in str(caught.value)


def test_the_cells_that_make_records_are_a_field(tmp_path: Path) -> None:
    """A rate of a column that is kept would be that of each currency of the line."""
    columns = {"Date": "EffectiveDate", "Currency": "ToCurrenciesId", "AUD": "ExchangeRate"}
    unpivot = {**SHAPE["unpivot"], "keep": ["Date", "AUD"]}
    path = write(tmp_path, "Date,AUD,USD,JPY\n2014-08-25,1.42,1.32,137.13\n")
    profile = read_profile({**SHAPE, "unpivot": unpivot, "columns": columns})
    with pytest.raises(ExtractRefused, match=r"Rate\. No field is made of it"):
        read_header(open_content(Path(path)), None, profile, Limits())
    by_cell = read_profile(
        {**SHAPE, "unpivot": unpivot, "columns": columns, "keep_only": {"Rate": ["1.32"]}}
    )
    assert read_header(open_content(Path(path)), None, by_cell, Limits()).unpivot


def test_a_column_without_a_name_is_refused_unless_others_are_ignored(tmp_path: Path) -> None:
    path = write(tmp_path, HISTORY)
    profile = replace(PROFILE, unknown_columns="refuse")
    with pytest.raises(ExtractRefused, match="column 5 without a name"):
        read_header(open_content(Path(path)), None, profile, Limits())


MEANT_TWICE = [
    ({"unpivot": {"keep": ["Date"]}}, "unpivot needs name and value"),
    ({"unpivot": {"name": "a", "value": "b"}}, "State one of the two"),
    (
        {"unpivot": {"keep": ["Date"], "columns": ["USD"], "name": "a", "value": "b"}},
        "State one of the two",
    ),
    ({"unpivot": {"keep": ["Date"], "name": "date", "value": "b"}}, "name a column twice"),
    ({"keep": "reference"}, 'keep = "reference" is for files whose lines'),
    ({"footer": [r"(?P<rows>\d+) lines"]}, "because a line becomes several records"),
    ({"fields": {"Id": {"key": ["EffectiveDate"], "default": "1"}}}, "both say what Id is"),
    ({"fields": {"Id": {"key": ["TenantsId"]}}}, "is the same in each record"),
    ({"fields": {"Id": {"key": ["Id"]}}}, "cannot be part of a key"),
    ({"fields": {"Id": {"key": ["Day"]}}}, "'Day'"),
    ({"fields": {"Id": {"key": []}}}, "one or more fields"),
    ({"fields": {"Id": {"key": ["EffectiveDate"], "namespace": "a b"}}}, "is not a name"),
    ({"fields": {"Id": {"namespace": "ECB"}}}, "Name its fields in key"),
    ({"policy": {"repeats": "conflict", "duplicate": "last_wins"}}, "Keep one of them"),
    ({"fields": {"TenantsId": {"key": ["EffectiveDate"]}}}, "both say what TenantsId is"),
    ({"fields": {"ToCurrenciesId": {"key": ["EffectiveDate"]}}}, "both say what ToCurrenciesId"),
    ({"fields": {"ExchangeRate": {"key": ["EffectiveDate"]}}, "columns": {}}, "64-bit integer"),
]


@pytest.mark.parametrize(("keys", "said"), MEANT_TWICE)
def test_a_profile_that_cannot_be_meant(keys: dict[str, Any], said: str) -> None:
    with pytest.raises(ProfileError) as caught:
        read_profile({**SHAPE, **keys})
    assert said in str(caught.value)


@pytest.mark.long
def test_a_number_is_made_of_values_and_not_of_their_spelling(
    workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    shape = {
        **{name: one for name, one in SHAPE.items() if name not in ("unpivot", "columns")},
        "fields": {"Id": {"key": ["EffectiveDate", "ExchangeRate"]}},
    }
    text = "EffectiveDate,ToCurrenciesId,ExchangeRate\n2014-08-25,840,{}\n"
    for spelled in ("1.50", "1.5", "+1.500", "15e-1", "0.00", "-0.0", "0"):
        import_delivery(workspace, [write(tmp_path, text.format(spelled))], read_profile(shape))
    found = rows('SELECT "Id", "ExchangeRate" FROM currency_rate ORDER BY 2')
    assert [value for _, value in found] == [0, Decimal("1.5")]
    assert all(0 <= number < 2**63 for number, _ in found)


@pytest.mark.long
def test_a_record_that_is_delivered_again_in_other_digits_is_the_same_one(
    workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    """Its number is made of an amount, and is that of no other record for a zero more."""
    shape = {
        **{name: one for name, one in SHAPE.items() if name not in ("unpivot", "columns")},
        "fields": {"Id": {"key": ["EffectiveDate", "ExchangeRate"]}},
        "policy": {"duplicate": "last_wins"},
    }
    head, row = "EffectiveDate,ToCurrenciesId,ExchangeRate\n", "2014-08-25,840,{}\n"
    for spelled in (["12.5", "12.50"], ["12.500"]):
        text = head + "".join(map(row.format, spelled))
        import_delivery(workspace, [write(tmp_path, text)], read_profile(shape))
    assert rows("SELECT batch_id, state FROM staged_row ORDER BY 1, record_number") == [
        (1, "superseded"),
        (1, "inserted"),
        (2, "unchanged"),
    ]


@pytest.mark.long
def test_a_cell_is_no_value_by_the_words_of_the_field_it_becomes(
    workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    shape = {name: one for name, one in SHAPE.items() if name != "null"}
    rate = {"from": ["Rate"], "null": ["", "N/A"]}
    shape |= {
        "columns": {"Date": "EffectiveDate", "Currency": "ToCurrenciesId"},
        "fields": {**SHAPE["fields"], "ExchangeRate": rate},
    }
    import_delivery(workspace, [write(tmp_path, HISTORY)], read_profile(shape))
    assert len(rates(rows)) == 5
    assert rows("SELECT count(*) FROM staged_currency_rate") == [(5,)]
    # A text with blanks is another one, and is no value that nobody sees.
    text = HISTORY.replace("137.7", " N/A").replace("0.5843", " ")
    import_delivery(workspace, [write(tmp_path, text, "b.csv")], read_profile(shape))
    states = "SELECT state = 'rejected', count(*) FROM staged_row WHERE batch_id = 2 GROUP BY 1"
    assert sorted(rows(states)) == [(False, 3), (True, 2)]


def test_an_empty_text_is_a_value_where_a_text_is_wanted(tmp_path: Path) -> None:
    shape = {
        "feed": "replies",
        "record": "form_reply",
        "unpivot": {
            "keep": ["CommsGuid"],
            "name": "CampaignActionsRequestsId",
            "value": "Comments",
        },
    }
    path = write(tmp_path, 'CommsGuid,1,2\nh1,"",b\nh2,a,\nh3,"",\n')
    found = {}
    for null in ([""], ["", "-"]):
        content = open_content(Path(path))
        header = read_header(content, None, read_profile({**shape, "null": null}), Limits())
        (chunk,) = read_chunks(content, header, first_place(header), 10_000)
        found[len(null)] = chunk.positions()["data"].to_list()
    assert found[1] == ['h1,1,""', "h1,2,b", "h2,1,a", 'h3,1,""']
    assert found[2] == ["h1,2,b", "h2,1,a"]


NAMELESS = [
    # header, lines that are right, lines with a value in a column without a name
    ("Date,1,2,", ["d,1,2,", "d,1,2, ", 'd,1,2,""', "d,1,2,N/A", '"d",,,'], ["d,1,2,3", 'd,,,"3"']),
    (",Date,1,,", [",d,1,,", " ,d,1,,"], ["3,d,1,,", ",d,1,3,", ",d,1,,3"]),
    ("Date,,1", ["d,,1", "d, ,1", "d,N/A,1"], ["d,3,1", ',"3",'.join("d1")]),
    ("Date,1,,2", ["d,1,,2"], ["d,1,3,", "d,1,3,4"]),
]


@pytest.mark.parametrize(("header", "right", "wrong"), NAMELESS)
def test_a_value_in_a_column_without_a_name_costs_its_line(
    tmp_path: Path, header: str, right: list[str], wrong: list[str]
) -> None:
    """It may be one of another column: an unquoted thousands comma moves all cells behind it."""
    shape = SHAPE | {"fields": {}, "constants": {**SHAPE["constants"], "Id": 1}}
    lines = [line for pair in zip(right + right, wrong + wrong, strict=False) for line in pair]
    content = open_content(Path(write(tmp_path, "\n".join([header, *lines, *right, ""]))))
    top = read_header(content, None, read_profile(shape), Limits())
    for size, strict_bytes in ((10_000, 0), (10_000, MOST), (20, MOST)):
        chunks = read_chunks(content, top, first_place(top), size, strict_bytes)
        found = [
            (chunk.records.first_line[row], fault)
            for chunk in chunks
            for row, fault in chunk.faults.items()
        ]
        places = [at for at, line in enumerate(lines, 2) if line in wrong]
        assert found == [(at, "TooManyFields") for at in places]


FORMS = [
    # record, columns of a line, the field that the cells of the others are
    ("form_reply", "CommsGuid", "CampaignActionsRequestsId", "Comments"),
    ("currency_rate", "EffectiveDate", "ToCurrenciesId", "ExchangeRate"),
]


@pytest.mark.parametrize("quoted", [False, True], ids=["bare", "quoted"])
@pytest.mark.parametrize("blanks", ["kept", "dropped"])
@pytest.mark.parametrize("null", [None, [""], ["-"], ["", "-"], ["", "- -"]], ids=str)
@pytest.mark.parametrize(("record", "keep", "name", "value"), FORMS, ids=["text", "number"])
def test_a_cell_makes_a_record_in_either_way_where_its_field_has_a_value(
    tmp_path: Path,
    record: str,
    keep: str,
    name: str,
    value: str,
    null: list[str] | None,
    blanks: str,
    quoted: bool,
) -> None:
    shape = {"feed": "x", "record": record, "blanks": blanks}
    if record == "currency_rate":
        shape |= {"constants": {"Id": 1, "TenantsId": 7, "FromCurrenciesId": 978}}
    shape |= {"unpivot": {"keep": [keep], "name": name, "value": value}}
    profile = read_profile(shape if null is None else {**shape, "null": null})
    plain = ["", " ", "\t ", "-", " - ", " -", "1.5", " 1.5 ", "- -"]
    cells = [f'"{cell}"' for cell in plain] if quoted else plain
    text = "".join(f"k{at},{cell},{cell}\n" for at, cell in enumerate(cells))
    content = open_content(Path(write(tmp_path, f"{keep},1,2\n{text}")))
    header = read_header(content, None, profile, Limits())
    form = writing_of(profile).form
    given = pl.DataFrame({"cell": [None if not cell and not quoted else cell for cell in plain]})
    made = given.select(form.made(header.table.by_name[value], [pl.col("cell")])).to_series()
    wanted = [f"k{at}" for at in made.is_not_null().arg_true() for _ in range(2)]
    for strict_bytes in (0, MOST):
        chunks = read_chunks(content, header, first_place(header), 10_000, strict_bytes)
        found = [key for chunk in chunks for key in chunk.cells(3)["0"]]
        assert found == wanted, strict_bytes


@pytest.mark.long
def test_a_check_shows_the_records_of_lines_that_contradict_each_other(tmp_path: Path) -> None:
    text = HISTORY + "2014-08-25,1.33,137.13,N/A,\n2014-08-20,N/A,1.5E,N/A,\n"
    wanted = [
        (2, "2014-08-25,USD,1.32", "ConflictingKey"),
        (2, "2014-08-25,JPY,137.13", "EqualRows"),
        (5, "2014-08-25,USD,1.33", "ConflictingKey"),
        (5, "2014-08-25,JPY,137.13", "EqualRows"),
        (6, "2014-08-20,JPY,1.5E", "Number"),
    ]
    one_rate = [one for one in wanted if one[2] != "EqualRows"]
    for policy, told in (({}, wanted), ({"policy": {"repeats": "superseded"}}, one_rate)):
        profile = read_profile(SHAPE | policy)
        (verdict,) = examine(Settings(tmp_path / "home"), [write(tmp_path, text)], profile)
        found = [(one.line, one.data, one.errors[0]["ErrorCode"]) for one in verdict.rejects]
        assert found == told


def test_a_break_is_about_one_record_of_its_line(workspace: Workspace, tmp_path: Path) -> None:
    import_delivery(workspace, [write(tmp_path, HISTORY)], PROFILE)
    with workspace.database.connect() as connection:
        connection.execute(
            'UPDATE currency_rate SET "ExchangeRate" = 139 WHERE "ExchangeRate" = 137.7'
        )
    rules = replace(read_rules(None), references=frozenset())
    done = reconcile(workspace, Asked(Scope(), date(2014, 8, 25), rules))
    (found,) = (one for one in done.report.breaks if one.record == "currency_rate")
    assert (found.line, found.field) == (4, "ExchangeRate")
    corrected = done.written.folder / "corrections" / "currency_rate.csv"
    with corrected.open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert (row["BreakId"], row["Currency"], row["Rate"]) == (found.id, "JPY", "137.7")
    with workspace.database.connect() as connection:
        facts = {
            name: getattr(found, name) for name in ("record", "key", "file", "line", "batch_id")
        }
        behind = look_behind(workspace, connection, facts)
    assert behind.delivered is not None
    assert behind.delivered.text == "2014-08-22,JPY,137.7"


@pytest.mark.long
def test_lines_without_a_value_are_counted_wherever_they_are(
    workspace: Workspace, tmp_path: Path
) -> None:
    """Though chunks of them have no record at all, which is where a run could forget them."""
    top, day, nothing = "Date,USD,JPY\n", "2026-01-{:02},1.5,N/A\n", "2026-02-{:02},N/A,\n"
    lines = [day.format(1), *map(nothing.format, range(1, 21)), day.format(2), nothing.format(28)]
    path = write(tmp_path, top + "".join(lines))
    small = replace(workspace.settings, limits=Limits(block_bytes=64, record_bytes=64))
    (checked,) = examine(small, [path], PROFILE)
    assert (checked.rows_in, checked.valueless.lines, len(checked.rejects)) == (2, 21, 0)
    ended = import_delivery(replace(workspace, settings=small), [path], PROFILE)
    (note,) = [one for one in ended.report.notes if one.code == "NoValue"]
    assert (note.rows, note.line, note.file) == (21, 3, "rates.csv")
    assert "First: rates.csv, line 3.\n" in render_text(ended.report)
