"""One row by the line people see or by its number among the records: never one for the other."""

import gzip
import json
import shlex
import zipfile
from pathlib import Path
from typing import Any

import pytest

from connectors.files.profiles.profile import DEFAULT
from connectors.postgres.auditing.removals import note_removal
from connectors.postgres.batches.findings import find_row
from connectors.postgres.batches.repair_places import place_of
from flows.__main__ import main
from flows.stages.receive import receive
from flows.stages.receiving.terms import StatedTerms
from flows.stages.rows.rejects import write_rejects
from flows.stages.sequence import import_delivery
from flows.stages.undo import undo_batch
from flows.stages.workspace import Workspace
from schemas.reasons import REASONS
from tests.stages.payments import HEADER as PAYMENTS
from tests.stages.payments import line, write

HEADER = "TenantsId,Name,Gender,AgeGroup,Style,ImageUrl,EthnicGroup\n"
AVATARS = (
    "\n"  # 1
    f"{HEADER}"  # 2
    "7,plain,,,,,\n"  # 3: record 1
    '7,"one\nover three\nlines",,,,,\n'  # 4 to 6: record 2
    "\n"  # 7
    "seven,not a tenant,,,,,\n"  # 8: record 3
    "7,last,,,,,"  # 9: record 4, without an end
)


@pytest.fixture
def recon(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Any:
    assert workspace.settings.database_url is not None
    monkeypatch.setenv("RECON_DATABASE_URL", workspace.settings.database_url)
    monkeypatch.setenv("RECON_HOME", str(workspace.settings.home))

    def ask(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main(list(arguments))
        told = capsys.readouterr()
        return int(end.value.code or 0), told.out, told.err

    return ask


@pytest.fixture
def avatars(workspace: Workspace, tmp_path: Path) -> Path:
    path = tmp_path / "avatars.csv"
    path.write_text(AVATARS)
    import_delivery(workspace, [str(path)], DEFAULT)
    return path


@pytest.mark.long
def test_no_delivered_text_tells_of_itself_in_lines_of_ours(recon: Any, tmp_path: Path) -> None:
    """A cell of several lines could say what became of its row, or that a file has no errors."""
    path, forged = tmp_path / "ava\ntars.csv", "x\n           state  inserted"
    path.write_text(f'{HEADER}"{forged}\navatars.csv: avatar, 1 row, 0 with errors",a,,,,,\n')
    _, checked, _ = recon("check", str(path))
    assert checked.count("\navatars.csv: ") == 0, checked
    recon("import", str(path))
    _, out, _ = recon("row", "1", "ava\\ntars.csv", "--line", "2")
    states = [told for told in out.splitlines() if told.split()[:1] == ["state"]]
    assert states == ["           state  rejected"]
    # The name is understood as it was delivered, too.
    _, out, _ = recon("row", "1", path.name, "--line", "2", "--json")
    assert json.loads(out)["rows"][0]["data"].startswith(f'"{forged}')


RECORD_OF_LINE = {3: 1, 4: 2, 5: 2, 6: 2, 8: 3, 9: 4}
NO_ROW = [
    (("--line", "1"), "Line 1 of avatars.csv is its header"),
    (("--line", "2"), "Line 2 of avatars.csv is its header"),
    (("--line", "7"), "Line 7 of avatars.csv is blank"),
    (("--line", "10"), "avatars.csv has 9 lines"),
    (("--line", "9223372036854775807"), "avatars.csv has 9 lines"),
    (("--record", "5"), "avatars.csv has 4 records"),
    (("--line", "0"), "Must be from 1"),
    (("--record", "0"), "Must be from 1"),
    (("--line", "3", "--record", "1"), "either --line or --record"),
    ((), "Say which row"),
    (("4",), "recon row 1 avatars.csv --line 4"),
    (("4",), "recon row 1 avatars.csv --record 4"),
]


@pytest.mark.long
def test_a_row_is_found_by_any_of_its_lines_or_by_its_number_and_by_nothing_else(
    recon: Any, avatars: Path
) -> None:
    asked = {("--line", str(at)): number for at, number in RECORD_OF_LINE.items()}
    asked |= {("--record", str(number)): number for number in (1, 2, 3, 4)}
    for which, number in asked.items():
        code, out, err = recon("row", "1", "avatars.csv", *which, "--json")
        assert (code, err) == (0, ""), which
        assert json.loads(out)["rows"][0]["record_number"] == number, which
    for which, told in NO_ROW:
        code, out, err = recon("row", "1", "avatars.csv", *which)
        assert (code, out) == (2, ""), which
        assert told in err, which
    code, _, err = recon("row", "1", "avatar.csv", "--line", "4")
    assert code == 2
    assert "no file named 'avatar.csv'" in err
    assert "avatars.csv" in err


def test_a_file_leads_to_the_batches_that_brought_it(recon: Any, tmp_path: Path) -> None:
    """Whoever has a file and a line knows no number of a batch."""
    (tmp_path / "mon").mkdir()
    delivered = [
        tmp_path / "mon" / "avatars.csv",
        tmp_path / "all.zip",
        tmp_path / "avatars.csv.gz",
    ]
    texts = [f"{HEADER}7,{name},,,,,\n" for name in ("plain", "in a zip", "packed")]
    delivered[0].write_text(texts[0])
    with zipfile.ZipFile(delivered[1], "w") as archive:
        archive.writestr("in/avatars.csv", texts[1])
        archive.writestr("in/more_avatars.csv", f"{HEADER}7,more,,,,,\n")
    delivered[2].write_bytes(gzip.compress(texts[2].encode()))
    for path in (*delivered, write(tmp_path / "payments.csv", line(1))):
        assert recon("import", str(path))[0] == 0
    code, out, _ = recon("status", "--file", "avatars.csv", "--json")
    found = {one["batch"]: one["named"] for one in json.loads(out)["batches"]}
    names = {1: ["avatars.csv"], 2: ["all.zip/in/avatars.csv"], 3: ["avatars.csv.gz"]}
    assert (code, found) == (0, names)
    for batch, (name,) in names.items():
        assert recon("row", str(batch), name, "--line", "2")[0] == 0, name
        assert f"recon row {batch} {name} --line LINE" in recon("status", "--file", name)[1]
    code, out, _ = recon("status", "--file", "all.zip/in/avatars.csv", "--json")
    assert [one["batch"] for one in json.loads(out)["batches"]] == [2]
    code, out, _ = recon("status", "--file", "vatars.csv")
    assert (code, out) == (0, "No batch has a file called vatars.csv.\n")
    assert "named" not in json.loads(recon("status", "--json")[1])["batches"][0]


def test_bytes_that_are_taken_once_are_found_under_each_name_they_came_by(
    recon: Any, rows: Any, tmp_path: Path
) -> None:
    """Only the lines of the import had said so, once: no batch had a file of Tuesday's name."""
    text = f"{HEADER}7,plain,,,,,\n"
    for name in ("monday_avatars.csv", "tuesday_avatars.csv"):
        (tmp_path / name).write_text(text)
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.writestr("avatars_one.csv", f"{HEADER}7,one,,,,,\n")
        archive.writestr("avatars_two.csv", f"{HEADER}7,one,,,,,\n")
    for name in ("monday_avatars.csv", "tuesday_avatars.csv", "tuesday_avatars.csv", "all.zip"):
        assert recon("import", str(tmp_path / name))[0] == 0
    for batch, name, taken in (
        (1, "tuesday_avatars.csv", "monday_avatars.csv"),
        (2, "all.zip/avatars_two.csv", "all.zip/avatars_one.csv"),
    ):
        code, out, _ = recon("status", "--file", name)
        assert (code, f"recon row {batch} {name} --line LINE" in out) == (0, True), out
        code, out, _ = recon("row", str(batch), name, "--line", "2", "--json")
        (row,) = json.loads(out)["rows"]
        (event,) = rows(
            "SELECT id FROM event WHERE what = 'bytes delivered again' AND batch_id = %s", [batch]
        )
        assert row["proof"].endswith(
            f" {name} came with the bytes of {taken}, which were taken once: event {event[0]}."
        )
        code, out, _ = recon("row", str(batch), taken, "--line", "2", "--json")
        assert json.loads(out)["rows"][0] | {"proof": ""} == row | {"proof": ""}
    code, _, err = recon("row", "1", "wednesday_avatars.csv", "--line", "2")
    assert (code, "no file named" in err) == (2, True)


def test_of_a_file_that_is_not_read_to_its_end_nothing_final_is_said(
    workspace: Workspace, recon: Any, tmp_path: Path
) -> None:
    path = tmp_path / "avatars.csv"
    path.write_text(AVATARS)
    receive(workspace, [str(path)], StatedTerms())
    for asked, told in (
        (("--line", "3"), "Line 3 of avatars.csv is in no record so far. It is not read to its"),
        (("--record", "1"), "avatars.csv has 0 records so far, and no record 1. It is not read"),
    ):
        code, out, err = recon("row", "1", "avatars.csv", *asked)
        assert (code, out) == (2, "")
        assert told in err
        assert "`recon rerun 1` goes on" in err


@pytest.mark.long
def test_a_refused_file_has_no_rows_and_says_why(
    workspace: Workspace, recon: Any, tmp_path: Path
) -> None:
    write(tmp_path / "a.csv", line(1))
    (tmp_path / "b.csv").write_text("")
    import_delivery(workspace, [str(tmp_path / "a.csv"), str(tmp_path / "b.csv")], DEFAULT)
    code, _, err = recon("row", "1", "b.csv", "--line", "2")
    assert code == 2
    assert "b.csv was refused" in err


def test_content_that_was_cleared_away_is_not_needed(
    workspace: Workspace, recon: Any, avatars: Path
) -> None:
    with workspace.database.connect() as connection:
        for path in workspace.settings.archive.rglob("*.csv"):
            note_removal(connection, path.stem)
            path.unlink()
    code, out, _ = recon("row", "1", "avatars.csv", "--line", "5", "--json")
    assert json.loads(out)["rows"][0]["record_number"] == 2
    code, _, err = recon("row", "1", "avatars.csv", "--line", "7")
    assert code == 2
    assert "is in no record" in err


@pytest.mark.long
@pytest.mark.parametrize("place", [2, 1_000, 12_345, 40_001])
def test_a_line_is_found_however_far_it_is_from_its_number(
    workspace: Workspace, recon: Any, tmp_path: Path, place: int
) -> None:
    """Every third record has three lines, so lines run away from numbers."""
    records = [f'7,"{n}\n\n",,,,,\n' if n % 3 == 0 else f"7,{n},,,,,\n" for n in range(24_000)]
    path = tmp_path / "avatars.csv"
    path.write_text(HEADER + "".join(records))
    import_delivery(workspace, [str(path)], DEFAULT)
    lines = [n for n, text in enumerate(records, 1) for _ in range(text.count("\n"))]
    code, out, _ = recon("row", "1", "avatars.csv", "--line", str(place), "--json")
    assert (code, json.loads(out)["rows"][0]["record_number"]) == (0, lines[place - 2])


@pytest.mark.long
def test_every_place_that_shows_a_row_leads_to_that_row(
    workspace: Workspace, recon: Any, avatars: Path, tmp_path: Path
) -> None:
    """Line 8 is record 3: whoever reads one of them asks for it by that name."""
    _, checked, _ = recon("check", str(avatars))
    assert "line 8, record 3" in checked
    folder = workspace.settings.reports / "batch-1"
    assert "avatars.csv, line 8, record 3" in " ".join((folder / "report.txt").read_text().split())
    assert "line 8, record 3" in (folder / "report.html").read_text()
    written = write_rejects(workspace, 1, tmp_path / "rejects", with_secrets=False)
    note = (tmp_path / "rejects" / "what-is-wrong-batch-1.txt").read_text()
    assert written
    assert "avatars.csv, line 8, record 3" in note
    command = next(part for part in note.splitlines() if part.startswith("recon row "))
    code, out, _ = recon(*shlex.split(command)[1:])
    assert code == 0
    assert "not a tenant" in out


@pytest.mark.long
def test_a_repair_and_what_it_repairs_name_each_other_by_line(
    workspace: Workspace, recon: Any, avatars: Path, tmp_path: Path
) -> None:
    (rejects,) = write_rejects(workspace, 1, tmp_path / "rejects", with_secrets=False)
    rejects.write_text(rejects.read_text().replace("seven", "7"))
    import_delivery(workspace, [str(rejects)], DEFAULT, corrects=1)
    _, out, _ = recon("row", "1", "avatars.csv", "--line", "8")
    told = next(part for part in out.splitlines() if "repaired_by" in part)
    command = told.partition("recon row ")[2]
    assert command.endswith("--line 2")
    _, out, _ = recon("row", *shlex.split(command))
    assert "recon row 1 avatars.csv --line 8" in out


@pytest.mark.long
def test_a_row_names_the_one_that_wrote_its_record_since(
    workspace: Workspace, recon: Any, tmp_path: Path
) -> None:
    """What was delivered is not what is there now: an auditor is told where that came from."""

    def last_writer(batch: int, file: str, at: int = 2) -> Any:
        _, out, _ = recon("row", str(batch), file, "--line", str(at), "--json")
        return json.loads(out)["rows"][0]["last_written_by"]

    first = write(tmp_path / "first.csv", line(1), line(2, amount="ten"))
    import_delivery(workspace, [first], DEFAULT)
    assert (last_writer(1, "first.csv"), last_writer(1, "first.csv", 3)) == (None, None)
    import_delivery(workspace, [write(tmp_path / "second.csv", line(1, amount="11"))], DEFAULT)
    third = write(tmp_path / "third.csv", line(1, amount="11"), line(3))
    import_delivery(workspace, [third], DEFAULT)
    second = {"batch_id": 2, "extract_id": 2, "file": "second.csv", "record_number": 1, "line": 2}
    told = second | {"state": "updated"}
    assert (last_writer(1, "first.csv"), last_writer(2, "second.csv")) == (told, None)
    assert last_writer(3, "third.csv") == told  # It changed nothing.
    _, out, _ = recon("row", "1", "first.csv", "--line", "2")
    assert "last_written_by  batch 2, updated: recon row 2 second.csv --line 2" in out


@pytest.mark.long
def test_only_what_wrote_a_record_is_told_as_its_writer(
    workspace: Workspace, recon: Any, tmp_path: Path
) -> None:
    """What was taken in for a row may have written nothing, or another record."""

    def deliver(file: str, *rows: str, names: str = "", **terms: Any) -> Any:
        path = tmp_path / file
        path.write_text("\n".join([names + PAYMENTS, *rows]) + "\n")
        return import_delivery(workspace, [str(path)], DEFAULT, **terms)

    def writer(file: str, at: int) -> str | None:
        out = json.loads(recon("row", "1", file, "--line", str(at), "--json")[1])["rows"][0]
        told = out["last_written_by"]
        return told and f"{told['file']}, {told['state']}"

    deliver("first.csv", line(1), line(2, amount="ten"))
    deliver("newer.csv", line(2, day=9))
    repairs = (f"1:1,{line(5)}", f"1:2,{line(2, day=1)}")
    deliver("older.csv", *repairs, names="ReconRow,", corrects=1)
    assert writer("first.csv", 2) is None, "its record is as it wrote it"
    assert writer("first.csv", 3) == "newer.csv, inserted"
    with workspace.database.connect() as connection:
        connection.execute('DELETE FROM payment WHERE "Id" = 2')
    assert writer("first.csv", 3) is None, "there is no such record"


@pytest.mark.long
def test_what_to_do_about_a_row_is_what_is_left_to_do(
    workspace: Workspace, recon: Any, tmp_path: Path
) -> None:
    """Told once more what was wrong, somebody would correct it a second time."""
    remedy = REASONS["Number"].remedy

    def deliver(file: str, *rows: str, names: str = "ReconRow,", **terms: Any) -> Any:
        path = tmp_path / file
        path.write_text("\n".join([names + PAYMENTS, *rows]) + "\n")
        return import_delivery(workspace, [str(path)], DEFAULT, **terms)

    def told(batch: int, file: str, at: int) -> tuple[list[str], str | None]:
        out = json.loads(recon("row", str(batch), file, "--line", str(at), "--json")[1])["rows"][0]
        writer = out["last_written_by"]
        return out["next"], writer and f"{writer['file']}:{writer['line']}"

    wrong = (line(1, amount="one"), line(2, amount="two"), line(3, amount="three"))
    deliver("first.csv", *wrong, names="")
    assert [told(1, "first.csv", at) for at in (2, 3, 4)] == [([remedy], None)] * 3

    deliver("second.csv", f"1:1,{line(1)}", f"1:2,{wrong[1]}", corrects=1)
    nothing = ["Nothing: batch 2 has its repair."]
    assert told(1, "first.csv", 2) == (nothing, "second.csv:2")
    again = "Correct it in batch 2, where it was delivered again and is in error."
    assert told(1, "first.csv", 3) == ([again], None)
    assert told(2, "second.csv", 3) == ([remedy], None)

    # The repair has a key of its own, and is of the repair that was in error; the other is by key.
    deliver("third.csv", f"2:2,{line(22)}", corrects=2)
    deliver("by-key.csv", line(3), names="", corrects=1)
    nothing = ["Nothing: batch 3 has its repair."]
    assert told(1, "first.csv", 3) == (nothing, "third.csv:2")
    assert told(2, "second.csv", 3) == (nothing, "third.csv:2")
    assert told(1, "first.csv", 4) == (["Nothing: batch 4 has its repair."], "by-key.csv:2")
    out = recon("row", "1", "first.csv", "--line", "4")[1]
    assert "repaired_by  batch 4, inserted: recon row 4 by-key.csv --line 2" in out

    deliver("since.csv", line(1, amount="99"), names="")
    assert told(1, "first.csv", 2)[1] == "since.csv:2"

    undo_batch(workspace, 3, by=None, reason="test")
    assert told(1, "first.csv", 3) == ([again], None)
    deliver("alone.csv", line(7, amount="x"), names="")
    undo_batch(workspace, 6, by=None, reason="test")
    assert told(6, "alone.csv", 2)[0] == [
        "Import its file again: of a batch that was undone no row is corrected."
    ]


def test_a_row_is_looked_for_among_those_of_its_kind(workspace: Workspace, tmp_path: Path) -> None:
    """There may be hundreds of kinds, and each lookup went through the tables of all."""
    import_delivery(workspace, [write(tmp_path / "a.csv", line(1), line(2))], DEFAULT)
    with workspace.database.connect() as connection, connection.transaction():
        (row,) = find_row(connection, 1, 2)
        place = place_of(connection, 1, 1, 2)
        looked_in = connection.execute(
            "SELECT relname FROM pg_stat_xact_user_tables WHERE relname LIKE 'staged%' "
            "AND seq_scan + idx_scan > 0"
        ).fetchall()
    assert (row.record, row.state, place and place.line) == ("payment", "inserted", 3)
    assert looked_in == [("staged_payment",)]
