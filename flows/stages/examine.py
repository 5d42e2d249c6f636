"""Examine: judge files without any database, as producers do before they deliver."""

import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from connectors.extracts.content import open_content
from connectors.extracts.delivery import Source, find_extracts
from connectors.extracts.profile import Profile
from connectors.extracts.reader import Chunk, first_place, read_chunks
from connectors.settings import Settings
from flows.stages.receive import Opened, open_extract
from flows.stages.stage import judge_chunk, writing_of
from flows.stages.workspace import Progress, silent
from flows.steps.repeats import Repeats
from schemas.tables import EXTRACTS


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
    refused: str | None = None
    message: str | None = None
    rejects: list[Reject] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """The shape `recon check --json` prints."""
        return {
            "name": self.name,
            "record": self.record,
            "rows_in": self.rows_in,
            "rejected": len(self.rejects),
            "refused": self.refused,
            "message": self.message,
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
) -> list[FileVerdict]:
    """The verdict on every file of a delivery; nothing is kept and no database is asked.

    Repeated and conflicting keys are found over the whole delivery; references are not, because
    they may lead to what a database knows.
    """
    delivery = find_extracts(paths, settings.limits)
    repeats = Repeats(last_wins=profile.duplicate == "last_wins")
    verdicts: list[FileVerdict] = []
    with tempfile.TemporaryDirectory(prefix="recon-check-") as folder:
        for number, source in enumerate(delivery.sources):
            progress("check", number, len(delivery.sources))
            verdicts.append(
                _examine_file(number, source, settings, Path(folder), profile, record, repeats)
            )
    progress("check", len(delivery.sources), len(delivery.sources))
    for conflict in repeats.conflicts():
        verdicts[conflict.extract].rejects.append(
            Reject(
                conflict.record_number,
                conflict.first_line,
                conflict.last_line,
                conflict.data,
                json.loads(conflict.error_data),
            )
        )
    for verdict in verdicts:
        verdict.rejects.sort(key=lambda reject: reject.record_number)
    return verdicts


def _examine_file(
    number: int,
    source: Source,
    settings: Settings,
    folder: Path,
    profile: Profile,
    record: str | None,
    repeats: Repeats,
) -> FileVerdict:
    opened = open_extract(source, settings, folder, profile, record)
    if opened.refusal or not opened.stored or not opened.header:
        refusal = opened.refusal
        assert refusal is not None
        return FileVerdict(opened.name, refused=refusal.code, message=str(refusal))
    verdict = FileVerdict(opened.name, opened.header.table.name)
    for chunk, rows in _judged(number, opened, settings, profile):
        verdict.rows_in += chunk.height
        for name, staged in rows.items():
            verdict.rejects += _rejects(staged)
            repeats.add(EXTRACTS[name], staged)
    if verdict.rows_in == 0:
        verdict.message = f"{opened.name}: 0 rows, a header but no record."
    opened.stored.path.unlink(missing_ok=True)
    return verdict


def _judged(
    number: int, opened: Opened, settings: Settings, profile: Profile
) -> Iterator[tuple[Chunk, dict[str, pl.DataFrame]]]:
    assert opened.stored is not None
    assert opened.header is not None
    header, writing = opened.header, writing_of(profile)
    content = open_content(opened.stored.path, profile.encoding, name=opened.name)
    for chunk in read_chunks(content, header, first_place(header), settings.limits.block_bytes):
        yield chunk, judge_chunk(chunk, header, profile, writing, 0, number).rows


def _rejects(staged: pl.DataFrame) -> Iterator[Reject]:
    columns = ("record_number", "first_line", "last_line", "data", "error_data")
    bad = staged.filter(pl.col("error_data").is_not_null()).select(columns)
    for record_number, first_line, last_line, data, error_data in bad.iter_rows():
        yield Reject(record_number, first_line, last_line, data, json.loads(error_data))
