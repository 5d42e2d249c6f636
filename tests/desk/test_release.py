"""A held batch is released or discarded at the desk, with a reason, by whoever may."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from connectors.postgres.command_rights import may_run
from connectors.postgres.evidence import ledger_detail
from connectors.postgres.jobs import order_job
from connectors.postgres.ledger import State, find_batch
from flows.desk.pages.one_batch import TAKES
from flows.stages.decide import held_as
from flows.stages.jobs.work import do_job
from flows.stages.sequence import run_batch
from flows.stages.workspace import Workspace
from schemas.guards.roles import DESK, LOADER
from schemas.jobs import COULD_NOT_RUN, JobKind
from tests.accounts.people import ANNA, OTTO, add
from tests.desk.browser import Browser, desk_of
from tests.desk.test_batches import TIGHT, bring
from tests.stages.conftest import As
from tests.stages.conftest import acting as acting  # noqa: PLC0414 -- the fixture.
from tests.stages.payments import line

New = Callable[[], Browser]
DECIDE = "/batches/1/decide"


@pytest.fixture
def held(workspace: Workspace, tmp_path: Path) -> int:
    return bring(workspace, tmp_path / "a.csv", line(1), line(2, amount="x"), terms=TIGHT)


def state(workspace: Workspace) -> State:
    with workspace.database.connect() as connection:
        return find_batch(connection, 1).state


def test_an_operator_releases_and_the_next_run_applies_the_clean_rows(
    workspace: Workspace, browser: New, held: int
) -> None:
    add(workspace, OTTO)
    otto = browser().log_in("otto").open(f"/batches/{held}")
    otto.send(DECIDE, what="release", reason="agreed with treasury")
    assert (otto.status, state(workspace)) == (200, State.CHECKED)
    assert "Released otto agreed with treasury" in otto.text
    assert "The run that has it applies its clean rows" in otto.text
    assert DECIDE not in otto.answer.text
    assert run_batch(workspace, held).batch.state is State.COMPLETE_WITH_ERRORS
    assert "2 read = 1 rejected + 1 inserted" in otto.open(f"/batches/{held}").text


def test_without_accounts_everybody_discards_who_gives_a_name(
    workspace: Workspace, browser: New, held: int
) -> None:
    page = browser().open(f"/batches/{held}").send(DECIDE, what="discard", reason="wrong month")
    assert (page.status, "Fill in Your name" in page.text) == (400, True)
    assert ">wrong month</textarea>" in page.answer.text, "what was typed is kept"
    page.send(DECIDE, what="discard", by="Ann", reason=" ")
    assert "Fill in Why" in page.text
    page.send(DECIDE, by="Ann", reason="wrong month")
    assert "Say whether" in page.text
    assert state(workspace) is State.HELD
    page.send(DECIDE, what="discard", reason="wrong month", by="Ann")
    assert (page.status, state(workspace)) == (200, State.DISCARDED)
    assert "Discarded Ann wrong month" in page.text


def test_whoever_comes_second_is_told(workspace: Workspace, browser: New, held: int) -> None:
    first, second = (browser().open(f"/batches/{held}") for _ in range(2))
    first.send(DECIDE, what="discard", by="Ann", reason="wrong month")
    second.send(DECIDE, what="release", by="Bo", reason="agreed")
    assert second.status == 409
    assert "Batch 1 is discarded, not held; nothing was changed." in second.text
    assert "Discarded Ann wrong month" in second.text


def test_what_was_worked_on_since_it_was_seen_is_looked_at_again(
    workspace: Workspace, browser: New, held: int
) -> None:
    page = browser().open(f"/batches/{held}")
    run_batch(workspace, held)
    page.send(DECIDE, what="release", by="Ann", reason="agreed")
    assert (page.status, state(workspace)) == (409, State.HELD)
    assert "was worked on since that page was loaded" in page.text
    page.send(DECIDE, what="release")
    assert state(workspace) is State.CHECKED


def test_what_was_held_again_by_hand_is_looked_at_again(
    workspace: Workspace, browser: New, held: int, acting: As
) -> None:
    """Whoever may load can begin a batch again without a run that has it."""
    page = browser().open(f"/batches/{held}")
    with acting(LOADER).database.connect() as connection:
        connection.execute("SELECT add_event(1, 'rewound', 'x', NULL, NULL)")
        for to in ("received", "staged", "held"):
            connection.execute("UPDATE batch SET state = %s", [to])
        told = json.dumps(ledger_detail(connection, held))
        connection.execute("SELECT add_event(1, 'batch held', 'x', NULL, %s)", [told])
    page.send(DECIDE, what="release", by="Ann", reason="agreed")
    assert (page.status, state(workspace)) == (409, State.HELD)
    assert "was worked on since that page was loaded" in page.text


def test_nobody_else_decides(workspace: Workspace, browser: New, held: int) -> None:
    add(workspace, ANNA, OTTO)
    anna = browser().log_in("anna").open(f"/batches/{held}")
    assert DECIDE not in anna.answer.text
    mark = anna.answer.text.partition('name="csrf" value="')[2][:64]
    form = {"what": "release", "reason": "because", "seen": "1", "csrf": mark}
    told = anna.client.post(DECIDE, data=form)
    assert (told.status_code, "takes the role operator" in told.text) == (403, True)
    assert state(workspace) is State.HELD


@pytest.mark.parametrize(
    ("what", "ended"), [("release", State.COMPLETE_WITH_ERRORS), ("discard", State.DISCARDED)]
)
def test_where_the_desk_takes_no_batch_a_job_decides(
    workspace: Workspace, acting: As, held: int, what: str, ended: State
) -> None:
    """A desk whose account of the database has no right to take one, and a worker that has."""
    add(workspace, OTTO)
    with acting(LOADER).database.connect() as connection:
        assert may_run(connection, TAKES)
    place = acting(DESK)
    with place.database.connect() as connection:
        assert not may_run(connection, TAKES)
    with desk_of(place) as url:
        otto = Browser(url).log_in("otto").open(f"/batches/{held}")
        print(otto.text)
        assert "applied by the job that releases it" in otto.text
        otto.send(DECIDE, what=what, reason="agreed with treasury")
        assert (otto.status, state(workspace)) == (200, State.HELD)
        assert do_job(workspace, 1).exit_code == (1 if what == "release" else 0)
        assert state(workspace) is ended
        said = {"release": "Released", "discard": "Discarded"}[what]
        assert f"{said} otto agreed with treasury" in otto.open(f"/batches/{held}").text
        otto.client.close()


def test_a_job_decides_nothing_about_a_batch_that_is_another_now(
    workspace: Workspace, held: int
) -> None:
    with workspace.database.connect() as connection:
        seen = held_as(connection, find_batch(connection, held))
        told = {"batch": held, "reason": "agreed", "seen": seen}
        number = order_job(connection, JobKind.RELEASE, told, "Ann")
    run_batch(workspace, held)
    done = do_job(workspace, number)
    assert done.exit_code == COULD_NOT_RUN
    assert "was worked on since that page was loaded" in done.said
    assert state(workspace) is State.HELD
