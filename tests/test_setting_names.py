"""Every setting has its name in one place, and what is nearly called so is told."""

import re
from pathlib import Path

import pytest

from connectors.setting_names import SETTINGS, misspelt
from flows.__main__ import main

ROOT = Path(__file__).parents[1]
NOT_ONE = {"RECON_SERVICE_HOST"}
"""Named in our sources as what a cluster sets."""


def test_all_settings_that_the_program_reads_are_known() -> None:
    read = {
        name
        for room in ("flows", "connectors", "schemas")
        for path in (ROOT / room).rglob("*.py")
        for name in re.findall(r"\bRECON_[A-Z][A-Z_]*[A-Z]\b", path.read_text())
    }
    assert read - SETTINGS == NOT_ONE
    assert {
        name for name in SETTINGS if not name.startswith(("RECON_LIMIT_", "RECON_SERVICE_"))
    } <= (set(re.findall(r"\bRECON_[A-Z_]+[A-Z]\b", (ROOT / "docs" / "commands.md").read_text())))


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("RECON_DATABASE_ULR", "RECON_DATABASE_URL"),
        ("RECON_DATABASE", "RECON_DATABASE_URL"),
        ("RECON_TIMEZONE", "RECON_TIME_ZONE"),
        ("RECON_LIMIT_COLUMN", "RECON_LIMIT_COLUMNS"),
        ("RECON_LIMIT_FIELDBYTES", "RECON_LIMIT_FIELD_BYTES"),
        ("RECON_SERVICE_IDEMPOTANT", "RECON_SERVICE_IDEMPOTENT"),
        ("RECON_SERVCIE_URL", "RECON_SERVICE_URL"),
    ],
)
def test_what_is_nearly_called_as_a_setting_is_told(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    name: str,
    meant: str,
) -> None:
    """It was passed over: rows went into the database that is used when none is named."""
    monkeypatch.setenv(name, "canary")
    (tmp_path / "a.csv").touch()
    with pytest.raises(SystemExit) as ended:
        main(["check", str(tmp_path / "a.csv")])
    assert ended.value.code == 1
    told = capsys.readouterr().err
    assert (
        told
        == f"recon: {name} is set but is not a setting; {meant} is. Correct the name or unset it.\n"
    )


@pytest.mark.parametrize(
    "name",
    [
        *("RECON_SERVICE_HOST", "RECON_SERVICE_PORT", "RECON_SERVICE_PORT_HTTP", "RECON_PORT"),
        *("RECON_PORT_80_TCP_ADDR", "RECON_ENV", "RECON_VERSION", "RECON_LIMIT_ERRORS_PER_ROW"),
        *sorted(SETTINGS),
    ],
)
def test_what_others_set_and_every_setting_is_not_told(name: str) -> None:
    assert not [*misspelt({name: "x"})]
