"""What every stage of a batch works with."""

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from connectors.addresses import service_address
from connectors.errors import SettingsError
from connectors.memory import keep_modules
from connectors.postgres.database import Database
from connectors.settings import ServiceSettings, Settings

if TYPE_CHECKING:
    from connectors.service import Credentials


class Progress(Protocol):
    """Called with how far a stage is; `total` is None if it cannot be known beforehand."""

    def __call__(self, stage: str, done: int, total: int | None) -> None: ...


def silent(stage: str, done: int, total: int | None) -> None:
    """A progress that nobody watches."""


@dataclass(frozen=True, slots=True)
class Workspace:
    settings: Settings
    database: Database
    progress: Progress = silent
    credentials: "Credentials | None" = None
    """Who we are to the service; None: as this process's environment says."""

    def as_login(self, token: str | None) -> "Workspace":
        return replace(self, database=self.database.as_login(token))

    def for_job(self, number: int) -> "Workspace":
        return replace(self, database=self.database.for_job(number))

    def __post_init__(self) -> None:
        keep_compiled(self.settings)
        keep_modules()


def keep_compiled(settings: Settings) -> bool:
    """Set where the compiled loops of this process and its children keep their code.

    Returns whether any code is kept there yet.
    """
    folder = os.environ.setdefault("NUMBA_CACHE_DIR", str(settings.home / "compiled"))
    return Path(folder).is_dir()


def named_service(settings: ServiceSettings) -> str:
    """The base URL of the service that is set; raises SettingsError."""
    if settings.url is None:
        raise SettingsError(
            "No service is set. Set RECON_SERVICE_URL and the credentials, "
            "or try one with `recon sandbox`."
        )
    return service_address(settings.url)
