"""What the commands share for terminals: progress, tables, JSON."""

import json
import logging
import os
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

from rich.cells import cell_len
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from connectors.addresses import SECRET_PARAMETERS, address_problem
from connectors.errors import SettingsError
from connectors.printable import printable
from connectors.settings import read_settings
from flows.commands.kept_login import kept_token
from flows.commands.streams import tell

if TYPE_CHECKING:
    import psycopg

    from flows.stages.workspace import Progress as Tell
    from flows.stages.workspace import Workspace

TITLES = {
    "receive": "receiving files",
    "stage": "staging rows",
    "check": "checking",
    "apply": "applying",
    "push": "pushing",
    "pull": "pulling",
    "report": "recounting",
    "reconcile": "reconciling",
    "archive": "hashing what is kept",
}
WARNING = (
    *("recon.database", "recon.desk", "recon.mail", "recon.push", "recon.reconcile"),
    *("recon.report", "recon.service", "recon.sign", "recon.witness"),
)
"""Loggers whose warnings no output of a command repeats."""


def within(least: float, most: float) -> Callable[[Any, Any], None]:
    """A validator of an option: a number from `least` to `most`; NaN is not accepted."""

    def validate(_type: Any, value: Any) -> None:
        for one in value if isinstance(value, tuple) else (value,):
            if one is not None and not least <= one <= most:
                raise ValueError(f"Must be from {least} to {most}.")

    return validate


def stated(_type: Any, value: Any) -> None:
    """A validator of an option that is kept as a reason, which must not be blank."""
    if value is not None and not str(value).strip():
        raise ValueError("A reason is needed; it is kept in the audit trail.")


COUNT = within(1, 1_000_000)
MOST = ("--most", "--last")
"""Names of the option for a list's most lines; the second is its earlier name."""
NUMBER = within(1, 2**63 - 1)
LISTED = within(-(2**31), 2**31 - 1)
"""Range of numbers that the database gives to batches and runs; numbers within it are looked up."""
ANY_ID = within(-(2**63), 2**63 - 1)
"""Range of a 64-bit column."""
PORT = within(0, 65_535)
DAYS = within(1, 36_500)
SECONDS = within(0, 86_400)

IN_ONE_PIECE = ("Id", "Code")
"""Columns whose cells are never broken."""
WIDE = 200
"""Width of a table where nobody watches, so that scripts read whole lines."""
WORD = 10
"""The least width in which a word can be read as one."""


class Printed(Console):
    """A console on which delivered text can neither move the cursor nor reverse the writing."""

    def print(self, *objects: Any, **options: Any) -> None:
        """Print; among invisible characters, only line ends keep their effect."""
        printed = (printable(one) if isinstance(one, str) else one for one in objects)
        super().print(*printed, **options)


def _width() -> int | None:
    """The width; None: the terminal's. For COLUMNS=0 rich would write nothing."""
    columns = os.environ.get("COLUMNS", "")
    return WIDE if columns.isascii() and columns.isdigit() and int(columns[:9]) == 0 else None


def out() -> Console:
    """Where results go; delivered text in them is never taken for markup."""
    return Printed(markup=False, highlight=False, soft_wrap=True, width=_width())


def refuse_password(address: str, option: str, ways: str) -> None:
    """Refuse an address with a password, because other users can read command lines."""
    if "://" in address and address_problem(address):
        return  # Opening it will report what is wrong, without showing any of it.
    try:
        parts = urlsplit(address)
        given = {name.lower() for name, _ in parse_qsl(parts.query, keep_blank_values=True)}
        held = parts.password is not None or not given.isdisjoint(SECRET_PARAMETERS)
        named = "|".join(SECRET_PARAMETERS)
        held = held or bool(re.search(rf"\b(?:{named})\s*=", address, re.IGNORECASE))
    except ValueError:
        held = True  # An address that cannot be read may contain a password.
    if held:
        raise SettingsError(
            f"{option} holds a password, which others on this machine can read on a command line. "
            f"Leave it out of the address and give it by {ways}."
        )


def print_json(value: Any, *, of_many: bool = False) -> None:
    """Print one JSON document for scripts; one of many takes one line and is flushed at once."""
    indent = None if of_many else 2
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=indent, default=str) + "\n")
    if of_many:
        sys.stdout.flush()


def older_message(most: int) -> str:
    """The message that a list of the latest is not complete."""
    return f"There are older ones: --most {2 * most} lists more."


def answer(as_json: bool, facts: Any, text: str) -> int:
    """Say what was done, to a script or to a person; returns the exit code for success."""
    if as_json:
        print_json(facts)
    else:
        out().print(text)
    return 0


def print_table(
    names: Sequence[str], rows: Iterable[Sequence[Any]], *, right: Sequence[str] = ()
) -> None:
    """Print a table; delivered text stays on its line and cannot move the cursor."""
    from flows.report.spelling import shortened

    cells = [["" if one is None else shortened(str(one), WIDE) for one in row] for row in rows]
    watched = sys.stdout.isatty()
    console = Console(markup=False, highlight=False, width=_width() if watched else WIDE)
    if watched and not _fits(console.width, names, cells):
        for row in cells:
            for line in _paragraph(names, row, console.width):
                console.print(line, soft_wrap=True)
        return
    table = Table(box=None, pad_edge=False, header_style="")
    for name in names:
        # Ids and codes are copied into further commands, so they stay in one piece whatever the
        # other columns need.
        table.add_column(
            name,
            justify="right" if name in right else "left",
            overflow="fold",
            no_wrap=name in IN_ONE_PIECE,
        )
    for row in cells:
        table.add_row(*row)
    console.print(table)


def _fits(width: int, names: Sequence[str], cells: Sequence[Sequence[str]]) -> bool:
    """Whether every column has room for a word; narrower ones show a letter or two per line."""
    least = 2 * (len(names) - 1)
    for name, *column in zip(names, *cells, strict=True):
        natural = max(map(cell_len, (name, *column)))
        least += natural if name in IN_ONE_PIECE else min(natural, WORD)
    return least <= width


def _paragraph(names: Sequence[str], row: Sequence[str], width: int) -> list[str]:
    """A row of a table that is too wide: its first cell, and below it the others."""
    others = [f"{name}: {cell}" for name, cell in zip(names[1:], row[1:], strict=True) if cell]
    lines = textwrap.wrap(
        "; ".join(others),
        max(width - 4, WORD),
        initial_indent="    ",
        subsequent_indent="    ",
        break_on_hyphens=False,
    )
    return [row[0], *lines]


@contextmanager
def show_progress(*, quiet: bool) -> "Iterator[Tell]":
    """A progress bar per stage on standard error; silent for scripts and where nobody watches."""
    if quiet or not sys.stderr.isatty():
        yield lambda _stage, _done, _total: None
        return
    columns = (TextColumn("{task.description:16}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        known: dict[str, TaskID] = {}

        def tell(stage: str, done: int, total: int | None) -> None:
            if stage not in known:
                known[stage] = bars.add_task(TITLES.get(stage, stage), total=total)
            bars.update(known[stage], completed=done, total=total)

        yield tell


@contextmanager
def workspace(
    command: str | None = None, *, quiet: bool = True, say_held: bool = True, guarded: bool = True
) -> "Iterator[Workspace]":
    """The workspace of a command of `schemas.guards.commands`, its database opened and migrated.

    Raises StatementRefused if the database account may not run the command, and LoginRefused if
    that account is shown nothing without a login. Command None: permission depends on the person
    logged in rather than the account. Held pushes are reported on standard error, unless the
    command reports them itself. If a trigger is switched off, only a command that is not `guarded`
    goes on, and reports that itself.
    """
    # These import SQLAlchemy and Alembic, which `--help` need not wait for.
    from connectors.currencies import read_currencies
    from connectors.postgres.accounts import act_as, acting, refuse_nobody
    from connectors.postgres.command_rights import refuse_without_right
    from connectors.postgres.database import open_database
    from connectors.postgres.push.gate import held_text_for_sender
    from flows.stages.workspace import Workspace
    from schemas.guards.commands import READ_NO_ROWS

    settings = read_settings()
    read_currencies(settings.currencies)  # Fails before the work rather than in the report.

    token = kept_token(settings.login_file)
    acts = False

    def ask(connection: "psycopg.Connection") -> None:
        nonlocal acts
        if command is not None:
            refuse_without_right(connection, command)
        held = held_text_for_sender(connection, settings.home) if say_held else None
        if held:
            tell(held)
        if token:
            act_as(connection, token)
            acts = acting(connection) is not None
        if command not in (None, *READ_NO_ROWS) and not acts:
            act_as(connection, None)
            refuse_nobody(connection)

    # After an earlier login has ended, the user of the command is nobody.
    database = open_database(settings, ask, guarded=guarded)
    if acts:
        database = database.as_login(token)
    with show_progress(quiet=quiet) as progress, show_warnings():
        yield Workspace(settings, database, progress)


def say_next_look(trouble: Exception, seconds: float) -> None:
    """Say what kept a standing command from its work, and when it will try again."""
    tell(f"{trouble} The next look is in {seconds:g} s.")


class _PrintableFormatter(logging.Formatter):
    """Makes warnings printable, since they may quote delivered names."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


@contextmanager
def show_warnings() -> "Iterator[None]":
    """Show the warnings of the loggers in WARNING on standard error, as nothing else does."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setLevel(logging.WARNING)
    handler.setFormatter(_PrintableFormatter("recon: %(message)s"))
    logs = [logging.getLogger(name) for name in WARNING]
    for log in logs:
        log.addHandler(handler)
    try:
        yield
    finally:
        for log in logs:
            log.removeHandler(handler)
