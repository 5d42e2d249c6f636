"""What an account of some tenants is told of batches of others: nothing, least by its jobs."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from connectors.files.incoming.uploads import Upload
from connectors.files.profiles.profile import DEFAULT
from connectors.postgres.auditing.audit import verify
from connectors.postgres.batches.lease import hold_batch
from connectors.postgres.jobs import Job, find_job, list_jobs, order_job
from connectors.postgres.push.lane import hold_lane
from connectors.postgres.push.sends import Selection, SendDecision, list_sends
from connectors.postgres.trail import last_detail
from flows.commands.sent_lines import sent_lines
from flows.stages.chosen_sends import ChosenSends
from flows.stages.jobs.work import do_job
from flows.stages.resolve import next_text, resolve
from flows.stages.sequence import import_delivery
from flows.stages.undo import undo_batch, why_not_undone
from flows.stages.workspace import Workspace
from schemas.accounts import AccountRole
from schemas.guards.roles import READER
from schemas.jobs import JobKind
from schemas.operations import PUSHES
from schemas.tables import PAYMENT
from tests.accounts.people import OTTO, Account, add, logged_in
from tests.push.conftest import PUSHED, deliver, towards
from tests.push.deliveries import tones
from tests.service.faulty_server import DROPPED, FaultyServer, at
from tests.stages.conftest import As
from tests.stages.conftest import acting as acting  # noqa: PLC0414 -- the fixture.
from tests.stages.payments import line, write

OPAL = Account("opal", "Opal Reyes", (AccountRole.OPERATOR,), tenants=(7,))


def uploaded(place: Workspace, path: str) -> str:
    upload = Upload.begin(place.settings)
    upload.open(Path(path).name)
    upload.write(Path(path).read_bytes())
    upload.keep()
    return upload.token


def said(place: Workspace, who: Account, kind: JobKind, **asked: Any) -> tuple[int, str]:
    """The exit code of a job that somebody asks for, and what is kept of it."""
    arguments: Mapping[str, Any] = {
        name: uploaded(place, one) if name == "upload" else one for name, one in asked.items()
    }
    with logged_in(place, who).database.connect() as connection:
        number = order_job(connection, kind, arguments, None)
    code = do_job(place, number).exit_code
    with place.database.connect() as connection:
        return code, find_job(connection, number).said or ""


def test_a_job_names_no_batch_that_whoever_asked_does_not_see(
    workspace: Workspace, tmp_path: Path
) -> None:
    theirs, both = write(tmp_path / "payments.csv", line(1)), tmp_path / "both.csv"
    others = write(tmp_path / "8" / "payments.csv", line(2, tenant=8))
    for path, tenant in (
        (theirs, 7), (others, 8), (write(both, line(1, amount="9", day=2), line(3, tenant=8)), None)
    ):  # fmt: skip
        import_delivery(workspace, [path], replace(DEFAULT, tenant=tenant))
    add(workspace, OPAL, OTTO)
    new = write(tmp_path / "new" / "payments.csv", line(4))
    told = {
        "an undo": said(workspace, OPAL, JobKind.UNDO, batch=1, reason="wrong"),
        "the same bytes": said(workspace, OPAL, JobKind.IMPORT, upload=others, tenant=7),
        "a correction": said(workspace, OPAL, JobKind.CORRECT, batch=1, upload=others),
        "the same name": said(workspace, OPAL, JobKind.IMPORT, upload=new, tenant=7),
        "a look": (2, why_not_undone(logged_in(workspace, OPAL), 1)),
    }
    named = {of: re.findall(r"[Bb]atch (\d+)", text) for of, (_, text) in told.items()}
    assert {number for numbers in named.values() for number in numbers} <= {"1", "4"}, told
    assert [code for code, _ in told.values()] == [2, 2, 2, 0, 2]
    for of in ("an undo", "a look"):
        assert "a batch that is not of your tenants has since written 1 of its" in told[of][1]
        assert "Ask somebody who sees every batch" in told[of][1]
    for of in ("the same bytes", "a correction"):
        assert "not of your tenants" in told[of][1]
        assert "nothing was imported" in told[of][1].lower()
    # Whoever sees every batch is told which one it is.
    assert "Undo batch 3 first" in said(workspace, OTTO, JobKind.UNDO, batch=1, reason="x")[1]
    assert "taken in batch 2" in said(workspace, OTTO, JobKind.IMPORT, upload=others)[1]


def seen(place: Workspace, statement: str) -> list[Any]:
    with place.database.connect() as connection:
        return [one for (one,) in connection.execute(statement)]  # type: ignore[call-overload]


def only_job(place: Workspace) -> Job:
    with place.database.connect() as connection:
        (job,) = list_jobs(connection, 2)
        return job


@pytest.mark.parametrize("by_job", [True, False], ids=["by a job", "by the command"])
def test_an_undo_tells_of_a_batch_of_others_in_an_event_of_that_batch(
    workspace: Workspace, tmp_path: Path, acting: As, by_job: bool
) -> None:
    """Its rows are to be sent again, and its report written again, whoever does it."""
    with FaultyServer() as server:
        place = towards(workspace, server.url)
        deliver(place, write(tmp_path / "a.csv", line(1), line(2, tenant=8)))
        theirs = write(tmp_path / "b.csv", line(1, amount="2", day=2))
        import_delivery(place, [theirs], replace(PUSHED, tenant=7))
        add(place, OPAL, OTTO)
        if by_job:
            assert said(place, OPAL, JobKind.UNDO, batch=2, reason="wrong")[0] == 0
        else:
            undo_batch(logged_in(place, OPAL), 2, by=None, reason="wrong")
    reader = acting(READER)
    opal, otto = logged_in(reader, OPAL), logged_in(reader, OTTO)
    of_undo = "SELECT detail FROM event WHERE batch_id = 2 AND what = 'undo'"
    counts = {"deleted": 0, "restored": 1, "left_at_service": {"EditPayment": 1}}
    assert [*map(json.loads, seen(opal, of_undo))] == [counts | ({"job": 1} if by_job else {})]
    if by_job:
        assert seen(opal, "SELECT batches FROM job") == ["2"]
        assert only_job(logged_in(place, OPAL)).batches == (2,)
    of_others = "SELECT batch_id FROM event WHERE what IN ('sends reopened', 'report written')"
    assert {*seen(opal, of_others)} == {2}
    assert seen(otto, "SELECT batch_id FROM event WHERE what = 'sends reopened'") == [1]
    with place.database.connect() as connection:
        assert verify(connection).broken is None


def test_a_decision_names_no_batch_of_others_whose_rows_follow(
    workspace: Workspace, tmp_path: Path
) -> None:
    """The one tenant's rows are in doubt, and by them those of a batch that is bound to none."""
    with FaultyServer(at({2: DROPPED})) as server:
        place = towards(workspace, server.url, concurrency=1)
        import_delivery(place, [tones(tmp_path / "a.csv", 3)], replace(PUSHED, tenant=7))
        deliver(place, tones(tmp_path / "b.csv", 4))
        add(place, OPAL, OTTO)
        told = {}
        for who, decision in ((OPAL, SendDecision.CONFIRM), (OTTO, SendDecision.ABANDON)):
            chosen = ChosenSends(("a.csv:record:2",))
            settled = resolve(logged_in(place, who), 1, chosen, decision, by=None, reason="looked")
            told[who.name] = next_text(1, settled.detail)
            with place.database.connect() as connection:
                assert "followed_by" not in last_detail(connection, 1, "resolve")
    assert "Rows of a batch that is not of your tenants ended as these had" in told[OPAL.name]
    assert "batch 2" not in told[OPAL.name]
    assert "`recon push 2` lets them end as these do" in told[OTTO.name]


def test_what_a_row_had_come_to_is_told_without_the_batch_of_others_that_was_undone(
    workspace: Workspace, tmp_path: Path
) -> None:
    """Nor who undid that and why; a desk may connect as the owner of the schema."""
    with FaultyServer() as server:
        place = towards(workspace, server.url)
        import_delivery(place, [write(tmp_path / "a.csv", line(1))], replace(PUSHED, tenant=7))
        deliver(place, write(tmp_path / "b.csv", line(1, amount="2", day=2), line(2, tenant=8)))
        undo_batch(place, 2, by="otto", reason="wrong file")
    add(place, OPAL, OTTO)
    told = {}
    for who in (OPAL, OTTO):
        with logged_in(place, who).database.connect() as connection:
            (sent,) = list_sends(connection, Selection(1))
            told[who.name] = next(one for one in sent_lines(sent) if one.startswith("earlier"))
    assert told["opal"].endswith("until undo of a batch that is not of your tenants")
    assert "until undo of batch 2" in told["otto"]
    assert told["otto"].endswith("wrong file")


def test_a_job_whose_work_of_others_was_named_shows_it_to_nobody_else(
    workspace: Workspace, tmp_path: Path
) -> None:
    """An account may be bound to tenants after its job has named a batch of others."""
    import_delivery(workspace, [write(tmp_path / "a.csv", line(1))], DEFAULT)
    add(workspace, replace(OPAL, tenants=()))
    said(workspace, replace(OPAL, tenants=()), JobKind.RERUN, batch=1)
    assert only_job(workspace).batches == (1,)
    add(workspace, OPAL)
    assert only_job(logged_in(workspace, OPAL)).batches == ()


@pytest.mark.parametrize(
    ("who", "named"), [(OPAL, "a batch that is not of your"), (OTTO, "batch 1")]
)
def test_a_push_that_waits_names_who_sends(
    workspace: Workspace, tmp_path: Path, who: Account, named: str
) -> None:
    with FaultyServer() as server:
        place = towards(workspace, server.url, turn_seconds=0.1)
        deliver(place, write(tmp_path / "a.csv", line(1)))
        add(place, OPAL, OTTO)
        upload = write(tmp_path / "b.csv", line(2))
        with (
            place.database.connect() as connection,
            hold_batch(connection, 1) as lease,
            hold_lane(lease, PUSHES[PAYMENT.name], wait_seconds=1),
        ):
            told = said(place, who, JobKind.IMPORT, upload=upload, tenant=7, push=True)
    assert told[0] == 3
    assert f"is being pushed for {named}" in told[1]
    assert [*re.findall(r"[Bb]atch (\d+)", told[1])][-1] == "2"
