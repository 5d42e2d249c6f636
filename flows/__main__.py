"""The command line: `recon`. Importing it imports neither Prefect nor polars.

Exit codes are a contract: 0 reconciled, 1 breaks, rejects or a decision needed, 2 could not run,
3 another run has the batch, the scope, the inbox or the job, 130 stopped by the user.
"""

import os
import sys
from typing import TYPE_CHECKING

from flows.commands.stopping import note_stops, stop_on_signal, stopping
from flows.commands.streams import UTF8, standard_streams, tell

if TYPE_CHECKING:
    import cyclopts

COULD_NOT_RUN = 2
INTERRUPTED = 130
UTF8_MODE = "PYTHONUTF8"
ASKING = {"--help", "-h", "--version"}
"""Arguments that only ask for information, so that settings are not checked."""

GROUPS = {
    "Deliveries": {
        "check": (
            "deliver",
            "Validate files without a database: check every row, list all its errors.",
        ),
        "import": ("deliver", "Import a delivery into PostgreSQL and account for every row."),
        "watch": ("inbox", "Watch an inbox and import each delivery once it is complete."),
        "profile": (
            "profile",
            "Draft a feed profile for a file, or try one, before you import anything.",
        ),
        "rejects": (
            "batches",
            "Write a batch's rows with errors as CSV files, to correct and import again.",
        ),
        "rerun": ("batches", "Resume a batch where it stopped."),
        "undo": ("batches", "Undo a batch: restore the database to what it was before."),
    },
    "Batches": {
        "status": ("batches", "List the latest batches and what to do next."),
        "row": ("batches", "Show what became of one delivered row, and why."),
        "release": ("batches", "Let a held batch continue with its clean rows."),
        "discard": ("batches", "End a held batch without applying anything."),
    },
    "The service": {
        "push": ("push", "Send the unsent rows of one batch, or of all batches, to the service."),
        "sends": ("push", "List a batch's rows for the service, and what it answered."),
        "resolve": ("push", "Decide about rows that are in doubt, were refused or differ."),
        "restored": ("push", "Allow pushes again after a restore."),
        "pull": ("push", "Read listings from the service, to compare them with our records."),
    },
    "Reconciliation": {
        "reconcile": ("reconcile", "Compare what was delivered with the database and the service."),
        "report": (
            "reconcile",
            "Show a reconciliation report again; its files must be unchanged.",
        ),
        "breaks": ("breaks", "List breaks; accept, reopen, resolve, assign or comment on them."),
        "acceptance": (
            "acceptance",
            "Propose, approve, withdraw and list rules that accept small breaks.",
        ),
        "sign": ("govern", "Sign a report: one person prepares it, another approves it."),
        "audit": ("govern", "Show the audit trail, and prove that nobody changed it."),
        "compare": ("compare", "Compare two tables with any columns: CSV, Parquet or PostgreSQL."),
    },
    "People": {
        "login": ("logins", "Log in, so that decisions and signatures are recorded as yours."),
        "logout": ("logins", "Log out."),
        "whoami": ("logins", "Show who is logged in here, and what they may do."),
        "user": ("people", "Manage accounts: add, list, change and disable them, set passwords."),
    },
    "This machine": {
        "demo": (
            "learn",
            "Import the sample deliveries through the Prefect flow and show the proof.",
        ),
        "desk": ("desk", "Serve the web pages on which reports are reviewed and signed."),
        "up": (
            "up",
            "Start everything here: database, desk, Prefect with its pages, worker, sandbox.",
        ),
        "down": ("up", "Stop what `recon up` started."),
        "deploy": ("up", "Register deployments, blocks and automations on a Prefect server."),
        "sandbox": (
            "serve",
            "Run a sandbox of the service on this machine, to push to and test with.",
        ),
        "fields": ("learn", "Show the field tables: names, types, rules, reject reasons."),
        "records": ("records", "List, export and apply record kinds of your own."),
    },
    "Jobs from the desk": {
        "job": ("jobs", "Do a job that somebody ordered at the desk."),
        "jobs": ("jobs", "List the jobs ordered at the desk; --watch does them as they come."),
    },
    "Archive": {
        "archive": ("inbox", "Check that no archived file has changed: `recon archive verify`."),
        "housekeeping": (
            "inbox",
            "Count files and reports that no batch needs; --remove removes them.",
        ),
    },
}
"""The overview, in the order of a delivery: command -> module in `flows.commands`, its line."""
COMMANDS = {name: entry for group in GROUPS.values() for name, entry in group.items()}

READING = (
    ("check",),
    ("profile", "draft"),
    ("profile", "try"),
    ("fields",),
    ("row",),
    ("status",),
    ("sends",),
    ("report",),
)
"""Commands that change nothing, so that a stopped one leaves nothing behind."""


def build_app(arguments: list[str]) -> "cyclopts.App":
    """Build the app; a command is imported only when called, and shows its own help then."""
    import cyclopts  # noqa: PLC0415 -- the import takes a moment, in which Ctrl-C may come.

    from flows.commands.arguments import read_value  # noqa: PLC0415

    app = cyclopts.App(
        name="recon",
        help="Import CSV extracts, account for every row, and prove that the totals agree.",
        help_format="markdown",
        suppress_keyboard_interrupt=False,  # cyclopts would end without a message.
        version_flags=["--version"],
        version=_version,
        group_commands=cyclopts.Group("Options", sort_key=len(GROUPS)),
        # No --no-... or --empty-... options, and no default shown where it would say nothing.
        default_parameter=cyclopts.Parameter(
            negative_bool=(), negative_iterable=(), show_default=_displayed, converter=read_value
        ),
    )
    for place, (title, commands) in enumerate(GROUPS.items()):
        group = cyclopts.Group(title, sort_key=place)
        for order, (name, (module, line)) in enumerate(commands.items()):
            help_line = None if name in arguments[:1] else line
            where = f"flows.commands.{module}:{name}_command"
            app.command(where, name=name, help=help_line, group=group, sort_key=order)
    app.register_install_completion_command()
    return app


def _version() -> str:
    from importlib.metadata import version  # noqa: PLC0415 -- a tenth of what most commands take.

    return version("recon")


def _displayed(default: object) -> object:
    # Only False itself: a zero equals False, but is a default to show.
    if default is False or default in ((), ""):
        return None
    return ", ".join(map(str, default)) if isinstance(default, tuple) else default


def main(arguments: list[str] | None = None) -> None:
    """Run one command and exit by the contract; report an unforeseen error as a fault of ours."""
    given = sys.argv[1:] if arguments is None else arguments
    if arguments is None:
        _begin_again_in_utf8()
    with standard_streams():
        try:
            if arguments is None:
                stop_on_signal(INTERRUPTED)
                from connectors.files.disk.atomic import keep_private  # noqa: PLC0415

                keep_private()
            code = _run(given)
            if arguments is None:
                note_stops(code)
        except KeyboardInterrupt as stopped:
            _say_stopped(stopped, given)
            code = INTERRUPTED
    sys.exit(code)


def _run(given: list[str]) -> int:
    """Run a command and tell its errors; returns the exit code."""
    import cyclopts  # noqa: PLC0415 -- like the next imports, inside, where Ctrl-C is handled.

    from connectors.errors import ReconError  # noqa: PLC0415
    from flows.commands.arguments import argument_error, with_values  # noqa: PLC0415

    try:
        app = build_app(given)
        words = with_values(app, given)
        if given and ASKING.isdisjoint(given):
            _say_misspelt()
        code = app(words, result_action="return_value", exit_on_error=False, print_error=False)
        sys.stdout.flush()
    except cyclopts.CycloptsError as error:
        tell(argument_error(error))
        return COULD_NOT_RUN
    except ReconError as error:
        if stopping.is_set():
            raise KeyboardInterrupt from error  # A stop tears connections; their errors follow it.
        for text in error.args:
            tell(str(text))
        return error.exit_code
    except (OSError, MemoryError) as error:
        # A full disk, another user's folder, a closed output: not a fault of the program.
        from flows.tasks.error_lines import error_line  # noqa: PLC0415 -- seldom needed.

        tell(str(error_line(error)))
        return COULD_NOT_RUN
    except (SystemExit, GeneratorExit, KeyboardInterrupt):
        raise
    except BaseException as error:
        # BaseException: errors of compiled libraries may not derive from Exception.
        if stopping.is_set():
            raise KeyboardInterrupt from error
        from flows.commands.fault import tell_of_fault  # noqa: PLC0415 -- seldom needed.

        tell_of_fault(error, given[0] if given else "")
        return COULD_NOT_RUN
    return code or 0


def _say_misspelt() -> None:
    """Warn of a setting's misspelt name: unnoticed, another database would be used."""
    from connectors.setting_names import misspelt  # noqa: PLC0415 -- help need not wait for it.

    for name, meant in misspelt():
        tell(f"{name} is set but is not a setting; {meant} is. Correct the name or unset it.")


def _begin_again_in_utf8() -> None:
    """Start Python again in UTF-8 mode, so that file names are read as they are kept, in UTF-8.

    Python can switch only at its start, and is already in this mode unless the locale or a setting
    forbids it. The processes it starts inherit the mode.
    """
    if sys.getfilesystemencoding() != UTF8 and os.environ.get(UTF8_MODE) != "1":
        os.environ[UTF8_MODE] = "1"
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606 -- what runs.


def _say_stopped(stopped: KeyboardInterrupt, given: list[str]) -> None:
    """Say what a stopped command left, and how to continue."""
    from flows.stages.way_on import way_on  # noqa: PLC0415 -- seldom needed.

    message = "What was done before stands; run the same command again."
    if build_app(given).parse_commands(given)[0] in READING:
        message = "Nothing was kept or changed; run the same command again."
    elif command := way_on(stopped):
        message = f"What was done before stands; `{command}` goes on."
    tell(f"stopped. {message}")


if __name__ == "__main__":
    main()
