"""Finish: every total recounted and tied, the report written, the batch ended.

Reports of other batches that this batch made false are written again.
"""

import logging
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg

from connectors.currencies import read_currencies
from connectors.errors import ConservationError
from connectors.files.disk.spool import clear_spool
from connectors.postgres.auditing.batch_hashes import answers_detail
from connectors.postgres.batches import ledger
from connectors.postgres.batches.attempts import counted_elsewhere
from connectors.postgres.batches.batch_reports import note_written, owed_by, settled_report
from connectors.postgres.batches.deliveries import batches_to_report_again
from connectors.postgres.batches.findings import Finding, Note, count_notes, findings, notes
from connectors.postgres.batches.lease import Lease
from connectors.postgres.batches.ledger import (
    ENDED,
    IN_DATABASE,
    NOTHING_APPLIED,
    TAKEN_BACK,
    Extract,
    Receipt,
    State,
)
from connectors.postgres.batches.overview import files_to_deliver
from connectors.postgres.batches.recount import DATABASE, Recount, Sum, recount, recount_both
from connectors.postgres.database import summarise
from connectors.postgres.heartbeat import ended_if_idle
from connectors.postgres.push.sends import SETTLED, SendRefusal, recount_sends, refusals
from connectors.postgres.trail import last_detail, last_word
from connectors.recovery import reach
from flows.stages.batch_folder import write_report
from flows.stages.witness import witness_trail
from flows.stages.workspace import Workspace
from flows.steps.batch_report import (
    MOST_NOTES,
    BatchReport,
    Chain,
    FileLine,
    NoteLine,
    Pushed,
    ReasonLine,
    build_chain,
    build_pushed,
)
from flows.steps.totals import Totals, add
from flows.steps.validate.states import EXCLUDED
from schemas.derived.sql_names import staged_name
from schemas.derived.views import ERRORS
from schemas.field import Table
from schemas.guards.batch_states import DECIDED_BY, UNDO
from schemas.operations import PUSHES
from schemas.reasons import REASONS
from schemas.tables import EXTRACTS, INSERT_BATCH_DATA

log = logging.getLogger("recon.report")
DOES_NOT_TIE = "does_not_tie"
REASON_OF_STATE = {"refused": "Refused", "differs": "EchoDiffers", "in_doubt": "InDoubt"}
DISCARDED = DECIDED_BY[State.HELD, State.DISCARDED]


def finish(workspace: Workspace, lease: Lease) -> BatchReport:
    """Recount, write the report files and end the batch; raises ConservationError after writing.

    A held batch gets a report too, so that an operator can decide; it stays held even if its totals
    do not tie.
    """
    batch = ledger.find_batch(lease.connection, lease.batch_id)
    workspace.progress("report", 0, 1)
    with lease.transaction() as connection, ended_if_idle(connection):
        # Another process that makes the report false now waits for this one, and writes it again.
        report = build_report(workspace, connection, batch.id)
        folder = _write_noted(workspace, connection, batch, report)
    log.info("Recounted: %s; report in %s", report.verdict.replace("_", " "), folder)
    reach("report")
    workspace.progress("report", 1, 1)
    if report.verdict == DOES_NOT_TIE:
        if batch.state in IN_DATABASE:
            # A role that may not apply rows cannot note it; the error is raised all the same.
            with suppress(psycopg.errors.InsufficientPrivilege):
                lease.set_state(State.FAILED)
        raise ConservationError(
            f"Batch {batch.id} does not tie. {folder / 'report.html'} shows which stage differs; "
            "nothing is lost, but do not use the data before this is explained."
        )
    tables = [staged_name(EXTRACTS[chain.record]) for chain in report.chains]
    summarise(lease.connection, "outcome", "before_image", *tables)
    if batch.state in ledger.UNDER_WAY:
        clear_spool(workspace.settings, batch.id)
        reach("cleared")
        with lease.transaction() as connection:
            ends = batch.service is not None and report.verdict in ENDED
            detail = answers_detail(connection, batch.id) if ends else {}
            lease.set_state(State(report.verdict), detail=detail or None)
        witness_trail(workspace, lease.connection)
    for one in batches_to_report_again(lease.connection, batch.id):
        report_if_written(workspace, lease.connection, one)
    reach("finish")
    return report


def report_taken_back(workspace: Workspace, lease: Lease) -> None:
    """Report a batch as undone or discarded; call it inside the transaction that takes it back."""
    batch = ledger.find_batch(lease.connection, lease.batch_id)
    report = build_report(workspace, lease.connection, batch.id)
    _write_noted(workspace, lease.connection, batch, report)


def report_if_written(workspace: Workspace, connection: psycopg.Connection, batch_id: int) -> None:
    """Write a batch's report again after something else changed it, as a rerun would.

    If no report is noted, there is none, or housekeeping removed it. A batch that is being read and
    checked writes its own report at the end.
    """
    with settled_report(connection, batch_id) as noted:
        batch = ledger.find_batch(connection, batch_id)
        is_read = batch.state is State.HELD or batch.state not in NOTHING_APPLIED
        if noted is not None and not noted.removed and is_read:
            report = build_report(workspace, connection, batch_id)
            _write_noted(workspace, connection, batch, report)


def _write_noted(
    workspace: Workspace, connection: psycopg.Connection, batch: ledger.Batch, report: BatchReport
) -> Path:
    """Write a report and its note inside the open transaction; returns its folder.

    A reader who finds files that do not match the note looks again once both are done.
    """
    folder, hashes = write_report(workspace, batch, report)
    note_written(connection, batch.id, hashes)
    return folder


def build_report(
    workspace: Workspace, connection: psycopg.Connection, batch_id: int
) -> BatchReport:
    """The report of a batch in any state, from the ledger and the rows."""
    batch = ledger.find_batch(connection, batch_id)
    extracts = ledger.list_extracts(connection, batch_id)
    names = {extract.id: extract.name for extract in extracts}
    chains, reasons, pushed = [], [], []
    sums: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    receipts = ledger.list_receipts(connection, batch_id, "stage", with_clues=False)
    tables = ledger.tables_of(receipts)
    found_in = findings(connection, tables, batch_id)
    for table in tables:
        if table is INSERT_BATCH_DATA:  # This kind has no target.
            counted = Recount(recount(connection, table, batch_id), [])
        else:
            counted = recount_both(connection, table, batch_id)
        staged = counted.staged
        for one in staged:
            sums[one.extract_id]["rows"] += one.rows
            sums[one.extract_id]["rejected"] += one.rows * (one.state in ERRORS)
            sums[one.extract_id][EXCLUDED] += one.rows * (one.state == EXCLUDED)
        chains.append(_chain(table, receipts, counted, batch.state))
        reasons += [_reason(table, found, names, found.code) for found in found_in[table.name]]
        if batch.service is not None and table.name in PUSHES and batch.state in IN_DATABASE:
            sends = _by_state(recount_sends(connection, table, batch_id))
            planned = batch.state is not State.MERGED
            pushed.append(build_pushed(table, _by_state(staged), sends, planned=planned))
            reasons += [
                _reason(table, found, names, REASON_OF_STATE[found.state], of_service=True)
                for found in refusals(connection, table, batch_id)
            ]
    refused = any(one.refused is not None for one in extracts)
    left = files_to_deliver(connection, [batch_id]) if refused else ()
    to_deliver = {one.id for one in left}
    files = tuple(
        sorted(
            (_file_line(one, sums[one.id], to_deliver) for one in extracts),
            key=lambda line: line.name,
        )
    )
    noted = notes(connection, batch_id, MOST_NOTES)
    is_cut = len(noted) == MOST_NOTES
    return BatchReport(
        feed=batch.feed,
        content_id=batch.content_id,
        verdict=_verdict(batch.state, chains, pushed, files),
        held_because=batch.held_because,
        files=files,
        chains=tuple(chains),
        reasons=tuple(reasons),
        notes=tuple(_note_line(note, names) for note in noted),
        currencies=read_currencies(workspace.settings.currencies),
        service=batch.service,
        pushed=tuple(pushed),
        again=counted_elsewhere(connection, batch_id),
        notes_beyond=count_notes(connection, batch_id) - len(noted) if is_cut else 0,
        **_taken_back(connection, batch),
    )


def _taken_back(connection: psycopg.Connection, batch: ledger.Batch) -> dict[str, Any]:
    """Who took a batch back, and what the service keeps of it."""
    if batch.state not in TAKEN_BACK:
        return {}
    return {
        "taken_back": last_word(connection, batch.id, (UNDO, DISCARDED)),
        "left_at_service": last_detail(connection, batch.id, UNDO).get("left_at_service", {}),
    }


def _note_line(note: Note, names: Mapping[int, str]) -> NoteLine:
    values = note._asdict()
    return NoteLine(file=names[values.pop("extract_id")], **values)


def _chain(table: Table, receipts: Iterable[Receipt], counted: Recount, state: State) -> Chain:
    read: dict[str, Totals] = {}
    for receipt in receipts:
        for of, shape in receipt.totals.get(table.name, {}).items():
            read[of] = read.get(of, Totals()) + Totals.from_json(shape)
    undone = state is State.UNDONE
    # Values that others wrote to the same records do not belong to a batch that was undone.
    database = [one for one in counted.database if not undone or one.state == DATABASE]
    return build_chain(
        table,
        read,
        _by_state(counted.staged),
        _by_state(database),
        applied=state in IN_DATABASE,
        undone=undone,
    )


def _by_state(sums: Iterable[Sum]) -> Mapping[str, Totals]:
    states: dict[str, Totals] = {}
    for one in sums:
        amounts = {one.currency: one.amounts} if one.amounts else {}
        states[one.state] = states.get(one.state, Totals()) + Totals(one.rows, one.keys, amounts)
    return states


def _file_line(
    extract: Extract, counted: Mapping[str, int], to_deliver: Collection[int]
) -> FileLine:
    return FileLine(
        name=extract.name,
        record=extract.record,
        bytes=extract.bytes,
        sha256=extract.sha256,
        rows=counted["rows"],
        rejected=counted["rejected"],
        refused=extract.refused,
        message=extract.message,
        excluded=counted[EXCLUDED],
        taken=extract.refused is not None and extract.id not in to_deliver,
    )


def _reason(
    table: Table,
    found: Finding | SendRefusal,
    names: Mapping[int, str],
    remedied: str,
    *,
    of_service: bool = False,
) -> ReasonLine:
    """A finding, with title and remedy of the reason by its code.

    The service's reasons are in its own words; what to do about them follows from the rows' state.
    """
    reason = REASONS[remedied]
    return ReasonLine(
        record=table.name,
        code=found.code,
        field=found.field,
        rows=found.rows,
        title=reason.title,
        remedy=reason.remedy,
        file=names[found.extract_id],
        line=found.line,
        record_number=found.record_number,
        value=found.value,
        of_service=of_service,
    )


def _verdict(
    state: State, chains: Sequence[Chain], pushed: Sequence[Pushed], files: Iterable[FileLine]
) -> str:
    if state in TAKEN_BACK:
        return str(state)
    if not all(chain.ties for chain in chains) or not all(one.ties for one in pushed):
        return DOES_NOT_TIE
    if state not in IN_DATABASE:
        return str(state)
    if any(one.waits for one in pushed):
        return str(State.MERGED)
    errors = add(
        totals for chain in chains for name, totals in chain.states.items() if name in ERRORS
    )
    settled = all(name in SETTLED for one in pushed for name in one.states)
    clean = not errors.rows and settled and all(file.refused is None for file in files)
    return str(State.COMPLETE if clean else State.COMPLETE_WITH_ERRORS)


def write_owed(workspace: Workspace, connection: psycopg.Connection, batch_id: int) -> bool:
    """Write reports that a batch made false and that are not rewritten yet; True if there were any.

    Call it for a batch that has ended; one that goes on writes them at its end.
    """
    owed = owed_by(connection, batch_id)
    for one in owed:
        report_if_written(workspace, connection, one)
    return bool(owed)
