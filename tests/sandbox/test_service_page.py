"""docs/service.md tells of every option, style, fault and path there is, and its code runs."""

import inspect
import re
from pathlib import Path

import pytest

from connectors.sandbox import FaultKind, SandboxOptions
from connectors.sandbox.description import PATH
from connectors.sandbox.options import STYLES
from flows.commands.serve import DEFAULT_USER, sandbox_command
from schemas.endpoints import ANY_ROLE
from schemas.operations import OPERATIONS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "service.md").read_text(encoding="utf-8")


def first_cells(title: str) -> set[str]:
    """What stands in code in the first column of the table under a heading."""
    section = PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0]
    return set(re.findall(r"^\| `([^`]+)`", section, re.MULTILINE))


def test_every_option_of_the_command() -> None:
    given = {f"--{name}" for name in inspect.signature(sandbox_command).parameters}
    assert first_cells("Run it") == given
    assert DEFAULT_USER in PAGE


def test_every_fault() -> None:
    assert first_cells("Faults") == {kind.name for kind in FaultKind}


def test_every_style() -> None:
    header = PAGE.partition("## Styles\n")[2].split("\n")[1]
    assert re.findall(r"`([^`]+)`", header) == list(STYLES)


def test_every_listing_can_be_loaded() -> None:
    listed = [operation.response for operation in OPERATIONS if operation.returns_list]
    assert re.findall(r"`--load (\w+)=FILE`", PAGE) == listed


def test_the_path_of_the_description() -> None:
    assert PATH in first_cells("Paths")


@pytest.mark.long
def test_the_code_runs(database_url: str) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    given = {"database_url": database_url, "avatars": ROOT / "data_samples/clean/avatars.csv"}
    exec(compile(code, "docs/service.md", "exec"), given)
    assert isinstance(given["options"], SandboxOptions)
    assert str(given["base_url"]).startswith("http://127.0.0.1:")


def test_the_roles_of_every_operation() -> None:
    told = {
        ("Partner",): {"/clientregister"},
        (): {"/campaign/inbox/form"},
    }
    for roles, paths in told.items():
        assert {each.path for each in OPERATIONS if each.roles == roles} == paths
        assert all(path in PAGE for path in paths)
    others = {each.roles for each in OPERATIONS if each.roles not in told}
    assert others == {ANY_ROLE}
    assert f"any of {', '.join(ANY_ROLE)}" in PAGE
