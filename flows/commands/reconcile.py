"""Reconciliation: `recon reconcile` and `recon report`."""

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from flows.commands.batches import By
from flows.commands.console import out, print_json, workspace
from flows.commands.deliver import Json


def reconcile_command(
    *,
    as_of: Annotated[
        date | None, Parameter(help="Day the report speaks of, YYYY-MM-DD; default: today, UTC.")
    ] = None,
    rules: Annotated[
        Path | None, Parameter(help="Rule file, TOML: tolerances, windows, meanings.")
    ] = None,
    batch: Annotated[
        tuple[int, ...], Parameter(help="Only this batch; may repeat. Default: every batch.")
    ] = (),
    feed: Annotated[tuple[str, ...], Parameter(help="Only this feed; may repeat.")] = (),
    tenant: Annotated[tuple[int, ...], Parameter(help="Only this TenantsId; may repeat.")] = (),
    by: By = None,
    json: Json = False,
) -> int:
    """Hold what was delivered against the database and the service, and explain every difference.

    Breaks of the run before in the same scope are carried forward. The report, its workbook, the
    list of breaks and files to correct are written to a folder of their own.

    Example: `recon reconcile --as-of 2026-03-31 --rules rules.toml`

    Exit code 0: reconciled, accepted breaks included; 1: open breaks, or something is missing;
    2: could not run; 3: another run reconciles the same scope.
    """
    # The steps import polars, which takes its time.
    from flows.stages.reconcile import Asked, reconcile  # noqa: PLC0415
    from flows.stages.rules import read_rules  # noqa: PLC0415
    from flows.stages.truths import Scope  # noqa: PLC0415

    asked = Asked(
        scope=Scope(batch, feed, tenant),
        as_of=as_of or datetime.now(UTC).date(),
        rules=read_rules(rules),
        by=by,
    )
    with workspace(quiet=json) as place:
        done = reconcile(place, asked)
    if json:
        print_json(done.as_json())
    else:
        out().print(done.text())
    return done.exit_code


def report_command(
    run: Annotated[
        int | None, Parameter(help="Number of the reconciliation; default: the latest.")
    ] = None,
    *,
    json: Json = False,
) -> int:
    """Show a reconciliation's report again, once its files are proven to be what was written.

    Example: `recon report 4`

    Exit code 0: it reconciled; 1: it did not; 2: there is none, or its files were changed.
    """
    from flows.stages.reconcile import shown  # noqa: PLC0415 -- it imports polars.

    with workspace(quiet=True) as place:
        found = shown(place, run)
    if json:
        print_json(found.as_json())
    else:
        out().print(found.text)
    return found.exit_code
