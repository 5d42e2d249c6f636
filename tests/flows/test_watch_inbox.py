"""The flow `watch-inbox`: runs of import-batch for what is complete, one for each content."""

import hashlib
import os
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from connectors.files.incoming.inbox import Inbox, hash_of
from connectors.process import whoami
from flows.stages.inbox import InboxLine
from flows.stages.workspace import Workspace
from tests.flows.runs import artifact, put
from tests.stages.payments import line, write

pytestmark = pytest.mark.flows


def watch(inbox: Path | None, **terms: Any) -> Any:
    from flows.watch_inbox import watch_inbox

    folder = None if inbox is None else str(inbox)
    return watch_inbox(folder, settle_seconds=0, return_state=True, **terms)


def runs_of_imports() -> list[Any]:
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import DeploymentFilter, DeploymentFilterName

    wanted = DeploymentFilter(name=DeploymentFilterName(any_=["from-inbox"]))
    with get_client(sync_client=True) as client:
        return client.read_flow_runs(deployment_filter=wanted)


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    (tmp_path / "inbox").mkdir()
    return tmp_path / "inbox"


@pytest.mark.long
def test_without_a_deployment_the_run_imports_by_itself(inbox: Path, rows: Any) -> None:
    write(inbox / "a.csv", line(1))
    (inbox / "b.csv.part").touch()
    state = watch(inbox)
    assert (state.name, state.message) == ("Completed", "1 started, 1 unfinished")
    assert rows("SELECT name FROM extract") == [("a.csv",)]
    assert [tuple(row.values()) for row in artifact("inbox").table] == [
        ("a.csv", "started", "batch 1: complete"),
        ("b.csv.part", "unfinished", "is being written"),
    ]
    assert watch(inbox).message == "1 unfinished"
    write(inbox / "c.csv", line(2), line(3, amount="x"))
    state = watch(inbox)
    assert (state.type.value, state.name) == ("COMPLETED", "CompletedWithErrors")
    told = "1 started, 1 unfinished. Next: `recon status` names the next step of each batch."
    assert state.message == told


def test_a_look_that_finds_what_is_never_imported_is_no_success(inbox: Path) -> None:
    (inbox / "payments.csv").mkdir()
    (inbox / "b.csv.part").touch()
    state = watch(inbox)
    assert (state.type.value, state.name) == ("COMPLETED", "CompletedWithErrors")
    told = "1 unfinished, 1 left alone. Next: complete what waits in the inbox, or take it out."
    assert state.message == told


@pytest.mark.long
def test_a_table_that_is_cut_says_so(inbox: Path) -> None:
    for number in range(205):
        (inbox / f"{number}.csv.part").touch()
    assert watch(inbox).message == "205 unfinished"
    kept = artifact("inbox")
    assert len(kept.table) == 200
    assert kept.description == "205 unfinished. These are the first 200 of 205 lines."
    (inbox / "0.csv.part").unlink()
    for number in range(1, 6):
        (inbox / f"{number}.csv.part").unlink()
    watch(inbox)
    assert (len(artifact("inbox").table), artifact("inbox").description) == (199, "199 unfinished")


@pytest.mark.long
def test_a_table_whose_first_lines_alone_are_made_says_how_many_there_are() -> None:
    from prefect import flow

    from flows.tasks.artifacts import publish_table

    @flow(name="cut")
    def publish() -> None:
        publish_table([{"Code": "AMOUNT"}] * 200, key="breaks", about="Run 1.", lines=999)

    publish()
    told = "Run 1. These are the first 200 of 999 lines."
    assert artifact("breaks").description == told


def test_a_deployment_that_is_not_there_imports_on_no_other_terms(inbox: Path) -> None:
    write(inbox / "a.csv", line(1))
    state = watch(inbox, deployment="import-batch/acne")
    assert state.is_failed()
    assert "There is no deployment import-batch/acne" in state.message
    assert (inbox / "a.csv").is_file()


@pytest.mark.long
def test_a_deployment_gets_one_run_for_each_content(inbox: Path, rows: Any, tmp_path: Path) -> None:
    from flows.import_batch import import_batch

    import_batch.to_deployment("from-inbox").apply()
    profile = tmp_path / "bank.toml"
    profile.write_text('feed = "bank"\n')
    terms = {
        "deployment": "import-batch/from-inbox",
        "profile": str(profile),
        "over_budget": "load",
    }
    write(inbox / "a.csv", line(1))
    assert watch(inbox, **terms).message == "1 started"
    (run,) = runs_of_imports()
    delivery = run.parameters["delivery"]
    (path,) = delivery["paths"]
    assert (delivery["profile"], delivery["over_budget"]) == (str(profile), "load")
    assert path == str(inbox / "archive" / run.idempotency_key[:2] / run.idempotency_key / "a.csv")
    assert Path(path).is_file()
    # The run has not begun, so no batch knows the content yet; its run does.
    write(inbox / "again.csv", line(1))
    assert watch(inbox, **terms).message == "1 waiting, 1 started"
    assert [one.id for one in runs_of_imports()] == [run.id]
    validated = import_batch.validate_parameters(run.parameters)
    assert import_batch(**validated, return_state=True).name == "Completed"
    assert rows("SELECT content_id, feed FROM batch") == [(run.idempotency_key, "bank")]


OWN = {"paths": ["/srv/in"], "tenant": 7, "max_errors": 3, "over_budget": "discard", "push": True}


@pytest.mark.long
@pytest.mark.parametrize(
    ("given", "differs"), [({}, {}), ({"over_budget": "release"}, {"over_budget": "release"})]
)
def test_a_deployment_imports_on_its_own_terms_but_for_what_the_watch_is_given(
    inbox: Path, tmp_path: Path, given: dict[str, str], differs: dict[str, str]
) -> None:
    from flows.import_batch import import_batch

    profile = tmp_path / "bank.toml"
    profile.write_text('feed = "bank"\n')
    own = OWN | {"profile": str(profile)}
    import_batch.to_deployment("from-inbox", parameters={"delivery": own}).apply()
    others = {one.id for one in runs_of_imports()}
    write(inbox / "a.csv", line(9 + len(given)))
    assert watch(inbox, deployment="import-batch/from-inbox", **given).message == "1 started"
    (run,) = [one for one in runs_of_imports() if one.id not in others]
    delivery = dict(run.parameters["delivery"])
    (path,) = delivery.pop("paths")
    assert Path(path).parent.name == run.idempotency_key
    digest = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    assert delivery.pop("files_hash") == hash_of([digest])
    assert delivery == {name: own[name] for name in own if name != "paths"} | differs


NOT_OF_TERMS = {"paths", "over_budget", "files_hash"}
"""Fields of a delivery that say nothing about how its files are opened and taken."""
STATED: dict[str, Any] = {
    "profile": "bank.toml",
    "record": "message_tone",
    "tenant": 7,
    "max_errors": 3,
    "max_error_rate": 0.5,
    "corrects": 4,
    "push": True,
    "change_records": True,
}


def test_every_term_of_a_delivery_is_stated_here() -> None:
    from flows.tasks.delivery import Delivery

    assert STATED.keys() | NOT_OF_TERMS == Delivery.model_fields.keys()


@pytest.mark.long(but=("record", "corrects"))
@pytest.mark.parametrize("name", STATED)
def test_a_look_opens_what_is_delivered_on_the_terms_its_run_takes_it_on(
    workspace: Workspace, inbox: Path, tmp_path: Path, name: str
) -> None:
    from flows.tasks.delivery import Delivery
    from flows.watch_inbox import watch_on

    (tmp_path / "bank.toml").write_text('feed = "bank"\n')
    value = str(tmp_path / STATED[name]) if name == "profile" else STATED[name]
    own = {"paths": ["/srv/in"], name: value}
    made = watch_on(workspace, str(inbox), own, {"profile": None}, "import-batch/from-inbox")
    assert made.terms == Delivery.model_validate(own).terms
    assert made.terms != Delivery(paths=["/srv/in"]).terms


@pytest.mark.long
def test_a_file_that_only_its_kind_makes_readable_is_imported_by_a_watch(
    inbox: Path, rows: Any
) -> None:
    from flows.import_batch import import_batch

    own = {"paths": ["/srv/in"], "record": "avatar"}
    import_batch.to_deployment("from-inbox", parameters={"delivery": own}).apply()
    others = {one.id for one in runs_of_imports()}
    (inbox / "x.csv").write_text("TenantsId\n1\n")
    assert watch(inbox, deployment="import-batch/from-inbox").message == "1 started"
    (run,) = [one for one in runs_of_imports() if one.id not in others]
    import_batch(**import_batch.validate_parameters(run.parameters), return_state=True)
    assert rows("SELECT record, refused FROM extract") == [("avatar", None)]


@pytest.mark.long
@pytest.mark.parametrize(
    ("own", "why"),
    [
        ({"tenant": "seven", "paths": ["/srv/in"]}, "tenant: Input should be a valid integer"),
        ({"feed": "bank"}, "feed: Extra inputs are not permitted"),
        ("/srv/in", "it is no form of a delivery"),
    ],
)
def test_terms_of_a_deployment_that_cannot_be_used_leave_the_inbox_as_it_is(
    inbox: Path, own: Any, why: str
) -> None:
    from flows.import_batch import import_batch

    made = import_batch.to_deployment("from-inbox", parameters={"delivery": own})
    made.enforce_parameter_schema = False
    made.apply()
    write(inbox / "a.csv", line(1))
    state = watch(inbox, deployment="import-batch/from-inbox")
    assert state.is_failed()
    assert f"delivery of the deployment import-batch/from-inbox cannot be used: {why}" in (
        state.message
    )
    assert (inbox / "a.csv").is_file()


AGAIN = {
    "Completed": "1 known, 1 started",
    "Failed": "1 started again, 1 started",
    "Crashed": "1 started again, 1 started",
    "Cancelling": "2 started",
    "Cancelled": "2 started",
}
"""How a run ended, and what the look after it says of what was delivered a second time."""


@pytest.mark.long
@pytest.mark.parametrize("ended", AGAIN)
def test_a_delivery_whose_run_has_ended_without_a_batch_has_another_one(
    inbox: Path, rows: Any, ended: str
) -> None:
    """As a database of before the import, or a run that was stopped too early, leaves it."""
    from prefect import states

    from flows.import_batch import import_batch

    import_batch.to_deployment("from-inbox").apply()
    terms = {"deployment": "import-batch/from-inbox"}
    others = {one.id for one in runs_of_imports()}
    for number, told in enumerate(("1 started", AGAIN[ended], AGAIN[ended]), 1):
        write(inbox / "a.csv", line(sum(map(ord, ended))))
        assert watch(inbox, **terms).message.partition(".")[0] == told
        runs = [one for one in runs_of_imports() if one.id not in others]
        assert len(runs) == number
        (run,) = [one for one in runs if not one.state.is_final() and one.state_name != ended]
        if number < 3:
            put(run.id, getattr(states, ended)())
    validated = import_batch.validate_parameters(run.parameters)
    assert import_batch(**validated, return_state=True).name == "Completed"
    assert rows("SELECT state FROM batch") == [("complete",)]


@pytest.mark.long
@pytest.mark.parametrize("ended", ["Failed", "Crashed", "Cancelled"])
def test_a_run_that_ended_before_it_opened_a_batch_is_made_up_for_by_the_next_look(
    inbox: Path, rows: Any, ended: str
) -> None:
    """Nobody delivers it again: the look keeps it in mind until a batch has it."""
    from prefect import states

    from flows.import_batch import import_batch

    import_batch.to_deployment("from-inbox").apply()
    terms = {"deployment": "import-batch/from-inbox"}
    seen = {one.id for one in runs_of_imports()}
    write(inbox / "a.csv", line(900 + len(ended)))
    first = watch(inbox, **terms).message.partition(".")[0]
    (lost,) = [one for one in runs_of_imports() if one.id not in seen]
    put(lost.id, getattr(states, ended)())
    second = watch(inbox, **terms).message.partition(".")[0]
    (run,) = [one for one in runs_of_imports() if one.id not in {*seen, lost.id}]
    put(run.id, states.Scheduled(name="Late"))
    third = watch(inbox, **terms).message.partition(".")[0]
    again = "1 started" if ended == "Cancelled" else "1 started again"
    assert (first, second, third) == ("1 started", again, "1 waiting")
    assert artifact("inbox").table[0]["Detail"].endswith("is Late")
    import_batch(**import_batch.validate_parameters(run.parameters), return_state=True)
    assert rows("SELECT state FROM batch") == [("complete",)]
    assert watch(inbox, **terms).message == "nothing was there"
    assert [*(inbox / ".recon" / "waiting").iterdir()] == []


@pytest.mark.long
def test_an_import_that_fails_every_time_is_not_begun_for_ever(inbox: Path) -> None:
    from prefect import states

    from flows.import_batch import import_batch

    def look() -> tuple[str, str]:
        state = watch(inbox, deployment="import-batch/from-inbox")
        return state.name, state.message.partition(".")[0]

    def end(kind: Any) -> str:
        """Of the run that this look started."""
        (run,) = [one for one in runs_of_imports() if one.id not in seen]
        put(run.id, kind())
        seen.add(run.id)
        return str(run.id)

    import_batch.to_deployment("from-inbox").apply()
    seen = {one.id for one in runs_of_imports()}
    write(inbox / "a.csv", line(800))
    assert look() == ("Completed", "1 started")
    for kind in (states.Failed, states.Cancelled, states.Crashed):
        before = end(kind)
        assert look() == ("CompletedWithErrors", "1 started again")
        assert before in artifact("inbox").table[0]["Detail"]
    last = end(states.Failed)
    for _ in range(2):
        assert look() == ("CompletedWithErrors", "1 waiting")
        assert (
            f"is Failed, after 2 that failed or crashed: {last}"
            in artifact("inbox").table[0]["Detail"]
        )
    assert {one.id for one in runs_of_imports()} == seen
    # Whoever mended why may retry that run, or deliver it again.
    put(UUID(last), states.AwaitingRetry())
    assert look() == ("CompletedWithErrors", "1 waiting")
    assert artifact("inbox").table[0]["Detail"].endswith("is AwaitingRetry")
    put(UUID(last), states.Failed())
    write(inbox / "a.csv", line(800))
    assert look() == ("CompletedWithErrors", "1 waiting, 1 started")
    assert look() == ("Completed", "1 waiting")


def test_a_run_that_no_worker_takes_is_no_success_for_ever(
    workspace: Workspace, inbox: Path
) -> None:
    settings = workspace.settings
    hurried = replace(settings, limits=replace(settings.limits, inbox_wait_seconds=0))

    def look(by: Workspace) -> InboxLine:
        (found,) = watch_on(by, str(inbox), {}, {}, "import-batch/from-inbox").look(0)
        return found

    from flows.import_batch import import_batch
    from flows.watch_inbox import watch_on

    import_batch.to_deployment("from-inbox").apply()
    write(inbox / "a.csv", line(801))
    found = [look(by) for by in (workspace, workspace, replace(workspace, settings=hurried))]
    assert [(one.became, one.exit_code) for one in found] == [
        *(("started", 0), ("waiting", 0), ("waiting", 1)),
    ]
    late = "It has been so for 0 hours: see whether a worker takes its runs."
    assert found[-1].detail.endswith(late)


@pytest.mark.long
def test_what_was_altered_behind_the_inbox_is_not_imported_under_its_start(
    inbox: Path, rows: Any
) -> None:
    from flows.import_batch import import_batch

    import_batch.to_deployment("from-inbox").apply()
    terms = {"deployment": "import-batch/from-inbox"}
    before = {one.id for one in runs_of_imports()}
    write(inbox / "a.csv", line(1, amount="10.50"))
    assert watch(inbox, **terms).message == "1 started"
    (run,) = [one for one in runs_of_imports() if one.id not in before]
    path = Path(run.parameters["delivery"]["paths"][0])
    good = path.read_bytes()
    for altered in (good.replace(b"10.50", b"10.51"), good + line(2).encode() + b"\n", good[:-30]):
        path.write_bytes(altered)
        state = import_batch(**import_batch.validate_parameters(run.parameters), return_state=True)
        assert state.is_failed()
        assert "a.csv: the files were changed after the inbox took them" in state.message
        assert rows("SELECT count(*) FROM batch") == [(0,)]
    # Delivered again as it was, the same start can be made again.
    write(inbox / "a.csv", line(1, amount="10.50"))
    assert watch(inbox, **terms).message == "1 waiting, 1 started"
    assert path.read_bytes() == good
    state = import_batch(**import_batch.validate_parameters(run.parameters), return_state=True)
    assert state.name == "Completed"
    assert rows("SELECT content_id FROM batch") == [(run.idempotency_key,)]


@pytest.mark.long
def test_what_is_put_aside_and_what_cannot_be_started_is_not_taken_for_done(
    inbox: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from prefect.exceptions import PrefectHTTPStatusError

    from flows import watch_inbox
    from flows.import_batch import import_batch

    (inbox / "[x](javascript:alert(1)).csv").write_text("colour\nred\n")
    state = watch(inbox)
    assert (state.type.value, state.name) == ("COMPLETED", "CompletedWithErrors")
    (row,) = artifact("inbox").table
    assert row["Became"] == "quarantined"
    assert r"\[x\]\(javascript:alert\(1\)\)" in row["File"]

    def away(*_: Any, **__: Any) -> None:
        raise PrefectHTTPStatusError("away", request=None, response=None)  # type: ignore[arg-type]

    import_batch.to_deployment("from-inbox").apply()
    write(inbox / "a.csv", line(1))
    with monkeypatch.context() as patched:
        patched.setattr(watch_inbox, "run_deployment", away)
        failed = watch(inbox, deployment="import-batch/from-inbox")
    assert failed.name == "Failed"
    assert "could not be started" in failed.message
    assert watch(inbox).name == "Completed"


@pytest.mark.long
def test_an_inbox_that_is_watched_already_is_no_failure_and_a_missing_one_is(
    inbox: Path, tmp_path: Path, workspace: Workspace
) -> None:
    with Inbox(inbox).alone():
        state = watch(inbox)
        os.utime(inbox / ".recon" / "lock", (0, 0))
        hangs = watch(inbox)
    assert state.name == "Completed"
    assert f"locked by {whoami()} since " in state.message
    assert (hangs.type.value, hangs.name) == ("COMPLETED", "CompletedWithErrors")
    assert hangs.message == state.message
    missing = watch(tmp_path / "nowhere")
    assert missing.name == "Failed"
    assert "there is no such inbox" in missing.message
    itself = watch(workspace.settings.home)
    assert (itself.name, "is RECON_HOME itself" in itself.message) == ("Failed", True)
    assert watch(None).message == "nothing was there"
    assert (workspace.settings.home / "inbox").is_dir()


@pytest.mark.long
@pytest.mark.parametrize("name", ["Q1&assigned=DE.csv", "\udcff.csv"])
def test_a_name_that_a_run_cannot_be_told_blocks_no_other_and_comes_again_under_another(
    inbox: Path, name: str
) -> None:
    from flows.import_batch import import_batch

    import_batch.to_deployment("from-inbox").apply()
    terms = {"deployment": "import-batch/from-inbox"}
    write(inbox / name, line(1))
    write(inbox / "b.csv", line(2))
    state = watch(inbox, **terms)
    assert state.name == "Failed"
    assert {"1 failed", "1 started"} == set(state.message.partition(".")[0].split(", "))
    assert "Deliver it under another name" in state.message
    write(inbox / "c.csv", line(3))
    told = watch(inbox, **terms).message.partition(".")[0]
    assert {*told.split(", ")} == {"1 failed", "1 waiting", "1 started"}
    write(inbox / "renamed.csv", line(1))
    watch(inbox, **terms)
    assert watch(inbox, **terms).message == "3 waiting"
