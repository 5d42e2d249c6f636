"""A canary in every column of every record kind that has secrets is found nowhere afterwards."""

import csv
import json
import logging
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from connectors.files.profiles.profile import DEFAULT
from flows.__main__ import main
from flows.stages.sequence import import_delivery
from flows.stages.workspace import Workspace
from schemas.field import Kind, Table
from schemas.guards.roles import statements
from schemas.tables import EXTRACTS

CANARY = "canary-7"
OUTER = ("Data", "HasError", "Merged", "BatchId", "Jsondata", "ErrorData")
SECRETIVE = [table for table in EXTRACTS.values() if table.secrets]
# A record kind whose every field is a text has rows in error only where a rule says so.
BAD = {"EMail": "zz", "Password": ""}


def shifted(table: Table) -> Iterator[list[str]]:
    """Rows in error with the canary in each column in turn, and with a cell too few."""
    width = len(table.columns)
    for place in range(width):
        row = ["zz"] * width
        row[place] = CANARY
        yield row
        yield [*row[1:], ""]
    yield ["zz"] * (width - 2) + [CANARY]


def write_canaries(folder: Path) -> Iterator[tuple[Path, str | None]]:
    """Deliveries of each record kind with secrets, as itself and inside insert-batch data."""
    for table in SECRETIVE:
        rows = list(shifted(table))
        path = folder / f"{table.name}.csv"
        with path.open("w", newline="") as file:
            csv.writer(file).writerows([table.columns, *rows])
        yield path, None
        path = folder / f"inside-{table.name}.csv"
        with path.open("w", newline="") as file:
            objects = [json.dumps(dict(zip(table.columns, row, strict=False))) for row in rows]
            texts = [",".join(row) for row in rows]
            csv.writer(file).writerows(
                [
                    OUTER,
                    *(["", "", "", 1, one, ""] for one in objects),
                    *([one, "", "", 1, "", ""] for one in texts),
                    *([one, CANARY, CANARY, CANARY, "", CANARY] for one in texts),
                ]
            )
        yield path, table.name
    path = folder / "good.csv"
    path.write_text(
        "TenantsId,PaymentActionsId,Name,ServiceKey\n"
        f"7,1,a,{CANARY}\n7,2,b,{CANARY}\n7,2,b,{CANARY}-2\n"
    )
    yield path, None


def misfits(folder: Path) -> Iterator[tuple[Path, str | None]]:
    """Deliveries whose secrets no header names: it is misspelt, shifted, or not there at all."""
    for table in SECRETIVE:
        names = list(table.columns)
        rows = list(shifted(table))
        twice = [good_one(table, CANARY), good_one(table, f"{CANARY}-2")]
        misspelt = [name[:-1] if name in table.secrets else name for name in names]
        written = {
            "headless": [*rows, *twice],
            "misspelt": [misspelt, *rows, *twice],
            "more": [[*names, "Note"], *([*row, f"{CANARY} note"] for row in (*rows, *twice))],
            "before": [[CANARY, "x"], names, *twice],
        }
        for kind, lines in written.items():
            path = folder / f"{kind}-{table.name}.csv"
            with path.open("w", newline="") as file:
                csv.writer(file).writerows(lines)
            yield path, None
        whole = [row for row in rows if len(row) == len(names)]
        objects = [dict(zip(names, row, strict=True)) for row in (*twice, *whole)]
        other = [dict(zip(misspelt, one.values(), strict=True)) for one in objects]
        nested = [one | {names[-1]: {"x": CANARY}, names[0]: [CANARY]} for one in objects]
        texts = [json.dumps(one) for one in (*other, *nested)]
        texts += [one[:-1] for one in texts[:2]] + [one + CANARY for one in texts[:2]]
        texts += [",".join([*row, CANARY]) for row in twice] + [f'"{CANARY}', f'{CANARY}"x"']
        path = folder / f"inside-more-{table.name}.csv"
        with path.open("w", newline="") as file:
            csv.writer(file).writerows(
                [
                    OUTER,
                    *([one, "", "", 1, "", ""] for one in texts),
                    *(["", "", "", 1, one, ""] for one in texts),
                    *([one, "", "", 1, "", "", CANARY] for one in texts),
                ]
            )
        yield path, table.name


def good_one(table: Table, secret: str) -> list[str]:
    """A row that is taken, with one key whatever its secret."""
    some = {Kind.STRING: "zz", Kind.INTEGER: "7", Kind.INTEGER64: "7"}
    cells = {one.name: some.get(one.kind, "") for one in table}
    cells |= {"EMail": "a@b.cc"} if "EMail" in cells else {}
    return [secret if name in table.secrets else cells[name] for name in table.columns]


def everything_written(*folders: Path) -> Iterator[tuple[str, bytes]]:
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                yield str(path), path.read_bytes()
            if path.suffix == ".xlsx":
                with zipfile.ZipFile(path) as book:
                    yield from ((f"{path}:{name}", book.read(name)) for name in book.namelist())


def everything_readable(connection: psycopg.Connection, role: str) -> Iterator[tuple[str, str]]:
    """All that a role may select, table by table."""
    columns = connection.execute(
        """SELECT c.relname, string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum)
        FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
        WHERE c.relnamespace = 'recon'::regnamespace AND c.relkind IN ('r', 'v')
            AND NOT a.attisdropped AND has_column_privilege(%s, c.oid, a.attnum, 'SELECT')
        GROUP BY 1""",
        [role],
    ).fetchall()
    assert len(columns) > 20
    for name, listed in columns:
        query = f'SELECT {listed} FROM recon."{name}"'
        yield name, str(connection.execute(query).fetchall())  # type: ignore[call-overload]


def around(text: str) -> str:
    place = text.index(CANARY)
    return text[max(0, place - 300) : place + 60]


@pytest.mark.long
@pytest.mark.parametrize("deliveries", [write_canaries, misfits])
def test_a_canary_is_found_nowhere(
    deliveries: Callable[[Path], Iterator[tuple[Path, str | None]]],
    workspace: Workspace,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert workspace.settings.database_url is not None
    monkeypatch.setenv("RECON_DATABASE_URL", workspace.settings.database_url)
    monkeypatch.setenv("RECON_HOME", str(workspace.settings.home))
    caplog.set_level(logging.DEBUG, "recon")
    given, out = tmp_path / "given", tmp_path / "out"
    given.mkdir()
    told: dict[str, str] = {}

    def run(*command: str) -> None:
        with pytest.raises(SystemExit):
            main(list(command))
        printed = capsys.readouterr()
        told[" ".join(command)] = printed.out + printed.err

    for path, inner in deliveries(given):
        profile = replace(DEFAULT, inner_record=inner, constants={"Salt": CANARY})
        if path.stem.startswith(("misspelt", "more")):
            profile = replace(profile, unknown_columns="ignore")
        if path.stem == "user_account":
            profile = replace(profile, constants={})
        batch = import_delivery(workspace, [str(path)], profile).batch.id
        run("check", str(path), "--json")
        run("check", str(path))
        for number in (2, 5):
            run("row", str(batch), path.name, "--line", str(number))
            run("row", str(batch), path.name, "--line", str(number), "--json")
        run("rejects", str(batch), "--out", str(out / str(batch)))
        run("rerun", str(batch), "--json")
    for words in (["status"], ["audit", "list"], ["reconcile"], ["breaks", "list"]):
        run(*words)
    for name, text in told.items():
        assert CANARY not in text, (name, around(text))
    assert CANARY not in caplog.text, around(caplog.text)
    for name, content in everything_written(workspace.settings.reports, out):
        assert CANARY.encode() not in content, (name, around(content.decode(errors="replace")))
    with workspace.database.connect() as connection:
        for statement in statements():
            connection.execute(statement)  # type: ignore[call-overload]
        for name, text in everything_readable(connection, "recon_reader"):
            assert CANARY not in text, (name, around(text))
        # What has to be kept to do its work is kept, out of a reader's reach.
        kept = connection.execute("SELECT DISTINCT value FROM secret_constant").fetchall()
        assert kept == [(CANARY,)]
