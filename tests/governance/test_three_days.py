"""Three days signed by two people: what would let a report pass is on page one, and refused.

Once as it should be, and once each with an amount that grew after it was accepted, a day in the
past, and looser rules.
"""

import json
from collections.abc import Iterable
from datetime import date
from decimal import Decimal
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from connectors.errors import DayRefused, DecisionsMissing, SignatureRefused
from connectors.files.profiles.profile import DEFAULT
from connectors.postgres.runs.breaks import Decision
from flows.report.reconciled.markdown import reconciliation_markdown
from flows.report.reconciled.verdicts import VERDICTS
from flows.stages.reconcile.breaks import Chosen, decide_breaks, list_breaks
from flows.stages.reconcile.run import Asked, Reconciled, reconcile
from flows.stages.reconcile.scope import Scope
from flows.stages.reconcile.sign import approve, prepare
from flows.stages.sequence import import_delivery
from flows.stages.undo import undo_batch
from flows.stages.workspace import Workspace
from flows.steps.rules.canonical import rules_hash
from flows.steps.rules.file import read_rules_text
from flows.steps.rules.rules import Rules
from schemas.life import Choice
from tests.governance.runs import names
from tests.stages.payments import line, write

FIRST, SECOND, THIRD = (date(2026, 1, day) for day in (29, 30, 31))
UNTIL = date(2026, 12, 31)
STRICT = read_rules_text('name = "strict"\nreferences = []\n')
TOLERANCE = """[[tolerance]]
record = "payment"
field = "PaidAmount"
absolute = 5
"""
EXCLUSION = """[[exclude]]
id = "dummy"
record = "payment"
field = "Id"
values = ["4"]
reason = "a test payment"
"""
PAGES = ("report.html", "report.txt")
LOOKED_AT = (*PAGES, "artifact")
RENDERINGS = ("report.html", "report.txt", "totals.json", "artifact")
LOOSENED = {
    "tolerance payment PaidAmount: above": TOLERANCE,
    "exclude dummy: values": EXCLUSION,
}


def run(place: Workspace, day: date, rules: Rules = STRICT, why: str | None = None) -> Reconciled:
    return reconcile(place, Asked(Scope(), day, rules, by="ann", restate=why))


def paid(place: Workspace, number: int, amount: str) -> None:
    """What the target holds of a payment; 10.50 were delivered."""
    with place.database.connect() as connection:
        connection.execute(
            'UPDATE payment SET "PaidAmount" = %s::numeric WHERE "Id" = %s', [amount, number]
        )


def accept_open(place: Workspace, done: Reconciled, up_to: Any = None) -> None:
    decision = Decision(Choice.ACCEPT, "bank charges", "ann", until=UNTIL, up_to=up_to)
    decide_breaks(place, done.run.id, Chosen(state="open"), decision)


def sign(place: Workspace, done: Reconciled, **explicit: Any) -> None:
    prepare(place, done.run.id, by="Ann", comment="")
    approve(place, done.run.id, by="Bo", comment="", **explicit)


def refused(place: Workspace, done: Reconciled, *words: str) -> None:
    """Prepared by one, and not approved by another, who is told why."""
    prepare(place, done.run.id, by="Ann", comment="")
    with pytest.raises(DecisionsMissing) as why:
        approve(place, done.run.id, by="Bo", comment="")
    assert [word for word in words if word not in str(why.value)] == [], why.value


def on_page_one(done: Reconciled, words: Iterable[str], where: Iterable[str] = RENDERINGS) -> None:
    """Each is on page one of the page, the text and the artifact, and on top of the totals.

    A verdict is told to readers in its own words.
    """
    folder = done.written.folder
    page = unescape((folder / "report.html").read_text())
    text = (folder / "report.txt").read_text()
    totals = json.loads((folder / "totals.json").read_text())
    artifact = reconciliation_markdown(done.report)
    firsts = {
        "report.html": page[: page.index('<nav aria-label="Sections">')],
        "report.txt": text[: text.index("\nSTATUSES\n")],
        "totals.json": json.dumps([totals["cover"], totals["changes"]]),
        "artifact": artifact.partition("## Totals")[0].replace("\\", ""),
    }
    read_as = {verdict: words.word for verdict, words in VERDICTS.items()}
    plain = {name: " ".join(told.split()) for name, told in firsts.items()}
    missing = [
        (name, word)
        for word in words
        for name in where
        for told in (word if name == "totals.json" else read_as.get(word, word),)
        if told not in plain[name]
    ]
    assert missing == [], plain


def hash_on_page_one(done: Reconciled) -> str:
    """By which whoever approves accepts how the figures are made; every rendering has it."""
    assert done.report.changes is not None
    named = done.report.changes.accept[:12]
    assert named
    on_page_one(done, [named])
    on_page_one(done, [f"--accept-changes {named}"], ("report.html", "report.txt", "artifact"))
    return named


@pytest.fixture
def signed_twice(workspace: Workspace, tmp_path: Path, once: Any) -> Workspace:
    """Two days that two people stand for, one payment being 0.50 short."""

    def build() -> None:
        lines = [line(number, day=number) for number in (1, 2, 3)]
        import_delivery(workspace, [write(tmp_path / "p.csv", *lines)], DEFAULT)
        paid(workspace, 1, "10")
        found = run(workspace, FIRST)
        refused(workspace, found, "Open breaks", "AMOUNT payment 1/7 PaidAmount")
        accept_open(workspace, found)
        sign(workspace, run(workspace, FIRST))
        second = run(workspace, SECOND)
        assert second.report.cover.verdict == "RECONCILED_WITH_ACCEPTED"
        sign(workspace, second)

    return once(build)  # type: ignore[no-any-return]


@pytest.mark.long
def test_as_it_should_be(signed_twice: Workspace) -> None:
    third = run(signed_twice, THIRD)
    on_page_one(third, ["RECONCILED_WITH_ACCEPTED", "1 break is accepted"])
    sign(signed_twice, third)
    assert third.report.changes is not None
    assert third.report.changes.outgrown == ()


@pytest.mark.long
def test_an_amount_that_grew_after_it_was_accepted(signed_twice: Workspace) -> None:
    paid(signed_twice, 1, "9")
    grown = run(signed_twice, THIRD)
    on_page_one(
        grown,
        [
            "NOT_RECONCILED",
            "1 accepted break is not what was accepted",
            "AMOUNT payment 1/7 PaidAmount",
            "expected 10.5, found 10, difference -0.5",
            "expected 10.5, found 9, difference -1.5",
        ],
    )
    refused(signed_twice, grown, "AMOUNT payment 1/7 PaidAmount", "found 10,", "found 9,")
    accept_open(signed_twice, grown, up_to=Decimal(2))
    again = run(signed_twice, THIRD)
    now = "as expected 10.5, found 9, difference -1.5, amount 1.5, in currency 1 up to 2"
    on_page_one(
        again,
        [
            "RECONCILED_WITH_ACCEPTED",
            "accepted again: AMOUNT payment 1/7 PaidAmount",
            "accepted as expected 10.5, found 10, difference -0.5, amount 0.5, in currency 1 "
            "until 2026-12-31 when last signed",
            now,
        ],
        ("report.html", "report.txt", "artifact"),
    )
    # However often it is run, until it is signed.
    on_page_one(run(signed_twice, THIRD), ["found 9", "up to 2"])
    sign(signed_twice, run(signed_twice, THIRD))
    signed = run(signed_twice, THIRD)
    assert signed.report.changes is not None
    assert signed.report.changes.again == ()


@pytest.mark.long
def test_an_accepted_amount_whose_currency_is_another_now_is_not_resolved(
    signed_twice: Workspace, tmp_path: Path
) -> None:
    signed_twice = names(signed_twice, tmp_path / "currencies.csv", "1,EUR\n2,JPY\n")
    with signed_twice.database.connect() as connection:
        connection.execute('UPDATE payment SET "CurrenciesId" = 2 WHERE "Id" = 1')
    other = run(signed_twice, THIRD)
    on_page_one(
        other,
        [
            "1 accepted break is not what was accepted",
            "AMOUNT payment 1/7 PaidAmount",
            "expected 10.5, found 10, difference -0.5, amount 0.5, in 1 EUR",
            "changed into VALUE: expected 10.5, found 10",
        ],
    )
    listed = list_breaks(signed_twice, other.run.id, Chosen(code="AMOUNT"))[1]
    assert listed["state"].to_list() == ["CHANGED_INTO"]
    (forward,) = [one for one in other.report.accepted_forward if one.currency == "1"]
    moved = {line.text: line.rows for line in forward.lines if line.rows and not line.total}
    assert moved == {"- changed into another break of the same field or row": -1}


@pytest.mark.long(but=("approved-until0-1000",))
@pytest.mark.parametrize(
    ("until", "up_to"), [(date(2099, 12, 31), 1000), (UNTIL, 1000), (date(2099, 12, 31), None)]
)
@pytest.mark.parametrize("since", ["approved", "prepared"])
def test_an_acceptance_that_is_other_than_its_report_was_signed_with(
    signed_twice: Workspace, since: str, until: date, up_to: int | None
) -> None:
    """Whether it was changed when the report was approved, or between the two signatures."""
    number = 3
    if since == "prepared":
        third = run(signed_twice, THIRD)
        prepare(signed_twice, third.run.id, by="Ann", comment="")
        number = third.run.id
    ids = list_breaks(signed_twice, number, Chosen(code="AMOUNT"))[1]["id"].to_list()
    looser = Decision(
        Choice.ACCEPT, "bank charges", "ann", until=until, up_to=up_to and Decimal(up_to)
    )
    decide_breaks(signed_twice, number, Chosen(ids=ids), looser)
    if since == "prepared":
        approve(signed_twice, number, by="Bo", comment="")
    on_page_one(
        run(signed_twice, THIRD),
        [
            "RECONCILED_WITH_ACCEPTED",
            "accepted again: AMOUNT payment 1/7 PaidAmount",
            f"in currency 1 until {UNTIL} when last signed",
            f"in currency 1{f' up to {up_to}' if up_to else ''} until {until}",
        ],
        ("report.html", "report.txt", "artifact"),
    )


@pytest.mark.long
def test_a_restatement_is_held_against_acceptances_of_its_day(signed_twice: Workspace) -> None:
    """What a report of a later day was signed with is not said to have been signed before."""
    third = run(signed_twice, THIRD)
    every = Chosen(ids=list_breaks(signed_twice, third.run.id, Chosen())[1]["id"].to_list())
    wider = Decision(Choice.ACCEPT, "bank charges", "ann", until=UNTIL, up_to=Decimal(2))
    decide_breaks(signed_twice, third.run.id, every, wider)
    sign(signed_twice, run(signed_twice, THIRD))
    accept_open(signed_twice, run(signed_twice, SECOND, why="the bank asked"))
    back = run(signed_twice, SECOND, why="the bank asked")
    assert back.report.sign_off is not None
    assert back.report.changes is not None
    assert (back.report.sign_off.run, back.report.changes.again) == (3, ())


@pytest.mark.long
def test_what_was_signed_and_not_compared_is_not_said_to_be_as_it_was(
    workspace: Workspace, tmp_path: Path
) -> None:
    """The first run of a narrower scope reads no signed record, and a kind may have no batch."""
    same, unsaid = "other than it was", "No signed record was compared"
    invoices = tmp_path / "invoices.csv"
    invoices.write_text("Id,TenantsId,DebtsId,InvoiceUrl\n1,7,70,https://i.example/1.pdf\n")
    import_delivery(workspace, [write(tmp_path / "p.csv", line(1), line(2))], DEFAULT)
    import_delivery(workspace, [str(invoices)], DEFAULT)
    sign(workspace, run(workspace, FIRST))
    on_page_one(run(workspace, SECOND), [same], PAGES)
    narrow = reconcile(workspace, Asked(Scope(tenants=(7,)), SECOND, STRICT, by="ann"))
    on_page_one(narrow, [unsaid], PAGES)
    assert same not in narrow.text()
    undo_batch(workspace, 2, by="ann", reason="the wrong file")
    fewer = run(workspace, THIRD)
    on_page_one(
        fewer,
        ["signed records of Invoice file: not held against what is there", "1 signed"],
        LOOKED_AT,
    )
    page = (fewer.written.folder / "report.html").read_text()
    assert "no batch of this scope brings any: 1 record of Invoice file." in page
    sign_off = fewer.report.sign_off
    assert sign_off is not None
    assert (sign_off.compared, sign_off.not_compared) == (2, {"invoice_file": 1})


WIDER = "A wider scope has 2 open breaks, not carried here (recon breaks list --run "


def _wider(run: int, scope: str) -> str:
    return f"{run}): reconciliation {run} as of 2026-01-31, {scope}"


NARROW = [
    (Scope(feeds=("default",)), [_wider(4, "everything")]),
    (Scope(tenants=(7,)), [_wider(4, "everything")]),
    (Scope(batches=(2,)), [_wider(4, "everything"), _wider(5, "feeds default")]),
    (
        Scope(batches=(2,), tenants=(7,)),
        [_wider(4, "everything"), _wider(5, "feeds default"), _wider(6, "tenants 7")],
    ),
    (Scope(feeds=("default", "bank")), [_wider(4, "everything")]),
]


@pytest.mark.long
def test_a_narrower_scope_names_what_a_wider_one_has_open(
    signed_twice: Workspace, tmp_path: Path
) -> None:
    def notes(scope: Scope) -> list[str]:
        done = reconcile(signed_twice, Asked(scope, THIRD, STRICT, by="ann"))
        assert done.report.changes is not None
        told = [one for one in done.report.changes.notes if one.startswith("A wider scope")]
        on_page_one(done, told)
        return [one.removeprefix(WIDER) for one in told]

    import_delivery(signed_twice, [write(tmp_path / "q.csv", line(8, day=31))], DEFAULT)
    paid(signed_twice, 2, "1")
    everything = run(signed_twice, THIRD)
    assert {str(scope): notes(scope) for scope, _ in NARROW} == {
        str(scope): told for scope, told in NARROW
    }
    assert notes(Scope()) == []
    # What was accepted there since is not open any more.
    accept_open(signed_twice, run(signed_twice, THIRD))
    assert notes(Scope(tenants=(7,))) == []
    assert everything.run.id == 4


@pytest.mark.long
def test_an_overlapping_scope_that_has_open_breaks_is_named(
    signed_twice: Workspace, tmp_path: Path
) -> None:
    """Neither wider nor narrower: it may have breaks of records that belong to both."""
    import_delivery(signed_twice, [write(tmp_path / "q.csv", line(8, day=31))], DEFAULT)
    paid(signed_twice, 8, "1")

    def notes(scope: Scope) -> list[str]:
        done = reconcile(signed_twice, Asked(scope, THIRD, STRICT, by="ann"))
        assert done.report.changes is not None
        told = [one for one in done.report.changes.notes if one.startswith("An overlapping")]
        on_page_one(done, told)
        return [one.rsplit(", ", 1)[-1] for one in told]

    assert notes(Scope(tenants=(7,))) == []
    assert notes(Scope(feeds=("default",))) == ["tenants 7"]
    assert notes(Scope(batches=(2,))) == ["tenants 7"]
    # Of another tenant or batch nothing belongs to both; that of its feed is wider.
    assert notes(Scope(tenants=(8,))) == ["feeds default", "batches 2"]
    assert notes(Scope(batches=(1,), tenants=(8,))) == []
    assert notes(Scope()) == [], "what is narrower is looked at here"


@pytest.mark.long
def test_a_restatement_is_held_against_what_the_scope_itself_signed(
    signed_twice: Workspace,
) -> None:
    rules = read_rules_text(f'name = "strict"\nreferences = []\n{TOLERANCE}')
    for _ in range(2):
        back = run(signed_twice, FIRST, rules, why="the bank asked")
        named = hash_on_page_one(back)
        on_page_one(
            back,
            ["tolerance payment PaidAmount: above", named],
        )  # fmt: skip
        assert back.report.changes is not None
        since = "reconciliation 3 as of 2026-01-30, the last one approved"
        assert back.report.changes.since == since
    prepare(signed_twice, back.run.id, by="Ann", comment="")
    with pytest.raises(DecisionsMissing, match=r"since reconciliation 3.*--accept-changes"):
        approve(signed_twice, back.run.id, by="Bo", comment="", accept_restated=FIRST)
    approve(
        signed_twice, back.run.id, by="Bo", comment="",
        accept_restated=FIRST, accept_changes=named,
    )  # fmt: skip
    # What was signed there is no rule of the scope itself.
    third = run(signed_twice, THIRD, rules)
    named = hash_on_page_one(third)
    on_page_one(third, ["tolerance payment PaidAmount: above", named])
    refused(signed_twice, third, "since reconciliation 3", f"--accept-changes {named}")


@pytest.mark.long
def test_a_day_in_the_past(signed_twice: Workspace) -> None:
    paid(signed_twice, 3, "1")
    third = run(signed_twice, THIRD)
    refused(signed_twice, third, "AMOUNT payment 3/7 PaidAmount")
    before = date(2026, 1, 2)
    with pytest.raises(DayRefused, match="--restate"):
        run(signed_twice, before)
    back = run(signed_twice, before, why="so that it looks better")
    listed = f"recon breaks list --run {third.run.id}"
    open_there = f"The restated scope has 2 open breaks, not carried here ({listed})"
    on_page_one(back, ["restatement as of 2026-01-02", "so that it looks better", open_there])
    assert "--accept-restated 2026-01-02" in " ".join(back.text().split())
    accept_open(signed_twice, back)
    back = run(signed_twice, before, why="so that it looks better")
    assert back.report.reconciles
    refused(signed_twice, back, "restates", "--accept-restated 2026-01-02")
    with pytest.raises(SignatureRefused, match="is as of 2026-01-02"):
        approve(signed_twice, back.run.id, by="Bo", comment="", accept_restated=FIRST)
    approve(signed_twice, back.run.id, by="Bo", comment="", accept_restated=before)
    # The scope itself is where it was: its last day is open, and there is nothing to restate in it.
    again = run(signed_twice, THIRD)
    assert again.report.cover.verdict == "NOT_RECONCILED"
    accept_open(signed_twice, again)
    again = run(signed_twice, THIRD)
    prepare(signed_twice, again.run.id, by="Ann", comment="")
    with pytest.raises(SignatureRefused, match="restates nothing"):
        approve(signed_twice, again.run.id, by="Bo", comment="", accept_restated=THIRD)
    approve(signed_twice, again.run.id, by="Bo", comment="")


@pytest.mark.long
@pytest.mark.parametrize("told", [*LOOSENED, ""])
def test_looser_rules(signed_twice: Workspace, tmp_path: Path, told: str) -> None:
    late = line(4, day=31)
    import_delivery(signed_twice, [write(tmp_path / "late.csv", late)], DEFAULT)
    paid(signed_twice, 4, "8")
    refused(signed_twice, run(signed_twice, THIRD), "AMOUNT payment 4/7 PaidAmount")
    text = LOOSENED.get(told, TOLERANCE + EXCLUSION)
    rules = read_rules_text(f'name = "strict"\nreferences = []\n{text}')
    run(signed_twice, THIRD, rules)
    # A second run by them takes nothing off page one.
    loose = run(signed_twice, THIRD, rules)
    assert loose.report.reconciles
    assert loose.report.changes is not None
    named = f"--accept-changes {hash_on_page_one(loose)}"
    words = [told] if told else list(LOOSENED)
    states = {"tolerance": ["WAIVED_BY_RULE"], "exclude": ["NOT_LOOKED_AT"]}
    on_page_one(loose, [*words, *states.get(told.split(" ", maxsplit=1)[0], []),
                        rules_hash(rules)[:12]])  # fmt: skip
    refused(signed_twice, loose, "rules", named)
    whole = loose.report.changes.accept
    approve(signed_twice, loose.run.id, by="Bo", comment="", accept_changes=whole)
