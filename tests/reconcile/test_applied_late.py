"""A batch that was applied after one of a higher number: what was written last counts."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any, Self

import pytest

from connectors.files.profiles.profile import DEFAULT
from flows.stages.reconcile.scope import Scope
from flows.stages.reconcile.sources import gather_sources
from flows.stages.sequence import import_delivery, release_batch, run_batch
from flows.stages.undo import undo_batch
from flows.stages.workspace import Workspace
from flows.steps.reconcile.joins import JoinResult, reconcile_sources
from flows.steps.rules.rules import Rules
from schemas.breaks import OF_AMOUNTS
from tests.stages.payments import line, write

AS_OF = date(2026, 1, 31)
SCOPES = [Scope(), *(Scope(batches=(number,)) for number in (1, 2, 3))]
OWN = (*OF_AMOUNTS, "VALUE", "INSTANT", "MISSING_IN_TARGET", "MISSING_IN_EXTRACT", "DUPLICATE")
RECORDS = 'SELECT "Id", "PaidAmount"::text, batch_id FROM payment ORDER BY 1'
Told = list[tuple[str, str]]


@pytest.fixture
def take(workspace: Workspace, tmp_path: Path) -> Callable[..., Any]:
    def deliver(*lines: str, held: bool = False) -> None:
        path = tmp_path / f"{len([*tmp_path.glob('*.csv')])}.csv"
        profile = replace(DEFAULT, budget_errors=0) if held else DEFAULT
        import_delivery(workspace, [write(path, *lines)], profile)

    return deliver


def release(place: Workspace, batch: int) -> None:
    release_batch(place, batch, by="ann", reason="one row is no matter")


def joined(place: Workspace, scope: Scope, at_once: int) -> JoinResult:
    limits = replace(place.settings.limits, reconcile_bytes=at_once)
    place = replace(place, settings=replace(place.settings, limits=limits))
    with place.database.connect() as connection:
        sources = gather_sources(place, connection, scope, {}).sources
        return reconcile_sources(sources, Rules(), AS_OF, service=False)


def told(place: Workspace, scope: Scope | None = None, *, parts: bool = True) -> Told:
    """The breaks of records as (code, key); the same if every key is a part of its own."""
    found = []
    for at_once in (place.settings.limits.reconcile_bytes, 1)[: 1 + parts]:
        breaks = joined(place, scope or Scope(), at_once).breaks
        rows = breaks.select("code", "key").iter_rows()
        found.append(sorted(row for row in rows if row[0] in OWN))
    assert found[0] == found[-1]
    return found[0]


def put_back(place: Workspace) -> None:
    """Somebody writes batch 2's record into the database again, its writer as well."""
    with place.database.connect() as connection:
        connection.execute(
            'UPDATE payment SET "PaidAmount" = 90, batch_id = 2, record_number = 1, '
            'extract_id = (SELECT id FROM extract WHERE batch_id = 2) WHERE "Id" = 1'
        )


def test_what_a_released_batch_wrote_counts(workspace: Workspace, rows: Any, take: Any) -> None:
    take(line(1, amount="100", day=5), line(2), line(9, amount="x"), held=True)
    take(line(1, amount="90"), line(3))
    release(workspace, 1)
    assert rows(RECORDS)[0] == (1, "100", 1)
    assert told(workspace, parts=False) == []
    put_back(workspace)
    assert told(workspace, parts=False) == [("AMOUNT", "1/7")]


@pytest.mark.long
def test_it_counts_in_every_scope_and_what_somebody_puts_back_is_a_difference(
    workspace: Workspace, take: Any
) -> None:
    take(line(1, amount="100"), line(2), line(9, amount="x"), held=True)
    take(line(1, amount="90"), line(3))
    take(line(1, amount="90"), line(4))  # It found the record as it says.
    release(workspace, 1)
    for scope in SCOPES:
        assert told(workspace, scope) == [], scope
    put_back(workspace)
    differs = {scope: told(workspace, scope) for scope in SCOPES}
    assert differs[SCOPES[0]] == differs[SCOPES[1]] == [("AMOUNT", "1/7")]
    assert differs[SCOPES[2]] == [("MISSING_IN_EXTRACT", "1/7")]
    with workspace.database.connect() as connection:
        connection.execute('DELETE FROM payment WHERE "Id" = 1')
    missing = {scope: told(workspace, scope) for scope in SCOPES}
    assert missing[SCOPES[0]] == missing[SCOPES[1]] == [("MISSING_IN_TARGET", "1/7")]


@pytest.mark.long
def test_several_that_were_held_and_what_came_after(
    workspace: Workspace, rows: Any, take: Any
) -> None:
    bad = line(9, amount="x")
    take(line(1, amount="1"), line(2, amount="1"), bad, held=True)
    take(line(1, amount="2"), line(2, amount="2"), line(3, amount="2"), bad, held=True)
    take(line(1, amount="3"), line(2, amount="3"), line(3, amount="3"))
    take(line(1, amount="4"), line(3, amount="3"))
    release(workspace, 2)
    assert told(workspace) == []
    release(workspace, 1)
    take(line(2, amount="5"), line(4))
    assert rows(RECORDS) == [(1, "1", 1), (2, "5", 5), (3, "2", 2), (4, "10.50", 5)]
    for scope in (*SCOPES, Scope(batches=(4,)), Scope(batches=(2, 4)), Scope(batches=(1, 3))):
        assert told(workspace, scope) == [], scope
    for batch in (5, 1, 2):
        undo_batch(workspace, batch, by=None, reason="test")
        assert told(workspace) == [], batch
    assert rows(RECORDS) == [(1, "4", 4), (2, "3", 3), (3, "3", 3)]


class Ended(Exception):
    pass


class Ahead(datetime):
    """The clock of a machine that is an hour ahead of the database's."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Self:
        return super().now(tz) + timedelta(hours=1)


@contextmanager
def machine_of(clock: type[datetime]) -> Iterator[None]:
    """All of ours has the time from this clock."""
    with pytest.MonkeyPatch.context() as patch:
        for name, module in [*sys.modules.items()]:
            if name.startswith(("connectors.", "flows.")) and hasattr(module, "datetime"):
                patch.setattr(module, "datetime", clock)
        yield


@pytest.mark.long
@pytest.mark.parametrize("clock", [datetime, Ahead])
def test_of_batches_that_were_applied_side_by_side_each_range_has_its_turn(
    workspace: Workspace, rows: Any, take: Any, tmp_path: Path, clock: type[datetime]
) -> None:
    """Whatever the machine of the first one takes for the time."""

    def several(amount: str) -> list[str]:
        return [line(number, amount=amount) for number in range(1, 41)]

    take(*several("1"))

    def progress(stage: str, done: int, total: int | None) -> None:
        if stage == "apply":
            raise Ended

    limits = replace(workspace.settings.limits, block_bytes=512)
    dying = replace(
        workspace, settings=replace(workspace.settings, limits=limits), progress=progress
    )
    path = write(tmp_path / "dies.csv", *several("2"))
    with machine_of(clock), pytest.raises(Ended):
        import_delivery(dying, [path], DEFAULT)
    take(*several("3"))
    run_batch(workspace, 2)
    written = rows(RECORDS)
    assert (written[0], written[-1]) == ((1, "3", 3), (40, "2", 2))
    for scope in SCOPES:
        assert told(workspace, scope) == [], scope
    with workspace.database.connect() as connection:
        connection.execute(
            'UPDATE payment p SET "PaidAmount" = 2, batch_id = 2, extract_id = o.extract_id, '
            'record_number = 1 FROM payment o WHERE p."Id" = 1 AND o."Id" = 40'
        )
    assert told(workspace) == [("AMOUNT", "1/7")]
