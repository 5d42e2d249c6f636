"""The report as an e-mail: where to find it, its first page, and the workbook."""

import hashlib
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import localtime
from html import escape

from flows.report.reconciled.verdicts import word_of
from flows.report.spelling import shortened, visible

LONGEST_SCOPE = 150
"""Most characters of a scope in a subject."""
WORKBOOK_TYPE = ("application", "vnd.openxmlformats-officedocument.spreadsheetml.sheet")
_WRAPPED = "white-space: pre-wrap; overflow-wrap: anywhere"
_AFTER_FIRST_PAGE = ("\nWORDS USED HERE\n", "\nSTATUSES\n")
"""Headings behind the first page; the meanings of words can be looked up in the report."""


def letter(
    *,
    number: int,
    scope: str,
    day: str,
    verdict: str,
    report_hash: str,
    report_text: str,
    account: str,
    sender: str,
    address: str,
    link: str | None,
    workbook: bytes | None,
) -> EmailMessage:
    """The message for one subscriber; `report_text` is the report as shown in a terminal.

    Its Message-ID follows from run and account, so that mail programs recognise a repeated message.
    """
    word = word_of(verdict)
    message = EmailMessage(policy=SMTP)
    subject = f"{shortened(scope, LONGEST_SCOPE)}, {day}: {word}"
    # A text that looks like an encoded word would be decoded, including line ends in it.
    message["Subject"] = subject.replace("=?", "= ?")
    message["From"] = sender
    message["To"] = address
    message["Date"] = localtime()
    whose = hashlib.sha256(account.encode()).hexdigest()[:16]
    domain = sender.rpartition("@")[2]
    message["Message-ID"] = f"<recon.{number}.{report_hash[:16]}.{whose}@{domain}>"
    message["Auto-Submitted"] = "auto-generated"
    page = report_text
    for heading in _AFTER_FIRST_PAGE:
        page = page.partition(heading)[0]
    page = page.strip()
    where = [f"Reconciliation {number} at the desk: {link}"] if link else []
    there = "it is at the desk" if link else f"`recon report {number}` says where it is"
    where.append(
        "The workbook is attached."
        if workbook is not None
        else f"The workbook is not attached; {there}."
    )
    stop = "the page My account at the desk" if link else "`recon user unsubscribe`"
    why = (
        f"You are sent this because the account {visible(account)} is subscribed to the reports of "
        f"this scope. To be sent no more of them: {stop}."
    )
    message.set_content("\n\n".join((*where, page, why)) + "\n")
    anchor = f'<p><a href="{escape(link)}">Open it at the desk</a></p>' if link else ""
    message.add_alternative(
        f'<!doctype html><html lang="en"><body><h1>{escape(word)}</h1>{anchor}'
        f'<p>{escape(where[-1])}</p><pre style="{_WRAPPED}">{escape(page)}</pre>'
        f"<p>{escape(why)}</p></body></html>\n",
        subtype="html",
    )
    if workbook is not None:
        main, sub = WORKBOOK_TYPE
        name = f"reconciliation-{number}.xlsx"
        message.add_attachment(workbook, maintype=main, subtype=sub, filename=name)
    return message
