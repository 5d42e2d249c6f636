"""Where a run finds its database: the block `target` of the server, before the environment."""

import contextlib
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from connectors.errors import SettingsError
from flows.stages.workspace import Workspace
from tests.flows.runs import run, server_database
from tests.stages.payments import line, write

pytestmark = pytest.mark.flows


@pytest.fixture
def save() -> Iterator[Any]:
    """Save the block `target` with this URL; it is gone afterwards."""
    from flows.tasks.blocks import TARGET, TargetDatabase

    def saved(url: str | None) -> None:
        TargetDatabase(url=url).save(TARGET, overwrite=True)

    yield saved
    TargetDatabase.delete(TARGET)


@pytest.mark.long
def test_a_run_works_with_the_database_of_the_block(
    tmp_path: Path, workspace: Workspace, rows: Any, save: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(workspace.settings.database_url)
    monkeypatch.setenv("RECON_DATABASE_URL", "postgresql://nobody@127.0.0.1:1/nowhere")
    assert run(write(tmp_path / "a.csv", line(1))).name == "Completed"
    assert rows("SELECT count(*) FROM payment") == [(1,)]


@pytest.mark.long
def test_an_attempt_asks_once_and_a_task_that_is_tried_again_asks_again(save: Any) -> None:
    """All tasks of a run work with one database; what was mended counts for the next attempt."""
    from prefect import flow, task

    from flows.tasks.blocks import run_settings

    first, second = ("postgresql://a@127.0.0.1:1/first", "postgresql://a@127.0.0.1:1/second")

    @task(retries=1, retry_delay_seconds=0, persist_result=False)
    def found(*, fails: bool = False) -> str | None:
        from prefect.context import TaskRunContext

        url = run_settings().database_url
        context = TaskRunContext.get()
        assert context is not None
        if fails and context.task_run.run_count == 1:
            save(second)
            raise SettingsError("the first attempt fails")
        return url

    @flow
    def asks() -> list[str | None]:
        save(first)
        told = [found()]
        save(second)
        told += [found()]
        save(first)
        return [*told, found(fails=True), found()]

    assert asks() == [first, first, second, second]
    assert asks() == [first, first, second, second]


@contextmanager
def saved_with_another_key(name: str) -> Iterator[None]:
    """What the server has of the block is nothing that its own key opens."""

    def put(value: str) -> str:
        with closing(sqlite3.connect(server_database(), timeout=60)) as connection, connection:
            found = "SELECT data FROM block_document WHERE name = ?"
            ((before,),) = connection.execute(found, [name]).fetchall()
            connection.execute("UPDATE block_document SET data = ? WHERE name = ?", [value, name])
        return str(before)

    before = put('"gAAAAABother"')
    try:
        yield
    finally:
        put(before)


def test_a_block_of_another_key_is_told_with_the_key_and_what_to_do(save: Any) -> None:
    from flows.ops import automations
    from flows.tasks.blocks import TARGET, run_settings

    save("postgresql://a@127.0.0.1:1/first")
    assert run_settings().database_from == "the block target-database/target"
    automations.register("http://127.0.0.1:9/hook")
    for name, block, ask in (
        (TARGET, "target-database/target", run_settings),
        (automations.NOTICE, "webhook/recon-notice", lambda: automations.register(None)),
        (automations.NOTICE, "webhook/recon-notice", lambda: automations.register("http://a.b")),
    ):
        with saved_with_another_key(name), pytest.raises(SettingsError) as refused:
            ask()
        assert f"cannot read the block {block} (HTTP 500)" in str(refused.value)
        assert "PREFECT_SERVER_ENCRYPTION_KEY" in str(refused.value)


@pytest.mark.parametrize(
    ("slug", "name", "values", "why"),
    [
        (
            "target-database",
            "target",
            {"url": "db.example.com/canary"},
            "The URL does not name a PostgreSQL database. Use postgresql://USER:PASSWORD@HOST/"
            "DATABASE, or delete the block for the worker's own",
        ),
        ("target-database", "target", {}, "url: Field required"),
        (
            "service-credentials",
            "service",
            {"base_url": "http://127.0.0.1:1", "scheme": "basic"},
            "Credentials of scheme basic need User and Secret",
        ),
        (
            "service-credentials",
            "service",
            {"base_url": "http://a:canary@h", "scheme": "none"},
            "Base URL holds more than a place: put user and password into User and Secret",
        ),
    ],
)
def test_a_block_saved_with_a_mistake_is_told_with_the_field(
    slug: str, name: str, values: dict[str, str], why: str
) -> None:
    """The page of a block saves whatever is typed there."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.actions import BlockDocumentCreate

    from flows.tasks.blocks import register, run_settings

    register()
    with get_client(sync_client=True) as client:
        kind = client.read_block_type_by_slug(slug)
        form = client.get_most_recent_block_schema_for_block_type(kind.id)
        assert form is not None
        typed = BlockDocumentCreate(
            name=name, data=values, block_type_id=kind.id, block_schema_id=form.id
        )
        saved = client.create_block_document(typed)
        try:
            with pytest.raises(SettingsError) as refused:
                run_settings()
        finally:
            client.delete_block_document(saved.id)
    text = str(refused.value)
    assert text.startswith(f"The block {slug}/{name} cannot be used: {why}"), text
    assert text.endswith("Open it in the server's pages, under Blocks, correct it and save it.")
    assert "canary" not in text


def test_what_is_kept_is_not_kept_in_the_folder_that_a_worker_removes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from flows.tasks.blocks import run_settings

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    # As a worker of Prefect makes it for a run.
    with tempfile.TemporaryDirectory(suffix="prefect") as folder, contextlib.chdir(folder):
        for home in ("", "home", f"{folder}/home"):
            monkeypatch.setenv("RECON_HOME", home)
            with pytest.raises(SettingsError, match=f"RECON_HOME='{home or '.recon'}' is a folder"):
                run_settings()
        monkeypatch.setenv("RECON_HOME", str(tmp_path / "home"))
        assert run_settings().home == tmp_path / "home"
