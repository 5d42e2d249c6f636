"""After a restore: `recon restored`."""

from enum import StrEnum
from typing import Annotated

from cyclopts import Parameter

from flows.commands.batches import By, Reason
from flows.commands.console import out, print_json, workspace
from flows.commands.deliver import Json
from flows.stages.restored import go_on_after_restore


class Unsent(StrEnum):
    """What the rows are that the restored database has as unsent."""

    IN_DOUBT = "in_doubt"
    UNSENT = "unsent"


def restored_command(
    *,
    unsent: Annotated[
        Unsent,
        Parameter(help="in-doubt: POSTs may have been sent; unsent: they certainly were not."),
    ],
    reason: Reason,
    by: By = None,
    json: Json = False,
) -> int:
    """Let pushes go on after the database or RECON_HOME was restored, moved or copied.

    Only one copy may send: stop the others first. With in-doubt, every POST that is unsent here,
    and every one of a delivery that the archive has and the database does not, waits for
    `recon resolve`; with unsent, all are sent as they stand.

    Example: `recon restored --unsent in-doubt --reason "restored from last night"`
    """
    with workspace(quiet=True, say_held=False) as place:
        rows = go_on_after_restore(place, unsent=unsent.value, by=by, reason=reason)
    if json:
        print_json({"unsent": unsent.value, "in_doubt": rows})
        return 0
    told = ", ".join(f"{count} of {operation}" for operation, count in rows.items())
    out().print(f"Pushes go on from here. Rows in doubt now: {told or 'none'}.")
    if rows:
        out().print(
            "`recon sends BATCH --state in_doubt` lists them, `recon resolve` settles them."
        )
    return 0
