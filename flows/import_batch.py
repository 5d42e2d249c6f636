"""Import a delivery: the life of a row from the delivered file to the database, as a flow."""

import re
from typing import Annotated, Any

from prefect import flow
from prefect.client.schemas.objects import State as RunState
from prefect.settings import PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings
from prefect.states import Completed
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, WithJsonSchema

from connectors.errors import BatchStateError
from connectors.ledger import State
from flows import tasks
from flows.tasks import Manifest
from schemas.tables import EXTRACTS

ADDRESS_WITH_LOGIN = r"://[^/?#]*@|[?&][^=&]*(sig|token|key|secret|passw|credential)[^=&]*="
"""Parameters of a run are kept and shown: a login or a signature in a URL would be too."""


def _without_secret(path: str) -> str:
    if re.search(ADDRESS_WITH_LOGIN, path, re.IGNORECASE):
        raise ValueError(
            "this address carries a login, a key or a signature, and parameters of a run are shown "
            "to everyone; take it out and let the worker's environment give access"
        )
    return path


def _known_record(record: str | None) -> str | None:
    if record is not None and record not in EXTRACTS:
        raise ValueError(f"there is no such record kind; known: {', '.join(sorted(EXTRACTS))}")
    return record


Address = Annotated[str, AfterValidator(_without_secret)]
Record = Annotated[
    str | None,
    AfterValidator(_known_record),
    WithJsonSchema(
        {"anyOf": [{"type": "string", "enum": sorted(EXTRACTS)}, {"type": "null"}], "default": None}
    ),
]


class Delivery(BaseModel):
    """What to import and on which terms."""

    # A refused address may hold a secret, and the text of an error is kept.
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    paths: list[Address] = Field(
        title="Files",
        description="Folders, files, patterns, zips or URLs, as the worker sees them.",
        min_length=1,
        json_schema_extra={"position": 0},
    )
    profile: str | None = Field(
        default=None,
        title="Feed profile",
        description="Path of the feed's TOML file; none: the form of the service document.",
        json_schema_extra={"position": 1},
    )
    record: Record = Field(
        default=None,
        title="Record kind",
        description="Only where the header does not tell.",
        json_schema_extra={"position": 2},
    )
    tenant: int | None = Field(
        default=None,
        title="Tenant",
        description="Reject the rows of any other tenant.",
        json_schema_extra={"position": 3},
    )
    max_errors: int | None = Field(
        default=None,
        title="Hold above this many rows with errors",
        description="A held batch applies nothing until somebody releases it.",
        ge=0,
        json_schema_extra={"position": 4},
    )
    max_error_rate: float | None = Field(
        default=None,
        title="Hold above this share of rows with errors",
        description="0 to 1: 0.01 holds a batch with more than one bad row in a hundred.",
        ge=0,
        le=1,
        json_schema_extra={"position": 5},
    )
    corrects: int | None = Field(
        default=None,
        title="Corrects batch",
        description="Number of the batch whose rejects this delivery repairs.",
        ge=1,
        json_schema_extra={"position": 6},
    )

    @property
    def label(self) -> str:
        """A name for the run: the first path's last part, and how many more there are."""
        first = re.split(r"[?#]", self.paths[0])[0] if "://" in self.paths[0] else self.paths[0]
        name = re.split(r"[/\\]", first.rstrip("/\\"))[-1] or first
        more = f" and {len(self.paths) - 1} more" if self.paths[1:] else ""
        corrected = f", correcting batch {self.corrects}" if self.corrects else ""
        return name + more + corrected


@flow(
    name="import-batch",
    flow_run_name="import {delivery.label}",
    persist_result=False,
    result_serializer="json",
)
def import_batch(delivery: Delivery) -> RunState[Any]:
    """Take a delivery into PostgreSQL with every row accounted for: the life of a row.

    The same bytes are taken once: run again, it goes on where the batch stopped, or names the
    batch that took them and changes nothing. What cannot go on fails with a ReconError.
    """
    received = tasks.receive_files(
        delivery.paths,
        profile=delivery.profile,
        record=delivery.record,
        tenant=delivery.tenant,
        max_errors=delivery.max_errors,
        max_error_rate=delivery.max_error_rate,
        corrects=delivery.corrects,
    )
    staged = tasks.stage_rows(received)
    checked = tasks.check_rows(staged)
    applied = tasks.apply_rows(checked)
    reported = tasks.report_batch(applied)
    return end_state(reported)


def run_import(delivery: Delivery) -> RunState[Any]:
    """Run the flow here and now; its end state, with the last manifest where it completed."""
    # A run of seconds needs no heartbeat, and Prefect waits a second for the end of each.
    with temporary_settings({PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}):
        return import_batch(delivery, return_state=True)


def end_state(batch: Manifest) -> RunState[Any]:
    """The state a run ends in: operators filter by its name, its message says what to do next.

    Raises BatchStateError for a batch that has not come to an end.
    """
    data = batch.model_dump(mode="json")
    match batch.state:
        case State.COMPLETE:
            return Completed(name="Completed", message=_counted(batch), data=data)
        case State.COMPLETE_WITH_ERRORS:
            todo = f"Next: recon rejects {batch.batch_id} --out FOLDER, correct, import again."
            message = f"{_counted(batch)}. {todo}"
            return Completed(name="CompletedWithErrors", message=message, data=data)
        case State.HELD:
            todo = (
                f"Nothing is applied: {batch.held_because}. Next: recon release {batch.batch_id} "
                "--reason '...' applies the clean rows, recon discard ends the batch."
            )
            return Completed(name="Held", message=f"{_counted(batch)}. {todo}", data=data)
        case State.DISCARDED | State.UNDONE:
            message = f"Batch {batch.batch_id} is {batch.state} and stays so; import it anew."
            return Completed(name=batch.state.capitalize(), message=message, data=data)
        case _:
            # A failed state that is returned would end a run with retries in AwaitingRetry.
            raise BatchStateError(
                f"{_counted(batch)}; it stopped as {batch.state}. Read the report in "
                f"{batch.folder}, then go on with recon rerun {batch.batch_id}."
            )


def _counted(batch: Manifest) -> str:
    rows = sum(batch.rows.values())
    errors = f"{batch.errors} of {rows} rows carry HasError"
    told = f"Batch {batch.batch_id}: " + (errors if batch.errors else f"{rows} rows, no errors")
    refused = f", {batch.refused} files refused" if batch.refused else ""
    known = f"{batch.known} " if batch.known else ""
    return known + told + refused
