"""The three days of data_samples/reconciliation, played against a database and the sandbox."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from connectors.postgres.auditing.batch_hashes import answers_detail
from connectors.postgres.batches.lease import hold_batch
from connectors.postgres.batches.ledger import State, batches_in_force
from connectors.sandbox import Sandbox
from flows.stages.pull import pull
from flows.stages.reconcile.rules import read_rules
from flows.stages.reconcile.run import Asked, Reconciled, reconcile
from flows.stages.reconcile.scope import Scope
from flows.stages.sequence import import_delivery
from flows.stages.workspace import Workspace
from flows.steps.rules.rules import Rules
from tests.push.conftest import PUSHED, sandbox_at, towards

FOLDER = Path(__file__).parents[2] / "data_samples" / "reconciliation"
EXPECTED: dict[str, Any] = json.loads((FOLDER / "expected.json").read_text())

Told = tuple[str, str, str, str, str]
"""Code, record, key, field and delta of a break."""


@dataclass(frozen=True)
class Story:
    """One place where the days are played."""

    place: Workspace
    sandbox: Sandbox
    rules: Rules

    def deliver(self, folder: Path, corrects: int | None = None) -> int:
        """Import and push a folder; returns the batch."""
        return import_delivery(self.place, [str(folder)], PUSHED, corrects=corrects).batch.id

    def listing(self, folder: Path) -> None:
        """Let the service list these rows, and pull what it lists."""
        for path in sorted(folder.glob("*.csv")):
            self.sandbox.load(path.stem, path)
        pull(self.place, [path.stem for path in sorted(folder.glob("*.csv"))])

    def change(self, statements: str) -> None:
        """What others do to the database behind our back, and how the service had answered.

        Of its answers the audit trail says what it says at the end of a push.
        """
        with self.place.database.connect() as connection:
            connection.execute(statements)  # type: ignore[call-overload]
            for batch in batches_in_force(connection):
                with hold_batch(connection, batch.id) as lease:
                    lease.set_state(State.MERGED)
                    lease.set_state(batch.state, detail=answers_detail(connection, batch.id))

    def reconcile(self, as_of: str) -> Reconciled:
        return reconcile(self.place, Asked(Scope(), date.fromisoformat(as_of), self.rules))

    def play(self, day: str) -> Reconciled:
        """A day as it went: delivery, listing, changes, and the reconciliation in the evening."""
        if (FOLDER / day).is_dir():
            self.deliver(FOLDER / day)
        if (FOLDER / f"{day}-listings").is_dir():
            self.listing(FOLDER / f"{day}-listings")
        if (FOLDER / f"{day}.sql").is_file():
            self.change((FOLDER / f"{day}.sql").read_text())
        return self.reconcile(EXPECTED[day]["as_of"])


@contextmanager
def told_at(workspace: Workspace) -> Iterator[Story]:
    """A sandbox beside this workspace, and the rules of the scenario."""
    with sandbox_at(workspace.database.url) as (sandbox, url):
        yield Story(towards(workspace, url), sandbox, read_rules(FOLDER / "rules.toml"))


def expected_breaks(day: str) -> set[Told]:
    """What the sample says must be found."""
    return {
        (one["code"], one["record"], one["key"], one["field"], one["delta"])
        for one in EXPECTED[day]["breaks"]
    }


def found_breaks(done: Reconciled) -> set[Told]:
    """The breaks of a report in the sample's words."""
    return {
        (
            one.code,
            one.record,
            # A row of insert-batch data has no key but its content; its note names what is inside.
            f"{one.key.split('/')[0]} {_inside(one.note) if '/' in one.key else ''}".strip()
            if one.record == "insert_batch_data"
            else one.key,
            one.field,
            "" if one.delta is None else str(one.delta),
        )
        for one in done.report.breaks
    }


def _inside(note: str) -> str:
    """What a note says is inside a row, behind who accepted the break."""
    accepted = note.startswith("accepted by")
    return "" if accepted and "; " not in note else note.rsplit("; ", maxsplit=1)[-1]
