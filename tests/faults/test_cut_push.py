"""The connection to the database is cut while rows go to the sandbox: nothing is sent twice.

What was answered when the connection was lost is written down once the server is back. Where it
stays away, what was being sent is looked at as after a crash: a PUT goes again, a POST is in doubt.
`--only` chooses messages as in test_cut_connections.
"""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from connectors.errors import DatabaseUnusable
from connectors.files.profiles.profile import DEFAULT
from connectors.postgres.push.sends import SendDecision
from flows.stages.chosen_sends import ChosenSends
from flows.stages.resolve import resolve
from flows.stages.sequence import import_delivery, push_batch
from flows.stages.upkeep.restored import go_on_after_restore
from flows.stages.workspace import Workspace
from tests import examples
from tests.faults.cases import dirty_delivery, workspace
from tests.faults.conftest import Fresh, named
from tests.faults.test_cut_connections import chosen
from tests.faults.wire import Cut, Proxy, proxy
from tests.push.conftest import deliver, sandbox_at, towards
from tests.push.deliveries import tones
from tests.service.faulty_server import DROPPED, FaultyServer

RESEND = SendDecision.RESEND
CUTS = 2
PAYMENTS, TONES = 61, 12


def pushed(url: str, home: Path, service: str) -> Any:
    place: Workspace = workspace(url, home)
    return push_batch(towards(place, service, concurrency=4), 1)


@pytest.mark.long
@pytest.mark.parametrize("share", examples.shares("push"))
def test_cut_at_any_message_of_a_push(
    fresh: Fresh, server: str, tmp_path: Path, share: tuple[int, int]
) -> None:
    with (
        fresh("recon_template") as template,
        fresh("recon_template") as theirs,
        sandbox_at(named(server, theirs)) as (_, service),
    ):
        place = Place(fresh, server, template, named(server, theirs), service)
        imported = tmp_path / "imported"
        import_delivery(
            workspace(named(server, template), imported), dirty_delivery(tmp_path), DEFAULT
        )
        quiet = one_push(place, imported, tmp_path / "quiet", None)
        for number, cut in enumerate(chosen(quiet.seen, quiet.kept, CUTS, share)):
            one_push(place, imported, tmp_path / str(number), cut)


@dataclass(frozen=True)
class Place:
    """A batch to push, and the sandbox it goes to."""

    fresh: Fresh
    server: str
    template: str
    theirs: str
    service: str


def one_push(place: Place, imported: Path, home: Path, cut: Any) -> Proxy:
    """Push, cut it as told, and push again; gives what went over the wire."""
    shutil.copytree(imported, home)
    with psycopg.connect(place.theirs) as connection:
        connection.execute("TRUNCATE sandbox.payment, sandbox.message_tone")
    with place.fresh(place.template) as database, proxy(place.server) as wire:
        ours = named(place.server, database)
        # Every push is of a copy of the database, which holds it until somebody says what it is.
        terms = {"unsent": "unsent", "by": None, "reason": "a copy of the one that was imported to"}
        go_on_after_restore(workspace(ours, home), **terms)
        if cut:
            wire.at, (wire.cut, wire.stays_down) = cut
        try:
            pushed(wire.url(database), home, place.service)
        except DatabaseUnusable:
            assert wire.done, cut
        told = cut and f"{cut}: {wire.seen[cut[0] - 1]}"
        pushed(ours, home, place.service)
        check(ours, place.theirs, stayed_down=bool(cut and wire.stays_down), told=told)
        return wire


def check(ours: str, theirs: str, *, stayed_down: bool, told: object) -> None:
    with psycopg.connect(ours) as connection:
        states = dict(
            connection.execute(
                "SELECT operation || ' ' || state, count(*) FROM recon.send GROUP BY 1"
            ).fetchall()
        )
        doubtful = {
            name
            for (name,) in connection.execute(
                'SELECT s."Name" FROM recon.send x JOIN recon.staged_message_tone s '
                "USING (extract_id, record_number) WHERE x.state = 'in_doubt'"
            )
        }
        batch = connection.execute("SELECT state FROM recon.batch").fetchone()
    with psycopg.connect(theirs) as connection:
        posted = [name for (name,) in connection.execute('SELECT "Name" FROM sandbox.message_tone')]
        put = [one for (one,) in connection.execute('SELECT "Id" FROM sandbox.payment')]
    assert len(set(posted)) == len(posted), (told, posted)
    assert len(set(put)) == len(put) == PAYMENTS, (told, put)
    assert stayed_down or not doubtful, told
    assert set(posted) | doubtful == {f"tone {number}" for number in range(1, TONES + 1)}, told
    expected = {"EditPayment acknowledged": PAYMENTS}
    expected["AddMessageTone acknowledged"] = TONES - len(doubtful)
    if doubtful:
        expected["AddMessageTone in_doubt"] = len(doubtful)
    assert states == {name: rows for name, rows in expected.items() if rows}, told
    assert batch == ("complete_with_errors",), told


@pytest.mark.long(but=("False",))
@pytest.mark.parametrize("begun_again", [False, True])
def test_a_decision_is_made_once_when_the_answer_to_its_commit_is_lost(
    fresh: Fresh, server: str, tmp_path: Path, *, begun_again: bool
) -> None:
    """It may be made by a run of Prefect, which is tried again as a whole."""
    asked: Any = {"by": "a", "reason": "not there", "run": "run 7"}
    with fresh("recon_template") as template, FaultyServer(lambda _: DROPPED) as service:
        home = tmp_path / "home"
        place = towards(workspace(named(server, template), home), service.url, concurrency=1)
        deliver(place, tones(tmp_path / "a.csv", 1))
        at = 0
        for cut in (False, True):
            with fresh(template) as database, proxy(server) as wire:
                wire.at, wire.cut = at, Cut.AFTER
                for url in (wire.url(database), named(server, database))[: 1 + begun_again]:
                    done = resolve(workspace(url, home), 1, ChosenSends(), RESEND, **asked)
                    assert done.rows == 1
                assert wire.done == cut
                with psycopg.connect(named(server, database)) as connection:
                    decided = connection.execute(
                        "SELECT count(*), sum(x.epoch) FROM recon.event e, recon.send x "
                        "WHERE e.what = 'resolve'"
                    ).fetchone()
                assert decided == (1, 1)
                said = next(at for at, told in enumerate(wire.seen, 1) if "add_event" in told)
                at = next(
                    at for at, told in enumerate(wire.seen, 1) if "COMMIT" in told and at > said
                )
