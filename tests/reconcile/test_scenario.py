"""The reconciliation scenario: three days, and what a report says on each of them."""

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import polars as pl
import pytest

from connectors.errors import DecisionsMissing, SignatureRefused
from connectors.postgres.runs.breaks import Decision
from flows.stages.reconcile.breaks import Chosen, decide_breaks, list_breaks
from flows.stages.reconcile.run import Reconciled
from flows.stages.reconcile.saved_report import saved_report
from flows.stages.reconcile.sign import approve, prepare
from flows.stages.workspace import Workspace
from flows.steps.reconcile.report import ReconciliationReport
from schemas.breaks import BREAKS, Status
from schemas.life import GONE, BreakState, Choice
from tests.reconcile.scenario import EXPECTED, FOLDER, Story, expected_breaks, found_breaks, told_at

NEVER_DELIVERED = {
    "FILE_REFUSED", "KEY_MISSING", "LATE_ARRIVAL", "REFERENCE_MISSING", "REFERENCE_TENANT",
}  # fmt: skip
"""Codes that are planted elsewhere: our tables have keys that are never null, of these days no file
is refused (`governance/test_scopes.py`) and nothing comes after its month was signed
(`governance/test_as_of.py`), and they have no record kind of their own
(`records/test_own_kinds.py`)."""


@pytest.fixture
def story(workspace: Workspace) -> Iterator[Story]:
    with told_at(workspace) as told:
        yield told


def test_the_scenario_has_every_code() -> None:
    planted = {code for day in EXPECTED for code, *_ in expected_breaks(day)}
    assert planted == set(BREAKS) - NEVER_DELIVERED, (
        "plant the code in data_samples/reconciliation_days.py or reconciliation_later.py and run "
        "data_samples/make_reconciliation.py; or say in NEVER_DELIVERED why no delivery can have it"
    )


def test_every_planted_break_is_found_and_none_else(story: Story) -> None:
    done = story.play("monday")
    assert sorted(found_breaks(done) ^ expected_breaks("monday")) == []
    cover = done.report.cover
    assert cover.verdict == EXPECTED["monday"]["verdict"]
    # Of all records up to the day, whatever their kind: the first and the last are of two.
    assert cover.period == (date(2026, 2, 20), date(2026, 3, 9))
    assert done.exit_code == 1
    assert_ties(done.report)
    # The most severe come first, however much the others are about.
    severities = [one.severity for one in done.report.breaks]
    assert severities == sorted(severities, key=["high", "medium", "low"].index)
    assert len(set(severities)) == 3


@pytest.mark.long
def test_three_days_carry_breaks_forward_and_a_signature_sees_later_changes(
    story: Story, tmp_path: Path
) -> None:
    monday = story.play("monday")
    assert states(monday) == {BreakState.NEW: len(expected_breaks("monday"))}

    # Monday night: two breaks are accepted, the correction pack is edited.
    accept(story, "1023/7", "the bank's clock", until=date(2026, 3, 10))
    accept(story, "1024/7", "the feed's offset", until=date(2026, 12, 31))
    pack = correction_pack(monday, tmp_path)

    story.deliver(pack, corrects=1)
    tuesday = story.play("tuesday")
    assert sorted(found_breaks(tuesday) ^ expected_breaks("tuesday")) == []
    assert states(tuesday)[BreakState.ACCEPTED] == 2
    assert sum(one.lines[-1].rows for one in tuesday.report.accepted_forward) == 2
    manual = [one.rows for one in tuesday.report.statuses if one.status == Status.MATCHED_MANUAL]
    assert manual == [1], "of the two, the offset had matched within tolerance already"
    assert_ties(tuesday.report)
    assert closed(tuesday) == {
        GONE[BreakState.RESOLVED_SOURCE]: 3,
        GONE[BreakState.RESOLVED_SERVICE]: 4,
    }

    wednesday = story.play("wednesday")
    assert sorted(found_breaks(wednesday) ^ expected_breaks("wednesday")) == []
    assert state_of(wednesday, "AMOUNT", "1021/7") == BreakState.REOPENED
    assert state_of(wednesday, "INSTANT", "1023/7") == BreakState.EXPIRED
    assert state_of(wednesday, "OFFSET", "1024/7") == BreakState.ACCEPTED
    assert_ties(wednesday.report)

    # Nobody signs a report with open breaks; once all are accepted, two people do.
    prepare(story.place, None, by="A. Meyer", comment="three days")
    with pytest.raises(DecisionsMissing):
        approve(story.place, None, by="B. Okafor", comment="")
    decide_breaks(story.place, wednesday.run.id, Chosen(state="open"), until(date(2026, 12, 31)))
    again = story.reconcile("2026-03-11")
    assert set(states(again)) == {BreakState.ACCEPTED}
    prepare(story.place, None, by="A. Meyer", comment="all accepted")
    with pytest.raises(SignatureRefused):
        approve(story.place, None, by="a. meyer", comment="")
    approve(story.place, None, by="B. Okafor", comment="agreed")

    friday = story.play("friday")
    assert sorted(found_breaks(friday) ^ expected_breaks("friday")) == []
    (changed,) = (one for one in friday.report.breaks if one.code == "CHANGED_AFTER_SIGNOFF")
    assert (changed.expected, changed.found, str(changed.delta)) == ("103.25", "108.25", "5")
    sign_off = friday.report.sign_off
    assert sign_off is not None
    assert (sign_off.prepared_by, sign_off.approved_by) == (
        "A. Meyer (self-declared)",
        "B. Okafor (self-declared)",
    )
    assert sign_off.changed_since == 1


@pytest.mark.long
def test_a_report_that_was_changed_is_not_shown_again(story: Story) -> None:
    done = story.play("monday")
    assert saved_report(story.place, None).exit_code == 1
    page = done.written.folder / "report.html"
    page.write_text(page.read_text().replace("NOT", ""))
    with pytest.raises(SignatureRefused, match=r"report\.html"):
        saved_report(story.place, None)


def assert_ties(report: ReconciliationReport) -> None:
    """Every record in one status, nothing unexplained in any currency, the roll-forward closed."""
    counts = Counter({(one.record, one.status): one.rows for one in report.statuses})
    assert all(Status(status) for _, status in counts)
    assert [one for one in report.proofs if one.unexplained] == []
    assert [one for one in report.controls if one.residual_rows or any(one.residual.values())] == []
    assert [one for one in report.chain if one.residual_rows or any(one.residual.values())] == []
    forwards = (*report.roll_forward, *report.accepted_forward)
    assert [one for one in forwards if one.residual_rows or one.residual] == []
    assert report.self_test.found == report.self_test.planted


def states(done: Reconciled) -> Counter[str]:
    return Counter(one.state for one in done.report.breaks)


def state_of(done: Reconciled, code: str, key: str) -> str:
    (one,) = (one for one in done.report.breaks if (one.code, one.key) == (code, key))
    return one.state


def closed(done: Reconciled) -> dict[str, int]:
    """Breaks by how they went away, over all currencies."""
    counts: Counter[str] = Counter()
    for forward in done.report.roll_forward:
        for line in forward.lines:
            if "resolved" in line.text:
                counts[line.text.lstrip("- ")] += abs(line.rows)
    return dict(counts)


def until(day: date) -> Decision:
    return Decision(Choice.ACCEPT, "agreed with treasury", by="A. Meyer", until=day)


def accept(story: Story, key: str, reason: str, *, until: date) -> None:
    _, found = list_breaks(story.place, None, Chosen())
    ids = found.filter(pl.col("key") == key)["id"].to_list()
    decision = Decision(Choice.ACCEPT, reason, by="A. Meyer", until=until)
    decide_breaks(story.place, None, Chosen(ids=ids), decision)


def correction_pack(done: Reconciled, folder: Path) -> Path:
    """The payments to correct, with the comma and the doubled key put right, and nothing else."""
    text = (done.written.folder / "corrections" / "payment.csv").read_text()
    header, *lines = text.splitlines()
    wanted = [line for line in lines if "1061" in line or "1062" in line]
    assert len(wanted) == 3
    mended = [line.replace('"12,50"', "12.50").replace("162.52", "162.25") for line in wanted]
    (folder / "payments.csv").write_text("\n".join([header, *mended]) + "\n")
    return folder


@pytest.mark.long
def test_the_sample_is_what_its_script_writes(tmp_path: Path) -> None:
    script = FOLDER.parent / "make_reconciliation.py"
    subprocess.run([sys.executable, str(script), "--out", str(tmp_path)], check=True)
    shipped, written = (
        {
            path.relative_to(folder): path.read_bytes()
            for path in folder.rglob("*")
            if path.is_file() and path.name != "rules.toml"
        }
        for folder in (FOLDER, tmp_path)
    )
    assert written == shipped, "an earlier one: run data_samples/make_reconciliation.py"
