"""A file of witnesses, and the commands that make and check them."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from connectors.postgres.trail import add_event
from flows.stages.workspace import Workspace

Recon = Callable[..., Any]


@dataclass
class Book:
    """A file of witnesses that the database's owner cannot reach, as these tests use it."""

    path: Path

    @property
    def lines(self) -> list[str]:
        return self.path.read_text().splitlines()

    @property
    def numbers(self) -> list[int]:
        return [json.loads(line)["number"] for line in self.lines]

    def write(self, lines: list[str]) -> None:
        self.path.write_text("".join(f"{line}\n" for line in lines))


def kept(workspace: Workspace) -> Book:
    """What the home has itself."""
    return Book(workspace.settings.home / "witness" / "witnesses.jsonl")


def write(workspace: Workspace, *names: str) -> None:
    with workspace.database.connect() as connection:
        for name in names:
            add_event(connection, name, by="ann")


def witnessed(recon: Recon, workspace: Workspace, *names: str) -> None:
    for name in names:
        write(workspace, name)
        assert recon("audit", "witness").returncode == 0


def verified(recon: Recon, *options: str) -> dict[str, Any]:
    ran = recon("audit", "verify", "--json", *options)
    told = json.loads(ran.stdout)
    assert ran.returncode == int(told["broken"] is not None or not told["witnesses"]["holds"])
    proof: dict[str, Any] = told["witnesses"] | {"broken": told["broken"]}
    return proof


def changed(line: str, **values: object) -> str:
    return json.dumps(json.loads(line) | values)
