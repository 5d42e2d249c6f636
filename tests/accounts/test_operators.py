"""What is decided about a batch takes an operator where somebody is logged in, at any program."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from connectors.errors import AccountRefused
from connectors.files.profiles.profile import DEFAULT
from connectors.postgres.push.earlier import undone_by, words_of
from connectors.postgres.push.sends import SendDecision
from connectors.postgres.trail import last_word
from flows.stages.chosen_sends import ChosenSends
from flows.stages.reconcile.run import reconcile
from flows.stages.reconcile.scope import Asked, Scope
from flows.stages.resolve import resolve
from flows.stages.rewind import rewind_batch
from flows.stages.sequence import discard_batch, import_delivery, release_batch, run_batch
from flows.stages.undo import undo_batch
from flows.stages.upkeep.restored import go_on_after_restore
from flows.stages.workspace import Workspace
from flows.steps.rules.rules import Rules
from schemas.accounts import AccountRole
from schemas.guards.batch_states import OPERATED
from tests.accounts.people import ADA, ANNA, CLEO, OTTO, Account, add, logged_in
from tests.stages.payments import line, write

Said = dict[str, Any]
SAID: Said = {"by": None, "reason": "agreed"}
TIGHT = replace(DEFAULT, budget_errors=0)
SEVENTH, EIGHTH = (
    Account(f"op{tenant}", f"Operator {tenant}", (AccountRole.OPERATOR,), tenants=(tenant,))
    for tenant in (7, 8)
)
DONE: Mapping[str, Callable[[Workspace], object]] = {
    "released": lambda place: release_batch(place, 1, **SAID),
    "discarded": lambda place: discard_batch(place, 1, **SAID),
    "rewound": lambda place: rewind_batch(place, 1),
    "undo": lambda place: undo_batch(place, 1, **SAID),
    "restored": lambda place: go_on_after_restore(place, unsent="unsent", **SAID),
}


def bring(workspace: Workspace, folder: Path, tenant: int | None = None) -> None:
    path = write(folder / "a.csv", line(1), line(2, amount="x"))
    import_delivery(workspace, [path], replace(TIGHT, tenant=tenant))


@pytest.mark.long
@pytest.mark.parametrize("what", DONE)
def test_an_operator_decides_and_nobody_else_who_is_logged_in(
    workspace: Workspace, tmp_path: Path, rows: Any, what: str
) -> None:
    bring(workspace, tmp_path)
    add(workspace, OTTO, ADA, ANNA, CLEO)
    before = rows("SELECT state FROM batch")
    for person in (ADA, ANNA, CLEO):
        with pytest.raises(AccountRefused, match=rf"{OPERATED[what]} takes operator"):
            DONE[what](logged_in(workspace, person))
        assert rows("SELECT state FROM batch") == before
    DONE[what](logged_in(workspace, OTTO))
    assert rows(f"SELECT person FROM event WHERE what = '{what}'") == [("otto",)]


def test_who_is_logged_in_is_told_to_have_decided_whatever_name_is_typed(
    workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    """The name that is typed, or that of the process, is only a note beside the login."""
    add(workspace, OTTO)
    otto, said = logged_in(workspace, OTTO), {"by": "The CFO", "reason": "agreed"}
    bring(workspace, tmp_path)
    discard_batch(otto, 1, **said)
    import_delivery(workspace, [write(tmp_path / "b.csv", line(3))], DEFAULT)
    rows(
        "INSERT INTO send (batch_id, extract_id, record_number, operation, number, state, twin, "
        "writer_extract_id, writer_record_number, attempts, epoch, changed_at) "
        "VALUES (2, 2, 1, 'EditPayment', 1, 'in_doubt', FALSE, 2, 1, 1, 1, now()) RETURNING 1"
    )
    resolve(otto, 2, ChosenSends(), SendDecision.ABANDON, **said)
    undo_batch(otto, 2, by=None, reason="agreed")
    with workspace.database.connect() as connection:
        told = [last_word(connection, 1, ["discarded"]), last_word(connection, 2, ["undo"])]
        words = [*words_of(connection, 2).values(), undone_by(connection, 2)]
    assert told == ["otto: agreed", "otto: agreed"]
    assert [word and word.by for word in words] == ["otto", "otto"]
    made = reconcile(otto, Asked(Scope(), date(2026, 1, 31), Rules(), by="The CFO")).report
    assert made.run is not None
    assert made.run.by == "otto"


@pytest.mark.long
def test_rows_in_doubt_are_settled_by_operators(
    workspace: Workspace, rows: Any, tmp_path: Path
) -> None:
    path = write(tmp_path / "a.csv", line(1))
    import_delivery(workspace, [path], DEFAULT)
    rows(
        "INSERT INTO send (batch_id, extract_id, record_number, operation, number, state, twin, "
        "writer_extract_id, writer_record_number, attempts, epoch, changed_at) "
        "VALUES (1, 1, 1, 'EditPayment', 1, 'in_doubt', FALSE, 1, 1, 1, 1, now()) RETURNING 1"
    )
    add(workspace, OTTO, ANNA)
    settled = (1, ChosenSends(), SendDecision.ABANDON)
    with pytest.raises(AccountRefused, match="settling rows of a batch takes operator"):
        resolve(logged_in(workspace, ANNA), *settled, **SAID)
    assert rows("SELECT state FROM send") == [("in_doubt",)]
    resolve(logged_in(workspace, OTTO), *settled, **SAID)
    assert rows("SELECT state FROM send") == [("abandoned",)]


@pytest.mark.long
@pytest.mark.parametrize(("tenant", "who"), [(7, EIGHTH), (None, SEVENTH)])
def test_an_operator_of_some_tenants_decides_about_batches_of_these(
    workspace: Workspace, tmp_path: Path, rows: Any, tenant: int | None, who: Account
) -> None:
    bring(workspace, tmp_path, tenant)
    add(workspace, OTTO, SEVENTH, EIGHTH)
    with pytest.raises(AccountRefused, match="batch 1 is bound to no such tenant"):
        release_batch(logged_in(workspace, who), 1, **SAID)
    assert rows("SELECT state FROM batch") == [("held",)]
    release_batch(logged_in(workspace, SEVENTH if tenant else OTTO), 1, **SAID)
    assert rows("SELECT state FROM batch") == [("complete_with_errors",)]


def test_a_restore_concerns_every_tenant(workspace: Workspace) -> None:
    add(workspace, SEVENTH)
    with pytest.raises(AccountRefused, match="after a restore is for all"):
        DONE["restored"](logged_in(workspace, SEVENTH))


@pytest.mark.long
def test_a_worker_goes_on_by_rule_without_a_login(
    workspace: Workspace, tmp_path: Path, rows: Any
) -> None:
    bring(workspace, tmp_path)
    add(workspace, OTTO)
    release_batch(workspace, 1, **SAID)
    run_batch(workspace, 1)
    undo_batch(workspace, 1, **SAID)
    assert rows("SELECT what, person FROM event WHERE what IN ('released', 'undo')") == [
        ("released", None),
        ("undo", None),
    ]


def test_every_decision_of_an_operator_is_tried_here() -> None:
    assert {*DONE, "resolve"} == {*OPERATED}
