"""What every stage of a batch works with."""

from dataclasses import dataclass
from typing import Protocol

from connectors.database import Database
from connectors.settings import Settings


class Progress(Protocol):
    """Told how far a stage is; `total` is None where it cannot be known before."""

    def __call__(self, stage: str, done: int, total: int | None) -> None: ...


def silent(stage: str, done: int, total: int | None) -> None:
    """A progress that nobody watches."""


@dataclass(frozen=True, slots=True)
class Workspace:
    """The place a run works in."""

    settings: Settings
    database: Database
    progress: Progress = silent
