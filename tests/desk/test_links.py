"""What names a batch or a run elsewhere leads to its page at the desk, where one is set."""

import ast
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from connectors.desk_links import DeskPage, desk_link, desk_sentence, desk_url, linked
from connectors.desk_settings import read_desk_settings
from connectors.errors import SettingsError
from connectors.settings import read_settings
from flows.stages.workspace import Workspace
from tests.accounts.people import CLEO, TESSA, add
from tests.desk.browser import Browser
from tests.governance.conftest import recon as recon  # noqa: PLC0414 -- the fixture.
from tests.stages.payments import line, write


@pytest.mark.long
def test_commands_name_the_page(
    workspace: Workspace,
    recon: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Any,
) -> None:
    path = write(tmp_path / "payments.csv", line(1))
    assert "desk:" not in recon("import", path).stdout
    monkeypatch.setenv("RECON_DESK_URL", "https://desk.example.com/")
    told = recon("import", write(tmp_path / "more.csv", line(2)))
    assert "\ndesk: https://desk.example.com/batches/2\n" in told.stdout
    told = recon("reconcile", "--as-of", "2026-07-01")
    assert "\ndesk: https://desk.example.com/runs/1\n" in told.stdout
    assert "\ndesk: https://desk.example.com/runs/1\n" in recon("report", "1").stdout


def test_artifacts_say_where(monkeypatch: pytest.MonkeyPatch) -> None:
    assert desk_sentence(DeskPage.RUN, 7) == ""
    monkeypatch.setenv("RECON_DESK_URL", "https://desk.example.com")
    assert desk_link(DeskPage.BATCH, 7) == "https://desk.example.com/batches/7"
    assert desk_sentence(DeskPage.RUN, 7) == (
        " [Open it at the desk](https://desk.example.com/runs/7)."
    )


def test_many_batches_are_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (desk_sentence(DeskPage.BATCH, 1, 2), linked(DeskPage.BATCH, 1)) == ("", "1")
    monkeypatch.setenv("RECON_DESK_URL", "https://desk.example.com")
    assert desk_sentence(DeskPage.BATCH) == ""
    assert desk_sentence(DeskPage.BATCH, 1, 2) == (
        " At the desk: [1](https://desk.example.com/batches/1), "
        "[2](https://desk.example.com/batches/2)."
    )
    assert desk_sentence(DeskPage.BATCH, *range(1, 13)).endswith("batches/10) and 2 more.")


ROOT = Path(__file__).parents[2]
NEITHER = {"housekeeping", "archive", "inbox", "batches"}
"""Artifacts about no batch and no run, and the board, which leads to each of its batches."""


@pytest.mark.long
def test_every_artifact_says_what_it_is_about_and_so_leads_there() -> None:
    published: dict[str, set[str]] = {}
    for path in (ROOT / "flows").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call):
                continue
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            if name.startswith("create_") and name.endswith("_artifact"):
                assert path == ROOT / "flows/tasks/artifacts.py", (
                    f"{path}: publish_table leads there"
                )
            if name in ("publish_table", "publish_markdown"):
                told = {one.arg: one.value for one in node.keywords if one.arg}
                key = told["key"]
                known = str(key.value) if isinstance(key, ast.Constant) else ast.unparse(key)
                published[known] = {"batches", "run"} & {*told}
    assert len(published) > 8
    assert {key for key, about in published.items() if not about} == NEITHER


@pytest.mark.parametrize(
    "url",
    [
        "desk.example.com",
        "ftp://desk.example.com",
        "https://",
        "https://desk.example.com/recon",
        "https://desk.example.com?x=1",
        "https://anna:secret@desk.example.com",
        "https://:secret@desk.example.com",
        "https://desk.example.com#x",
        "https://desk.example.com/?",
        "https://desk.example.com/#",
        "https://desk example.com",
        "https://desk.example.com ",
        "https://desk.example.com:x",
        "https://[",
    ],
)
def test_an_address_that_is_none_of_a_desk(url: str) -> None:
    with pytest.raises(SettingsError, match="no address of a desk") as refused:
        desk_url({"RECON_DESK_URL": url})
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("api", "pages", "told"),
    [
        ("https://prefect.example.com/api", None, "https://prefect.example.com"),
        ("http://127.0.0.1:4200/api/", None, "http://127.0.0.1:4200"),
        ("http://a/api", "https://example.com/prefect/", "https://example.com/prefect"),
        ("https://recon:secret@prefect.example.com/api", None, None),
        ("https://:secret@prefect.example.com/api", None, None),
        ("https://prefect.example.com/api?key=secret", None, None),
        ("https://prefect.example.com/api#secret", None, None),
        ("https://prefect example.com/api", None, None),
        ("https:///api", None, None),
        ("", None, None),
    ],
)
def test_pages_of_prefect_are_linked_without_a_secret(
    api: str, pages: str | None, told: str | None
) -> None:
    environment = {"PREFECT_API_URL": api} | ({"PREFECT_UI_URL": pages} if pages else {})
    assert read_desk_settings(environment).prefect_ui == told


def test_an_address_that_is_none_is_refused_before_anything_is_done() -> None:
    with pytest.raises(SettingsError, match="no address of a desk"):
        read_settings({"RECON_DESK_URL": "desk.example.com"})


def test_a_page_leads_to_no_batch_that_the_visitor_does_not_see(
    workspace: Workspace, recon: Callable[..., Any], browser: Callable[[], Browser], tmp_path: Path
) -> None:
    """A run of tenant 7 is made from deliveries of all, one of which was refused."""
    refused = tmp_path / "b.csv.gz"
    refused.write_bytes(b"no archive")
    recon("import", write(tmp_path / "a.csv", line(1)))
    recon("import", str(refused))
    recon("reconcile", "--tenant", "7", "--as-of", "2026-07-01")
    add(workspace, CLEO, TESSA)
    for who, leads in (("cleo", True), ("tessa", False)):
        page = browser().log_in(who)
        broken = re.search(
            "/runs/1/breaks/[0-9a-f]+", page.open("/runs/1/breaks?record=-").answer.text
        )
        assert broken is not None
        for path in ("/runs/1", broken[0]):
            text = page.open(path).answer.text
            assert "b.csv.gz" in text or path == "/runs/1"
            assert ('href="/batches/' in text) is leads, (who, path)
