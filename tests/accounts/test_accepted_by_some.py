"""An approver of some tenants accepts what was made otherwise than was signed, seen or not."""

from dataclasses import replace
from pathlib import Path

import pytest

from connectors.errors import AccountRefused, DecisionsMissing
from connectors.files.profiles.profile import DEFAULT
from connectors.postgres.database import Database
from flows.stages.reconcile import run as run_module
from flows.stages.reconcile.run import Asked, reconcile
from flows.stages.reconcile.scope import Scope
from flows.stages.reconcile.sign import approve, prepare
from flows.stages.reconcile.since_signed import to_accept
from flows.stages.sequence import import_delivery
from flows.stages.workspace import Workspace
from flows.steps.rules.file import read_rules_text
from tests.accounts.people import ANNA, BO, add, logged_in
from tests.governance.test_three_days import (
    FIRST,
    SECOND,
    STRICT,
    TOLERANCE,
    hash_on_page_one,
    sign,
)
from tests.governance.test_three_days import run as run_everything
from tests.stages.payments import line, write

LOOSE = read_rules_text(f'name = "strict"\nreferences = []\n{TOLERANCE}')


@pytest.mark.long
def test_rules_other_than_a_wider_scope_signed_are_accepted_by_the_hash_on_page_one(
    workspace: Workspace, controller: str, tmp_path: Path
) -> None:
    import_delivery(workspace, [write(tmp_path / "a.csv", line(1, day=28))], DEFAULT)
    sign(workspace, run_everything(workspace, FIRST))
    done = reconcile(workspace, Asked(Scope(tenants=(7,)), SECOND, LOOSE))
    named = hash_on_page_one(done)
    bo = replace(BO, tenants=(7,))
    add(workspace, ANNA, bo)
    prepare(logged_in(workspace, ANNA), done.run.id, by=None, comment="")
    some = logged_in(replace(workspace, database=Database(controller, 10)), bo)
    with some.database.connect() as connection:
        assert to_accept(some, connection, done.run) == done.report.changes
    with pytest.raises(DecisionsMissing, match=f"--accept-changes {named}"):
        approve(some, done.run.id, by=None, comment="")
    approve(some, done.run.id, by=None, comment="", accept_changes=named)


@pytest.mark.long
def test_what_a_wider_scope_signed_alike_is_no_change_to_who_does_not_see_it(
    workspace: Workspace, controller: str, tmp_path: Path
) -> None:
    """Page one was held against that, and not against the first run of the scope."""
    import_delivery(workspace, [write(tmp_path / "a.csv", line(1, day=28))], DEFAULT)
    reconcile(workspace, Asked(Scope(tenants=(7,)), FIRST, LOOSE))
    sign(workspace, run_everything(workspace, FIRST))
    done = reconcile(workspace, Asked(Scope(tenants=(7,)), SECOND, STRICT))
    assert done.report.changes is not None
    assert "of everything" in done.report.changes.since
    assert done.report.changes.accept == ""
    bo = replace(BO, tenants=(7,))
    add(workspace, ANNA, bo)
    prepare(logged_in(workspace, ANNA), done.run.id, by=None, comment="")
    some = logged_in(replace(workspace, database=Database(controller, 10)), bo)
    approve(some, done.run.id, by=None, comment="")


FIRST_OF_A_SCOPE = {
    "a restatement": Asked(Scope(), FIRST, LOOSE, restate="late"),
    "a narrower scope": Asked(Scope(feeds=("default",)), SECOND, LOOSE),
}


@pytest.mark.long
@pytest.mark.parametrize("which", FIRST_OF_A_SCOPE)
def test_nobody_approves_by_rules_they_changed_in_the_first_run_of_a_scope(
    workspace: Workspace, tmp_path: Path, which: str
) -> None:
    """It has no run before it; what it is held against was made by other rules all the same."""
    import_delivery(workspace, [write(tmp_path / "a.csv", line(1, day=28))], DEFAULT)
    sign(workspace, run_everything(workspace, FIRST))
    run_everything(workspace, SECOND)
    add(workspace, ANNA, BO, replace(BO, name="carl"))
    bo, carl = logged_in(workspace, BO), logged_in(workspace, replace(BO, name="carl"))
    asked = FIRST_OF_A_SCOPE[which]
    done = reconcile(bo, asked)
    prepare(logged_in(workspace, ANNA), done.run.id, by=None, comment="")
    named, day = hash_on_page_one(done), FIRST if asked.restate else None

    def approved_by(who: Workspace) -> None:
        approve(who, done.run.id, by=None, comment="", accept_changes=named, accept_restated=day)

    with pytest.raises(AccountRefused, match=f"bo made or ordered reconciliation {done.run.id} by"):
        approved_by(bo)
    approved_by(carl)


SIGNED_AFTER_IT = {
    # what is signed once the first run is there; whether the run is held against it
    "everything": (Scope(), True),
    "a feed of it": (Scope(feeds=("default",)), False),
    "other tenants": (Scope(tenants=(8, 77)), False),
    "a tenant of it and others": (Scope(tenants=(7, 8)), True),
}


@pytest.mark.long
@pytest.mark.parametrize("which", SIGNED_AFTER_IT)
def test_the_first_run_of_a_scope_is_held_against_what_was_signed_after_it(
    workspace: Workspace, tmp_path: Path, which: str
) -> None:
    """Nothing was approved when it was made, so its page one says nothing of its rules."""
    import_delivery(workspace, [write(tmp_path / "a.csv", line(1, day=28))], DEFAULT)
    scope, held = SIGNED_AFTER_IT[which]
    add(workspace, ANNA, BO, replace(BO, name="carl"))
    anna, bo, carl = (logged_in(workspace, one) for one in (ANNA, BO, replace(BO, name="carl")))
    mine = Scope(feeds=("default",), tenants=(7,)) if not scope.feeds else Scope()
    first = reconcile(bo, Asked(mine, FIRST, LOOSE))
    done = reconcile(workspace, Asked(mine, SECOND, LOOSE))
    wider = reconcile(workspace, Asked(scope, SECOND, STRICT))
    for place, one in ((anna, wider), (anna, done)):
        prepare(place, one.run.id, by=None, comment="")
    approve(carl, wider.run.id, by=None, comment="")
    with workspace.database.connect() as connection:
        named = to_accept(workspace, connection, done.run).accept
    assert bool(named) == held

    def approved_by(who: Workspace) -> None:
        approve(who, done.run.id, by=None, comment="", accept_changes=named or None)

    if held:
        with pytest.raises(AccountRefused, match=f"bo made or .* reconciliation {first.run.id} by"):
            approved_by(bo)
        approved_by(carl)
    else:
        approved_by(bo)


@pytest.mark.long
def test_a_restatement_is_held_against_what_its_scope_signed_since_the_first_one(
    workspace: Workspace, tmp_path: Path
) -> None:
    """The first one had its own rules before it, and the later one has others."""
    import_delivery(workspace, [write(tmp_path / "a.csv", line(1, day=28))], DEFAULT)
    add(workspace, ANNA, BO, replace(BO, name="carl"))
    anna, bo, carl = (logged_in(workspace, one) for one in (ANNA, BO, replace(BO, name="carl")))
    reconcile(workspace, Asked(Scope(), SECOND, LOOSE))
    first = reconcile(bo, Asked(Scope(), FIRST, LOOSE, restate="late"))
    signed = reconcile(workspace, Asked(Scope(), SECOND, STRICT))
    done = reconcile(workspace, Asked(Scope(), FIRST, LOOSE, restate="late"))
    for one in (signed, done):
        prepare(anna, one.run.id, by=None, comment="")
    with workspace.database.connect() as connection:
        named = to_accept(workspace, connection, signed.run).accept
    approve(carl, signed.run.id, by=None, comment="", accept_changes=named)
    with workspace.database.connect() as connection:
        named = to_accept(workspace, connection, done.run).accept

    def approved_by(who: Workspace) -> None:
        approve(who, done.run.id, by=None, comment="", accept_changes=named, accept_restated=FIRST)

    with pytest.raises(
        AccountRefused, match=f"bo made or ordered reconciliation {first.run.id} by"
    ):
        approved_by(bo)
    approved_by(carl)


SIGNED_SINCE = [
    # the scope of what was signed, why it is restated; whether it may hold records of tenant 7
    (Scope(), None, True),
    (Scope(tenants=(7, 8)), None, True),
    (Scope(feeds=("default",)), None, True),
    (Scope(tenants=(8, 77)), None, False),
    (Scope(tenants=(8,)), "late", False),
    (Scope(tenants=(-7,)), None, False),
]


@pytest.mark.long(but=("scope0-None-True",))
@pytest.mark.parametrize(("scope", "restate", "refused"), SIGNED_SINCE)
def test_what_was_signed_since_page_one_was_written_is_held_against_first(
    workspace: Workspace,
    controller: str,
    tmp_path: Path,
    scope: Scope,
    restate: str | None,
    refused: bool,
) -> None:
    """Page one could not name it, and an approver of some tenants does not see it."""
    import_delivery(workspace, [write(tmp_path / "a.csv", line(1, day=28))], DEFAULT)
    if restate:
        reconcile(workspace, Asked(scope, SECOND, STRICT))
    wider = reconcile(workspace, Asked(scope, FIRST, STRICT, restate=restate))
    seven = Asked(Scope(tenants=(7,)), SECOND, LOOSE)
    before = reconcile(workspace, seven)
    sign(workspace, wider, accept_restated=FIRST if restate else None)
    anew = reconcile(workspace, seven)
    bo = replace(BO, tenants=(7,))
    add(workspace, ANNA, bo)
    for done in (before, anew):
        prepare(logged_in(workspace, ANNA), done.run.id, by=None, comment="")
    some = logged_in(replace(workspace, database=Database(controller, 10)), bo)
    if not refused:
        approve(some, before.run.id, by=None, comment="")
        return
    with pytest.raises(AccountRefused, match="shows other tenants as well was approved after page"):
        approve(some, before.run.id, by=None, comment="")
    approve(some, anew.run.id, by=None, comment="", accept_changes=hash_on_page_one(anew))


@pytest.mark.long
@pytest.mark.parametrize("tenants", [(7,), ()], ids=["who sees some", "who sees all"])
@pytest.mark.parametrize("when", ["while it is written", "in a later run"])
def test_what_was_signed_since_counts_whenever_its_report_was_begun(
    workspace: Workspace,
    controller: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    when: str,
    tenants: tuple[int, ...],
) -> None:
    """Between what page one tells and the run's own event is the time that writing takes."""
    import_delivery(workspace, [write(tmp_path / "a.csv", line(1, day=28))], DEFAULT)
    everything, seven = Asked(Scope(), FIRST, STRICT), Asked(Scope(tenants=(7,)), SECOND, LOOSE)
    if when == "in a later run":
        done = reconcile(workspace, seven)
        sign(workspace, reconcile(workspace, everything))
    else:
        wider = [reconcile(workspace, everything)]

        def reached(point: str) -> None:
            if point == "reconciliation-written" and wider:
                sign(workspace, wider.pop())

        monkeypatch.setattr(run_module, "reach", reached)
        done = reconcile(workspace, seven)
    assert not done.report.changes or not done.report.changes.accept, "page one knows of none"
    bo = replace(BO, tenants=tenants)
    add(workspace, ANNA, bo)
    prepare(logged_in(workspace, ANNA), done.run.id, by=None, comment="")
    approver = logged_in(replace(workspace, database=Database(controller, 10)), bo)
    with pytest.raises(AccountRefused if tenants else DecisionsMissing):
        approve(approver, done.run.id, by=None, comment="")
