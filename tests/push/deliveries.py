"""Deliveries of many rows, and what a faulty service made of them."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from connectors.postgres.batches.lease import hold_batch
from connectors.postgres.push.lane import Lane, hold_lane
from connectors.postgres.push.plan import plan_sends
from connectors.postgres.push.window import claim, next_rows
from flows.stages.receiving.batch_service import ask_for_service
from flows.stages.workspace import Workspace
from schemas.field import Table
from schemas.operations import PUSHES
from tests.service.faulty_server import OK, FaultyServer, Reply, Seen
from tests.stages.payments import HEADER, line, write

GATEWAYS = "TenantsId,PaymentActionsId,Name,ServiceKey,NotifyUrl,RedirectUrl"


def tones(path: Path, count: int) -> str:
    """Message tones 1 to `count`; each is a POST."""
    lines = [f"7,3,tone {number}" for number in range(1, count + 1)]
    path.write_text("\n".join(["TenantsId,AvatarsId,Name", *lines]) + "\n")
    return str(path)


def posted_kinds(folder: Path, count: int) -> list[str]:
    """Files of three record kinds that are posted, with so many records each."""
    rows = {
        "TenantsId,AvatarsId,Name": "7,3,tone {0}",
        "TenantsId,ActionsId,DocumentUrl": "7,{0},https://d",
        GATEWAYS: "1,{0},gateway,key,https://n,https://r",
    }
    made = []
    for header, row in rows.items():
        path = folder / f"kind-{len(made) + 1}.csv"
        path.write_text("\n".join([header, *map(row.format, range(1, count + 1))]) + "\n")
        made.append(str(path))
    return made


def payments(path: Path, count: int) -> str:
    """Payments 1 to `count`, each with an amount of its own; each is a PUT."""
    return write(path, *(line(number, amount=f"{number}.25") for number in range(1, count + 1)))


def stored(number: int, amount: float) -> Reply:
    """The answer of a service that has another amount in a payment."""
    told = dict(zip(HEADER.split(","), line(number).split(","), strict=True))
    date = told.pop("PaymentDate")
    numbers = {name: json.loads(text) for name, text in told.items()}
    return Reply(body={**numbers, "PaymentDate": date, "PaidAmount": amount})


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


@contextmanager
def claimed(place: Workspace, table: Table, most: int) -> Iterator[Lane]:
    """The turn of a run that is about to send the first rows of batch 1, and has sent none."""
    with place.database.connect() as connection, hold_batch(connection, 1) as lease:
        ask_for_service(place, lease)
        with lease.transaction():
            plan_sends(lease, table)
        with hold_lane(lease, PUSHES[table.name], wait_seconds=1) as lane:
            requests = [row.request for row in next_rows(lane, 0, most)]
            with lane.transaction():
                claim(lane, requests)
            yield lane
