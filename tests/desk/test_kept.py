"""What is kept in memory: each value made once, the one used last, and never an old one."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import date

import pytest

from connectors.postgres.breaks import Decision
from flows.desk.kept import Kept, LastUsed
from flows.stages.reconcile.breaks import Chosen, decide_breaks
from flows.stages.workspace import Workspace
from schemas.life import Choice
from tests.governance.runs import found, reconcile

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
