"""Automations: what the server does by itself when a run or a batch ends badly.

They are created or updated by name, so registering twice leaves one of each. Operators' changes
stay: whether an automation is switched on, and the actions they added. Names of events follow names
of states, so every state of ours that needs attention is listed.
"""

from collections.abc import Iterator
from datetime import timedelta
from typing import cast
from uuid import UUID

from prefect.blocks.webhook import Webhook
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.actions import BlockTypeUpdate
from prefect.client.schemas.objects import StateType
from prefect.events.actions import (
    ActionTypes,
    CallWebhook,
    ChangeFlowRunState,
    DoNothing,
    RunDeployment,
)
from prefect.events.schemas.automations import AutomationCore, EventTrigger, Posture
from prefect.exceptions import ObjectNotFound
from prefect.types import SecretDict
from pydantic import SecretStr

from connectors.addresses import check_notice_address
from flows.ops.deployments import DEPLOYMENTS, TAG
from flows.tasks.blocks import deciphered
from flows.tasks.hooks import NO_BATCH

NOTICE = "recon-notice"
"""Name of the webhook block, made from RECON_NOTIFY_URL."""
_BLOCK = f"{Webhook.get_block_type_slug()}/{NOTICE}"
ATTENTION = (
    *("Failed", "Crashed", "TimedOut", "Suspended"),
    *("Held", "Rejected", "Breaks", "Incomplete"),
)
"""States of a run after which somebody has to look."""
ALIVE = timedelta(seconds=150)
"""Silence after which a run counts as dead: five heartbeats."""
NOT_DEAD = (
    *(
        "Completed",
        "CompletedWithErrors",
        "Skipped",
        "Discarded",
        "Undone",
        "Cancelled",
        "Cancelling",
    ),
    *("AwaitingRetry", "AwaitingConcurrencySlot", "Paused", "Retrying", "Scheduled", "Late"),
    *("Pending", *ATTENTION),
)
"""States in which a run rightly sends no heartbeat, including all our own state names."""
GATHERED = timedelta(seconds=30)
"""For this long after an event that asks for the table of batches, others ask for nothing."""
CLOCKS = timedelta(seconds=10)
"""How far the clocks of workers may be ahead of the server's."""
BATCH_ENDS = ("completed_with_errors", "held", "rejected", "failed", "crashed", "cancelled")
"""Ends after which the table of batches has a next step to show."""

_CALLS = {"<": "(", ">": ")", "@": "(at)", "[": "("}
"""Characters that begin a mention or a link in chat services -> their replacements."""
_PLAIN = " | ".join(f'replace("{one}", "{other}")' for one, other in _CALLS.items())
MESSAGE = (
    f'{{"text": {{{{ ("recon: " ~ flow.name ~ " / " ~ (flow_run.name | {_PLAIN}) ~ " is " '
    '~ flow_run.state.name ~ ". " ~ (flow_run | ui_url or "Run " ~ flow_run.id)) | tojson }}}'
)
"""The webhook's message in the form that chat services take; it contains no row and no value.

It links to the page of the run, whose address the server knows.

A run's name contains the names of its files, so it is escaped and cannot mention anybody.
"""


def register(webhook: str | None) -> list[str]:
    """Create or update the automations on the server; gives their names.

    `webhook` is the address for notices. None leaves notices as they are. An empty address ends
    them: the firing of an automation is then only an event of the feed.
    """
    with get_client(sync_client=True) as client:
        before = _noticing(client)
        notice = [] if webhook is None else [_notice(client, webhook)]
        wanted = list(_automations(client, notice))
        for automation in wanted:
            _upsert(client, automation, before)
    return [automation.name for automation in wanted]


def _automations(client: SyncPrefectClient, notices: list[ActionTypes]) -> Iterator[AutomationCore]:
    ours = _ours(client)
    yield AutomationCore(
        name="recon: a run needs somebody",
        description=(
            "A run failed or crashed, waits for a decision, holds or rejected a batch, or is a "
            "reconciliation that has breaks or lacks a side."
        ),
        trigger=EventTrigger(
            expect={f"prefect.flow-run.{state}" for state in ATTENTION},
            match={"prefect.resource.id": ["prefect.flow-run.*"]},
            match_related=ours,
            posture=Posture.Reactive,
            threshold=1,
        ),
        actions=notices,
    )
    yield AutomationCore(
        name="recon: silent runs are crashed",
        description=(
            "Sets a run without heartbeats to Crashed: if its worker died too, it would stay "
            "Running for ever. Off by default, as a machine that sleeps sends no heartbeats either."
        ),
        enabled=False,
        trigger=EventTrigger(
            after={"prefect.flow-run.heartbeat"},
            expect={
                "prefect.flow-run.heartbeat",
                *(f"prefect.flow-run.{state}" for state in NOT_DEAD),
            },
            match={"prefect.resource.id": ["prefect.flow-run.*"]},
            match_related=ours,
            for_each={"prefect.resource.id"},
            posture=Posture.Proactive,
            threshold=1,
            within=ALIVE,
        ),
        actions=[
            ChangeFlowRunState(
                name=None,
                state=StateType.CRASHED,
                message="No heartbeat; Retry goes on where it stopped.",
                force=False,
            )
        ],
    )
    try:
        board = client.read_deployment_by_name("batch-board/board")
    except ObjectNotFound:
        return
    yield board_automation(board.id)


def board_automation(board: UUID) -> AutomationCore:
    """Write the table of batches again, by this deployment of it.

    The first of many events asks for a run; the run is due once the time is over in which others
    ask for nothing.
    """
    return AutomationCore(
        name="recon: a batch has a next step",
        description="Rewrites the table of batches when a batch has rejects, is held or failed.",
        trigger=EventTrigger(
            expect={f"recon.batch.{end}" for end in BATCH_ENDS},
            # The end of a run without a batch changes nothing in the table.
            match={"prefect.resource.id": ["recon.batch.*"], "recon.batch": [f"!{NO_BATCH}"]},
            posture=Posture.Reactive,
            threshold=1,
            within=GATHERED,
        ),
        actions=[
            RunDeployment(
                source="selected",
                deployment_id=board,
                parameters=None,
                job_variables=None,
                schedule_after=GATHERED + CLOCKS,
            )
        ],
    )


def _ours(client: SyncPrefectClient) -> dict[str, str | list[str]]:
    """Runs of our flows, from any deployment, and runs that somebody gave our tag."""
    names = dict.fromkeys(line.full_name.partition("/")[0] for line in DEPLOYMENTS)
    flows = [f"prefect.flow.{client.create_flow_from_name(name)}" for name in names]
    return {"prefect.resource.id": [f"prefect.tag.{TAG}", *flows]}


def _noticing(client: SyncPrefectClient) -> ActionTypes:
    """The notice by the block on the server; no action if there is no block."""
    try:
        with deciphered(_BLOCK):
            found = client.read_block_document_by_name(NOTICE, Webhook.get_block_type_slug())
    except ObjectNotFound:
        return DoNothing()
    return CallWebhook(block_document_id=found.id, payload=MESSAGE)


def _notice(client: SyncPrefectClient, webhook: str) -> ActionTypes:
    if not webhook:
        return DoNothing()
    check_notice_address(webhook)
    headers = SecretDict({"Content-Type": "application/json"})
    block = Webhook(method="POST", url=SecretStr(webhook), headers=headers)
    with deciphered(_BLOCK):
        saved = cast(UUID, block.save(NOTICE, overwrite=True))
    _without_picture(client)
    return CallWebhook(block_document_id=saved, payload=MESSAGE)


def _without_picture(client: SyncPrefectClient) -> None:
    """Remove the logo's address from the block type; every saving of the block restores it.

    The Event Feed would fetch the logo, from outside, for every event of the webhook.
    """
    found = client.read_block_type_by_slug(Webhook.get_block_type_slug())
    client.update_block_type(found.id, BlockTypeUpdate(logo_url=None))


def _upsert(client: SyncPrefectClient, wanted: AutomationCore, notice: ActionTypes) -> None:
    """Create or update an automation; without wanted actions it keeps its own. `notice` is ours."""
    found = client.read_automations_by_name(wanted.name)
    if not found:
        actions = wanted.actions or [notice]
        client.create_automation(wanted.model_copy(update={"actions": actions}))
        return
    first, *copies = found
    ours = {_is(one) for one in (*wanted.actions, notice, DoNothing())} if wanted.actions else set()
    actions = [*wanted.actions, *(one for one in first.actions if _is(one) not in ours)]
    kept = {"enabled": first.enabled, "actions": actions}
    client.update_automation(first.id, wanted.model_copy(update=kept))
    for copy in copies:
        client.delete_automation(copy.id)


def _is(action: ActionTypes) -> tuple[str, UUID | None]:
    """What tells our actions from those that operators added to an automation."""
    return action.type, getattr(action, "block_document_id", None)
