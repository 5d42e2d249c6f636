"""A record kind from a TOML file: imported, reconciled, changed, and no line of Python."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import psycopg
import psycopg.conninfo
import pytest

from connectors.errors import SchemaReplaced
from connectors.postgres.database import open_database
from connectors.postgres.runs.break_history import breaks_of_record
from connectors.postgres.schema.own_kinds import STATE, THERE, state_of
from flows.stages.workspace import Workspace
from schemas.guards.roles import statements
from schemas.own_tables import MOST_FIELDS
from schemas.tables import PAYMENT
from tests import recon
from tests.faults.test_frozen import WAITING
from tests.faults.test_lost_server import until
from tests.stages.payments import line
from tests.stages.payments import write as write_payments

REFUND = (Path(__file__).parent / "refund.toml").read_text()
TOP = "Id,TenantsId,PaymentsId,Amount,CurrenciesId,RefundedAt,Reason"
ROWS = (
    "1,7,1,10.50,1,2026-01-05T10:00:00Z,broken",
    "2,7,2,20.00,1,2026-01-05T11:00:00Z,",
    "3,7,1,twenty,1,2026-01-05T12:00:00Z,",
)
FEE = '\n[fields.Fee]\ntype = "double"\namount = true\n'
PIN = '\n[fields.Pin]\ntype = "string"\nsecret = true\n'
RECONCILE = ("reconcile", "--as-of", "2026-01-31")
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(workspace: Workspace, tmp_path: Path) -> Run:
    """`recon` in a process of its own: kinds are read when the field tables are."""
    url, home = str(workspace.settings.database_url), workspace.settings.home
    (tmp_path / "records").mkdir()
    define(tmp_path, REFUND)
    ours = {"RECON_RECORDS": str(tmp_path / "records")}

    def ran(*arguments: str, **more: str) -> "subprocess.CompletedProcess[str]":
        return recon.run(url, home, *arguments, **ours | more)

    return ran


def define(folder: Path, text: str) -> None:
    (folder / "records" / "refund.toml").write_text(text)


def write(folder: Path, *rows: str, top: str = TOP, name: str = "refunds.csv") -> str:
    path = folder / name
    path.write_text("\n".join((top, *rows)) + "\n")
    return str(path)


def test_a_refund_is_imported_reconciled_and_gets_a_field(
    run: Run, rows: Any, tmp_path: Path
) -> None:
    done = run("import", write(tmp_path, *ROWS), "--json")
    assert done.returncode == 1, done.stderr
    told = json.loads(done.stdout)
    assert told["files"][0]["record"] == "refund"  # Nobody said so: it has all its columns.
    assert told["verdicts"] == {"refund": {"rejected": 1, "inserted": 2}}
    assert rows('SELECT sum("Amount")::text FROM refund') == [("30.50",)]
    assert rows("SELECT value, rows FROM note WHERE code = 'ReferenceMissing' ORDER BY 1") == [
        ("1", 1),
        ("2", 1),
    ]
    # A field is added: rows of before have no value, and what was taken in is read as it was.
    define(tmp_path, REFUND + FEE)
    late = "4,7,1,1.50,1,2026-01-06T10:00:00Z,late,0.10"
    more = write(tmp_path, late, top=f"{TOP},Fee", name="b.csv")
    # A file of a documented record is one, whatever kinds there are.
    paid = write_payments(tmp_path / "payments.csv", line(1))
    assert run("import", more, paid).returncode == 0
    assert rows('SELECT "Id", "Fee"::text FROM refund ORDER BY 1') == [
        (1, None),
        (2, None),
        (4, "0.10"),
    ]
    done = run("reconcile", "--as-of", "2026-01-31")
    assert done.returncode == 1, done.stderr
    assert "Refund Amount, currency 1: ties" in done.stdout
    assert "Refund Fee, currency 1: ties" in done.stdout
    assert "MATCHED_EXACT                  3" in done.stdout


def test_a_title_in_any_letters_is_taken_over_whatever_a_database_is_set_to(
    run: Run, rows: Any, tmp_path: Path
) -> None:
    """It was a fault of the program: the session that makes the tables wrote as it was told to."""
    define(tmp_path, REFUND.replace('"Refund"', '"\u0412\u043e\u0437\u0432\u0440\u0430\u0442"'))
    done = run("status", PGCLIENTENCODING="LATIN1", PGDATESTYLE="German", PGTZ="Asia/Tokyo")
    assert done.returncode == 0, done.stderr
    assert rows("SELECT to_regclass('recon.refund') IS NOT NULL") == [(True,)]


@pytest.mark.long
def test_a_reference_that_leads_nowhere_is_a_break_until_it_leads_somewhere(
    run: Run, workspace: Workspace, tmp_path: Path
) -> None:
    def broken() -> list[tuple[str, ...]]:
        assert run("reconcile", "--as-of", "2026-01-31").returncode in (0, 1)
        (folder,) = sorted((workspace.settings.home / "reports").glob("reconciliation-*"))[-1:]
        breaks = pl.read_parquet(folder / "breaks.parquet").filter(record="refund")
        names = ("code", "key", "field", "amount", "note", "state")
        return [tuple(map(str, row)) for row in breaks.select(names).sort("key").iter_rows()]

    paid = tmp_path / "payments.csv"
    both = write_payments(paid, line(2, tenant=8)), write(tmp_path, *ROWS[:2])
    assert run("import", *both).returncode == 0
    missing = ("REFERENCE_MISSING", "1/7", "PaymentsId", "10.500000000000000000")
    other = ("REFERENCE_TENANT", "2/7", "PaymentsId", "20.000000000000000000")
    assert broken() == [
        (*missing, "Payment 1 is not there", "NEW"),
        (*other, "Payment 2 is of another tenant", "NEW"),
    ]
    assert run("import", write_payments(paid, line(1))).returncode == 0
    assert broken() == [(*other, "Payment 2 is of another tenant", "OPEN")]


REFERENCE = REFUND[REFUND.index("[[references]]") :]


@pytest.mark.long
def test_a_definition_is_one_of_the_rules_and_resolves_nothing(
    run: Run, workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    assert run("import", write(tmp_path, ROWS[0])).returncode == 0

    def states(text: str) -> tuple[list[tuple[str, ...]], dict[str, tuple[str, str]]]:
        define(tmp_path, text)
        assert run("records", "apply").returncode == 0
        done = run("reconcile", "--as-of", "2026-01-31")
        assert done.returncode in (0, 1), done.stderr
        (folder,) = sorted((workspace.settings.home / "reports").glob("reconciliation-*"))[-1:]
        breaks = pl.read_parquet(folder / "breaks.parquet").filter(record="refund")
        told = json.loads((folder / "totals.json").read_bytes())["changes"]["rules"]
        keys = {one["key"]: (one["old"], one["new"]) for one in told}
        return breaks.select("code", "state").rows(), keys

    missing = "REFERENCE_MISSING"
    first, _ = states(REFUND)
    assert first == [(missing, "NEW")]
    key = "record kind refund: reference PaymentsId"
    payment = "payment.Id of the same tenant"
    # Who takes the reference away, or what it is about, has not mended it.
    assert states(REFUND.replace(REFERENCE, "")) == (
        [(missing, "NOT_LOOKED_AT")],
        {key: (payment, "")},
    )
    # It stays so: nobody has looked, also by what else is defined otherwise.
    again, changed = states(REFUND.replace(REFERENCE, "") + FEE)
    assert again == [(missing, "NOT_LOOKED_AT")]
    assert changed.keys() == {key, "record kind refund: field Fee"}
    assert states(REFUND + FEE)[0] == [(missing, "REOPENED")]
    # What is really there now is resolved, and listed no more, whatever the definition says.
    assert run("import", write_payments(tmp_path / "payments.csv", line(1))).returncode == 0
    assert states(REFUND.replace(REFERENCE, "") + FEE)[0] == []
    told = rows("SELECT what, detail::json ->> 'record', detail::json ->> 'changes' FROM event "
                "WHERE what LIKE 'record kind %' ORDER BY id")  # fmt: skip
    assert told[:2] == [
        ("record kind made", "refund", None),
        ("record kind changed", "refund", '["it referred to other records"]'),
    ]
    assert len(told) == 5


LINE = """name = "refund"
key = ["Id", "TenantsId"]
[fields.Id]
type = "integer"
required = true
[fields.TenantsId]
type = "integer"
required = true
"""
TARGET_CHANGES = [
    pytest.param(LINE, id="the column is gone"),
    pytest.param(f'{LINE}[fields.Code]\ntype = "string"\n', id="the column is a text"),
    pytest.param(None, id="the kind is gone"),
]


@pytest.mark.long
@pytest.mark.parametrize("shop", TARGET_CHANGES)
def test_a_change_of_what_was_referred_to_neither_stops_a_run_nor_resolves_a_break(
    run: Run, workspace: Workspace, tmp_path: Path, shop: str | None
) -> None:
    fee = f'{LINE}[fields.ShopCode]\ntype = "integer"\n'
    refers = '[[references]]\nfield = "ShopCode"\nrecord = "shop"\ncolumn = "Code"\n'
    path = tmp_path / "records" / "shop.toml"
    path.write_text(f'{LINE}[fields.Code]\ntype = "integer"\n'.replace("refund", "shop"))
    define(tmp_path, fee + refers)

    def states(*words: str) -> list[list[str]]:
        done = run(*words)
        assert done.returncode in (0, 1), done.stderr
        return [
            pl.read_parquet(path).filter(code="REFERENCE_MISSING")["state"].to_list()
            for path in sorted(workspace.settings.reports.glob("reconciliation-*/breaks.parquet"))
        ]

    delivered = write(tmp_path, "1,7,44", top="Id,TenantsId,ShopCode")
    assert states("import", delivered, recon.THEN, *RECONCILE) == [["NEW"]]
    define(tmp_path, fee)
    if shop is None:
        path.unlink()
    else:
        path.write_text(shop.replace("refund", "shop"))
    # It is not resolved: nobody can look.
    then = (recon.THEN, *RECONCILE)
    assert states("records", "apply", *then, *then) == [["NEW"], *[["NOT_LOOKED_AT"]] * 2]


SCORE = '\n[fields.Score]\ntype = "datetime"\n'


@pytest.mark.long
def test_rows_are_proven_that_were_staged_by_an_earlier_definition(
    run: Run, workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    """A field less, one more, one with the name of another, and another order: nothing is lost."""
    define(tmp_path, REFUND + SCORE)
    (tmp_path / "careful.toml").write_text('feed = "careful"\n[budget]\nerrors = 0\n')
    careful = ("--profile", str(tmp_path / "careful.toml"))
    held = write(tmp_path, ROWS[1], ROWS[2], name="held.csv")
    row = ("row", "1", "refunds.csv", "--line", "2")
    assert run("import", write(tmp_path, ROWS[0])).returncode == 0
    assert run("import", held, *careful).returncode == 1
    reason = REFUND[REFUND.index("[fields.Reason]") : REFUND.index(REFERENCE)]
    at = REFUND.index("[fields.RefundedAt]")
    moved = REFUND[:at] + reason + REFUND[at:].replace(reason, "")
    for text in (REFUND, REFUND + FEE, moved + FEE + SCORE.replace("datetime", "double")):
        define(tmp_path, text)
        shown = run(*row)
        assert "the hash of the rows that were staged with it proves the rest" in " ".join(
            shown.stdout.split()
        ), shown.stderr

    def set_to(column: str, *values: str) -> None:
        with workspace.database.connect() as connection:
            connection.execute("SET session_replication_role = replica")
            for batch, value in enumerate(values, start=1):
                connection.execute(
                    f'UPDATE staged_refund SET "{column}" = {value} '
                    f"WHERE (batch_id, record_number) = ({batch}, 1)"
                )

    for column, value, *before in (
        ("Reason", "'x'", "'broken'", "NULL"),
        ("Fee", "1", "NULL", "NULL"),
    ):
        set_to(column, value, value)
        assert "are not those that were staged" in run(*row).stderr
        assert "not hash to what the 1 staged row did" in " ".join(run(*RECONCILE).stdout.split())
        # Nor is such a row applied, or sent.
        done = run("release", "2", "--reason", "known")
        assert done.returncode == 2
        assert "somebody altered rows that were staged" in done.stderr
        set_to(column, *before)
    assert run("release", "2", "--reason", "known").returncode == 1


@pytest.mark.long
def test_a_number_tells_the_newer_version(run: Run, rows: Any, tmp_path: Path) -> None:
    marked = "version = true\nbusiness_date = true"
    text = REFUND.replace(marked, "business_date = true")
    define(tmp_path, f'{text}\n[fields.Round]\ntype = "integer"\nrequired = true\nversion = true\n')
    first, second = ("1,7,1,10.50,1,2026-01-05T10:00:00Z,a,2", "1,7,1,9,1,2026-01-05T10:00:00Z,a,1")
    for number, of in enumerate((first, second, "2,7,x,1,1,2026-01-05T10:00:00Z,a,1")):
        path = write(tmp_path, of, top=f"{TOP},Round", name=f"{number}.csv")
        assert run("import", path).returncode == (number == 2)
    assert rows('SELECT "Amount"::text, "Round" FROM refund') == [("10.50", 2)]
    done = run("reconcile", "--as-of", "2026-01-31")
    assert done.returncode == 1, done.stderr
    assert "Not reconciled" in done.stdout


@pytest.mark.long
def test_a_refund_that_was_changed_is_a_break(
    run: Run, workspace: Workspace, tmp_path: Path
) -> None:
    assert run("import", write(tmp_path, *ROWS[:2])).returncode == 0
    with workspace.database.connect() as connection:
        connection.execute('UPDATE refund SET "Amount" = 21 WHERE "Id" = 2')
    done = run("reconcile", "--as-of", "2026-01-31")
    assert "Refund 2/7" in done.stdout
    (folder,) = (workspace.settings.home / "reports").glob("reconciliation-*")
    assert "2,7,2,20.00" in (folder / "corrections" / "refund.csv").read_text()


FLAGS = """name = "refund"
key = ["Id"]
[fields.Id]
type = "64-bit integer"
required = true
[fields.Paid]
type = "boolean"
[fields.Open]
type = "boolean"
required = true
"""


@pytest.mark.long
def test_flags_beside_numbers_alone_are_imported(run: Run, rows: Any, tmp_path: Path) -> None:
    """No documented record has a flag and no text, so that its rows go in binary."""
    define(tmp_path, FLAGS)
    path = write(tmp_path, "1,true,0", "2,,1", "3,False,true", top="Id,Paid,Open")
    done = run("import", path, RECON_LIMIT_STRICT_BYTES="1")
    assert done.returncode == 0, done.stderr
    kept = [(1, True, False), (2, None, True), (3, False, True)]
    for table in ("refund", "staged_refund"):
        assert rows(f'SELECT "Id", "Paid", "Open" FROM {table} ORDER BY 1') == kept


CHANGES = [
    # before, after, what is said
    ('key = ["Id", "TenantsId"]', 'key = ["Id"]', "its key was Id, TenantsId"),
    ('currency = "CurrenciesId"', 'currency = "TenantsId"', "its currency was CurrenciesId"),
    ('[fields.Reason]\ntype = "string"\n', "", "it had the field Reason"),
    ('"double"', '"string"', "Amount was of type double"),
    ("amount = true\n", "", "Amount was an amount"),
    ('type = "string"', 'type = "string"\nrequired = true', "Reason was not required"),
]


def test_each_mistake_is_told_on_a_line_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "refund.toml").write_text(f"{REFUND.replace('double', 'money')}{PIN}note = 7\n")
    done = recon.run("", tmp_path, "fields", "refund", RECON_RECORDS=str(tmp_path))
    told = [line.partition("refund.toml, ")[::2] for line in done.stderr.splitlines()]
    assert [text.partition(" = ")[0] for _, text in told] == [
        "line 21: fields.Amount.type",
        "line 46: fields.Pin.note",
    ]
    assert {begin.startswith("recon: ") for begin, _ in told} == {True}


@pytest.mark.long
def test_what_would_lose_something_is_refused(run: Run, rows: Any, tmp_path: Path) -> None:
    assert run("import", write(tmp_path, ROWS[0])).returncode == 0
    for before, after, said in CHANGES:
        text = REFUND.replace(before, after).replace("amount = true\n" * (after == '"string"'), "")
        define(tmp_path, text)
        done = run("status")
        assert (done.returncode, said in done.stderr) == (2, True), done.stderr
    (tmp_path / "nothing").mkdir()
    other = run("status", RECON_RECORDS=str(tmp_path / "nothing"))
    assert other.returncode == 2
    assert "has the record kind refund, which is not defined here" in other.stderr
    define(tmp_path, REFUND)
    assert run("status").returncode == 0
    gone = run("records", "apply", RECON_RECORDS=str(tmp_path / "nothing"))
    assert "batches have rows of it" in gone.stderr
    assert rows("SELECT count(*) FROM refund") == [(1,)]


@pytest.mark.long
def test_a_refund_is_not_sent_and_a_push_says_so(run: Run, tmp_path: Path) -> None:
    assert run("import", write(tmp_path, *ROWS[:2])).returncode == 0
    # Nobody listens there, and nobody is asked.
    service = {"RECON_SERVICE_URL": "http://127.0.0.1:9"}
    done = run("push", "1", **service)
    assert done.returncode == 0, done.stderr
    assert "Refund: not sent, because its definition names no operation" in done.stdout
    told = json.loads(run("push", "1", "--json", **service).stdout)
    assert [one["not_sent"] for one in told["batches"]] == [["refund"]]
    done = run("import", write(tmp_path, ROWS[1], name="b.csv"), "--push", **service)
    assert done.returncode == 0, done.stderr
    assert "Refund: not sent, because its definition names no operation" in done.stdout


@pytest.mark.long
def test_before_anything_is_delivered_all_may_change(run: Run, rows: Any, tmp_path: Path) -> None:
    assert run("status").returncode == 0
    define(tmp_path, REFUND.replace('key = ["Id", "TenantsId"]', 'key = ["Id"]'))
    assert run("status").returncode == 0
    assert run("import", write(tmp_path, ROWS[0])).returncode == 0
    assert rows(
        "SELECT array_agg(attname::text) FROM pg_index JOIN pg_attribute ON attrelid = indrelid "
        "AND attnum = ANY (indkey) WHERE indrelid = 'refund'::regclass AND indisprimary"
    ) == [(["Id"],)]


@pytest.mark.long
def test_a_field_that_no_row_holds_goes_again(run: Run, rows: Any, tmp_path: Path) -> None:
    define(tmp_path, REFUND + '\n[fields.Clerk]\ntype = "string"\n')
    assert run("import", write(tmp_path, ROWS[0])).returncode == 0
    define(tmp_path, REFUND)
    done = run("status")
    assert done.returncode == 0, done.stderr
    columns = "SELECT count(*) FROM pg_attribute WHERE attname = 'Clerk' AND NOT attisdropped"
    assert rows(columns) == [(0,)]
    done = run("reconcile", "--as-of", "2026-01-31")
    assert "Refund Amount, currency 1: ties" in done.stdout, done.stderr


def test_a_secret_of_ones_own_is_shown_nowhere(
    run: Run, workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    define(tmp_path, REFUND + PIN)
    top = "Id,TenantsId,PaymentsId,Amount,CurrenciesId,RefundedAt,Pin"
    clean, rejected = (f"{record},2026-01-05T10:00:00Z" for record in ("1,7,1,10,1", "2,7,1,ten,1"))
    path = write(tmp_path, f"{clean},canary-7", f"{rejected},canary-7", top=top)
    profile = tmp_path / "feed.toml"
    profile.write_text('feed = "f"\nrecord = "refund"\n[constants]\nPin = "canary-8"\n')
    stated = write(tmp_path, f"3{clean[1:]}", f"4{rejected[1:]}", name="b.csv",
                   top=top.removesuffix(",Pin"))  # fmt: skip
    commands = (
        ["check", path],
        ["profile", "draft", path],
        ["profile", "try", stated, "--profile", str(profile)],
        ["import", path],
        ["import", stated, "--profile", str(profile)],
        *(["row", "1", "refunds.csv", "--record", record] for record in "12"),
        *(["row", "2", "b.csv", "--record", record] for record in "12"),
        RECONCILE,
        ["rejects", "1", "--out", str(tmp_path / "rejects")],
    )
    done = run(*(word for command in commands for word in (*command, recon.THEN)))
    assert done.returncode in (0, 1), done.stderr
    assert "canary" not in done.stdout + done.stderr
    kept = [*(workspace.settings.home / "reports").rglob("*"), *(tmp_path / "rejects").glob("*")]
    for file in kept:
        assert not file.is_file() or b"canary" not in file.read_bytes(), file
    assert "canary" not in str(rows("SELECT * FROM event") + rows("SELECT profile FROM batch"))
    assert rows('SELECT "Pin" FROM refund ORDER BY "Id"') == [("canary-7",), ("canary-8",)]


def grant_roles(workspace: Workspace) -> None:
    with workspace.database.connect() as connection:
        for statement in statements():
            connection.execute(statement)


@pytest.mark.long
def test_whoever_may_not_see_secrets_is_shown_none_of_ones_own(
    run: Run, workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    """Readers were, of a kind that came behind the roles, or that whoever grants them has not."""

    grant_roles(workspace)
    define(tmp_path, REFUND + PIN)
    (tmp_path / "records" / "fee.toml").write_text(
        REFUND.replace('"refund"', '"fee"').replace('"Refund"', '"Fee"').replace("Amount", "Fee")
    )
    top = f"{TOP},Pin"
    path = write(tmp_path, f"{ROWS[0]},canary-7", f"{ROWS[2]}canary,canary-7", top=top)
    fees = write(tmp_path, ROWS[0], top=TOP.replace("Amount", "Fee"), name="fees.csv")
    assert run("import", path, fees).returncode == 1
    asked = (
        "SELECT * FROM recon.shown_row",
        "SELECT * FROM recon_shown.staged_refund",
        'SELECT "Id", "Amount" FROM recon.refund',
    )
    for again in (False, True):
        if again:
            grant_roles(workspace)  # As on a machine without the definitions.
            asked = asked[:1]
        with workspace.database.connect() as connection:
            connection.execute("SET ROLE recon_reader")
            seen = [connection.execute(one).fetchall() for one in asked]
        assert len(seen[0]) == 3
        assert "canary" not in str(seen)
        assert ("broken" in str(seen[0])) is not again  # What has no secret is shown.


@pytest.mark.long
def test_what_a_version_makes_is_the_same_whatever_kinds_there_are(tmp_path: Path) -> None:
    """Each command made it anew, and an account that may not was refused."""
    operation = '[operation]\nname = "EditRefund"\nmethod = "PUT"\npath = "/refunds/{Id}"\n'
    (tmp_path / "refund.toml").write_text(f"{REFUND}{PIN}{operation}")
    said = (
        "from connectors.postgres.migrations import DERIVED_HASH;"
        "from connectors.postgres.schema.revisions import newest_derived;"
        "print(DERIVED_HASH == newest_derived())"
    )
    where = {**os.environ, "RECON_RECORDS": str(tmp_path)}
    assert subprocess.check_output([sys.executable, "-c", said], env=where) == b"True\n"


CLERK = '\n[fields.Clerk]\ntype = "string"\n'
TIGHTER = f'{CLERK}rules = ["NotNull"]\n'


@pytest.mark.long
@pytest.mark.parametrize(
    ("before", "top", "more", "after"),
    [
        pytest.param(CLERK, TOP, "", TIGHTER, id="a field has to be there now"),
        pytest.param(CLERK, f"{TOP},Clerk", ",", "", id="a field less"),
    ],
)
def test_files_of_before_are_read_by_another_definition(
    run: Run, workspace: Workspace, tmp_path: Path, before: str, top: str, more: str, after: str
) -> None:
    define(tmp_path, REFUND + before)
    path = write(tmp_path, *(row + more for row in ROWS), top=top)
    assert run("import", path).returncode == 1
    late = write(tmp_path, ROWS[0] + more, top=top, name="late.csv")
    assert run("import", late, CRASH_AT="copy").returncode != 0
    define(tmp_path, REFUND + after)
    assert "jsondata" in run("row", "1", "refunds.csv", "--line", "2").stdout
    run("rejects", "1", "--out", str(tmp_path / "rejects"))
    (rejects,) = (tmp_path / "rejects").glob("*.csv")
    assert "twenty" in rejects.read_text()
    done = run("reconcile", "--as-of", "2026-01-31")
    assert "Refund 1/7" in done.stdout, done.stderr
    (folder,) = (workspace.settings.home / "reports").glob("reconciliation-*")
    assert "1,7,1,10.50" in (folder / "corrections" / "refund.csv").read_text()
    if after == TIGHTER:
        done = run("rerun", "2")
        said = "late.csv of batch 2 was taken in as refund, and does not fit the definition of that"
        assert (done.returncode, said in done.stderr) == (2, True), done.stderr


@pytest.mark.long
def test_rows_are_not_forgotten_where_their_files_cannot_be_read_again(
    run: Run, rows: Any, tmp_path: Path
) -> None:
    define(tmp_path, REFUND + CLERK)
    (tmp_path / "p.toml").write_text('feed = "shop"\n[budget]\nerrors = 0\n')
    path = write(tmp_path, *(f"{row}," for row in ROWS), top=f"{TOP},Clerk")
    assert "held" in run("import", path, "--profile", str(tmp_path / "p.toml")).stdout
    define(tmp_path, REFUND)
    done = run("rerun", "1", "--from-start")
    said = "does not fit the definition of that any more"
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr
    assert rows("SELECT state, (SELECT count(*) FROM staged_refund) FROM batch") == [("held", 3)]
    assert run("release", "1", "--reason", "test").returncode == 1
    assert rows("SELECT count(*) FROM refund") == [(2,)]


@pytest.mark.long
@pytest.mark.parametrize("name", ["point", "money"])
def test_a_kind_that_is_called_like_a_type_is_undone(
    run: Run, rows: Any, tmp_path: Path, name: str
) -> None:
    define(tmp_path, REFUND.replace('"refund"', f'"{name}"'))
    assert run("import", write(tmp_path, ROWS[0])).returncode == 0
    newer = ROWS[0].replace("10.50", "11").replace("01-05", "01-06")
    assert run("import", write(tmp_path, newer)).returncode == 0
    done = run("undo", "2", "--reason", "test")
    assert done.returncode == 0, done.stderr
    assert rows(f'SELECT "Amount"::text FROM {name}') == [("10.50",)]


@pytest.mark.long
def test_a_machine_that_is_behind_leads_nothing_back(run: Run, rows: Any, tmp_path: Path) -> None:
    define(tmp_path, REFUND)
    assert run("status").returncode == 0
    define(tmp_path, REFUND + FEE)
    assert run("status").returncode == 0
    (tmp_path / "behind").mkdir()
    (tmp_path / "behind" / "refund.toml").write_text(REFUND)
    behind = {"RECON_RECORDS": str(tmp_path / "behind")}
    done = run("status", **behind)
    assert (done.returncode, "defined here as it was before" in done.stderr) == (2, True)
    listed = json.loads(run("records", "list", "--json", **behind).stdout)
    assert listed == {
        "records": [
            {
                "record": "refund",
                "title": "Refund",
                "state": "other in the database: it had the field Fee",
            }
        ]
    }
    # What the database works with is written for it.
    assert run("records", "export", str(tmp_path / "there"), **behind).returncode == 0
    assert run("status", RECON_RECORDS=str(tmp_path / "there")).returncode == 0
    again = run("records", "export", str(tmp_path / "there"), **behind)
    assert (again.returncode, "exists already" in again.stderr) == (2, True)
    # Or somebody wants it to be as it was; then the other machine is behind.
    assert run("records", "apply", **behind).returncode == 0
    assert "defined here as it was before" in run("status").stderr
    assert run("status", **behind).returncode == 0


@pytest.mark.long
def test_who_opened_a_database_is_told_that_its_kinds_are_others_since(
    run: Run, workspace: Workspace, tmp_path: Path
) -> None:
    def state() -> tuple[str, str]:
        with workspace.database.connect() as connection:
            ((told,),) = connection.execute(f"SELECT {STATE}").fetchall()
            rows = connection.execute(THERE.replace("%", "%%")).fetchall()
        return told, state_of(rows)

    opened = open_database(workspace.settings)
    states = [state()]
    # Each change of what is defined: a kind is made, and loses a field.
    for text in (REFUND + FEE, REFUND):
        with opened.connect():
            pass
        define(tmp_path, text)
        if text == REFUND:
            assert run("records", "apply").returncode == 0
        assert run("status").returncode == 0
        states.append(state())
        for one in (opened, opened.as_login("nobody"), opened.for_job(1)):
            with pytest.raises(SchemaReplaced, match="start it again"), one.connect():
                pass
        opened = replace(opened, kinds=states[-1][0])
    assert all(by_server == ours for by_server, ours in states)
    assert len({*states}) == 3


@pytest.mark.long
def test_a_kind_that_was_never_delivered_can_be_removed(
    run: Run, rows: Any, tmp_path: Path
) -> None:
    assert run("status").returncode == 0
    (tmp_path / "nothing").mkdir()
    none = {"RECON_RECORDS": str(tmp_path / "nothing")}
    done = run("status", **none)
    assert (done.returncode, "`recon records apply`" in done.stderr) == (2, True)
    assert run("records", "apply", **none).returncode == 0
    assert run("status", **none).returncode == 0
    assert rows("SELECT to_regclass('refund')::text, to_regclass('staged_refund')::text") == [
        (None, None)
    ]


@pytest.mark.long
def test_a_name_that_somebody_gave_something_of_theirs_is_refused(
    run: Run, workspace: Workspace, tmp_path: Path
) -> None:
    with workspace.database.connect() as connection:
        connection.execute("CREATE TABLE refund_key (id int)")
    done = run("status")
    assert done.returncode == 2
    assert "has something named refund_key already. Give the kind another name" in done.stderr
    assert f"{tmp_path / 'records' / 'refund.toml'}: the record kind refund" in done.stderr


@pytest.mark.long
def test_a_role_that_does_not_own_the_schema_works_with_kinds_and_makes_none(
    run: Run, workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    grant_roles(workspace)
    with workspace.database.connect() as connection:
        name = f"clerk_{os.getpid()}"
        connection.execute(f"CREATE ROLE {name} LOGIN IN ROLE recon_merger")
    assert workspace.settings.database_url is not None
    info = psycopg.conninfo.conninfo_to_dict(workspace.settings.database_url)
    clerk = "postgresql://{user}@/{dbname}?host={host}&port={port}".format(
        **{"port": 5432, **info, "user": name}
    )
    try:
        refused = run("status", RECON_DATABASE_URL=clerk)
        assert refused.returncode == 2
        assert "once as the owner of the schema" in refused.stderr
        assert run("status").returncode == 0
        done = run("import", write(tmp_path, *ROWS[:2]), RECON_DATABASE_URL=clerk)
        assert done.returncode == 0, done.stderr
        assert rows("SELECT count(*) FROM refund") == [(2,)]
    finally:
        with workspace.database.connect() as connection:
            connection.execute(f"DROP OWNED BY {name}")
            connection.execute(f"DROP ROLE {name}")


@pytest.mark.long
def test_a_kind_is_made_while_records_of_another_one_are_written(
    run: Run, workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    grant_roles(workspace)
    with workspace.database.connect() as connection:
        assert run("status").returncode == 0
        (tmp_path / "records" / "fee.toml").write_text(
            REFUND.replace('"refund"', '"fee"').replace('"Refund"', '"Fee"')
        )
        with connection.transaction():
            connection.execute("LOCK TABLE refund, staged_refund IN ROW EXCLUSIVE MODE")
            done = run("status", RECON_LIMIT_DATABASE_WAIT_SECONDS="1")
            assert done.returncode == 0, done.stderr
        # As a migration does.
        connection.execute("DROP VIEW recon_shown.staged_refund")
        (tmp_path / "records" / "fee.toml").write_text(
            REFUND.replace('"refund"', '"fee"').replace('"Refund"', '"Charge"')
        )
        assert run("status").returncode == 0
    told = "SELECT count(*) FROM pg_policies WHERE policyname = 'seen' AND tablename = ANY(%s)"
    assert rows(told, [["refund", "fee"]]) == [(2,)]
    views = "SELECT relname FROM pg_class WHERE relnamespace = 'recon_shown'::regnamespace"
    assert {("staged_refund",), ("staged_fee",)} <= {*rows(views)}


@pytest.mark.long
def test_a_tenant_that_no_row_has_is_taken_away_where_roles_look_by_it(
    run: Run, workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    memo = """name = "refund"
key = ["Id"]
[fields.Id]
type = "integer"
required = true
"""
    grant_roles(workspace)
    define(tmp_path, memo + '[fields.TenantsId]\ntype = "integer"\n')
    done = run("import", write(tmp_path, "1,", top="Id,TenantsId"))
    assert done.returncode == 0, done.stderr
    policy = "SELECT qual ~ 'TenantsId' FROM pg_policies WHERE (tablename, policyname) = (%s, %s)"
    seen: list[Any] = []
    for text in (None, memo):
        if text:
            define(tmp_path, text)
        done = run("status")
        assert done.returncode == 0, done.stderr
        seen += rows(policy, ["refund", "seen"])
    assert seen == [(True,), (False,)]


@pytest.mark.long
def test_documented_records_are_what_they_were(run: Run, rows: Any, tmp_path: Path) -> None:
    # A kind with all columns of a payment, and one more name for it.
    define(tmp_path, REFUND.replace('"refund"', '"payback"'))
    assert run("import", write_payments(tmp_path / "payments.csv", line(1))).returncode == 0
    assert rows("SELECT record FROM staged_row") == [("payment",)]
    done = run("import", write(tmp_path, *ROWS[:2]), "--push")
    assert "Traceback" not in done.stderr
    assert run("undo", "1", "--reason", "again").returncode == 0


@pytest.mark.long
def test_a_record_inside_another_is_what_it_was(run: Run, rows: Any, tmp_path: Path) -> None:
    """A kind with all fields of a payment that are required makes no payment doubtful."""
    named = [f'[fields.{of.name}]\ntype = "{of.kind.value}"\nrequired = true\n' for of in PAYMENT]
    payout = 'name = "payout"\nkey = ["Id"]\n' + "".join(named)
    (tmp_path / "records" / "payout.toml").write_text(payout + '[fields.Clerk]\ntype = "string"\n')
    values = dict(zip(PAYMENT.columns, line(1).split(","), strict=True))
    inside = json.dumps(values).replace('"', '""')
    top = "Data,HasError,Merged,BatchId,Jsondata,ErrorData"
    assert run("import", write(tmp_path, f',,,7,"{inside}",', top=top)).returncode == 0
    assert rows("SELECT record FROM staged_row ORDER BY 1") == [("payment",)]
    # A header that is more than one of payments, and whole of the kind, is one of the kind.
    path = write(
        tmp_path, f"{line(2)},Ann", top=",".join((*PAYMENT.columns, "Clerk")), name="p.csv"
    )
    assert run("import", path).returncode == 0
    assert rows('SELECT "Id", "Clerk" FROM payout') == [(2, "Ann")]


@pytest.mark.long
def test_fields_stay_where_lines_without_names_have_their_cells(
    run: Run, rows: Any, tmp_path: Path
) -> None:
    """Else a line of the same feed is read as another record, and nothing notices."""
    (tmp_path / "inside.toml").write_text(
        'feed = "inside"\nrecord = "insert_batch_data"\ninner_record = "refund"\n'
    )
    profile = ("--profile", str(tmp_path / "inside.toml"))

    def lines(*of: str) -> str:
        return write(tmp_path, *(f'"{one}",' for one in of), top="Data,Jsondata", name=of[0][0])

    payment = '[fields.PaymentsId]\ntype = "64-bit integer"\nrequired = true\n'
    at = REFUND.index("[fields.Id]")
    moved = REFUND[:at] + payment + REFUND[at:].replace(payment, "")
    assert moved != REFUND
    assert run("import", lines(ROWS[0]), *profile).returncode == 0
    define(tmp_path, moved)
    done = run("import", lines(ROWS[1]), *profile)
    assert done.returncode == 2, rows('SELECT "Id", "PaymentsId" FROM refund')
    assert "its fields had another order; batch 1: its feed brings lines of the kind" in done.stderr
    assert rows('SELECT "Id", "PaymentsId" FROM refund') == [(1, 1)]
    define(tmp_path, REFUND + FEE)
    assert run("import", lines(f"{ROWS[1]},"), *profile).returncode == 0
    assert rows('SELECT "Id", "PaymentsId" FROM refund ORDER BY 1') == [(1, 1), (2, 2)]


@pytest.mark.long
def test_a_kind_of_very_many_fields(run: Run, rows: Any, tmp_path: Path) -> None:
    more = "".join(f'\n[fields.F{number}]\ntype = "string"\n' for number in range(200))
    title = REFUND.replace('"Refund"', r"""'50% of {all}: "theirs" and ours'""")
    define(tmp_path, title + more.replace('"string"', '"string"\nnote = "50% it\'s"'))
    names = ",".join(f"F{number}" for number in range(200))
    row = f"{ROWS[0]},{',' * 100}x{',' * 99}"
    path = write(tmp_path, row, top=f"{TOP},{names}")
    done = run("import", path)
    assert done.returncode == 0, done.stderr
    ((told,),) = rows("SELECT jsondata FROM staged_row")
    assert list(json.loads(told)) == [*TOP.split(","), "F100"]


@pytest.mark.long
def test_kinds_of_our_own_refer_to_each_other(run: Run, rows: Any, tmp_path: Path) -> None:
    (tmp_path / "records" / "receipt_line.toml").write_text(
        'name = "receipt_line"\nkey = ["Id"]\n[fields.Id]\ntype = "integer"\nrequired = true\n'
        '[fields.RefundsId]\ntype = "64-bit integer"\n'
        '[[references]]\nfield = "RefundsId"\nrecord = "refund"\n'
    )
    profile = tmp_path / "strict.toml"
    profile.write_text('feed = "strict"\n[policy]\nreference = "reject"\n')
    folder = tmp_path / "delivery"
    folder.mkdir()
    write(folder, "1,1", "2,2", "3,9", top="Id,RefundsId", name="a.csv")
    assert run("import", write(tmp_path, ROWS[1])).returncode == 0
    payments = write_payments(tmp_path / "payments.csv", line(1))
    assert run("import", payments).returncode == 0
    write(folder, ROWS[0], name="b.csv")
    assert run("import", str(folder), "--profile", str(profile)).returncode == 1
    # One refund was there, one came with the delivery, one is nowhere.
    assert rows('SELECT "Id", "RefundsId" FROM receipt_line ORDER BY 1') == [(1, 1), (2, 2)]


@pytest.mark.long
def test_corrections_rows_templates_and_comparisons_are_those_of_any_record(
    run: Run, rows: Any, tmp_path: Path
) -> None:
    assert run("fields", "refund", "--template").stdout.strip() == TOP
    path = write(tmp_path, *ROWS)
    assert run("check", path).returncode == 1
    assert run("import", path).returncode == 1
    shown = run("row", "1", "refunds.csv", "--line", "2")
    assert "jsondata" in shown.stdout
    folder = tmp_path / "rejects"
    run("rejects", "1", "--out", str(folder))
    (rejects,) = folder.glob("*.csv")
    rejects.write_text(rejects.read_text().replace("twenty", "20.5"))
    assert run("import", str(rejects), "--corrects", "1").returncode == 0
    assert rows('SELECT sum("Amount")::text FROM refund') == [("51.00",)]


@pytest.mark.long
def test_a_file_that_defines_nothing_is_said_and_no_traceback(run: Run, tmp_path: Path) -> None:
    define(tmp_path, REFUND.replace('"64-bit integer"', '"integr"', 1))
    done = run("status")
    assert done.returncode == 2
    assert "refund.toml, line 8: fields.Id.type = 'integr' is none. Did you mean integer?" in (
        done.stderr
    )


@pytest.mark.long
@pytest.mark.parametrize("kind", ["datetime with offset", "string", "double", "64-bit integer"])
def test_a_row_of_as_many_fields_as_there_may_be_is_kept(
    run: Run, rows: Any, tmp_path: Path, kind: str
) -> None:
    value = {
        "datetime with offset": "2026-01-05T10:00:00+01:00",
        "string": "x" * 120,  # Shorter than what the server would keep elsewhere.
        "double": "123456.123456",
        "64-bit integer": "1",
    }[kind]
    names = [f"F{number}" for number in range(MOST_FIELDS - 1)]
    fields = "".join(f'[fields.{name}]\ntype = "{kind}"\n' for name in names)
    define(
        tmp_path,
        f'name = "refund"\nkey = ["Id"]\n[fields.Id]\ntype = "integer"\nrequired = true\n{fields}',
    )
    path = tmp_path / "wide.csv"
    path.write_text(
        "\n".join([",".join(["Id", *names]), ",".join(["1", *[value] * len(names)]), ""])
    )
    done = run("import", str(path), "--record", "refund")
    assert done.returncode == 0, done.stdout + done.stderr
    assert rows("SELECT count(*) FROM refund") == [(1,)]


PLACE = """name = "place"
key = ["Name"]
[fields.Name]
type = "string"
required = true
[fields.Street]
type = "string"
[fields.City]
type = "string"
"""


@pytest.mark.long
def test_breaks_of_records_with_a_key_of_very_many_characters(
    run: Run, rows: Any, workspace: Workspace, tmp_path: Path
) -> None:
    """No limit of an index is one of a key: of a documented record, and of one of ours."""
    (tmp_path / "records" / "place.toml").write_text(PLACE)
    random = Random(1)
    long = "".join(chr(random.randrange(0x4E00, 0x9FA5)) for _ in range(10_000))
    tones = write(tmp_path, f"7,1,{long}", top="TenantsId,AvatarsId,Name", name="tones.csv")
    places = write(
        tmp_path, f"{long}a,S,C", f"{long}b,S,C", top="Name,Street,City", name="places.csv"
    )
    done = run("import", tones, places)
    assert done.returncode == 0, done.stderr
    with workspace.database.connect() as connection:
        connection.execute("DELETE FROM message_tone")
        connection.execute("""UPDATE place SET "Street" = 'T', "City" = 'D'""")
    done = run("reconcile", "--as-of", "2026-01-31")
    assert done.returncode == 1, done.stderr
    breaks = rows("SELECT record, right(key, 1), break_id FROM break_state ORDER BY 1, 2, 3")
    assert [kind for kind, *_ in breaks] == ["message_tone", *["place"] * 4]
    with workspace.database.connect() as connection:
        others = [breaks_of_record(connection, 1, one, 9) for *_, one in breaks]
    (*_, a), (*_, b), (*_, c), (*_, d) = breaks[1:]
    assert others == [[], [b], [a], [d], [c]]


@pytest.mark.long
def test_an_amount_that_cannot_be_held_hides_nothing_of_its_record(
    run: Run, rows: Any, workspace: Workspace, tmp_path: Path
) -> None:
    define(tmp_path, REFUND + FEE)
    of = "2026-01-05T10:00:00Z,broken"
    refunds = f"1,7,99,1e-30,1,{of},", f"2,7,98,1,1,{of},1e-30"
    assert run("import", write(tmp_path, *refunds, top=f"{TOP},Fee")).returncode == 0
    with workspace.database.connect() as connection:
        connection.execute("""UPDATE refund SET "Reason" = 'late' WHERE "Id" = 1""")
    done = run("reconcile", "--as-of", "2026-01-31")
    assert (done.returncode, "not judged" in done.stdout) == (1, False), done.stderr
    facts = "facts::json ->> 'field'"
    assert rows(f"SELECT key, code, {facts} FROM break_state ORDER BY 1, 2") == [
        ("1/7", "PRECISION", "Amount"),
        ("1/7", "REFERENCE_MISSING", "PaymentsId"),
        ("1/7", "VALUE", "Reason"),
        ("2/7", "PRECISION", "Fee"),
        ("2/7", "REFERENCE_MISSING", "PaymentsId"),
    ]


@pytest.mark.long
@pytest.mark.parametrize(
    "stricter",
    [
        'type = "string"\nrules = ["Email"]',
        'type = "string"\nrequired = true',
    ],
)
def test_rows_that_wait_become_records_by_what_they_were_checked_by(
    run: Run, rows: Any, tmp_path: Path, stricter: str
) -> None:
    (tmp_path / "careful.toml").write_text('feed = "careful"\n[budget]\nerrors = 0\n')
    careful = ("--profile", str(tmp_path / "careful.toml"))
    held = run("import", write(tmp_path, *ROWS[1:]), *careful)
    assert rows("SELECT state FROM batch") == [("held",)], held.stderr
    reason = '[fields.Reason]\ntype = "string"'
    assert reason in REFUND
    define(tmp_path, REFUND.replace(reason, f"[fields.Reason]\n{stricter}"))
    done = run("release", "1", "--reason", "known")
    assert (done.returncode, "batch 1 has waiting rows that were checked" in done.stderr) == (
        2,
        True,
    )
    define(tmp_path, REFUND)
    assert run("release", "1", "--reason", "known").returncode == 1
    assert rows('SELECT "Id", "Reason" FROM refund') == [(2, None)]
    define(tmp_path, REFUND.replace(reason, f"[fields.Reason]\n{stricter}"))
    done = run("status")
    # Of records that are there a rule is not asked.
    assert (done.returncode, "Reason was not required" in done.stderr) == (
        (2, True) if "required" in stricter else (0, False)
    )


@pytest.mark.long
def test_a_rule_is_not_made_while_a_run_reads_rows_of_the_kind(
    run: Run, workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    """It would check them by what it was started with, and make records of them."""
    assert run("status").returncode == 0
    files = write(tmp_path, ROWS[1]), write_payments(tmp_path / "a.csv", line(1))
    ours = {"RECON_RECORDS": str(tmp_path / "records")}
    url, home = str(workspace.settings.database_url), workspace.settings.home
    stricter = REFUND.replace('"string"\n', '"string"\nrules = ["NotNull"]\n')
    with workspace.database.connect() as owner:
        owner.execute("SELECT pg_advisory_lock(1)")
        owner.execute(
            """CREATE FUNCTION recon.wait() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN PERFORM pg_advisory_xact_lock_shared(1); RETURN NULL; END $$;
            CREATE TRIGGER wait BEFORE INSERT ON recon.staged_payment
            FOR EACH STATEMENT EXECUTE FUNCTION recon.wait()"""
        )
        with recon.Run(url, home, "import", *reversed(files), **ours) as importing:
            until(lambda: importing.poll() is not None or bool(rows(WAITING)))
            define(tmp_path, stricter)
            done = run("records", "apply")
            assert (done.returncode, "a run is reading batch 1" in done.stderr) == (2, True), done
            owner.execute("SELECT pg_advisory_unlock(1)")
        assert importing.returncode == 0
    assert run("records", "apply").returncode == 0
    assert rows('SELECT "Reason" FROM refund') == [(None,)]


@pytest.mark.long
def test_a_header_that_is_of_no_kind_or_of_several_is_told_of_kinds_of_our_own(
    run: Run, tmp_path: Path
) -> None:
    for name, more in (("place", ""), ("venue", '[fields.Hall]\ntype = "string"\n')):
        of = f'name = "{name}"'
        text = PLACE.replace('name = "place"', of).replace("Name", "Called") + more
        (tmp_path / "records" / f"{name}.toml").write_text(text)
    told = {}
    for top in ("Called,Street", "Street,City,Hall", "Called,Street,Town", "TenantsId,Name,Street"):
        told[top] = run("check", write(tmp_path, "a,b,c", top=top)).stdout.replace("\n", " ")
    several, *none = map(" ".join, map(str.split, told.values()))
    assert "of several record kinds: place, venue. Say which it is, with --record" in several
    assert "required columns are missing: Called." in none[0]
    assert "the nearest record is venue" in none[0]
    assert "columns that the record does not have: Town. The record is place" in none[1]
    assert "the nearest record is message_tone" in none[2]
