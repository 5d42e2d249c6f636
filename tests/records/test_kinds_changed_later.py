"""A kind is changed, or goes, while a run, a refused file or a change by hand still tells of it."""

import json
from pathlib import Path

import polars as pl
import pytest

from flows.stages.workspace import Workspace
from tests.records.test_own_endpoints import POST
from tests.records.test_own_kinds import RECONCILE, REFUND, ROWS, Run, define, write
from tests.records.test_own_kinds import run as run  # noqa: PLC0414 -- the fixture.
from tests.service.faulty_server import FaultyServer, Reply, Seen

STATUS = '\n[fields.Status]\ntype = "string"\n'
UNDONE = ("--reason", "wrong file")


@pytest.mark.long
def test_a_field_that_the_service_alone_has_filled_resolves_nothing_when_it_goes(
    run: Run, workspace: Workspace, tmp_path: Path
) -> None:
    """No row has a value of it, so it may go; nobody has put right what the service has there."""

    def with_status(seen: Seen) -> Reply:
        return Reply(body=json.loads(seen.body) | {"Status": "open"})

    def of_status(definition: str) -> list[str]:
        define(tmp_path, definition)
        assert run("records", "apply").returncode == 0
        done = run(*RECONCILE)
        assert done.returncode == 1, done.stderr
        (folder,) = sorted(workspace.settings.reports.glob("reconciliation-*"))[-1:]
        breaks = pl.read_parquet(folder / "breaks.parquet").filter(code="ECHO", field="Status")
        return breaks["state"].to_list()

    define(tmp_path, REFUND + STATUS + POST)
    with FaultyServer(with_status) as server:
        service = {"RECON_SERVICE_URL": server.url, "RECON_SERVICE_FORMAT": "json"}
        done = run("import", write(tmp_path, ROWS[0]), "--push", **service)
    assert "AddRefund: 1 differs" in done.stdout, done.stderr
    assert of_status(REFUND + STATUS + POST) == ["NEW"]
    assert of_status(REFUND + POST) == ["NOT_LOOKED_AT"]
    assert of_status(REFUND + POST) == ["NOT_LOOKED_AT"]
    assert of_status(REFUND + STATUS + POST) == ["REOPENED"]


NAMED = {
    # what: a file of which nothing is a refund, and the profile that says it is one
    "a refused file": ("Payee,Sum\n1,2\n", 'record = "refund"'),
    "a line that no record is in": (
        'Data,HasError\n"",false\n',
        'record = "insert_batch_data"\ninner_record = "refund"',
    ),
}


@pytest.mark.long
@pytest.mark.parametrize(("text", "record"), NAMED.values(), ids=NAMED)
def test_a_kind_stays_while_a_batch_is_to_be_corrected_as_one_of_it(
    run: Run, tmp_path: Path, text: str, record: str
) -> None:
    """Its files are corrected on its terms, which name the kind."""
    (tmp_path / "a.csv").write_text(text)
    (tmp_path / "named.toml").write_text(f'feed = "named"\n{record}\n')
    done = run("import", str(tmp_path / "a.csv"), "--profile", str(tmp_path / "named.toml"))
    assert done.returncode == 1, done.stderr
    (tmp_path / "records" / "refund.toml").unlink()
    for words in (("status",), ("records", "apply")):
        done = run(*words)
        assert done.returncode == 2
        assert "record kind refund, which is not defined here, and batch 1 was" in done.stderr
    define(tmp_path, REFUND)
    assert run("undo", "1", *UNDONE).returncode == 0
    (tmp_path / "records" / "refund.toml").unlink()
    assert run("records", "apply").returncode == 0
    for words in (("status",), ("rejects", "1", "--out", str(tmp_path / "out")), RECONCILE):
        done = run(*words)
        assert "fault of the program" not in done.stderr


WITHOUT_REASON = REFUND.replace('[fields.Reason]\ntype = "string"\n', "")
BY_HAND = {
    # what: what somebody did in the database beside all batches, and the definition after
    "a field that is required": (
        "DELETE FROM refund",
        REFUND.replace('"string"\n', '"string"\nrequired = true\n'),
    ),
    "a field that goes": ("""UPDATE refund SET "Reason" = 'by hand'""", WITHOUT_REASON),
}


@pytest.mark.long
@pytest.mark.parametrize(("change", "after"), BY_HAND.values(), ids=BY_HAND)
def test_a_field_stays_as_an_undo_would_bring_it_back(
    run: Run, workspace: Workspace, tmp_path: Path, change: str, after: str
) -> None:
    first, second = (f"2,7,2,{amount},1,2026-01-05T11:00:00Z," for amount in ("20.00", "21.00"))
    assert run("import", write(tmp_path, first)).returncode == 0
    late = change.startswith("DELETE")
    for do in (reversed if late else list)(("by hand", "import")):
        if do == "import":
            done = run("import", write(tmp_path, second, name="b.csv"))
            assert done.returncode == 0, done.stderr
        else:
            with workspace.database.connect() as connection:
                connection.execute(change)  # type: ignore[call-overload]
    define(tmp_path, after)
    done = run("records", "apply")
    assert (done.returncode, "undo of batch 2" in done.stderr) == (2, True), done.stderr
    define(tmp_path, REFUND)
    assert run("undo", "2", "--over-changes", *UNDONE).returncode == 0
    with workspace.database.connect() as connection:
        brought = connection.execute('SELECT "Amount"::text, "Reason" FROM refund').fetchall()
    assert brought == [("20.00", None if late else "by hand")]
