"""Restored: say from where pushes go on after a database or a home was brought back."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from connectors.postgres.push.gate import going_on
from connectors.postgres.push.restores import Restore, declare, known_contents
from flows.stages.unknown import Unknown, unknown_contents
from flows.stages.workspace import Workspace

log = logging.getLogger("recon.push")


@dataclass(frozen=True, slots=True)
class WentOn:
    """What going on came to."""

    in_doubt: Mapping[str, int]
    """Operation -> rows that were put in doubt."""
    lost: tuple[Unknown, ...]
    """Contents that the archive has and the database does not know."""


def go_on_after_restore(
    workspace: Workspace, *, unsent: str, by: str | None, reason: str
) -> WentOn:
    """Bind this database and this home to each other again."""
    settings = workspace.settings
    kept = {path.stem for path in settings.archive.glob("??/*.csv")}
    with (
        workspace.database.connect() as connection,
        going_on(connection, settings.home, settings.service.turn_seconds),
    ):
        lost = kept - known_contents(connection)
        in_doubt = declare(connection, Restore(unsent, by, reason, lost))
    with workspace.database.connect() as connection:
        return WentOn(in_doubt, unknown_contents(workspace, connection, lost))
