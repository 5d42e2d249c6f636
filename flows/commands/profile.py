"""Feed profiles: `recon profile draft` and `recon profile try`."""

import sys
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from connectors.settings import read_settings
from flows.commands.console import out, print_json, print_table, within
from flows.commands.deliver import (
    Feed,
    Json,
    Record,
    other_rows,
    profile_of,
    refuse_unknown,
    tell_held,
    tell_message,
)
from schemas.counting import agree, grouped, quantity

if TYPE_CHECKING:
    from rich.console import Console

    from flows.stages.examining.try_profile import Tried, TriedRow

REASONS_SHOWN = 20
File = Annotated[str, Parameter(help="One file, in any form that `recon import` takes.")]

profile_command = App(
    name="profile", help="Draft a feed profile for a file, or try one, before you import anything."
)


@profile_command.command(name="draft")
def draft_command(
    file: File,
    *,
    record: Record = None,
    feed: Annotated[str, Parameter(help="Name of the feed, for the profile.")] = "my-feed",
    sheet: Annotated[
        str | None, Parameter(help="Sheet of a workbook; default: its only visible sheet.")
    ] = None,
) -> int:
    """Print a feed profile for files like this one; what you must decide is marked `# ?`.

    Nothing is guessed: where a date or a number can be read in two ways, both are named.

    Example: `recon profile draft statement.csv --record payment --feed bank > bank.toml`
    """
    from flows.stages.draft.profile import draft_profile

    refuse_unknown(record)
    sys.stdout.write(draft_profile(read_settings(), file, feed, record, sheet))
    return 0


@profile_command.command(name="try")
def try_command(
    file: File,
    *,
    profile: Feed = None,
    record: Record = None,
    rows: Annotated[int, Parameter(help="How many rows to show.", validator=within(0, 1000))] = 3,
    json: Json = False,
) -> int:
    """Show what a feed profile makes of a file: columns, first rows, and how many rows pass.

    Nothing is kept, and no database is needed.

    Example: `recon profile try statement.csv --profile bank.toml`

    Exit code 0: every row passes; 1: rows or the file would be rejected, or an import would be
    held; 2: could not run.
    """
    from flows.stages.advised import advised
    from flows.stages.examining.try_profile import try_profile

    tried = try_profile(
        read_settings(), file, profile_of(profile, record), record=record, rows=rows
    )
    if json:
        print_json(tried.as_json())
    else:
        given = {"json": True, "profile": profile, "record": record}
        asked = {name: value for name, value in given.items() if value is not None}
        _show(tried, advised("check", [file], asked))
    return int(bool(tried.verdict.refused or tried.verdict.rejects or tried.held_because))


def _show(tried: "Tried", whole: str) -> None:
    """The trial's result, and the command that lists all rows with errors."""
    console, verdict, header = out(), tried.verdict, tried.header
    if header is None:
        console.print(f"{verdict.name}: refused ({verdict.refused}). {verdict.message}")
        return
    sign = header.dialect.delimiter.decode().replace("\t", "a tab")
    columns = "columns of a fixed width" if header.positions else f"columns divided by {sign}"
    console.print(
        f"{verdict.name}: {header.table.title}, {tried.written}, {columns}, records "
        f"from line {header.body_line} on"
    )
    if footer := header.footer:
        totals = [f"rows: {footer.rows}"] if footer.rows is not None else []
        for name, total in footer.sums.items():
            of = footer.by_currency.get(name, {})
            totals += [f"{name} in currency {one}: {part:f}" for one, part in sorted(of.items())]
            totals += [] if of else [f"{name}: {total:f}"]
        console.print(f"Its footer states {', '.join(totals) or 'no total'}")
    console.print()
    print_table(
        ("Field", "Kind", "Required", "Comes from"),
        [
            (one.field, one.kind, "yes" if one.required else "", one.comes_from)
            for one in tried.fields
        ],
    )
    if tried.unused:
        have = agree(len(tried.unused), "becomes", "become")
        console.print(f"\n{', '.join(tried.unused)} {have} nothing")
    for row in tried.rows:
        _show_row(console, row)
    console.print()
    if verdict.refused:
        console.print(f"refused ({verdict.refused}). {verdict.message}")
        return
    good = verdict.rows_in - verdict.excluded - len(verdict.rejects)
    rows = quantity(verdict.rows_in, "row", grouped)
    console.print(f"{good:,} of {rows} {agree(good, 'passes', 'pass')}{other_rows(verdict)}")
    tell_message(verdict)
    if reasons := tried.rejected():
        print_table(
            ("Field", "Reason", "Rows", "First on line"), reasons[:REASONS_SHOWN],
            right=("Rows", "First on line"),
        )  # fmt: skip
        console.print(f"To list them all: {whole}")
    tell_held(tried.held_because)


def _show_row(console: "Console", row: "TriedRow") -> None:
    from flows.report.spelling import visible

    console.print(f"\nLine {row.line}: {visible(row.text)}")
    if row.values:
        print_table(
            ("Field", "Delivered", "Becomes"),
            [(name, cell, value) for name, (cell, value) in row.values.items()],
        )
    if row.left_out:
        console.print(f"  left out: {visible(row.left_out)}")
    for error in row.errors:
        console.print(f"  {error['ErrorCode']}: {visible(error['Message'])}")
