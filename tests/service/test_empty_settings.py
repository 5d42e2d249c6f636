"""A setting that is set and empty, as templates leave it, is one that is not set."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from connectors.desk_links import desk_url
from connectors.desk_settings import read_desk_settings
from connectors.mail import read_mail_settings
from connectors.settings import PATHS, Settings, read_settings
from flows.ops.laptop import _work_environment
from flows.ops.running import _about_sandbox

DOCS = Path(__file__).parents[2] / "docs"
NAMES = sorted(
    {
        *re.findall(r"`(RECON_[A-Z_]+[A-Z])`", (DOCS / "commands.md").read_text()),
        *re.findall(r"`(RECON_[A-Z_]+[A-Z])`", (DOCS / "push.md").read_text()),
        *("RECON_LIMIT_COLUMNS", "RECON_LIMIT_FILE_BYTES"),
    }
)
READERS: tuple[Callable[[Mapping[str, str]], object], ...] = (
    read_settings,
    read_desk_settings,
    read_mail_settings,
    desk_url,
)


@pytest.mark.parametrize("name", NAMES)
def test_an_empty_setting_is_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    def read(given: Mapping[str, str]) -> list[object]:
        return [reader(given) for reader in READERS]

    def laptop() -> tuple[object, ...]:
        settings = Settings(tmp_path)
        return _about_sandbox(), _work_environment(settings, "postgresql://h/d", "http://s")

    assert read({name: ""}) == read({})
    monkeypatch.delenv(name, raising=False)
    unset = laptop()
    monkeypatch.setenv(name, "")
    assert laptop() == unset


def test_runs_that_have_another_folder_find_the_same_files(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A worker gives each run a folder that is removed behind it: a witness there was lost."""
    monkeypatch.chdir(tmp_path)
    for name in (*PATHS, "RECON_AUDIT_WITNESS"):
        monkeypatch.setenv(name, "below/x")
    given = _work_environment(read_settings(), "postgresql://h/d", "http://s")
    for name in (*PATHS, "RECON_AUDIT_WITNESS"):
        assert given[name] == str(tmp_path / "below/x")
    monkeypatch.setenv("RECON_AUDIT_WITNESS", "s3://b/w, x,https://example.com/w")
    given = _work_environment(read_settings(), "postgresql://h/d", "http://s")
    assert given["RECON_AUDIT_WITNESS"] == f"s3://b/w,{tmp_path}/x,https://example.com/w"
