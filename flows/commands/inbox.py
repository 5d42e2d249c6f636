"""The inbox and the archive: `recon watch`, `recon housekeeping` and `recon archive verify`."""

import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from connectors.settings import SETTLE_SECONDS
from flows.commands.console import DAYS, SECONDS, out, print_json, say_next_look, workspace
from flows.commands.deliver import Feed, Json
from flows.stages.upkeep.retention import DEFAULT as KEPT
from schemas.counting import agree, grouped, quantity

if TYPE_CHECKING:
    from flows.stages.inbox import InboxLine
    from flows.stages.upkeep.archive import VerifiedArchive

archive_command = App(
    name="archive", help="Check that no archived file has changed: `recon archive verify`."
)


def watch_command(
    inbox: Annotated[
        str | None, Parameter(help="Folder to watch; default: inbox in RECON_HOME.")
    ] = None,
    *,
    settle: Annotated[
        float,
        Parameter(
            help="Seconds without a change after which a file counts as complete.",
            validator=SECONDS,
        ),
    ] = SETTLE_SECONDS,
    every: Annotated[
        float, Parameter(help="Seconds between two looks at the folder.", validator=SECONDS)
    ] = 30.0,
    once: Annotated[bool, Parameter(help="Look once, then exit.")] = False,
    profile: Feed = None,
    json: Json = False,
) -> int:
    """Watch an inbox: import each complete delivery once and move it to the archive there.

    A hidden file, or one whose name ends in .part or .tmp, is left alone until it is renamed. A
    delivery that cannot be read is moved to quarantine, with the reason beside it. Ctrl-C stops it.

    With --json and without --once, each look that found something prints one line of JSON.

    Example: `recon watch /data/inbox --once`

    Exit code with --once: 0: every delivery is applied, is being applied by another run, or may
    still be arriving; 1: a delivery was put aside or failed, rows were rejected, a batch is held, a
    link or folder is named like an extract, or a delivery has been incomplete for a day
    (RECON_LIMIT_INBOX_WAIT_SECONDS); 3: another run is looking at the inbox.
    """
    from connectors.errors import (
        DatabaseUnusable,
        DeliveryError,
        InboxHeldElsewhere,
        SchemaReplaced,
    )
    from connectors.files.incoming.inbox import Inbox
    from connectors.files.profiles.profile import DEFAULT
    from connectors.files.profiles.profile_file import load_profile
    from flows.stages.inbox import Watch, import_here
    from flows.stages.receiving.terms import StatedTerms

    named = _folder(inbox)
    terms = StatedTerms(load_profile(profile) if profile else DEFAULT)
    with workspace("watch", quiet=json) as place:
        watch = Watch(
            place,
            Inbox.of(place.settings.home, named),
            terms,
            import_here(place, terms),
        )
        was_there = False
        while True:
            try:
                lines = watch.look(settle)
            except SchemaReplaced:
                raise
            except (InboxHeldElsewhere, DatabaseUnusable, DeliveryError, OSError) as trouble:
                if once or (isinstance(trouble, DeliveryError) and not was_there):
                    raise
                say_next_look(trouble, every)
            else:
                was_there = True
                if once or lines:
                    _show(lines, as_json=json, once=once)
                if once:
                    return max((line.exit_code for line in lines), default=0)
            time.sleep(every)


def _folder(named: str | None) -> Path | None:
    """The named folder, or None; raises DeliveryError for an empty name."""
    from connectors.files.incoming.stores import location_of

    return None if named is None else Path(location_of(named))


def housekeeping_command(
    *,
    archive_days: Annotated[
        int,
        Parameter(
            help="Days to keep delivered files after their last batch has ended.", validator=DAYS
        ),
    ] = KEPT.archive_days,
    report_days: Annotated[
        int, Parameter(help="Days to keep reports after their batch has ended.", validator=DAYS)
    ] = KEPT.report_days,
    inbox: Annotated[
        str | None,
        Parameter(
            help="Watched folder whose archive is counted too; default: inbox in RECON_HOME."
        ),
    ] = None,
    remove: Annotated[
        bool, Parameter(help="Remove what is counted; default: only count it.")
    ] = False,
    verify: Annotated[
        bool, Parameter(help="Also hash what is kept, as `recon archive verify` does.")
    ] = False,
    json: Json = False,
) -> int:
    """Count archived files and reports that no batch needs any more; with --remove, remove them.

    A batch that has not ended, is held or has rows in error keeps its files and its report.

    Example: `recon housekeeping --archive-days 90 --remove`

    Exit code 0: done; 1: something could not be removed or, with --verify, does not match; it is
    named.
    """
    from connectors.files.incoming.inbox import Inbox
    from flows.stages.upkeep.archive import verify_archive
    from flows.stages.upkeep.retention import Retention, not_removed, sweep

    named = _folder(inbox)
    with workspace("housekeeping") as place:
        if named:
            Inbox.of(place.settings.home, named).refuse_missing()
        swept = sweep(
            place,
            Retention(archive_days, report_days),
            inbox=named or place.settings.home / "inbox",
            dry_run=not remove,
        )
        proof = verify_archive(place) if verify else None
    left = not_removed(swept)
    code = int(bool(left or (proof and proof.mismatches)))
    if json:
        proven = {"archive": proof.as_json()} if proof else {}
        print_json({"removed": remove, "swept": [asdict(one) for one in swept]} | proven)
        return code
    for one in swept:
        oldest = f", the oldest of {one.oldest:%Y-%m-%d}" if one.oldest else ""
        out().print(f"{one.what}: {one.number}, {quantity(one.bytes, 'byte', grouped)}{oldest}")
    if not remove:
        out().print("Nothing was removed; --remove removes it.")
    if left:
        out().print(left)
    if proof:
        _show_proof(proof)
    return code


@archive_command.command(name="verify")
def verify_command(*, json: Json = False) -> int:
    """Hash every kept file, and the files of every report, and compare them with the ledger.

    A file that is missing, cut short, altered or swapped is named with the batches that brought it.
    Importing it again puts its bytes back. `recon housekeeping --verify` checks the same.

    Example: `recon archive verify`

    Exit code 0: every byte is as it was delivered; 1: something is not; it is named.
    """
    from flows.stages.upkeep.archive import verify_archive

    with workspace("archive verify", quiet=json) as place:
        proof = verify_archive(place)
    if json:
        print_json(proof.as_json())
    else:
        _show_proof(proof)
    return int(bool(proof.mismatches))


def _show(lines: "list[InboxLine]", *, as_json: bool, once: bool) -> None:
    if as_json:
        print_json({"deliveries": [asdict(one) for one in lines]}, of_many=not once)
        return
    for line in lines:
        out().print(line.text)
    sys.stdout.flush()


def _show_proof(proof: "VerifiedArchive") -> None:
    from connectors.printable import shown
    from flows.stages.upkeep.archive import notes, remedy

    for one in proof.mismatches:
        brought = f" ({', '.join(map(shown, one.files))})" if one.files else ""
        out().print(f"{one.path}{brought}: {one.found}")
    checked = (
        f"{quantity(proof.contents, 'kept file', grouped)} and "
        f"{quantity(proof.reports, 'report', grouped)}, "
        f"{quantity(proof.bytes, 'byte', grouped)} hashed"
    )
    if proof.mismatches:
        wrong = len(proof.mismatches)
        out().print(f"{checked}: {wrong} {agree(wrong, 'does', 'do')} not match. {remedy(proof)}")
    else:
        out().print(f"{checked}: every byte is as it was kept.")
    for note in notes(proof):
        out().print(note)
    for content in proof.unknown:
        out().print(f"  {content.text}")
