"""Artifacts of runs: each leads to the batches or the reconciliation that it is about."""

from collections.abc import Iterable, Sequence

from prefect.artifacts import create_markdown_artifact, create_table_artifact

from connectors.desk_links import DeskPage, told_at_desk


def publish_table(
    rows: Sequence[dict[str, str]],
    *,
    key: str,
    about: str,
    batches: Iterable[int] = (),
    run: int | None = None,
) -> None:
    """Keep a table under a fixed key, so that the UI shows its versions after each other."""
    create_table_artifact([*rows], key=key, description=f"{about}{_links(batches, run)}")


def publish_markdown(
    text: str, *, key: str, about: str, batches: Iterable[int] = (), run: int | None = None
) -> None:
    """Keep a page in the same way."""
    create_markdown_artifact(text, key=key, description=f"{about}{_links(batches, run)}")


def _links(batches: Iterable[int], run: int | None) -> str:
    reconciliation = told_at_desk(DeskPage.RUN, *([] if run is None else [run]))
    return told_at_desk(DeskPage.BATCH, *batches) + reconciliation
