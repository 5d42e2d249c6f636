"""Remove what no batch needs any more: archived content, reports, kept results of runs."""

from pathlib import Path
from typing import Annotated, Any

from prefect import flow
from prefect.client.schemas.objects import State as RunState
from prefect.settings import PREFECT_LOCAL_STORAGE_PATH
from prefect.states import Completed, Failed
from pydantic import Field

from connectors.files.incoming.inbox import Inbox
from flows.report.spelling import digits
from flows.stages.upkeep.archive import VerifiedArchive, notes, remedy, verify_archive
from flows.stages.upkeep.retention import DEFAULT, Retention, not_removed, sweep
from flows.tasks.approval import DAYS_TO_DECIDE
from flows.tasks.artifacts import publish_table
from flows.tasks.delivery import BarePlace
from flows.tasks.holding import open_workspace
from flows.tasks.hooks import UNKEPT
from flows.tasks.missed_runs import overtaken
from flows.tasks.run_names import called
from schemas.counting import agree, quantity

Days = Annotated[int, Field(ge=1, le=36500)]
# A run that waits for a decision continues from its kept results.
ResultDays = Annotated[int, Field(gt=DAYS_TO_DECIDE, le=36500)]


@flow(
    name="housekeeping",
    flow_run_name=called(
        lambda given: f"{'count' if given['dry_run'] else 'remove'} what nothing needs"
    ),
    **UNKEPT,
)
def housekeeping(
    archive_days: Days = DEFAULT.archive_days,
    report_days: Days = DEFAULT.report_days,
    result_days: ResultDays = DEFAULT.result_days,
    inbox: BarePlace | None = None,
    dry_run: bool = True,
    verify: bool = True,
) -> RunState[Any]:
    """Remove files that nothing needs; batches that are open, held or have errors keep theirs.

    Args:
        archive_days: Days that delivered content is kept after its last batch has ended.
        report_days: Days that reports of batches are kept.
        result_days: Days that results of runs are kept for their own Retry; longer than a decision
            may take.
        inbox: The watched folder, whose own archive is tidied too; if empty, inbox in RECON_HOME.
        dry_run: Only count what would be removed.
        verify: Hash all kept content again; content that does not match fails the run and is named.
    """
    if (skipped := overtaken()) is not None:
        return skipped
    workspace = open_workspace()
    if inbox:
        Inbox.of(workspace.settings.home, Path(inbox)).refuse_missing()
    swept = sweep(
        workspace,
        Retention(archive_days, report_days, result_days),
        inbox=Path(inbox) if inbox else workspace.settings.home / "inbox",
        results=Path(PREFECT_LOCAL_STORAGE_PATH.value()) / "recon",
        dry_run=dry_run,
    )
    removal = "would be removed; set dry_run to false to remove it" if dry_run else "removed"
    publish_table(
        [
            {
                "What": one.what,
                "Number": digits(one.number),
                "Bytes": digits(one.bytes),
                "Oldest": f"{one.oldest:%Y-%m-%d}" if one.oldest else "",
            }
            for one in swept
        ],
        key="housekeeping",
        about=f"What {removal}" if dry_run else "What was removed",
    )
    number, size = sum(one.number for one in swept), sum(one.bytes for one in swept)
    message = f"{quantity(number, 'item', digits)}, {quantity(size, 'byte', digits)} {removal}"
    proof = verify_archive(workspace) if verify else None
    wrong = [not_removed(swept), _differing(proof) if proof else ""]
    if not any(wrong):
        return Completed(message=". ".join([message, *(notes(proof) if proof else ())]))
    return Failed(message=" ".join([f"{message}.", *filter(None, wrong)]))


def _differing(proof: VerifiedArchive) -> str:
    """The kept content that does not match its hash, and what to do; empty if all matches."""
    if not proof.mismatches:
        return ""
    publish_table(
        [
            {"File": one.path, "Found": one.found, "Brought by": ", ".join(one.files)}
            for one in proof.mismatches
        ],
        key="archive",
        about=f"Kept files that do not match. {remedy(proof)}",
    )
    first, wrong = proof.mismatches[0], len(proof.mismatches)
    return (
        f"{quantity(wrong, 'kept file', digits)} {agree(wrong, 'does', 'do')} not match; first: "
        f"{first.path}: {first.found}. {remedy(proof)}"
    )
