"""Reports by e-mail: each subscriber of a run's scope is sent one message.

A message is marked as sent in the transaction that has claimed it, so two senders send it once. A
message whose answer is lost, or whose process dies between the answer and the commit, is sent
again under the same Message-ID.
"""

import logging
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psycopg

from connectors.desk_links import DeskPage, desk_link
from connectors.errors import MailRefused, MailTooLarge, MailUnusable, ReconError
from connectors.mail import MailSettings, read_mail_settings, send
from connectors.postgres.reconciliations import Reconciliation, find_run
from connectors.postgres.subscriptions import claim_mail, mail_sent, runs_to_mail
from connectors.settings import MIB
from flows.report.reconciled.letter import letter
from flows.stages.reconcile.report_files import check_files
from flows.stages.reconcile.write import TEXT, WORKBOOK
from flows.stages.workspace import Workspace

MOST_ATTACHED = 7 * MIB
"""Of a workbook; encoded it is below the 10,240,000 bytes that many servers take at most."""

log = logging.getLogger("recon.mail")


@dataclass(frozen=True, slots=True)
class Mailed:
    """What became of the messages of one run."""

    sent: tuple[str, ...]
    """Accounts."""
    failed: tuple[str, ...]
    """Why a message waits still, a sentence each."""


def mail_reports(workspace: Workspace) -> None:
    """Send what waits of the last days' runs; never raises for it.

    Called once a run is saved. What goes wrong is a warning, and the next run tries again.
    """
    try:
        with workspace.database.connect() as connection:
            for number in runs_to_mail(connection):
                for told in _tried(workspace, connection, number):
                    log.warning("%s. Send it again: recon report mail %d", told, number)
    except (ReconError, OSError, psycopg.Error) as error:
        said = str(error) or type(error).__name__
        log.warning("Reports that wait were not mailed; the next run tries again: %s", said)


def _tried(workspace: Workspace, connection: psycopg.Connection, number: int) -> tuple[str, ...]:
    """Why messages of a run wait still; what is wrong with one run keeps no other from going."""
    try:
        return _mail(workspace, connection, number).failed
    except (ReconError, OSError) as error:
        said = str(error).rstrip(".") or type(error).__name__
        return (f"The report of reconciliation {number} was not mailed: {said}",)


def mail_report(workspace: Workspace, number: int | None) -> tuple[Reconciliation, Mailed]:
    """Send what waits of one run, the latest where none is named; raises ReconError."""
    with workspace.database.connect() as connection:
        run = find_run(connection, number)
        return run, _mail(workspace, connection, run.id)


def _mail(workspace: Workspace, connection: psycopg.Connection, number: int) -> Mailed:
    settings, folder = None, None
    run = find_run(connection, number)
    sent: list[str] = []
    failed: dict[str, str] = {}
    while True:
        with connection.transaction():
            claimed = claim_mail(connection, number, [*sent, *failed])
            if claimed is None:
                break
            account, address = claimed
            settings = settings or _server()
            folder = folder or check_files(workspace, run)
            try:
                _send(settings, run, folder, account, address)
            except MailUnusable as error:
                failed[account] = f"The report for {account} was not mailed: {error}"
                if not isinstance(error, MailRefused):
                    break
            else:
                mail_sent(connection, number, account)
                sent.append(account)
    return Mailed(tuple(sent), tuple(failed.values()))


def _server() -> MailSettings:
    settings = read_mail_settings()
    if settings is None:
        raise MailUnusable(
            "No mail server is set, and subscribers wait for reports. Set RECON_MAIL_SERVER and "
            "RECON_MAIL_FROM."
        )
    return settings


def _send(
    settings: MailSettings, run: Reconciliation, folder: Path, account: str, address: str
) -> None:
    text, workbook = folder / TEXT, folder / WORKBOOK
    attached = workbook.is_file() and workbook.stat().st_size <= MOST_ATTACHED
    message = partial(
        letter,
        number=run.id,
        scope=run.scope,
        day=run.as_of.isoformat(),
        verdict=run.verdict,
        report_hash=run.report_hash,
        report_text=text.read_text(encoding="utf-8"),
        account=account,
        sender=settings.sender,
        address=address,
        link=desk_link(DeskPage.RUN, run.id),
    )
    if attached:
        with suppress(MailTooLarge):
            send(settings, message(workbook=workbook.read_bytes()), address)
            return
    send(settings, message(workbook=None), address)
