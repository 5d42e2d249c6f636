"""Restored: say from where pushes go on after a database or a home was brought back."""

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from connectors.files.archive import kept_path
from connectors.files.listed import listed, raised
from connectors.files.removed_contents import listed_as_removed
from connectors.postgres.push.gate import going_on
from connectors.postgres.push.restores import Restore, declare, known_contents
from connectors.postgres.removals import take_over
from flows.stages.unknown import Unknown, unknown_contents
from flows.stages.workspace import Workspace

log = logging.getLogger("recon.push")


@dataclass(frozen=True, slots=True)
class WentOn:
    in_doubt: Mapping[str, int]
    """Operation -> rows that were put in doubt."""
    lost: tuple[Unknown, ...]
    """Contents that the archive has and the database does not know."""
    removed: int
    """Contents that housekeeping removed, by what the home says, and the database did not know."""


def go_on_after_restore(
    workspace: Workspace, *, unsent: str, by: str | None, reason: str
) -> WentOn:
    """Bind this database and this home to each other again."""
    settings = workspace.settings
    # One that cannot be looked at may be lost, and what it has may have been sent.
    kept = {path.stem for path in listed(settings.archive, "??", "*.csv", onerror=raised)}
    with (
        workspace.database.connect() as connection,
        going_on(connection, settings.home, settings.service.turn_seconds),
    ):
        lost = kept - known_contents(connection)
        removed = take_over(connection, _gone(workspace))
        in_doubt = declare(connection, Restore(unsent, by, reason, lost))
    with workspace.database.connect() as connection:
        return WentOn(in_doubt, unknown_contents(workspace, connection, lost), len(removed))


def _gone(workspace: Workspace) -> Mapping[str, datetime]:
    """Contents that the home says housekeeping removed, and that are not there."""
    archive = workspace.settings.archive
    listed = listed_as_removed(archive)
    return {one: at for one, at in listed.items() if not os.path.lexists(kept_path(archive, one))}
