"""Examine: validate files without any database, as producers do before they deliver."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import polars as pl
from numpy.typing import NDArray

from connectors.errors import CleanRowsBroken
from connectors.files.chunks.chunk import Chunk
from connectors.files.chunks.reader import first_place, read_chunks
from connectors.files.disk.scratch import scratch_folder
from connectors.files.incoming.delivery import find_extracts
from connectors.files.incoming.manifest import incomplete
from connectors.files.layout.header import Header
from connectors.files.profiles.profile import Profile
from connectors.settings import Settings
from flows.stages.chunks.small_files import (
    SMALL_BYTES,
    SmallFile,
    WaitingFiles,
    is_plain,
    is_simple,
    single,
    validate_together,
)
from flows.stages.chunks.split_chunk import SplitChunk, is_compact, split_chunk
from flows.stages.chunks.validate_chunk import validate_chunk
from flows.stages.comparing.currency_names import Names, currency_names
from flows.stages.examining.delivery_rows import DeliveryRows
from flows.stages.examining.verdicts import ROW, FileVerdict, Rejects
from flows.stages.held import left_blank
from flows.stages.receiving.opened import Opened, each_opened
from flows.stages.receiving.stated import TotalsRead, tied
from flows.stages.workspace import Progress, keep_compiled, silent
from flows.steps.secrets import shown_records
from flows.steps.validate.chunk import Validated
from flows.steps.validate.frame_totals import totals_of_millionths
from flows.steps.validate.references import CODE, Unsettled, reference_errors
from flows.steps.validate.repeats import CONFLICT, conflict_errors, extract_of, record_of
from flows.steps.validate.states import READY
from schemas.derived.pandera_schemas import SchemaBroken
from schemas.field import Reference, Table
from schemas.tables import EXTRACTS

WORTH_LOADED, WORTH_MADE = 8, 1024
"""Multiples of `Limits.strict_bytes`. Less than that is validated before compiled loops would be
loaded, or made where there are none yet, as in each CI run of a producer."""
AT_ONCE = 2048
"""Rejects of a chunk that are shown at a time, each with all its reasons."""


def examine(
    settings: Settings,
    paths: Sequence[str],
    profile: Profile,
    *,
    record: str | None = None,
    progress: Progress = silent,
    look: Callable[[Opened], None] | None = None,
    most: int | None = None,
) -> list[FileVerdict]:
    """The verdict on every file of a delivery; nothing is kept and no database is asked.

    Repeated and conflicting keys are found across the whole delivery. References that the delivery
    does not answer may lead to records in a database, so they count as unsettled; they are errors
    in a feed whose deliveries are complete. `look` is called with every file while its content is
    there. All rejects are counted; the first `most` of each file are kept, or all if None.
    """
    delivery = find_extracts(paths, settings.limits)
    with scratch_folder() as folder:
        rows = DeliveryRows(
            profile.duplicate == "last_wins", profile.merges, settings.limits.check_bytes
        )
        run = _Examination(settings, profile, most, rows)
        for opened in each_opened(
            settings,
            delivery,
            profile,
            (record,),
            archive=folder,
            lasting=False,
            progress=partial(progress, "check"),
        ):
            if look:
                look(opened)
            run.take(opened)
        run.read_waiting()
        run.settle()
    first = run.verdicts[0]
    first.remarks += delivery.remarks
    return run.verdicts


@dataclass(frozen=True, slots=True)
class Way:
    """A way in which a row is wrong within the delivery as a whole."""

    code: str
    reference: Reference | None = None

    def error_data(self, record: str, rows: pl.DataFrame) -> pl.Series:
        """ErrorData of staged rows that are wrong in this way, as an import words it."""
        if self.reference is None:
            return conflict_errors(EXTRACTS[record], self.code, rows)
        assert self.reference in EXTRACTS[record].references
        return reference_errors(self.reference, self.code, rows)


@dataclass(slots=True)
class _Examination:
    settings: Settings
    profile: Profile
    most: int | None
    rows: DeliveryRows
    opened: list[Opened] = field(default_factory=list)
    verdicts: list[FileVerdict] = field(default_factory=list)
    waiting: WaitingFiles = field(default_factory=WaitingFiles)
    bytes_read: int = 0
    """Bytes of the files up to the one being read."""
    numbers: dict[int, int] = field(default_factory=dict)
    """By file: a number above those of all its records."""
    wrong: dict[int, NDArray[np.uint8]] = field(default_factory=dict)
    """By file and record number, from 0 on: the number in `ways`, from 1 on, of a row's fault."""
    ways: list[Way] = field(default_factory=list)
    names: dict[int, Names] = field(default_factory=dict)
    """By file: the codes of its records' currencies."""

    def take(self, opened: Opened) -> None:
        """Validate one file, rows and manifest."""
        number = len(self.opened)
        self.opened.append(opened)
        verdict = FileVerdict(opened.name, remarks=opened.remarks, rejects=Rejects(self.most))
        self.verdicts.append(verdict)
        if opened.refusal is not None:
            verdict.refuse(opened.refusal)
            return
        assert opened.header is not None
        verdict.record = opened.header.table.name
        if opened.same_as is not None:
            verdict.message = opened.same_bytes_message
            return
        verdict.headed = opened.header.carried is not None
        if (small := self._small(number)) is None:
            self._read(number)
            return
        self.waiting.add(small)
        if self.waiting.are_many:
            self.read_waiting()

    def _small(self, number: int) -> SmallFile | None:
        """The file as a small one, if it is small and plain and no manifest describes its rows."""
        opened = self.opened[number]
        assert opened.stored is not None
        if opened.entry is not None or opened.stored.bytes > SMALL_BYTES:
            return None
        header = self._header(number)
        if not is_plain(header, self.profile):
            return None
        chunk = single(self._chunks(number))
        if chunk is None or chunk.other_header or not is_simple(chunk):
            return None
        return SmallFile(number, header, chunk)

    def read_waiting(self) -> None:
        """Validate the small files that wait for others like them."""
        for files in self.waiting.take():
            try:
                clean, rows, left = validate_together(files, self.profile)
            except SchemaBroken:
                clean, rows, left = [], pl.DataFrame(), files  # By itself, an error names its file.
            for one in clean:
                self.verdicts[one.number].rows_in = one.chunk.height
                self.numbers[one.number] = one.chunk.end.record
            if clean:
                self.rows.add(clean[0].header.table, rows)
            for one in left:
                self._read(one.number)

    def _read(self, number: int) -> None:
        """Validate the rows of one file, and compare them with its manifest."""
        opened, verdict = self.opened[number], self.verdicts[number]
        assert opened.stored is not None
        table = self._header(number).table
        self.bytes_read += opened.stored.bytes
        parts: list[TotalsRead] = []
        last = 1
        for chunk in self._chunks(number):
            last = chunk.end.record
            if chunk.other_header:
                verdict.refuse(chunk.other_header.refusal(opened.name))
                break
            split = self._split(number, chunk)
            validated = self._validated(number, split.rest) if split.rest.height else Validated()
            if split.fast is not None:
                verdict.rows_in += split.fast.height
                self.rows.add(table, split.fast)
                if opened.entry is not None:
                    totals = totals_of_millionths(table, split.fast)
                    parts.append({table.name: {READY: totals}})
            verdict.valueless = verdict.valueless.with_more(chunk.valueless)
            verdict.comments = verdict.comments.with_more(chunk.comments)
            for name, staged in validated.rows.items():
                verdict.rows_in += staged.frame.height
                clean = staged.frame.filter(staged.clean)
                self.rows.add(EXTRACTS[name], validated.taken(clean))
            _keep_rejects(verdict.rejects, validated)
            verdict.excluded += len(validated.excluded)
            verdict.left_blank += left_blank(validated.left_out, self.profile)
            verdict.merged += len(validated.superseded)
            parts.append(validated.totals)
        self.numbers[number] = last
        if verdict.refused:
            return
        if verdict.rows_in == 0:
            verdict.message = f"{opened.name}: 0 rows, a header but no record."
        if opened.entry is not None:
            found = tied(opened.entry, parts, self.profile, table.name)
            if found.is_refused:
                verdict.refuse(incomplete(opened.entry, opened.name, found.details))
            elif found.unproven:
                verdict.unproven = found.unproven
                reason = f"It cannot be proven to be whole: {found.unproven}"
                verdict.message = f"{opened.name}: {reason}. An import of it is held."

    def settle(self) -> None:
        """Reject rows whose keys conflict, or whose reference leads nowhere."""
        # Files that are not taken; for some that is known only after reading them.
        refused = [number for number, one in enumerate(self.verdicts) if one.refused]
        for rows in self.rows.conflicts(refused):
            for (differ,), of in rows.group_by(CONFLICT):
                self._note(of, Way("ConflictingKey" if differ else "EqualRows"))
        for number, count in self.rows.superseded.items():
            self.verdicts[number].superseded = count
        complete = self.profile.complete
        rejected = complete or self.profile.reference == "reject"
        unsettled: dict[tuple[Table, Reference, int], list[int]] = {}
        for one in self.rows.dangling(rejected=rejected):
            if complete:
                for (code,), rows in one.rows.group_by(CODE):
                    self._note(rows, Way(str(code), one.reference))
                continue
            for counted, of in enumerate((one.rows.select(extract_of()), one.values)):
                for extract, count in of.group_by("extract_id").len().iter_rows():
                    of_file = unsettled.setdefault((one.table, one.reference, extract), [0, 0])
                    of_file[counted] += count
        for (table, reference, extract), (rows_, values) in unsettled.items():
            finding = Unsettled(table.name, reference.field, reference.table, rows_, values)
            self.verdicts[extract].unsettled.append(finding)
        for number, wrong in self.wrong.items():
            if not self.verdicts[number].refused and wrong.any():
                self._reject(number, wrong)

    def _header(self, number: int) -> Header:
        header = self.opened[number].header
        assert header is not None
        return header

    def _note(self, rows: pl.DataFrame, way: Way) -> None:
        """Note how rows are wrong, unless they are already noted as wrong in another way."""
        if way not in self.ways:
            self.ways.append(way)
        mark = self.ways.index(way) + 1
        for (extract,), of in rows.group_by(extract_of()):
            if extract not in self.wrong:
                self.wrong[extract] = np.zeros(self.numbers[extract], np.uint8)
            wrong, numbers = self.wrong[extract], of.select(record_of()).to_series().to_numpy()
            wrong[numbers[wrong[numbers] == 0]] = mark

    def _reject(self, number: int, wrong: NDArray[np.uint8]) -> None:
        """Add rows of a file that are wrong in the delivery as a whole, by reading them again."""
        rejects = self.verdicts[number].rejects
        rejects.count(int(np.count_nonzero(wrong)))
        for chunk in self._chunks(number):
            if not rejects.wanted(1, settled=True):
                break
            chosen = wrong[chunk.numbers] > 0
            wanted = rejects.wanted(int(np.count_nonzero(chosen)), settled=True)
            if not wanted:
                continue
            some = chunk.only(chosen)
            found = []
            for name, staged in self._validated(number, some).rows.items():
                numbers = staged.frame["record_number"].to_numpy()
                rows = staged.frame.filter(pl.Series(wrong[numbers] > 0))
                of = wrong[rows["record_number"].to_numpy()]
                for way in np.unique(of).tolist():
                    one = rows.filter(pl.Series(of == way))
                    found.append(_displayed(name, one, self.ways[way - 1].error_data(name, one)))
            rejects.add(pl.concat(found).sort("record_number").head(wanted), settled=True)

    def _chunks(self, number: int) -> Iterator[Chunk]:
        header, size = self._header(number), self.settings.limits.block_bytes
        content = self.opened[number].content(self.profile)
        return read_chunks(content, header, first_place(header), size)

    def _split(self, number: int, chunk: Chunk) -> SplitChunk:
        header, strict = self._header(number), self.settings.limits.strict_bytes
        if chunk.records.consumed <= strict or not is_compact(chunk, header):
            return SplitChunk(None, chunk)
        worth = WORTH_LOADED if keep_compiled(self.settings) else WORTH_MADE
        if self.bytes_read <= worth * strict:
            return SplitChunk(None, chunk)
        with self._named(number):
            return split_chunk(chunk, header, self.profile, 0, number, self._names(number))

    def _validated(self, number: int, chunk: Chunk) -> Validated:
        header = self._header(number)
        with self._named(number):
            names = self._names(number)
            return validate_chunk(chunk, header, self.profile, 0, number, names=names)

    def _names(self, number: int) -> Names:
        if number not in self.names:
            header = self._header(number)
            self.names[number] = currency_names(self.settings, header, self.profile)
        return self.names[number]

    @contextmanager
    def _named(self, number: int) -> Iterator[None]:
        """Raise CleanRowsBroken, which names the file, if clean rows break their schema."""
        try:
            yield
        except SchemaBroken as broken:
            raise CleanRowsBroken(
                f"{self.opened[number].name}: {broken} This is a fault of the program, not of the "
                "file. Report it; nothing was kept and nothing changed."
            ) from None


def _keep_rejects(rejects: Rejects, validated: Validated) -> None:
    """Count the rejects of a chunk, and keep those that are wanted, in the file's order."""
    bad = {
        name: staged.only(~staged.clean) for name, staged in validated.rows.items() if staged.errors
    }
    if not bad:
        return
    numbers = pl.concat(staged.frame["record_number"] for staged in bad.values()).sort()
    rejects.count(len(numbers))
    numbers = numbers.head(rejects.wanted(len(numbers), settled=False))
    for first in range(0, len(numbers), AT_ONCE):
        piece = numbers.slice(first, AT_ONCE)
        found = [
            _displayed(name, rows, rows["error_data"])
            for name, staged in bad.items()
            for rows in staged.only(
                staged.frame["record_number"].is_between(piece[0], piece[-1])
            ).pieces()
        ]
        rejects.add(pl.concat(found).sort("record_number"), settled=False)


def _displayed(record: str, rows: pl.DataFrame, error_data: pl.Series) -> pl.DataFrame:
    """Staged rows as commands show them, with their ErrorData."""
    data = shown_records(EXTRACTS[record], rows["data"])
    return rows.with_columns(data, error_data.alias("error_data")).select(ROW)
