"""What is gone after a restore was removed by housekeeping, or lost: no clock decides which."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest

from connectors.files.archived.removed_contents import REMOVED_LIST, listed_as_removed
from connectors.files.profiles.profile import DEFAULT
from flows.stages.sequence import import_delivery
from flows.stages.upkeep.archive import verify_archive
from flows.stages.upkeep.restored import go_on_after_restore
from flows.stages.upkeep.retention import Retention, sweep
from flows.stages.workspace import Workspace
from tests.push.conftest import Copy
from tests.push.conftest import copied as copied  # noqa: PLC0414 -- the fixture.
from tests.stages.payments import line, write

STORIES = {
    # What is done with one content, and whether it was lost.
    "removed since": ("import, back up, remove, restore", False),
    "removed by a clock that was behind": ("import, back up, remove, restore, an hour on", False),
    "removed twice": ("import, remove, import, back up, remove, restore", False),
    "removed by an earlier version, and since": (
        "import, remove, as an earlier version, import, back up, remove, restore",
        False,
    ),
    "removed by an earlier version, brought again, and lost with the list": (
        "import, remove, as an earlier version, save the list, import, lose, put the list back",
        True,
    ),
    "removed by a clock that was ahead, brought again, and lost": (
        "import, back up, remove, list an hour on, restore, import, lose",
        True,
    ),
    "brought again before, and lost with the list": (
        "import, remove, save the list, import, lose, put the list back",
        True,
    ),
}


@pytest.mark.long(
    but=(
        "removed by a clock that was behind",
        "removed by an earlier version, and since",
        "removed by a clock that was ahead, brought again, and lost",
    )
)
@pytest.mark.parametrize("story", STORIES)
def test_what_is_gone_was_removed_or_lost(
    workspace: Workspace, copied: Copy, tmp_path: Path, story: str
) -> None:
    steps, is_lost = STORIES[story]
    place = kept = workspace
    listing = workspace.settings.archive / REMOVED_LIST
    saved = ""
    for step in steps.split(", "):
        match step:
            case "import":
                import_delivery(place, [write(tmp_path / "a.csv", line(1))], DEFAULT)
            case "remove":
                later = datetime.now(UTC) + timedelta(days=100)
                sweep(place, Retention(archive_days=90), now=later, dry_run=False)
            case "lose":
                (path,) = place.settings.archive.glob("??/*.csv")
                path.unlink()
            case "back up":
                kept = copied(place)
            case "restore":
                place = kept
            case "an hour on":
                with psycopg.connect(str(place.settings.database_url)) as connection:
                    connection.execute("SET session_replication_role = replica")
                    connection.execute(
                        "UPDATE recon.batch SET opened_at = opened_at + interval '1 hour'"
                    )
            case "as an earlier version":
                with psycopg.connect(str(place.settings.database_url)) as connection:
                    connection.execute("SET session_replication_role = replica")
                    connection.execute(
                        "UPDATE recon.event SET detail = (detail::jsonb - 'removed_at')::text "
                        "WHERE detail::jsonb ? 'removed_at'"
                    )
            case "list an hour on":
                ((sha256, at),) = listed_as_removed(workspace.settings.archive).items()
                later = (at + timedelta(hours=1)).isoformat()
                listing.write_text(
                    re.sub(r'"at": "[^"]*"', f'"at": "{later}"', listing.read_text())
                )
                assert listed_as_removed(workspace.settings.archive) == {
                    sha256: at + timedelta(hours=1)
                }
            case "save the list":
                saved = listing.read_text()
            case "put the list back":
                listing.write_text(saved)
    went_on = go_on_after_restore(place, unsent="in_doubt", by="a", reason="restored")
    assert went_on.removed == int(not is_lost)
    missed = [one for one in verify_archive(place).mismatches if one.path.startswith("archive/")]
    assert bool(missed) == is_lost
