"""Jobs: asked for by an account, done by one process in its name, and done once."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg
import pytest

from connectors.errors import (
    AccountRefused,
    DeliveryError,
    JobHeldElsewhere,
    JobRefused,
    ReconError,
    StatementRefused,
)
from connectors.files.incoming.uploads import MOST_FILES, Upload, uploads_folder
from connectors.files.profiles.profile import DEFAULT
from connectors.files.profiles.profile_file import with_terms
from connectors.postgres.accounts import Account, keep_account
from connectors.postgres.auditing.audit import verify
from connectors.postgres.batches.lease import hold_batch
from connectors.postgres.jobs import (
    Job,
    find_job,
    hold_job,
    list_jobs,
    order_again,
    order_job,
    ordered_jobs,
)
from connectors.postgres.runs.acceptance_rules import RuleTerms
from connectors.postgres.runs.reconciliations import find_run
from flows.stages.jobs.arguments import ARGUMENTS, check_arguments
from flows.stages.jobs.work import Done, do_as_asked, do_job
from flows.stages.receive import receive
from flows.stages.receiving.terms import StatedTerms
from flows.stages.reconcile.acceptance_rules import approve_rule, propose_rule
from flows.stages.reconcile.run import Asked, finish
from flows.stages.reconcile.run import reconcile as reconcile_scope
from flows.stages.reconcile.scope import Scope
from flows.stages.rows.rejects import write_rejects
from flows.stages.sequence import import_delivery
from flows.stages.stage import stage
from flows.stages.workspace import Workspace
from flows.steps.rules.rules import Exclusion, Rules
from schemas.accounts import AccountRole
from schemas.guards.commands import BEGUN, ROLE_OF, command_of
from schemas.guards.roles import LOADER, MERGER
from schemas.jobs import COULD_NOT_RUN, OF_MERGER_JOBS, JobKind, JobState
from tests.accounts.people import ADA, ANNA, BO, CLEO, OTTO, add, logged_in
from tests.governance.runs import found, reconcile
from tests.recon import run
from tests.stages.conftest import As
from tests.stages.payments import HEADER, line, write

TOM = Account("tom", "Tom Reyes", (AccountRole.OPERATOR,), tenants=(7,))
Rows = Callable[..., list[tuple[Any, ...]]]


def ordered(place: Workspace, kind: JobKind, **arguments: Any) -> int:
    asked = check_arguments(kind, arguments).model_dump(mode="json", exclude_defaults=True)
    with place.database.connect() as connection:
        return order_job(connection, kind, asked, None)


def seen(place: Workspace, number: int) -> Job:
    with place.database.connect() as connection:
        return find_job(connection, number)


def uploaded(place: Workspace, name: str, *lines: str) -> str:
    upload = Upload.begin(place.settings)
    upload.open(name)
    upload.write("\n".join((HEADER, *lines, "")).encode())
    upload.keep()
    return upload.token


@pytest.fixture
def otto(workspace: Workspace) -> Workspace:
    """Where an operator is logged in, and others could be."""
    add(workspace, ADA, ANNA, BO, CLEO, OTTO, TOM)
    return logged_in(workspace, OTTO)


def test_what_is_ordered_is_done_in_the_name_of_who_asked(
    workspace: Workspace, otto: Workspace, rows: Rows
) -> None:
    number = ordered(otto, JobKind.IMPORT, upload=uploaded(otto, "a.csv", line(1), line(2)))
    assert seen(otto, number).state is JobState.ORDERED
    done = do_job(workspace, number)
    job = seen(otto, number)
    assert (job.state, job.exit_code, job.batches, job.asked_by) == (
        JobState.ENDED, 0, (1,), "otto"
    )  # fmt: skip
    assert job.said == done.message
    assert "Batch 1: complete" in done.message
    events = rows("SELECT what, by, person, detail FROM event WHERE batch_id = 1 ORDER BY id")
    assert {by for _, by, _, _ in events} == {"otto"}
    assert {json.loads(detail)["job"] for _, _, _, detail in events} == {number}
    assert {person for _, _, person, _ in events} == {None}, "nobody was logged in to do it"
    assert rows("SELECT name FROM extract") == [("a.csv",)]
    assert [*uploads_folder(otto.settings).iterdir()] == []
    with workspace.database.connect() as connection:
        assert verify(connection).broken is None
        hash_of = connection.execute("SELECT person FROM event WHERE what = 'job ordered'")
        assert hash_of.fetchall() == [("otto",)]


def put(path: Path, text: str) -> None:
    path.write_text(text)


ALTERED = {
    "a byte": lambda folder: put(
        folder / "1", (folder / "1").read_text().replace("10.50", "99.50")
    ),
    "the other file": lambda folder: put(folder / "1", (folder / "2").read_text()),
    "gone": lambda folder: (folder / "1").unlink(),
    "its name": lambda folder: put(
        folder / "names.json", (folder / "names.json").read_text().replace("a.csv", "c.csv")
    ),
    "only a name": lambda folder: put(folder / "names.json", '["a.csv"]'),
    "no name": lambda folder: put(folder / "names.json", "{"),
}


@pytest.mark.long(but=("a byte",))
@pytest.mark.parametrize("alter", ALTERED.values(), ids=ALTERED)
def test_what_was_uploaded_is_what_is_taken_in(
    workspace: Workspace, rows: Rows, alter: Callable[[Path], object]
) -> None:
    """Files wait for whoever does the job: what is ordered is their bytes, under their names."""
    upload = Upload.begin(workspace.settings)
    for number, name in enumerate(("a.csv", "b.csv"), 1):
        upload.open(name)
        upload.write("\n".join((HEADER, line(number), "")).encode())
    upload.keep()
    number = ordered(workspace, JobKind.IMPORT, upload=upload.token)
    alter(uploads_folder(workspace.settings) / upload.token)
    done = do_job(workspace, number)
    assert (done.exit_code, rows("SELECT id FROM batch")) == (2, [])
    assert "Upload them again" in done.message


@pytest.mark.long
def test_only_an_operator_orders(workspace: Workspace, otto: Workspace, rows: Rows) -> None:
    before = rows("SELECT count(*) FROM event")
    for place in (*(logged_in(workspace, one) for one in (ADA, ANNA, BO, CLEO)), workspace):
        with pytest.raises(AccountRefused):
            ordered(place, JobKind.PUSH)
    assert rows("SELECT count(*) FROM job") == [(0,)]
    assert rows("SELECT count(*) FROM event WHERE what LIKE 'job%'") == [(0,)]
    assert before < rows("SELECT count(*) FROM event"), "only the login"


@pytest.mark.long
def test_an_account_of_some_tenants_orders_for_these_and_sees_its_own(
    workspace: Workspace, otto: Workspace, tmp_path: Path
) -> None:
    for tenant in (7, 8, None):
        terms = with_terms(DEFAULT, {"tenant": tenant})
        import_delivery(workspace, [write(tmp_path / f"{tenant}.csv", line(tenant or 1))], terms)
    tom, token = logged_in(workspace, TOM), "0" * 32
    allowed: list[tuple[JobKind, dict[str, Any]]] = [
        (JobKind.IMPORT, {"upload": token, "tenant": 7}),
        (JobKind.RERUN, {"batch": 1}),
        (JobKind.CORRECT, {"batch": 1, "upload": token}),
    ]
    refused: list[tuple[JobKind, dict[str, Any]]] = [
        (JobKind.IMPORT, {"upload": token}),
        (JobKind.IMPORT, {"upload": token, "tenant": 8}),
        (JobKind.RERUN, {"batch": 2}),
        (JobKind.UNDO, {"batch": 3, "reason": "x"}),
        (JobKind.DISCARD, {"batch": 3, "reason": "x", "held": 1}),
        (JobKind.RERUN, {"batch": 99}),
        (JobKind.PUSH, {}),
        (JobKind.RECONCILE, {}),
        (JobKind.RECONCILE, {"run": 99}),
    ]
    for kind, arguments in refused:
        with pytest.raises(AccountRefused, match="tenants 7 alone"):
            ordered(tom, kind, **arguments)
    # What another kind of job is judged by says nothing of this one.
    for kind, arguments in (
        (JobKind.IMPORT, {"upload": token, "batch": 1}),
        (JobKind.RECONCILE, {"batch": 1}),
        (JobKind.UNDO, {"batch": 3, "tenant": 7}),
    ):
        with (
            pytest.raises(AccountRefused, match="tenants 7 alone"),
            tom.database.connect() as connection,
        ):
            order_job(connection, kind, arguments, None)
    mine = [ordered(tom, kind, **arguments) for kind, arguments in allowed]
    other = ordered(otto, JobKind.RERUN, batch=1)
    for place, numbers in ((tom, mine), (otto, [*mine, other])):
        with place.database.connect() as connection:
            assert [one.id for one in list_jobs(connection, 50)] == sorted(numbers, reverse=True)
    with pytest.raises(ReconError, match="There is no job"):
        seen(tom, other)


@pytest.mark.long
def test_a_run_is_not_made_again_by_an_exclusion_that_is_called_as_a_state(
    workspace: Workspace, otto: Workspace
) -> None:
    rules = Rules(exclusions=(Exclusion("stale", "payment", "ActionsId", ("99",), "not real"),))
    made = reconcile_scope(workspace, Asked(Scope(), date(2026, 1, 9), rules)).run
    done = do_job(workspace, ordered(otto, JobKind.RECONCILE, run=made.id))
    assert done.exit_code >= COULD_NOT_RUN
    assert "an exclusion 'stale'" in done.message
    assert "Give the exclusion an id of its own" in done.message


@pytest.mark.long
def test_a_job_is_not_started_again_for_tenants_that_were_taken_away(
    workspace: Workspace, otto: Workspace, tmp_path: Path
) -> None:
    terms = with_terms(DEFAULT, {"tenant": 8})
    import_delivery(workspace, [write(tmp_path / "a.csv", line(8))], terms)
    number = ordered(otto, JobKind.CORRECT, batch=1, upload="0" * 32)
    assert do_job(workspace, number).exit_code >= COULD_NOT_RUN
    with workspace.database.connect() as owner:
        keep_account(owner, replace(OTTO, tenants=(7,)))
    fewer = logged_in(workspace, OTTO)
    with (
        pytest.raises(AccountRefused, match="tenants 7 alone"),
        fewer.database.connect() as connection,
    ):
        order_again(connection, number, None)
    with workspace.database.connect() as owner:
        keep_account(owner, OTTO)
    again = logged_in(workspace, OTTO)
    with again.database.connect() as connection:
        order_again(connection, number, None)
    assert seen(again, number).state is JobState.ORDERED


@pytest.mark.parametrize(
    ("kind", "arguments", "said"),
    [
        (JobKind.IMPORT, {}, "upload: Field required"),
        (JobKind.IMPORT, {"upload": "../../etc"}, "upload: cannot be written so"),
        (JobKind.IMPORT, {"upload": "0" * 32, "profile": "../x"}, "profile: cannot be written so"),
        (JobKind.IMPORT, {"upload": "0" * 32, "paths": ["/etc"]}, "paths: Extra inputs"),
        (JobKind.IMPORT, {"upload": "0" * 32, "record": "x"}, "has to be one of"),
        (JobKind.UNDO, {"batch": 1, "reason": "  "}, "reason: is empty"),
        (JobKind.RELEASE, {"batch": 1, "reason": "x"}, "held: Field required"),
        (JobKind.RERUN, {"batch": 2**31}, "batch: has to be less than 2147483648"),
        (JobKind.RESOLVE, {"batch": 1, "decision": "resend", "reason": "x"}, "No row is chosen"),
    ],
)
def test_work_that_cannot_be_meant_is_refused_before_it_is_ordered(
    kind: JobKind, arguments: dict[str, Any], said: str
) -> None:
    with pytest.raises(JobRefused, match=said):
        check_arguments(kind, arguments)


def test_every_kind_has_its_arguments() -> None:
    assert {*ARGUMENTS} == {*JobKind}


def test_a_job_is_done_once_and_by_one_process(workspace: Workspace, rows: Rows) -> None:
    number = ordered(workspace, JobKind.PUSH)
    with workspace.database.connect() as one, hold_job(one, number):
        with pytest.raises(JobHeldElsewhere, match="is being done"):
            do_job(workspace, number)
        assert seen(workspace, number).lives
    assert seen(workspace, number).has_stopped
    done = do_job(workspace, number)
    assert (done.message, done.exit_code) == ("Nothing is unsent.", 0)
    with pytest.raises(JobHeldElsewhere, match="has ended already"):
        do_job(workspace, number)
    with pytest.raises(AccountRefused, match="is ended, and is not started again"):
        again(workspace, number)


def again(place: Workspace, number: int) -> None:
    with place.database.connect() as connection:
        order_again(connection, number, None)


@pytest.mark.long
def test_what_could_not_run_says_why_and_can_be_started_again(workspace: Workspace) -> None:
    number = ordered(workspace, JobKind.RECONCILE, run=9)
    assert do_job(workspace, number).exit_code == 2
    job = seen(workspace, number)
    assert (job.may_start_again, "There is no reconciliation 9" in (job.said or "")) == (True, True)
    again(workspace, number)
    assert seen(workspace, number).state is JobState.ORDERED
    with pytest.raises(AccountRefused, match="is ordered, and is not started again"):
        again(workspace, number)


def test_failed_rows_that_were_staged_when_the_process_was_gone_go_on(
    workspace: Workspace, rows: Rows, tmp_path: Path
) -> None:
    """No row in error is left to write out: the batch that was opened for them has them."""
    import_delivery(workspace, [write(tmp_path / "a.csv", line(1), line(2, amount="x"))], DEFAULT)
    with TemporaryDirectory(dir=tmp_path) as folder:
        write_rejects(workspace, 1, Path(folder), with_secrets=True)
        made = receive(workspace, [folder], StatedTerms(corrects=1)).batch_id
    with workspace.database.connect() as connection, hold_batch(connection, made) as lease:
        stage(workspace, lease)
    assert rows("SELECT state FROM batch WHERE id = 2") == [("staged",)]
    number = ordered(workspace, JobKind.CORRECT, batch=1)
    do_job(workspace, number)
    assert seen(workspace, number).batches == (1, 2)
    assert rows("SELECT state FROM batch WHERE id = 2") == [("complete_with_errors",)]


@pytest.mark.long
def test_failed_rows_again_leave_no_text_of_theirs_when_the_process_is_killed(
    workspace: Workspace, database_url: str, tmp_path: Path
) -> None:
    """What was delivered is in no folder but those of the home, and there till the next run."""
    import_delivery(workspace, [write(tmp_path / "a.csv", line(1, amount="x"))], DEFAULT)
    number = ordered(workspace, JobKind.CORRECT, batch=1)
    home, elsewhere = workspace.settings.home, tmp_path / "tmp"
    elsewhere.mkdir()
    given = {"CRASH_AT": "open", "TMPDIR": str(elsewhere)}
    assert run(database_url, home, "job", str(number), **given).returncode == -signal.SIGKILL
    assert list(elsewhere.iterdir()) == []
    assert list(workspace.settings.scratch.rglob("*.csv"))
    again(workspace, number)
    do_job(workspace, number)
    assert seen(workspace, number).batches == (1, 2)
    assert list(workspace.settings.scratch.rglob("*.csv")) == []


def test_a_fault_of_the_program_ends_the_job(workspace: Workspace) -> None:
    def faulty(place: Workspace, job: Job) -> Done:
        raise ZeroDivisionError("1000000 of them")

    number = ordered(workspace, JobKind.PUSH)
    with pytest.raises(ZeroDivisionError):
        do_job(workspace, number, faulty)
    assert "A fault of the program, ZeroDivisionError" in (seen(workspace, number).said or "")


@pytest.mark.long(but=("reconcile-reconciled-is not done twice",))
@pytest.mark.parametrize(
    ("kind", "event", "said"),
    [
        (JobKind.UNDO, "undo", "is not done twice"),
        (JobKind.RECONCILE, "reconciled", "is not done twice"),
        (JobKind.RELEASE, "released", "Batch 1: complete with errors"),
        (JobKind.DISCARD, "discarded", "is not done twice"),
        (JobKind.RERUN, "rewound", "Batch 1: held"),
    ],
)
def test_what_was_done_before_its_process_was_gone_is_not_done_twice(
    workspace: Workspace, rows: Rows, tmp_path: Path, kind: JobKind, event: str, said: str
) -> None:
    class Killed(BaseException):
        pass

    def killed(place: Workspace, job: Job) -> Done:
        do_as_asked(place, job)
        raise Killed

    decides = kind in (JobKind.RELEASE, JobKind.DISCARD)
    held = decides or kind is JobKind.RERUN
    lines = (line(1), line(2, amount="x")) if held else (line(1),)
    terms = replace(DEFAULT, budget_errors=0) if held else DEFAULT
    import_delivery(workspace, [write(tmp_path / "a.csv", *lines)], terms)
    arguments = {} if kind is JobKind.RECONCILE else {"batch": 1, "reason": "wrong"}
    if kind is JobKind.RERUN:
        arguments = {"batch": 1, "from_start": True}
    if decides:
        ((arguments["held"],),) = rows("SELECT max(id) FROM event WHERE what = 'batch held'")
    number = ordered(workspace, kind, **arguments)
    with pytest.raises(Killed):
        do_job(workspace, number, killed)
    assert seen(workspace, number).has_stopped
    again(workspace, number)
    done = do_job(workspace, number)
    assert said in done.message
    assert rows("SELECT count(*) FROM event WHERE what = %s", [event]) == [(1,)]


@pytest.mark.long
def test_a_job_whose_process_is_killed_has_stopped_and_goes_on(
    workspace: Workspace, rows: Rows
) -> None:
    settings = workspace.settings
    number = ordered(workspace, JobKind.IMPORT, upload=uploaded(workspace, "a.csv", line(1)))
    environment = os.environ | {
        "RECON_HOME": str(settings.home),
        "RECON_DATABASE_URL": str(settings.database_url),
        "CRASH_AT": "apply-chunk",
    }
    command = [sys.executable, "-m", "flows", "job", str(number)]
    first = subprocess.run(command, env=environment, check=False, capture_output=True)
    assert first.returncode == -signal.SIGKILL, first
    job = seen(workspace, number)
    assert (job.state, job.lives, job.has_stopped) == (JobState.RUNNING, False, True)
    again(workspace, number)
    assert do_job(workspace, number).exit_code == 0
    assert seen(workspace, number).batches == (1,)
    assert rows("SELECT count(*) FROM payment") == [(1,)]
    assert rows("SELECT count(*) FROM batch") == [(1,)]


CHANGES: dict[str, tuple[Account, str]] = {
    "disabled": (replace(OTTO, disabled=True), "otto ordered it, and is disabled now"),
    "role": (replace(OTTO, roles=(AccountRole.VIEWER,)), "may not order work any more"),
    "tenants": (replace(OTTO, tenants=(7,)), "acts for the tenants 7 alone now"),
}


@pytest.mark.long
@pytest.mark.parametrize("change", CHANGES)
def test_a_job_is_asked_again_who_ordered_it_when_it_is_taken(
    workspace: Workspace, otto: Workspace, rows: Rows, change: str
) -> None:
    """What somebody ordered who may not any more ends as refused; somebody else starts it again."""
    account, said = CHANGES[change]
    number = ordered(otto, JobKind.PUSH)
    with workspace.database.connect() as owner:
        keep_account(owner, account)
    with pytest.raises(JobRefused, match=said):
        do_job(workspace, number)
    add(workspace, replace(OTTO, name="olga"))
    olga = logged_in(workspace, replace(OTTO, name="olga"))
    job = seen(olga, number)
    assert (job.state, job.exit_code, job.may_start_again) == (JobState.ENDED, COULD_NOT_RUN, True)
    assert said in (job.said or "")
    ((reason, detail),) = rows("SELECT reason, detail FROM event WHERE what = 'job refused'")
    assert (said in reason, json.loads(detail)["job"]) == (True, number)
    for told, is_told in ((f"x{job.said}", False), (job.said, True)):
        rows("UPDATE job SET said = %s RETURNING 1", [told])
        with workspace.database.connect() as connection:
            broken = f"what came of job {number} is not what link"
            assert (broken not in str(verify(connection).broken)) == is_told
    with pytest.raises(JobHeldElsewhere, match="has ended already"):
        do_job(workspace, number)
    again(olga, number)
    assert do_job(workspace, number).message == "Nothing is unsent."
    with workspace.database.connect() as connection:
        assert verify(connection).broken is None


@pytest.mark.long
def test_what_came_of_a_job_is_what_its_event_says(
    workspace: Workspace, otto: Workspace, rows: Rows
) -> None:
    number = ordered(otto, JobKind.PUSH)
    do_job(workspace, number, lambda place, job: Done(COULD_NOT_RUN, "no room"))
    ((detail,),) = rows("SELECT detail FROM event WHERE what = 'job ended'")
    told = json.loads(detail)
    assert (told["job"], told["kind"], told["exit_code"]) == (number, "push", COULD_NOT_RUN)
    for name, other in (("exit_code", 0), ("said", "x"), ("batches", "7"), ("state", "running")):
        ((was,),) = rows(f"SELECT {name} FROM job")
        for value, is_told in ((other, False), (was, True)):
            rows(f"UPDATE job SET {name} = %s RETURNING 1", [value])
            with workspace.database.connect() as connection:
                broken = f"what came of job {number} is not what link"
                assert (broken not in str(verify(connection).broken)) == is_told
    again(otto, number)
    for _ in range(2):
        with workspace.database.connect() as connection:
            assert verify(connection).broken is None
        if seen(otto, number).state is JobState.ORDERED:
            do_job(workspace, number)
    waits = ordered(otto, JobKind.PUSH)
    for state, is_told in (("ended", True), ("ordered", False)):
        rows(f"UPDATE job SET state = '{state}' WHERE id = {waits} RETURNING 1")
        with workspace.database.connect() as connection:
            broken = f"job {waits} has ended, and no event says so"
            assert (broken in str(verify(connection).broken)) == is_told
    forged = "SELECT new_event(NULL, 'job ended', 'x', NULL, %s)"
    for of, told in (
        ({}, "says what came of job None, which is not there"),
        ({"job": [number]}, f"says what came of job [{number}], which is not there"),
        ({"job": number}, f"what came of job {number} is not what link"),
    ):
        with workspace.database.connect() as connection:
            connection.execute(forged, [json.dumps(of)])
            assert told in str(verify(connection).broken)


@pytest.mark.long
def test_what_a_job_makes_is_made_by_who_ordered_it_last(workspace: Workspace, rows: Rows) -> None:
    """Nobody is logged in where a job is done; rules that it changes are changed by who ordered."""
    otto = replace(OTTO, roles=(AccountRole.OPERATOR, AccountRole.APPROVER))
    olga = replace(otto, name="olga")
    add(workspace, otto, olga)
    reconcile(workspace, found())
    number = ordered(logged_in(workspace, otto), JobKind.RECONCILE)
    do_job(workspace, number, lambda place, job: Done(COULD_NOT_RUN, "no room"))
    again(logged_in(workspace, olga), number)

    def looser(place: Workspace, job: Job) -> Done:
        return Done(0, "done", (), reconcile(place, found(), rules="1" * 64).id)

    do_job(workspace, number, looser)
    made = rows("SELECT by, person FROM event WHERE what = 'reconciled' ORDER BY id")
    assert made[1] == ("olga", None)
    (run,) = rows("SELECT max(id) FROM reconciliation")[0]
    asked = "SELECT refuse_interested(%s, %s)"
    with workspace.database.connect() as connection:
        connection.execute(asked, ["otto", run])
        assert verify(connection).broken is None
    with (
        pytest.raises(AccountRefused, match="since the last approved one: olga made or ordered"),
        workspace.database.connect() as connection,
    ):
        connection.execute(asked, ["olga", run])


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        (JobKind.UNDO, {"batch": 1, "reason": "wrong month"}),
        (JobKind.RELEASE, {"batch": 1, "reason": "agreed", "held": 1}),
        (JobKind.RECONCILE, {}),
        (JobKind.PUSH, {"batch": 1}),
    ],
)
def test_a_job_waits_for_whose_account_may_do_it(
    workspace: Workspace, acting: As, tmp_path: Path, kind: JobKind, arguments: dict[str, Any]
) -> None:
    """It ended as failed when the wrong worker was the first to look."""
    import_delivery(workspace, [write(tmp_path / "a.csv", line(1))], DEFAULT)
    number = ordered(workspace, kind, **arguments)
    loader, merger = acting(LOADER), acting(MERGER)
    with pytest.raises(StatementRefused, match=f"`recon {kind}` takes recon_merger"):
        do_job(loader, number)
    with loader.database.connect() as connection:
        assert ordered_jobs(connection) == []
    with merger.database.connect() as connection:
        assert ordered_jobs(connection) == [number]
    assert seen(workspace, number).state is JobState.ORDERED
    do_job(merger, number)
    assert seen(workspace, number).state is JobState.ENDED


@pytest.mark.parametrize("is_refused", [False, True], ids=["", "refused"])
def test_a_job_is_about_a_batch_that_is_there(
    workspace: Workspace, acting: As, rows: Rows, is_refused: bool
) -> None:
    """Every reconciliation would miss the other, and none could be signed again."""
    with pytest.raises(AccountRefused, match=r"There is no batch 9\. `recon status`,"):
        ordered(workspace, JobKind.RERUN, batch=9)
    # Earlier versions took it, and it still comes to its end.
    number = ordered(workspace, JobKind.PUSH)
    rows("UPDATE job SET kind = 'rerun', arguments = '{\"batch\": 9}' RETURNING 1")
    if is_refused:
        add(workspace, OTTO)
    with pytest.raises(JobRefused, match="ordered by nobody") if is_refused else nullcontext():
        assert "There is no batch 9" in do_job(acting(LOADER), number).message
    assert seen(workspace, number).state is JobState.ENDED
    assert rows("SELECT count(*) FROM event WHERE batch_id IS NOT NULL") == [(0,)]


TAKEN_AND_ENDED = "SELECT take_job({0}, NULL); SELECT end_job({0}, 0, 'Reconciled', '', 1)"


@pytest.mark.long
def test_a_job_is_taken_and_ended_as_what_it_is(workspace: Workspace, acting: As) -> None:
    """Who calls the functions by hand does not say of others' work that it reconciles."""
    for kind in JobKind:
        least = ROLE_OF[command_of(kind)], BEGUN.get(command_of(kind))
        assert (kind in OF_MERGER_JOBS) == (least == (MERGER, None)), kind
    reconcile(workspace, found())
    number = ordered(workspace, JobKind.RECONCILE)
    for role, told in ((LOADER, "applies no rows"), (MERGER, "was not made for job")):
        with acting(role).database.connect() as connection:
            connection.execute("SELECT keep_job(%s, 'x', 60, now())", [str(number)])
            with pytest.raises(psycopg.Error, match=told):
                connection.execute(TAKEN_AND_ENDED.format(number))  # type: ignore[call-overload]
    assert seen(workspace, number).reconciliation_id is None


def test_arguments_that_cannot_be_read_end_one_job_and_no_list(workspace: Workspace) -> None:
    """PostgreSQL reads numbers of any length; what cannot be read here says nothing."""
    with workspace.database.connect() as connection:
        connection.execute("SELECT order_job('rerun', %s, 'a')", [f'{{"x": {"9" * 5000}}}'])
        (job,) = list_jobs(connection, 50)
    assert job.arguments == {}
    assert do_job(workspace, job.id).exit_code == COULD_NOT_RUN
    assert "batch: Field required" in (seen(workspace, job.id).said or "")


def test_a_job_of_nobody_is_not_done_once_there_are_accounts(workspace: Workspace) -> None:
    number = ordered(workspace, JobKind.PUSH)
    add(workspace, OTTO)
    with pytest.raises(JobRefused, match="ordered by nobody who was logged in"):
        do_job(workspace, number)


def test_so_many_files_are_taken_at_once_and_no_more(workspace: Workspace) -> None:
    upload = Upload.begin(workspace.settings)
    for number in range(MOST_FILES):
        upload.open(f"{number}.csv")
    with pytest.raises(DeliveryError, match=r"More than 100 files\. Put them"):
        upload.open("more.csv")
    upload.drop()


@pytest.mark.long
def test_a_run_that_was_saved_when_its_process_was_gone_is_accepted_by_the_rules(
    workspace: Workspace, rows: Rows, tmp_path: Path
) -> None:
    import_delivery(workspace, [write(tmp_path / "a.csv", line(1))], DEFAULT)
    with workspace.database.connect() as connection:
        connection.execute('UPDATE payment SET "PaidAmount" = 11.5')
    day = date(2026, 1, 31)
    made = reconcile_scope(workspace, Asked(Scope(), day, Rules())).run
    ((code, currency),) = rows("SELECT code, currency FROM break_state WHERE code = 'AMOUNT'")
    terms = RuleTerms("", code, currency, Decimal(10), Decimal(10), date(2099, 1, 1), "charges")
    rule = propose_rule(workspace, made.id, terms, "ann")
    approve_rule(workspace, rule, by="bob", reason="agreed")
    number = ordered(workspace, JobKind.RECONCILE)
    settings = workspace.settings
    place = {"RECON_DATABASE_URL": str(settings.database_url), "RECON_HOME": str(settings.home)}
    command = [sys.executable, "-m", "flows", "job", str(number)]
    given = os.environ | place | {"CRASH_AT": "reconciled"}
    first = subprocess.run(command, env=given, check=False, capture_output=True)
    assert first.returncode == -signal.SIGKILL, first
    assert rows("SELECT count(*) FROM decision") == [(0,)]
    again(workspace, number)
    done = do_job(workspace, number)
    assert "is not done twice" in done.message
    assert rows('SELECT reconciliation_id, "by" FROM decision') == [
        (done.reconciliation, f"rule {rule}")
    ]
    with workspace.database.connect() as connection:
        resumed = find_run(connection, done.reconciliation)
    reconcile_scope(workspace, Asked(Scope(), resumed.as_of, Rules()))
    finish(workspace, resumed)
    assert rows("SELECT count(*) FROM decision") == [(1,)], "another run has followed it"


def test_what_a_look_did_is_one_document_and_its_exit_code(
    workspace: Workspace, otto: Workspace
) -> None:
    """Standard output held nothing, and a job that could not run was no failure of the look."""
    url, home = str(workspace.settings.database_url), workspace.settings.home
    good = ordered(otto, JobKind.IMPORT, upload=uploaded(otto, "a.csv", line(1)))
    # Whoever started it is logged in, and sees what they asked for themselves alone.
    kept = home.parent / "login"
    kept.write_text(str(logged_in(workspace, TOM).database.login))
    ended = run(url, home, "jobs", "--watch", "--once", "--json", RECON_LOGIN_FILE=str(kept))
    assert ended.returncode == 0, ended.stderr
    (told,) = json.loads(ended.stdout)["jobs"]
    assert (told["job"], told["state"], told["exit_code"]) == (good, "ended", 0)
    bad = ordered(otto, JobKind.RECONCILE, run=77)
    ended = run(url, home, "jobs", "--watch", "--once")
    assert (ended.returncode, f"job {bad}: exit code 2" in ended.stdout) == (2, True)
    ended = run(url, home, "jobs", "--watch", "--once", "--json")
    assert (ended.returncode, json.loads(ended.stdout)) == (0, {"jobs": []})
