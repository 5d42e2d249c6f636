"""What surrounds a report and is neither a rule nor a record: page one says when it is another."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, cast
from zoneinfo import ZoneInfo

import psycopg
import pytest

from connectors.currencies import read_currencies
from connectors.errors import EvidenceBroken, SignatureRefused
from connectors.files.profiles.profile import DEFAULT
from connectors.files.text.evidence import MISSING
from connectors.postgres.database import Database, open_database
from connectors.settings import Settings
from flows.desk.review import ReportFacts, facts_of
from flows.desk.trend import trend_point
from flows.stages.reconcile.kept_signatures import SIGNATURES, lost_signatures
from flows.stages.reconcile.method import Method, method_of, setting_changes
from flows.stages.reconcile.run import Asked, reconcile
from flows.stages.reconcile.scope import Scope
from flows.stages.reconcile.sign import approve, prepare
from flows.stages.reconcile.since_signed import changes_on_page, to_accept
from flows.stages.sequence import import_delivery
from flows.stages.upkeep.archive import remedy, verify_archive
from flows.stages.workspace import Workspace
from schemas.accounts import SELF_DECLARED
from tests.governance import runs
from tests.governance.runs import names, tamper
from tests.governance.test_three_days import (
    FIRST,
    SECOND,
    STRICT,
    THIRD,
    hash_on_page_one,
    on_page_one,
    paid,
    refused,
    run,
    sign,
)
from tests.stages.payments import line, write

LOOKED_AT = ("report.html", "report.txt", "artifact")


@pytest.fixture
def signed(workspace: Workspace, tmp_path: Path, once: Any) -> Workspace:
    """One day that two people stand for."""

    def build() -> None:
        lines = [line(number, day=number) for number in (1, 2, 3)]
        import_delivery(workspace, [write(tmp_path / "p.csv", *lines)], DEFAULT)
        sign(workspace, run(workspace, FIRST))

    return once(build)  # type: ignore[no-any-return]


@pytest.fixture
def before(signed: Workspace) -> Iterator[Workspace]:
    """The same home with the database as it was then, brought back later."""
    url = signed.settings.database_url
    assert url is not None
    name = re.search(r"/(test_\w+)\?", url)
    assert name is not None
    copy = f"{name[1]}_then"
    with psycopg.connect(url.replace(name[1], "postgres"), autocommit=True) as server:
        server.execute(f"CREATE DATABASE {copy} TEMPLATE {name[1]}")
        try:
            settings = replace(signed.settings, database_url=url.replace(name[1], copy))
            yield Workspace(settings, open_database(settings))
        finally:
            server.execute(f"DROP DATABASE {copy} WITH (FORCE)")


@pytest.mark.long
def test_a_database_from_before_a_signature_takes_nothing_from_what_was_signed(
    signed: Workspace, before: Workspace
) -> None:
    second = run(signed, SECOND)
    sign(signed, second)
    folder = second.written.folder
    kept = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert SIGNATURES in kept

    paid(before, 2, "1")
    again = run(before, SECOND)
    assert again.written.folder != folder
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == kept
    on_page_one(
        again,
        [f"The report in {folder.name}, as of 2026-01-30, was {role} by {by} on"
         for role, by in (("prepared", "Ann"), ("approved", "Bo"))],
    )  # fmt: skip
    # Where nothing was lost nothing is said.
    third = run(signed, THIRD)
    assert third.report.changes is not None
    assert third.report.changes.notes == ()


@pytest.mark.long
def test_nothing_follows_a_signature_that_somebody_removed(signed: Workspace) -> None:
    tamper(signed, "signature", "DELETE FROM signature WHERE role = 'approved'")
    with pytest.raises(EvidenceBroken, match=r"the signature that event \d+ \(.*\) tells of was"):
        run(signed, SECOND)


NESTED = "[" * 100_000
"""Deeper than Python reads JSON, in which it raises no ValueError."""
SAID_OTHERWISE: dict[str, Callable[[str], str]] = {
    "by": lambda text: text.replace("Ann", "Eve"),
    "role": lambda text: text.replace("prepared", "approved"),
    "at": lambda text: re.sub(r'("at": "\d{3})\d', r"\g<1>0", text, count=1),
    "report_hash": lambda text: re.sub(r'("report_hash": ")....', r"\1....", text, count=1),
    "account": lambda text: text.replace(SELF_DECLARED, "ann", 1),
    "as_of": lambda text: text.replace("2026-01-29", "2026-01-28", 1),
    "a signature less": lambda text: json.dumps(
        (said := json.loads(text)) | {"signatures": said["signatures"][:1]}
    ),
    "no JSON": lambda text: text[:-9],
    "a list": lambda text: f"[{text}]",
    "lists without end": lambda _: NESTED,
}


OF_AN_EARLIER_VERSION: dict[str, Callable[[str], str]] = {
    "no accounts": lambda text: re.sub(r',\n +"account": "[^"]*"', "", text),
    "the server's zone": lambda text: re.sub(
        r'(?<="at": ")[^"]+',
        lambda at: datetime.fromisoformat(at[0]).astimezone(ZoneInfo("Asia/Tokyo")).isoformat(),
        text,
    ),
}


def test_signatures_beside_a_report_are_held_against_the_ledger(signed: Workspace) -> None:
    path = signed.settings.reports / "reconciliation-1" / SIGNATURES
    written = path.read_bytes()
    assert not verify_archive(signed).mismatches
    for what, earlier in OF_AN_EARLIER_VERSION.items():
        text = earlier(written.decode())
        assert text.encode() != written, what
        path.write_text(text)
        assert not verify_archive(signed).mismatches, what
    for what, bent in SAID_OTHERWISE.items():
        text = bent(written.decode())
        assert text.encode() != written, what
        path.write_text(text)
        assert [one.path for one in verify_archive(signed).mismatches] == [
            f"reports/reconciliation-1/{SIGNATURES}"
        ], what
    path.write_text(NESTED)
    with signed.database.connect() as connection:
        (lost,) = lost_signatures(signed, connection, Scope().text)
    assert lost == f"reconciliation-1/{SIGNATURES} cannot be read."
    path.unlink()
    verified = verify_archive(signed)
    assert [one.found for one in verified.mismatches] == [MISSING]
    assert "once more" in remedy(verified)

    with pytest.raises(SignatureRefused, match="a signature stays"):
        prepare(signed, 1, by="Ann", comment="")
    assert path.read_bytes() == written
    # The other way round: what the file says is true, and the ledger has lost it.
    tamper(signed, "signature", "DELETE FROM signature WHERE role = 'approved'")
    (found,) = verify_archive(signed).mismatches
    assert "it has prepared by Ann" in found.found


NAMES = [
    ("1,EUR\n", "1,USD\n", [("name of currency 1", "EUR", "USD")]),
    ("1,EUR\n2,USD\n", "1,USD\n2,EUR\n",
     [("name of currency 1", "EUR", "USD"), ("name of currency 2", "USD", "EUR")]),
    ("1,EUR\n2,USD\n", "2,USD\n", [("name of currency 1", "EUR", "")]),
    ("1,EUR\n", "1,EUR\n2,USD\n", [("name of currency 2", "", "USD")]),
    (None, "1,EUR\n", [("names of currencies (RECON_CURRENCIES)", "", "1 currency")]),
    ("1,EUR\n2,USD\n", None, [("names of currencies (RECON_CURRENCIES)", "2 currencies", "")]),
    ("1,EUR\n", "1,EUR\n", []),
    ("".join(f"{n},A{n}\n" for n in range(1, 13)), "".join(f"{n},B{n}\n" for n in range(1, 13)),
     [(f"name of currency {n}", f"A{n}", f"B{n}") for n in range(1, 13)]),
]  # fmt: skip


@pytest.mark.parametrize(("then", "now", "told"), NAMES)
def test_what_is_said_of_names(
    then: str | None, now: str | None, told: list[tuple[str, str, str]], tmp_path: Path
) -> None:
    def home(text: str | None) -> Workspace:
        place = Workspace(Settings(tmp_path), cast("Database", None))
        return names(place, tmp_path / "currencies.csv", text)

    codes = read_currencies(home(then).settings.currencies)
    after = Method("", None, currencies=read_currencies(home(now).settings.currencies))
    found = setting_changes(Method("", None, currencies=codes), after)
    assert [(one.key, one.old, one.new) for one in found] == told


@pytest.mark.long
def test_every_name_that_is_other_is_on_page_one_and_in_the_hash_of_the_changes(
    signed: Workspace, tmp_path: Path
) -> None:
    path, codes = tmp_path / "currencies.csv", [f"{n},A{n}\n" for n in range(1, 13)]
    second = run(names(signed, path, "".join(codes)), SECOND)
    sign(signed, second, accept_changes=hash_on_page_one(second))
    other = [code.replace("A", "B") for code in codes]
    hashes = set()
    for last in ("12,B12\n", "12,USD\n"):
        done = run(names(signed, path, "".join([*other[:-1], last])), THIRD)
        on_page_one(done, ["name of currency 12", "A12", last[3:].strip()], LOOKED_AT)
        hashes.add(hash_on_page_one(done))
    assert len(hashes) == 2


@pytest.mark.long
def test_money_under_another_name(signed: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "currencies.csv"
    second = run(names(signed, path, "1,EUR\n"), SECOND)
    sign(signed, second, accept_changes=hash_on_page_one(second))
    auckland = replace(signed.settings, time_zone=ZoneInfo("Pacific/Auckland"))
    done = run(names(replace(signed, settings=auckland), path, "1,USD\n"), THIRD)
    on_page_one(
        done,
        ["name of currency 1", "EUR", "USD", "time zone (RECON_TIME_ZONE)", "Pacific/Auckland"],
        LOOKED_AT,
    )
    # Who approves has these settings or others: what counts is what the report was made by.
    refused(signed, done, "name of currency 1 EUR -> USD", hash_on_page_one(done))


@pytest.mark.long
def test_totals_that_are_gone_leave_nothing_unsaid(workspace: Workspace, tmp_path: Path) -> None:
    """Of a report that nobody signed, which nobody holds against its hash."""
    import_delivery(workspace, [write(tmp_path / "p.csv", line(1, day=1))], DEFAULT)
    run(workspace, FIRST)
    (workspace.settings.reports / "reconciliation-1" / "totals.json").unlink()
    done = run(workspace, SECOND)
    on_page_one(done, ["reconciliation-1/totals.json"], LOOKED_AT)


def bend(place: Workspace, old: str, new: str) -> None:
    """Change what the totals of the first run say."""
    path = place.settings.reports / "reconciliation-1" / "totals.json"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


@pytest.mark.long
def test_totals_that_were_changed_hide_nothing(signed: Workspace, tmp_path: Path) -> None:
    """Of a report of another scope, whose files no run hashes for the records that were signed."""
    bend(signed, '"zone": "UTC"', '"zone": "Pacific/Auckland"')
    auckland = replace(signed.settings, time_zone=ZoneInfo("Pacific/Auckland"))
    asked = Asked(Scope(feeds=("default",)), SECOND, STRICT, by="ann")
    done = reconcile(replace(signed, settings=auckland), asked)
    said = "not told by reconciliation-1/totals.json, which is not as it was written"
    on_page_one(done, [said], LOOKED_AT)
    refused(signed, done, "names of currencies (RECON_CURRENCIES) and time zone not told")


def test_no_figure_is_read_from_totals_that_were_changed(workspace: Workspace) -> None:
    run = runs.reconcile(workspace, runs.found("1"))
    with workspace.database.connect() as connection:
        told = method_of(workspace, connection, run)
        assert (told.zone, told.source) == ("UTC", "reconciliation-1/totals.json")
        assert trend_point(workspace, run) is not None
        assert facts_of(workspace, run).files == ("report.html",)
        bend(workspace, '"zone": "UTC"', '"zone": "GMT"')
        told = method_of(workspace, connection, run)
    assert (told.zone, told.currencies, told.batches) == ("", None, None)
    assert trend_point(workspace, run) is None
    assert facts_of(workspace, run) == ReportFacts()
    assert changes_on_page(workspace, run).since == ""


TOLD_OTHERWISE = [
    "{", "[]", '{"changes": []}', '{"changes": {"rules": [{"key": "a"}]}}',
    '{"changes": {"settings": 1}}', '{"changes": {"aside": [[]]}}', NESTED,
]  # fmt: skip


@pytest.mark.long
def test_totals_that_are_as_written_and_tell_nothing_keep_nobody_from_signing(
    workspace: Workspace,
) -> None:
    """What the approval accepts is made from the ledger, and no word of theirs is in it."""
    for text in TOLD_OTHERWISE:
        done = runs.reconcile(workspace, runs.found(), totals=text)
        prepare(workspace, done.id, by="ann", comment="")
        assert changes_on_page(workspace, done).since == "", text
        with workspace.database.connect() as connection:
            named = to_accept(workspace, connection, done).accept or None
        approve(workspace, done.id, by="bo", comment="", accept_changes=named)
    (workspace.settings.reports / done.folder / "manifest.json").write_text(NESTED)
    with pytest.raises(SignatureRefused, match=r"no manifest\.json that can be read"):
        prepare(workspace, done.id, by="ann", comment="")


@pytest.mark.long(but=("manifest.json",))
@pytest.mark.parametrize("name", ["report.txt", "manifest.json"])
def test_a_signed_report_that_is_gone_is_not_made_good_by_the_command_that_needs_it(
    signed: Workspace, name: str
) -> None:
    path = signed.settings.reports / "reconciliation-1" / name
    kept = path.read_bytes()
    path.unlink()
    with pytest.raises(SignatureRefused, match="from a backup") as why:
        run(signed, SECOND)
    assert "reconcile again" not in str(why.value)
    path.write_bytes(kept)
    assert run(signed, SECOND).report.reconciles
