"""A reconciliation by parts of the keys says what one of everything at once says."""

import resource
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path
from random import Random

import polars as pl
import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.files.profiles.profile import DEFAULT
from connectors.postgres.database import open_database
from connectors.postgres.runs.breaks import breaks_of
from connectors.settings import Limits
from flows.stages.reconcile.put_aside import has_ranges, keeper, put_aside, ranges
from flows.stages.reconcile.rules import read_rules
from flows.stages.reconcile.run import Asked, reconcile
from flows.stages.reconcile.scope import Scope
from flows.stages.reconcile.sources import gather_sources
from flows.stages.sequence import import_delivery
from flows.stages.workspace import Workspace
from flows.steps.frames.parts import (
    Load,
    PartedSide,
    columns_of,
    filtered,
    held,
    parts_of,
    whole,
)
from flows.steps.frames.sources import Sources
from flows.steps.reconcile.cut_off import cut_off
from flows.steps.reconcile.joins import JoinResult, reconcile_sources
from flows.steps.rules.rules import Rules
from schemas.amounts import BEYOND
from schemas.tables import EXTRACTS, PAYMENT
from tests.conftest import Databases, workspace_at
from tests.governance.runs import pack_records
from tests.reconcile.records import extract
from tests.reconcile.scenario import FOLDER, told_at
from tests.stages.payments import line, write

AS_OF = date(2026, 3, 9)
PARTS = (2, 64)
EMPTY = "DROP SCHEMA IF EXISTS recon, sandbox CASCADE"


def in_parts(sources: Sources, parts: int) -> tuple[Sources, int]:
    """The sources in so many parts of each kind that can be parted, and the most that there are."""
    sides: dict[str, dict[str, tuple[Load, ...]]] = {}
    made = 0
    for name in ("extract", "database", "listings"):
        side: Mapping[str, pl.DataFrame] = getattr(sources, name)
        sides[name] = {record: tuple(parts_of(side, record)) for record in side}
    for record, table in EXTRACTS.items():
        there = [side for side in sides.values() if record in side]
        frames = [whole(side[record]) for side in there]
        if not frames or not has_ranges(table) or record in ("invoice_file", "currency_rate"):
            continue
        numbers = pl.concat([frame[table.identity[0]] for frame in frames])
        of_key = ranges(table, numbers, parts)
        if of_key is None:
            continue
        made = max(made, len(of_key))
        for side, frame in zip(there, frames, strict=True):
            side[record] = tuple(put_aside(of_key, (frame,)))
    return replace(sources, **{name: PartedSide(side) for name, side in sides.items()}), made


def told(result: JoinResult) -> tuple[object, ...]:
    """All of a result that there is an order in, or that is counted."""
    return (
        result.rates,
        result.plans,
        result.debts,
        result.batches,
        result.tolerances,
        result.changed_since,
    )


@pytest.mark.long
def test_parts_change_nothing(workspace: Workspace) -> None:
    import_delivery(workspace, [str(FOLDER / "monday")], DEFAULT)
    with workspace.database.connect() as connection:
        connection.execute((FOLDER / "monday.sql").read_bytes())
        sources = gather_sources(workspace, connection, Scope(), {}).sources
    rules = read_rules(FOLDER / "rules.toml")
    # With what was signed: everything as it is now, of which nothing has changed.
    sources = replace(sources, signed=dict(sources.database))
    for day in (AS_OF, date(2026, 1, 15)):
        cut = cut_off(sources, day)
        first = reconcile_sources(cut.kept, rules, day, service=False, cut=cut)
        for parts in PARTS:
            parted, made = in_parts(sources, parts)
            assert made > 1
            cut_parts = cut_off(parted, day)
            assert cut_parts.lines == cut.lines
            other = reconcile_sources(
                cut_parts.kept, rules, day, service=False, cut=cut_parts, keep=keeper(0)
            )
            assert other.breaks.equals(first.breaks)
            assert told(other) == told(first)
            assert pack_records(cut_parts.kept.database).equals(pack_records(cut.kept.database))
            for record, loads in first.statuses.items():
                statuses = whole(other.statuses[record])
                order = [name for name in statuses.columns if name in ("extract_id", "row", "Id")]
                mine = whole(loads)
                assert statuses.columns == mine.columns
                by = [*order, *(n for n in mine.columns if n not in order)]
                assert statuses.sort(by).equals(mine.sort(by))


@pytest.mark.long
@pytest.mark.parametrize(
    "days",
    [
        ("monday",),
        ("monday", "tuesday", "wednesday", "friday"),
    ],
)
def test_reports_and_ledger_are_the_same(
    databases: Databases, days: tuple[str, ...], tmp_path: Path
) -> None:
    """Every key in a part of its own, with a service that lists and answers."""
    found = []
    for at_once in (Limits().reconcile_bytes, 1):
        with databases.new() as url:
            place = workspace_at(url, tmp_path / str(at_once))
            limits = replace(place.settings.limits, reconcile_bytes=at_once)
            parted = replace(place, settings=replace(place.settings, limits=limits))
            with told_at(parted) as story:
                done = [story.play(day) for day in days]
                with story.place.database.connect() as connection:
                    breaks = [breaks_of(connection, one.run.id) for one in done]
        files = {
            str(path.relative_to(one.written.folder)): path.read_bytes()
            for one in done
            for path in sorted(one.written.folder.rglob("*"))
            if path.is_file() and path.name != "manifest.json"
        }
        found.append((files, breaks))
    (files, breaks), (others, other_breaks) = found
    assert [name for name in files if files[name] != others.get(name)] == []
    assert files.keys() == others.keys()
    for mine, theirs in zip(breaks, other_breaks, strict=True):
        assert theirs.equals(mine)


BENT = """
    UPDATE payment SET "PaidAmount" = 11 WHERE "Id" % 97 = 0;
    UPDATE payment SET "DiscountAmount" = 1e21 WHERE "Id" = 1501;
    UPDATE payment SET "PaidAmount" = 12 WHERE "Id" % 3 = 0;
    UPDATE payment SET "PaidAmount" = 1e22 WHERE "Id" = 1502;
    DELETE FROM payment WHERE "Id" % 101 = 0;
    INSERT INTO payment SELECT (p).* FROM (
        SELECT jsonb_populate_record(p, '{"Id": 9000000000}') AS p FROM payment p WHERE "Id" = 2) p
"""


@pytest.mark.long
@pytest.mark.parametrize(
    ("sums", "lost"),
    [
        pytest.param("", False, id="in-ranges"),
        # Amounts that do not add up are looked at side by side, and then there are no ranges.
        pytest.param(
            """UPDATE payment SET "PaidAmount" = 9e19 WHERE "Id" % 2 = 0""", False, id="whole"
        ),
        # Of rows kept by reference the file that they refer to is gone.
        pytest.param("", True, id="unproven"),
    ],
)
def test_sides_that_are_never_held_say_what_those_say_that_are(
    workspace: Workspace, sums: str, *, lost: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page at a time: in no order, in error, altered, repeated, gone and there alone."""
    lines = [line(number, amount="1.x" if number % 89 == 0 else "10.5") for number in range(3000)]
    Random(5).shuffle(lines)
    deliveries = [write(tmp_path / "a.csv", *lines), write(tmp_path / "b.csv", *lines[:400])]
    found = []
    monkeypatch.setattr("flows.stages.reconcile.side_frames.STREAMED", 1)
    for at_once, pages in ((workspace.settings.limits.reconcile_bytes, 512), (16 * 1024, 1)):
        monkeypatch.setattr("connectors.postgres.bulk.page_columns.PAGES", pages)
        with psycopg.connect(workspace.settings.database_url, autocommit=True) as connection:
            connection.execute(EMPTY)
        limits = replace(workspace.settings.limits, reconcile_bytes=at_once)
        home = (tmp_path / "home").resolve()
        shutil.rmtree(home, ignore_errors=True)
        settings = replace(workspace.settings, home=home, limits=limits)
        place = Workspace(settings, open_database(settings))
        for delivery in deliveries:
            import_delivery(place, [delivery], replace(DEFAULT, keep="reference"))
        if lost:
            largest = max(
                place.settings.archive.glob("??/*.csv"), key=lambda kept: kept.stat().st_size
            )
            largest.unlink()
        with place.database.connect() as connection:
            connection.execute(BENT)
            connection.execute(sums)  # type: ignore[call-overload]
        done = reconcile(place, Asked(Scope(), date(2026, 1, 31), Rules(references=())))
        with place.database.connect() as connection:
            found.append((done.run.report_hash, breaks_of(connection, done.run.id)))
    (mine, breaks), (others, other_breaks) = found
    assert breaks.height > 90
    assert ("UNPROVEN" in {one.status for one in done.report.statuses}) == lost
    assert other_breaks.equals(breaks)
    assert others == mine


@given(
    st.lists(st.one_of(st.none(), st.integers(-3, 3), st.integers(-(2**63), 2**63 - 1))),
    st.integers(2, 9),
)
def test_ranges_have_every_row_once_and_what_is_equal_together(
    numbers: list[int | None], parts: int
) -> None:
    rows = extract(PAYMENT, *({"Id": number} for number in numbers))
    of_key = ranges(PAYMENT, rows["Id"], parts)
    known = {number for number in numbers if number is not None}
    if of_key is None:
        assert len(known) < 2 or len(numbers) < parts
        return
    assert len(of_key) <= parts
    found = [load()["Id"].to_list() for load in put_aside(of_key, (rows,))]
    # Nulls come last, as they do where records are put in order.
    ordered = sorted((n is None, n or 0) for n in numbers)
    assert [one for part in found for one in sorted((n is None, n or 0) for n in part)] == ordered
    for number in known:
        assert sum(number in part for part in found) == 1
    assert whole(put_aside(of_key, (rows,)))["row"].sort().equals(rows["row"])


@pytest.mark.long
def test_frames_that_are_kept_take_few_files_however_many_they_are() -> None:
    keep, before = keeper(0), len([*Path("/proc/self/fd").iterdir()])
    loads = [keep(pl.DataFrame({"a": [number], f"b{number}": "x"})) for number in range(300)]
    assert len([*Path("/proc/self/fd").iterdir()]) < before + 90
    for number in (0, 299, 7):
        assert loads[number]().rows() == [(number, "x")]


@pytest.mark.long
def test_sides_of_many_kinds_take_no_more_files_than_there_may_be() -> None:
    _, most = limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    there = len([*Path("/proc/self/fd").iterdir()])
    resource.setrlimit(resource.RLIMIT_NOFILE, (there + 100, most))
    try:
        keepers = [keeper(0) for _ in range(5)]
        loads = [keep(pl.DataFrame({"a": [at]})) for keep in keepers for at in range(64)]
        assert [load().item() for load in loads] == [*range(64)] * 5
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_small_frames_stay_in_memory_up_to_a_sum() -> None:
    one, keep = pl.DataFrame({"a": [1]}), keeper(20)
    assert [keep(one)() is one for _ in range(4)] == [True, True, False, False]


def test_some_columns_of_a_part_come_with_the_texts_beside_them() -> None:
    rows = pl.DataFrame({"a": [1], "b": [2], f"b{BEYOND}": ["x"], f"c{BEYOND}": ["y"]})
    for load in (held(rows), keeper(0)(rows), filtered(keeper(0)(rows), pl.Series([True]))):
        assert columns_of(load, ("b", "none")).equals(rows.select("b", f"b{BEYOND}"))
        assert load().equals(rows)


@pytest.mark.long
def test_the_command_says_how_memory_is_given_back_before_polars_is_loaded() -> None:
    """Afterwards nobody listens."""
    probe = """
import sys
import connectors.memory
connectors.memory.give_arrays_back = lambda: sys.exit("polars" in sys.modules)
from flows.commands.reconcile import reconcile_command
reconcile_command()
"""
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
