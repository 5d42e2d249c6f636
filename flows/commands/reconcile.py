"""Reconciliation: `recon reconcile` and `recon report`."""

from datetime import date
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from flows.commands.console import ANY_ID, LISTED, out, print_json, workspace
from flows.commands.deliver import Json


def reconcile_command(
    *,
    as_of: Annotated[
        date | None,
        Parameter(
            help="Last day the report covers, YYYY-MM-DD; default: today in RECON_TIME_ZONE."
        ),
    ] = None,
    restate: Annotated[
        str | None,
        Parameter(
            help="Why a day before the last run of the scope is reported again; needed for such a "
            "day."
        ),
    ] = None,
    rules: Annotated[
        Path | None,
        Parameter(help="Rule file (TOML): tolerances, windows, calendar; default: no rules."),
    ] = None,
    batch: Annotated[
        tuple[int, ...],
        Parameter(help="Only this batch; may be repeated; default: every batch.", validator=LISTED),
    ] = (),
    feed: Annotated[
        tuple[str, ...], Parameter(help="Only this feed; may be repeated; default: every feed.")
    ] = (),
    tenant: Annotated[
        tuple[int, ...],
        Parameter(
            help="Only this TenantsId; may be repeated; default: every tenant.", validator=ANY_ID
        ),
    ] = (),
    pull: Annotated[
        bool,
        Parameter(help="First read from the service the listings that are compared."),
    ] = False,
    by: Annotated[
        str | None,
        Parameter(
            help="Name for the report of who ran it; default: the user of this process. When you "
            "are logged in, it is only a note."
        ),
    ] = None,
    json: Json = False,
) -> int:
    """Compare what was delivered with the database and the service, and explain every difference.

    Breaks of the previous run of the same scope are carried forward. The report, its workbook, the
    list of breaks and the files to correct are written to a folder of their own.

    Records dated after --as-of are shown apart and count in no total and no break. A day before the
    last run of the scope needs --restate, and its report replaces no other; a day in the future is
    refused.

    With --pull, a listing that cannot be read is named on the first page of the report, and the run
    is incomplete.

    Example: `recon reconcile --as-of 2026-03-31 --rules rules.toml`

    Exit code 0: reconciled, accepted breaks included; 1: open breaks, or something is missing;
    2: could not run; 3: another run reconciles the same scope.
    """
    from connectors.memory import give_arrays_back

    give_arrays_back()  # Has to come before polars is loaded, which happens below.
    # The steps import polars, which takes a while.
    from flows.stages.pull import pull_compared
    from flows.stages.reconcile.as_of import today_there
    from flows.stages.reconcile.rules import read_rules
    from flows.stages.reconcile.run import reconcile
    from flows.stages.reconcile.scope import Asked, Scope

    read = read_rules(rules)
    with workspace("reconcile", quiet=json) as place:
        if (day := as_of) is None:
            with place.database.connect() as connection:
                day = today_there(connection, place.settings.time_zone)
        scope = Scope(batch, feed, tenant)
        unread = pull_compared(place, scope).unread if pull else {}
        done = reconcile(place, Asked(scope, day, read, by, restate, unread))
    if json:
        print_json(done.as_json())
    else:
        out().print(done.text())
    return done.exit_code


Run = Annotated[
    int | None,
    Parameter(help="Number of the reconciliation; default: the latest.", validator=LISTED),
]
report_command = App(name="report")


@report_command.default
def show_command(run: Run = None, *, json: Json = False) -> int:
    """Show a reconciliation report again, after checking that its files are as they were written.

    Example: `recon report 4`

    Exit code 0: it reconciled; 1: it did not; 2: there is no such report, or its
    files were changed.
    """
    from flows.stages.reconcile.saved_report import saved_report

    with workspace("report") as place:
        found = saved_report(place, run)
    if json:
        print_json(found.as_json())
    else:
        out().print(found.text)
    return found.exit_code


@report_command.command(name="mail")
def mail_command(run: Run = None, *, json: Json = False) -> int:
    """Mail a report to those of its subscribers who have not been sent it yet.

    Example: `recon report mail 7`

    Exit code 0: nobody else waits for it; 1: a message was refused or the mail server cannot be
    used; 2: there is no such run, no mail server is set, or the report's files were changed.
    """
    from flows.stages.reconcile.mail import mail_report

    with workspace("report mail") as place:
        found, mailed = mail_report(place, run)
    code = 1 if mailed.failed else 0
    if json:
        print_json({"reconciliation": found.id, "sent": mailed.sent, "failed": mailed.failed})
        return code
    if mailed.sent:
        out().print(f"Reconciliation {found.id} was mailed to {', '.join(mailed.sent)}.")
    for one in mailed.failed:
        out().print(f"{one}. To send it: recon report mail {found.id}")
    if not mailed.sent and not mailed.failed:
        out().print(f"Nobody else waits for reconciliation {found.id}.")
    return code
