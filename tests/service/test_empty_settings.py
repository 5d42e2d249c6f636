"""A setting that is set and empty, as templates leave it, is one that is not set."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from connectors.desk_links import desk_url
from connectors.desk_settings import read_desk_settings
from connectors.mail import read_mail_settings
from connectors.settings import Settings, read_settings
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
