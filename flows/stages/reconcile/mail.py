"""Reports by e-mail: each subscriber of a run's scope is sent one message.

A message is marked as sent in the transaction that claimed it, so that two senders send it once. If
its answer is lost, or the process dies between answer and commit, it is sent again under the same
Message-ID.
"""

import logging
import time
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psycopg

from connectors.desk_links import DeskPage, desk_link
from connectors.errors import (
    AccountRefused,
    MailRefused,
    MailTooLarge,
    MailUnusable,
    ReconError,
    SettingsError,
)
from connectors.mail import MailSettings, read_mail_settings, send
from connectors.postgres.accounts import sees_part
from connectors.postgres.runs.reconciliations import Reconciliation, find_run
from connectors.postgres.runs.subscriptions import claim_mail, mail_sent, runs_to_mail
from connectors.settings import MIB
from flows.report.reconciled.letter import letter
from flows.stages.reconcile.report_files import TEXT, WORKBOOK, check_files
from flows.stages.workspace import Workspace
from schemas.counting import agree, quantity

MOST_ATTACHED = 7 * MIB
"""The largest workbook to attach; encoded it is below the 10,240,000 bytes many servers allow."""
MOST_SECONDS = 60.0
"""After this time a saved run does not begin to mail another run."""

log = logging.getLogger("recon.mail")


@dataclass(frozen=True, slots=True)
class Mailed:
    sent: tuple[str, ...]
    """Accounts that were sent a message."""
    failed: tuple[str, ...]
    """Why messages still wait, a sentence each."""
    refused: tuple[str, ...] = ()
    """Accounts whose message or address the server does not accept."""
    unusable: bool = False
    """Whether the mail server, or its settings, allow no message at all."""


def mail_reports(workspace: Workspace, saved: int) -> bool:
    """Send waiting messages of recent runs, first of the run just saved; never raises for that.

    Returns whether the run just saved could not be sent to somebody.

    Failures are warnings, which tell an account of some tenants nothing of others, and the next run
    tries again. A server that takes nothing is asked once, and so is one that refuses an account.
    After MOST_SECONDS no further run is begun, because the caller waits.
    """
    refused: set[str] = set()
    failed = False
    try:
        with workspace.database.connect() as connection:
            is_part = sees_part(connection)
            waiting = sorted(runs_to_mail(connection), key=lambda number: (number != saved, number))
            until = time.monotonic() + MOST_SECONDS
            while waiting:
                number = waiting.pop(0)
                mailed = _tried(workspace, connection, number, refused)
                refused.update(mailed.refused)
                failed = failed or (number == saved and bool(mailed.failed))
                if not is_part:
                    for failure in mailed.failed:
                        log.warning("%s. To send it: recon report mail %d", failure, number)
                elif number == saved and failed:
                    log.warning("Subscribers wait for the report of reconciliation %d", number)
                if waiting and (mailed.unusable or time.monotonic() > until):
                    more = quantity(len(waiting), "more run")
                    waits = agree(len(waiting), "waits", "wait")
                    log.warning("%s %s to be mailed; the next run tries again", more, waits)
                    break
    except (ReconError, OSError, psycopg.Error) as error:
        why = str(error) or type(error).__name__
        log.warning("Reports that wait were not mailed; the next run tries again: %s", why)
    return failed


def _tried(
    workspace: Workspace, connection: psycopg.Connection, number: int, but: Collection[str]
) -> Mailed:
    """Send a run's messages, turning an error into its outcome, so that other runs go on."""
    try:
        return _mail(workspace, connection, number, but)
    except (ReconError, OSError) as error:
        why = str(error).rstrip(".") or type(error).__name__
        failure = f"The report of reconciliation {number} was not mailed: {why}"
        return Mailed((), (failure,), unusable=isinstance(error, MailUnusable | SettingsError))


def mail_report(workspace: Workspace, number: int | None) -> tuple[Reconciliation, Mailed]:
    """Send waiting messages of one run, by default the latest; raises ReconError."""
    with workspace.database.connect() as connection:
        if sees_part(connection):
            raise AccountRefused(
                "Mailing a report names other accounts, which you do not see: somebody who acts "
                "for all tenants does it. Nothing was sent."
            )
        run = find_run(connection, number)
        return run, _mail(workspace, connection, run.id)


def _mail(
    workspace: Workspace, connection: psycopg.Connection, number: int, but: Collection[str] = ()
) -> Mailed:
    settings, folder = None, None
    run = find_run(connection, number)
    sent: list[str] = []
    failed: dict[str, str] = {}
    unusable = False
    while not unusable:
        with connection.transaction():
            claimed = claim_mail(connection, number, [*sent, *failed, *but])
            if claimed is None:
                break
            account, address = claimed
            settings = settings or _server()
            folder = folder or check_files(workspace, connection, run)
            try:
                _send(settings, run, folder, account, address)
            except MailUnusable as error:
                failed[account] = f"The report for {account} was not mailed: {error}"
                unusable = not isinstance(error, MailRefused)
            else:
                mail_sent(connection, number, account)
                sent.append(account)
    return Mailed(tuple(sent), tuple(failed.values()), tuple(failed), unusable)


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
