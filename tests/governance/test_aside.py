"""What a run did not look at is not resolved: other rules, a smaller source, an earlier day."""

import json
from datetime import date
from pathlib import Path

import polars as pl
import pytest

from connectors.errors import DecisionsMissing, SignatureRefused
from connectors.files.profiles.profile import DEFAULT
from connectors.postgres.auditing.audit import verify
from connectors.postgres.runs.breaks import Decision
from flows.stages.reconcile.breaks import Chosen, decide_breaks
from flows.stages.reconcile.run import Asked, Reconciled, reconcile
from flows.stages.reconcile.scope import Scope
from flows.stages.reconcile.sign import approve, prepare
from flows.stages.sequence import import_delivery
from flows.stages.undo import undo_batch
from flows.stages.workspace import Workspace
from flows.steps.breaks.carried_states import RULES
from flows.steps.reconcile.break_lines import aside_lines
from flows.steps.rules.canonical import rules_hash
from flows.steps.rules.file import read_rules_text
from flows.steps.rules.rules import Rules
from flows.steps.totals import plain
from schemas.life import ASIDE, Choice
from tests.governance.runs import tamper
from tests.stages.payments import line, write

DAY = date(2026, 1, 31)
STRICT = read_rules_text('name = "strict"\nreferences = ["rates"]\n')
LOOSE = read_rules_text("""name = "loose"
references = []
[[tolerance]]
record = "payment"
field = "PaidAmount"
above = 5
[[window]]
record = "payment"
days = 3650
[[exclude]]
id = "dummy"
record = "payment"
field = "Id"
values = ["2"]
reason = "a test payment"
""")


def run(
    place: Workspace, rules: Rules, as_of: date = DAY, scope: Scope | None = None
) -> Reconciled:
    return reconcile(place, Asked(scope or Scope(), as_of, rules, by="ann"))


def states(done: Reconciled) -> dict[tuple[str, str], str]:
    return {(one.code, one.key): one.state for one in done.report.breaks}


def change(place: Workspace, statement: str) -> None:
    with place.database.connect() as connection:
        connection.execute(statement)


def deliver(place: Workspace, folder: Path, *numbers: int) -> int:
    lines = [line(number, day=number) for number in numbers]
    return import_delivery(place, [write(folder / "p.csv", *lines)], DEFAULT).batch.id


def forwards(done: Reconciled) -> dict[str, tuple[int, str]]:
    """Lines of the breaks that are set aside: how many, and the difference they come to."""
    (one,) = done.report.aside_forward
    assert (one.residual_rows, one.residual, one.residual_gross) == (0, 0, 0)
    return {
        each.text.split(":")[0]: (each.rows, plain(each.amount)) for each in one.lines if each.rows
    }


RATE = "RATE_MISSING"  # every payment names a rate that nobody delivered
LOOSENED = {
    ("AMOUNT", "1/7"): "WAIVED_BY_RULE",
    ("AMOUNT", "2/7"): "NOT_LOOKED_AT",
    ("MISSING_IN_TARGET", "3/7"): "NOT_LOOKED_AT",
    (RATE, "1/7"): "NOT_LOOKED_AT",
    (RATE, "2/7"): "NOT_LOOKED_AT",
    (RATE, "4/7"): "NOT_LOOKED_AT",
}


def test_reasons_come_by_how_many_then_by_state_then_by_name() -> None:
    one, other = sorted(ASIDE)
    lines = [
        (one, "b", 2),
        (one, "a", 1),
        (one, "c", 1),
        (other, "a", 1),
    ]
    told = pl.DataFrame(
        [(state, because, RULES) for state, because, many in reversed(lines) for _ in range(many)],
        ["state", "aside_because", "aside_by"],
        orient="row",
    )
    found = [(line.state, line.because, line.breaks) for line in aside_lines(told)]
    assert found == lines


@pytest.mark.long
def test_looser_rules_resolve_nothing(workspace: Workspace, tmp_path: Path) -> None:
    deliver(workspace, tmp_path / "a", 1, 2, 3, 4)
    change(workspace, """UPDATE payment SET "PaidAmount" = 14.5 WHERE "Id" IN (1, 2)""")
    change(workspace, """DELETE FROM payment WHERE "Id" = 3""")
    strict = run(workspace, STRICT)
    assert set(states(strict).values()) == {"NEW"}
    assert states(strict).keys() >= LOOSENED.keys()

    loose = run(workspace, LOOSE)
    assert states(loose) | LOOSENED == states(loose)
    assert not [state for state in states(loose).values() if state in ("NEW", "OPEN")]
    told = forwards(loose)
    assert told["+ waived by a rule"] == (1, "4")
    assert told["+ not looked at any more"][0] == len(states(loose)) - 1
    for forward in loose.report.roll_forward:
        for step in forward.lines:
            assert "resolved" not in step.text or not step.rows, step
    # Again by the same rules: they do not become resolved by waiting.
    again = run(workspace, LOOSE)
    assert states(again) | LOOSENED == states(again)
    assert again.report.cover.verdict == "RECONCILED_WITH_ACCEPTED"

    # What is put right is resolved, also where nobody looks; what is not comes back.
    change(workspace, """UPDATE payment SET "PaidAmount" = 10.5 WHERE "Id" = 2""")
    right = run(workspace, LOOSE)
    assert ("AMOUNT", "2/7") not in states(right)
    assert forwards(right)["- resolved at the target (database or service)"] == (-1, "-4")
    back = run(workspace, STRICT)
    assert states(back)["AMOUNT", "1/7"] == states(back)[RATE, "4/7"] == "REOPENED"
    assert ("AMOUNT", "2/7") not in states(back)


@pytest.mark.long
def test_each_break_is_judged_once_more_by_the_rules_that_it_was_found_by(
    workspace: Workspace, tmp_path: Path
) -> None:
    """What older rules find of a break that newer ones found too does not keep it."""
    strict = read_rules_text('name = "strict"\nreferences = []\n')
    five = read_rules_text("""name = "five"
references = []
[[tolerance]]
record = "payment"
field = "PaidAmount"
above = 5
""")
    large, small = ("AMOUNT", "1/7"), ("AMOUNT", "2/7")

    deliver(workspace, tmp_path / "a", 1, 2)
    change(workspace, """UPDATE payment SET "PaidAmount" = 18.5 WHERE "Id" = 1""")
    change(workspace, """UPDATE payment SET "PaidAmount" = 11.5 WHERE "Id" = 2""")
    assert states(run(workspace, strict)) == {large: "NEW", small: "NEW"}
    assert states(run(workspace, five)) == {large: "OPEN", small: "WAIVED_BY_RULE"}
    change(workspace, """UPDATE payment SET "PaidAmount" = 13.5 WHERE "Id" = 1""")
    smaller = run(workspace, five)
    assert states(smaller) == {small: "WAIVED_BY_RULE"}
    assert smaller.report.cover.verdict == "RECONCILED_WITH_ACCEPTED"


@pytest.mark.long
def test_changed_rules_are_on_page_one_and_accepted_by_name(
    workspace: Workspace, tmp_path: Path
) -> None:
    deliver(workspace, tmp_path / "a", 1)
    change(workspace, """UPDATE payment SET "PaidAmount" = 14.5""")
    run(workspace, STRICT)
    decide_breaks(workspace, None, Chosen(state="open"),
                  Decision(Choice.ACCEPT, "known", "ann", until=date(2026, 12, 31)))  # fmt: skip
    signed = run(workspace, STRICT)
    prepare(workspace, None, by="ann", comment="")
    # Neither run nor rules changed, so there is nothing to accept beside.
    with pytest.raises(SignatureRefused, match="is not the hash"):
        approve(workspace, None, by="bo", comment="", accept_changes="0123456789")
    approve(workspace, None, by="bo", comment="")

    loose = run(workspace, LOOSE)
    page = (loose.written.folder / "report.html").read_text()
    text = (loose.written.folder / "report.txt").read_text()
    told = json.loads((loose.written.folder / "totals.json").read_text())["changes"]
    named = told["accept"][:12]
    for shown in (page, text):
        first = shown[: shown.index("Completeness chain" if shown is page else "STATUSES")]
        words = ["tolerance payment PaidAmount: above", "exclude dummy: values", "--accept-changes"]
        for word in (*words, f"reconciliation {signed.run.id}", rules_hash(LOOSE)[:12], named):
            assert word.lower() in first.lower(), word
    assert {"key": "window payment: days", "old": "", "new": "3650"} in told["rules"]

    prepare(workspace, None, by="ann", comment="")
    with pytest.raises(DecisionsMissing, match=f"--accept-changes {named}") as early:
        approve(workspace, None, by="bo", comment="")
    assert early.value.exit_code == 1
    with pytest.raises(SignatureRefused, match="is not the hash"):
        approve(workspace, None, by="bo", comment="", accept_changes=rules_hash(LOOSE))
    with pytest.raises(SignatureRefused, match="is not the hash"):
        approve(workspace, None, by="bo", comment="", accept_changes=named[:4])
    approve(workspace, None, by="bo", comment="", accept_changes=named)
    with workspace.database.connect() as connection:
        accepted = connection.execute(
            "SELECT detail::json ->> 'accepted_changes' FROM event WHERE what = 'report approved' "
            "ORDER BY id DESC LIMIT 1"
        ).fetchone()
        assert verify(connection).broken is None
    assert accepted == (told["accept"],)
    # What was accepted once is the ground of the next.
    run(workspace, LOOSE)
    prepare(workspace, None, by="ann", comment="")
    approve(workspace, None, by="bo", comment="")

    tamper(workspace, "reconciliation", "UPDATE reconciliation SET rules_text = rules_text || ' '")
    with workspace.database.connect() as connection:
        assert "rules of reconciliation" in (verify(connection).broken or "")


@pytest.mark.long
def test_rules_loosened_before_anything_was_signed_are_named_too(
    workspace: Workspace, tmp_path: Path
) -> None:
    deliver(workspace, tmp_path / "a", 1)
    change(workspace, """UPDATE payment SET "PaidAmount" = 14.5""")
    run(workspace, STRICT)
    run(workspace, LOOSE)
    last = run(workspace, LOOSE)
    assert last.exit_code == 0
    prepare(workspace, None, by="ann", comment="")
    with pytest.raises(DecisionsMissing, match="--accept-changes"):
        approve(workspace, None, by="bo", comment="")


@pytest.mark.long
def test_a_smaller_source_resolves_nothing(workspace: Workspace, tmp_path: Path) -> None:
    deliver(workspace, tmp_path / "a", 1)
    second = deliver(workspace, tmp_path / "b", 5)
    change(workspace, """DELETE FROM payment WHERE "Id" = 1""")
    change(workspace, """UPDATE payment SET "PaidAmount" = 14.5 WHERE "Id" = 5""")
    assert states(run(workspace, STRICT))["AMOUNT", "5/7"] == "NEW"
    change(workspace, """UPDATE payment SET "PaidAmount" = 10.5 WHERE "Id" = 5""")
    undo_batch(workspace, second, by="ann", reason="the wrong file")
    smaller = run(workspace, STRICT)
    assert states(smaller)["AMOUNT", "5/7"] == "NOT_LOOKED_AT"
    assert smaller.report.cover.verdict == "INCOMPLETE"
    because = "; ".join(smaller.report.cover.because)
    assert f"batch {second} was undone" in because

    # Somebody may accept what cannot be looked at; it is not looked at all the same.
    ids = [one.id for one in smaller.report.breaks]
    until = date(2026, 12, 31)
    known = Decision(Choice.ACCEPT, "taken back", "ann", until=until)
    decide_breaks(workspace, None, Chosen(ids=ids), known)
    accepted = run(workspace, STRICT)
    assert states(accepted)["AMOUNT", "5/7"] == "NOT_LOOKED_AT"
    assert accepted.report.cover.verdict == "RECONCILED_WITH_ACCEPTED"
