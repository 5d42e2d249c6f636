"""How the figures are made is accepted by whoever approves: rules, profiles, settings, version.

One hash on page one names all that is other than in the last signed report, and nothing of it is
approved unseen.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import psycopg
import pytest

from connectors.errors import DecisionsMissing, SignatureRefused
from connectors.files.profiles.profile import DEFAULT, Profile
from connectors.postgres.batches import ledger
from connectors.postgres.runs.reconciliations import Reconciliation, latest_run
from flows.stages.receiving.terms import stored_profile
from flows.stages.reconcile import method
from flows.stages.reconcile.held_against import Base, of_same_records
from flows.stages.reconcile.method import Method, method_of, setting_changes
from flows.stages.reconcile.profile_changes import profile_changes
from flows.stages.reconcile.run import Asked, Reconciled, reconcile
from flows.stages.reconcile.scope import Scope
from flows.stages.reconcile.sign import approve, prepare
from flows.stages.reconcile.since_signed import to_accept
from flows.stages.sequence import import_delivery, push_batch
from flows.stages.workspace import Workspace
from flows.steps.reconcile.report import RuleChange
from flows.steps.rules.file import read_rules_text
from flows.steps.rules.rules import Rules
from schemas.derived.views import LISTING_FEED
from tests.governance.runs import tamper
from tests.governance.test_three_days import (
    FIRST,
    LOOKED_AT,
    SECOND,
    STRICT,
    THIRD,
    TOLERANCE,
    hash_on_page_one,
    on_page_one,
    paid,
    refused,
    run,
    sign,
)
from tests.push.conftest import towards
from tests.report.reconciliation.test_workbook import Book
from tests.service.faulty_server import FaultyServer
from tests.stages.payments import line, write

COMMA = replace(DEFAULT, decimal=",", delimiter=";", constants={"ActionsId": "3"})
SEMICOLONS = (
    "Id;TenantsId;DebtsId;PaymentDate;PaidAmount;DiscountAmount;CurrenciesId;CurrencyRatesId\n"
    "{number};7;2;2026-01-31T10:00:00+01:00;10,5;0,5;1;9\n"
)
BANK = replace(COMMA, feed="bank")
RUN = Reconciliation(
    id=1, scope="everything", scope_hash="", as_of=FIRST, rules_hash="", verdict="RECONCILED",
    report_hash="", chain_hash="", previous_id=None, decided_through=0,
    opened_at=datetime(2026, 1, 29, tzinfo=UTC), folder="reconciliation-1", event_id=1,
)  # fmt: skip
LOOSE = read_rules_text(f'name = "strict"\nreferences = []\n{TOLERANCE}')
OTHER_KEYS = [
    ("constants ActionsId", "not set", "3"),
    ("decimal", ".", ","),
    ("delimiter", "not set", ";"),
]


@pytest.fixture
def signed(workspace: Workspace, tmp_path: Path, once: Any) -> Workspace:
    """A day that two people stand for: batch 1 of feed default, batch 2 of feed bank."""

    def build() -> None:
        deliver(workspace, tmp_path, DEFAULT, 1)
        deliver(workspace, tmp_path, BANK, 2)
        sign(workspace, run(workspace, FIRST))

    return once(build)  # type: ignore[no-any-return]


def deliver(place: Workspace, folder: Path, profile: Profile, number: int) -> int:
    path = folder / f"{number}-{profile.feed}.csv"
    if profile.delimiter == ";":
        path.write_text(SEMICOLONS.format(number=number))
    else:
        write(path, line(number, day=28 if number < 3 else 30))
    return import_delivery(place, [str(path)], profile).batch.id


def rows(done: Reconciled) -> list[tuple[str, str, str]]:
    """What page one says of profiles that are other."""
    told = done.report.changes
    assert told is not None
    return [(one.key, one.old or "not set", one.new or "not set") for one in told.profiles]


TILL = replace(DEFAULT, feed="till", tenant=7, budget_errors=3)
UNKNOWN_THEN = ("complete", "keep", "date_zeros")
"""Keys that the profiles of earlier versions do not have."""


def _of(feed: str, *keys: tuple[str, str, str]) -> list[tuple[str, str, str]]:
    return [(f"{feed}: {key}", old, new) for key, old, new in keys]


WAYS: dict[str, tuple[list[Profile], list[Profile], list[tuple[str, str, str]]]] = {
    # batches from 1 on that were signed; those that came since; what page one says
    "as it was": ([DEFAULT, BANK], [DEFAULT, BANK], []),
    "nothing new": ([DEFAULT], [], []),
    "changed": ([DEFAULT], [COMMA], _of("default, from batch 2 on", *OTHER_KEYS)),
    "changed and back": ([DEFAULT], [COMMA, DEFAULT], _of("default, batch 2", *OTHER_KEYS)),
    "for a while": (
        [DEFAULT],
        [COMMA, BANK, COMMA, DEFAULT],
        [
            ("bank, new from batch 3 on", "not set", "3 keys set"),
            *((f"bank, new from batch 3 on: {key}", "not set", new) for key, _, new in OTHER_KEYS),
            *_of("default, batches 2 to 4", *OTHER_KEYS),
        ],
    ),
    "signed with both": (
        [DEFAULT, COMMA, DEFAULT],
        [COMMA],
        _of("default, from batch 4 on", *OTHER_KEYS),
    ),
    "new": (
        [DEFAULT],
        [TILL],
        [
            ("till, new from batch 2 on", "not set", "2 keys set"),
            ("till, new from batch 2 on: budget_errors", "not set", "3"),
            ("till, new from batch 2 on: tenant", "not set", "7"),
        ],
    ),
    "new, and then otherwise": (
        [BANK],
        [DEFAULT, replace(DEFAULT, tenant=7)],
        [
            ("default, new from batch 2 on", "not set", "0 keys set"),
            ("default, from batch 3 on: tenant", "not set", "7"),
        ],
    ),
    "another name": (
        [BANK],
        [replace(BANK, feed="bank-2")],
        [("bank-2, new from batch 2 on", "not set", "read as bank is")],
    ),
    "columns": (
        [replace(DEFAULT, columns={"Betrag": "PaidAmount", "Nr": "Id"})],
        [replace(DEFAULT, columns={"Betrag": "DiscountAmount", "Nr": "Id"})],
        _of("default, from batch 2 on", ("columns Betrag", "PaidAmount", "DiscountAmount")),
    ),
    "a listing": ([DEFAULT], [replace(DEFAULT, feed=LISTING_FEED, compare_only=True)], []),
}


def test_every_way_a_profile_changes(workspace: Workspace) -> None:
    with workspace.database.connect() as connection:
        told = {name: _told(connection, *way[:2]) for name, way in WAYS.items()}
    assert told == {name: way[2] for name, way in WAYS.items()}


def _told(
    connection: psycopg.Connection,
    signed: list[Profile],
    since: list[Profile],
    *,
    forms: Iterable[str] = (),
    left: Iterable[int] | None = None,
    base: Base = Base(RUN, approved=True, own=True),  # noqa: B008
    tells: bool = True,
) -> list[tuple[str, str, str]]:
    """What is said of batches, their numbers from 1 on; `left` are those still there."""
    numbers = []
    for profile in (*signed, *since):
        text = json.dumps(
            {key: one for key, one in json.loads(stored_profile(profile)).items()
             if key not in forms or len(numbers) >= len(signed)}
        )  # fmt: skip
        number = ledger.add_batch(
            connection, content_id=f"{len(numbers)}", feed=profile.feed, profile=text, corrects=None
        )
        numbers.append(number)
    first = numbers[0] - 1
    before = Method("", None, batches=frozenset(numbers[: len(signed)]) if tells else None)
    now = Method(
        "", None, batches=frozenset(numbers if left is None else (first + one for one in left))
    )
    changes = list(profile_changes(connection, base, before, now))
    return [
        (re.sub(r"(?<=batch )\d+|(?<=batches )\d+|(?<= to )\d+",
                lambda found: str(int(found[0]) - first), one.key),
         one.old or "not set", one.new or "not set")
        for one in changes
    ]  # fmt: skip


def test_what_is_gone_or_of_an_earlier_version_or_of_another_scope(workspace: Workspace) -> None:
    other = Base(RUN, approved=True, own=False)
    nobody = Base(RUN, approved=False, own=True)
    late = replace(other, run=replace(RUN, opened_at=datetime(2199, 1, 1, tzinfo=UTC)))
    with workspace.database.connect() as connection:
        # Its last batch was taken back: with what was read so, the feed is gone.
        gone = [("bank", "1 batch of it", "no batch of it")]
        assert _told(connection, [DEFAULT, BANK], [], left=[1]) == gone
        assert _told(connection, [DEFAULT, BANK], [], left=[1], base=nobody) == gone
        assert _told(connection, [DEFAULT, BANK], [], left=[1], base=other) == []
        # What was signed is taken back and comes again, as it was, and otherwise.
        assert _told(connection, [DEFAULT], [DEFAULT], left=[2]) == []
        again = _of("default, from batch 2 on", *OTHER_KEYS)
        assert _told(connection, [DEFAULT], [COMMA], left=[2]) == again
        # A batch of an earlier version knows fewer keys, and is read as it was.
        assert _told(connection, [DEFAULT], [DEFAULT], forms=UNKNOWN_THEN) == []
        keep = _of("default, from batch 2 on", ("keep", "text", "reference"))
        kept = replace(DEFAULT, keep="reference")
        assert _told(connection, [DEFAULT], [kept], forms=UNKNOWN_THEN) == keep
        # A feed is new in a scope alone whose reports somebody signed.
        for base in (other, nobody):
            assert _told(connection, [DEFAULT], [BANK], base=base) == []
            assert _told(connection, [DEFAULT], [COMMA], base=base) == again
        # Where a report does not tell its batches, it is about those there were.
        assert _told(connection, [DEFAULT, COMMA], [], tells=False, base=late) == []


@pytest.mark.long
def test_a_correction_is_read_as_what_it_repairs(workspace: Workspace, tmp_path: Path) -> None:
    """Its rows are of the record kind of their header, and what comes next is as it was.

    Nothing stands around its records, whatever does in the files of its feed.
    """
    stated = replace(DEFAULT, feed="till", record="payment", header_line="found")
    path = write(tmp_path / "p.csv", line(1, day=28), line(2, day=28, amount="x"))
    first = import_delivery(workspace, [path], stated).batch.id
    done = run(workspace, FIRST)
    path = write(tmp_path / "c.csv", line(2, day=28))
    import_delivery(workspace, [path], DEFAULT, corrects=first)
    assert rows(run(workspace, FIRST)) == []
    path = write(tmp_path / "q.csv", line(3, day=28))
    import_delivery(workspace, [path], stated)
    again = run(workspace, FIRST)
    assert rows(again) == []
    assert again.report.changes is not None
    assert again.report.changes.accept == ""
    # In another form than the feed's it is told, and is no measure for what comes next.
    with workspace.database.connect() as connection:
        base = Base(done.run, approved=True, own=True)
        other_form = replace(COMMA, feed="till", record="payment", header_line="found")
        profile = stored_profile(other_form)
        other = ledger.add_batch(
            connection, content_id="c", feed="till", profile=profile, corrects=first
        )
        before, now = (Method("", None, batches=frozenset(one)) for one in ([1], [1, other]))
        told = [one.key for one in profile_changes(connection, base, before, now)]
        assert told == [f"till, from batch {other} on: {key}" for key, _, _ in OTHER_KEYS]
        later = Method("", None, batches=frozenset([1, 3, other]))
        assert [*profile_changes(connection, base, now, later)] == []


@pytest.mark.long
def test_a_profile_changed_and_changed_back_is_on_page_one_and_accepted(
    signed: Workspace, tmp_path: Path
) -> None:
    deliver(signed, tmp_path, COMMA, 3)
    deliver(signed, tmp_path, DEFAULT, 4)
    done = run(signed, SECOND)
    assert rows(done) == _of("default, batch 3", *OTHER_KEYS)
    named = hash_on_page_one(done)
    on_page_one(
        done,
        ["profile of feed default, batch 3: decimal", "not set"],
        ("report.html", "report.txt", "artifact"),
    )
    refused(signed, done, "profile of feed default, batch 3: decimal . -> ,", named)
    approve(signed, done.run.id, by="Bo", comment="", accept_changes=named)
    after = run(signed, THIRD)
    assert rows(after) == []
    on_page_one(after, [named], ("report.html", "report.txt"))
    prepare(signed, after.run.id, by="Ann", comment="")
    with pytest.raises(SignatureRefused, match="in which nothing changed"):
        approve(signed, after.run.id, by="Bo", comment="", accept_changes=named)
    approve(signed, after.run.id, by="Bo", comment="")


@pytest.mark.long
def test_a_service_that_nobody_signed_for_is_on_page_one_and_accepted(
    workspace: Workspace, tmp_path: Path
) -> None:
    """Any server can say that it has a record: whoever approves has to know which one said so."""
    deliver(workspace, tmp_path, DEFAULT, 1)
    sign(workspace, run(workspace, FIRST))
    with FaultyServer() as one, FaultyServer() as other:
        for number, server, before in ((2, one, "not set"), (3, other, one.url)):
            place = towards(workspace, server.url)
            path = write(tmp_path / f"{number}.csv", line(number, day=28 + number))
            push_batch(place, import_delivery(place, [path], DEFAULT).batch.id)
            done = run(place, SECOND if number == 2 else THIRD)
            told = [(f"default, from batch {number} on: service", before, server.url)]
            assert rows(done) == told
            refused(place, done, f"service {before if number == 3 else ''}".strip(), server.url)
            named = hash_on_page_one(done)
            approve(place, done.run.id, by="Bo", comment="", accept_changes=named)


@pytest.mark.long
def test_one_hash_accepts_all_of_it(
    signed: Workspace, tmp_path: Path, recon: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rules, a profile, a setting and the version at once, by the command, from page to trail."""
    deliver(signed, tmp_path, COMMA, 3)
    auckland = replace(signed.settings, time_zone=ZoneInfo("Pacific/Auckland"))
    monkeypatch.setattr(method, "version", lambda _: "9.9.9")
    done = run(replace(signed, settings=auckland), SECOND, LOOSE)
    monkeypatch.undo()
    monkeypatch.setenv("RECON_DATABASE_URL", str(signed.settings.database_url))
    monkeypatch.setenv("RECON_HOME", str(signed.settings.home))
    named = hash_on_page_one(done)
    told = [
        "rule tolerance payment PaidAmount: above",
        "profile of feed default, from batch 3 on: decimal",
        "time zone (RECON_TIME_ZONE)",
        "version of recon",
    ]
    on_page_one(done, told, ("report.html", "report.txt", "artifact"))
    book = Book((done.written.folder / "report.xlsx").read_bytes())
    cells = [value or "" for _, value in book.cells(next(iter(book.parts))).values()]
    assert [one for one in told if one not in cells] == []
    assert any(f"--accept-changes {named}" in one for one in cells)

    number = str(done.run.id)
    assert recon("sign", "prepare", number, "--by", "Ann").returncode == 0
    missing = recon("sign", "approve", number, "--by", "Bo")
    assert missing.returncode == 1
    plain = " ".join(missing.stderr.split())
    assert [one for one in (*told, named) if one not in plain] == []
    for wrong in ("0" * 12, named[:4], done.run.rules_hash[:12]):
        unknown = recon("sign", "approve", number, "--by", "Bo", "--accept-changes", wrong)
        assert unknown.returncode == 2
        assert "is not the hash of the changes" in " ".join(unknown.stderr.split())
    ended = recon("sign", "approve", number, "--by", "Bo", "--accept-changes", named, "--json")
    assert ended.returncode == 0, ended.stderr
    assert done.report.changes is not None
    whole = done.report.changes.accept
    assert json.loads(ended.stdout)["signatures"]["approved"]["accepted_changes"] == whole
    kept = json.loads((done.written.folder / "signatures.json").read_text())["signatures"]
    assert [one["accepted_changes"] for one in kept] == ["", whole]
    assert whole[:12] in recon("audit", "list", "--what", "approved").stdout


@pytest.mark.long
def test_nothing_is_asked_before_anything_is_there_to_hold_it_against(
    workspace: Workspace, tmp_path: Path
) -> None:
    deliver(workspace, tmp_path, DEFAULT, 1)
    first = run(workspace, FIRST)
    assert first.report.changes is not None
    assert first.report.changes.accept == ""
    # Nobody signed: what is read otherwise since the first run is told, and a new feed is none.
    deliver(workspace, tmp_path, BANK, 2)
    deliver(workspace, tmp_path, replace(DEFAULT, duplicate="reject"), 3)
    second = run(workspace, SECOND)
    assert rows(second) == [("default, from batch 3 on: duplicate", "conflict", "reject")]
    refused(workspace, second, "duplicate conflict -> reject", hash_on_page_one(second))


@pytest.mark.long
def test_what_rules_set_aside_is_counted_to_whoever_approves_first(
    workspace: Workspace, tmp_path: Path
) -> None:
    deliver(workspace, tmp_path, DEFAULT, 1)
    deliver(workspace, tmp_path, DEFAULT, 2)
    for number in (1, 2):
        paid(workspace, number, "8")
    run(workspace, FIRST)
    loose = run(workspace, SECOND, LOOSE)
    assert loose.report.reconciles
    refused(workspace, loose, "2 breaks are set aside by rules", hash_on_page_one(loose))


@pytest.mark.long
def test_what_was_approved_since_the_report_was_written_counts(signed: Workspace) -> None:
    """Page one of the later one is held against the first, which it does not differ from."""
    loose = run(signed, SECOND, LOOSE)
    strict = run(signed, THIRD)
    assert strict.report.changes is not None
    assert strict.report.changes.accept == ""
    sign(signed, loose, accept_changes=hash_on_page_one(loose))
    refused(signed, strict, f"since reconciliation {loose.run.id}", "does not have all of that",
            "rule tolerance payment PaidAmount: above")  # fmt: skip


@pytest.mark.long
def test_what_was_accepted_with_another_report_since_is_not_asked_again(signed: Workspace) -> None:
    second, third = run(signed, SECOND, LOOSE), run(signed, THIRD, LOOSE)
    named = hash_on_page_one(third)
    sign(signed, second, accept_changes=hash_on_page_one(second))
    # Its page one asks for it, so whoever does what it says is not refused for that.
    sign(signed, third, accept_changes=named)


@pytest.mark.long
def test_a_report_is_never_held_against_itself_or_what_came_later(
    workspace: Workspace, tmp_path: Path
) -> None:
    """Whatever is approved later, its desk page tells what its page one told."""
    deliver(workspace, tmp_path, DEFAULT, 1)
    asked = Asked(Scope(feeds=("default",)), FIRST, LOOSE, by="ann")
    reconcile(workspace, replace(asked, rules=STRICT))
    before, done = reconcile(workspace, asked), reconcile(workspace, asked)
    sign(workspace, done, accept_changes=hash_on_page_one(done))
    sign(workspace, run(workspace, FIRST))
    with workspace.database.connect() as connection:
        now = to_accept(workspace, connection, done.run)
        assert (now.since, now.accept, now.rules) == told(done)
        assert "the first of this scope, none being signed" in now.since
        # Of the one that nobody approved, what another scope signed since counts.
        now = to_accept(workspace, connection, before.run)
        assert "reconciliation 4 as of 2026-01-29, the last one approved of everything" in now.since


def told(done: Reconciled) -> tuple[str, str, tuple[RuleChange, ...]]:
    """What page one says it is held against, and the rules that are other."""
    changes = done.report.changes
    assert changes is not None
    return changes.since, changes.accept, changes.rules


AROUND = [
    # signed scope, scope at hand: does the one bind the other?
    (Scope(), Scope(tenants=(7,)), True),
    (Scope(), Scope(feeds=("default",)), True),
    (Scope(), Scope(batches=(1,)), True),
    (Scope(tenants=(7,)), Scope(feeds=("default",)), True),
    (Scope(tenants=(7, 8)), Scope(tenants=(8, 9)), True),
    (Scope(feeds=("default",)), Scope(batches=(1,)), True),
    (Scope(feeds=("default",)), Scope(batches=(1,), tenants=(7,)), True),
    (Scope(tenants=(7,)), Scope(tenants=(8,)), False),
    (Scope(feeds=("bank",)), Scope(batches=(1,)), False),
    (Scope(batches=(1,)), Scope(batches=(2,)), False),
    (Scope(tenants=(7,)), Scope(tenants=(7,)), False),
    (Scope(tenants=(7,)), Scope(), False),
    (Scope(batches=(1,)), Scope(feeds=("default",)), False),
]


def test_a_scope_is_bound_by_reports_of_scopes_that_its_records_belong_to(
    workspace: Workspace,
) -> None:
    with workspace.database.connect() as connection:
        for feed in ("default", "bank"):
            ledger.add_batch(connection, content_id=feed, feed=feed, profile="{}", corrects=None)
        runs = [replace(RUN, scope=before.text) for before, _, _ in AROUND]
        found = [
            [*of_same_records(connection, scope, [run])] != []
            for run, (_, scope, _) in zip(runs, AROUND, strict=True)
        ]
    assert found == [bound for _, _, bound in AROUND]


IDS = [str(100_000 + number) for number in range(120)]
LISTS = {
    # values of an exclusion as signed, and now; what page one and the refusal have of both
    "long": (IDS, [*IDS, "999999"], '"999999"'),
    "turned": ([*IDS, "\u202e"], [*IDS, "\u202e888888"], "888888"),
    "alike": (["1, 2"], ["1", "2"], '"1", "2"'),
}


def test_a_list_is_shown_where_it_is_other(workspace: Workspace, tmp_path: Path) -> None:
    """Nobody accepts by its hash what is cut off, or reads alike."""
    deliver(workspace, tmp_path, DEFAULT, 1)
    sign(workspace, run(workspace, FIRST, _excluding(0)))
    done = run(workspace, FIRST, _excluding(1))
    told = [f"exclude {name}: values" for name in LISTS] + [one[2] for one in LISTS.values()]
    on_page_one(done, told, LOOKED_AT)
    refused(workspace, done, *told)


def _excluding(which: int) -> Rules:
    """All of the lists as they were signed, or as they are now."""
    return read_rules_text(
        'name = "strict"\nreferences = []\n'
        + "".join(
            f'[[exclude]]\nid = "{name}"\nrecord = "user_account"\nfield = "FirstName"\n'
            f'values = {json.dumps(lists[which])}\nreason = "agreed"\n'
            for name, lists in LISTS.items()
        )
    )


@pytest.mark.long
def test_a_scope_that_nobody_signed_is_no_way_around_what_was_signed(signed: Workspace) -> None:
    asked = Asked(Scope(feeds=("default",)), SECOND, LOOSE, by="ann")
    reconcile(signed, asked)
    done = reconcile(signed, asked)
    assert rows(done) == [], "other feeds than those of another scope are no change"
    which = "reconciliation 1 as of 2026-01-29, the last one approved of everything, none of this"
    named = hash_on_page_one(done)
    on_page_one(done, [which, "rule tolerance payment PaidAmount: above"],
                ("report.html", "artifact"))  # fmt: skip
    refused(signed, done, which, named)
    approve(signed, done.run.id, by="Bo", comment="", accept_changes=named)
    # From then on it is a chain of its own; what everything is held against stays.
    after = reconcile(signed, asked)
    assert after.report.changes is not None
    assert after.report.changes.accept == ""
    refused(signed, run(signed, SECOND, LOOSE), "since reconciliation 1", "--accept-changes")


@pytest.mark.long
def test_a_report_and_a_signature_of_an_earlier_version_are_read(signed: Workspace) -> None:
    """Its totals name no hash, and its signature has that of the rules alone."""
    done = run(signed, SECOND, LOOSE)
    refused(signed, done, "--accept-changes")
    accepted = hash_on_page_one(done)
    approve(signed, done.run.id, by="Bo", comment="", accept_changes=accepted)
    tamper(
        signed, "event",
        "UPDATE event SET detail = replace(detail, 'accepted_changes', 'accepted_rules')",
    )  # fmt: skip
    on_page_one(run(signed, THIRD, LOOSE), [accepted], ("report.html", "report.txt"))


EARLIER: list[tuple[dict[str, Any], Method, list[tuple[str, str]]]] = [
    # what its totals tell; how the run at hand is made; what is other
    (
        {"cover": {"inputs": [{"batch_id": 1}]}, "currencies": {}},
        Method("", None, "2", "UTC", {}),
        [("time zone (RECON_TIME_ZONE)", "not told"), ("version of recon", "not told")],
    ),
    (
        {"cover": {"inputs": [], "version": "2", "zone": "UTC"}, "currencies": {"1": "EUR"}},
        Method("", None, "2", "UTC", {"1": "EUR"}),
        [],
    ),
    (
        {},
        Method("", None, "", "UTC", {}),
        [("names of currencies (RECON_CURRENCIES) and time zone",
          "not told by reconciliation-1/totals.json")],
    ),
]  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize(("totals", "now", "told"), EARLIER)
def test_what_an_earlier_report_does_not_tell_is_not_passed_over(
    workspace: Workspace, totals: dict[str, Any], now: Method, told: list[tuple[str, str]]
) -> None:
    _as_written(workspace, run(workspace, FIRST), json.dumps(totals))
    with workspace.database.connect() as connection:
        earlier = latest_run(connection, "everything")
        assert earlier is not None
        before = method_of(workspace, connection, replace(earlier, version=None))
    assert [(one.key, one.old) for one in setting_changes(before, now)] == told


@pytest.mark.long
def test_a_report_of_an_earlier_version_is_approved_with_what_changed_told_to_the_approver(
    signed: Workspace,
) -> None:
    """Nothing of the kind is in its totals, so the refusal lists what nobody could see."""
    done = run(signed, SECOND, LOOSE)
    totals = json.loads((done.written.folder / "totals.json").read_text())
    del totals["changes"]
    _as_written(signed, done, json.dumps(totals))
    prepare(signed, done.run.id, by="Ann", comment="")
    with pytest.raises(DecisionsMissing) as why:
        approve(signed, done.run.id, by="Bo", comment="")
    told = str(why.value)
    assert "rule tolerance payment PaidAmount: above not set -> 5" in told
    assert "does not have all of that" in told
    named = told.rsplit("--accept-changes ", 1)[1]
    approve(signed, done.run.id, by="Bo", comment="", accept_changes=named)


def _as_written(place: Workspace, done: Reconciled, totals: str) -> None:
    """The report as it would be had it been written with these totals."""
    import hashlib

    from schemas.guards.trail_rules import report_hash

    folder = done.written.folder
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "totals.json").write_text(totals)
    manifest["sha256"]["totals.json"] = hashlib.sha256(totals.encode()).hexdigest()
    whole = manifest["report_hash"] = report_hash(manifest["sha256"])
    (folder / "manifest.json").write_text(json.dumps(manifest))
    noted = (
        "UPDATE event SET detail = (detail::jsonb - 'manifest_sha256' || "
        f"jsonb_build_object('report_hash', '{whole}'))::text"
    )
    tamper(place, "event", f"{noted} WHERE id = {done.run.event_id}")
    statement = f"UPDATE reconciliation SET report_hash = '{whole}' WHERE id = {done.run.id}"
    tamper(place, "reconciliation", statement)
