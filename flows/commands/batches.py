"""Batches: `recon status`, `row`, `rejects`, `rerun`, `release`, `discard` and `undo`."""

from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from json import loads
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from connectors.errors import SettingsError
from flows.commands.console import (
    COUNT,
    LISTED,
    MOST,
    NUMBER,
    older_message,
    out,
    print_json,
    print_table,
    stated,
    workspace,
)
from flows.commands.deliver import Json, Verbose, show_ended
from schemas.counting import agree, grouped, quantity
from schemas.tables import EXTRACTS

if TYPE_CHECKING:
    import psycopg

Batch = Annotated[
    int, Parameter(help="Number of the batch, as `recon status` lists it.", validator=LISTED)
]
By = Annotated[
    str | None,
    Parameter(
        help="Name of the person who decides; default: the user of this process. When you "
        "are logged in, it is only a note."
    ),
]
Reason = Annotated[
    str, Parameter(help="Why you decide so; kept in the audit trail.", validator=stated)
]

TEXTS_OF_ROW = ("data", "raw", "jsondata")
"""Columns of a row that hold the whole record."""
STILL_THERE = (
    "The service has, or may have, what was sent of this row: an undo takes nothing back there. "
    "The next push sends the row that owns the record again, if there is one."
)


def status_command(
    *,
    most: Annotated[
        int, Parameter(name=MOST, help="How many batches to list.", validator=COUNT)
    ] = 20,
    file: Annotated[
        str | None, Parameter(help="Only batches with a file of this name.", validator=stated)
    ] = None,
    json: Json = False,
) -> int:
    """List the latest batches: state, files, rows, and what to do next.

    With --file, list only batches that brought a file of this name, in any folder or zip archive.

    Example: `recon status`
    """
    from connectors.postgres.batches.overview import files_called, list_overview
    from connectors.postgres.push.gate import held_text, why_held
    from flows.report.next_step import next_step, repaired_text
    from flows.report.spelling import visible
    from flows.stages.advised import advised

    with workspace("status", say_held=False) as place, place.database.connect() as connection:
        why = why_held(connection, place.settings.home)
        found = list_overview(connection, most + 1, file=file)
        batches = found[:most]
        named = files_called(connection, [one.id for one in batches], file) if file else {}
        lines: list[dict[str, Any]] = [
            {
                "batch": batch.id,
                "state": str(batch.state),
                "feed": batch.feed,
                "opened": f"{batch.opened_at:%Y-%m-%d %H:%M:%S}",
                "files": batch.files,
                "rows": batch.rows,
                "errors": batch.errors,
                "repaired": repaired_text(batch),
                "next": next_step(batch, held=why is not None),
            }
            | ({"named": named[batch.id]} if file else {})
            for batch in batches
        ]
    older = len(found) > most
    if json:
        print_json({"batches": lines, "older": older, "push_held": why})
        return 0
    console = out()
    if why:
        console.print(held_text(why))
    if file and not lines:
        console.print(f"No batch has a file called {visible(file)}.")
    elif not lines:
        console.print("No batches yet. `recon import PATH` opens the first one.")
    for line in lines:
        console.print(overview_line(line))
        for name in named.get(line["batch"], []):
            command = advised("row", (line["batch"], visible(name)), {"line": "LINE"})
            console.print(f"        {command}")
    if older:
        console.print(older_message(most))
    return 0


def overview_line(line: Mapping[str, Any]) -> str:
    """The line of one batch in the list."""
    counts = (("files", 5), ("rows", 10), ("errors", 9))
    cells = (
        f"{grouped(line[noun]):>{width}} {agree(line[noun], noun[:-1], noun):<{len(noun)}}"
        for noun, width in counts
    )
    text = (
        f"{line['batch']:>6}  {line['opened']}  {line['state']:<21} {' '.join(cells)}  "
        f"{'; '.join(filter(None, (line.get('repaired'), line['next'])))}"
    )
    return text.rstrip()


def row_command(
    batch: Batch,
    file: Annotated[str, Parameter(help="Name of the file as delivered.")],
    number: Annotated[int | None, Parameter(show=False, validator=NUMBER)] = None,
    *,
    line: Annotated[
        int | None,
        Parameter(
            help="Line number in the file, as reports and editors show it.", validator=NUMBER
        ),
    ] = None,
    record: Annotated[
        int | None,
        Parameter(help="Number of the record; the first after the header is 1.", validator=NUMBER),
    ] = None,
    json: Json = False,
) -> int:
    """Show what became of one delivered row: its text, its place, its verdict and why.

    Give --line or --record. If a record spans several lines, any of them finds it.

    Example: `recon row 12 payments.csv --line 48113`
    """
    from flows.report.spelling import visible
    from flows.stages.rows.locate import locate
    from flows.stages.rows.made_of import made_fields
    from flows.stages.rows.spots import Spot, show_command
    from flows.stages.rows.texts import RowTexts
    from flows.steps.secrets import shown_record

    if number is not None:
        commands = [
            show_command(batch, file, spot) for spot in (Spot(line=number), Spot(record=number))
        ]
        raise SettingsError(
            f"{number} may be a line of {file} or the number of a record, which is another row. "
            f"Say which: `{commands[0]}` (the line that reports show) or `{commands[1]}`."
        )
    if (line is None) == (record is None):
        raise SettingsError(
            "Say which row: --line LINE, as reports show it, or --record NUMBER."
            if line is None
            else "Give either --line or --record, not both."
        )
    with workspace("row") as place, place.database.connect() as connection:
        texts = RowTexts(place, connection, [batch])
        rows = []
        for row in locate(place, connection, batch, file, Spot(line, record)):
            facts = {
                **texts.fill(row._asdict()),
                **_history(connection, row, file),
                **_other_rows(connection, row),
                "next": _next(connection, row),
            }
            facts |= _at_service(connection, row, facts["decisions"], as_json=json)
            if facts["data"] is None and facts["raw"] is None:
                facts["next"] += texts.why_removed(row.extract_id)
            made = [one._asdict() for one in made_fields(place, connection, row, facts["data"])]
            for name in TEXTS_OF_ROW:
                if facts.get(name):
                    facts[name] = shown_record(EXTRACTS[row.record], facts[name])
            rows.append((facts, made))
    if json:
        print_json({"rows": [_plain(facts) | {"fields": made} for facts, made in rows]})
        return 0
    for facts, made in rows:
        console = out()
        for name, value in facts.items():
            for one in value if isinstance(value, list) else [value]:
                if one is not None:
                    # A text of several lines could pretend to be lines of this output.
                    console.print(f"{name:>16}  {visible(str(_place(one)))}")
        if made:
            console.print()
            table_of = ("Field", "Comes from", "Delivered", "Becomes")
            print_table(table_of, [tuple(one.values()) for one in made])
    return 0


def _at_service(
    connection: "psycopg.Connection", row: Any, decisions: list[Any], *, as_json: bool
) -> dict[str, Any]:
    """What was sent for a row, what was answered, what happened before; and who decided.

    In lines, a decision stands beside what it was about, and is not listed again among the others.
    """
    from connectors.postgres.push.sends import Selection, list_sends
    from flows.commands.sent_lines import listed_words, sent_json, sent_lines

    place = (row.extract_id, row.record_number)
    sent = next(list_sends(connection, Selection(row.batch_id, rows=(place,))), None)
    if sent is None or as_json:
        return {"at_service": sent and sent_json(sent)}
    words = listed_words(sent)
    others = [one for one in decisions if not (one.is_about_sends and one.word in words)]
    return {"at_service": [*sent_lines(sent)], "decisions": others}


def _next(connection: "psycopg.Connection", row: Any) -> list[str]:
    """What to do about the errors of a row, and where it still is although it was taken back."""
    from connectors.postgres.batches.attempts import AttemptRow, later_attempts
    from connectors.postgres.batches.ledger import find_batch
    from connectors.postgres.runs.row_history import may_be_at_service
    from flows.report.next_step import next_of_row
    from schemas.derived.views import ENDS

    left = []
    if row.state in ENDS and may_be_at_service(connection, row):
        left.append(STILL_THERE)
    if not row.error_data:
        return left
    place = AttemptRow(row.batch_id, row.extract_id, row.record_number)
    later = later_attempts(connection, row.batch_id).get(place)
    state = find_batch(connection, row.batch_id).state
    return [*next_of_row(loads(row.error_data), state, later), *left]


def _plain(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: [
            asdict(one) if is_dataclass(one) and not isinstance(one, type) else one for one in value
        ]
        if isinstance(value, list)
        else value
        for name, value in facts.items()
    }


def _history(connection: "psycopg.Connection", row: Any, file: str) -> dict[str, Any]:
    """The state of a row before it was taken back, decisions about it, and breaks that name it."""
    from connectors.postgres.runs.row_history import breaks_of_row, decisions_of_row, verdict_before

    return {
        "state_before": verdict_before(connection, row),
        "decisions": decisions_of_row(connection, row),
        "breaks": list(breaks_of_row(connection, row, file)),
    }


def _other_rows(connection: "psycopg.Connection", row: Any) -> dict[str, Any]:
    """Who else wrote its record last, the row that this one repairs, and those that repair it."""
    from connectors.postgres.batches.corrections import matched_by_key
    from connectors.postgres.batches.record_rows import RowPlace, other_writer
    from connectors.postgres.batches.repair_places import (
        place_of,
        repaired_row,
        repairs_of,
        taken_in_for,
    )
    from schemas.derived.views import CORRECTED, WRITTEN

    repaired = repaired_row(connection, row.batch_id, row.parent) if row.parent else None
    repairs = repairs_of(connection, row.batch_id, row.extract_id, row.record_number)
    place = RowPlace(row.extract_id, row.record_number)
    table, here = EXTRACTS[row.record], place_of(connection, row.batch_id, *place)
    writer = other_writer(connection, table, place)
    taken = taken_in_for(connection, here) if here and here.state == CORRECTED else None
    if writer is None and taken is not None:
        # Its repair is in another row, perhaps under another key.
        instead = RowPlace(taken.extract_id, taken.record_number)
        writer = other_writer(connection, table, instead)
        if writer is None and taken.state in WRITTEN:
            writer = taken
    return {
        "last_written_by": writer and writer._asdict(),
        "repairs": repaired and repaired._asdict(),
        "repaired_by": [repair._asdict() for repair in repairs],
        "corrected": matched_by_key(connection, row.extract_id, row.record_number),
    }


def _place(value: Any) -> Any:
    from flows.stages.rows.spots import Spot, show_command

    if not isinstance(value, dict):
        return value
    command = show_command(value["batch_id"], value["file"], Spot(line=value["line"]))
    return f"batch {value['batch_id']}, {value['state']}: {command}"


def rejects_command(
    batch: Batch,
    *,
    out: Annotated[Path, Parameter(help="Folder to write the CSV files to.")] = Path("rejects"),
    with_secrets: Annotated[
        bool, Parameter(help="Write passwords and keys too; default: leave them empty.")
    ] = False,
) -> int:
    """Write a batch's rows with errors as CSV files; once corrected, they are a valid delivery.

    Example: `recon rejects 12 --out corrections`, correct the files,
    `recon import corrections --corrects 12`
    """
    from flows.commands.console import out as console
    from flows.stages.rows.rejects import attempts_after, repaired_elsewhere, write_rejects

    with workspace("rejects") as place:
        later = attempts_after(place, batch)
        written = write_rejects(place, batch, out, with_secrets=with_secrets, elsewhere=later)
        elsewhere = repaired_elsewhere(later)
    for path, rows in written.items():
        console().print(f"{path}: {quantity(rows, 'row', grouped)}")
    for message in elsewhere:
        console().print(message)
    if not written:
        more = " left to correct" if elsewhere else ""
        console().print(f"Batch {batch} has no rows with errors{more}.")
    return 0


def rerun_command(
    batch: Batch,
    *,
    from_start: Annotated[
        bool,
        Parameter(help="Read its archived files again; refused once anything is applied."),
    ] = False,
    json: Json = False,
    verbose: Verbose = False,
) -> int:
    """Resume a batch where it stopped; recount an ended batch and write its report again.

    Example: `recon rerun 12`
    """
    from flows.stages.rewind import rewind_batch
    from flows.stages.sequence import run_batch

    with workspace("rerun", quiet=json) as place:
        if from_start:
            rewind_batch(place, batch)
        ended = run_batch(place, batch)
    return show_ended(ended, place.settings.reports, as_json=json, verbose=verbose)


def release_command(
    batch: Batch, *, reason: Reason, by: By = None, json: Json = False, verbose: Verbose = False
) -> int:
    """Let a batch that is held for its errors continue with its clean rows.

    Example: `recon release 12 --reason "agreed with treasury" --by "A. Meyer"`
    """
    from flows.stages.sequence import release_batch

    with workspace("release", quiet=json) as place:
        ended = release_batch(place, batch, by=by, reason=reason)
    return show_ended(ended, place.settings.reports, as_json=json, verbose=verbose)


def discard_command(batch: Batch, *, reason: Reason, by: By = None) -> int:
    """End a held batch without applying anything; its files may be delivered again.

    Example: `recon discard 12 --reason "wrong month"`
    """
    from flows.stages.sequence import discard_batch

    with workspace("discard") as place:
        discard_batch(place, batch, by=by, reason=reason)
    out().print(f"Batch {batch} is discarded; nothing of it was applied.")
    return 0


def undo_command(
    batch: Batch,
    *,
    reason: Reason,
    by: By = None,
    over_changes: Annotated[
        bool,
        Parameter(
            help="Also take back rows that somebody has since changed in the database; default: "
            "refuse."
        ),
    ] = False,
) -> int:
    """Undo a batch: restore the database to what it was, unless something later touched its rows.

    Example: `recon undo 12 --reason "delivered for the wrong tenant"`

    Exit code 0: undone; 1: undone, but one of its archived files is not what was delivered.
    """
    from flows.stages.undo import undo_and_tell

    with workspace("undo") as place:
        undone = undo_and_tell(place, batch, by=by, reason=reason, over_changes=over_changes)
    for line in undone.lines:
        out().print(line)
    return undone.exit_code
