"""Signing: what exactly is signed, what prevents it, and the two signatures."""

import psycopg
from starlette.responses import Response

from connectors.errors import SignatureRefused
from connectors.postgres.runs.reconciliations import Reconciliation, latest_run
from connectors.postgres.runs.signatures import approval_of, signatures_of
from flows.desk.filters import BreakSearch
from flows.desk.forms import FormIncomplete, read_day, refuse_nameless, taken
from flows.desk.pages.files import is_given
from flows.desk.seen import run_of
from flows.desk.visit import Visit
from flows.report.spelling import neutral_pair
from flows.stages.reconcile.not_opened import not_opened
from flows.stages.reconcile.report_files import PAGE, check_files, listed_files
from flows.stages.reconcile.sign import approve, prepare
from flows.steps.reconcile.changes import method_rows
from schemas.accounts import ACTS, MAY_SIGN
from schemas.life import RESTATED, Role


def show(visit: Visit) -> Response:
    """What would be signed, and who may sign it, as of now."""
    person, kept, place = visit.person, visit.desk.kept, visit.place
    with place.database.connect() as connection:
        run = run_of(visit, connection)
        signatures = signatures_of(connection, run.id)
        last = latest_run(connection, run.scope)
        review = kept.review(place, connection, run)
        changes = kept.changes(place, connection, run)
        files, altered = _files(visit, connection, run)
        interested = kept.why_interested(connection, run, person.name) if person else None
        breaks = kept.breaks(place, connection, run)
        unopened = not_opened(place, connection, run, person.name, breaks) if person else None
    return visit.page(
        "sign.html.jinja",
        run=run,
        last=last,
        signatures=signatures,
        approval=approval_of(signatures),
        waits=review.waits,
        changes=changes,
        method=[
            (what, *neutral_pair(before, now))
            for what, before, now in method_rows(changes, run.rules_hash)
        ],
        restates=RESTATED in run.scope,
        files=files,
        page=PAGE,
        altered=altered,
        interested=interested,
        unopened=unopened,
        none_asked=BreakSearch({}),
        may={role: visit.may(*MAY_SIGN[role]) for role in Role},
        acts=ACTS,
        takes=MAY_SIGN,
    )


def send(visit: Visit) -> Response:
    """Take a signature; a refusal keeps what was typed."""
    with visit.place.database.connect() as connection:
        run = run_of(visit, connection)
    return taken(visit, lambda: _sign(visit, run), show)


def _sign(visit: Visit, run: Reconciliation) -> str:
    """Sign as the form says; returns the page to go to."""
    own, role = f"/runs/{run.id}/sign", visit.typed("role")
    if role not in (Role.PREPARED, Role.APPROVED):
        raise FormIncomplete("Say whether you prepare the report or approve it.")
    if visit.typed("report_hash") != run.report_hash:
        raise SignatureRefused(
            "This page showed another report. Load it again, and look once more."
        )
    refuse_nameless(visit)
    comment = visit.typed("comment")
    if role == Role.PREPARED:
        prepare(visit.place, run.id, by=visit.by, comment=comment)
        return own
    named, restated = visit.typed("accept_changes"), visit.typed("accept_restated")
    day = read_day(restated)
    if restated and day is None:
        raise FormIncomplete(f"{restated!r} is no day of a restatement. Load the page again.")
    with visit.place.database.connect() as connection:
        accept = visit.desk.kept.changes(visit.place, connection, run).accept
    if accept and named != accept:
        raise SignatureRefused(
            "How the figures are made has changed, as this page lists. Whoever approves the report "
            "accepts that too: tick it."
        )
    if RESTATED in run.scope and day != run.as_of:
        raise SignatureRefused(
            f"The report restates {run.as_of}. Whoever approves it accepts that too: tick it."
        )
    approve(
        visit.place,
        run.id,
        by=visit.by,
        comment=comment,
        accept_changes=named or None,
        accept_restated=day,
    )
    return own


def _files(
    visit: Visit, connection: psycopg.Connection, run: Reconciliation
) -> tuple[list[tuple[str, str, int, bool]], str | None]:
    """Name, hash and bytes of each signed file, and whether the visitor may open it.

    Also what is wrong with the files, or None.
    """
    try:
        folder = check_files(visit.place, connection, run)
        listed = sorted(listed_files(folder, run).items())
    except SignatureRefused as refused:
        return [], str(refused)
    return [
        (name, digest, (folder / name).stat().st_size, is_given(visit, name))
        for name, digest in listed
    ], None
