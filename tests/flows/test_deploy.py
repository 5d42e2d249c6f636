"""What is registered on a server: deployments that an earlier version left there are told."""

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.flows.e2e.machine import left_behind
from tests.flows.test_delivery import NEEDED

pytestmark = [pytest.mark.flows, pytest.mark.usefixtures("no_database")]


@pytest.fixture(autouse=True)
def nothing_stays() -> Iterator[None]:
    """Other tests count on a server without deployments."""
    from prefect.client.orchestration import get_client
    from prefect.variables import Variable

    from flows.ops.registering import REGISTERED

    yield
    with get_client(sync_client=True) as client:
        for found in client.read_deployments():
            client.delete_deployment(found.id)
    Variable.unset(REGISTERED)


@pytest.mark.long
def test_what_an_earlier_version_left_is_told_and_stays() -> None:
    from prefect.client.orchestration import get_client

    from flows.import_batch import import_batch
    from flows.ops.deployments import DEPLOYMENTS, TAG, Deployment
    from flows.ops.registering import create_pool, left_over
    from flows.ops.registering import register_one as register

    create_pool()
    earlier = Deployment("import_batch", "nightly", "As an earlier version had it.")
    with get_client(sync_client=True) as client:
        register(client, DEPLOYMENTS[0], "recon")
        register(client, earlier, "recon")
    import_batch.to_deployment("mine", tags=[TAG]).apply()
    import_batch.to_deployment("untagged").apply()
    assert left_over() == left_over() == ["import-batch/nightly"]
    with get_client(sync_client=True) as client:
        found = client.read_deployment_by_name(earlier.full_name)
        client.delete_deployment(found.id)
    assert left_over() == []


@pytest.mark.long
def test_a_schedule_that_waits_looks_off_and_stays_as_somebody_switched_it() -> None:
    """The switch on the pages is that of the deployment; a schedule that is off inside looks on."""
    from prefect.client.orchestration import get_client

    from flows.ops.deployments import DEPLOYMENTS
    from flows.ops.registering import create_pool
    from flows.ops.registering import register_one as register

    create_pool()
    line = next(one for one in DEPLOYMENTS if one.full_name == "pull-listings/pull")
    with get_client(sync_client=True) as client:

        def seen() -> tuple[bool, list[bool]]:
            found = client.read_deployment_by_name(line.full_name)
            return found.paused, [one.active for one in found.schedules]

        register(client, line, "recon")
        assert seen() == (True, [True])
        found = client.read_deployment_by_name(line.full_name)
        client.resume_deployment(found.id)
        register(client, line, "recon")
        assert seen() == (False, [True])
        found = client.read_deployment_by_name(line.full_name)
        # As an earlier version left it: off inside, and on to look at.
        client.update_deployment_schedule(found.id, found.schedules[0].id, active=False)
        register(client, line, "recon")
        assert seen() == (True, [True])


def test_what_operators_set_stays_and_what_cannot_is_said() -> None:
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.actions import DeploymentUpdate
    from prefect.client.schemas.schedules import CronSchedule

    from flows.ops.deployments import DEPLOYMENTS
    from flows.ops.registering import create_pool
    from flows.ops.registering import register_one as register

    create_pool()
    lines = {one.full_name: one for one in DEPLOYMENTS}
    line = lines["watch-inbox/nightly"]
    with get_client(sync_client=True) as client:
        for same in (line, lines["watch-inbox/watch"]) * 2:
            assert register(client, same, "recon").notes == ()
        found = client.read_deployment_by_name(line.full_name)
        later = CronSchedule(cron="0 5 * * *", timezone="Europe/Berlin")
        client.update_deployment_schedule(found.id, found.schedules[0].id, schedule=later)
        client.update_deployment_schedule(found.id, found.schedules[0].id, max_scheduled_runs=3)
        set_by_hand = DeploymentUpdate(
            parameters={"inbox": "/srv/in", "settle_seconds": "soon", "gone": 1},
            job_variables={"env": {"RECON_HOME": "/srv/recon"}},
            tags=[*found.tags, "month-end"],
            enforce_parameter_schema=False,
        )
        client.update_deployment(found.id, set_by_hand)
        notes = register(client, line, "recon").notes
        after = client.read_deployment_by_name(line.full_name)
        assert after.id == found.id
        assert after.parameters == {"inbox": "/srv/in"}
        assert after.job_variables == {"env": {"RECON_HOME": "/srv/recon"}}
        assert after.tags == [*found.tags, "month-end"]
        assert [one.schedule.cron for one in after.schedules] == ["0 5 * * *"]
        assert [one.max_scheduled_runs for one in after.schedules] == [3]
        assert notes == (
            'parameter settle_seconds = "soon" is not kept, because its flow no longer takes it: '
            "'soon' is not of type 'number'",
            "parameter gone = 1 is not kept, because its flow no longer has it",
            "schedule nightly: stays 0 5 * * * (Europe/Berlin), as somebody set it; "
            "ours is 0 2 * * * (UTC)",
        )
        client.delete_deployment_schedule(found.id, after.schedules[0].id)
        said = "schedule nightly: it was missing; created again, switched off"
        assert register(client, line, "recon").notes == (said,)
        (made,) = client.read_deployment_by_name(line.full_name).schedules
        assert not made.active


@pytest.mark.long
def test_a_deployment_that_somebody_deleted_makes_no_runs_by_itself_again() -> None:
    from prefect.client.orchestration import get_client

    from flows.ops.deployments import DEPLOYMENTS
    from flows.ops.registering import create_pool, register

    create_pool()

    def off() -> set[str]:
        with get_client(sync_client=True) as client:
            found = [client.read_deployment_by_name(one.full_name) for one in DEPLOYMENTS]
        names = zip(DEPLOYMENTS, found, strict=True)
        return {line.full_name for line, one in names if one.paused}

    def deleted(*names: str) -> dict[str, tuple[str, ...]]:
        """What is said of these once they were deleted and registered again."""
        with get_client(sync_client=True) as client:
            for name in names:
                client.delete_deployment(client.read_deployment_by_name(name).id)
        return {one.name: one.notes for one in register() if one.notes}

    begin_off = {"pull-listings/pull", "watch-inbox/nightly"}
    assert deleted() == {}
    assert off() == begin_off
    said = ("it was missing; created again, switched off",)
    without_schedule = "import-batch/adhoc"
    assert deleted("push-batch/push", without_schedule) == {"push-batch/push": said}
    assert off() == {"push-batch/push", *begin_off}
    # The operator has said so; nothing of it is told twice.
    assert deleted() == {}
    assert off() == {"push-batch/push", *begin_off}


def test_a_parameter_that_a_flow_does_not_have_is_refused_before_there_is_a_run() -> None:
    from prefect.client.orchestration import get_client
    from prefect.exceptions import PrefectHTTPStatusError

    from flows.ops.deployments import DEPLOYMENTS
    from flows.ops.registering import create_pool
    from flows.ops.registering import register_one as register

    create_pool()
    with get_client(sync_client=True) as client:
        for line in DEPLOYMENTS:
            register(client, line, "recon")
            found = client.read_deployment_by_name(line.full_name)
            given = NEEDED.get(line.flow, {}) | {"weeks": 2}
            with pytest.raises(PrefectHTTPStatusError, match="'weeks' was unexpected"):
                client.create_flow_run_from_deployment(found.id, parameters=given)
            assert found.id not in {one.deployment_id for one in client.read_flow_runs()}


def test_parameters_of_a_schedule_that_no_run_can_go_by_are_said() -> None:
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.schedules import CronSchedule

    from flows.ops.deployments import DEPLOYMENTS
    from flows.ops.registering import create_pool
    from flows.ops.registering import register_one as register

    create_pool()
    line = next(one for one in DEPLOYMENTS if one.full_name == "import-batch/adhoc")
    cases: list[dict[str, object]] = [
        {"delivery": {"paths": ["/srv/in"]}},
        {},
        {"delivery": {"paths": []}},
        {"delivery": {"paths": ["/srv/in"]}, "weeks": 2},
    ]
    with get_client(sync_client=True) as client:
        register(client, line, "recon")
        found = client.read_deployment_by_name(line.full_name)
        for hour, given in enumerate(cases):
            cron = CronSchedule(cron=f"0 {hour} * * *")
            client.create_deployment_schedules(found.id, [(cron, False)], parameters=given)
        for _ in range(2):
            notes = register(client, line, "recon").notes
            kept = client.read_deployment_by_name(line.full_name).schedules
            by_time = sorted(kept, key=lambda one: one.schedule.cron)
            assert [one.parameters for one in by_time] == cases
            assert sorted(notes) == [
                "schedule 0 1 * * * (UTC): its runs will fail, because its flow does not take its "
                "parameters: 'delivery' is a required property",
                "schedule 0 2 * * * (UTC): its runs will fail, because its flow does not take its "
                "parameters: [] should be non-empty",
                "schedule 0 3 * * * (UTC): its runs will fail, because its flow does not take its "
                "parameters: Additional properties are not allowed ('weeks' was unexpected)",
            ]


@pytest.mark.long
def test_notices_stay_unless_they_are_ended() -> None:
    from prefect.client.orchestration import get_client
    from prefect.events.actions import CallWebhook, DoNothing, PauseAutomation
    from prefect.events.schemas.automations import AutomationCore

    from flows.ops import automations
    from flows.tasks import blocks

    blocks.register()
    own = PauseAutomation(type="pause-automation", source="inferred")
    with get_client(sync_client=True) as client:

        def actions() -> list[type]:
            (found,) = client.read_automations_by_name("recon: a run needs somebody")
            return [type(one) for one in found.actions]

        automations.register("")
        assert actions() == [DoNothing]
        for address in ("http://127.0.0.1:9/hook", None, "http://127.0.0.1:9/other", None):
            automations.register(address)
            assert actions() == [CallWebhook]
        (found,) = client.read_automations_by_name("recon: a run needs somebody")
        same = found.model_dump(exclude={"id", "owner_resource", "actions"})
        changed = AutomationCore(**same, actions=[*found.actions, own])
        client.update_automation(found.id, changed)
        automations.register("http://127.0.0.1:9/hook")
        assert actions() == [CallWebhook, PauseAutomation]
        automations.register("")
        assert actions() == [DoNothing, PauseAutomation]
        automations.register(None)
        assert actions() == [DoNothing, PauseAutomation]


def test_notices_are_of_every_deployment_of_our_flows_and_of_our_tag() -> None:
    from prefect.client.orchestration import get_client
    from prefect.server.events.schemas.events import Resource, ResourceSpecification

    from flows.import_batch import import_batch
    from flows.ops import automations

    own = import_batch.to_deployment("bank-x").apply()
    automations.register(None)
    with get_client(sync_client=True) as client:
        flow = client.read_deployment(own).flow_id
        for name in ("recon: a run needs somebody", "recon: silent runs are crashed"):
            (found,) = client.read_automations_by_name(name)
            wanted = ResourceSpecification(dict(found.trigger.match_related.root))
            for resource, is_ours in (
                (f"prefect.flow.{flow}", True),
                ("prefect.tag.recon", True),
                (f"prefect.flow.{own}", False),
                ("prefect.tag.other", False),
            ):
                related = Resource({"prefect.resource.id": resource})
                assert wanted.matches(related) is is_ours, (name, resource)


@pytest.mark.parametrize("pages", ["https://prefect.example.com", None])
@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ('a", "text": "all is well', 'a", "text": "all is well'),
        ("a\\b\nc", "a\\b\nc"),
        # Chat services would wake everybody, or show a link under another text.
        ("<!channel> @all.csv", "(!channel) (at)all.csv"),
        (
            "<http://a.b|report> [open](http://a.b).csv",
            "(http://a.b|report) (open](http://a.b).csv",
        ),
    ],
)
def test_a_notice_is_json_whatever_a_run_is_called_and_leads_to_it(
    name: str, shown: str, pages: str | None
) -> None:
    from prefect.server.events.actions import CallWebhook
    from prefect.server.schemas.core import Flow, FlowRun
    from prefect.server.schemas.states import Failed
    from prefect.server.utilities.user_templates import render_user_template_sync
    from prefect.settings import PREFECT_API_URL, PREFECT_UI_URL, temporary_settings

    from flows.ops.automations import MESSAGE

    CallWebhook.validate_template(MESSAGE, "payload")
    flow = Flow(name="import-batch")
    run = FlowRun(flow_id=flow.id, name=name, state=Failed())
    with temporary_settings({PREFECT_UI_URL: pages}, restore_defaults={PREFECT_API_URL}):
        told = json.loads(render_user_template_sync(MESSAGE, {"flow": flow, "flow_run": run}))
    where = f"{pages}/runs/flow-run/{run.id}" if pages else f"Run {run.id}"
    assert told == {"text": f"recon: import-batch / {shown} is Failed. {where}"}


def test_no_two_deployments_share_a_name() -> None:
    from flows.ops.deployments import DEPLOYMENTS

    names = [one.name for one in DEPLOYMENTS]
    assert sorted(set(names)) == sorted(names)


@pytest.mark.long
def test_a_notice_leaves_no_picture_to_fetch_from_outside() -> None:
    from prefect.client.orchestration import get_client

    from flows.ops import automations
    from flows.tasks import blocks

    blocks.register()
    for _ in range(2):  # Saving the block brings the picture back.
        automations.register("http://127.0.0.1:9/hook")
        with get_client(sync_client=True) as client:
            for slug in ("webhook", *(block.get_block_type_slug() for block in blocks.BLOCKS)):
                assert client.read_block_type_by_slug(slug).logo_url is None, slug


@pytest.mark.long
@pytest.mark.parametrize("kind", ["nobody", "silent", "page"])
def test_deploying_without_a_server_says_so(kind: str, tmp_path: Path) -> None:
    with answering(kind) as port:
        done = recon(
            "deploy", RECON_HOME=str(tmp_path), PREFECT_API_URL=f"http://127.0.0.1:{port}/api"
        )
    assert done.returncode == 2, done.stderr
    assert f"http://127.0.0.1:{port}/api" in done.stderr
    assert "othing was registered" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.long
@pytest.mark.parametrize("kind", ["silent", "page", "prefect"])
def test_up_leaves_a_port_alone_where_somebody_answers(kind: str, tmp_path: Path) -> None:
    from prefect.client.orchestration import get_client

    with answering(kind) as port:
        done = recon("up", f"--port={port}", "--sandbox-port=0", RECON_HOME=str(tmp_path))
    assert done.returncode == 2, done.stderr
    who = "a Prefect server 3." if kind == "prefect" else "no Prefect server"
    assert f"Port {port} is already in use by" in done.stderr
    assert who in done.stderr
    assert f"recon up --port {port + 1}" in done.stderr
    assert "Traceback" not in done.stderr
    with get_client(sync_client=True) as client:
        assert client.read_deployments() == []
    assert not (tmp_path / "postgres").exists()


@pytest.mark.long(but=("page",))
@pytest.mark.parametrize("kind", ["silent", "page", "json", "torn"])
def test_what_answers_everything_is_no_prefect_server(kind: str) -> None:
    """Not even one that answers JSON to whatever it is asked, or nothing that can be read."""
    from flows.ops.whose_server import Answering, who_answers

    with answering(kind) as port:
        assert who_answers(f"http://127.0.0.1:{port}") == Answering(prefect=False)


@pytest.mark.long
def test_a_second_up_on_other_terms_is_told_what_runs(tmp_path: Path) -> None:
    from flows.ops.running import Running, alone, note

    at = {"prefect": "http://127.0.0.1:4311", "sandbox": "http://127.0.0.1:4312"}
    terms = {"host": "127.0.0.1", "port": "4311", "sandbox_port": "0", "pages": "v1"}
    with alone(tmp_path / "up") as ours:
        assert ours
        note(tmp_path / "up", Running.of({}, terms, **at, inbox="/inbox", logs="/logs"))
        for detached in ((), ("--detach",)):
            done = recon("up", "--port=4313", *detached, RECON_HOME=str(tmp_path))
            assert done.returncode == 2
            assert "--port 4313 (it is 4311)" in done.stderr
            assert "http://127.0.0.1:4311" in done.stderr
            same = recon("up", "--port=4311", *detached, RECON_HOME=str(tmp_path))
            assert same.returncode == 0, same.stderr
            assert "http://127.0.0.1:4311" in same.stdout
    assert left_behind(tmp_path) == []


def recon(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PREFECT_", "RECON_"))
    }
    return subprocess.run(
        [sys.executable, "-m", "flows", *arguments],
        env=kept | environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@contextmanager
def answering(kind: str) -> Iterator[int]:
    """A port at which somebody else is: nobody, one who never speaks, a page, a Prefect server."""
    from prefect.settings import PREFECT_API_URL

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            if kind == "torn":
                self.send_header("Content-Encoding", "gzip")
            self.end_headers()
            self.wfile.write(b'{"status": "up"}' if kind == "json" else b"<html>hello</html>")

        def log_message(self, *_: object) -> None:
            """Nobody reads it."""

    match kind:
        case "prefect":
            port = urlsplit(str(PREFECT_API_URL.value())).port
            assert port is not None
            yield port
        case "page" | "json" | "torn":
            with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
                thread = threading.Thread(target=server.serve_forever)
                thread.start()
                yield server.server_port
                server.shutdown()
                thread.join()
        case _:
            with socket.socket() as taken:
                taken.bind(("127.0.0.1", 0))
                if kind == "silent":
                    taken.listen()
                yield taken.getsockname()[1]
