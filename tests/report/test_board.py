"""The next step of a batch, by its state."""

from datetime import UTC, datetime
from typing import Any

import pytest

from connectors.postgres.batches.ledger import State
from connectors.postgres.batches.overview import BatchSummary
from flows.report.board import MOST, board_table
from flows.report.next_step import next_step, repaired_text

LINE = BatchSummary(
    7, "bank", State.COMPLETE, datetime(2026, 1, 2, 3, 4, tzinfo=UTC), 1, 0, 9, 0, {}, None
)


STEPS: list[tuple[State, dict[str, Any], str]] = [
    (State.RECEIVED, {}, "recon rerun 7"),
    (State.STAGED, {}, "recon rerun 7"),
    (State.CHECKED, {}, "recon rerun 7"),
    (State.MERGED, {}, "recon rerun 7"),
    (State.MERGED, {"at_service": {"unsent": 2, "acknowledged": 1}}, "recon push 7"),
    (State.HELD, {}, "recon release 7 --reason ..., or recon discard 7 --reason ..."),
    (State.FAILED, {}, "read the report; recon rerun 7 recounts"),
    (State.COMPLETE, {}, ""),
    (State.COMPLETE_WITH_ERRORS, {"errors": 2}, "recon rejects 7 --out FOLDER"),
    (
        State.COMPLETE_WITH_ERRORS,
        {"errors": 2, "at_service": {"in_doubt": 2, "acknowledged": 5}},
        "recon sends 7 --state in_doubt, then recon resolve",
    ),
    (
        State.COMPLETE_WITH_ERRORS,
        {"errors": 4, "at_service": {"in_doubt": 1, "refused": 1, "differs": 1}},
        "recon sends 7 --state in_doubt --state differs --state refused, then recon resolve; "
        "recon rejects 7 --out FOLDER",
    ),
    (State.COMPLETE_WITH_ERRORS, {"at_service": {"abandoned": 2}}, ""),
    (State.COMPLETE_WITH_ERRORS, {"to_deliver": 1}, "recon import FILE --corrects 7"),
    (
        State.COMPLETE_WITH_ERRORS,
        {"errors": 1, "to_deliver": 2},
        "recon rejects 7 --out FOLDER; recon import FILE... --corrects 7",
    ),
    (State.COMPLETE_WITH_ERRORS, {}, ""),  # Every error was corrected.
    (State.DISCARDED, {}, ""),
    (State.UNDONE, {}, ""),
]


@pytest.mark.parametrize(("state", "facts", "step"), STEPS)
def test_the_next_step(state: State, facts: dict[str, Any], step: str) -> None:
    assert next_step(LINE._replace(state=state, **facts)) == step


REPAIRED: list[tuple[dict[int, int], str]] = [
    ({}, ""),
    ({8: 1}, "its reject repaired by batch 8"),
    ({8: 45}, "all 45 rejects repaired by batch 8"),
    ({8: 1, 9: 1}, "all 2 rejects repaired by batches 8 and 9"),
    ({8: 1, 9: 1, 12: 3}, "all 5 rejects repaired by batches 8, 9 and 12"),
]


@pytest.mark.parametrize(("repaired", "told"), REPAIRED)
def test_repaired_rejects_are_told_beside_what_is_left(repaired: dict[int, int], told: str) -> None:
    line = LINE._replace(state=State.COMPLETE_WITH_ERRORS, repaired=repaired)
    assert repaired_text(line) == board_table([line], UTC)[0]["Next"] == told
    both = board_table([line._replace(to_deliver=1)], UTC)[0]["Next"]
    assert both == "; ".join(filter(None, (told, "recon import FILE --corrects 7")))


def test_every_state_has_a_next_step_in_the_table_above() -> None:
    assert {state for state, _, _ in STEPS} == set(State)


def test_a_table_is_narrow_and_short_and_escaped() -> None:
    hostile = LINE._replace(feed="=1+[x](javascript:1)|" + "y" * 90, held_because="<script>")
    table = board_table([hostile] * (MOST + 5), UTC)
    assert len(table) == MOST
    assert list(table[0]) == [
        "Batch",
        "Next",
        "State",
        "Held because",
        "Rows",
        "Errors",
        "Feed",
        "Opened",
    ]
    assert table[0]["Feed"].startswith(r"'=1+\[x\]\(javascript:1\)\|yyy")
    assert table[0]["Feed"].endswith(r"... \(111 characters\)")
    assert table[0]["Held because"] == r"\<script\>"
    assert board_table([], UTC)[0]["Batch"] == "none"
