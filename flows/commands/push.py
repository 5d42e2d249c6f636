"""The service's side: `recon push`, `resolve`, `sends`, `pull` and `restored`."""

from dataclasses import asdict
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from connectors.errors import ReconError, SettingsError
from connectors.postgres.push.sends import SendDecision
from flows.commands.batches import Batch, By, Reason
from flows.commands.console import LISTED, out, print_json, within, workspace
from flows.commands.deliver import Json, ended_json, report_line, show_ended
from flows.commands.sent_lines import sent_json, sent_lines
from flows.commands.streams import tell
from schemas.counting import grouped, quantity

if TYPE_CHECKING:
    from flows.stages.workspace import Workspace

Rows = Annotated[
    tuple[str, ...],
    Parameter(
        name="--row", help="Only this row: FILE:line:LINE or FILE:record:NUMBER; may be repeated."
    ),
]
Operation = Annotated[
    str | None, Parameter(help="Only rows of this operation, by the name that reports show.")
]
States = Annotated[
    tuple[str, ...],
    Parameter(
        name="--state",
        help="Only rows in this state: acknowledged, refused, differs, in_doubt, abandoned, "
        "superseded, unsent or sending; may be repeated.",
    ),
]


class Unsent(StrEnum):
    """What is known about rows that the restored database has as unsent."""

    IN_DOUBT = "in_doubt"
    UNSENT = "unsent"


def push_command(
    batch: Annotated[
        int | None,
        Parameter(
            help="Number of the batch; default: every batch with unsent rows.", validator=LISTED
        ),
    ] = None,
    *,
    max_rows: Annotated[
        int | None,
        Parameter(
            help="Send at most this many rows of each batch this time; default: all.",
            validator=within(0, 2**63 - 1),
        ),
    ] = None,
    json: Json = False,
) -> int:
    """Send unsent rows: a PUT until it succeeds, a POST again only if it was not carried out.

    Run it again at any time: what was acknowledged is not sent again. A batch that cannot be pushed
    is reported and does not hold up the others. Example: `recon push 12`

    Exit code 0: the batch is complete; 1: rows were refused, differ, are in doubt or unsent, or
    had errors when they were imported; 2: the service refuses us or cannot be reached; 3: another
    run is sending.
    """
    from flows.stages.sequence import push_batch, push_waiting

    with workspace("push", quiet=json, say_held=False) as place:
        pushed = (
            push_waiting(place, most=max_rows)
            if batch is None
            else [(batch, push_batch(place, batch, most=max_rows))]
        )
        results: list[dict[str, Any]] = []
        batches, code = 0, 0
        for number, ended in pushed:
            batches, code = batches + 1, max(code, ended.exit_code)
            if isinstance(ended, ReconError):
                tell(str(ended))
                results.append({"batch": number, "error": str(ended)})
                continue
            if json:
                results.append(ended_json(ended, place.settings.reports))
            else:
                show_ended(ended, place.settings.reports, as_json=False, verbose=True)
    if json:
        print_json({"batches": results})
    elif not batches:
        out().print("Nothing is unsent.")
    return code


def sends_command(
    batch: Batch,
    *,
    rows: Rows = (),
    operation: Operation = None,
    state: States = (),
    json: Json = False,
) -> int:
    """List a batch's rows for the service: where each comes from, what was sent and answered.

    Example: `recon sends 12 --state in_doubt`
    """
    from connectors.postgres.push.gate import held_text, why_held
    from connectors.printable import shown
    from flows.report.spelling import visible
    from flows.stages.chosen_sends import ChosenSends, not_listed, sends_of

    chosen = ChosenSends(rows, operation, state)
    with workspace("sends", say_held=False) as place:
        with place.database.connect() as connection:
            why = why_held(connection, place.settings.home)
        if json:
            listed = [sent_json(sent) for sent in sends_of(place, batch, chosen)]
            gone = not_listed(place, batch)
            print_json({"sends": listed, "not_listed": gone, "push_held": why})
            return 0
        if why:
            out().print(held_text(why))
        count = 0
        for sent in sends_of(place, batch, chosen):
            first, *more = sent_lines(sent)
            out().print(
                f"{shown(sent.file)}:line:{sent.line} (record {sent.record_number}) {first}"
            )
            for line in more:
                out().print(f"    {visible(line)}")
            count += 1
        gone = {} if rows or operation or state else not_listed(place, batch)
        for name, states in gone.items():
            counts = ", ".join(f"{of_state:,} {one}" for one, of_state in states.items())
            out().print(
                f"{name}: {counts}. The record kind of these rows no longer has this operation, so "
                "they are not listed; `recon row` shows each."
            )
    if not count and not gone:
        out().print(f"Batch {batch} has no such rows.")
    return 0


def resolve_command(
    batch: Batch,
    *,
    as_: Annotated[
        SendDecision,
        Parameter(
            name="--as",
            help="confirm: the service has the row; resend: send it again; abandon: do not send "
            "it.",
        ),
    ],
    reason: Reason,
    rows: Rows = (),
    operation: Operation = None,
    state: States = (),
    by: By = None,
    json: Json = False,
) -> int:
    """Decide about rows that are in doubt, were refused or differ, one by one or by filter.

    Another decision replaces an earlier one as long as nothing was sent because of it. In
    every reconciliation, confirmed rows are shown as not confirmed by the service.

    Example: `recon resolve 12 --row tones.csv:line:8 --as confirm --reason "seen there"`

    Exit code 0: nothing is left to decide; 1: rows are left to decide about or to send again.
    """
    from flows.stages.chosen_sends import ChosenSends
    from flows.stages.resolve import next_text, resolve

    if not rows and operation is None and not state:
        raise SettingsError("Say which rows: --row FILE:line:LINE, --operation or --state.")
    with workspace("resolve", quiet=json) as place:
        resolved = resolve(
            place, batch, ChosenSends(rows, operation, state), as_, by=by, reason=reason
        )
    if json:
        ended = ended_json(resolved.ended, place.settings.reports)
        print_json(ended | {"resolved": resolved.detail})
    else:
        count = quantity(resolved.rows, "row", grouped)
        then = next_text(batch, resolved.detail)
        out().print(f"{count} of batch {batch}: {as_.value}. {then}")
        out().print(report_line(place.settings.reports, batch))
    return resolved.ended.exit_code


def pull_command(
    *listing: Annotated[
        str,
        Parameter(help="Listings: avatars, payment_plan_details, insert_batch_data; default: all."),
    ],
    compare: Annotated[
        bool,
        Parameter(help="Only compare the service's insert-batch data with ours; keep nothing."),
    ] = False,
    json: Json = False,
) -> int:
    """Read listings from the service and keep them for comparison; our records do not change.

    With --compare only insert_batch_data can be named.

    Example: `recon pull avatars payment_plan_details`

    Exit code 0: the listings are kept or, with --compare, equal; 1: with --compare, a batch
    differs; 2: a listing is not whole or has a row that cannot be read, and none of it counts.
    """
    from flows.stages.pull import COMPARED, pull

    if compare and (others := sorted({*listing} - {COMPARED})):
        raise SettingsError(
            f"--compare reads {COMPARED} only, and not {others[0]!r}. Leave out one of the two."
        )
    with workspace("pull", quiet=json) as place:
        if compare:
            return _compare(place, as_json=json)
        pulled = pull(place, listing)
    reports = place.settings.reports
    if json:
        shape = ended_json(pulled.ended, reports)
        print_json(shape | {"listings": [asdict(one) for one in pulled.listings]})
    else:
        for one in pulled.listings:
            out().print(f"{one.name}: {quantity(one.rows, 'row', grouped)}, {one.proof}")
        show_ended(pulled.ended, reports, as_json=False, verbose=True)
    return pulled.ended.exit_code


def restored_command(
    *,
    unsent: Annotated[
        Unsent,
        Parameter(
            help="in-doubt: unsent POSTs may have been sent since the backup; unsent: they were "
            "certainly not."
        ),
    ],
    reason: Reason,
    by: By = None,
    json: Json = False,
) -> int:
    """Allow pushes again after the database or RECON_HOME was restored, moved or copied.

    Only one copy may send: stop the others first. With in-doubt, every POST that is unsent here
    waits for `recon resolve`, and so does every POST of a delivery that the archive has, or had,
    but the database does not; with unsent, all are sent as they are.

    Example: `recon restored --unsent in-doubt --reason "restored from last night"`
    """
    from flows.stages.upkeep.restored import go_on_after_restore

    with workspace("restored", say_held=False) as place:
        done = go_on_after_restore(place, unsent=unsent.value, by=by, reason=reason)
    rows = done.in_doubt
    if json:
        lost = [asdict(one) for one in done.lost]
        removed = {
            "lost_removed": done.lost_removed,
            "missing": done.missing,
            "removed": done.removed,
            "removed_reports": done.removed_reports,
        }
        print_json({"unsent": unsent.value, "in_doubt": rows, "lost": lost} | removed)
        return 0
    in_doubt = ", ".join(f"{count} of {operation}" for operation, count in rows.items())
    out().print(f"Pushes go on from here. Rows in doubt now: {in_doubt or 'none'}.")
    if rows:
        out().print(
            "`recon sends BATCH --state in_doubt` lists them, `recon resolve` settles them."
        )
    for number, what in ((done.removed, "content"), (done.removed_reports, "batch report")):
        if number:
            count = quantity(number, what, grouped)
            out().print(f"Since the backup, housekeeping removed {count}; now marked as removed.")
    if done.lost:
        count = quantity(len(done.lost), "content", grouped)
        out().print(f"The archive holds {count} that no batch knows. Import what was lost again:")
    for one in done.lost:
        out().print(f"  {one.text}")
    if done.lost_removed:
        count = quantity(done.lost_removed, "content", grouped)
        out().print(
            f"Housekeeping removed {count} that no batch knows. Have what was lost delivered again."
        )
    if done.missing:
        count = quantity(done.missing, "content", grouped)
        out().print(
            f"The archive lacks {count} that batches brought, so it may also lack what came after "
            "the backup, whose POSTs would be sent again. If there is a newer archive, bring it "
            "back and run this command again; if not, compare what was lost with the service "
            "before you push it. `recon archive verify` names what is missing."
        )
    return 0


def _compare(place: "Workspace", *, as_json: bool) -> int:
    from flows.stages.pull import compare as compare_listing
    from flows.steps.reconcile.listed import SHARED

    compared = compare_listing(place)
    if as_json:
        batches = [asdict(one) | {"differs": one.differs} for one in compared]
        print_json({"compared": SHARED, "batches": batches})
    elif compared:
        out().print(
            f"Compared: {' and '.join(SHARED)}. BatchId is the service's own number; Merged and "
            "ErrorData are each side's own account."
        )
    else:
        out().print("The service lists no insert-batch data, and none was delivered here.")
    for one in () if as_json else compared:
        verdict = "differs" if one.differs else "equal"
        held = ", ".join(f"{rows} in batch {batch}" for batch, rows in one.here) or "none"
        out().print(
            f"BatchId {one.batch_id}: {one.theirs} at the service, {one.same} the same here "
            f"({held}), {one.otherwise} with another HasError, {one.missing} only here: {verdict}"
        )
    return int(any(one.differs for one in compared))
