"""The flow `import-batch` against a real Prefect API and a real database."""

import json
import shutil
from pathlib import Path
from typing import Any

import psycopg
import pytest

from connectors.postgres.batches.lease import hold_batch
from flows.stages.sequence import discard_batch, release_batch
from flows.stages.workspace import Workspace
from tests.flows.runs import (
    artifact,
    flow_run,
    kept_files,
    kept_results,
    log_lines,
    result_files,
    run,
)
from tests.stages.payments import line, write

CANARY = "canary-secret"

pytestmark = pytest.mark.flows


@pytest.mark.long
def test_a_clean_delivery_completes(tmp_path: Path, rows: Any) -> None:
    state = run(write(tmp_path / "a.csv", line(1), line(2)))
    assert (state.type.value, state.name) == ("COMPLETED", "Completed")
    assert state.message == "Batch 1: 2 rows, no errors"
    assert rows("SELECT count(*) FROM payment") == [(2,)]
    assert rows("SELECT state FROM batch") == [("complete",)]
    assert "COMPLETE" in artifact("import-summary").data
    assert artifact("batch-1").data == artifact("import-summary").data
    assert artifact("rejects").table == [{"Reason": "none", "Rows": "0"}]


@pytest.mark.long
def test_rejects_make_a_state_of_their_own_and_artifacts(
    tmp_path: Path, workspace: Workspace
) -> None:
    hostile = "[x](javascript:alert(1))|<script>"
    state = run(write(tmp_path / "a.csv", line(1), line(2, amount=hostile)))
    assert (state.type.value, state.name) == ("COMPLETED", "CompletedWithErrors")
    assert "1 of 2 rows carries HasError" in state.message
    assert "recon rejects 1" in state.message
    folder = workspace.settings.reports / "batch-1"
    summary, rejects = artifact("import-summary"), artifact("rejects")
    assert (summary.type, rejects.type) == ("markdown", "table")
    told = f"Batch 1, complete with errors. Its whole report is in {folder}."
    assert summary.description == told
    assert rejects.description == f"{told} `recon row 1 FILE --line LINE` shows a row."
    (reject,) = rejects.table
    assert (reject["Reason"], reject["Field"], reject["Line"]) == ("Number", "PaidAmount", "3")
    for shown in (summary.data, reject["Value"]):
        assert r"\[x\]\(javascript:alert" in shown
        assert r"\|\<script\>" in shown
    assert len(reject) <= 8
    assert (folder / "report.html").is_file()
    shutil.rmtree(folder)
    run(str(tmp_path / "a.csv"))
    gone = "Its report is not kept; `recon rerun 1` writes it again."
    assert artifact("import-summary").description == f"Batch 1, complete with errors. {gone}"


@pytest.mark.long
def test_the_summary_of_a_wide_delivery_stays_small(tmp_path: Path) -> None:
    for number in range(220):
        (tmp_path / f"{number:03}.csv").touch()
    state = run(str(tmp_path))
    assert (state.name, state.message.split(". ")[0]) == (
        "CompletedWithErrors",
        "Batch 1: 0 rows, no errors, 220 files refused, the first: 000.csv (empty_file)",
    )
    lines = artifact("import-summary").data.splitlines()
    assert sum(one.startswith("| ") for one in lines) == 200 + 2  # The head and its rule.
    assert "20 more are in the report." in lines


@pytest.mark.long
def test_over_budget_is_held_until_somebody_decides(
    tmp_path: Path, rows: Any, workspace: Workspace
) -> None:
    path = write(tmp_path / "a.csv", line(1), line(2, amount="x"))
    state = run(path, max_errors=0)
    assert (state.type.value, state.name) == ("FAILED", "Held")
    assert "recon release 1" in state.message
    assert "1 of 2 rows has errors; the budget allows 0 rows" in state.message
    assert rows("SELECT count(*) FROM payment") == [(0,)]
    assert run(path, max_errors=0).name == "Held"
    release_batch(workspace, 1, by="a", reason="b")
    assert run(path, max_errors=0).name == "CompletedWithErrors"
    assert rows("SELECT count(*) FROM payment") == [(1,)]


@pytest.mark.long
def test_a_share_above_the_budget_is_held(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", line(1), line(2, amount="x"))
    assert run(path, max_error_rate=0.4).name == "Held"


@pytest.mark.long
def test_the_terms_of_a_delivery_reach_its_batch(tmp_path: Path, rows: Any) -> None:
    profile = tmp_path / "bank.toml"
    profile.write_text('feed = "bank"\n')
    files = write(tmp_path / "a.csv", line(1), line(2, tenant=8))
    first = run(files, profile=str(profile), tenant=7)
    assert first.name == "CompletedWithErrors"
    assert artifact("rejects").table[0]["Reason"] == "TenantNotBound"
    path = write(tmp_path / "b.csv", line(2, tenant=7))
    second = run(path, record="payment", corrects=1)
    assert second.name == "Completed"
    assert rows("SELECT feed, corrects FROM batch WHERE id = 2") == [("bank", 1)]
    assert flow_run(second).name == "import b.csv, correcting batch 1"


@pytest.mark.long
def test_the_same_delivery_again_changes_nothing(tmp_path: Path, rows: Any) -> None:
    path = write(tmp_path / "a.csv", line(1))
    assert run(path).name == "Completed"
    told = "SELECT * FROM event WHERE what NOT LIKE 'run %%'"
    before = rows("SELECT * FROM batch"), rows("SELECT * FROM receipt"), rows(told)
    again = run(path)
    assert again.name == "Completed"
    assert again.message.startswith("This delivery was taken in batch 1 on ")
    assert again.message.endswith("nothing to do. Batch 1: 1 row, no errors")
    after = rows("SELECT * FROM batch"), rows("SELECT * FROM receipt"), rows(told)
    assert after == before


@pytest.mark.long
def test_totals_that_do_not_tie_fail_the_run(tmp_path: Path, rows: Any, database_url: str) -> None:
    losing = 'IF NEW."Id" = 2 THEN RETURN NULL; END IF; RETURN NEW;'
    on_payment(database_url, losing)
    state = run(write(tmp_path / "a.csv", line(1), line(2)))
    assert (state.type.value, state.name) == ("FAILED", "Failed")
    assert "Batch 1 does not tie." in state.message
    assert rows("SELECT state FROM batch") == [("failed",)]
    assert "DOES NOT TIE" in artifact("import-summary").data


@pytest.mark.long
def test_a_database_changed_behind_our_back_fails_the_next_look(
    tmp_path: Path, rows: Any, database_url: str
) -> None:
    path = write(tmp_path / "a.csv", line(1), line(2))
    assert run(path).name == "Completed"
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute('DELETE FROM recon.payment WHERE "Id" = 2')
    state = run(path)
    assert state.type.value == "FAILED"
    assert "tied when it ended and no longer ties" in state.message
    assert "DOES NOT TIE" in artifact("import-summary").data
    assert rows("SELECT state FROM batch") == [("complete",)]


@pytest.mark.long
def test_a_run_after_a_failed_one_goes_on_where_it_stopped(
    tmp_path: Path, rows: Any, database_url: str
) -> None:
    path = write(tmp_path / "a.csv", line(1), line(2))
    on_payment(database_url, FAIL_ONCE)
    failed = run(path)
    assert failed.type.value == "FAILED"
    assert "refused a statement: on fire (SQLSTATE P0001)" in failed.message
    assert rows("SELECT state FROM batch") == [("checked",)]
    staged = rows("SELECT * FROM receipt WHERE stage = 'stage'")
    assert staged
    state = run(path)
    assert state.name == "Completed"
    assert "is checked; going on with it" in state.message
    assert rows("SELECT * FROM receipt WHERE stage = 'stage'") == staged
    assert rows("SELECT count(*) FROM payment") == [(2,)]


@pytest.mark.long
def test_a_retry_goes_on_with_its_batch_though_the_inbox_is_empty(
    tmp_path: Path, rows: Any, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from flows.import_batch import import_batch
    from flows.tasks import batch as tasks
    from flows.tasks.delivery import Delivery

    path = Path(write(tmp_path / "inbox" / "a.csv", line(1)))
    on_payment(database_url, FAIL_ONCE)
    monkeypatch.setattr(tasks.apply_rows, "on_failure_hooks", [lambda *_: path.unlink()])
    retried = import_batch.with_options(retries=1, retry_delay_seconds=0)
    state = retried(Delivery(paths=[str(path)]), return_state=True)
    assert state.name == "Completed"
    assert not path.exists()
    assert rows("SELECT count(*) FROM batch") == [(1,)]
    assert "Finished in state Cached(type=COMPLETED)" in log_lines(state)


@pytest.mark.long
def test_a_lost_connection_is_tried_again(
    tmp_path: Path, rows: Any, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from flows.tasks import batch as tasks

    monkeypatch.setattr(tasks.apply_rows, "retry_delay_seconds", 0)
    on_payment(database_url, FAIL_ONCE.replace("RAISE 'on fire'", DIE))
    state = run(write(tmp_path / "a.csv", line(1)))
    assert state.name == "Completed"
    assert rows("SELECT last_value FROM attempts") == [(2,)]


@pytest.mark.long
def test_a_database_that_stays_away_fails_after_every_attempt(
    tmp_path: Path, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from flows.tasks import batch as tasks
    from flows.tasks.attempts import RETRY_SECONDS

    attempts: list[str] = []
    monkeypatch.setenv("RECON_DATABASE_URL", f"postgresql://nobody:{CANARY}@127.0.0.1:1/nowhere")
    monkeypatch.setattr(tasks.receive_files, "retry_delay_seconds", 0)
    monkeypatch.setattr(
        tasks.receive_files, "on_running_hooks", [lambda *_: attempts.append("attempt")]
    )
    state = run(write(tmp_path / "a.csv", line(1)))
    assert state.type.value == "FAILED"
    assert "DatabaseUnusable: The database cannot be used:" in state.message
    assert CANARY not in state.message
    assert len(attempts) == 1 + len(RETRY_SECONDS)


def test_fields_of_the_form_that_are_left_empty_say_nothing(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", line(1))
    assert run(path, profile="", files_hash="").name == "Completed"


def test_a_delivery_that_does_not_exist_fails_at_once_with_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from flows.tasks import batch as tasks

    attempts: list[str] = []
    monkeypatch.setattr(
        tasks.receive_files, "on_running_hooks", [lambda *_: attempts.append("attempt")]
    )
    state = run(str(tmp_path / "nowhere.csv"))
    assert state.type.value == "FAILED"
    assert "nowhere.csv" in str(state.message)
    assert len(attempts) == 1


@pytest.mark.long
def test_a_batch_another_run_holds_is_left_alone(
    tmp_path: Path, rows: Any, workspace: Workspace, database_url: str
) -> None:
    path = write(tmp_path / "a.csv", line(1))
    on_payment(database_url, FAIL_ONCE)
    run(path)
    with workspace.database.connect() as connection, hold_batch(connection, 1):
        state = run(path)
    assert state.type.value == "FAILED"
    assert "Batch 1 is being worked on by" in state.message
    assert rows("SELECT state FROM batch") == [("checked",)]


@pytest.mark.long
def test_a_discarded_batch_is_not_brought_back_by_a_new_run(
    tmp_path: Path, rows: Any, workspace: Workspace
) -> None:
    path = write(tmp_path / "a.csv", line(1), line(2, amount="x"))
    assert run(path, max_errors=0).name == "Held"
    discard_batch(workspace, 1, by="a", reason="b")
    assert run(path).name == "CompletedWithErrors"
    assert rows("SELECT id, state FROM batch ORDER BY id") == [
        (1, "discarded"),
        (2, "complete_with_errors"),
    ]


@pytest.mark.long
def test_the_run_page_tells_the_life_of_the_rows(tmp_path: Path) -> None:
    state = run(write(tmp_path / "a.csv", line(1), line(2, amount="x")))
    told = [one for one in log_lines(state) if one.startswith("Batch 1")]
    assert told == [
        "Batch 1: files received, 0 refused",
        "Batch 1 is staged: 1 ready, 1 rejected",
        "Batch 1 is checked",
        "Batch 1 is merged: 1 inserted",
        "Batch 1 is complete with errors: 1 inserted, 1 rejected",
    ]


@pytest.mark.long
def test_results_are_json_even_where_all_are_kept(tmp_path: Path, prefect_home: Path) -> None:
    from prefect.settings import PREFECT_RESULTS_PERSIST_BY_DEFAULT, temporary_settings

    from flows.tasks.batch import BatchStatus

    before = result_files(prefect_home)
    with temporary_settings({PREFECT_RESULTS_PERSIST_BY_DEFAULT: True}):
        state = run(write(tmp_path / "a.csv", line(1)))
    results = list(kept_results(prefect_home, before))
    assert results
    kept = {name for name, field in BatchStatus.model_fields.items() if not field.exclude}
    assert all(set(one.get("data", one)) == kept for one in results)
    folder = prefect_home / "storage" / "recon" / "receive-files"
    (path,) = (folder / str(state.state_details.flow_run_id)).iterdir()
    assert path.is_file()


@pytest.mark.long
def test_no_secret_is_kept_by_prefect(
    tmp_path: Path, prefect_home: Path, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = workspace.settings.database_url
    assert url is not None
    monkeypatch.setenv("RECON_DATABASE_URL", url + f"&password={CANARY}")
    path = tmp_path / "registrations.csv"
    path.write_text(
        "EMail,FirstName,LastName,Password,ConfirmPassword,Company\n"
        f"nobody,Ann,Lee,{CANARY},{CANARY},Acme\n"
    )
    state = run(str(path))
    assert state.name == "CompletedWithErrors"
    kept = kept_files(prefect_home)
    assert any(b"registrations.csv" in file.read_bytes() for file in kept)
    assert [file for file in kept if CANARY.encode() in file.read_bytes()] == []
    for key in ("import-summary", "rejects"):
        assert CANARY not in artifact(key).data
    assert json.dumps(flow_run(state).parameters).count("registrations.csv") == 1


@pytest.mark.long
def test_what_the_database_says_of_a_row_is_not_kept(
    tmp_path: Path, prefect_home: Path, database_url: str
) -> None:
    on_payment(database_url, f"RAISE 'refused' USING DETAIL = 'row ({CANARY})';")
    state = run(write(tmp_path / "a.csv", line(1)))
    assert "refused a statement: refused (SQLSTATE P0001)" in state.message
    assert [file for file in kept_files(prefect_home) if CANARY.encode() in file.read_bytes()] == []


FAIL_ONCE = "IF nextval('recon.attempts') = 1 THEN RAISE 'on fire'; END IF; RETURN NEW;"
DIE = "PERFORM pg_terminate_backend(pg_backend_pid())"


def on_payment(database_url: str, body: str) -> None:
    """Let the database do this with every payment that is written."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("CREATE SEQUENCE IF NOT EXISTS recon.attempts")
        connection.execute(
            "CREATE FUNCTION recon.meddle() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$ BEGIN {body} END $$"
        )
        connection.execute(
            "CREATE TRIGGER meddle BEFORE INSERT OR UPDATE ON recon.payment "
            "FOR EACH ROW EXECUTE FUNCTION recon.meddle()"
        )
