"""A batch over its error budget: asked for on the run's page, rejected or loaded as requested.

The runs belong to a deployment and are carried out here, as a worker does it.
"""

from pathlib import Path
from typing import Any

import pytest

from flows.stages.sequence import discard_batch, release_batch
from flows.stages.workspace import Workspace
from tests.flows.runs import artifact, imported, run
from tests.stages.payments import line, write

pytestmark = pytest.mark.flows

HOSTILE = "[x](javascript:alert(1))|<script>"
RELEASE = {"decision": "release", "name": "A. Meyer", "reason": "agreed with treasury"}
DISCARD = RELEASE | {"decision": "discard", "reason": "wrong month"}


@pytest.mark.long
def test_a_run_that_waits_says_once_that_its_batch_is_held(
    path: str, rows: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from flows.tasks import hooks

    emitted: list[str] = []
    monkeypatch.setattr(hooks, "emit_event", lambda **event: emitted.append(event["event"]))
    waiting = imported(path, max_errors=0)
    assert waiting.work().name == "Suspended"
    assert emitted == ["recon.batch.held"]
    waiting.answer(RELEASE)
    assert waiting.work().name == "CompletedWithErrors"
    assert emitted == ["recon.batch.held", "recon.batch.completed_with_errors"]
    told = rows("SELECT what FROM event WHERE what LIKE 'run %%' ORDER BY id")
    assert [what for (what,) in told].count("run held") == 1


@pytest.fixture
def path(tmp_path: Path) -> str:
    return write(tmp_path / "a.csv", line(1), line(2, amount=HOSTILE), line(3, amount="x"))


def decisions(rows: Any) -> Any:
    return rows(
        "SELECT batch_id, what, by, reason FROM event WHERE what IN ('released', 'discarded') "
        "ORDER BY id"
    )


@pytest.mark.long
def test_a_run_over_budget_waits_and_a_release_lets_it_go_on(path: str, rows: Any) -> None:
    waiting = imported(path, max_errors=0)
    assert waiting.work().name == "Suspended"
    assert rows("SELECT state FROM batch") == [("held",)]
    assert rows("SELECT count(*) FROM payment") == [(0,)]
    assert "HELD" in artifact("import-summary").data
    schema, text = waiting.form
    assert schema["properties"]["decision"]["enum"] == ["release", "discard"]
    assert "2 of 3 rows have errors; the budget allows 0 rows" in text
    assert "**2 rows**: Number, PaidAmount, Payment. " in text
    assert "a.csv, line 4, record 3: Number, PaidAmount, “x”" in text
    assert HOSTILE not in text
    assert r"\[x\]\(javascript:alert\(1\)\)\|\<script\>" in text
    assert waiting.answer(RELEASE).status.value == "ACCEPT"
    ended = waiting.work()
    assert (ended.type.value, ended.name) == ("COMPLETED", "CompletedWithErrors")
    assert rows('SELECT "Id" FROM payment') == [(1,)]
    assert decisions(rows) == [(1, "released", "A. Meyer", "agreed with treasury")]


@pytest.mark.long
def test_a_reject_ends_the_batch_and_a_retry_asks_again(path: str, rows: Any) -> None:
    asked = imported(path, max_errors=0)
    asked.work()
    asked.answer(DISCARD)
    ended = asked.work()
    assert (ended.type.value, ended.name) == ("FAILED", "Rejected")
    assert "Nothing of it is applied" in ended.message
    asked.retry()
    assert asked.work().name == "Suspended"
    assert rows("SELECT id, state FROM batch ORDER BY id") == [(1, "discarded"), (2, "held")]
    asked.answer(RELEASE | {"name": "B. Roth"})
    assert asked.work().name == "CompletedWithErrors"
    assert decisions(rows) == [
        (1, "discarded", "A. Meyer", "wrong month"),
        (2, "released", "B. Roth", "agreed with treasury"),
    ]


@pytest.mark.long
@pytest.mark.parametrize(
    ("answer", "ended", "state"),
    [(RELEASE, "Failed", "held"), (DISCARD, "Rejected", "discarded")],
    ids=["release", "discard"],
)
def test_what_was_altered_while_a_run_waited_is_not_released(
    path: str, rows: Any, workspace: Workspace, answer: dict[str, str], ended: str, state: str
) -> None:
    waiting = imported(path, max_errors=0)
    assert waiting.work().name == "Suspended"
    (kept,) = workspace.settings.archive.glob("??/*.csv")
    kept.write_bytes(kept.read_bytes().replace(b"10.50", b"99.50"))
    waiting.answer(answer)
    told = waiting.work()
    assert told.name == ended
    assert ("is not what was delivered" in told.message) is (ended == "Failed")
    assert rows("SELECT state FROM batch") == [(state,)]
    assert rows("SELECT count(*) FROM payment") == [(0,)]


def test_an_answer_in_the_words_of_a_form_that_waited_is_understood() -> None:
    from flows.tasks.approval import Approval
    from flows.tasks.delivery import EARLIER

    assert [Approval(**(RELEASE | {"decision": word})).decision for word in EARLIER] == [
        "discard",
        "release",
    ]


NO_ANSWERS = [
    {},
    {"decision": "release"},
    RELEASE | {"decision": "perhaps"},
    RELEASE | {"name": " "},
    RELEASE | {"name": "    "},
    RELEASE | {"reason": "\n \n"},
    RELEASE | {"reason": "x" * 501},
    RELEASE | {"unasked": "1"},
]


@pytest.mark.long
def test_an_answer_that_is_none_is_refused_and_the_run_still_waits(path: str, rows: Any) -> None:
    waiting = imported(path, max_errors=0)
    waiting.work()
    for answer in NO_ANSWERS:
        told = waiting.answer(answer)
        assert told.status.value == "REJECT", answer
        assert "Reason: Validation failed" in told.details.reason, answer
        assert waiting.state.name == "Suspended", answer
    assert decisions(rows) == []
    # None of them has spoiled the form.
    assert waiting.answer(RELEASE).status.value == "ACCEPT"


@pytest.mark.long
@pytest.mark.parametrize(
    ("settle", "name"), [(release_batch, "CompletedWithErrors"), (discard_batch, "Rejected")]
)
def test_what_was_decided_elsewhere_meanwhile_stands(
    path: str, rows: Any, workspace: Workspace, settle: Any, name: str
) -> None:
    waiting = imported(path, max_errors=0)
    waiting.work()
    settle(workspace, 1, by="B. Roth", reason="by telephone")
    waiting.answer(RELEASE)
    assert waiting.work().name == name
    assert [one[2:] for one in decisions(rows)] == [("B. Roth", "by telephone")]
    assert rows("SELECT count(*) FROM batch") == [(1,)]


@pytest.mark.long
@pytest.mark.parametrize(
    ("over_budget", "name", "payments"),
    [
        ("discard", "Rejected", 0),
        ("release", "CompletedWithErrors", 1),
        ("ask", "Held", 0),
        # As deployments of version 0.1 send it.
        ("reject", "Rejected", 0),
        ("load", "CompletedWithErrors", 1),
    ],
)
def test_a_request_can_decide_beforehand_and_a_run_without_deployment_cannot_ask(
    path: str, rows: Any, over_budget: str, name: str, payments: int
) -> None:
    from flows.tasks.delivery import EARLIER

    state = run(path, max_errors=0, over_budget=over_budget)
    assert state.name == name
    assert rows("SELECT count(*) FROM payment") == [(payments,)]
    told = [(what, reason) for _, what, _, reason in decisions(rows)]
    word = EARLIER.get(over_budget, over_budget)
    reason = f"the request says: {word} what is over budget"
    assert told == [(f"{word}{'d' if word == 'release' else 'ed'}", reason)] * (word != "ask")


@pytest.mark.long
def test_a_batch_within_its_budget_is_not_asked_about(tmp_path: Path, rows: Any) -> None:
    asked = imported(write(tmp_path / "b.csv", line(1), line(2, amount="x")), max_errors=1)
    assert asked.work().name == "CompletedWithErrors"
    assert decisions(rows) == []
