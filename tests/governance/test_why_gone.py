"""Why a break is gone: what was delivered, what it is compared with, or neither of them."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from connectors.files.profiles.profile import DEFAULT
from connectors.postgres.runs.breaks import Decision
from flows.stages.reconcile.breaks import Chosen, decide_breaks
from flows.stages.reconcile.run import Asked, Reconciled, reconcile
from flows.stages.reconcile.scope import Scope
from flows.stages.reconcile.sign import approve, prepare
from flows.stages.sequence import import_delivery, release_batch
from flows.stages.undo import undo_batch
from flows.stages.workspace import Workspace
from flows.steps.rules.file import read_rules_text
from flows.steps.rules.rules import Rules
from schemas.life import Choice
from tests.stages.payments import line, write

RULES = read_rules_text('name = "documents"\nreferences = ["documents"]\n')
EARLY, LATE = date(2026, 1, 10), date(2026, 1, 31)
BARE = read_rules_text('name = "bare"\nreferences = []\n')
INVOICE = "Id,TenantsId,DebtsId,InvoiceUrl\n1,7,2,https://i.example/1.pdf\n"
AGREED = Decision(Choice.ACCEPT, "agreed", "ann", until=date(2026, 12, 31))


def run(place: Workspace, as_of: date, rules: Rules = RULES) -> Reconciled:
    return reconcile(place, Asked(Scope(), as_of, rules, by="ann"))


def deliver(place: Workspace, folder: Path, *numbers: int, day: int = 1) -> int:
    lines = [line(number, day=day) for number in numbers]
    return import_delivery(place, [write(folder / "payments.csv", *lines)], DEFAULT).batch.id


def change(place: Workspace, statement: str) -> None:
    with place.database.connect() as connection:
        connection.execute(statement)


def gone(done: Reconciled) -> dict[str, int]:
    """Lines of the roll-forwards on which breaks leave for good, and how many of them do."""
    found: dict[str, int] = {}
    for forward in (*done.report.roll_forward, *done.report.accepted_forward):
        assert not forward.residual_rows
        for each in forward.lines:
            if each.rows and ("resolved" in each.text or "gone" in each.text):
                found[each.text] = found.get(each.text, 0) - each.rows
    return found


SOURCE, SERVICE = "- resolved at the source", "- resolved at the target (database or service)"
NEITHER = "- gone, neither side having changed: the day moved on, or it was signed since"

Then = Callable[[Workspace, Path], object]
WHY: list[tuple[str, int | None, Then | None, date, dict[str, int]]] = [
    # the day of the payment that is there at first, what happens then, the day of the second run
    ("the day alone", 20, None, LATE, {NEITHER: 1}),
    ("the day, and other records", 20,
     lambda place, folder: deliver(place, folder / "b", 9, day=20), LATE, {NEITHER: 1}),
    ("a delivery alone", None, lambda place, folder: deliver(place, folder / "b", 1), EARLY,
     {SOURCE: 1}),
    ("a delivery, and the day", None,
     lambda place, folder: deliver(place, folder / "b", 1, day=20), LATE, {SOURCE: 1}),
    ("the target alone", None,
     lambda place, _: change(place, "DELETE FROM invoice_file"), EARLY, {SERVICE: 1}),
    ("the target, and the day", None,
     lambda place, _: change(place, "DELETE FROM invoice_file"), LATE, {SERVICE: 1}),
]  # fmt: skip


@pytest.mark.long(but=("the target alone----",))
@pytest.mark.parametrize(
    ("why", "day", "then", "as_of", "told"),
    WHY,
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_a_break_held_against_other_records_is_gone_for_what_happened(
    workspace: Workspace,
    tmp_path: Path,
    why: str,
    day: int | None,
    then: Then | None,
    as_of: date,
    told: dict[str, int],
) -> None:
    (tmp_path / "invoice_files.csv").write_text(INVOICE)
    import_delivery(workspace, [str(tmp_path / "invoice_files.csv")], DEFAULT)
    if day is not None:
        deliver(workspace, tmp_path / "a", 1, day=day)
    first = run(workspace, EARLY)
    assert [one.code for one in first.report.breaks] == ["INV_UNPAID"]
    if then is not None:
        then(workspace, tmp_path)
    second = run(workspace, as_of)
    assert "INV_UNPAID" not in [one.code for one in second.report.breaks]
    assert gone(second) == told, why


@pytest.mark.long
def test_what_another_feed_delivered_is_resolved_at_source(
    workspace: Workspace, tmp_path: Path
) -> None:
    """A scope of feeds holds its records against those of others, which are around them."""
    (tmp_path / "invoice_files.csv").write_text(INVOICE)
    files = replace(DEFAULT, feed="files")
    import_delivery(workspace, [str(tmp_path / "invoice_files.csv")], files)
    asked = Asked(Scope(feeds=("files",)), EARLY, RULES, by="ann")
    assert [one.code for one in reconcile(workspace, asked).report.breaks] == ["INV_UNPAID"]
    deliver(workspace, tmp_path, 1)
    assert gone(reconcile(workspace, asked)) == {SOURCE: 1}


def sign(place: Workspace, done: Reconciled) -> None:
    prepare(place, done.run.id, by="Ann", comment="")
    approve(place, done.run.id, by="Bo", comment="")


@pytest.mark.long
def test_what_was_signed_since_is_no_change_of_the_service(
    workspace: Workspace, tmp_path: Path
) -> None:
    deliver(workspace, tmp_path, 1)
    sign(workspace, run(workspace, EARLY, BARE))
    change(workspace, 'UPDATE payment SET "PaidAmount" = 14.5')
    run(workspace, EARLY, BARE)
    # Somebody puts the database right, and another time a delivery does.
    change(workspace, 'UPDATE payment SET "PaidAmount" = 10.5')
    assert gone(run(workspace, EARLY, BARE)) == {SERVICE: 2}
    change(workspace, 'UPDATE payment SET "PaidAmount" = 14.5')
    run(workspace, EARLY, BARE)
    deliver(workspace, tmp_path / "again", 1, 1)
    assert gone(run(workspace, EARLY, BARE)) == {SOURCE: 2}
    change(workspace, 'UPDATE payment SET "PaidAmount" = 14.5')
    found = run(workspace, EARLY, BARE)
    decide_breaks(workspace, found.run.id, Chosen(state="open"), AGREED)
    accepted = run(workspace, EARLY, BARE)
    assert "CHANGED_AFTER_SIGNOFF" in [one.code for one in accepted.report.breaks]
    sign(workspace, accepted)
    assert gone(run(workspace, EARLY, BARE)) == {NEITHER: 1}


TAKEN_BACK: list[tuple[Iterable[int], str]] = [
    ((5,), "was undone"),  # other records of its kind are there
    ((1, 5), "was undone"),  # none of its kind is
]


@pytest.mark.long
@pytest.mark.parametrize(("undone", "what"), TAKEN_BACK)
def test_after_an_undo_the_batch_was_undone(
    workspace: Workspace, tmp_path: Path, undone: Iterable[int], what: str
) -> None:
    batches = {number: deliver(workspace, tmp_path / str(number), number) for number in (1, 5)}
    change(workspace, 'UPDATE payment SET "PaidAmount" = 14.5 WHERE "Id" = 5')
    run(workspace, EARLY)
    change(workspace, 'UPDATE payment SET "PaidAmount" = 10.5 WHERE "Id" = 5')
    for number in undone:
        undo_batch(workspace, batches[number], by="ann", reason="the wrong file")
    done = run(workspace, EARLY)
    (kept,) = [one for one in done.report.breaks if one.code == "AMOUNT"]
    assert kept.state == "NOT_LOOKED_AT"
    told = "; ".join([*done.report.cover.because, *(c.title for c in done.report.causes)])
    assert f"batch {batches[5]} {what}" in told
    assert "not part of this run" not in told


RATES = "Id,TenantsId,FromCurrenciesId,ToCurrenciesId,ExchangeRate,EffectiveDate\n"
RATED = read_rules_text('name = "rates"\nreferences = ["rates"]\n')


@pytest.mark.long
def test_what_was_held_at_the_run_before_is_a_delivery_once_it_is_released(
    workspace: Workspace, tmp_path: Path
) -> None:
    """It came before that run, which had nothing of it."""
    deliver(workspace, tmp_path, 1)
    path = tmp_path / "currency_rates.csv"
    path.write_text(f"{RATES}9,7,1,2,1.5,2026-01-01\n10,7,1,2,x,2026-01-02\n")
    held = import_delivery(workspace, [str(path)], replace(DEFAULT, budget_errors=0)).batch.id
    before = run(workspace, EARLY, RATED)
    assert "RATE_MISSING" in [one.code for one in before.report.breaks]
    release_batch(workspace, held, by="ann", reason="one row is no matter")
    done = run(workspace, EARLY, RATED)
    assert "RATE_MISSING" not in [one.code for one in done.report.breaks]
    # The rate itself was missing in the target, and is there.
    assert gone(done) == {SOURCE: 1, SERVICE: 1}


@pytest.mark.long
def test_a_row_that_does_not_count_puts_nothing_right(workspace: Workspace, tmp_path: Path) -> None:
    """Of a later delivery that was rejected: the database was corrected, and not by it."""
    deliver(workspace, tmp_path / "a", 1)
    bad = line(1).replace("10.50", "abc")
    import_delivery(workspace, [write(tmp_path / "b" / "payments.csv", bad)], DEFAULT)
    change(workspace, 'UPDATE payment SET "PaidAmount" = 14.5')
    run(workspace, EARLY, BARE)
    change(workspace, 'UPDATE payment SET "PaidAmount" = 10.5')
    assert gone(run(workspace, EARLY, BARE)) == {SERVICE: 1}


@pytest.mark.long
def test_of_a_restatement_what_was_signed_of_the_scope_it_restates_counts(
    workspace: Workspace, tmp_path: Path
) -> None:
    def restated() -> Reconciled:
        return reconcile(workspace, Asked(Scope(), EARLY, BARE, by="ann", restate="late"))

    deliver(workspace, tmp_path, 1)
    sign(workspace, run(workspace, EARLY, BARE))
    change(workspace, 'UPDATE payment SET "PaidAmount" = 14.5')
    first = run(workspace, EARLY, BARE)
    decide_breaks(workspace, first.run.id, Chosen(state="open"), AGREED)
    second = run(workspace, EARLY, BARE)
    run(workspace, LATE, BARE)
    of_day = restated()
    decide_breaks(workspace, of_day.run.id, Chosen(state="open"), AGREED)
    accepted = restated()
    prepare(workspace, accepted.run.id, by="Ann", comment="")
    approve(workspace, accepted.run.id, by="Bo", comment="", accept_restated=EARLY)
    # What a restatement signs counts for nothing else: somebody put the database right.
    change(workspace, 'UPDATE payment SET "PaidAmount" = 10.5')
    assert gone(restated()) == {SERVICE: 2}
    change(workspace, 'UPDATE payment SET "PaidAmount" = 14.5')
    restated()
    # The report of the scope itself is signed now, and what it says is what there is.
    sign(workspace, second)
    assert gone(restated()) == {NEITHER: 1}
