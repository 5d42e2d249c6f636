"""Texts of rows that were staged by reference, read again from the archived file."""

from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any

import psycopg

from connectors.files.archived.passages import Passages
from connectors.files.text.content import Content
from connectors.postgres.batches import ledger
from connectors.postgres.batches.findings import RejectedRow
from flows.stages.receiving.kept import cleared_of, open_extract_kept, removed_remedy
from flows.stages.receiving.terms import restored_profile
from flows.stages.workspace import Workspace


class RowTexts:
    """The delivered texts of several batches, by extract and place."""

    def __init__(
        self,
        workspace: Workspace,
        connection: psycopg.Connection,
        batches: Iterable[int],
        *,
        without: Container[int] = (),
    ) -> None:
        """`without` are extracts whose texts are not needed."""
        self._contents: dict[int, Content] = {}
        self._passages = Passages()
        self._removed: dict[int, str] = {}
        for batch_id in batches:
            profile = restored_profile(ledger.find_batch(connection, batch_id))
            if profile.keep != "reference":
                continue
            extracts = ledger.list_extracts(connection, batch_id)
            cleared = cleared_of(workspace, extracts)
            for extract in extracts:
                if extract.refused is not None or extract.id in without:
                    continue
                if extract.sha256 in cleared:
                    self._removed[extract.id] = removed_remedy(extract)
                else:
                    self._contents[extract.id] = open_extract_kept(workspace, extract, profile)

    def at(self, extract_id: int, start: int, end: int) -> str | None:
        """The text from byte `start` to `end`; None if housekeeping removed its file."""
        content = self._contents.get(extract_id)
        if content is None:
            return None
        return self._passages.read(content, start, end).decode(content.encoding)

    def why_removed(self, extract_id: int) -> list[str]:
        """Why the file of a row is missing, and what to do; empty if it is there."""
        return [self._removed[extract_id]] if extract_id in self._removed else []

    def filled(self, rows: Iterable[RejectedRow]) -> Iterator[RejectedRow]:
        for row in rows:
            if row.data is None:
                text = self.at(row.extract_id, row.byte_start, row.byte_end)
                yield row._replace(data=text or "")
            else:
                yield row

    def fill(self, facts: dict[str, Any]) -> Mapping[str, Any]:
        """Add its text as `data` to a view's row with `extract_id` and place."""
        if facts["data"] is None:
            place = (facts["extract_id"], facts["byte_start"], facts["byte_end"])
            facts["data"] = self.at(*place)
        return facts
