"""Restored: let pushes continue after a database or a home was restored."""

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass

from connectors.files.archived.archive import kept_path
from connectors.files.archived.removed_contents import REPORT, listed_as_removed
from connectors.files.disk.listed import listed, raise_error
from connectors.postgres.auditing.removals import removed_contents, take_over
from connectors.postgres.batches.batch_reports import take_over_removed
from connectors.postgres.push.gate import going_on
from connectors.postgres.push.restores import Restore, declare, known_contents
from flows.stages.receiving.unknown import Unknown, unknown_contents
from flows.stages.workspace import Workspace

log = logging.getLogger("recon.push")


@dataclass(frozen=True, slots=True)
class WentOn:
    in_doubt: Mapping[str, int]
    """Operation -> rows that were put in doubt."""
    lost: tuple[Unknown, ...]
    """Contents that the archive has and the database does not know."""
    lost_removed: int
    """Contents that the database does not know and housekeeping has removed since."""
    missing: int
    """Contents that batches brought and the archive lacks; it may lack lost ones as well."""
    removed: int
    """Contents that housekeeping removed according to the home, unknown to the database."""
    removed_reports: int
    """The same for reports of batches."""


def go_on_after_restore(
    workspace: Workspace, *, unsent: str, by: str | None, reason: str
) -> WentOn:
    """Bind this database and this home to each other again."""
    settings = workspace.settings
    # Unreadable contents raise: they may be lost ones, and their rows may have been sent.
    kept = {path.stem for path in listed(settings.archive, "??", "*.csv", onerror=raise_error)}
    with (
        workspace.database.connect() as connection,
        going_on(connection, settings.home, settings.service.turn_seconds),
    ):
        listed_gone = listed_as_removed(settings.archive)
        gone = {one for one in listed_gone if not one.startswith(REPORT)}
        # Rows of contents removed meanwhile may have been sent as well.
        known = known_contents(connection)
        lost = (kept | gone) - known
        not_there = {
            one: at
            for one, at in listed_gone.items()
            if not os.path.lexists(kept_path(settings.archive, one))
        }
        removed = take_over(connection, not_there)
        reports = take_over_removed(connection, settings.reports, listed_gone.keys())
        in_doubt = declare(connection, Restore(unsent, by, reason, lost))
    with workspace.database.connect() as connection:
        unknown = unknown_contents(workspace, connection, lost)
        missing = known - kept - removed_contents(connection).keys()
        return WentOn(in_doubt, unknown, len(lost - kept), len(missing), len(removed), len(reports))
