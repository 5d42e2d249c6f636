"""What operators live through, against a real server, worker and deployments; to the cent."""

import json
import os
import signal
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest

from connectors.sandbox import Sandbox, SandboxOptions, User
from connectors.settings import read_settings
from flows.ops.laptop import prefect_environment
from flows.ops.running import children_of
from flows.ops.up_options import UpOptions
from tests.flows.e2e.conftest import CANARY
from tests.flows.e2e.machine import ENDS, Machine
from tests.ports import own_port
from tests.stages.payments import line, write

pytestmark = pytest.mark.e2e

IMPORT = "import-batch/adhoc"


def payments(path: Path, first: int, count: int, *bad: int) -> tuple[str, Decimal]:
    """A delivery with these keys, some of them bad; its path and the total of the good rows."""
    amounts = {number: Decimal(number % 97) + Decimal("0.01") for number in range(count)}
    lines = [
        line(first + number, amount="ten" if number in bad else str(amount))
        for number, amount in amounts.items()
    ]
    good = sum((amount for number, amount in amounts.items() if number not in bad), Decimal())
    return write(path, *lines), good


def applied(machine: Machine, first: int, count: int) -> tuple[int, Decimal]:
    """Rows and total of these keys in the database."""
    statement = (
        'SELECT count(*), coalesce(sum("PaidAmount"), 0) FROM payment WHERE "Id" BETWEEN %s AND %s'
    )
    ((rows, total),) = machine.rows(statement, [first, first + count - 1])
    return rows, total


@pytest.mark.long
def test_a_schedule_makes_runs_and_they_end_with_errors(machine: Machine, folder: Path) -> None:
    path, good = payments(folder / "scheduled.csv", 1000, 200, 3, 4)
    deployment = machine.deployment(IMPORT)["id"]
    # Whichever of its runs comes first takes the delivery; the later ones would find it taken.
    schedules = machine.post(
        f"/deployments/{deployment}/schedules",
        [
            {
                "active": True,
                "schedule": {"interval": 10, "anchor_date": "2026-01-01T00:00:00Z"},
                "parameters": {"delivery": {"paths": [path]}},
            }
        ],
    )
    # What was just changed is looked at every 5 seconds, the rest once in a minute.
    machine.api.patch(f"/deployments/{deployment}", json={"paused": False}).raise_for_status()
    wanted = {"flow_runs": {"deployment_id": {"any_": [deployment]}}, "sort": "START_TIME_ASC"}

    def made() -> Any:
        runs = machine.post("/flow_runs/filter", wanted)
        ours = [one["id"] for one in runs if one["auto_scheduled"] and one["run_count"]]
        return ours[0] if ours else None

    run = machine.until(made)
    machine.api.delete(f"/deployments/{deployment}/schedules/{schedules[0]['id']}")
    type_, name, message = machine.end(run)
    assert (type_, name) == ("COMPLETED", "CompletedWithErrors"), message
    assert "2 of 200 rows carry HasError" in message
    assert applied(machine, 1000, 200) == (198, good)
    rejects = json.loads(machine.artifact("rejects")["data"])
    assert [(one["Reason"], one["Field"], one["Line"]) for one in rejects] == [
        ("Number", "PaidAmount", "5")
    ]


@pytest.mark.long
def test_a_notice_tells_of_a_deployment_that_somebody_made(machine: Machine, folder: Path) -> None:
    adhoc = machine.deployment(IMPORT)
    own = {
        name: adhoc[name]
        for name in ("flow_id", "entrypoint", "work_pool_name", "parameter_openapi_schema")
    }
    machine.post("/deployments/", own | {"name": "bank-x", "pull_steps": []})
    delivery = {"paths": [str(folder / "nowhere.csv")]}
    run = machine.start("import-batch/bank-x", {"delivery": delivery})
    assert machine.end(run)[0] == "FAILED"
    machine.until(lambda: next((one for one in machine.notices if run in str(one)), None))


@pytest.mark.long
def test_a_killed_run_is_crashed_and_its_retry_finishes(machine: Machine, folder: Path) -> None:
    path, good = payments(folder / "killed.csv", 2000, 300, 7)
    with psycopg.connect(machine.database("recon"), autocommit=True) as connection:
        with connection.transaction():
            connection.execute("LOCK TABLE recon.payment IN SHARE ROW EXCLUSIVE MODE")
            run = machine.start(IMPORT, {"delivery": {"paths": [path]}})
            machine.until(lambda: waiting(machine) or None)
            pid = int(machine.run(run)["infrastructure_pid"].rpartition(":")[2])
            os.kill(pid, signal.SIGKILL)
            assert machine.end(run)[:2] == ("CRASHED", "Crashed")
        machine.crashed(run)
        # What the server still did for the dead process is undone before anybody goes on.
        machine.until(lambda: None if busy(machine) else True)
    assert applied(machine, 2000, 300) == (0, Decimal())
    machine.retry(run)
    type_, name, message = machine.end(run, runs=2)
    assert (type_, name) == ("COMPLETED", "CompletedWithErrors"), message
    assert applied(machine, 2000, 300) == (299, good)
    ((batches,),) = machine.rows("SELECT count(*) FROM extract WHERE name = 'killed.csv'")
    assert batches == 1


def summary_of(machine: Machine, run: str) -> Any:
    """The artifact of this run that says what its batch comes to; None: there is none yet."""
    asked = {"artifacts": {"flow_run_id": {"any_": [run]}, "key": {"any_": ["import-summary"]}}}
    return next(iter(machine.post("/artifacts/filter", asked)), None)


@pytest.mark.long
def test_a_cancelled_run_stops_and_its_retry_finishes(machine: Machine, folder: Path) -> None:
    path, good = payments(folder / "cancelled.csv", 8000, 300, 7)
    with psycopg.connect(machine.database("recon"), autocommit=True) as connection:
        with connection.transaction():
            connection.execute("LOCK TABLE recon.payment IN SHARE ROW EXCLUSIVE MODE")
            run = machine.start(IMPORT, {"delivery": {"paths": [path]}})
            machine.until(lambda: waiting(machine) or None)
            machine.post(f"/flow_runs/{run}/set_state", {"state": {"type": "CANCELLING"}})
            assert machine.end(run)[0] == "CANCELLED"
            told = machine.until(lambda: summary_of(machine, run))
            assert "as a cancelled run left it" in told["description"]
        machine.until(lambda: None if busy(machine) else True)
    assert applied(machine, 8000, 300) == (0, Decimal())
    machine.retry(run)
    type_, name, message = machine.end(run, runs=2)
    assert (type_, name) == ("COMPLETED", "CompletedWithErrors"), message
    assert applied(machine, 8000, 300) == (299, good)


@pytest.mark.long
def test_a_run_over_budget_waits_for_an_answer(machine: Machine, folder: Path) -> None:
    path, good = payments(folder / "held.csv", 3000, 100, 1, 2)
    request = {"paths": [path], "max_errors": 1, "over_budget": "ask"}
    run = machine.start(IMPORT, {"delivery": request})
    assert machine.end(run)[:2] == ("PAUSED", "Suspended")
    ((batch,),) = machine.rows("SELECT max(id) FROM batch WHERE state = 'held'")
    page = machine.api.get(f"http://127.0.0.1:{machine.desk_port}/batches/{batch}")
    assert f'<a href="{machine.url}/runs/flow-run/{run}">' in page.text, "whoever looks may answer"
    assert applied(machine, 3000, 100) == (0, Decimal())
    # The suspended run holds no slot: the next delivery goes through meanwhile.
    other, clean = payments(folder / "meanwhile.csv", 4000, 10)
    assert machine.end(machine.start(IMPORT, {"delivery": {"paths": [other]}}))[1] == "Completed"
    assert applied(machine, 4000, 10) == (10, clean)

    refused = machine.answer(run, decision="release", name=" ", reason="")
    assert refused["status"] == "REJECT"
    assert machine.run(run)["state"]["name"] == "Suspended"
    taken = machine.answer(run, decision="release", name="A. Meyer", reason="agreed")
    assert taken["status"] == "ACCEPT"
    ended = machine.until(lambda: over(machine, run))
    assert ended == "CompletedWithErrors"
    assert applied(machine, 3000, 100) == (98, good)
    decisions = machine.rows(
        "SELECT by, reason FROM event WHERE reason = 'agreed' AND by = 'A. Meyer'"
    )
    assert decisions


@pytest.mark.long
def test_a_rejected_batch_applies_nothing_and_somebody_is_told(
    machine: Machine, folder: Path
) -> None:
    path, _ = payments(folder / "refused.csv", 5000, 100, 1, 2)
    request = {"paths": [path], "max_errors": 1, "over_budget": "discard"}
    run = machine.start(IMPORT, {"delivery": request})
    assert machine.end(run)[:2] == ("FAILED", "Rejected")
    assert applied(machine, 5000, 100) == (0, Decimal())
    told = machine.until(lambda: next((one for one in machine.notices if run in str(one)), None))
    assert json.loads(told) == {
        "text": "recon: import-batch / import refused.csv is Rejected. "
        f"{machine.url}/runs/flow-run/{run}"
    }


@pytest.mark.long
def test_corrected_rows_are_taken_in_by_a_rerun(machine: Machine, folder: Path) -> None:
    path, good = payments(folder / "corrected.csv", 7000, 10, 4)
    assert machine.end(machine.start(IMPORT, {"delivery": {"paths": [path]}}))[0] == "COMPLETED"
    ((batch,),) = machine.rows("SELECT batch_id FROM extract WHERE name = 'corrected.csv'")
    written = machine.recon("rejects", str(batch), "--out", str(folder / "rejects"))
    assert written.returncode == 0, written.stderr
    (file,) = (folder / "rejects").glob("*.csv")
    file.write_text(file.read_text().replace("ten", "3.14"))
    request = {"batch_id": batch, "only": "failed rows", "corrected_file": str(file.parent)}
    run = machine.start("rerun-batch/rerun", request)
    type_, name, message = machine.end(run)
    assert (type_, name) == ("COMPLETED", "Completed"), message
    assert applied(machine, 7000, 10) == (10, good + Decimal("3.14"))
    states = machine.rows("SELECT DISTINCT state FROM shown_row WHERE batch_id = %s", [batch])
    assert sorted(states) == [("corrected",), ("inserted",)]


@pytest.mark.long
def test_a_service_that_is_down_fails_the_run_and_its_retry_pushes(
    machine: Machine, folder: Path
) -> None:
    path, good = payments(folder / "pushed.csv", 6000, 25, 4)
    port = own_port()
    login = {"user": "ann", "secret": "not-a-secret"}
    block = machine.block(
        "service-credentials", "service", {"base_url": f"http://127.0.0.1:{port}", **login}
    )
    try:
        request = {"paths": [path], "push": True}
        quick = {"RECON_SERVICE_ATTEMPTS": "1", "RECON_SERVICE_BACKOFF_SECONDS": "0.01"}
        run = machine.start(IMPORT, {"delivery": request}, **quick)
        type_, name, message = machine.end(run)
        assert (type_, name) == ("FAILED", "Failed"), message
        assert "not-a-secret" not in message
        assert applied(machine, 6000, 25) == (24, good)
        with psycopg.connect(machine.database("postgres"), autocommit=True) as connection:
            connection.execute("CREATE DATABASE elsewhere")
        user = User(login["user"], login["secret"], ("Client", "Admin", "Partner"))
        elsewhere = Sandbox(SandboxOptions(port=port, users=(user,)), machine.database("elsewhere"))
        with elsewhere.running():
            machine.retry(run)
            type_, name, message = machine.end(run, runs=2)
            assert (type_, name) == ("COMPLETED", "CompletedWithErrors"), message
            arrived = machine.rows(
                'SELECT count(*), sum("PaidAmount") FROM sandbox.payment', database="elsewhere"
            )
            assert arrived == [(24, good)]
    finally:
        machine.api.delete(f"/block_documents/{block}").raise_for_status()


def over(machine: Machine, run: str) -> str | None:
    state = machine.run(run)["state"]
    return str(state["name"]) if state["type"] in ENDS else None


@pytest.mark.long
@pytest.mark.parametrize(
    "point", ["open", "copy", "receipt", "stage", "check", "apply", "applied", "finish"]
)
def test_killed_anywhere_the_retry_makes_the_totals_agree(
    machine: Machine, folder: Path, point: str
) -> None:
    first = 1_000_000 + int.from_bytes(point.encode()) % 9_973 * 1_000
    path, good = payments(folder / f"{point}.csv", first, 150, 9)
    run = machine.start(IMPORT, {"delivery": {"paths": [path]}}, CRASH_AT=point)
    machine.crashed(run)
    machine.until(lambda: None if busy(machine) else True)
    machine.retry_without(run)
    type_, name, message = machine.end(run, runs=2)
    assert (type_, name) == ("COMPLETED", "CompletedWithErrors"), message
    assert applied(machine, first, 150) == (149, good)


@pytest.mark.long
def test_a_run_that_fell_silent_is_crashed_once_somebody_wants_it(
    machine: Machine, folder: Path
) -> None:
    path, good = payments(folder / "silent.csv", 9000, 20)
    (silent,) = [one for one in machine.post("/automations/filter") if "silent" in one["name"]]
    switch = f"/automations/{silent['id']}"
    machine.api.patch(switch, json={"enabled": True}).raise_for_status()
    # A run that no worker of this machine looks after: with its process, everything is gone.
    deployment = machine.deployment(IMPORT)["id"]
    body = {"parameters": {"delivery": {"paths": [path]}}, "state": {"type": "PENDING"}}
    run = str(machine.post(f"/deployments/{deployment}/create_flow_run", body)["id"])
    choice = UpOptions(port=machine.port)
    settings = read_settings({"RECON_HOME": str(machine.home)})
    environment = machine.environment | {
        name: value
        for name, value in prefect_environment(settings, choice, None).items()
        if name.startswith("PREFECT_")
    }
    with psycopg.connect(machine.database("recon")) as connection:
        connection.execute("LOCK TABLE recon.payment IN SHARE ROW EXCLUSIVE MODE")
        process = subprocess.Popen(
            [sys.executable, "-m", "prefect", "flow-run", "execute", run],
            env=environment | {"RECON_DATABASE_URL": machine.database("recon")},
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        machine.until(lambda: heartbeats(machine, run) or None)
        for one in (*children_of(process.pid), process):
            one.kill()
        process.wait()
    assert machine.run(run)["state"]["name"] == "Running"
    machine.until(lambda: True if over(machine, run) == "Crashed" else None, 300)
    assert "No heartbeat" in machine.run(run)["state"]["message"]
    machine.api.patch(switch, json={"enabled": False}).raise_for_status()
    machine.until(lambda: None if busy(machine) else True)
    machine.retry(run)
    assert machine.end(run, runs=2)[1] == "Completed"
    assert applied(machine, 9000, 20) == (20, good)


def heartbeats(machine: Machine, run: str) -> int:
    wanted = {
        "filter": {
            "event": {"name": ["prefect.flow-run.heartbeat"]},
            "resource": {"id": [f"prefect.flow-run.{run}"]},
        }
    }
    return int(machine.post("/events/filter", wanted)["total"])


def waiting(machine: Machine) -> int:
    """Connections of ours that wait for a lock."""
    ((count,),) = machine.rows(
        "SELECT count(*) FROM pg_stat_activity "
        "WHERE application_name = 'recon' AND wait_event_type = 'Lock'"
    )
    return int(count)


def busy(machine: Machine) -> int:
    """Connections of ours at all."""
    ((count,),) = machine.rows(
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'recon'"
    )
    return int(count)


@pytest.mark.long
def test_no_secret_and_no_pickle_is_kept_by_the_server(machine: Machine, folder: Path) -> None:
    path = folder / "registrations.csv"
    path.write_text(
        "EMail,FirstName,LastName,Password,ConfirmPassword,Company\n"
        f"nobody,Ann,Lee,{CANARY},{CANARY},Acme\n"
    )
    run = machine.start(IMPORT, {"delivery": {"paths": [str(path)]}})
    assert machine.end(run)[1] == "CompletedWithErrors"
    machine.until(lambda: any("rejected" in one for one in machine.log_lines(run)) or None)
    kept = dump(machine) + b"".join(
        file.read_bytes()
        for part in ("prefect", "up", "reports")
        for file in (machine.home / part).rglob("*")
        if file.is_file()
    )
    assert b"registrations.csv" in kept
    assert CANARY.encode() not in kept
    results = [one for one in (machine.home / "prefect" / "storage").rglob("*") if one.is_file()]
    assert results
    for one in results:
        record = json.loads(one.read_bytes())
        if "metadata" in record:
            json.loads(record["result"])


def dump(machine: Machine) -> bytes:
    """Every value of the Prefect server's database as text."""
    tables = machine.rows(
        "SELECT tablename FROM pg_tables WHERE schemaname = 'public'", database="prefect"
    )
    assert len(tables) > 20
    parts = []
    with psycopg.connect(machine.database("prefect")) as connection:
        for (name,) in tables:
            with connection.cursor().copy(f'COPY "{name}" TO STDOUT') as copy:
                parts += [bytes(block) for block in copy]
    return b"".join(parts)
