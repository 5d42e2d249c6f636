"""The connection to the database is cut at the n-th message: the end is that of a quiet run.

Once cut, the server is there again at once, and the run itself goes on; or it is away until a plain
rerun. The long run cuts wherever the end may be another one (`everywhere`), `--only 12,57` at these
messages.
"""

import shutil
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import date
from itertools import product
from pathlib import Path
from typing import Any

import psycopg
import pytest

from connectors.errors import BatchStateError, DatabaseUnusable
from connectors.files.profiles.profile import DEFAULT
from flows.stages.reconcile.run import Asked, reconcile
from flows.stages.reconcile.scope import Scope
from flows.stages.sequence import import_delivery, release_batch, run_batch
from flows.stages.undo import undo_batch
from flows.stages.workspace import Workspace
from flows.steps.rules.rules import Rules
from tests import examples
from tests.faults.cases import differences, dirty_delivery, first_delivery, truth, workspace
from tests.faults.conftest import Fresh, named
from tests.faults.waits import until
from tests.faults.wire import ASKS, Cut, Proxy, proxy

WAYS = tuple(product(Cut, (False, True)))
"""Before or after the server has executed it; whether the server stays away then."""

FEWER = 40
"""Messages that a run may have less than another one: it works over two connections at once, and
what it asks follows from how fast they are, five messages at a time."""

PREPARED = ("P", "B", "D", "C", "H", "S")
"""A statement parsed, bound, described, closed; flushed; and the sync behind its execution."""
ENDS = (*ASKS, "c")
"""What may end a transaction: a query, a sync, the startup; the end of a COPY."""

Run = Callable[[Workspace, Path], object]


def imported(place: Workspace, deliveries: Path) -> object:
    return import_delivery(place, dirty_delivery(deliveries), DEFAULT)


def undone(place: Workspace, _: Path) -> object:
    return undo_batch(place, 2, by="a", reason="b")


def held(place: Workspace, deliveries: Path) -> object:
    return import_delivery(place, dirty_delivery(deliveries), replace(DEFAULT, budget_errors=0))


def released(place: Workspace, _: Path) -> object:
    return release_batch(place, 2, by="a", reason="b")


def reconciled(place: Workspace, _: Path) -> object:
    rules = Rules()
    return reconcile(place, Asked(Scope(), date(2026, 3, 31), rules, by="a"))


@dataclass(frozen=True)
class Case:
    """What is disturbed, what was done before, and at how many messages the gate cuts."""

    run: Run
    before: Sequence[Run]
    cuts: int


CASES = {
    "import": Case(imported, (), 3),
    "undo": Case(undone, (imported,), 3),
    "release": Case(released, (held,), 3),
    "reconcile": Case(reconciled, (imported,), 3),
}


@dataclass(frozen=True)
class Quiet:
    """A run that nothing disturbed."""

    database: str
    """As it was before."""
    home: Path
    truth: dict[str, Any]
    messages: list[str]
    kept: set[int]


@contextmanager
def quiet(case: Case, fresh: Fresh, server: str, folder: Path) -> Iterator[Quiet]:
    with ExitStack() as opened:
        template = opened.enter_context(fresh("recon_template"))
        home = folder / "before"
        place = workspace(named(server, template), home)
        import_delivery(place, first_delivery(folder), DEFAULT)
        for step in case.before:
            step(place, folder)
        copy, wire = opened.enter_context(fresh(template)), opened.enter_context(proxy(server))
        mine = folder / "quiet"
        shutil.copytree(home, mine)
        case.run(workspace(wire.url(copy), mine), folder)
        yield Quiet(template, home, truth(named(server, copy), mine), wire.seen, wire.kept)


@pytest.mark.long(but=("import",))
@pytest.mark.parametrize(
    ("case", "share"),
    [
        pytest.param(case, *share.values, id=share.id)
        for name, case in CASES.items()
        for share in examples.shares(name)
    ],
)
def test_cut_at_any_message_it_ends_the_same(
    fresh: Fresh, server: str, tmp_path: Path, case: Case, share: tuple[int, int]
) -> None:
    with quiet(case, fresh, server, tmp_path) as undisturbed:
        failures = []
        cuts = chosen(undisturbed.messages, undisturbed.kept, case.cuts, share)
        for number, (at, (cut, away)) in enumerate(cuts):
            home = tmp_path / str(number)
            shutil.copytree(undisturbed.home, home)
            told = f"at {at} ({undisturbed.messages[at - 1]}), {cut.value}, away: {away}"
            with fresh(undisturbed.database) as database, proxy(server) as wire:
                wire.at, wire.cut, wire.stays_down = at, cut, away
                try:
                    disturb(case, wire, database, home, tmp_path)
                    rerun(case, named(server, database), home, tmp_path)
                except Exception as error:  # noqa: BLE001 -- each is told with its place.
                    failures.append(f"{told}: {type(error).__name__}: {error}")
                    continue
                found = truth(named(server, database), home)
            if wrong := differences(undisturbed.truth, found):
                failures.append(f"{told}: {wrong}")
    assert not failures, "\n".join([f"{len(failures)} of {number + 1}", *failures])


def test_where_it_is_cut(server: str) -> None:
    """A statement of its own, one within a transaction, and a COPY: where the end may differ."""
    with proxy(server) as wire:
        with psycopg.connect(wire.url("postgres")) as connection:
            connection.execute("CREATE TEMP TABLE t (a int)")
            connection.execute("SELECT %s", [1])
            with connection.cursor().copy("COPY t FROM STDIN") as copy:
                copy.write("1\n")
        with psycopg.connect(wire.url("postgres"), autocommit=True) as connection:
            connection.execute("SELECT %s", [1])
        told = [
            (wire.seen[at - 1].partition(" TABLE")[0], cut.value)
            for at, (cut, away) in everywhere(wire.seen, wire.kept)
            if away and wire.seen[at - 1] != "X"  # It may come too late to be counted.
        ]
    assert told == [
        *(("startup", "before"), ("startup", "after")),
        *(("Q BEGIN", "before"), ("Q CREATE TEMP", "before"), ("E", "before")),
        *(("Q COPY t FROM STDIN", "before"), ("d", "before"), ("c", "before")),
        *(("Q COMMIT", "before"), ("Q COMMIT", "after")),
        *(("startup", "before"), ("startup", "after")),
        *(("E", "before"), ("S", "after")),
    ]


@pytest.mark.long
def test_a_registration_whose_answer_is_lost_is_no_loss_of_what_is_kept(
    fresh: Fresh, server: str, tmp_path: Path
) -> None:
    """The contents are expected by then: it was this very delivery that brought them."""
    case = CASES["import"]
    with (
        quiet(case, fresh, server, tmp_path) as undisturbed,
        fresh(undisturbed.database) as database,
        proxy(server) as wire,
    ):
        home = tmp_path / "home"
        shutil.copytree(undisturbed.home, home)
        messages = list(enumerate(undisturbed.messages, 1))
        let_go = next(at for at, told in messages if "drop_lease" in told)
        wire.at = max(at for at, told in messages if "COMMIT" in told and at < let_go)
        wire.cut = Cut.AFTER
        disturb(case, wire, database, home, tmp_path)
        rerun(case, named(server, database), home, tmp_path)
        assert differences(undisturbed.truth, truth(named(server, database), home)) == []


@pytest.mark.long
def test_an_undo_knows_itself_again_when_the_answer_to_its_commit_is_lost(
    fresh: Fresh, server: str, tmp_path: Path
) -> None:
    with (
        quiet(CASES["undo"], fresh, server, tmp_path) as undisturbed,
        fresh(undisturbed.database) as database,
        proxy(server) as wire,
    ):
        place = workspace(wire.url(database), undisturbed.home)
        commits = [at for at, told in enumerate(undisturbed.messages, 1) if "COMMIT" in told]
        wire.at, wire.cut = commits[-1], Cut.AFTER
        assert undone(place, tmp_path) == {"deleted": 53, "restored": 10}
        assert wire.done
        found = truth(named(server, database), undisturbed.home)
        assert differences(undisturbed.truth, found) == []
        with pytest.raises(BatchStateError, match="is undone already"):
            undone(place, tmp_path)


@pytest.mark.long
def test_a_release_knows_itself_again_when_the_answer_to_its_commit_is_lost(
    fresh: Fresh, server: str, tmp_path: Path
) -> None:
    with (
        quiet(CASES["release"], fresh, server, tmp_path) as undisturbed,
        fresh(undisturbed.database) as database,
        proxy(server) as wire,
    ):
        messages = list(enumerate(undisturbed.messages, 1))
        said = next(at for at, told in messages if "add_event" in told)
        wire.at = next(at for at, told in messages if "COMMIT" in told and at > said)
        wire.cut = Cut.AFTER
        released(workspace(wire.url(database), undisturbed.home), tmp_path)
        assert wire.done
        url = named(server, database)
        assert differences(undisturbed.truth, truth(url, undisturbed.home)) == []
        with psycopg.connect(url) as connection:
            decided = "SELECT count(*) FROM recon.event WHERE what = 'released'"
            assert connection.execute(decided).fetchone() == (1,)


def disturb(case: Case, wire: Proxy, database: str, home: Path, folder: Path) -> None:
    try:
        case.run(workspace(wire.url(database), home), folder)
    except DatabaseUnusable as error:
        assert "database" in str(error)  # noqa: PT017
    else:
        if wire.at - FEWER <= len(wire.seen) < wire.at:
            return  # It has ended before; nothing was cut.
        assert wire.done
        # A reconciliation is over once it says goodbye; mail that cannot be looked for waits.
        over = wire.seen[: wire.at] if case.run is reconciled else wire.seen[wire.at - 1 : wire.at]
        assert "X" in over or not wire.stays_down, "it went on without a database"


OTHER_SESSIONS = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
    "AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
)


def rerun(case: Case, url: str, home: Path, folder: Path) -> None:
    """The same command again; what was done is named, not done again."""
    if case.run is reconciled:
        with psycopg.connect(url, autocommit=True) as connection:
            # A scope is refused while a session of it has not noticed that it is cut.
            until(lambda: connection.execute(OTHER_SESSIONS).fetchone() == (0,))
            saved = connection.execute("SELECT count(*) FROM recon.reconciliation").fetchone()
        if saved == (1,):
            return  # Another one would be the next of its scope.
    try:
        case.run(workspace(url, home), folder)
    except BatchStateError as error:
        if case.run is released:
            assert "not held; nothing was changed" in str(error)  # noqa: PT017
            run_batch(workspace(url, home), 2)
        else:
            assert "is undone already" in str(error)  # noqa: PT017


def chosen(
    messages: Sequence[str], kept: Collection[int], cuts: int, share: tuple[int, int]
) -> list[tuple[int, tuple[Cut, bool]]]:
    """Where to cut, and how: everywhere, where it was asked for, or a spread that has commits.

    Of these every n-th, as the share says.

    Nothing hangs on the goodbye of a connection, and the last one may come too late to be counted.
    """
    while messages[-1] == "X":
        messages = messages[:-1]
    if examples.ONLY:
        return list(product(examples.ONLY, WAYS))
    if examples.ALL:
        return list(everywhere(messages, kept))[share[0] :: share[1]]
    commits = [at for at, told in enumerate(messages, 1) if "COMMIT" in told.upper()]
    places = [1 + place * (len(messages) - 1) // (cuts - 1) for place in range(cuts)]
    spread = [(at, WAYS[number % len(WAYS)]) for number, at in enumerate(places)]
    lost = [(at, (Cut.AFTER, bool(number % 2))) for number, at in enumerate(commits[::5])]
    return [*spread, *lost]


def everywhere(
    messages: Sequence[str], kept: Collection[int]
) -> Iterator[tuple[int, tuple[Cut, bool]]]:
    """Every cut whose end may be another one than that of the cut before it.

    Before whatever the server acts on. It does nothing for PREPARED, and a client sends that and
    what executes it at once: it cannot tell one of these cuts from another. After what has ended
    outside of a transaction: within one, nothing is left of what was done, as if it was never sent.
    """
    for at, told in enumerate(messages, 1):
        if told[0] not in PREPARED:
            yield from product([at], product([Cut.BEFORE], (False, True)))
        if told[0] in ENDS and at in kept:
            yield from product([at], product([Cut.AFTER], (False, True)))
