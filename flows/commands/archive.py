"""The archive of delivered content: `recon archive verify`."""

from cyclopts import App

from flows.commands.console import out, print_json, workspace
from flows.commands.deliver import Json
from flows.stages.archive import VerifiedArchive, remedy, unchecked, verify_archive
from schemas.counting import agree, grouped, quantity

archive_command = App(name="archive", help_format="markdown")


@archive_command.command(name="verify")
def verify_command(*, json: Json = False) -> int:
    """Hash every kept file again, and the files of every report, against what the ledger says.

    A file that is missing, cut, altered or another's is named with the batches that brought it.
    Importing it again puts its bytes back. `recon housekeeping --verify` does the same on its way.

    Example: `recon archive verify`

    Exit code 0: every byte is as it was delivered; 1: something is not, and is named.
    """
    with workspace(quiet=json) as place:
        proof = verify_archive(place)
    if json:
        print_json(proof.as_json())
    else:
        show(proof)
    return int(bool(proof.mismatches))


def show(proof: VerifiedArchive) -> None:
    """What the proof came to, for a terminal."""
    for one in proof.mismatches:
        brought = f" ({', '.join(one.files)})" if one.files else ""
        out().print(f"{one.path}{brought}: {one.found}")
    told = (
        f"{quantity(proof.contents, 'kept file', grouped)} and "
        f"{quantity(proof.reports, 'report', grouped)}, "
        f"{quantity(proof.bytes, 'byte', grouped)} hashed"
    )
    if proof.mismatches:
        wrong = len(proof.mismatches)
        out().print(f"{told}: {wrong} {agree(wrong, 'does', 'do')} not match. {remedy(proof)}")
    else:
        out().print(f"{told}: every byte is as it was kept.")
    if proof.unhashed:
        out().print(unchecked(proof))
