"""Deliveries, corrections and decisions in any order, killed on the way: the ledger is the model's.

Every sequence has its own seed, tenants, keys and feed, so that several share a database. After
each step the state of every row, who wrote each record, and what lists say are compared with a
ledger in plain Python (`ledger_model.py`), which was written from the pages alone.
"""

import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from connectors.errors import BatchStateError, CorrectionError
from connectors.files.profiles.profile import DEFAULT
from connectors.files.profiles.profile_file import load_profile
from connectors.postgres.batches.corrections import unrepaired
from connectors.postgres.batches.overview import list_overview
from connectors.settings import Limits
from flows.report.text import render_text
from flows.stages.rows.rejects import write_rejects
from flows.stages.sequence import (
    discard_batch,
    import_delivery,
    look,
    release_batch,
    run_batch,
)
from flows.stages.undo import undo_batch, why_not_undone
from flows.stages.workspace import Workspace
from tests.examples import ALL, seeds
from tests.recon import run
from tests.stages.ledger_files import HEADERS, MadeFiles
from tests.stages.ledger_model import (
    APPLIED,
    ENDED,
    ERRORS,
    FOR_NONE,
    REPAIRING,
    Batch,
    Ledger,
    Refused,
    Row,
    Terms,
)

SEQUENCES = seeds(2, 150)
POINTS = (
    *("hashed", "archived", "open", "spool", "copy", "receipt", "chunk:2", "stage", "check"),
    *("apply", "apply:2", "apply-chunk", "apply-chunk:2", "applied", "file-written"),
    *("names-free", "file-renamed", "report", "cleared", "finish"),
)


class _SameBytes(Exception):
    """Files came out alike, which is another story."""


class _Sequence:
    def __init__(self, seed: int, workspace: Workspace, folder: Path) -> None:
        self.chance = random.Random(seed)
        limits = Limits(
            block_bytes=self.chance.choice((512, 4_194_304)),
            strict_bytes=self.chance.choice((1, 262_144)),
        )
        self.workspace = replace(workspace, settings=replace(workspace.settings, limits=limits))
        self.folder, self.made = folder, MadeFiles(seed, self.chance, folder)
        self.ledger, self.log = Ledger(), list[str]()
        self.delivered: list[tuple[list[str], Path | None, Batch]] = []
        self.kills = self.chance.choice((0.0, 0.0, 0.3))
        self.unread: set[int] = set()
        """Batches that were undone before all of their rows were read."""

    def step(self) -> None:
        before = len(self.log)
        often = (self.deliver, self.correct, self.decide)
        self.chance.choice((*often, *often, self.correct, self.redeliver))()
        if len(self.log) > before:
            self.compare()

    # Steps.

    def deliver(self) -> None:
        pick = self.chance.choice
        terms = Terms(
            duplicate=pick(("conflict", "conflict", "last_wins")),
            reference=pick(("flag", "flag", "reject")),
            complete=self.chance.random() < 0.1,
            budget=pick((None, None, None, None, 0, 3)),
            tenant=pick((None, None, None, self.made.tenants[0])),
        )
        if terms.duplicate == "conflict":
            terms = replace(terms, repeats=pick(("superseded", "superseded", "conflict")))
        paths, per_file = [], []
        for _ in range(pick((1, 1, 1, 2, 3))):
            kind, many = pick(self.made.kinds), pick((1, 3, 6, 15)) * min(self.made.worlds, 4)
            made = [self.made.row(kind, self.made.fault()) for _ in range(many)]
            paths.append(self.made.file(kind, HEADERS[kind], [text for text, _ in made]))
            per_file.append([row for _, row in made])
        self.take(paths, per_file, terms, self.made.profile(terms), None)

    def correct(self) -> None:
        applied = [one for one in self.ledger.batches.values() if one.state in ENDED]
        if not applied:
            return
        pick, corrected = self.chance.choice, self.chance.choice(applied)
        wrong = [row for row in corrected.rows if row.own in ERRORS] or corrected.rows
        kind = pick(wrong).kind
        made = []
        for _ in range(pick((1, 1, 2, 3, 5)) * self.made.worlds):
            text, row = self.made.row(kind, self.made.fault())
            of = [one for one in wrong if one.kind == kind]
            named = pick(of if self.chance.random() < 0.75 else corrected.rows)
            if self.chance.random() < 0.6 and named.key and named.kind == kind and not row.fault:
                # One with the key of the row that it repairs.
                for _ in range(40 * self.made.worlds):
                    if row.key == named.key:
                        break
                    text, row = self.made.row(kind)
            row.parent = pick((named.name, named.name, named.name, ""))
            if self.chance.random() < 0.08:
                row.parent = "999999:1"
            made.append((f"{row.parent},{text}", row))
        path = self.made.file(kind, f"ReconRow,{HEADERS[kind]}", [text for text, _ in made])
        terms = replace(corrected.terms, change_records=self.chance.random() < 0.2)
        self.take([path], [[row for _, row in made]], terms, None, corrected)

    def take(
        self,
        paths: list[str],
        per_file: list[list[Row]],
        terms: Terms,
        profile: Path | None,
        corrected: Batch | None,
    ) -> None:
        for row in (row for rows in per_file for row in rows):
            whose = row.key[0 if row.kind == "avatar" else 1] if _has_tenant(row) else terms.tenant
            row.fault = row.fault or terms.tenant not in (None, whose)
        told = [Path(path).relative_to(self.folder) for path in paths]
        self.log.append(f"import {[*map(str, told)]} {terms} corrects {corrected and corrected.id}")
        if self.chance.random() < self.kills:
            point = self.chance.choice(POINTS)
            number = self.killed(point, paths, terms, profile, corrected)
        else:
            point, number = "", 0
        if not number:
            ended = self.import_(paths, profile, corrected, terms)
            if not ended.new and not point:
                raise _SameBytes
            point, number = "", ended.batch.id
        if number in self.ledger.batches:
            raise _SameBytes
        places = self.extracts(number)
        if len(places) < len(paths):
            raise _SameBytes
        for path, rows in zip(paths, per_file, strict=True):
            for at, row in enumerate(rows, 1):
                row.place = places[Path(path).name], at
        every = sorted((row for rows in per_file for row in rows), key=lambda row: row.place)
        batch = Batch(number, terms, corrected, every)
        self.delivered.append((paths, profile, batch))
        if not point or self.goes_on(batch, point, paths, profile):
            self.ledger.take(batch)

    def import_(
        self, paths: list[str], profile: Path | None, corrected: Batch | None, terms: Terms
    ) -> Any:
        stated = replace(DEFAULT, change_records=terms.change_records)
        if profile is not None:
            stated = load_profile(profile)
        corrects = corrected.id if corrected else None
        return import_delivery(self.workspace, paths, stated, corrects=corrects)

    def extracts(self, batch: int) -> dict[str, int]:
        found = self.ask("SELECT name, id FROM extract WHERE batch_id = %s", [batch])
        return {name.rpartition("/")[2]: number for name, number in found}

    def killed(
        self,
        point: str,
        paths: list[str],
        terms: Terms,
        profile: Path | None,
        corrected: Batch | None,
    ) -> int:
        """Import in a process that is killed there; gives the batch that it opened, if it did."""
        settings = self.workspace.settings
        stated = ["--profile", str(profile)] if profile else []
        stated += ["--corrects", str(corrected.id)] if corrected else []
        stated += ["--change-records"] * terms.change_records
        last = "SELECT coalesce(max(id), 0) FROM batch"
        ((before,),) = self.ask(last)
        limits = {
            "RECON_LIMIT_BLOCK_BYTES": str(settings.limits.block_bytes),
            "RECON_LIMIT_STRICT_BYTES": str(settings.limits.strict_bytes),
            "CRASH_AT": point,
        }
        url, home = str(settings.database_url), settings.home
        ended = run(url, home, "import", *paths, *stated, **limits)
        assert ended.returncode in (-9, 0, 1), (ended.returncode, ended.stderr)
        ((number,),) = self.ask(last)
        self.log.append(f"  killed at {point}: {ended.returncode}, batch {number}")
        return int(number) if number > before else 0

    def goes_on(self, batch: Batch, point: str, paths: list[str], profile: Path | None) -> bool:
        """Go on with what a killed run left, by this or that, perhaps after another delivery.

        Else it is undone.
        """
        ((state,),) = self.ask("SELECT state FROM batch WHERE id = %s", [batch.id])
        ways = ["rerun", "import"]
        if state in ("received", "staged"):
            ways += ["later rerun", "later import"]
        if state not in ("held", *ENDED):
            ways += ["undo"]
        way = self.chance.choice(ways)
        self.log.append(f"  {state}: {way}")
        if way == "undo":
            undo_batch(self.workspace, batch.id, by=None, reason="test")
            self.ledger.batches[batch.id] = batch
            batch.state = "undone"
            self.unread.add(batch.id)
            return False
        if way.startswith("later"):
            kills, self.kills = self.kills, 0.0
            self.deliver()
            self.kills = kills
        if way.endswith("import"):
            self.import_(paths, profile, batch.corrects, batch.terms)
        else:
            run_batch(self.workspace, batch.id)
        return True

    def redeliver(self) -> None:
        if not self.delivered:
            return
        at = self.chance.randrange(len(self.delivered))
        paths, profile, batch = self.delivered[at]
        self.log.append(f"import again what was batch {batch.id}, {batch.state}")
        corrected = batch.corrects
        if not batch.stands and corrected is not None and corrected.state not in ENDED:
            with pytest.raises((CorrectionError, BatchStateError)):
                self.import_(paths, profile, corrected, batch.terms)
            return
        ended = self.import_(paths, profile, corrected, batch.terms)
        assert ended.new != batch.stands, ended.messages
        if batch.stands:
            assert ended.batch.id == batch.id
            return
        before, now = self.extracts(batch.id), self.extracts(ended.batch.id)
        moved = {number: now[name] for name, number in before.items()}
        rows = [
            replace(
                row,
                place=(moved[row.place[0]], row.place[1]),
                verdict="excluded" if row.verdict == "excluded" else "",
                equal=False,
            )
            for row in batch.rows
        ]
        rows.sort(key=lambda row: row.place)
        again = Batch(ended.batch.id, batch.terms, corrected, rows)
        self.ledger.take(again)
        self.delivered[at] = paths, profile, again

    def decide(self) -> None:
        some = [*self.ledger.batches.values()]
        if not some:
            return
        what = self.chance.choice(("undo", "undo", "release", "discard", "rerun"))
        batch = self.chance.choice([one for one in some if one.state == "held"] or some)
        self.log.append(f"{what} {batch.id}, {batch.state}")
        terms: dict[str, Any] = {"by": None, "reason": "test"}
        if what == "rerun":
            if batch.stands:
                run_batch(self.workspace, batch.id)
            return
        act = {"undo": undo_batch, "release": release_batch, "discard": discard_batch}[what]
        why = why_not_undone(self.workspace, batch.id) if what == "undo" and batch.stands else ""
        try:
            getattr(self.ledger, what)(batch)
        except Refused:
            with pytest.raises(BatchStateError):
                act(self.workspace, batch.id, **terms)
            assert why or what != "undo" or not batch.stands
        else:
            assert not why
            done = self.chance.random() < self.kills and self.decided_before(what, batch)
            with suppress(BatchStateError) if done else nullcontext():
                act(self.workspace, batch.id, **terms)

    def decided_before(self, what: str, batch: Batch) -> bool:
        """Decide in a process that is killed; whether that was done: it is said, or goes on."""
        point = self.chance.choice(("undo", "apply", "apply-chunk", "file-written", "file-renamed"))
        settings = self.workspace.settings
        url, home = str(settings.database_url), settings.home
        ended = run(url, home, what, str(batch.id), "--reason", "test", CRASH_AT=point)
        assert ended.returncode in (-9, 0, 1), (ended.returncode, ended.stderr)
        ((state,),) = self.ask("SELECT state FROM batch WHERE id = %s", [batch.id])
        self.log.append(f"  killed at {point}: {ended.returncode}, {state}")
        if what == "release" and state != "held":
            run_batch(self.workspace, batch.id)
            return True
        return state in ("discarded", "undone")

    # What is found.

    def ask(self, statement: str, parameters: Any = None) -> list[tuple[Any, ...]]:
        with self.workspace.database.connect() as connection:
            return connection.execute(statement, parameters).fetchall()

    def compare(self) -> None:
        ledger, of = self.ledger, {"batches": [*self.ledger.batches]}
        read = [one for one in ledger.batches.values() if one.id not in self.unread]
        found, codes = {}, {}
        for *place, state, has_error, merged, error_data in self.ask(
            'SELECT extract_id, record_number, state, "HasError", "Merged", "ErrorData" '
            'FROM insert_batch_data WHERE "BatchId" = ANY(%(batches)s)',
            of,
        ):
            found[tuple(place)] = state
            assert (has_error, merged) == (state in ERRORS, state in APPLIED), (place, state)
            assert has_error == (error_data is not None), (place, state)
            codes[tuple(place)] = [one["ErrorCode"] for one in json.loads(error_data or "[]")]
        expected = {
            row.place: ledger.state(row) if one.stands else one.state
            for one in read
            for row in one.rows
        }
        for one in self.unread:
            expected |= {place: "undone" for place in found if place[0] in self._numbers(one)}
        _same(found, expected, codes)
        records = " UNION ALL ".join(
            f"SELECT extract_id, record_number, '{kind}' FROM {kind} "
            "WHERE batch_id = ANY(%(batches)s)"
            for kind in HEADERS
        )
        wrote = {row.place: kind for (kind, _), row in ledger.target.items()}
        _same({tuple(place): kind for *place, kind in self.ask(records, of)}, wrote, codes)
        with self.workspace.database.connect() as connection:
            assert [*unrepaired(connection, of["batches"])] == []
            listed = {one.id: one for one in list_overview(connection, 50)}
        errors = Counter(row.batch.id for row in self.in_error())
        for one in read:
            states = Counter(map(ledger.state, one.rows))
            assert listed[one.id].rows == len(one.rows)
            assert (listed[one.id].state in ENDED) == (one.state in ENDED), one.id
            if one.state not in ENDED:
                assert listed[one.id].state == one.state
            elif any(states[name] for name in ERRORS):
                assert listed[one.id].state == "complete_with_errors", one.id
            if one.stands:
                assert listed[one.id].errors == errors[one.id], f"errors of {one.id}"
        self.compare_reports(self.chance.sample(read, min(len(read), 2)))

    def _numbers(self, batch: int) -> set[int]:
        return {*self.extracts(batch).values()}

    def compare_reports(self, batches: list[Batch]) -> None:
        for batch in batches:
            report = look(self.workspace, batch.id).report
            assert all(chain.ties for chain in report.chains), f"batch {batch.id} does not tie"
            states: Counter[str] = Counter()
            for chain in report.chains:
                states.update({name: totals.rows for name, totals in chain.states.items()})
            assert +states == Counter(map(self.ledger.state, batch.rows)), f"batch {batch.id}"
            written = self.workspace.settings.reports / f"batch-{batch.id}" / "report.txt"
            assert written.read_text() == render_text(report), f"batch {batch.id}: an old report"
            if batch.stands:
                self.compare_rejects(batch)

    def compare_rejects(self, batch: Batch) -> None:
        folder = self.made.folder()
        names: list[str] = []
        for path in write_rejects(self.workspace, batch.id, folder, with_secrets=True):
            names += re.findall(r"^\d+:\d+(?=,)", path.read_text(), re.MULTILINE)
        offered = [row.name for row in self.offered() if row.batch is batch]
        assert sorted(names) == sorted(offered), f"rejects of {batch.id}: {names}, not {offered}"

    def attempts(self, ends: Any) -> Iterator[tuple[Row, list[list[Row]]]]:
        """By row that was delivered first the attempts at it, those at one record together.

        `ends` says of a repair that it is none to go back over.
        """
        found: dict[Row, dict[Row, list[Row]]] = defaultdict(lambda: defaultdict(list))
        for one in self.ledger.batches.values():
            for row in one.rows if one.stands else ():
                record, above = row, self.ledger.parent(row)
                while above and (higher := self.ledger.parent(above)) and not ends(above):
                    record, above = above, higher
                if above is not None:
                    found[above][record if above.undivided else above].append(row)
        for first, records in found.items():
            yield first, [*records.values()]

    def in_error(self) -> list[Row]:
        """Rows in error, of those that were delivered again the last; none where one is taken."""
        state = self.ledger.state
        standing = (one for one in self.ledger.batches.values() if one.stands)
        wrong = [row for one in standing for row in one.rows if state(row) in ERRORS]
        gone: set[Row] = set()
        for first, records in self.attempts(lambda row: state(row) not in ERRORS):
            for record in records:
                again = [row for row in record if row in wrong]
                taken = state(first) == "corrected"
                if first.undivided:
                    taken = any(map(self.is_taken, record))
                gone.update(again if taken else again[:-1])
                gone.update([first] if again else [])
        return [row for row in wrong if row not in gone]

    def offered(self) -> list[Row]:
        """Rows in error that are to be repaired where they are: by no later attempt, nor taken."""
        state, elsewhere = self.ledger.state, set[Row]()
        for first, records in self.attempts(self.is_good):
            for record in records:
                # What is superseded by a row in error is repaired by the repair of that.
                tried = [row for row in record if self.ledger.repair_state(row) != FOR_NONE]
                by_key = not first.undivided and state(first) == "corrected"
                for row in (first, *record):
                    settled = by_key or any(map(self.is_taken, tried))
                    if settled or any(one.batch.id > row.batch.id for one in tried):
                        elsewhere.add(row)
        standing = (one for one in self.ledger.batches.values() if one.stands)
        rows = [row for one in standing for row in one.rows if state(row) in ERRORS]
        return [row for row in rows if row not in elsewhere]

    def is_taken(self, row: Row) -> bool:
        return row.batch.state in ENDED and self.ledger.repair_state(row) in REPAIRING

    def is_good(self, row: Row) -> bool:
        return self.is_taken(row) and self.ledger.state(row) != "corrected"


def _has_tenant(row: Row) -> bool:
    return row.key is not None and row.kind in ("payment", "currency_rate", "avatar")


def _same(found: dict[Any, str], expected: dict[Any, str], codes: Any) -> None:
    assert found == expected, "".join(
        f"\n{place} is {found.get(place)} {codes.get(place)}, expected {expected.get(place)}"
        for place in sorted({*found, *expected})
        if found.get(place) != expected.get(place)
    )


def test_in_any_order_the_ledger_is_what_the_pages_say(
    workspace: Workspace, tmp_path: Path
) -> None:
    for seed in SEQUENCES:
        one = _Sequence(seed, workspace, tmp_path)
        try:
            for _ in range(one.chance.choice((4, 8, 12) if ALL else (4, 6))):
                one.step()
        except _SameBytes:
            pass
        except BaseException as error:
            raise AssertionError("\n".join((f"--only {seed}", *one.log, str(error)))) from error
