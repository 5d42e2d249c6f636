"""Every link and button that a page shows works: no page offers what it then refuses."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from connectors.files.profiles.profile import DEFAULT
from connectors.postgres.jobs import order_job
from connectors.postgres.push.sends import SendDecision
from connectors.postgres.runs.acceptance_rules import RuleTerms
from connectors.postgres.runs.breaks import Decision
from flows.stages.chosen_sends import ChosenSends
from flows.stages.reconcile.acceptance_rules import approve_rule, propose_rule, withdraw_rule
from flows.stages.reconcile.breaks import Chosen, decide_breaks
from flows.stages.reconcile.sign import approve, prepare
from flows.stages.resolve import resolve
from flows.stages.sequence import discard_batch, import_delivery
from flows.stages.undo import undo_batch
from flows.stages.workspace import Workspace
from schemas.accounts import AccountRole
from schemas.jobs import JobKind
from schemas.life import Choice
from tests import recon
from tests.accounts.people import ADA, ANNA, BO, CLEO, OTTO, TESSA, Account, add
from tests.conftest import Once
from tests.desk.browser import Browser, Start, desk_of, done_at_once
from tests.desk.pressing import Rows, press_all, presses
from tests.desk.reading import page_of
from tests.desk.test_batches import TIGHT, bring
from tests.governance.runs import DAY, found, ids, reconcile
from tests.push.conftest import deliver, towards
from tests.push.deliveries import by_row
from tests.service.faulty_server import DROPPED, FaultyServer, Reply, status
from tests.stages.payments import line, write

UNTIL = date(2027, 12, 31)
TERMS = RuleTerms("", "AMOUNT", 1, Decimal(1), Decimal(25), UNTIL, "bank charges")
EVERY = tuple(role for role in AccountRole if role is not AccountRole.ADMINISTRATOR)
EVE = Account("eve", "Eve Ali", EVERY)
OTIS = Account("otis", "Otis Ray", EVERY, tenants=(7,))
WHO = (ANNA, BO, CLEO, OTTO, ADA, TESSA, EVE, OTIS)
REFUSED = status(400, error_code="NotNull")
OF_SEVEN = replace(DEFAULT, tenant=7)
STATED = ("undo", "cannot be undone", "ordered by nobody who was logged in")
"""Work that may be refused: whether a batch can be undone is looked up only on request, and what
was ordered before there were accounts is ordered again on its own page."""


EVERYBODY = pytest.mark.parametrize(
    "who",
    [pytest.param(who, marks=pytest.mark.long) for who in (*(one.name for one in WHO), None)],
)


def faults(batches: int) -> dict[int, Reply]:
    """The first answers to eight rows of each of these batches."""
    rows = {2: DROPPED, 3: REFUSED, 5: DROPPED, 7: DROPPED}
    return {10 * batch + row: reply for batch in range(batches) for row, reply in rows.items()}


def batches(place: Workspace, folder: Path, url: str) -> None:
    """Batches in every state, with rows in every state at the service, and a job that waits."""
    for number, point in enumerate(("stage", "apply")):
        path = write(folder / f"killed-{number}.csv", line(60 + number), line(70, amount="x"))
        database = str(place.settings.database_url)
        assert recon.run(database, place.settings.home, "import", path, CRASH_AT=point).returncode
    for number in range(3):
        rows = line(10 + number), line(20 + number, amount="x")
        bring(place, folder / f"errors-{number}.csv", *rows, terms=OF_SEVEN)
        rows = line(30 + number), line(40 + number, amount="x")
        terms = replace(TIGHT, tenant=7)
        held = bring(place, folder / f"held-{number}.csv", *rows, terms=terms)
    discard_batch(place, held, by="otto", reason="twice")
    (folder / "no.csv").write_text("Colour,Shape\nred,round\n")
    import_delivery(place, [str(folder / "no.csv")], DEFAULT)
    there = towards(place, url, concurrency=1)
    pushed = []
    for number in range(3):
        path = folder / f"tones-{number}.csv"
        of = [f"7,3,tone {10 * number + row}" for row in range(1, 9)]
        path.write_text("\n".join(["TenantsId,AvatarsId,Name", *of, ""]))
        batch = deliver(there, path).batch.id
        for row, what in ((5, SendDecision.ABANDON), (7, SendDecision.CONFIRM)):
            chosen = ChosenSends(rows=(f"{path.name}:record:{row}",))
            resolve(place, batch, chosen, what, by="otto", reason="looked at it")
        pushed.append(batch)
    undo_batch(place, pushed[1], by="otto", reason="wrong month")
    with place.database.connect() as connection:
        connection.execute("SET session_replication_role = replica")
        gone = "UPDATE send SET operation = 'AddRefund' WHERE batch_id = %s"
        connection.execute(gone, [pushed[2]])
        order_job(connection, JobKind.RERUN, {"batch": 3}, "zoe")


def runs(place: Workspace) -> None:
    """Breaks in every state, and runs at every step to a signature."""
    names = ("open", "reopened", "expired", "accepted", "gone", "resolved", "proposed", "assigned")
    breaks = {name: found(name) for name in ("new", *names)}
    before = pl.concat([breaks[name] for name in names])
    first = reconcile(place, before)

    def decide(run: int, what: Choice, *of: str, **terms: Any) -> None:
        chosen = Chosen(tuple(one for name in of for one in ids(breaks[name])))
        decide_breaks(place, run, chosen, Decision(what, "bank charges", "zoe", **terms))

    decide(first.id, Choice.ACCEPT, "accepted", "reopened", until=UNTIL)
    decide(first.id, Choice.ACCEPT, "expired", until=DAY)
    decide(first.id, Choice.REOPEN, "reopened")
    after = pl.concat([breaks["new"], before.filter(pl.col("key") != "gone")])
    second = reconcile(place, after, as_of=DAY + timedelta(days=1))
    decide(second.id, Choice.RESOLVE, "resolved", side="source")
    decide(second.id, Choice.PROPOSE, "proposed", until=UNTIL)
    decide(second.id, Choice.ASSIGN, "assigned", owner="otto")
    for steps in range(3):
        rule = propose_rule(place, second.id, TERMS, "zoe")
        if steps:
            approve_rule(place, rule, by="yan", reason="agreed")
        if steps > 1:
            withdraw_rule(place, rule, by="yan", reason="no more")
    for steps in range(3):
        run = reconcile(place, found(), scope=json.dumps({"tenants": [100 + steps]}))
        if steps:
            prepare(place, run.id, by="zoe", comment="")
        if steps > 1:
            approve(place, run.id, by="yan", comment="")


@pytest.fixture
def with_batches(workspace: Workspace, tmp_path: Path, once: Once) -> Iterator[Workspace]:
    with FaultyServer(by_row(faults(3))) as server:

        def build() -> None:
            batches(workspace, tmp_path, server.url)

        yield towards(once(build), server.url)


@pytest.fixture
def with_runs(workspace: Workspace, once: Once) -> Workspace:
    def build() -> None:
        runs(workspace)

    return once(build)


def left_waiting(_workspace: Workspace, _number: int) -> None:
    """What is ordered waits for a worker."""


def refused(
    place: Workspace, who: str | None, rows: Rows, start: Start = done_at_once
) -> list[str]:
    """What is refused, although a page offers it, when everything is pressed."""
    if who:
        add(place, *WHO)
    with desk_of(place, start=start) as url:
        page = Browser(url)
        page.client.timeout = 600.0
        if who:
            page.log_in(who)
        labels, wrong = press_all(page, rows)
        page.client.close()
    assert {"Search", "Filter"} <= labels
    told = [f"{one}: {why}" for one, why in wrong.items()]
    return [one for one in told if not any(stated in one for stated in STATED)]


@EVERYBODY
def test_no_page_about_batches_offers_what_it_refuses(
    with_batches: Workspace, rows: Rows, who: str | None
) -> None:
    assert refused(with_batches, who, rows) == []


@EVERYBODY
def test_no_page_about_runs_offers_what_it_refuses(
    with_runs: Workspace, rows: Rows, who: str | None
) -> None:
    assert refused(with_runs, who, rows, left_waiting) == []


def test_every_button_and_choice_of_a_form_is_pressed() -> None:
    html = (
        '<form method="post" action="/a"><input type="hidden" name="csrf" value="x">'
        '<input type="checkbox" name="row" value="1"><input type="checkbox" name="row" value="2">'
        '<input type="radio" name="as" value="p"><input type="radio" name="as" value="q">'
        '<input name="reason"><select name="side" required><option value="">choose</option>'
        '<option value="source">S</option></select><button>Go</button>'
        '<button name="what" value="drop">Drop</button></form>'
    )
    filled = (("csrf", "x"), ("row", "1"), ("reason", "looked at it"), ("side", "source"))
    pressed = [one.sent for one in presses("/page", page_of(html), "new")]
    drop = ("what", "drop")
    assert pressed == [
        *((*filled, ("as", choice)) for choice in "pq"),
        *((*filled, drop, ("as", choice)) for choice in "pq"),
    ]
