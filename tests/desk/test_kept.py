"""What is kept in memory: each value made once, the one used last, and never an old one."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from decimal import Decimal
from random import Random

import httpx
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from connectors.errors import DecisionRefused
from connectors.postgres.runs.breaks import Decision
from connectors.postgres.runs.reconciliations import Reconciliation
from flows.desk.app import Desk
from flows.desk.kept import LOOK_SECONDS, Kept, LastUsed, warm
from flows.desk.review import review_of
from flows.desk.server import serving
from flows.stages.reconcile.breaks import Chosen, breaks_now, decide_breaks
from flows.stages.workspace import Workspace
from flows.steps.breaks.lifecycle import REMEMBERED
from schemas.life import Choice
from tests.desk.many import many_breaks
from tests.governance.runs import found, ids, reconcile, tamper, with_counts

ACCEPT = Decision(Choice.ACCEPT, "bank charges", until=date(2026, 12, 31))


def test_the_values_used_last_are_kept() -> None:
    kept: LastUsed[str] = LastUsed(2)
    made: list[str] = []

    for key in "ababcab":

        def make(of: str = key) -> str:
            made.append(of)
            return of

        assert kept.get(key, make) == key
    assert "".join(made) == "abcab", "c put a out, a put b out, b put c out"


def test_a_value_is_made_once_however_many_ask_for_it() -> None:
    kept: LastUsed[int] = LastUsed(2)
    made: list[int] = []
    asked = threading.Barrier(8)

    def make() -> int:
        made.append(1)
        time.sleep(0.05)  # The others come while it is being made.
        return 7

    def ask(_: int) -> int:
        asked.wait()
        return kept.get("one", make)

    with ThreadPoolExecutor(8) as pool:
        assert [*pool.map(ask, range(8))] == [7] * 8
    assert made == [1]


def test_what_could_not_be_made_is_made_by_the_next_one() -> None:
    kept: LastUsed[int] = LastUsed(2)

    def broken() -> int:
        raise ValueError("not now")

    with pytest.raises(ValueError, match="not now"):
        kept.get("one", broken)
    assert kept.get("one", lambda: 1) == 1


def test_that_there_is_nothing_is_kept_too() -> None:
    kept: LastUsed[str | None] = LastUsed(2)
    assert kept.get("one", lambda: None) is None
    assert kept.get("one", lambda: "asked once more") is None


@pytest.mark.long
def test_a_decision_makes_what_was_kept_old(workspace: Workspace) -> None:
    one, other = reconcile(workspace, found("1")), reconcile(workspace, found("2"), scope="other")
    kept = Kept()
    with workspace.database.connect() as connection:
        first = kept.breaks(workspace, connection, one)
        second = kept.breaks(workspace, connection, other)
        assert kept.breaks(workspace, connection, one) is first
        decide_breaks(workspace, one.id, Chosen(code="AMOUNT"), ACCEPT)
        now = kept.breaks(workspace, connection, one)
        assert (first["state"].to_list(), now["state"].to_list()) == (["NEW"], ["ACCEPTED"])
        assert kept.review(workspace, connection, one).count("accepted") == 1
        assert kept.breaks(workspace, connection, other) is second, "it was about the other run"


DAYS_LEFT = (date(2026, 2, 1), date(2026, 12, 31))


def decide_at_random(workspace: Workspace, chance: Random, breaks: pl.DataFrame) -> bool:
    """One decision of one of two people, about a few breaks or all that match; or it is refused."""
    what = chance.choice([*Choice])
    told = Decision(
        what,
        chance.choice(["bank charges", "undone: typed by mistake"]),
        chance.choice(["anna", "ben"]),
        until=chance.choice(DAYS_LEFT) if what in (Choice.ACCEPT, Choice.PROPOSE) else None,
        side=chance.choice(["source", "service"]) if what is Choice.RESOLVE else None,
        owner=chance.choice(["carla", "dora"]) if what is Choice.ASSIGN else None,
        up_to=Decimal(10**6) if what is Choice.ACCEPT and chance.random() < 0.2 else None,
    )
    few = Chosen(tuple(chance.sample(breaks["id"].to_list(), chance.randrange(1, 4))))
    many = chance.choice(
        [Chosen(state="open"), Chosen(code="AMOUNT"), Chosen(state="accepted"), Chosen(tenant=7)]
    )
    try:
        decide_breaks(workspace, None, chance.choice([few, many]), told)
    except DecisionRefused:
        return False
    return True


def with_a_past(workspace: Workspace, rows: int) -> Reconciliation:
    """A run with breaks that are new, persisting, accepted, set aside and resolved."""
    first = reconcile(workspace, many_breaks(rows))
    accept = Decision(Choice.ACCEPT, "bank charges", "anna", until=DAYS_LEFT[0])
    decide_breaks(workspace, first.id, Chosen(code="RATE_MISSING"), accept)
    some = many_breaks(rows).filter(pl.col("tenant").ne_missing(8))
    reconcile(workspace, some, delivered=[(f"{one}/7", 9) for one in range(rows // 2)])
    return reconcile(workspace, many_breaks(rows + rows // 5), as_of=DAYS_LEFT[0])


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2))
def test_what_is_kept_is_what_would_be_made_anew_after_every_decision(
    workspace: Workspace, seed: int
) -> None:
    chance, kept = Random(seed), Kept()
    run = with_a_past(workspace, 60)
    taken = 0
    while taken < 8:
        with workspace.database.connect() as connection:
            now = kept.breaks(workspace, connection, run)
            anew = Kept().breaks(workspace, connection, run)
            assert_frame_equal(now, anew)
            told = breaks_now(connection, run).sort("id")
            assert_frame_equal(now.select(told.columns), told)
            # A run counts what is there by the state it gives it: no decision changes that.
            counts = ("id", "basis", "counted", "counted_beyond")
            first = [pl.lit(None, dtype).alias(name) for name, dtype in REMEMBERED.items()]
            plain = told.drop(counts[1:]).with_columns(first)
            assert_frame_equal(told.select(counts), with_counts(plain).select(counts))
            assert kept.review(workspace, connection, run) == review_of(
                workspace, connection, run, anew
            )
        taken += decide_at_random(workspace, chance, now)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 104))
def test_so_it_is_with_thousands(workspace: Workspace, seed: int) -> None:
    chance, kept = Random(seed), Kept()
    run = with_a_past(workspace, 20_000)
    for _ in range(25):
        with workspace.database.connect() as connection:
            now = kept.breaks(workspace, connection, run)
            assert_frame_equal(now, Kept().breaks(workspace, connection, run))
        decide_at_random(workspace, chance, now)


@pytest.mark.long
def test_what_is_kept_follows_a_database_that_was_restored(workspace: Workspace) -> None:
    """Decisions that are gone leave no trace, even where others took their numbers."""
    run = reconcile(workspace, found("1", "2"))
    (one, two), kept = ids(found("1", "2")), Kept()
    decide_breaks(workspace, run.id, Chosen((one,)), ACCEPT)
    with workspace.database.connect() as connection:
        assert kept.breaks(workspace, connection, run)["state"].to_list().count("ACCEPTED") == 1
    tamper(workspace, "decision", "DELETE FROM decision")
    decide_breaks(workspace, run.id, Chosen((two,)), ACCEPT)
    with workspace.database.connect() as connection:
        now = kept.breaks(workspace, connection, run)
        assert now.filter(pl.col("state") == "ACCEPTED")["id"].to_list() == [two]


@pytest.mark.long
def test_the_last_run_of_each_scope_is_read_before_it_is_asked_for(workspace: Workspace) -> None:
    kept, known, go_on = Kept(), set[tuple[int, str]](), threading.Event()
    warm(workspace, kept, known, go_on)
    reconcile(workspace, found("1"))
    last, other = reconcile(workspace, found("2")), reconcile(workspace, found("3"), scope="other")
    warm(workspace, kept, known, go_on)
    assert {number for number, _ in known} == {last.id, other.id}
    decide_breaks(workspace, last.id, Chosen(code="AMOUNT"), ACCEPT)
    warm(workspace, kept, known, go_on)
    followed = reconcile(workspace, found("2"))
    warm(workspace, kept, known, go_on)
    assert {number for number, _ in known} == {last.id, other.id, followed.id}
    with workspace.database.connect() as connection:
        assert kept.breaks(workspace, connection, followed)["state"].to_list() == ["ACCEPTED"]


def test_a_desk_that_reads_ahead_ends_at_once(workspace: Workspace) -> None:
    reconcile(workspace, many_breaks(100))
    begun = time.monotonic()
    with serving(Desk(workspace), "127.0.0.1", 0, ahead=True) as url:
        assert httpx.get(url).status_code == 200
    assert time.monotonic() - begun < LOOK_SECONDS
