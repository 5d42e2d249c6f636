"""Look into an inbox: take complete deliveries, archive them by content, import each once.

A delivery is moved out of the inbox, opened, archived and noted as waiting. Then its import is
started, and the note is removed once a batch has it. After a crash in between, the next look finds
the delivery back in the inbox, or the note, and starts the import again under the same key. Both
the starter and the ledger recognise the same key and the same content.
"""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Literal, NamedTuple

from connectors.errors import (
    CorrectionError,
    DeliveryError,
    EvidenceBroken,
    ReconError,
    SchemaReplaced,
)
from connectors.files.disk.atomic import room_left
from connectors.files.disk.system_errors import cure
from connectors.files.incoming.arrivals import Arrival, Wait, arrived_at
from connectors.files.incoming.delivery import find_extracts
from connectors.files.incoming.inbox import Displaced, Inbox, Waiting, paths_of
from connectors.postgres.batches import ledger
from connectors.postgres.batches.overview import taken_back
from connectors.printable import shown
from connectors.recovery import reach
from connectors.settings import SETTLE_SECONDS
from flows.stages.receive import refuse_repairs
from flows.stages.receiving.known import (
    batch_of,
    content_id_of,
    contents_of,
    known_remark,
    note_other_names,
    taken_by,
)
from flows.stages.receiving.opened import Opened, open_delivery
from flows.stages.receiving.put_right import PutRight, note_back
from flows.stages.receiving.terms import StatedTerms, terms_taken
from flows.stages.sequence import import_delivery
from flows.stages.workspace import Workspace
from schemas.counting import quantity

log = logging.getLogger("recon.inbox")


Became = Literal[
    "started",
    "started again",
    "waiting",
    "known",
    "quarantined",
    "unfinished",
    "left alone",
    "failed",
]


class Started(NamedTuple):
    """What was started; for an import that has ended already, also its exit code."""

    detail: str
    exit_code: int = 0
    run: int = 0
    """Which run of its key will import it; 0: the import is over, or the ledger continues it."""
    became: Became = "started"
    failed: int = 0
    """How many runs before that one failed or crashed since the delivery."""
    since: datetime | None = None
    """Since when its run has had its present state; after some time somebody has to see to it."""


WHOLE = 100_000
"""More characters than any line of the inbox has."""

Start = Callable[[Waiting], Started]
"""Start the import of an archived delivery, once for each key.

If a run was started before, say how it stands, and start another one if it has ended. Raises
ImportStopped for an import that opened its batch; after any other ReconError it is started again.
"""


class ImportStopped(ReconError):
    """An import opened its batch and then stopped; the ledger has it, and the inbox is done."""


@dataclass(frozen=True, slots=True)
class InboxLine:
    """The outcome for one delivery, or why a file is still in the inbox."""

    name: str
    became: Became
    detail: str = ""
    exit_code: int = 0
    """1 if something about it is left to decide or correct; else 0."""

    @property
    def text(self) -> str:
        """The text for people; further lines are indented and cannot pass for another file's."""
        detail = "\n  ".join(shown(one, WHOLE) for one in self.detail.split("\n"))
        return f"{shown(self.name, WHOLE)}: {self.became}{f', {detail}' if detail else ''}"


@dataclass(frozen=True, slots=True)
class Watch:
    workspace: Workspace
    inbox: Inbox
    terms: StatedTerms
    """The terms on which the imports it starts take a delivery."""
    start: Start
    clock: Callable[[], float] = time.time

    def look(
        self, settle_seconds: float = SETTLE_SECONDS, wait: Wait = time.sleep
    ) -> list[InboxLine]:
        """Take in complete deliveries; raises InboxHeldElsewhere, DeliveryError without an inbox.

        A delivery that no batch has stays noted; the next look starts it or says how its run is.
        """
        with self.inbox.alone():
            lines = [line for one in self.inbox.recover() if (line := self._start_again(one))]
            found = self.inbox.look(settle_seconds, wait)
            lines += [self._take(arrival) for arrival in found.complete]
            lines += [self._displaced(one) for one in self.inbox.displaced()]
            lines += [InboxLine(name, "failed", why, 1) for name, why in found.unreadable.items()]
            now = self.clock()
            lines += [self._waits(name, why, now) for name, why in found.unfinished.items()]
            lines += [InboxLine(name, "left alone", why, 1) for name, why in found.unusable.items()]
            lines += [InboxLine(name, "left alone") for name in found.left_alone]
        for line in lines:
            log.info("%s", line.text)
        return lines

    def _waits(self, name: str, why: str, now: float) -> InboxLine:
        """The line of an incomplete delivery; after some time it asks somebody to see to it."""
        since = arrived_at(self.inbox.folder / name)
        if since is None or not (late := self._late(now - since)):
            return InboxLine(name, "unfinished", why)
        todo = f"{late}: complete it, or take it out of the inbox."
        return InboxLine(name, "unfinished", f"{why}. {todo}", 1)

    def _late(self, waited: float) -> str:
        """How long something has waited, if somebody has to see to it; else an empty text."""
        if waited < self.workspace.settings.limits.inbox_wait_seconds:
            return ""
        hours = int(waited) // 3600
        long = quantity(hours // 24, "day") if hours >= 48 else quantity(hours, "hour")
        return f"It has been so for {long}"

    def _take(self, arrival: Arrival) -> InboxLine:
        """Take one delivery and give its line; its failure does not affect other deliveries."""
        try:
            return self._taken(arrival)
        except (OSError, ReconError) as error:
            # The next look puts back what was already moved.
            return self._failed(arrival.names[0], error)

    def _taken(self, arrival: Arrival) -> InboxLine:
        name = arrival.names[0]
        folder = self.inbox.take(arrival)
        if folder is None:
            return InboxLine(
                name,
                "unfinished",
                "it changed, or a mark or manifest of it came, while it was taken",
            )
        reach("inbox-taken")
        try:
            terms = terms_taken(self.workspace, self.terms)
            paths = paths_of(folder, arrival.names)
            found = find_extracts(paths, self.workspace.settings.limits)
            opened = open_delivery(
                self.workspace, found, terms.profile, self.terms.record, terms.record
            )
        except DeliveryError as error:
            return self._put_aside(folder, arrival.names, error)
        except ReconError:
            self.inbox.put_back(folder)
            raise
        with self.workspace.database.connect() as connection:
            taken = taken_by(connection, terms.profile.feed, opened)
            content_id = content_id_of(terms.profile.feed, opened, taken)
            known = batch_of(connection, content_id, opened, taken)
            if content_id is None:
                return self._put_aside(folder, arrival.names, _refusals(opened))
            # The import will find the good bytes as if the kept copy had never been altered.
            storing = PutRight(connection, opened)
            note_back(connection, self.workspace.settings.archive, opened)
            put_right = storing.note(connection, known.id if known else None)
            remark = ""
            if known is not None:
                note_other_names(connection, opened, taken, known.id)
                given, record = self.terms.profile, self.terms.record or terms.profile.record
                profile = replace(terms.profile, record=record)
                remark = known_remark(connection, known, opened, taken, given, profile)
            elif self.terms.corrects is None:
                try:
                    refuse_repairs(opened)
                except CorrectionError as error:
                    # No later look could import it.
                    return self._put_aside(folder, arrival.names, error)
            reach("inbox-opened")
            gone = taken_back(connection, content_id)
        # Undone, discarded or refused content may come again, and is then a new start.
        before = len(gone) if known is None else sum(gone)
        key = f"{content_id}-{before}" if before else content_id
        if known is not None:
            self.inbox.keep(folder, key, by_name=False)
            detail = f"batch {known.id} took this content and is {known.state.replace('_', ' ')}"
            message = "\n".join([f"{detail}.{remark}" if remark else detail, *put_right])
            return InboxLine(name, "known", message, int(known.state != ledger.State.COMPLETE))
        place, files = self.inbox.place_of(key, arrival.names), tuple(contents_of(opened))
        waiting = Waiting(key, place, arrival.names, files)
        self.inbox.mark(waiting)
        reach("inbox-marked")
        self.inbox.keep(folder, key)
        reach("inbox-archived")
        line = self._start(waiting)
        return replace(line, detail="\n".join(filter(None, (line.detail, *put_right))))

    def _displaced(self, one: Displaced) -> InboxLine:
        if one.trouble is None:
            return InboxLine(one.name, "quarantined", f"{one.place}: {one.why}", 1)
        failed = self._failed(one.name, one.trouble)
        return replace(failed, detail=f"{one.place}: {one.why} {failed.detail}")

    def _put_aside(self, folder: Path, names: Sequence[str], reason: object) -> InboxLine:
        # The text names the file's temporary place, which helps nobody.
        why = str(reason).replace(f"{folder}/", "").replace(str(folder), names[0])
        aside = self.inbox.put_aside(folder, names, why)
        reach("inbox-quarantined")
        return InboxLine(names[0], "quarantined", f"{aside}: {why}", 1)

    def _start_again(self, waiting: Waiting) -> InboxLine | None:
        """Start what no batch has, unless its run is pending; None if that run opened a batch."""
        try:
            with self.workspace.database.connect() as connection:
                since = taken_back(connection, waiting.content_id)[waiting.batches_before :]
                known = bool(since) or (
                    waiting.files
                    and {*waiting.files}
                    == {*ledger.find_extracts(connection, self.terms.profile.feed, waiting.files)}
                )
        except (OSError, ReconError) as error:
            return self._failed(waiting.names[0], error)
        is_over = bool(since) and all(since)
        if not is_over and not (waiting.run and known):
            return self._start(waiting)
        self.inbox.unmark(waiting.key)
        if not is_over:
            return None
        message = (
            "its batch was undone or discarded, or refused it, and it is not imported again by "
            f"itself: to have it imported, deliver it again. It is kept in {waiting.folder}."
        )
        return InboxLine(waiting.names[0], "known", message)

    def _start(self, waiting: Waiting) -> InboxLine:
        try:
            started = self.start(waiting)
        except ImportStopped as stopped:
            started = Started(str(stopped), 1, became="failed")
        except EvidenceBroken as changed:
            # The sender went on writing; no later look would find the content as it was taken.
            line = self._put_aside(waiting.folder, waiting.names, changed)
            self.inbox.unmark(waiting.key)
            return line
        except (OSError, ReconError) as error:
            return self._failed(waiting.names[0], error)
        reach("inbox-started")
        try:
            if not started.run:
                self.inbox.unmark(waiting.key)
            elif started.run != waiting.run:
                self.inbox.mark(replace(waiting, run=started.run, failed=started.failed))
        except (OSError, ReconError) as error:
            return self._failed(waiting.names[0], error)
        detail, code = started.detail, started.exit_code
        if started.since and (late := self._late(self.clock() - started.since.timestamp())):
            detail, code = f"{detail}. {late}: see whether a worker takes its runs.", 1
        return InboxLine(waiting.names[0], started.became, detail, code)

    def _failed(self, name: str, error: OSError | ReconError) -> InboxLine:
        if isinstance(error, SchemaReplaced):
            raise error  # A later look of this program would fail the same way.
        message = str(error)
        if isinstance(error, OSError):
            place = Path(error.filename or self.inbox.folder)
            why = f"{error.strerror}.{room_left(place, error)}"
            message = f"{shown(str(place))}: {why} {cure(error)}; it is left for the next look."
        return InboxLine(name, "failed", message, 1)


def import_here(workspace: Workspace, terms: StatedTerms) -> Start:
    """Import in this process: the stages one after another, to the end of the batch."""

    def start(waiting: Waiting) -> Started:
        content_id = waiting.content_id
        try:
            ended = import_delivery(
                workspace,
                waiting.paths,
                terms.profile,
                record=terms.record,
                corrects=terms.corrects,
                files_hash=waiting.files_hash,
            )
        except (OSError, ReconError) as error:
            with workspace.database.connect() as connection:
                opened = ledger.find_content(connection, content_id)
                since = taken_back(connection, content_id)[waiting.batches_before :]
            if opened is None or opened.state in ledger.ENDED or not since:
                raise  # Only the note knows of the delivery; the batch is an earlier one's.
            raise ImportStopped(f"batch {opened.id} stopped as {opened.state}: {error}") from error
        text = f"batch {ended.batch.id}: {ended.batch.state.replace('_', ' ')}"
        return Started(text, ended.exit_code)

    return start


def _refusals(opened: list[Opened]) -> str:
    reasons = [f"{one.refusal.code}: {one.refusal}" for one in opened if one.refusal is not None]
    return "\n".join(reasons) + "\nCorrect the file and put it into the inbox again."
