"""Deliveries of many rows, and what a faulty service made of them."""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.service.faulty_server import OK, FaultyServer, Reply, Seen
from tests.stages.payments import line, write


def tones(path: Path, count: int) -> str:
    """Message tones 1 to `count`; each is a POST."""
    lines = [f"7,3,tone {number}" for number in range(1, count + 1)]
    path.write_text("\n".join(["TenantsId,AvatarsId,Name", *lines]) + "\n")
    return str(path)


def payments(path: Path, count: int) -> str:
    """Payments 1 to `count`, each with an amount of its own; each is a PUT."""
    return write(path, *(line(number, amount=f"{number}.25") for number in range(1, count + 1)))


def row_of(body: str) -> int:
    """The number of the row a body was made of."""
    record = json.loads(body)
    return int(record["Id"]) if "Id" in record else int(re.sub(r"\D", "", record["Name"]))


def by_row(faults: Mapping[int, Reply], then: Reply = OK) -> Callable[[Seen], Reply]:
    """The fault of a row at its first attempt, whatever the order of arrival."""

    def plan(seen: Seen) -> Reply:
        return faults.get(row_of(seen.body), then) if seen.attempt == 1 else then

    return plan


def applied(server: FaultyServer) -> dict[int, list[str]]:
    """Row -> the bodies that took effect for it, in order."""
    found: dict[int, list[str]] = {}
    for effect in server.effects:
        found.setdefault(row_of(effect.body), []).append(effect.body)
    return found
