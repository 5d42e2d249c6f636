"""An operation comes, goes or is another while rows of its kind are on their way to the service."""

import json
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from flows.stages.workspace import Workspace
from tests import recon
from tests.faults.test_frozen import WAITING
from tests.faults.test_lost_server import until
from tests.records.test_own_endpoints import POST, PUT, ROWS
from tests.records.test_own_kinds import REFUND, TOP, Run, define, write
from tests.records.test_own_kinds import run as run  # noqa: PLC0414 -- the fixture.
from tests.service.faulty_server import FaultyServer
from tests.stages.payments import line
from tests.stages.payments import write as write_payments


def inside(folder: Path) -> str:
    """Refunds in insert-batch data: what is in it, nobody knows until it is read."""
    names = TOP.split(",")
    records = [json.dumps(dict(zip(names, row.split(","), strict=True))) for row in ROWS[:2]]
    rows = ['"{}",false'.format(one.replace('"', '""')) for one in records]
    return write(folder, *rows, top="Jsondata,HasError", name="inside.csv")


@contextmanager
def halted(workspace: Workspace, when: str, on: str) -> Iterator[Callable[[], object]]:
    """Whoever does it waits until it is let go on, by what this gives."""
    with workspace.database.connect() as owner:
        owner.execute("SELECT pg_advisory_lock(1)")
        owner.execute(
            f"""CREATE FUNCTION recon.wait() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN PERFORM pg_advisory_xact_lock_shared(1); RETURN NEW; END $$;
            CREATE TRIGGER wait {when} EXECUTE FUNCTION recon.wait()"""
        )
        yield lambda: owner.execute("SELECT pg_advisory_unlock(1)")
        owner.execute(f"DROP TRIGGER wait ON recon.{on}")


READING = ("BEFORE INSERT ON recon.staged_payment FOR EACH STATEMENT", "staged_payment")
NAMING = (
    "BEFORE UPDATE ON recon.batch FOR EACH ROW WHEN (OLD.service IS DISTINCT FROM NEW.service)",
    "batch",
)
CASES = {
    # when: what waits, whether refunds were delivered before, the operation before and after
    "one comes while the first are read": (READING, False, "", POST),
    "one goes while others are read": (READING, True, POST, ""),
    "one comes in a push": (NAMING, False, "", POST),
    "one goes in a push": (NAMING, False, POST, ""),
    "it is another in a push": (NAMING, False, POST, PUT),
}
IN_WORK = "a run is working on batch {0} by that. Wait for its end, and change the definition"
BEING_READ = "a run is reading batch {0}, and checks its rows by that. Wait for its end"


@pytest.mark.long
@pytest.mark.parametrize(("halt", "earlier", "before", "after"), CASES.values(), ids=CASES)
def test_an_operation_stays_while_a_run_may_send_by_it(
    run: Run,
    workspace: Workspace,
    rows: Any,
    tmp_path: Path,
    halt: tuple[str, str],
    earlier: bool,
    before: str,
    after: str,
) -> None:
    """Else it sends by what there is no more, or leaves unsent what there is an operation for."""
    define(tmp_path, REFUND + before)
    files = [str(write_payments(tmp_path / "a.csv", line(1))), inside(tmp_path)]
    batch, words = 1, ["import", *files, "--push"]
    if earlier:
        assert run("import", write(tmp_path, ROWS[2])).returncode == 0
        batch = 2
    if halt is NAMING:
        assert run("import", *files).returncode == 0
        words = ["push", "1"]
    assert run("status").returncode == 0
    with FaultyServer() as server:
        service = {"RECON_SERVICE_URL": server.url, "RECON_SERVICE_FORMAT": "json"}
        done = meanwhile(run, workspace, rows, tmp_path, halt, words, REFUND + after, **service)
        sent = sorted(one.path for one in server.effects)
    said = BEING_READ if (halt, earlier) == (READING, False) else IN_WORK
    assert (done.returncode, said.format(batch) in done.stderr) == (2, True), done.stderr
    assert sent == ["/payments/1", *(["/refunds"] * 2 if before else [])]


def meanwhile(
    run: Run,
    workspace: Workspace,
    rows: Any,
    folder: Path,
    halt: tuple[str, str],
    words: Sequence[str],
    after: str | None,
    **settings: str,
) -> "subprocess.CompletedProcess[str]":
    """Define the kind otherwise, or not at all, while a run waits; it ends well behind that."""
    url, home = str(workspace.settings.database_url), workspace.settings.home
    ours = {"RECON_RECORDS": str(folder / "records")} | settings
    with halted(workspace, *halt) as go_on, recon.Run(url, home, *words, **ours) as going:
        until(lambda: going.poll() is not None or bool(rows(WAITING)))
        if after is None:
            (folder / "records" / "refund.toml").unlink()
        else:
            define(folder, after)
        done = run("records", "apply")
        go_on()
        _, told = going.communicate()
        assert going.returncode == 0, told
    return done


WITHOUT_REASON = REFUND.replace('[fields.Reason]\ntype = "string"\n', "")
KINDS = {
    # what: whether refunds were delivered before, and the definition after
    "it goes": (False, None),
    "a rule comes": (False, REFUND.replace('"string"\n', '"string"\nrules = ["NotNull"]\n')),
    "a field goes": (False, WITHOUT_REASON),
    "a field without values goes": (True, WITHOUT_REASON),
    "another key": (False, REFUND.replace('key = ["Id", "TenantsId"]', 'key = ["Id"]')),
}


@pytest.mark.long
@pytest.mark.parametrize(("earlier", "after"), KINDS.values(), ids=KINDS)
def test_a_kind_stays_while_a_run_reads_what_may_have_rows_of_it(
    run: Run, workspace: Workspace, rows: Any, tmp_path: Path, earlier: bool, after: str | None
) -> None:
    before = ("import", write(tmp_path, ROWS[1])) if earlier else ("status",)
    assert run(*before).returncode == 0
    words = ["import", str(write_payments(tmp_path / "a.csv", line(1))), inside(tmp_path)]
    done = meanwhile(run, workspace, rows, tmp_path, READING, words, after)
    said = IN_WORK.format(2) if earlier else BEING_READ.format(1)
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr
    assert rows('SELECT "Id" FROM refund ORDER BY 1') == [(1,), (2,)]


@pytest.mark.long
def test_a_field_stays_while_a_push_is_under_way(
    run: Run, workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    """It reads the rows that it sends block by block."""
    define(tmp_path, REFUND + POST)
    assert run("import", write(tmp_path, ROWS[1])).returncode == 0
    with FaultyServer() as server:
        service = {"RECON_SERVICE_URL": server.url, "RECON_SERVICE_FORMAT": "json"}
        words, after = ["push", "1"], WITHOUT_REASON + POST
        done = meanwhile(run, workspace, rows, tmp_path, NAMING, words, after, **service)
    assert (done.returncode, IN_WORK.format(1) in done.stderr) == (2, True), done.stderr
    assert [one.path for one in server.effects] == ["/refunds"]


@pytest.mark.long
@pytest.mark.parametrize("taken", [False, True], ids=["by nobody", "by another kind"])
def test_rows_that_were_planned_for_an_operation_that_is_gone_are_told_of(
    run: Run, tmp_path: Path, taken: bool
) -> None:
    define(tmp_path, REFUND + POST)
    nowhere = {"RECON_SERVICE_URL": "http://127.0.0.1:9", "RECON_SERVICE_ATTEMPTS": "1"}
    assert run("import", write(tmp_path, *ROWS), "--push", **nowhere).returncode == 2
    assert run("undo", "1", "--reason", "test").returncode == 0
    define(tmp_path, REFUND)
    if taken:
        other = (REFUND + POST).replace('"refund"', '"payback"').replace('"Refund"', '"Payback"')
        (tmp_path / "records" / "payback.toml").write_text(other)
    told = run("sends", "1").stdout
    assert " ".join(told.split()) == (
        "AddRefund: 3 unsent. The record kind of these rows no longer has this operation, so they "
        "are not listed; `recon row` shows each."
    )
    listed = json.loads(run("sends", "1", "--json").stdout)
    assert (listed["sends"], listed["not_listed"]) == ([], {"AddRefund": {"unsent": 3}})
