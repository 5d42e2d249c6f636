"""Artifacts of runs; each links to the batches or the reconciliation that it is about."""

from collections.abc import Iterable, Sequence
from uuid import UUID

from prefect.artifacts import create_markdown_artifact, create_table_artifact
from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import ArtifactCreate

from connectors.desk_links import DeskPage, desk_sentence
from flows.report.markdown import summary_markdown
from flows.report.spelling import digits
from flows.steps.batch_report import BatchReport

SUMMARY = "import-summary"
MOST = 200
"""The most lines of a table; more would slow down the pages of the UI."""


def publish_table(
    rows: Sequence[dict[str, str]],
    *,
    key: str,
    about: str,
    lines: int = 0,
    batches: Iterable[int] = (),
    run: int | None = None,
) -> None:
    """Publish a table under a fixed key, so that the UI shows its versions in sequence.

    A long table keeps its first lines and says so. `lines` is their total number if `rows` has only
    some. `rows` must have at least one, whose columns become the table's.
    """
    lines = max(lines, len(rows))
    if lines > MOST:
        about = f"{about.rstrip('.')}. These are the first {MOST} of {digits(lines)} lines."
    create_table_artifact([*rows[:MOST]], key=key, description=f"{about}{_links(batches, run)}")


def publish_markdown(
    text: str,
    *,
    key: str,
    about: str,
    batches: Iterable[int] = (),
    run: int | None = None,
    flow_run: UUID | None = None,
) -> None:
    """Publish a page in the same way; `flow_run` is the run it belongs to, if that has ended."""
    description = f"{about}{_links(batches, run)}"
    if flow_run is None:
        create_markdown_artifact(text, key=key, description=description)
        return
    page = ArtifactCreate(
        type="markdown", key=key, description=description, data=text, flow_run_id=flow_run
    )
    with get_client(sync_client=True) as client:
        client.create_artifact(page)


def publish_summary(
    report: BatchReport, batch_id: int, about: str, *, flow_run: UUID | None = None
) -> None:
    """Publish a batch's summary under two keys: that of the latest batch, and its own."""
    summary = summary_markdown(report)
    for key in (SUMMARY, f"batch-{batch_id}"):
        publish_markdown(summary, key=key, about=about, batches=[batch_id], flow_run=flow_run)


def _links(batches: Iterable[int], run: int | None) -> str:
    reconciliation = desk_sentence(DeskPage.RUN, *([] if run is None else [run]))
    return desk_sentence(DeskPage.BATCH, *batches) + reconciliation
