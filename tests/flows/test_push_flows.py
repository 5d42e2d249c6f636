"""Pushing, settling and reading listings as Prefect runs."""

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any, get_args

import pytest

from connectors.files.profiles.profile import DEFAULT
from connectors.postgres.batches.lease import hold_batch
from connectors.postgres.push.lane import hold_lane
from flows.stages.pull import LISTINGS
from flows.stages.receiving.batch_service import ask_for_service
from flows.stages.sequence import import_delivery
from flows.stages.workspace import Workspace
from schemas.operations import PUSHES
from tests.flows.runs import artifact, run
from tests.ports import LOOPBACK, own_port
from tests.push.conftest import USER, sandbox_at
from tests.push.conftest import towards as at_service
from tests.push.deliveries import payments, tones
from tests.service.faulty_server import DROPPED, OK, FaultyServer, always, at, status

pytestmark = pytest.mark.flows
SAMPLES = Path(__file__).parents[2] / "data_samples"


@pytest.fixture
def towards(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The environment of a worker that knows this service."""

    def name(url: str) -> None:
        for variable, value in (
            ("URL", url),
            ("FORMAT", "json"),
            ("CONCURRENCY", "1"),
            ("USER", USER.name),
            ("PASSWORD", USER.password),
        ):
            monkeypatch.setenv(f"RECON_SERVICE_{variable}", value)

    return name


def test_names_in_the_forms_are_those_of_the_operations() -> None:
    from flows.pull_listings import ListingName
    from flows.resolve import resolve

    form, _ = resolve.parameters.properties["operation"]["anyOf"]
    assert form["enum"] == [operation.name for operation in PUSHES.values()]
    assert set(get_args(ListingName)) == set(LISTINGS)


@pytest.mark.long
def test_import_push_resolve_and_push_again(
    workspace: Workspace, rows: Any, towards: Any, tmp_path: Path
) -> None:
    from flows.push_batch import push_batch
    from flows.resolve import resolve

    path = tones(tmp_path / "tones.csv", 5)
    with FaultyServer(at({3: DROPPED})) as server:
        towards(server.url)
        state = run(path, push=True)
        assert state.name == "CompletedWithErrors"
        ended = push_batch(return_state=True)
        assert (ended.name, ended.message) == ("Completed", "Nothing unsent")
        settled = resolve(
            1, "resend", "looked it up", "A. Meyer", rows=["tones.csv:record:3"], return_state=True
        )
        assert settled.name == "Completed", settled.message
        assert artifact("resolution").table == [
            {"Operation": "AddMessageTone", "Was": "in doubt", "Rows": "1"}
        ]
        again = push_batch(return_state=True)
        assert again.name == "Completed", again.message
        assert len(server.effects) == 5
        avatars = tmp_path / "avatars.csv"
        avatars.write_text("TenantsId,Name,ImageUrl\n7,Nora,https://a.example\n")
        run(str(avatars))
        kept = push_batch(2, return_state=True)
        why = "because the service documents no operation that takes it"
        told = f"1 batch: everything else is at the service. Avatar: not sent, {why}."
        assert (kept.name, kept.message) == ("Completed", told)
        again = push_batch(1, return_state=True)
        assert again.message == "1 batch: everything is at the service"
    assert artifact("push-results").table == [
        {"Batch": "1", "Operation": "AddMessageTone", "State": "acknowledged", "Rows": "5"}
    ]
    assert rows("SELECT DISTINCT state FROM batch") == [("complete",)]


@pytest.mark.long
def test_a_batch_that_was_only_imported_is_pushed_on_request(
    workspace: Workspace, rows: Any, towards: Any, tmp_path: Path
) -> None:
    from flows.push_batch import push_batch

    run(tones(tmp_path / "tones.csv", 5))
    with FaultyServer() as server:
        towards(server.url)
        some = push_batch(1, max_rows=2, return_state=True)
        assert some.name == "CompletedWithErrors"
        assert len(server.effects) == 2
        rest = push_batch(1, return_state=True)
        assert rest.name == "Completed", rest.message
        assert len(server.effects) == 5


@pytest.mark.long
def test_only_a_run_of_the_batch_takes_it_to_another_service(
    workspace: Workspace, towards: Any, tmp_path: Path
) -> None:
    from flows.push_batch import push_batch

    with FaultyServer(always(status(401))) as former, FaultyServer() as server:
        towards(former.url)
        run(tones(tmp_path / "tones.csv", 2), push=True)
        towards(server.url)
        of_all = push_batch(return_state=True)
        assert of_all.name == "Failed"
        assert "by `recon push 1`" in of_all.message
        assert server.requests == []
        assert push_batch(1, return_state=True).name == "Completed"
        assert len(server.effects) == 2


@pytest.mark.long
def test_batches_above_those_of_one_run_are_told_and_are_the_next_run_s(
    workspace: Workspace, towards: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from flows import push_batch

    monkeypatch.setattr(push_batch, "MOST_BATCHES", 1)
    with FaultyServer() as server:
        towards(server.url)
        for number in (1, 2):
            rows = tones(tmp_path / f"{number}.csv", number + 1)
            import_delivery(workspace, [rows], DEFAULT)
            push_batch.push_batch(number, max_rows=1, return_state=True)
        first = push_batch.push_batch(return_state=True)
        told = "1 batch: everything is at the service. 1 more batch waits for the next run."
        assert first.message == told
        second = push_batch.push_batch(return_state=True)
        assert second.message == "1 batch: everything is at the service"


@pytest.mark.long
def test_of_each_batch_of_a_push_its_own_end_is_told(
    workspace: Workspace, rows: Any, towards: Any, tmp_path: Path
) -> None:
    from flows.push_batch import push_batch

    with FaultyServer(at({3: DROPPED})) as server:
        towards(server.url)
        for deliver in (tones, payments):
            path = deliver(tmp_path / f"{deliver.__name__}.csv", 3)
            run(path)
            push_batch(1 if deliver is tones else 2, max_rows=1, return_state=True)
        last = rows("SELECT max(id) FROM event")[0][0]
        assert push_batch(return_state=True).name == "CompletedWithErrors"
    told = rows(
        f"SELECT batch_id, what FROM event WHERE what LIKE 'run c%%' AND id > {last} ORDER BY 1"
    )
    assert told == [(1, "run completed_with_errors"), (2, "run completed")]


@pytest.mark.long
def test_a_row_that_is_not_taken_fails_the_run_and_holds_up_no_other_batch(
    workspace: Workspace, rows: Any, towards: Any, tmp_path: Path
) -> None:
    from flows.push_batch import push_batch

    with FaultyServer() as server:
        towards(server.url)
        for number, deliver in enumerate((tones, payments), 1):
            run(deliver(tmp_path / f"{number}.csv", 4))
            push_batch(number, max_rows=1, return_state=True)
        server.plan = lambda seen: status(403) if "tone 3" in seen.body else OK
        ended = push_batch(return_state=True)
    assert ended.name == "Failed"
    assert "`recon resolve 1 --row 1.csv:record:3 --as abandon" in ended.message
    assert rows("SELECT batch_id, state, count(*) FROM send GROUP BY 1, 2 ORDER BY 1, 2") == [
        (1, "acknowledged", 3),
        (1, "unsent", 1),
        (2, "acknowledged", 4),
    ]


@pytest.mark.long
def test_a_batch_that_another_run_has_is_left_to_it(
    workspace: Workspace, rows: Any, towards: Any, tmp_path: Path
) -> None:
    """Nobody has to see to it, and the trail of the batch tells of no run that failed."""
    from flows.push_batch import push_batch

    with FaultyServer() as server:
        towards(server.url)
        for number in (1, 2):
            run(tones(tmp_path / f"{number}.csv", number + 1))
            push_batch(number, max_rows=1, return_state=True)
        with workspace.database.connect() as other, hold_batch(other, 1):
            asked = push_batch(1, return_state=True)
            assert (asked.name, "being worked on" in str(asked.message)) == ("Failed", True)
            told = rows("SELECT count(*) FROM event WHERE batch_id = 1")
            swept = push_batch(return_state=True)
        assert swept.type.value == "COMPLETED", swept.message
        assert str(swept.message).endswith(". Batch 1 is left to the run that has it.")
        assert rows("SELECT count(*) FROM event WHERE batch_id = 1") == told
        assert push_batch(return_state=True).name == "Completed"
        assert len(server.effects) == 3


@pytest.mark.long
def test_what_another_run_is_sending_fails_no_run_and_holds_up_no_other_batch(
    workspace: Workspace, towards: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next run goes on with it: nobody has to see to anything."""
    from flows.push_batch import push_batch

    with FaultyServer() as server:
        towards(server.url)
        monkeypatch.setenv("RECON_SERVICE_TURN_SECONDS", "0.01")
        place = at_service(workspace, server.url)
        for batch, made in enumerate((tones, tones, payments), 1):
            import_delivery(workspace, [made(tmp_path / f"{batch}.csv", batch + 1)], DEFAULT)
            with workspace.database.connect() as connection, hold_batch(connection, batch) as lease:
                ask_for_service(place, lease)
        with (
            workspace.database.connect() as other,
            hold_batch(other, 1) as lease,
            hold_lane(lease, PUSHES["message_tone"], wait_seconds=1),
        ):
            swept = push_batch(return_state=True)
        assert swept.type.value == "COMPLETED", swept.message
        assert str(swept.message).startswith("1 batch: everything is at the service. Batch 1 is ")
        assert "Batch 2 waits for the end of another run that sends the same" in str(swept.message)
        assert push_batch(return_state=True).name == "Completed"


@pytest.mark.long(but=("apply_rows",))
@pytest.mark.parametrize("stage", ["apply_rows", "push_rows"])
def test_an_import_leaves_its_batch_to_a_push_that_came_between_two_stages(
    workspace: Workspace,
    rows: Any,
    towards: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    stage: str,
) -> None:
    from flows.push_batch import push_batch
    from flows.tasks import batch as tasks

    with FaultyServer() as server, ExitStack() as held:
        towards(server.url)

        def take(*_: object) -> None:
            other = held.enter_context(workspace.database.connect())
            held.enter_context(hold_batch(other, 1))

        monkeypatch.setattr(getattr(tasks, stage), "on_completion_hooks", [take])
        ended = run(tones(tmp_path / "tones.csv", 3), push=True)
        assert (ended.name, ended.type.value) == ("CompletedWithErrors", "COMPLETED"), ended.message
        assert "Batch 1 is applied, and the rest is left" in str(ended.message)
        held.close()
        assert push_batch(return_state=True).name == "Completed"
        assert len(server.effects) == 3
    assert rows("SELECT state FROM batch") == [("complete",)]


@pytest.mark.long
def test_no_more_rows_are_sent_than_were_asked_for_whatever_is_tried_again(
    workspace: Workspace, rows: Any, towards: Any, tmp_path: Path
) -> None:
    """A task whose database is lost is tried again; with a number of rows it would send so many."""
    from flows.push_batch import push_batch

    run(tones(tmp_path / "tones.csv", 3))
    cut = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    with FaultyServer(lambda seen: status(200, applied=True, hold=lambda: rows(cut))) as server:
        towards(server.url)
        assert push_batch(1, max_rows=1, return_state=True).type.value == "FAILED"
        assert len(server.requests) == 1


@pytest.mark.long
def test_a_service_that_refuses_us_fails_the_run_until_it_is_mended(
    workspace: Workspace, rows: Any, towards: Any, tmp_path: Path
) -> None:
    from flows.push_batch import push_batch

    path = tones(tmp_path / "tones.csv", 5)
    with FaultyServer(always(status(401))) as server:
        towards(server.url)
        failed = run(path, push=True)
        assert failed.type.value == "FAILED"
        refused = push_batch(return_state=True)
        assert refused.type.value == "FAILED"
        for state in (failed, refused):
            assert "5 rows of batch 1 are unsent and nothing is lost" in str(state.message)
            assert "`recon push 1` goes on" in str(state.message)
            # It says what to do, and not where in the program it was noticed.
            assert "exception" not in str(state.message)
        server.plan = lambda seen: OK
        assert push_batch(return_state=True).name == "Completed"
        assert len(server.effects) == 5
        told = json.dumps([seen.path for seen in server.requests])
        assert USER.password not in told


@pytest.mark.long
@pytest.mark.parametrize("answered", [0, 2])
def test_a_service_that_is_down_is_told_with_cause_and_number(
    workspace: Workspace, rows: Any, towards: Any, tmp_path: Path, answered: int
) -> None:
    """Three rows are too few for a circuit breaker; the cause is told all the same."""
    from flows.push_batch import push_batch

    if answered:
        with FaultyServer() as server:
            towards(server.url)
            run(tones(tmp_path / "tones.csv", 3 + answered))
            push_batch(1, max_rows=answered, return_state=True)
    else:
        run(tones(tmp_path / "tones.csv", 3))
    towards(server.url if answered else f"http://{LOOPBACK}:{own_port()}")
    ended = push_batch(1, return_state=True)
    assert ended.type.value == "FAILED", ended.message
    told = "3 rows of batch 1 are unsent and nothing is lost. `recon push 1` goes on"
    assert told in str(ended.message)
    assert "onnect" in str(ended.message)
    for key in ("push-results", "import-summary"):
        assert "3 rows of batch 1 are unsent" in artifact(key).description


@pytest.mark.long
@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "No row is named"),
        ({"rows": []}, "No row is named"),
        ({"rows": ["tones.csv:record:1"], "all_rows": True}, "Choose one of the two"),
        ({"rows": ["tones.csv:1"]}, "tones.csv:line:1 or tones.csv:record:1"),
        ({"rows": [""]}, "is no FILE:line:LINE"),
    ],
)
def test_a_decision_about_no_row_is_never_one_about_all(
    workspace: Workspace, rows: Any, towards: Any, tmp_path: Path, given: Any, told: str
) -> None:
    from flows.resolve import resolve

    with FaultyServer(always(DROPPED)) as server:
        towards(server.url)
        run(tones(tmp_path / "tones.csv", 2), push=True)
    before = rows("SELECT state, count(*) FROM send GROUP BY 1 ORDER BY 1")
    settled = resolve(1, "abandon", "given up", "A. Meyer", **given, return_state=True)
    assert (settled.type.value, told in str(settled.message)) == ("FAILED", True), settled.message
    assert rows("SELECT state, count(*) FROM send GROUP BY 1 ORDER BY 1") == before
    settled = resolve(1, "abandon", "given up", "A. Meyer", all_rows=True, return_state=True)
    assert settled.name == "Completed", settled.message


def test_listings_are_read_and_shown(
    workspace: Workspace, rows: Any, database_url: str, towards: Any
) -> None:
    from flows.pull_listings import pull_listings

    with sandbox_at(database_url) as (sandbox, url):
        count = sandbox.load("avatar", SAMPLES / "clean" / "avatars.csv")
        towards(url)
        state = pull_listings(["avatars"], return_state=True)
        assert state.name == "Completed", state.message
    (line,) = artifact("listings").table
    assert (line["Listing"], line["Rows"]) == ("avatars", str(count))
    assert rows("SELECT DISTINCT state FROM staged_row") == [("listed",)]
