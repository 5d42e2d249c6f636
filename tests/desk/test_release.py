"""A held batch is released or discarded at the desk, with a reason, by whoever may."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from connectors.postgres.auditing.audit import verify
from connectors.postgres.auditing.batch_hashes import ledger_detail
from connectors.postgres.batches.ledger import State, find_batch
from flows.stages.jobs.work import do_job
from flows.stages.sequence import run_batch
from flows.stages.workspace import Workspace
from schemas.guards.roles import DESK, LOADER, MERGER
from tests.accounts.people import ANNA, OTTO, add
from tests.desk.browser import Browser
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


def hold_again(place: Workspace) -> None:
    """Whoever may load can begin a batch again without a run that has it."""
    with place.database.connect() as connection:
        connection.execute("SELECT add_event(1, 'rewound', 'x', NULL, NULL)")
        for to in ("received", "staged", "held"):
            connection.execute("UPDATE batch SET state = %s", [to])
        told = json.dumps(ledger_detail(connection, 1))
        connection.execute("SELECT add_event(1, 'batch held', 'x', NULL, %s)", [told])


@pytest.mark.long
def test_an_operator_releases_and_the_clean_rows_are_applied(
    workspace: Workspace, browser: New, held: int
) -> None:
    add(workspace, OTTO)
    otto = browser().log_in("otto").open(f"/batches/{held}")
    otto.send(DECIDE, what="release", reason="agreed with treasury")
    assert (otto.status, state(workspace)) == (200, State.COMPLETE_WITH_ERRORS)
    assert "Job 1 Release" in otto.text
    otto.open(f"/batches/{held}")
    assert "Released otto agreed with treasury" in otto.text
    assert DECIDE not in otto.answer.text
    assert "2 read = 1 rejected + 1 inserted" in otto.text


@pytest.mark.long
def test_without_accounts_everybody_discards_who_gives_a_name(
    workspace: Workspace, browser: New, held: int
) -> None:
    page = browser().open(f"/batches/{held}").send(DECIDE, what="discard", reason="wrong month")
    assert (page.status, "Fill in Your name" in page.text) == (400, True)
    assert ">wrong month</textarea>" in page.answer.text, "what was typed is kept"
    page.send(DECIDE, what="discard", by="Ann", reason=" ")
    assert "Fill in Reason" in page.text
    page.send(DECIDE, by="Ann", reason="wrong month")
    assert "Say whether" in page.text
    assert state(workspace) is State.HELD
    page.send(DECIDE, what="discard", reason="wrong month", by="Ann")
    assert (page.status, state(workspace)) == (200, State.DISCARDED)
    assert "Batch 1 is discarded; nothing of it was applied." in page.text
    assert "Discarded Ann wrong month" in page.open(f"/batches/{held}").text


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
    assert state(workspace) is State.COMPLETE_WITH_ERRORS


@pytest.mark.long
def test_what_was_held_again_by_hand_is_looked_at_again(
    workspace: Workspace, browser: New, held: int, acting: As
) -> None:
    page = browser().open(f"/batches/{held}")
    hold_again(acting(LOADER))
    page.send(DECIDE, what="release", by="Ann", reason="agreed")
    assert (page.status, state(workspace)) == (409, State.HELD)
    assert "was worked on since that page was loaded" in page.text


@pytest.mark.long
def test_nobody_else_decides(workspace: Workspace, browser: New, held: int) -> None:
    add(workspace, ANNA, OTTO)
    anna = browser().log_in("anna").open(f"/batches/{held}")
    assert DECIDE not in anna.answer.text
    mark = anna.answer.text.partition('name="csrf" value="')[2][:64]
    form = {"what": "release", "reason": "because", "seen": "1", "csrf": mark}
    told = anna.client.post(DECIDE, data=form)
    assert (told.status_code, "takes the role operator" in told.text) == (403, True)
    assert state(workspace) is State.HELD


@pytest.fixture
def desk_of_reader(
    workspace: Workspace, acting: As, desk_as: Callable[[str], str], held: int
) -> Browser:
    """The page of the batch at a desk whose account of the database loads nothing."""
    add(workspace, OTTO)
    url = str(acting(DESK).settings.database_url)
    return Browser(desk_as(url)).log_in("otto").open(f"/batches/{held}")


@pytest.mark.long
@pytest.mark.parametrize(
    ("what", "ended", "said"),
    [
        ("release", State.COMPLETE_WITH_ERRORS, "Released"),
        ("discard", State.DISCARDED, "Discarded"),
    ],
)
def test_a_desk_that_loads_nothing_has_it_done_by_a_worker(
    workspace: Workspace, acting: As, desk_of_reader: Browser, what: str, ended: State, said: str
) -> None:
    page = desk_of_reader.send(DECIDE, what=what, reason="agreed with treasury")
    assert (page.status, state(workspace)) == (200, State.HELD)
    do_job(acting(MERGER), 1)
    assert state(workspace) is ended
    assert f"{said} otto agreed with treasury" in page.open("/batches/1").text
    with workspace.database.connect() as connection:
        assert verify(connection).broken is None


@pytest.mark.long
def test_a_worker_decides_about_nothing_else_than_what_was_seen(
    workspace: Workspace, acting: As, desk_of_reader: Browser
) -> None:
    desk_of_reader.send(DECIDE, what="release", reason="agreed with treasury")
    hold_again(acting(LOADER))
    assert "was worked on since that page was loaded" in do_job(acting(MERGER), 1).message
    assert state(workspace) is State.HELD
