"""Settings from the environment, typed; an error names the variable and its value."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path

from connectors.errors import SettingsError

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """Upper bounds for what is read; every one can be raised by `RECON_LIMIT_<NAME>`."""

    file_bytes: int = 64 * 1024 * MIB
    """Decompressed size of one extract."""
    compression_ratio: int = 1000
    """Decompressed over compressed size; above it an archive is taken for a bomb."""
    columns: int = 2_000
    field_bytes: int = 1 * MIB
    record_bytes: int = 4 * MIB
    archive_members: int = 10_000
    block_bytes: int = 4 * MIB
    """How much of a file is in memory at once."""
    errors_per_row: int = 50


@dataclass(frozen=True, slots=True)
class Settings:
    """Where the product keeps its data and which database it uses."""

    home: Path
    """Folder of the embedded database, the archive and the reports."""
    database_url: str | None = None
    """None: the embedded PostgreSQL under `home`."""
    limits: Limits = Limits()
    currencies: Path | None = None
    """CSV file `CurrenciesId,Code` that names currencies in reports."""

    @property
    def archive(self) -> Path:
        """Delivered content by hash."""
        return self.home / "archive"

    @property
    def reports(self) -> Path:
        """One folder per batch."""
        return self.home / "reports"


def read_settings(environment: Mapping[str, str] = os.environ) -> Settings:
    """The settings of this process; raises SettingsError for a value that cannot be used."""
    home = environment.get("RECON_HOME") or ".recon"
    url = environment.get("RECON_DATABASE_URL") or None
    if url is not None and not url.startswith(("postgresql://", "postgres://", "postgresql+")):
        raise SettingsError(
            "RECON_DATABASE_URL does not name a PostgreSQL database. "
            "Use postgresql://USER:PASSWORD@HOST/DATABASE, or unset it for the embedded one."
        )
    currencies = environment.get("RECON_CURRENCIES") or None
    return Settings(
        home=Path(home).expanduser().resolve(),
        database_url=url,
        limits=_limits(environment),
        currencies=Path(currencies).expanduser() if currencies else None,
    )


def _limits(environment: Mapping[str, str]) -> Limits:
    chosen: dict[str, int] = {}
    for field in fields(Limits):
        name = f"RECON_LIMIT_{field.name.upper()}"
        text = environment.get(name)
        if text is None:
            continue
        if not text.isascii() or not text.isdigit() or int(text) == 0:
            raise SettingsError(f"{name}={text!r} is not a positive whole number.")
        chosen[field.name] = int(text)
    return Limits(**chosen)
