"""Texts of rows that were staged by reference: read again from the archived file."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import psycopg

from connectors import ledger
from connectors.extracts.blocks import blocks
from connectors.extracts.content import Content, open_content
from connectors.findings import RejectedRow
from flows.stages.receive import restored_profile
from flows.stages.stage import archived
from flows.stages.workspace import Workspace


class Texts:
    """The delivered texts of some batches, by extract and place."""

    def __init__(
        self, workspace: Workspace, connection: psycopg.Connection, batches: Iterable[int]
    ) -> None:
        self._contents: dict[int, Content] = {}
        for batch_id in batches:
            profile = restored_profile(ledger.find_batch(connection, batch_id))
            if profile.keep != "reference":
                continue
            for extract in ledger.list_extracts(connection, batch_id):
                if extract.sha256 and archived(workspace, extract).exists():
                    path = archived(workspace, extract)
                    content = open_content(path, profile.encoding, name=extract.name)
                    self._contents[extract.id] = content

    def at(self, extract_id: int, start: int, end: int) -> str | None:
        """The text from byte `start` to `end`; None: its file was cleared away."""
        content = self._contents.get(extract_id)
        if content is None:
            return None
        text = b""
        for piece in blocks(content, start, end - start):
            text += piece
            if len(text) >= end - start:
                break
        return text[: end - start].decode()

    def filled(self, rows: Iterable[RejectedRow]) -> Iterator[RejectedRow]:
        """The rows with their texts."""
        for row in rows:
            if row.data is None:
                text = self.at(row.extract_id, row.byte_start, row.byte_end)
                yield row._replace(data=text or "")
            else:
                yield row

    def fill(self, facts: dict[str, Any], name: str = "data") -> Mapping[str, Any]:
        """A row of a view with `extract_id` and its place, with its text under `name`."""
        if facts[name] is None:
            place = (facts["extract_id"], facts["byte_start"], facts["byte_end"])
            facts[name] = self.at(*place)
        return facts
