"""The command line: `recon`. Importing it imports neither Prefect nor polars.

Exit codes are a contract: 0 reconciled, 1 breaks, rejects or a decision needed, 2 could not run,
3 another run holds the batch, 130 stopped by the user.
"""

import sys
from importlib.metadata import version

import cyclopts

COULD_NOT_RUN = 2
INTERRUPTED = 130

COMMANDS = {
    "demo": ("learn", "Import the sample deliveries through the Prefect flow and show the proof."),
    "check": ("deliver", "Judge files without a database: every row, all its errors."),
    "import": ("deliver", "Take a delivery into PostgreSQL with every row accounted for."),
    "status": ("batches", "List the latest batches and what to do next."),
    "watch": ("inbox", "Import every delivery that is complete in an inbox, once."),
    "housekeeping": ("inbox", "Remove archived content and reports that no batch needs."),
    "row": ("batches", "Show where one delivered row is, its verdict and why."),
    "rejects": ("batches", "Write the rows with errors as CSV files to correct and import again."),
    "rerun": ("batches", "Go on with a batch where it stopped."),
    "release": ("batches", "Let a held batch go on with its clean rows."),
    "discard": ("batches", "End a held batch without applying anything."),
    "undo": ("batches", "Take a batch back out of the database."),
    "push": ("push", "Send what is unsent of a batch, or of all, to the service."),
    "sends": ("push", "List rows on their way to the service, and what was said of them."),
    "resolve": ("push", "Settle rows that are in doubt, refused or differ."),
    "reconcile": ("reconcile", "Hold what was delivered against database and service."),
    "report": ("reconcile", "Show a reconciliation's report again, its files proven unchanged."),
    "breaks": ("breaks", "List breaks; accept, reopen, resolve or assign them."),
    "sign": ("govern", "Stand for a report: one prepares it, another approves it."),
    "audit": ("govern", "Show the audit trail, and prove that nobody changed it."),
    "pull": ("push", "Read listings from the service, to be compared with what is ours."),
    "sandbox": (
        "serve",
        "Run the documented service on this machine, to push to and to test with.",
    ),
    "up": ("up", "Start everything here: database, Prefect with its pages, worker, sandbox."),
    "down": ("up", "Stop what `recon up` started."),
    "deploy": ("up", "Register deployments, blocks and automations on a Prefect server."),
    "compare": ("compare", "Compare two tables of any columns: CSV, Parquet or PostgreSQL."),
    "fields": ("learn", "Show the field tables: names, types, rules, reject reasons."),
}
"""Command -> its module under `flows.commands` and its line in the overview."""


def build_app(arguments: list[str]) -> cyclopts.App:
    """The commands, imported only when called; the one that is called tells its own help."""
    app = cyclopts.App(
        name="recon",
        help="Import CSV extracts, account for every row, and prove that the totals agree.",
        help_format="markdown",
        version_flags=["--version"],
        version=lambda: version("recon"),
    )
    for name, (module, line) in COMMANDS.items():
        help_line = None if name in arguments[:1] else line
        app.command(f"flows.commands.{module}:{name}_command", name=name, help=help_line)
    return app


def main(arguments: list[str] | None = None) -> None:
    """Run one command and exit by the contract; only a bug shows a traceback."""
    from connectors.errors import ReconError  # noqa: PLC0415 -- keeps `recon --help` quick.

    given = sys.argv[1:] if arguments is None else arguments
    try:
        code = build_app(given)(given, result_action="return_value", exit_on_error=False)
    except cyclopts.CycloptsError:
        sys.exit(COULD_NOT_RUN)  # It has been told what is wrong with the arguments.
    except ReconError as error:
        sys.stderr.write(f"recon: {error}\n")
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.stderr.write("recon: stopped. `recon rerun` goes on where it stopped.\n")
        sys.exit(INTERRUPTED)
    sys.exit(code or 0)


if __name__ == "__main__":
    main()
