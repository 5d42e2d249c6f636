"""Which listing of the service counts: the one answered last, where it is later than the push."""

import json
import socket
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from connectors.errors import BatchHeldElsewhere, ServiceUnusable
from connectors.files.profiles.profile import DEFAULT
from connectors.postgres.batches.lease import hold_batch
from connectors.postgres.runs.listings import PULLED, SERVICE
from connectors.postgres.trail import add_event
from connectors.sandbox import Sandbox
from connectors.sandbox.faults import Fault, FaultKind, Faults
from connectors.settings import ServiceSettings
from flows.__main__ import main
from flows.stages.pull import LISTINGS, PROFILE, listing_lines, pull, pull_compared, wanted
from flows.stages.reconcile.run import Asked, Reconciled, reconcile
from flows.stages.reconcile.scope import Scope
from flows.stages.sequence import import_delivery
from flows.stages.undo import undo_batch
from flows.stages.workspace import Workspace
from flows.steps.rules.rules import Rules
from tests.push.conftest import PUSHED, USER, sandbox_at, towards
from tests.service.faulty_server import FaultyServer, Reply

OLDER = (
    "the service's listing of {} is older than what was sent: recon pull {}, "
    "or a run of pull-listings/pull; then reconcile again"
)
SPOILED = OLDER.replace(
    "is older than what was sent", "has rows that could not be read, so it counts for nothing"
)
NEVER = OLDER.replace("is older than what was sent", "was not pulled")
BATCH_ROWS = ("insert batch data", "insert_batch_data")
AVATARS = ("avatar", "avatars")


@dataclass
class Home:
    """A workspace with a service beside it."""

    place: Workspace
    sandbox: Sandbox
    folder: Path

    def deliver(self, name: str, text: str, *, push: bool = True, tenant: int | None = None) -> int:
        path = self.folder / name / f"{name.rstrip('0123456789-')}.csv"
        path.parent.mkdir()
        path.write_text(text)
        profile = replace(PUSHED if push else DEFAULT, tenant=tenant)
        return import_delivery(self.place, [str(path)], profile).batch.id

    def lists(self, record: str, text: str) -> None:
        """What the service lists from now on, and nothing else."""
        path = self.folder / f"listed-{record}.csv"
        path.write_text(text)
        self.sandbox.clear()
        self.sandbox.load(record, path)

    def pulled(self) -> Reconciled:
        """Pull first, then reconcile everything, as the command and the flow do."""
        day, unread = datetime.now(UTC).date(), pull_compared(self.place, Scope()).unread
        return reconcile(self.place, Asked(Scope(), day, Rules(), unread=unread))

    def run(self, *batches: int, feeds: tuple[str, ...] = ()) -> Reconciled:
        day = datetime.now(UTC).date()
        return reconcile(self.place, Asked(Scope(batches, feeds), day, Rules()))


@pytest.fixture
def home(workspace: Workspace, database_url: str, tmp_path: Path) -> Iterator[Home]:
    with sandbox_at(database_url) as (sandbox, url):
        yield Home(towards(workspace, url), sandbox, tmp_path)


@contextmanager
def closed_port() -> Iterator[tuple[None, str]]:
    """An address where nobody listens; it is kept, so that nobody else can."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        yield None, f"http://127.0.0.1:{one.getsockname()[1]}"


def batch_rows(*numbers: int, batch: int = 5, merged: str = "false") -> str:
    """Insert-batch data of one BatchId, each with a message tone inside."""
    lines = ["Data,HasError,Merged,BatchId,Jsondata,ErrorData"]
    for number in numbers:
        inside = f'""TenantsId"":7,""AvatarsId"":{number},""Name"":""n{number}""'
        lines.append(f'"{{{inside}}}",false,{merged},{batch},,')
    return "\r\n".join(lines) + "\r\n"


def avatars(*names: str) -> str:
    return "\r\n".join(["Gender,Name,AgeGroup", *(f"f,{name},adult" for name in names)]) + "\r\n"


def because(done: Reconciled) -> list[str]:
    return [one for one in done.report.cover.because if one.startswith("the service")]


def codes(done: Reconciled) -> Counter[str]:
    return Counter(f"{one.code} {one.side}".strip() for one in done.report.breaks)


@pytest.mark.long
def test_a_listing_from_before_the_push_is_one_sentence_and_no_break(home: Home) -> None:
    pull(home.place)
    home.deliver("insert_batch_data", batch_rows(1, 2, 3))
    home.deliver("avatars", avatars("ann", "bob"))
    done = home.run()
    assert because(done) == [OLDER.format(*AVATARS), OLDER.format(*BATCH_ROWS)]
    assert done.report.cover.verdict == "INCOMPLETE"
    assert codes(done) == {}
    # The very same listing, kept once, is evidence when the service gives it later.
    first = pull(home.place).ended
    assert not first.new
    done = home.run()
    assert because(done) == []
    assert codes(done) == {"BATCH_MISSING": 3, "MISSING_IN_TARGET G": 2}


@pytest.mark.long
def test_nothing_pulled_is_one_sentence_where_the_listing_is_the_only_other_side(
    home: Home,
) -> None:
    home.deliver("insert_batch_data", batch_rows(1, 2, 3))
    home.deliver("avatars", avatars("ann"))
    done = home.run()
    assert because(done) == [NEVER.format(*BATCH_ROWS)]
    assert codes(done) == {}


@pytest.mark.long
def test_what_is_not_for_the_service_needs_no_listing_of_it(home: Home) -> None:
    home.deliver("insert_batch_data", batch_rows(1), push=False)
    assert wanted(home.place, Scope()) == []
    home.deliver("insert_batch_data2", batch_rows(2))
    assert wanted(home.place, Scope()) == ["insert_batch_data"]


@pytest.mark.long
def test_breaks_of_a_listing_are_set_aside_until_it_is_pulled_again(home: Home) -> None:
    home.deliver("insert_batch_data", batch_rows(1, 2))
    pull(home.place)
    assert codes(home.run()) == {"BATCH_MISSING": 2}
    home.deliver("insert_batch_data2", batch_rows(3, batch=6))
    done = home.run()
    assert {one.state for one in done.report.breaks} == {"NOT_LOOKED_AT"}
    assert because(done) == [OLDER.format(*BATCH_ROWS)]


@pytest.mark.long
def test_what_was_delivered_to_the_database_alone_is_held_against_an_older_listing(
    home: Home,
) -> None:
    home.lists("avatar", avatars("ann"))
    pull(home.place)
    home.deliver("avatars", avatars("ann", "bob"), push=False)
    done = home.run()
    assert because(done) == []
    assert codes(done) == {"MISSING_IN_TARGET G": 1}


@pytest.mark.long
def test_the_listing_answered_last_counts_whatever_batch_has_it(home: Home) -> None:
    home.deliver("insert_batch_data", batch_rows(1, 2))
    for listed in ((1, 2), (1,), (1, 2)):
        home.lists("insert_batch_data", batch_rows(*listed, merged="true"))
        pull(home.place, ["insert_batch_data"])
        missing = 2 - len(listed)
        assert codes(home.run())["BATCH_MISSING"] == missing, listed


def told_earlier(home: Home, batch: int, url: str) -> None:
    """As an earlier version told of a pull: of the batch alone, with the address as it was set."""
    said = {SERVICE: url, "listings": {"insert_batch_data": {"rows": 0}}}
    with home.place.database.connect() as connection:
        add_event(connection, PULLED, batch_id=batch, detail=said)


@pytest.mark.long
def test_what_another_service_lists_says_nothing_of_the_one_that_is_set(home: Home) -> None:
    home.deliver("insert_batch_data", batch_rows(1, 2))
    home.lists("insert_batch_data", batch_rows(1, 2, merged="true"))
    with FaultyServer(lambda _: Reply(body="[]")) as other:
        elsewhere = towards(home.place, other.url)
        content = "".join(listing_lines(LISTINGS["insert_batch_data"], []))
        kept = written(home.folder / "insert_batch_data.csv", content)
        batch = import_delivery(home.place, [str(kept)], PROFILE).batch.id
        assert codes(home.run()) == {"BATCH_MISSING": 2}, "of no service that is known"
        told_earlier(home, batch, other.url)
        assert because(home.run()) == [NEVER.format(*BATCH_ROWS)]
        assert pull(elsewhere, ["insert_batch_data"]).ended.batch.id == batch
        assert because(home.run()) == [NEVER.format(*BATCH_ROWS)]
        told_earlier(home, batch, str(home.place.settings.service.url).replace("http", "HTTP"))
        assert codes(home.run()) == {"BATCH_MISSING": 2}
        pull(home.place, ["insert_batch_data"])
        pull(elsewhere, ["insert_batch_data"])
    assert (because(done := home.run()), codes(done)) == ([], {})
    assert codes(replace(home, place=elsewhere).run()) == {"BATCH_MISSING": 2}
    none = replace(elsewhere.settings, service=ServiceSettings())
    assert codes(replace(home, place=replace(elsewhere, settings=none)).run()) == {
        "BATCH_MISSING": 2
    }, "no service is set, so that the newest of any counts"


@pytest.mark.long
def test_a_listing_that_another_run_takes_in_costs_no_reconciliation(home: Home) -> None:
    """It is waited for; here no longer than a moment."""
    home.deliver("insert_batch_data", batch_rows(1))
    home.place = towards(home.place, home.place.settings.service.url or "", turn_seconds=0)
    batch = pull(home.place, ["insert_batch_data"]).ended.batch.id
    with home.place.database.connect() as connection:
        connection.execute("UPDATE batch SET state = 'staged' WHERE id = %s", [batch])
        with hold_batch(connection, batch):
            with pytest.raises(BatchHeldElsewhere):
                pull(home.place, ["insert_batch_data"])
            (told,) = because(done := home.pulled())
    assert f"could not be pulled: Batch {batch} is being worked on by" in told
    assert (done.report.cover.verdict, done.exit_code) == ("INCOMPLETE", 1)
    assert codes(home.pulled()) == {"BATCH_MISSING": 1}


@pytest.mark.long
@pytest.mark.parametrize("feeds", [(), ("default",)])
def test_a_scope_of_batches_counts_a_listing_pulled_outside_of_it(
    home: Home, feeds: tuple[str, ...]
) -> None:
    pull(home.place)
    one = home.deliver("insert_batch_data", batch_rows(1, 2))
    two = home.deliver("insert_batch_data2", batch_rows(3, 4, 5, batch=6))
    three = home.deliver("avatars", avatars("ann"))
    four = home.deliver("avatars2", avatars("bob", "cid"))
    scope = {"feeds": feeds} if feeds else {}
    batches: Callable[..., Any] = lambda *numbers: () if feeds else numbers  # noqa: E731
    for numbers in ((one, three), (two, four)):
        assert len(because(home.run(*batches(*numbers), **scope))) == 2
    home.lists(
        "insert_batch_data",
        batch_rows(1, merged="true")
        + batch_rows(3, 4, 5, 9, batch=6, merged="true").split("\r\n", 1)[1],
    )
    pull(home.place, ["insert_batch_data"])
    home.lists("avatar", avatars("ann", "bob", "dora"))
    pull(home.place, ["avatars"])
    if feeds:
        # All that is there is of the feed, and what is nobody's is of no feed.
        told = {"BATCH_MISSING": 1, "BATCH_EXTRA": 1, "MISSING_IN_TARGET G": 1}
        assert codes(home.run(feeds=feeds)) == told
        return
    assert codes(home.run(one, three)) == {"BATCH_MISSING": 1}
    assert codes(home.run(two, four)) == {"BATCH_EXTRA": 1, "MISSING_IN_TARGET G": 1}
    assert because(home.run(one, three)) == []


@pytest.mark.long
def test_a_scope_of_batches_is_held_against_its_own_records_in_ranges_too(home: Home) -> None:
    """Where sides are large, what is listed is looked at in ranges as they are."""
    top = "PaymentPlansId,PlannedDate,PlannedAmount,PlannedCurrenciesId,PaymentsId,StatusCodesId"

    def details(*plans: int) -> str:
        return "\r\n".join([top, *(f"{n},2026-01-02T00:00:00,5,978,,1" for n in plans)]) + "\r\n"

    one = home.deliver("payment_plan_detail", details(*range(20)), push=False)
    two = home.deliver("payment_plan_detail2", details(*range(10, 40)), push=False)
    home.lists("payment_plan_detail", details(*range(1, 60)))
    pull(home.place, ["payment_plan_details"])
    limits = home.place.settings.limits
    for at_once in (limits.reconcile_bytes, 64):
        set_to = replace(limits, reconcile_bytes=at_once)
        home.place = replace(home.place, settings=replace(home.place.settings, limits=set_to))
        found = [codes(home.run(batch))["MISSING_IN_EXTRACT G"] for batch in (one, two)]
        assert found == [0, 0]


@pytest.mark.long
def test_a_scope_of_tenants_is_held_against_what_its_batches_brought_of_kinds_without_a_tenant(
    home: Home,
) -> None:
    top = "PaymentPlansId,PlannedDate,PlannedAmount,PlannedCurrenciesId,PaymentsId,StatusCodesId"

    def details(*plans: int) -> str:
        return "\r\n".join([top, *(f"{n},2026-01-02T00:00:00,5,978,,1" for n in plans)]) + "\r\n"

    home.deliver("payment_plan_detail1", details(1, 2), push=False, tenant=7)
    home.deliver("payment_plan_detail2", details(3, 4), push=False, tenant=8)
    home.deliver("payment_plan_detail3", details(5, 6), push=False)
    home.deliver("insert_batch_data1", batch_rows(1, 2), tenant=7)
    home.deliver("insert_batch_data2", batch_rows(3, 4))
    home.lists("insert_batch_data", batch_rows(1, 3, 9, merged="true"))
    home.sandbox.load("payment_plan_detail", written(home.folder / "plans.csv", details(1, 3, 5)))
    pull(home.place, ["insert_batch_data"])
    pull(home.place, ["payment_plan_details"])
    day = datetime.now(UTC).date()
    for tenant, batches in ((7, (1, 4)), (8, (2,))):
        done = reconcile(home.place, Asked(Scope(tenants=(tenant,)), day, Rules()))
        assert codes(done) == codes(home.run(*batches)), "as a scope of these batches"
        assert codes(done)
    nobodys = reconcile(home.place, Asked(Scope(tenants=(9,)), day, Rules()))
    assert codes(nobodys) == {}


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_what_is_listed_of_a_batch_that_was_undone_is_told_by_the_run_of_everything(
    home: Home,
) -> None:
    """In its own run nothing of it is compared."""
    top = "PaymentPlansId,PlannedDate,PlannedAmount,PlannedCurrenciesId,PaymentsId,StatusCodesId"
    first, other = (f"{number},2026-01-02T00:00:00,5,978,,1\r\n" for number in (1, 2))
    one = home.deliver("payment_plan_detail", f"{top}\r\n{first}", push=False)
    home.deliver("payment_plan_detail2", f"{top}\r\n{other}", push=False)
    two = home.deliver("insert_batch_data", batch_rows(1), push=False)
    home.deliver("insert_batch_data2", batch_rows(2, batch=6), push=False)
    home.lists("insert_batch_data", batch_rows(1))
    plans = written(home.folder / "plans.csv", f"{top}\r\n{first}{other}")
    home.sandbox.load("payment_plan_detail", plans)
    pull(home.place)
    for batch in (one, two):
        undo_batch(home.place, batch, by=None, reason="delivered too early")
        assert codes(home.run(batch)) == {}
    told = {code: of for code, of in codes(home.run()).items() if not code.startswith("PLAN")}
    assert told == {
        "MISSING_IN_EXTRACT G": 1,
        "BATCH_EXTRA": 1,
        "BATCH_NOT_MERGED": 1,
        "BATCH_MISSING": 1,
    }


@pytest.mark.long
def test_rows_of_a_shared_batch_id_belong_to_who_sent_them(home: Home) -> None:
    one = home.deliver("insert_batch_data", batch_rows(1, 2))
    two = home.deliver("insert_batch_data2", batch_rows(3, 4))
    home.lists("insert_batch_data", batch_rows(1, 3, 4, 9, merged="true"))
    pull(home.place, ["insert_batch_data"])
    assert codes(home.run(one)) == {"BATCH_MISSING": 1}
    assert codes(home.run(two)) == {}
    assert codes(home.run()) == {"BATCH_MISSING": 1, "BATCH_EXTRA": 1}


@pytest.mark.long(but=("csv",))
@pytest.mark.parametrize("form", ["csv", "json"])
def test_times_are_those_of_the_server_s_clock(
    workspace: Workspace, database_url: str, tmp_path: Path, form: str
) -> None:
    """A server shows a wall clock in its own zone, and of a midnight the day alone."""
    top = "PaymentPlansId,PlannedDate,PlannedAmount,PlannedCurrenciesId,PaymentsId,StatusCodesId"
    days = (
        "2026-01-02T03:04:05",
        "2026-01-02T00:00:00",
        "2026-01-02T00:00:00+01:00",
        "2026-07-01T22:00:00Z",
        "2026-01-02T03:04:05Z",
        "2026-01-02T03:04:05-05:00",
    )
    details = [f"{number},{day},5,978,,1" for number, day in enumerate(days)]
    zone = "Europe/Berlin"
    with sandbox_at(database_url, zone=zone) as (sandbox, url):
        home = Home(towards(workspace, url, form, zone=zone), sandbox, tmp_path)
        text = "\r\n".join([top, *details]) + "\r\n"
        batch = home.deliver("payment_plan_detail", text, push=False)
        home.lists("payment_plan_detail", text)
        pull(home.place, ["payment_plan_details"])
        found = codes(home.run()) + codes(home.run(batch))
        assert [code for code in found if code.endswith(" G")] == []


@pytest.mark.long
def test_a_pull_that_died_before_its_end_is_no_listing(home: Home, rows: Any) -> None:
    home.deliver("insert_batch_data", batch_rows(1))
    batch = pull(home.place, ["insert_batch_data"]).ended.batch.id
    with home.place.database.connect() as connection:
        connection.execute("UPDATE batch SET state = 'staged' WHERE id = %s", [batch])
    assert because(home.run()) == [NEVER.format(*BATCH_ROWS)]


@pytest.mark.long
def test_a_listing_of_which_one_row_cannot_be_read_counts_for_nothing(home: Home) -> None:
    """What it lacks is not missing at the service; an earlier version has kept such listings."""
    home.deliver("insert_batch_data", batch_rows(1, 2))
    home.deliver("avatars", avatars("ann"), push=False)
    rows = [{"Data": data, "BatchId": 5} for data in ("a", "x" * 300)]
    listed: dict[str, Any] = {"/insert_batch_data": rows, "/avatars": []}
    names = ["avatars", "insert_batch_data"]
    with FaultyServer(lambda seen: Reply(body=json.dumps(listed[seen.path]))) as server:
        place = towards(home.place, server.url)
        (home.folder / "kept").mkdir()
        for name in names:
            content = "".join(listing_lines(LISTINGS[name], listed[f"/{name}"]))
            path = written(home.folder / "kept" / f"{name}.csv", content)
        limits = replace(place.settings.limits, field_bytes=100)
        narrow = replace(place, settings=replace(place.settings, limits=limits))
        kept = import_delivery(narrow, [str(path.parent)], PROFILE).batch
        assert kept.state == "complete_with_errors"
        why = rf"row 2 of .* field .*batch {kept.id}, .*then recon pull insert_batch_data"
        with pytest.raises(ServiceUnusable, match=why):
            pull(place, names)
        done = replace(home, place=place).run()
        assert codes(done) == {"MISSING_IN_TARGET G": 1}, "of avatars, which came whole"
        assert because(done) == [SPOILED.format(*BATCH_ROWS)]
        assert done.report.cover.verdict == "INCOMPLETE"
        done = replace(home, place=place).pulled()
        assert codes(done) == {"MISSING_IN_TARGET G": 1}
        (told,) = because(done)
        assert "could not be pulled: ListInsertBatchData" in told
        undo_batch(place, kept.id, by=None, reason="read anew")
        assert because(replace(home, place=place).pulled()) == []


def test_what_the_service_lists_may_be_larger_than_what_may_be_delivered(home: Home) -> None:
    limits = home.place.settings.limits
    limits = replace(limits, columns=3, field_bytes=100, record_bytes=200, file_bytes=300)
    place = replace(home.place, settings=replace(home.place.settings, limits=limits))
    listed = [{"Data": "a", "BatchId": 5, "Jsondata": json.dumps({"a": "x" * 300})}]
    with FaultyServer(lambda _: Reply(body=json.dumps(listed))) as server:
        ended = pull(towards(place, server.url), ["insert_batch_data"]).ended
    assert ended.batch.state == "complete"


@pytest.mark.long
def test_pulling_first_reads_what_the_scope_is_held_against(home: Home) -> None:
    one = home.deliver("insert_batch_data", batch_rows(1))
    two = home.deliver("avatars", avatars("ann"))
    assert wanted(home.place, Scope()) == ["insert_batch_data"]
    assert wanted(home.place, Scope((two,))) == []
    assert pull_compared(home.place, Scope((two,))).pulled is None
    assert codes(home.pulled()) == {"BATCH_MISSING": 1}
    pull(home.place, ["avatars"])
    assert wanted(home.place, Scope()) == ["avatars", "insert_batch_data"]
    assert wanted(home.place, Scope((one,))) == ["insert_batch_data"]
    assert wanted(home.place, Scope((two,))) == ["avatars"]


CUT = Faults(faults=(Fault(FaultKind.TRUNCATED_BODY, every=1),))
REFUSED = Faults(faults=(Fault(FaultKind.STATUS, every=2, status=403),))


@pytest.mark.long(but=("cut",))
@pytest.mark.parametrize(
    ("faults", "unread", "why"),
    [
        (None, ["avatar", "insert_batch_data"], "cannot be read"),
        (CUT, ["avatar", "insert_batch_data"], "cannot be read"),
        (REFUSED, ["insert_batch_data"], "the service answered 403"),
    ],
    ids=["down", "cut", "one-refused"],
)
def test_a_listing_that_cannot_be_pulled_costs_itself_and_no_other(
    home: Home, database_url: str, rows: Any, faults: Faults | None, unread: list[str], why: str
) -> None:
    pull(home.place, ["avatars"])
    home.deliver("insert_batch_data", batch_rows(1, 2))
    home.deliver("avatars", avatars("ann"))
    batches = rows("SELECT count(*) FROM batch")[0][0]
    with closed_port() if faults is None else sandbox_at(database_url, faults=faults) as (_, url):
        there = replace(home, place=towards(home.place, url, attempts=1))
        done = there.pulled()
    told = because(done)
    assert len(told) == len(unread), told
    for record, sentence in zip(unread, told, strict=True):
        start = f"the service's listing of {record.replace('_', ' ')} could not be pulled: "
        assert sentence.startswith(start)
        assert why in sentence
        assert sentence.endswith("; mend that, then reconcile again")
    assert done.report.cover.verdict == "INCOMPLETE"
    assert done.exit_code == 1
    # What was read is compared; of what was not, nothing is said to be missing.
    assert codes(done) == ({"MISSING_IN_TARGET G": 1} if faults is REFUSED else {})
    # The empty listing of avatars is kept already.
    assert rows("SELECT count(*) FROM batch") == [(batches,)]


@pytest.mark.long
def test_the_command_pulls_first_and_says_what_it_could_not(
    home: Home, database_url: str, capsys: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    home.deliver("insert_batch_data", batch_rows(1, 2))
    settings = home.place.settings
    url = settings.service.url or ""
    for name, value in {
        "HOME": str(settings.home),
        "DATABASE_URL": database_url,
        "SERVICE_URL": url,
        "SERVICE_USER": USER.name,
        "SERVICE_PASSWORD": USER.password,
        "SERVICE_ATTEMPTS": "1",
    }.items():
        monkeypatch.setenv(f"RECON_{name}", value)

    def run(*options: str) -> tuple[int, str]:
        with pytest.raises(SystemExit) as end:
            main(["reconcile", *options])
        said = capsys.readouterr()
        return int(end.value.code or 0), " ".join((said.out + said.err).split())

    code, text = run()
    assert code == 1
    assert NEVER.format(*BATCH_ROWS) in text
    code, text = run("--pull", "--batch", "1")
    assert code == 1
    assert "Incomplete:" not in text
    assert "BATCH_MISSING" in text
    with closed_port() as (_, nobody):
        monkeypatch.setenv("RECON_SERVICE_URL", nobody)
        code, text = run("--pull")
        assert code == 1
        assert "listing of insert batch data could not be pulled" in text
    monkeypatch.delenv("RECON_SERVICE_URL")
    code, text = run("--pull")
    assert code == 2
    assert "RECON_SERVICE_URL" in text
