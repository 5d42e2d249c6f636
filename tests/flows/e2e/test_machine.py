"""`recon up`, `down` and `deploy`: what is there, what a second time changes, what is left."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from schemas.operations import OPERATIONS
from tests.flows.e2e.conftest import CANARY
from tests.flows.e2e.machine import Machine, left_behind

pytestmark = pytest.mark.e2e

IMPORT = "import-batch/adhoc"
SAMPLES = Path(__file__).parents[3] / "data_samples"


@pytest.mark.long
def test_the_pages_talk_to_their_own_server_and_promote_nothing(machine: Machine) -> None:
    pages = machine.api.get(f"{machine.url}/ui-settings").json()
    assert pages["api_url"] == f"{machine.url}/api"
    assert pages["default_ui"] == "v1"
    settings = machine.get("/admin/settings")["server"]
    assert not settings["analytics_enabled"]
    assert not settings["ui"]["show_promotional_content"]
    assert machine.api.get(machine.url).text.count("<div id=") >= 1


@pytest.mark.long
def test_the_desk_is_up_with_it(machine: Machine) -> None:
    page = machine.api.get(f"http://127.0.0.1:{machine.desk_port}/")
    assert page.is_success
    assert "Self-declared" in page.text


@pytest.mark.long
def test_a_second_up_says_what_runs(machine: Machine) -> None:
    for options in ([], ["--detach"]):
        again = machine.recon("up", *options, *machine.options())
        assert again.returncode == 0, again.stderr
        assert machine.url in again.stdout
        assert f"http://127.0.0.1:{machine.sandbox_port}" in again.stdout


def test_the_sandbox_shows_its_listings(machine: Machine) -> None:
    service = f"http://127.0.0.1:{machine.sandbox_port}"
    for operation in OPERATIONS:
        if operation.returns_list:
            answer = machine.api.get(
                service + operation.path,
                auth=("demo", "demo"),
                headers={"Accept": "application/json"},
            )
            assert answer.is_success, operation.name
            assert len(answer.json()) > 5, operation.name


@pytest.mark.long
def test_deploying_again_keeps_what_operators_switched(machine: Machine) -> None:
    def of(name: str) -> Any:
        deployment = machine.deployment(name)
        schedules = {str(one["slug"]): one for one in deployment["schedules"]}
        return deployment, schedules

    deployment, schedules = of("watch-inbox/nightly")
    assert deployment["global_concurrency_limit"]["limit"] == 1
    assert deployment["concurrency_options"]["collision_strategy"] == "ENQUEUE"
    assert (deployment["paused"], schedules["nightly"]["active"]) == (True, True)
    path = f"/deployments/{deployment['id']}"
    machine.post(f"{path}/resume_deployment")
    own = {"slug": "mine", "active": False, "schedule": {"cron": "5 5 * * *"}, "parameters": {}}
    machine.post(f"{path}/schedules", [own])
    automations = machine.post("/automations/filter")
    (telling,) = [one for one in automations if one["name"].endswith("needs somebody")]
    machine.api.patch(f"/automations/{telling['id']}", json={"enabled": False}).raise_for_status()

    assert machine.recon("deploy").returncode == 0
    found = machine.post("/automations/filter")
    assert sorted(one["name"] for one in found) == sorted(one["name"] for one in automations)
    assert not next(one for one in found if one["id"] == telling["id"])["enabled"]
    again, schedules = of("watch-inbox/nightly")
    assert (again["id"], again["paused"]) == (deployment["id"], False)
    assert {slug: one["active"] for slug, one in schedules.items()} == {
        "nightly": True,
        "mine": False,
    }
    machine.api.patch(f"/automations/{telling['id']}", json={"enabled": True}).raise_for_status()
    machine.post(f"{path}/pause_deployment")


@pytest.mark.long
def test_a_pool_of_another_kind_is_refused(machine: Machine) -> None:
    refused = machine.recon("deploy", "--type", "docker")
    assert refused.returncode == 2
    assert "is of type 'process', not 'docker'" in refused.stderr


@pytest.mark.long
def test_secrets_of_blocks_are_encrypted_at_rest(machine: Machine) -> None:
    values = {"base_url": "http://127.0.0.1:1", "user": "ann", "secret": CANARY}
    machine.block("service-credentials", "elsewhere", values)
    ((kept,),) = machine.rows(
        "SELECT data::text FROM block_document WHERE name = 'elsewhere'", database="prefect"
    )
    assert CANARY not in kept
    # Nor is the key beside them.
    keys = machine.rows("SELECT key FROM configuration", database="prefect")
    assert ("ENCRYPTION_KEY",) not in keys
    assert (machine.home / "up" / "blocks.key").stat().st_mode & 0o077 == 0
    path = "/block_types/slug/service-credentials/block_documents/name/elsewhere"
    assert machine.get(path)["data"]["secret"] != CANARY
    assert machine.get(path + "?include_secrets=true")["data"]["secret"] == CANARY


@pytest.mark.long
def test_detached_it_stays_and_down_ends_it(tmp_path: Path) -> None:
    """A push that is under way writes down what became of what it has sent."""
    other = Machine(tmp_path / "home", RECON_SERVICE_RATE="3")
    started = other.recon("up", "--detach", *other.options())
    assert started.returncode == 0, started.stderr
    replies = str(SAMPLES / "clean" / "form_replies.csv")
    other.start(IMPORT, {"delivery": {"paths": [replies], "push": True}})
    other.until(lambda: other.rows("SELECT FROM recon.send WHERE attempts > 0") or None)
    done = other.recon("down")
    assert (done.returncode, done.stdout) == (0, "Everything is stopped.\n")
    assert left_behind(other.home) == []
    assert other.recon("down").stdout == "Nothing is up.\n"
    sends = other.recon("sends", "1").stdout
    assert " unsent, 0 attempts" in sends
    assert [line for line in sends.splitlines() if " sending, " in line] == []
    assert "run crashed" in other.recon("audit", "list", "--batch", "1").stdout


@pytest.mark.long
def test_a_start_says_what_registering_could_not_keep(tmp_path: Path) -> None:
    other = Machine(tmp_path / "home")
    with other.up():
        found = other.deployment("import-batch/adhoc")
        deliveries = {"delivery": {"paths": ["/in"], "record": "refund"}}
        changed = {"parameters": deliveries, "enforce_parameter_schema": False}
        other.api.patch(f"/deployments/{found['id']}", json=changed).raise_for_status()
        push = other.deployment("push-batch/push")
        other.api.delete(f"/deployments/{push['id']}").raise_for_status()
    noted = (
        'note        import-batch/adhoc: parameter delivery = {"paths": ["/in"], "record": '
        '"refund"} is not kept, because its flow no longer takes it: ',
        "note        push-batch/push: it was missing; created again, switched off\n",
    )
    try:
        started, again = (other.recon("up", "--detach", *other.options()) for _ in range(2))
    finally:
        other.recon("down")
    assert [text in started.stdout for text in noted] == [True, True], started.stdout
    assert [text in again.stdout for text in noted] == [False, False], again.stdout


@pytest.mark.long
def test_what_a_killed_up_left_is_ended_by_down(tmp_path: Path) -> None:
    other = Machine(tmp_path / "home")
    assert other.recon("up", "--detach", *other.options()).returncode == 0
    parents = [one for one in left_behind(other.home) if "flows up" in one]
    os.kill(int(parents[0].split()[0]), signal.SIGKILL)
    assert len(left_behind(other.home)) > 2
    done = other.recon("down")
    assert done.returncode == 0
    assert "left behind were stopped" in done.stdout
    other.until(lambda: True if left_behind(other.home) == [] else None, seconds=20)


@pytest.mark.long
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGKILL"])
@pytest.mark.parametrize("line", ["PostgreSQL", "Prefect", "Registering"])
def test_a_start_is_stopped_as_soon_as_somebody_says_so(
    tmp_path: Path, line: str, name: str
) -> None:
    """Killed, it leaves what it had begun, and `recon down` ends that."""
    other = Machine(tmp_path / "home")
    log = tmp_path / "log"
    process = other.begin_up(log)
    other.until(lambda: (line in log.read_text()) or None)
    process.send_signal(signal.Signals[name])
    code = process.wait()
    if name == "SIGKILL":
        assert other.recon("down").returncode == 0
        other.until(lambda: True if left_behind(other.home) == [] else None, seconds=20)
        return
    assert code == 130, log.read_text()
    assert "Stopping ...\nrecon: stopped." in log.read_text()
    assert "recon is up" not in log.read_text()
    assert left_behind(other.home) == []


@pytest.mark.long
def test_a_taken_port_is_told_and_nothing_stays(machine: Machine, tmp_path: Path) -> None:
    other = Machine(tmp_path / "home")
    options = [f"--port={machine.port}", f"--sandbox-port={other.sandbox_port}"]
    options.append(f"--desk-port={other.desk_port}")
    refused = other.recon("up", *options)
    assert refused.returncode == 2
    assert "Port" in refused.stderr
    assert "already in use" in refused.stderr
    assert left_behind(other.home) == []


@pytest.mark.long
def test_with_a_login_nobody_else_gets_in(tmp_path: Path) -> None:
    other = Machine(tmp_path / "home")
    login = f"ann:{CANARY}"
    started = other.recon("up", "--detach", *other.options(), RECON_UP_AUTH=login)
    assert started.returncode == 0, started.stderr
    assert other.api.post("/flows/filter", json={}).status_code == 401
    assert other.api.post("/flows/filter", json={}, auth=("ann", CANARY)).status_code == 200
    assert other.recon("down").returncode == 0
    kept = [path for path in (other.home / "up").rglob("*") if path.is_file()]
    assert [path for path in kept if CANARY.encode() in path.read_bytes()] == []
