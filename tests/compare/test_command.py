"""`recon compare` as it is used: files in, verdict, exit code and results out."""

import csv
import errno
import gzip
import hashlib
import json
import os
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import zstandard

from connectors.compare.parquet_side import parquet_side
from connectors.compare.sides import no_room
from connectors.errors import SidesRefused
from connectors.settings import Limits
from flows.__main__ import main
from flows.report.spelling import MINUS, NARROW
from flows.stages.comparing import compare_run
from flows.stages.comparing.compare_run import run_comparison
from flows.steps.match.statuses import Comparison
from tests.compare.tables import by_column, compared, counts, csv_file, parquet_file, values

LEFT = 'id,amount,name\n1,10.00,Ann\n2,20.00,""\n3,30.00,Cy\n5,1,x\n5,2,y\n,9,z\n'
RIGHT = "id;name;amount;more\n4;Dan;5;1\n2;;20.00;1\n1;Ann;10.01;1\n5;x;1;1\n"


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["compare", *arguments])
    return int(ended.value.code or 0)


@pytest.mark.long
def test_every_row_gets_its_status(tmp_path: Path) -> None:
    left, right = csv_file(tmp_path / "l.csv", LEFT), csv_file(tmp_path / "r.csv", RIGHT)
    result = compared(left, right)
    assert counts(result) == {
        "MISMATCH": 2,
        "MISSING_IN_TARGET": 1,
        "MISSING_IN_EXTRACT": 1,
        "DUPLICATE": 3,
        "UNKNOWN": 1,
    }
    assert values(result) == [("amount", "10.00", "10.01", "0.01"), ("name", "", None, None)]
    assert by_column(result) == {"amount": (2, 1, 0, "0.01"), "name": (2, 1, 0, None)}
    assert result.right.only_columns == ("more",)
    assert not result.agrees


@pytest.mark.long(but=("1000",))
@pytest.mark.parametrize("slice_rows", [1, 2, 1000])
def test_columns_tell_what_differs_and_what_is_tolerated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slice_rows: int
) -> None:
    monkeypatch.setattr("flows.stages.comparing.compare.SLICE_ROWS", slice_rows)
    left = csv_file(tmp_path / "l.csv", "id,a,b\n1,10,10\n2,10,10\n3,10,10\n4,10,10\n5,10,10\n")
    right = csv_file(tmp_path / "r.csv", "id,a,b\n1,10.5,9\n2,9,10\n3,12,12\n4,7,10\n5,10,10\n")
    result = compared(left, right, tolerances=["a=1"])
    assert counts(result) == {"MATCHED_EXACT": 1, "MATCHED_TOLERANCE": 1, "MISMATCH": 3}
    assert by_column(result) == {"a": (5, 2, 2, "-3"), "b": (5, 2, 0, "2")}


def test_rows_without_a_partner_move_no_value_to_another_row(tmp_path: Path) -> None:
    left = csv_file(tmp_path / "l.csv", "id,a\n1,1\n2,2\n3,3\n4,4\n5,5\n6,6\n")
    right = csv_file(tmp_path / "r.csv", "id,a\n7,7\n6,6\n4,0\n2,2\n")
    result = compared(left, right)
    assert values(result) == [("a", "4", "0", "-4")]


def test_results_are_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    left, right = csv_file(tmp_path / "l.csv", LEFT), csv_file(tmp_path / "r.csv", RIGHT)
    out = tmp_path / "out"
    assert run(str(left), str(right), "--key", "id", "--out", str(out)) == 1
    assert sorted(file.name for file in out.iterdir()) == [
        "differences.csv",
        "differences.parquet",
        "report.html",
        "summary.json",
        "unreadable.csv",
    ]
    with (out / "differences.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert pl.read_parquet(out / "differences.parquet").height == len(lines) == 8
    told = {(line["status"], line["id"], line["column"], line["left_at"]) for line in lines}
    assert ("MISMATCH", "1", "amount", "2") in told
    assert ("DUPLICATE", "5", "", "6") in told
    assert ("UNKNOWN", "", "", "7") in told
    summary = json.loads((out / "summary.json").read_text())
    assert summary["statuses"]["MISMATCH"] == 2
    shown = capsys.readouterr().out
    assert "The sides differ." in shown
    assert "1: amount 10.00 -> 10.01 (0.01)" in shown


def test_the_page_names_the_files_by_their_hashes_and_the_largest_differences(
    tmp_path: Path,
) -> None:
    """Of 1,500 that differ in a column by a cent it is the last one that matters."""
    texts = ["id,amount,name\n" + "".join(f"{n},{n}.00,Ann\n" for n in range(1500)), ""]
    texts[1] = texts[0].replace(".00,", ".01,").replace("1499.01", "-1234567.5")
    texts[1] = texts[1].replace("7,7.01,Ann", f"7,7.01,{'x' * 2000}")
    sides = [
        csv_file(tmp_path / f"{name}.csv", text)
        for name, text in zip(("old", "new"), texts, strict=True)
    ]
    out = tmp_path / "out"
    assert run(*map(str, sides), "--key", "id", "--out", str(out)) == 1
    page = (out / "report.html").read_text()
    assert "<title>Comparison of old.csv and new.csv</title>" in page
    hashes = [hashlib.sha256(text.encode()).hexdigest() for text in texts]
    assert [page.count(one) for one in hashes] == [1, 1]
    summary = json.loads((out / "summary.json").read_text())
    assert [summary[side]["sha256"] for side in ("left", "right")] == hashes
    rows = re.findall(r"<tr>(<td.*?)</tr>", page.split("<h2>Differences</h2>")[1])
    assert "<td>1499</td><td>amount</td>" in rows[0]
    assert f'<td class="number">{MINUS}1{NARROW}236{NARROW}066.50</td>' in rows[0]
    assert f'<td class="number">1{NARROW}501</td>' in rows[0], "its line"
    assert "x" * 201 not in page
    assert "(2000 characters)" in page
    for raw in ("left_at", ">delta<", ">status<", ">1500<"):
        assert raw not in page
    assert page.count("<table>") == page.count("<thead>") == page.count("<tbody>") == 4


def test_a_value_that_reads_like_a_missing_one_is_told_from_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    left = csv_file(tmp_path / "l.csv", "id,v\n1,\nNULL,a\n,b\n3,Bob\n4 ,c\n")
    right = csv_file(tmp_path / "r.csv", "id,v\n1,NULL\n3,Bob \n4,c\n")
    out = tmp_path / "out"
    assert run(str(left), str(right), "--key", "id", "--out", str(out)) == 1
    told = capsys.readouterr().out
    assert "1: v NULL -> 'NULL'" in told
    assert "'NULL': on the left side only" in told
    assert "'4 ': on the left side only" in told
    assert "  4: on the right side only" in told
    assert r"3: v Bob -> Bob\u0020" in told
    page = (out / "report.html").read_text().split("<h2>Differences</h2>")[1]
    for cells in (("NULL", "&#39;NULL&#39;"), ("Bob", r"Bob\u0020")):
        assert "".join(f'<td class="value">{cell}</td>' for cell in cells) in page
    assert "<td>&#39;NULL&#39;</td>" in page
    assert "<td>&#39;4 &#39;</td>" in page


@pytest.mark.parametrize("side", ["r.csv", "folder"])
def test_a_side_that_changes_meanwhile_ends_the_comparison(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, side: str
) -> None:
    left, right = csv_file(tmp_path / "l.csv", LEFT), csv_file(tmp_path / "r.csv", RIGHT)
    part = tmp_path / "folder" / "part.parquet"
    part.parent.mkdir()
    people = pl.DataFrame({"id": [1], "name": ["Ann"]})
    people.write_parquet(part)
    compare = compare_run.compare_sides

    def written_to(*asked: Any, **how: Any) -> Comparison:
        right.write_text(right.read_text() + "9;Eve;1;1\n")
        people.head(0).write_parquet(part)
        return compare(*asked, **how)

    monkeypatch.setattr(compare_run, "compare_sides", written_to)
    with pytest.raises(SidesRefused, match=rf"{side} changed while it was compared"):
        run_comparison(str(left), str(tmp_path / side), key="id")


def test_a_side_that_is_replaced_by_one_as_large_and_as_old_ends_the_comparison(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `cp -p`, `rsync -t` and `tar` write one: with the time of the file it is a copy of."""
    left, right = csv_file(tmp_path / "l.csv", LEFT), csv_file(tmp_path / "r.csv", LEFT)
    stood, hashed = right.stat(), compare_run.hashed

    def then_replaced(place: str) -> object:
        found = hashed(place)
        if place == str(right):
            right.write_text(LEFT.replace("Ann", "Eve"))
            os.utime(right, ns=(stood.st_atime_ns, stood.st_mtime_ns))
        return found

    monkeypatch.setattr(compare_run, "hashed", then_replaced)
    with pytest.raises(SidesRefused, match=r"r\.csv changed while it was compared"):
        run_comparison(str(left), str(right), key="id")


AGREEING = [
    # the other side of "id,amount\n1,10.00\n2,20\n", and options
    ("id,amount\n2,20.0\n1,10\n", []),
    ("amount,id\r\n10.00,1\r\n20,2\r\n", []),
    ("\ufeffid,amount\n1,10.00\n2,20", []),
    ("id\tamount\n1\t10.00\n2\t20\n", []),
    ("id,amount\n1,10.01\n2,20\n", ["--tolerance", "amount=0.01"]),
    ("id,amount\n1,10.1\n2,20\n", ["--tolerance", "amount=1%"]),
    ("id,amount,x\n1,0,5\n2,0,5\n", ["--ignore", "amount", "--ignore", "x"]),
]


@pytest.mark.parametrize(("other", "options"), AGREEING)
def test_sides_that_agree(tmp_path: Path, other: str, options: list[str]) -> None:
    left = csv_file(tmp_path / "l.csv", "id,amount\n1,10.00\n2,20\n")
    right = csv_file(tmp_path / "r.csv", other)
    assert run(str(left), str(right), "--key", "id", *options) == 0


def test_json_is_one_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    side = csv_file(tmp_path / "l.csv", "id,a\n1,2\n")
    assert run(str(side), str(side), "--key", "id", "--json") == 0
    assert json.loads(capsys.readouterr().out)["agrees"] is True


REFUSED = [
    (["--key", "Idd"], "Did you mean id?"),
    (["--key", ""], "names no column"),
    (["--key", "id", "--tolerance", "amount=-1"], "no tolerance"),
    (["--key", "id", "--tolerance", f"amount=1{'0' * 20}"], "is too large. Use less than 1000"),
    (["--key", "id", "--tolerance", f"amount={'9' * 40}%"], "is too large. Use less than 1000"),
    (["--key", "id", "--tolerance", "amount"], "COLUMN=VALUE"),
    (["--key", "id", "--tolerance", "amuont=1"], "Did you mean amount?"),
    (["--key", "id", "--tolerance", "id=1"], "part of the key"),
    (["--key", "id", "--tolerance", "amount=1", "--tolerance", "amount=2"], "contradict each"),
    (["--key", "id,name", "--ignore", "name"], "--ignore name: it is a part of the key"),
    (["--key", "id", "--ignore", "names"], "Did you mean name?"),
    (["--key", "id", "--delimiter", "::"], "not one ASCII sign"),
    (["--key", "id", "--delimiter", "\n"], "not one ASCII sign"),
]


@pytest.mark.parametrize(("options", "why"), REFUSED)
def test_what_cannot_be_asked_is_refused(
    tmp_path: Path, options: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    side = csv_file(tmp_path / "l.csv", "id,amount,name\n1,2,x\n")
    assert run(str(side), str(side), *options) == 2
    assert why in capsys.readouterr().err


SIDES = [
    ("", "no header"),
    ("id,,a\n1,2,3\n", "column 2 has no name"),
    ("id,a,a\n1,2,3\n", "more than once"),
    ('{"id": 1}', "JSON, not CSV"),
    ('id,"a\n1,2', "no header, or its quotes"),
]


@pytest.mark.parametrize(("text", "why"), SIDES)
def test_what_is_no_side_is_refused(
    tmp_path: Path, text: str, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    side = csv_file(tmp_path / "l.csv", text)
    assert run(str(side), str(side), "--key", "id") == 2
    assert why in capsys.readouterr().err
    (tmp_path / "x.parquet").write_bytes(b"no parquet")
    assert run(str(tmp_path / "x.parquet"), str(side), "--key", "id") == 2
    assert run(str(tmp_path / "none.csv"), str(side), "--key", "id") == 2


@pytest.mark.parametrize("name", ["*", "^a$"])
def test_a_name_that_means_others_is_refused_where_it_is_asked_for(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Polars would read other columns, which may be the same on both sides."""
    sides = [
        parquet_file(tmp_path / f"{number}.parquet", {"id": [1], "a": [2], name: [number]})
        for number in (3, 4)
    ]
    for key in ("id", name):
        assert run(*map(str, sides), "--key", key) == 2
        assert (
            f"The name of the column {name!r} would be read as a pattern" in capsys.readouterr().err
        )
    assert counts(compared(*sides, ignore=[name])) == {"MATCHED_EXACT": 1}


def test_a_broken_record_is_told_and_costs_no_other(tmp_path: Path) -> None:
    left = csv_file(tmp_path / "l.csv", 'id,a\n1,x\n2\n3,"y\ny"\n4,z,z\n5,w\n')
    right = csv_file(tmp_path / "r.csv", 'id,a\n1,x\n3,"y\ny"\n5,v\n')
    result = compared(left, right, folder=tmp_path / "out")
    assert counts(result) == {"MATCHED_EXACT": 2, "MISMATCH": 1}
    assert result.left.broken == 2
    assert result.left.notes == ("line 3: TooFewFields", "line 6: TooManyFields")
    assert not result.agrees
    line = pl.read_parquet(tmp_path / "out" / "differences.parquet").row(0, named=True)
    assert (line["left_at"], line["right_at"]) == (7, 5)


def test_broken_records_that_are_not_listed_are_counted(tmp_path: Path) -> None:
    side = csv_file(tmp_path / "l.csv", "id,a\n" + "1\n" * 23)
    result = compared(side, side)
    assert (result.left.broken, len(result.left.notes)) == (23, 21)
    assert result.left.notes[-2:] == ("line 21: TooFewFields", "3 more that cannot be read")


@pytest.mark.parametrize("block_bytes", [64, 4096])
def test_every_record_that_cannot_be_read_is_in_a_file(tmp_path: Path, block_bytes: int) -> None:
    """With its side, line and content, however the sides are read."""
    left = csv_file(tmp_path / "l.csv", "id,a\n" + "=1\n5,w\n" * 23)
    (tmp_path / "r.csv").write_bytes(b'id,a\n1,"x\ny"\n2,\xff\n3,"a"b\n')
    limits = Limits(block_bytes=block_bytes)
    out = tmp_path / "out"
    compared(left, tmp_path / "r.csv", folder=out, limits=limits)
    with (out / "unreadable.csv").open(newline="") as file:
        header, *found = csv.reader(file)
    assert header == ["side", "line", "reason", "text", "bytes"]
    assert found == [
        *(["left", str(2 + 2 * number), "TooFewFields", "'=1", ""] for number in range(23)),
        ["right", "4", "Encoding", "2,\\xff", "322cff"],
        ["right", "5", "StrayQuote", '3,"a"b', ""],
    ]


def test_sides_that_can_be_read_leave_no_record_unread(tmp_path: Path) -> None:
    side = csv_file(tmp_path / "l.csv", "id,a\n1,x\n")
    compared(side, side, folder=tmp_path / "out")
    assert (tmp_path / "out" / "unreadable.csv").read_text() == "side,line,reason,text,bytes\n"


def test_lines_say_what_was_asked_and_where_long_texts_differ(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As the page and the summary do."""
    sides = [
        str(csv_file(tmp_path / f"{end}.csv", f"id,a,b,c\n1,{'x' * 300}{end},{end},2.0{end}\n"))
        for end in "12"
    ]
    options = ("--ignore", "b", "--tolerance", "c=0.01")
    assert run(*sides, "--key", "id", *options) == 1
    told = capsys.readouterr().out
    assert "key   id\nignored: b\ntolerance: c=0.01\n" in told
    one, other = (f"... from character 301: {end} (301 characters)" for end in "12")
    assert f"1: a {one} -> {other}" in " ".join(told.split())


@pytest.mark.long
def test_packed_files_and_folders_of_parquet_are_sides(tmp_path: Path) -> None:
    plain = csv_file(tmp_path / "l.csv", "id,a\n1,0.1\n2,0.3\n")
    packed = tmp_path / "l.csv.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    folder = tmp_path / "parts"
    folder.mkdir()
    parquet_file(folder / "1.parquet", {"id": [2], "a": [0.3]})
    parquet_file(folder / "2.parquet", {"id": [1], "a": [0.1]})
    for side in (plain, packed, folder):
        for other in (plain, packed, folder):
            assert compared(side, other).agrees
    (tmp_path / "bad.csv.gz").write_bytes(b"no gzip")
    assert run(str(tmp_path / "bad.csv.gz"), str(plain), "--key", "id") == 2


FOLDERS = [
    # files of a folder with a row each; how many rows it has, or why it is refused
    (["a.parquet", "b.pq", "C.PARQUET", "deep/d.Pq", "e.csv"], 4),
    (
        ["TenantsId=1/a.parquet"],
        "the name of the folder 'TenantsId=1' in it holds a value of the column",
    ),
    (["x/TenantsId=1/y=2/a.pq", "b.pq"], "the folder 'TenantsId=1' in it"),
    (["e.csv"], "no Parquet file"),
]


@pytest.mark.parametrize(("names", "told"), FOLDERS)
def test_a_folder_is_read_whole_or_refused(
    tmp_path: Path, names: list[str], told: int | str
) -> None:
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        parquet_file(tmp_path / name, {"Id": [1]})
    if isinstance(told, int):
        assert parquet_side(tmp_path).rows == told
        return
    with pytest.raises(SidesRefused, match=told):
        parquet_side(tmp_path)


BOMB = b"id,a\n" + b"1" * (16 << 20)
PACKERS = {"gz": gzip.compress, "zst": zstandard.ZstdCompressor().compress}
BOMBED = "it unpacks to more than 1000 times its size (RECON_LIMIT_COMPRESSION_RATIO)"
OVER = [
    # a file, its content, a limit, what is refused
    ("a.csv.gz", BOMB, ("FILE_BYTES", "10000000"), "more than 10000000 bytes ({})"),
    ("a.csv.zst", BOMB, ("FILE_BYTES", "10000000"), "more than 10000000 bytes ({})"),
    (
        "a.csv.gz",
        BOMB,
        ("COMPRESSION_RATIO", "900"),
        "it unpacks to more than 900 times its size ({})",
    ),
    ("a.csv.zst", BOMB, ("FILE_BYTES", str(2**40)), BOMBED),
    ("a.csv", b"Id,TenantsId,Name\n1,2,3\n", ("FILE_BYTES", "20"), "more than 20 bytes ({})"),
    ("a.csv", b"Id,TenantsId,Name\n1,2,3\n", ("COLUMNS", "2"), "3 columns; {} is 2"),
    ("a.csv", b"Id,TenantsId,Name", ("RECORD_BYTES", "9"), "no header ends within 9 bytes ({})"),
    # Both name the line that the header begins on.
    ("a.csv", b'\nId,"Tenants\nId",Name\n1,2,3\n', ("COLUMNS", "2"), "3 columns; {} is 2"),
]


@pytest.mark.parametrize(("name", "content", "limit", "why"), OVER)
def test_limits_are_those_of_an_import_and_in_its_words(
    tmp_path: Path,
    name: str,
    content: bytes,
    limit: tuple[str, str],
    why: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    packed = PACKERS.get(name.rpartition(".")[2], bytes)(content)
    path, small = tmp_path / name, csv_file(tmp_path / "small.csv", "id,a\n1,2\n")
    path.write_bytes(packed)
    assert len(packed) < 20_000
    monkeypatch.setenv(f"RECON_LIMIT_{limit[0]}", limit[1])
    monkeypatch.setenv("RECON_LIMIT_BLOCK_BYTES", "100000")
    out = tmp_path / "out"
    assert run(str(path), str(small), "--key", "id", "--out", str(out)) == 2
    told = capsys.readouterr().err
    why = why.format(f"RECON_LIMIT_{limit[0]}")
    todo = "Divide it, or raise the setting if the message names one."
    assert f"over the limit: {why}. {todo}" in " ".join(told.split())
    line = re.search(r"line \d+: over", " ".join(told.split()))
    assert not any(out.iterdir())
    with pytest.raises(SystemExit):
        main(["check", str(path), "--record", "avatar"])
    checked = " ".join(capsys.readouterr().out.split())
    assert why in checked
    assert line is None or line[0] in checked


@pytest.mark.long
def test_a_header_is_read_to_its_end(tmp_path: Path) -> None:
    names = [f"{'n' * 7_000}{number}" for number in range(10)]
    for number in "12":
        cells = [["id", *names], ["1", *(number for _ in names)]]
        text = "\n\n" + "".join(",".join(some) + "\n" for some in cells)
        csv_file(tmp_path / f"{number}.csv", text)
    result = compared(tmp_path / "1.csv", tmp_path / "2.csv")
    assert [(one.name, one.different) for one in result.columns] == [(name, 1) for name in names]
    assert not result.left.broken


@pytest.mark.parametrize("kind", ["RECORD", "FIELD"])
def test_a_record_over_the_limit_of_an_import_costs_no_other(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    side = csv_file(tmp_path / "a.csv", "id,a\n1," + "x" * 50 + "\n2,y\n")
    assert run(str(side), str(side), "--key", "id") == 0
    monkeypatch.setenv(f"RECON_LIMIT_{kind}_BYTES", "49")
    result = compared(side, side)
    assert (result.left.broken, result.left.rows) == (1, 1)


def test_hostile_values_stay_data(tmp_path: Path) -> None:
    name = "<script>alert(1)</script>"
    left = parquet_file(tmp_path / "l.parquet", {"id": ["=1+1"], name: ["<b>\x1b[2J"]})
    right = parquet_file(tmp_path / "r.parquet", {"id": ["=1+1"], name: ["a\nb"]})
    result = compared(left, right, folder=tmp_path / "out")
    page = (tmp_path / "out" / "report.html").read_text()
    assert "<script" not in page
    assert "<b>" not in page
    assert "\x1b" not in page
    assert "default-src 'none'" in page
    assert values(result) == [(name, "<b>\x1b[2J", "a\nb", None)]


@pytest.mark.long
def test_two_runs_write_the_same_bytes(tmp_path: Path) -> None:
    left, right = csv_file(tmp_path / "l.csv", LEFT), csv_file(tmp_path / "r.csv", RIGHT)
    for out in ("one", "two"):
        compared(left, right, folder=tmp_path / out)
    for file in (tmp_path / "one").iterdir():
        assert file.read_bytes() == (tmp_path / "two" / file.name).read_bytes()


def test_a_column_that_stops_being_integers_is_text_all_along(tmp_path: Path) -> None:
    rows = [f"{n},{n}" for n in range(100)]
    left = csv_file(tmp_path / "l.csv", "id,v\n" + "\n".join(rows) + "\n")
    changed = [*rows[:50], "50,050", *rows[51:99], "x99,99"]
    right = csv_file(tmp_path / "r.csv", "id,v\n" + "\n".join(changed) + "\n")
    result = compared(left, right, limits=Limits(block_bytes=64))
    assert counts(result) == {
        "MATCHED_EXACT": 98,
        "MISMATCH": 1,
        "MISSING_IN_TARGET": 1,
        "MISSING_IN_EXTRACT": 1,
    }
    assert values(result) == [("v", "50", "050", None)]
    assert compared(left, parquet_file(tmp_path / "b.parquet", {"id": ["1"], "v": [True]})).pairs


def test_what_is_no_regular_file_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(SidesRefused, match=r"pipe\.csv is no regular file"):
        run_comparison(str(tmp_path / "pipe.csv"), str(tmp_path / "pipe.csv"), key="a")


EMPTY = [
    # a side whose column `v` never has a value
    lambda path: csv_file(path.with_suffix(".csv"), "id,v\n1,\n2,\n"),
    lambda path: parquet_file(path.with_suffix(".parquet"), {"id": [1, 2], "v": [None, None]}),
]


@pytest.mark.parametrize("empty", EMPTY)
@pytest.mark.parametrize(
    ("value", "tolerance"), [("2026-01-02T03:04:05Z", "v=2s"), ("0.5", "v=0.01"), ("7", "v=1%")]
)
def test_a_column_without_values_is_of_any_kind(
    tmp_path: Path, empty: Any, value: str, tolerance: str
) -> None:
    right = empty(tmp_path / "r")
    left = csv_file(tmp_path / "l.csv", f"id,v\n1,{value}\n2,\n")
    for sides in ((left, right), (right, left), (right, right)):
        result = compared(*sides, tolerances=[tolerance])
        assert by_column(result)["v"] == (2, int(left in sides), 0, None)
        assert result.columns[0].remark == ""


def test_two_csv_keys_are_the_same_by_their_text_whatever_the_other_keys_are(
    tmp_path: Path,
) -> None:
    from flows.steps.match.keys import comparable
    from schemas.cells.readings import Reading

    cells = (Reading.CELL, Reading.CELL)
    for integers, others, same in (
        (["1", "2"], ["1.0", "2"], [False, True]),
        (["7", "2"], ["007", "2"], [False, True]),
        (["100", "-3"], ["1e2", "-3"], [False, True]),
    ):
        left = pl.Series(integers).cast(pl.Int64)
        for one, other in ((left, pl.Series(others)), (pl.Series(others), left)):
            first, second = comparable(one, other, cells)
            assert (first == second).to_list() == same


def test_results_go_into_a_folder_that_is_there_and_into_no_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rows that are equal on both sides are pairs as well, whatever is found quickly."""
    rows = "".join(f"{number},1\n" for number in range(50))
    left = csv_file(tmp_path / "l.csv", f"id,v\n{rows}50,1\n")
    right = csv_file(tmp_path / "r.csv", f"id,v\n{rows}50,2\n")
    sides = (str(left), str(right), "--key", "id", "--out")
    assert run(*sides, str(left)) == 2
    assert "l.csv is not a folder" in capsys.readouterr().err
    out = tmp_path / "out"
    out.mkdir()
    assert run(*sides, str(out)) == 1
    summary = json.loads((out / "summary.json").read_text())
    assert summary["pairs"] == 51
    assert summary["statuses"]["MATCHED_EXACT"] == 50


def test_no_result_takes_the_place_of_what_is_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The differences of before are a side like any other, and so is the folder they are in."""
    before = csv_file(tmp_path / "differences.csv", "id,v\n1,1\n")
    link = tmp_path / "link.csv"
    link.symlink_to(before)
    table = tmp_path / "parts" / "day"
    table.mkdir(parents=True)
    parquet_file(table / "a.parquet", {"id": [1], "v": [1]})
    other = csv_file(tmp_path / "r.csv", "id,v\n1,2\n")
    for side, out in (
        (before, tmp_path), (link, tmp_path), (table.parent, table), (table, table / "new"),
    ):  # fmt: skip
        for sides in ((side, other), (other, side)):
            assert run(*map(str, sides), "--key", "id", "--out", str(out)) == 2
            assert f"would be written over {side}" in capsys.readouterr().err
    assert before.read_text() == "id,v\n1,1\n"
    assert [*table.iterdir()] == [table / "a.parquet"]
    assert run(str(table), str(other), "--key", "id", "--out", str(tmp_path / "parts")) == 1


def test_a_full_disk_is_told_of_the_folder_that_is_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever says so: the system, or polars in words of its own; nothing is left behind."""
    with pytest.raises(OSError, match="space") as said:
        pl.DataFrame({"a": range(10**5)}).write_ipc("/dev/full", compression="uncompressed")
    assert no_room(said.value)
    assert no_room(OSError(errno.ENOSPC, "full"))
    assert not no_room(OSError(errno.EACCES, "no right"))
    side = csv_file(tmp_path / "l.csv", "id,a\n1,2\n")

    def full(*_: object) -> None:
        raise said.value

    monkeypatch.setattr("connectors.compare.csv_side.spill", full)
    out = tmp_path / "out"
    with pytest.raises(SidesRefused, match=r"out: No space is left\. Free space or name another"):
        compared(side, side, folder=out)
    assert not any(out.iterdir())
