"""Deliveries: `recon check` and `recon import`."""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from connectors.desk_links import DeskPage, desk_link
from connectors.errors import DeliveryError
from connectors.files.chunks.skipped_lines import NO_LINES
from connectors.settings import read_settings
from flows.commands.console import out, print_json, show_progress, workspace
from schemas.counting import agree, grouped, quantity
from schemas.reasons import remedies
from schemas.tables import EXTRACTS, INSERT_BATCH_DATA

# Modules that work on frames and rows are imported where they are called, after `--help`.
if TYPE_CHECKING:
    from connectors.files.profiles.profile import Profile
    from flows.stages.examining.verdicts import FileVerdict
    from flows.stages.sequence import Ended
    from flows.steps.batch_report import BatchReport

REJECTS_SHOWN = 20
REJECTS_READ = 1000
"""Rejects of a file that are searched for further reasons."""

Location = Annotated[str, Parameter(help="Files, folders, glob patterns, zip archives or URLs.")]
Record = Annotated[
    str | None,
    Parameter(help="Record kind, such as payment; default: recognised from the header."),
]
Feed = Annotated[
    Path | None,
    Parameter(
        name="--profile",
        help="Feed profile (TOML file); default: the form of the service document.",
    ),
]
Json = Annotated[bool, Parameter(name="--json", help="Print JSON instead of text, for scripts.")]
Verbose = Annotated[
    bool, Parameter(name=["--verbose", "-v"], help="Print the whole report as text.")
]
Tenant = Annotated[
    int | None,
    Parameter(help="Reject rows of any TenantsId but this; default: take the rows of all tenants."),
]


def check_command(
    *paths: Location,
    record: Record = None,
    profile: Feed = None,
    tenant: Tenant = None,
    json: Json = False,
) -> int:
    """Validate files without a database: check every row, list all its errors, keep nothing.

    Example: `recon check payments.csv --json`

    Exit code 0: nothing would be rejected; 1: rows or files would be rejected, or an import would
    be held; 2: could not run.
    """
    from flows.stages.examining.examine import examine
    from flows.stages.examining.verdicts import write_json
    from flows.stages.held import would_be_held

    feed, most = profile_of(profile, record, tenant=tenant), None if json else REJECTS_READ
    with show_progress(quiet=json) as progress:
        verdicts = examine(
            read_settings(), paths, feed, record=record, progress=progress, most=most
        )
    held = would_be_held(verdicts, feed)
    if json:
        write_json(verdicts, sys.stdout, held_because=held)
    else:
        _show(verdicts)
        tell_held(held)
    return int(bool(held) or any(verdict.refused or verdict.rejects for verdict in verdicts))


def import_command(
    *paths: Location,
    record: Record = None,
    profile: Feed = None,
    tenant: Tenant = None,
    max_errors: Annotated[
        int | None,
        Parameter(
            help="Hold the batch if more rows than this have errors; default: as the profile says."
        ),
    ] = None,
    max_error_rate: Annotated[
        float | None,
        Parameter(
            help="Hold the batch if more than this share of its rows (0 to 1) has errors; default: "
            "as the profile says."
        ),
    ] = None,
    corrects: Annotated[
        int | None,
        Parameter(help="Number of the batch whose rejected rows or refused files this repairs."),
    ] = None,
    change_records: Annotated[
        bool,
        Parameter(help="With --corrects: let repaired rows change records of other deliveries."),
    ] = False,
    push: Annotated[
        bool,
        Parameter(help="Also send the applied rows to the service; default: as the profile says."),
    ] = False,
    json: Json = False,
    verbose: Verbose = False,
) -> int:
    """Import a delivery into PostgreSQL and account for every row.

    The same bytes are taken once: a second import names the first batch and changes nothing. To
    continue an import that was cut off, run the same command again. It prints one line per file
    and the verdict; `-v` prints the whole report.

    Example: `recon import data_samples/clean`

    Exit code 0: everything applied; 1: some rows or files were rejected, or the batch is held;
    2: could not run; 3: another run holds the batch.
    """
    from flows.stages.sequence import import_delivery

    feed = profile_of(
        profile,
        record,
        tenant=tenant,
        budget_errors=max_errors,
        budget_rate=max_error_rate,
        push=push or None,
    )
    feed = replace(feed, change_records=change_records)
    with workspace("import", quiet=json) as place:
        ended = import_delivery(place, paths, feed, record=record, corrects=corrects)
    return show_ended(ended, place.settings.reports, as_json=json, verbose=verbose)


def show_ended(ended: "Ended", reports: Path, *, as_json: bool, verbose: bool = False) -> int:
    """Say what became of a batch and where its report is; returns the exit code."""
    from flows.report.next_step import commands, decisions, left_of
    from flows.report.text import render_text, verdict_of

    if as_json:
        print_json(ended_json(ended, reports))
        return ended.exit_code
    console = out()
    for message in ended.messages:
        console.print(message)
    if verbose:
        console.print(render_text(ended.report))
    for file in () if verbose else ended.report.files:
        text = f"refused ({file.refused}). {file.message}"
        if not file.refused:
            rows = quantity(file.rows, "row", grouped)
            text = f"{file.record}, {rows}, {file.rejected:,} with errors"
            text += f", {file.excluded:,} left out" if file.excluded else ""
            text += _no_rows(
                {
                    note.code: (note.rows, note.line)
                    for note in ended.report.notes
                    if note.file == file.name and note.record == file.record
                }
            )
        console.print(f"{file.name}: {text}")
    for text in () if verbose else _of_records(ended.report):
        console.print(text)
    for line in _at_service(ended, with_rows=not verbose):
        console.print(line)
    if not verbose:
        verdict = verdict_of(ended.report)
        console.print(f"{verdict.word}: {verdict.meaning} {verdict.remedy}")
    console.print(f"batch {ended.batch.id}: {ended.batch.state.replace('_', ' ')}")
    if ended.batch.held_because:
        console.print(f"held: {ended.batch.held_because}")
        console.print(f"next: {decisions(ended.batch.id)}")
    elif todo := commands(ended.batch.id, left_of(ended.report), corrects=ended.batch.corrects):
        console.print(f"next: {todo}")
    console.print(report_line(reports, ended.batch.id))
    if link := desk_link(DeskPage.BATCH, ended.batch.id):
        console.print(f"desk: {link}")
    return ended.exit_code


def report_line(reports: Path, batch: int) -> str:
    """Where the report of a batch is; housekeeping may have removed it, or the home is another."""
    from connectors.postgres.batches.batch_reports import PAGE, folder_of

    page = folder_of(reports, batch) / PAGE
    there = page.exists()
    return f"report: {page if there else f'none is kept; `recon rerun {batch}` writes it again'}"


def ended_json(ended: "Ended", reports: Path) -> dict[str, Any]:
    """What `--json` prints about a batch."""
    from connectors.postgres.batches.batch_reports import PAGE, folder_of
    from connectors.postgres.batches.written_over import LATER_BATCH, OTHER_FEED, SECOND_RECORD
    from flows.stages.push import not_sent

    report = ended.report
    return {
        "batch": ended.batch.id,
        "state": str(ended.batch.state),
        "new": ended.new,
        "messages": list(ended.messages),
        "held_because": ended.batch.held_because,
        "files": [
            {
                "name": file.name,
                "record": file.record,
                "rows_in": file.rows,
                "rejected": file.rejected,
                "excluded": file.excluded,
                "refused": file.refused,
                "message": file.message,
                "sha256": file.sha256,
            }
            for file in report.files
        ],
        "verdicts": {
            chain.record: {state: totals.rows for state, totals in chain.states.items()}
            for chain in report.chains
        },
        "control_totals": {
            chain.record: {state: totals.as_json() for state, totals in chain.states.items()}
            for chain in report.chains
        },
        "of_other_feeds": _of_others(report, OTHER_FEED),
        "of_later_batches": _of_others(report, LATER_BATCH),
        "second_records": _of_others(report, SECOND_RECORD),
        "pushed": {
            one.operation: {state: totals.rows for state, totals in one.states.items()}
            for one in report.pushed
        },
        "not_sent": [table.name for table in not_sent(ended.batch, ended.report)],
        "reasons": [
            {
                "record": reason.record,
                "ErrorCode": reason.code,
                "FieldName": reason.field,
                "rows": reason.rows,
            }
            for reason in report.reasons
        ],
        "report": str(folder_of(reports, ended.batch.id) / PAGE),
    }


def _of_records(report: "BatchReport") -> Iterator[str]:
    """Facts about each record kind that are not errors, but that somebody should know."""
    from connectors.postgres.batches.written_over import LATER_BATCH, OTHER_FEED, SECOND_RECORD

    for chain in report.chains:
        if "superseded" in chain.states and (again := chain.states["superseded"].rows):
            rows, why = quantity(again, "row", grouped), _why_superseded(chain.record, again)
            yield f"{chain.record}: {rows} superseded: {why}"
        if "stale" in chain.states and (older := chain.states["stale"].rows):
            rows, has = quantity(older, "row", grouped), agree(older, "its record", "their records")
            later = EXTRACTS[chain.record].version
            yield f"{chain.record}: {rows} not applied: the database has {has} with a later {later}"
    for code, by in (
        (OTHER_FEED, "by feed {} before"),
        (LATER_BATCH, "by batch {} too, which was received after this one"),
    ):
        found = _of_others(report, code)
        for chain in report.chains:
            for other, count in found.get(chain.record, {}).items():
                # For a batch that was undone, nothing counts as updated any more.
                if "updated" in chain.states:
                    every = quantity(chain.states["updated"].rows, "updated record", grouped)
                    were = agree(count, "was", "were")
                    what = f"{count:,} of {every} {were} delivered"
                    yield f"{chain.record}: {what} {by.format(other)}"
    for record, of_batches in _of_others(report, SECOND_RECORD).items():
        for batch, count in of_batches.items():
            rows, repair = quantity(count, "row", grouped), agree(count, "repairs", "repair")
            what = f"what batch {batch} had repaired with another key: both are records"
            yield f"{record}: {rows} {repair} {what}"


def _of_others(report: "BatchReport", code: str) -> dict[str, dict[str, int]]:
    """By record kind: who else delivered its records, and how many, from notes with this code."""
    found: dict[str, dict[str, int]] = {}
    for note in report.notes:
        if note.code == code:
            found.setdefault(note.record, {})[note.value] = note.rows
    return found


def _why_superseded(record: str, rows: int) -> str:
    if record != INSERT_BATCH_DATA.name:
        return "another row of this delivery with the same key counts"
    say = agree(rows, "it says that it was", "they say that they were")
    return f"{say} merged before"


def _at_service(ended: "Ended", *, with_rows: bool) -> Iterator[str]:
    """What became of each record kind at the service, by row state, and what is not sent."""
    from flows.stages.push import not_sent, not_sent_text

    for one in ended.report.pushed if with_rows else ():
        states = (f"{totals.rows:,} {state}" for state, totals in one.states.items() if totals.rows)
        yield f"{one.operation}: {', '.join(states) or 'nothing to send'}"
    yield from map(not_sent_text, not_sent(ended.batch, ended.report))


def refuse_unknown(record: str | None) -> None:
    """Raise DeliveryError for an unknown record kind."""
    if record is not None and record not in EXTRACTS:
        raise DeliveryError(
            f"There is no record kind {record!r}. Known: {', '.join(sorted(EXTRACTS))}."
        )


def profile_of(path: Path | None, record: str | None, **terms: Any) -> "Profile":
    """The profile a command names, with terms stated beside it; raises ProfileError."""
    from connectors.files.profiles.profile import DEFAULT
    from connectors.files.profiles.profile_file import load_profile, with_terms

    refuse_unknown(record)
    return with_terms(load_profile(path) if path else DEFAULT, terms)


def other_rows(verdict: "FileVerdict") -> str:
    """The rows of a file that are neither good nor in error."""
    text = f", {verdict.excluded:,} left out" if verdict.excluded else ""
    if verdict.superseded:
        text += f", {verdict.superseded:,} superseded by another row with the same key"
    if verdict.merged:
        text += f", {verdict.merged:,} merged before"
    return text + _no_rows({"NoValue": verdict.valueless, "Comment": verdict.comments})


def tell_held(because: str | None) -> None:
    """Say why an import would be held, if it would."""
    if because:
        out().print(f"an import would be held: {because}")


def tell_message(verdict: "FileVerdict") -> None:
    """Show the message about a file that is not refused; why it is held is shown separately."""
    if verdict.message and not verdict.unproven:
        out().print(f"  {verdict.message}")


def _no_rows(lines: Mapping[str, tuple[int, int]]) -> str:
    """Lines of a file that are no rows: by the note's code, how many, and the first of them."""
    text = ""
    for code, noun, rest in (
        ("NoValue", "line", " without a value"),
        ("Comment", "skipped line", ""),
    ):
        count, first = lines.get(code, NO_LINES)
        if count:
            text += f", {quantity(count, noun, grouped)}{rest} (first line {first})"
    return text


def _show(verdicts: "list[FileVerdict]") -> None:
    from flows.report.spelling import visible
    from flows.stages.examining.reject_examples import RejectExamples

    console = out()
    for verdict in verdicts:
        if verdict.refused:
            console.print(f"{verdict.name}: refused ({verdict.refused}). {verdict.message}")
            for line in verdict.remarks:
                console.print(f"  {line}")
            continue
        console.print(
            f"{verdict.name}: {verdict.record}, {quantity(verdict.rows_in, 'row', grouped)}, "
            f"{len(verdict.rejects)} with errors{other_rows(verdict)}"
        )
        tell_message(verdict)
        for line in verdict.remarks:
            console.print(f"  {line}")
        rejects = RejectExamples.of(verdict.rejects, REJECTS_SHOWN)
        for where, message in rejects.lines():
            console.print(f"  {where}: {visible(message)}")
        for remedy in remedies(rejects.codes()):
            console.print(f"  next: {remedy}")
        if more := len(verdict.rejects) - rejects.rows:
            console.print(f"  and {quantity(more, 'row', grouped)} more; --json lists them all")
        for other in rejects.also():
            console.print(f"  also {other}")
        for one in verdict.unsettled:
            console.print(
                f"  not settled: {quantity(one.rows, 'row', grouped)} with {one.field} of "
                f"{quantity(one.values, one.of + ' record', grouped)} that this delivery does not "
                "bring; the import looks them up in the database"
            )
