"""Examine: validate files without any database, as producers do before they deliver."""

import json
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from connectors.errors import CleanRowsBroken, ExtractRefused
from connectors.files.chunk import Chunk
from connectors.files.content import open_content
from connectors.files.delivery import find_extracts
from connectors.files.manifest import incomplete, read_manifests
from connectors.files.profile import Profile
from connectors.files.reader import first_place, read_chunks
from connectors.settings import Settings
from flows.stages.receive import Opened, open_extract
from flows.stages.small_files import (
    SMALL_BYTES,
    SmallFile,
    WaitingFiles,
    is_plain,
    is_simple,
    single,
    validate_together,
)
from flows.stages.stated import TotalsRead, is_added, tied, totals_read, unread_of
from flows.stages.validate_chunk import validate_chunk
from flows.stages.workspace import Progress, silent
from flows.steps.secrets import shown_record
from flows.steps.validate.chunk import EXCLUDED, Validated
from flows.steps.validate.references import References, Unsettled, reference_error
from flows.steps.validate.repeats import Repeats, conflict_error
from schemas.derived.pandera_schemas import SchemaBroken
from schemas.field import Reference
from schemas.tables import EXTRACTS

ROW = ("record_number", "first_line", "last_line", "data", "error_data")


@dataclass(frozen=True, slots=True)
class Reject:
    """One row that would carry HasError."""

    record_number: int
    line: int
    last_line: int
    data: str
    errors: list[dict[str, Any]]


@dataclass(slots=True)
class FileVerdict:
    """What became of one file."""

    name: str
    record: str | None = None
    rows_in: int = 0
    excluded: int = 0
    """Rows that the feed profile leaves out."""
    valueless: int = 0
    """Lines that become no row, because none of their cells that is one holds a value."""
    comments: int = 0
    """Lines that are no row, because they begin as the feed begins comments."""
    refused: str | None = None
    message: str | None = None
    rejects: list[Reject] = field(default_factory=list)
    unsettled: list[Unsettled] = field(default_factory=list)
    """References that only a database could answer."""

    def refuse(self, refusal: ExtractRefused) -> None:
        """The file as a whole cannot be taken; what was read of it does not count."""
        self.refused, self.message = refusal.code, str(refusal)
        self.rows_in, self.excluded, self.valueless, self.comments = 0, 0, 0, 0
        self.rejects, self.unsettled = [], []

    def as_json(self) -> dict[str, Any]:
        """The shape `recon check --json` prints."""
        return {
            "name": self.name,
            "record": self.record,
            "rows_in": self.rows_in,
            "rejected": len(self.rejects),
            "excluded": self.excluded,
            "valueless": self.valueless,
            "comments": self.comments,
            "refused": self.refused,
            "message": self.message,
            "unsettled": [one._asdict() for one in self.unsettled],
            "rejects": [
                {name: getattr(reject, name) for name in Reject.__slots__}
                for reject in self.rejects
            ],
        }


def examine(
    settings: Settings,
    paths: Sequence[str],
    profile: Profile,
    *,
    record: str | None = None,
    progress: Progress = silent,
    look: Callable[[Opened], None] | None = None,
) -> list[FileVerdict]:
    """The verdict on every file of a delivery; nothing is kept and no database is asked.

    Repeated and conflicting keys are found over the whole delivery. References that it does not
    answer itself may lead to what a database knows, so they are counted as unsettled; of a feed
    whose deliveries are complete in themselves they are errors. `look` is given every file while
    its content is there.
    """
    delivery = find_extracts(paths, settings.limits)
    statement = read_manifests(delivery)
    gaps = {gap.name: gap.refusal for gap in statement.gaps}
    with tempfile.TemporaryDirectory(prefix="recon-check-") as folder:
        last_wins = profile.duplicate == "last_wins"
        run = _Examination(settings, profile, Repeats(last_wins), References(last_wins))
        for number, source in enumerate(delivery.sources):
            progress("check", number, len(delivery.sources))
            entry = statement.entries.get(source.name)
            opened = open_extract(
                source, settings, Path(folder), profile, record, entry=entry, lasting=False
            )
            if look:
                look(opened)
            gap = gaps.pop(source.name, None)
            run.take(replace(opened, refusal=gap) if gap and not opened.refusal else opened)
        run.read_waiting()
        run.settle_references(run.settle_conflicts())
    for name, refusal in gaps.items():
        run.take(Opened(name, refusal=refusal))
    progress("check", len(delivery.sources), len(delivery.sources))
    return run.verdicts


@dataclass(slots=True)
class _Examination:
    settings: Settings
    profile: Profile
    repeats: Repeats
    references: References
    opened: list[Opened] = field(default_factory=list)
    verdicts: list[FileVerdict] = field(default_factory=list)
    waiting: WaitingFiles = field(default_factory=WaitingFiles)

    def take(self, opened: Opened) -> None:
        """Validate one file, rows and manifest."""
        number = len(self.opened)
        self.opened.append(opened)
        verdict = FileVerdict(opened.name)
        self.verdicts.append(verdict)
        if opened.refusal is not None:
            verdict.refuse(opened.refusal)
            return
        assert opened.header is not None
        verdict.record = opened.header.table.name
        if (small := self._small(number)) is None:
            self._read(number)
            return
        self.waiting.add(small)
        if self.waiting.are_many:
            self.read_waiting()

    def _small(self, number: int) -> SmallFile | None:
        """The file, where it is small and plain and nothing is stated of its rows."""
        opened = self.opened[number]
        assert opened.stored is not None
        assert opened.header is not None
        if opened.entry is not None or opened.stored.bytes > SMALL_BYTES:
            return None
        if not is_plain(opened.header, self.profile):
            return None
        chunk = single(self._chunks(number))
        if chunk is None or not is_simple(chunk):
            return None
        return SmallFile(number, opened.header, chunk)

    def read_waiting(self) -> None:
        """Validate the small files that wait for others like them."""
        for files in self.waiting.take():
            try:
                clean, rows, left = validate_together(files, self.profile)
            except SchemaBroken:
                clean, rows, left = [], pl.DataFrame(), files  # By itself, its file is named.
            for one in clean:
                self.verdicts[one.number].rows_in = one.chunk.height
            if clean:
                self.repeats.add(clean[0].header.table, rows)
                self.references.add(clean[0].header.table, rows)
            for one in left:
                self._read(one.number)

    def _read(self, number: int) -> None:
        """Validate the rows of one file, and hold them against what is stated of them."""
        opened, verdict = self.opened[number], self.verdicts[number]
        parts: list[TotalsRead] = []
        unread = 0
        for chunk, validated in self._validated(number):
            verdict.valueless += chunk.valueless.lines
            verdict.comments += chunk.comments.lines
            for name, staged in validated.rows.items():
                verdict.rows_in += staged.height
                bad = staged.filter(pl.col("error_data").is_not_null())
                if opened.entry is not None:
                    left = staged["record_number"].is_in(validated.excluded)
                    left &= is_added(EXCLUDED, self.profile)
                    unread += unread_of(
                        opened.entry, EXTRACTS[name], bad.vstack(staged.filter(left))
                    )
                verdict.rejects += [_reject(name, row) for row in bad.select(ROW).iter_rows()]
                taken = validated.taken(staged)
                self.repeats.add(EXTRACTS[name], taken)
                self.references.add(EXTRACTS[name], taken)
            verdict.excluded += len(validated.excluded)
            parts += totals_read(validated.totals)
        verdict.rejects.sort(key=lambda reject: reject.record_number)
        if verdict.rows_in == 0:
            verdict.message = f"{opened.name}: 0 rows, a header but no record."
        if opened.entry is not None:
            assert verdict.record is not None
            found = tied(opened.entry, parts, self.profile, verdict.record, unread)
            if found.is_refused:
                verdict.refuse(incomplete(opened.entry, opened.name, found.details))
            elif found.unproven:
                told = f"It cannot be proven to be whole: {found.unproven}"
                verdict.message = f"{opened.name}: {told}. An import of it is held."

    def settle_conflicts(self) -> pl.DataFrame:
        """Add the rows whose keys conflict; gives their places."""
        found = self.repeats.conflicts(self._refused())
        places = [(one.extract, one.record_number) for one in found]
        self._reject(dict.fromkeys(places, conflict_error))
        schema = {"extract_id": pl.Int32, "record_number": pl.Int64}
        return pl.DataFrame(places, schema=schema, orient="row")

    def settle_references(self, conflicts: pl.DataFrame) -> None:
        """Add the rows with a reference that leads nowhere, or count them as unsettled."""
        complete = self.profile.complete
        rejected = complete or self.profile.reference == "reject"
        wrong: dict[tuple[int, int], Callable[[str, Mapping[str, Any]], str]] = {}
        for table, reference, found in self.references.dangling(
            conflicts, self._refused(), rejected=rejected
        ):
            if complete:
                for extract, number, value, code in found.iter_rows():
                    error = partial(_reference_error, reference, code, value)
                    wrong.setdefault((extract, number), error)
            else:
                for (extract,), rows in found.group_by("extract_id", maintain_order=True):
                    values = rows["value"].n_unique()
                    told = Unsettled(
                        table.name, reference.field, reference.table, rows.height, values
                    )
                    self.verdicts[extract].unsettled.append(told)
        self._reject(wrong)

    def _refused(self) -> list[int]:
        """Files that are not taken, some of which are known to be once they were read."""
        return [number for number, one in enumerate(self.verdicts) if one.refused]

    def _reject(
        self, wrong: Mapping[tuple[int, int], Callable[[str, Mapping[str, Any]], str]]
    ) -> None:
        """Add rows that are wrong in the delivery as a whole; their text is read again."""
        wanted: dict[int, list[int]] = defaultdict(list)
        for extract, record_number in wrong:
            wanted[extract].append(record_number)
        for number, records in wanted.items():
            verdict = self.verdicts[number]
            if verdict.refused:
                continue
            for _, validated in self._validated(number):
                for name, staged in validated.rows.items():
                    found = staged.filter(pl.col("record_number").is_in(records))
                    for row in found.iter_rows(named=True):
                        error = wrong[number, row["record_number"]](name, row)
                        verdict.rejects.append(_reject(name, (*(row[n] for n in ROW[:4]), error)))
            verdict.rejects.sort(key=lambda reject: reject.record_number)

    def _chunks(self, number: int) -> Iterator[Chunk]:
        opened = self.opened[number]
        assert opened.stored is not None
        assert opened.header is not None
        content = open_content(
            opened.stored.path, self.profile.encoding, name=opened.name, sheet=self.profile.sheet
        )
        place, size = first_place(opened.header), self.settings.limits.block_bytes
        return read_chunks(content, opened.header, place, size)

    def _validated(self, number: int) -> Iterator[tuple[Chunk, Validated]]:
        opened = self.opened[number]
        header = opened.header
        assert header is not None
        for chunk in self._chunks(number):
            try:
                validated = validate_chunk(chunk, header, self.profile, 0, number)
            except SchemaBroken as broken:
                raise CleanRowsBroken(
                    f"{opened.name}: {broken} This is a fault of the program, not of the file. "
                    "Report it; nothing was kept and nothing changed."
                ) from None
            yield chunk, validated


def _reference_error(
    reference: Reference, code: str, value: int, record: str, row: Mapping[str, Any]
) -> str:
    assert reference in EXTRACTS[record].references
    return reference_error(reference, code, value, row["first_line"])


def _reject(record: str, row: tuple[Any, ...]) -> Reject:
    record_number, first_line, last_line, data, error_data = row
    text = shown_record(EXTRACTS[record], data)
    return Reject(record_number, first_line, last_line, text, json.loads(error_data))
