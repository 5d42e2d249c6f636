"""Restored: say from where pushes go on after a database or a home was brought back."""

import logging
from collections.abc import Mapping

from connectors.postgres.push.gate import going_on
from connectors.postgres.push.restores import Restore, declare, known_contents
from flows.stages.workspace import Workspace

log = logging.getLogger("recon.push")


def go_on_after_restore(
    workspace: Workspace, *, unsent: str, by: str | None, reason: str
) -> Mapping[str, int]:
    """Bind this database and this home to each other again; gives rows put in doubt."""
    settings = workspace.settings
    kept = {path.stem for path in settings.archive.glob("??/*.csv")}
    with (
        workspace.database.connect() as connection,
        going_on(connection, settings.home, settings.service.turn_seconds),
    ):
        lost = kept - known_contents(connection)
        return declare(connection, Restore(unsent, by, reason, lost))
