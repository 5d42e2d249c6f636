"""Page one: whether the report can be signed, its scope, its money, and the changes since.

Every rendering shows the same parts in the same order: the verdict and what stands in its way,
scope and run, money per currency, the causes with most money, the changes since the last signed
run, and the signatures so far.
"""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from itertools import chain, islice

from flows.report.reconciled.accepted import accepted_by
from flows.report.reconciled.after import after_cut_off
from flows.report.reconciled.pools import cause_titles, pooled_causes
from flows.report.reconciled.table import (
    COUNT,
    CURRENCY,
    MONEY,
    TEXT,
    WORD,
    ReportColumn,
    ReportTable,
    TableRow,
)
from flows.report.reconciled.tables import idle, nothing_compared
from flows.report.reconciled.words import ALWAYS, GLOSSARY, NOT_READABLE, amount_of, currency_label
from flows.report.spelling import digits, record_title, ungrouped
from flows.steps.frames.beyond import exact_sum
from flows.steps.reconcile.changes import HASH, method_rows
from flows.steps.reconcile.report import AsideLine, ReconciliationReport, SignOff
from flows.steps.reconcile.reported_breaks import Breaks
from flows.steps.reconcile.signed import LATE
from flows.steps.reconcile.totals import Proof
from schemas.amounts import BEYOND
from schemas.counting import agree, quantity
from schemas.life import BreakState

CAUSES = 5
"""Most causes on page one for open breaks, and as many for accepted ones."""
OUTGROWN = 10
"""Most breaks on page one that have changed since they were accepted."""
FIRST_RUN = "This is the first run of its scope: there is nothing to hold it against."
NOTES = {
    "totals": (
        "Left out: of what the extracts delivered, what does not count, as a newer row, a repair "
        "or a rule says so. Target: what it has, without what a rule leaves out there. Difference: "
        "the target less what counts; what was rejected and what is missing is in it."
    ),
    "money": (
        "Difference: by how much the sides differ, without its sign; of a record that one side "
        "lacks, its first amount (of a payment, PaidAmount). Gross: the money of records about "
        "which nothing is known to be missing. A record counts once for each amount it differs in, "
        "and once in each currency for its gross money. Unexplained: over all amounts compared. An "
        "amount that is not readable, as of a rejected row, is in no sum."
    ),
}
"""Texts above tables of page one, by the table's name."""


def to_sign(report: ReconciliationReport) -> list[str]:
    """Say whether the report can be signed, and how; the verdict says what stands in the way."""
    sentences = [
        "It can be approved, by somebody else than the one who prepares it."
        if report.reconciles
        else "It cannot be approved as it stands."
    ]
    if report.changes and report.changes.accept:
        sentences.append(
            "How its figures are made has changed, and whoever approves it accepts that by naming "
            "the hash of the changes: "
            f"recon sign approve --accept-changes {report.changes.accept[:HASH]}"
        )
    if report.cover.restates:
        sentences.append(
            "It is a restatement, and whoever approves it accepts that by naming its day: "
            f"recon sign approve --accept-restated {report.cover.as_of.isoformat()}"
        )
    return sentences


def money(report: ReconciliationReport) -> ReportTable:
    """Per currency, what is unexplained, open, accepted and set aside.

    Breaks without money are counted without a sum; a currency without any line is left out.
    """
    columns = (
        CURRENCY,
        ReportColumn("Money that is", WORD, 34),
        ReportColumn("Breaks", COUNT, 12),
        ReportColumn("Difference", MONEY, 24),
        ReportColumn("Gross", MONEY, 24),
    )
    closings = {
        pool: {one.currency: one for one in forward} for pool, forward in report.forwards.items()
    }
    compared = {one.currency for one in report.proofs if _has_money(one)}
    moneyed = compared.union(
        currency for each in closings.values() for currency, one in each.items() if one.money
    )
    currencies = compared.union(*closings.values())
    rows: list[TableRow] = []
    for currency in sorted(currencies, key=lambda key: (len(key), key)):
        head = currency_label(report, currency)
        unexplained = exact_sum(
            one.unexplained.copy_abs() for one in report.proofs if one.currency == currency
        )
        if currency in compared:
            rows.append(
                TableRow((head, "unexplained", None, unexplained, None), bad=bool(unexplained))
            )
        for pool, closing in closings.items():
            forward = closing.get(currency)
            line = forward.lines[-1] if forward else None
            if forward and line and line.rows:
                sums = (amount_of(line), line.gross) if forward.money else (None, None)
                rows.append(TableRow((head, pool, line.rows, *sums)))
                if line.unreadable:
                    label = f"{pool}, amount {NOT_READABLE}"
                    rows.append(TableRow((head, label, line.unreadable, None, None)))
            elif pool != "set aside" and currency in moneyed:
                rows.append(TableRow((head, pool, 0, Decimal(0), Decimal(0))))
    none = "No amount was compared, and no break is there."
    return ReportTable("money", "Money per currency", columns, rows, groups=1, none=none)


def _has_money(proof: Proof) -> bool:
    """Whether a proof adds up any amount, readable or unexplained."""
    return bool(proof.unexplained) or any(
        line.amount or abs(line.rows) != line.unreadable for line in proof.lines
    )


def top_causes(report: ReconciliationReport) -> ReportTable:
    """The causes with most money in any one currency: first of open breaks, then of accepted ones.

    Currencies are never added up. Breaks without a cause are grouped by code.
    """
    columns = (
        ReportColumn("Breaks that are", WORD, 14),
        ReportColumn("In common", TEXT, 60),
        ReportColumn("Cause or code", WORD, 14),
        ReportColumn("Breaks", COUNT, 10),
        CURRENCY,
        ReportColumn("Difference", MONEY, 18),
        ReportColumn("Gross", MONEY, 18),
        ReportColumn("Not readable", COUNT, 12),
    )
    titles = cause_titles(report)
    rows = [
        TableRow(
            (
                pool,
                one.title(titles),
                one.name,
                share.breaks,
                currency_label(report, currency),
                share.difference,
                share.gross,
                share.sums.unreadable or None,
            )
        )
        for pool, causes in pooled_causes(report).items()
        for one in islice(causes.values(), CAUSES)
        for currency, share in one.shares.items()
    ]
    none = "No break is open or accepted."
    return ReportTable("top_causes", "Causes of most money", columns, rows, groups=1, none=none)


def method(report: ReconciliationReport) -> ReportTable:
    """Changes since the last signed run in how the figures are made, which have to be accepted."""
    none = "Rules, feed profiles, settings and the version of recon are as they were."
    return _since("method", report, "How the figures are made", _method(report), none)


def changed(report: ReconciliationReport) -> ReportTable:
    """Other changes since the last signed run: records, breaks, reports of other scopes.

    A sentence about the signed records as a whole comes first, where there is one.
    """
    sign, changes = report.sign_off, report.changes
    signed, others = [*_signed(report)], [*_others(report)]
    as_a_whole = ""
    if changes is None or not changes.since:
        as_a_whole = FIRST_RUN
    elif sign is None or sign.compared is None:
        as_a_whole = (
            "No signed record was compared: what is here is not held against records or "
            "acceptances that somebody signed for in this scope."
        )
    elif not signed:
        as_a_whole = "No signed record or acceptance is other than it was."
    rows = [*signed, *others]
    if rows and as_a_whole:
        rows = [(as_a_whole, "", ""), *rows]
    by_then = ""
    if report.cover.restates and sign is not None and sign.compared is not None:
        # Later runs may be signed too; they decide how figures are made, not which records existed.
        by_then = f"{sign.report}, the last one approved up to that day"
    return _since("changes", report, "Records and breaks", rows, as_a_whole, by_then)


def _since(
    name: str,
    report: ReconciliationReport,
    title: str,
    rows: Iterable[tuple[str, str, str]],
    none: str,
    of: str = "",
) -> ReportTable:
    """A table of changes since the report that this one is compared with, or since `of`."""
    columns = (
        ReportColumn("What", TEXT, 52),
        ReportColumn("Before", TEXT, 30),
        ReportColumn("Now", TEXT, 30),
    )
    since = report.changes.since if report.changes else ""
    return ReportTable(
        name,
        f"{title}: changes since {of or since or 'the last signed run'}",
        columns,
        [TableRow(cells) for cells in rows],
        none=none if since else FIRST_RUN,
        against=1,
    )


def _method(report: ReconciliationReport) -> Iterator[tuple[str, str, str]]:
    changes = report.changes
    if changes is None:
        return
    yield from method_rows(changes, report.cover.rules_hash)
    for aside in changes.aside:
        if aside.by_rules and changes.accept:
            yield _aside(aside)


def _aside(one: AsideLine) -> tuple[str, str, str]:
    return f"breaks that are {one.state}: {one.because}", "", str(one.breaks)


def _signed(report: ReconciliationReport) -> Iterator[tuple[str, str, str]]:
    """Yield records and acceptances that have changed since they were signed."""
    yield from _records(report)
    changes = report.changes
    if changes is None:
        return
    for other in changes.outgrown[:OUTGROWN]:
        yield f"not what was accepted: {other.what}", other.accepted_as, other.is_now
    if len(changes.outgrown) > OUTGROWN:
        left = len(changes.outgrown) - OUTGROWN + report.left_out.get("outgrown", 0)
        yield "not what was accepted: more, in the list of breaks", "", str(left)
    for again in changes.again[:OUTGROWN]:
        was, now = f"accepted as {again.signed_as} when last signed", f"as {again.accepted_as}"
        yield f"accepted again: {again.what}", was, now
    if len(changes.again) > OUTGROWN:
        left = len(changes.again) - OUTGROWN + report.left_out.get("again", 0)
        yield "accepted again: more, in the list of breaks", "", str(left)


def _others(report: ReconciliationReport) -> Iterator[tuple[str, str, str]]:
    """Yield breaks that are set aside, and notes for the approver."""
    changes = report.changes
    if changes is None:
        return
    for aside in changes.aside:
        if not (aside.by_rules and changes.accept):
            yield _aside(aside)
    for note in changes.notes:
        yield note, "", ""


def _records(report: ReconciliationReport) -> Iterator[tuple[str, str, str]]:
    """Yield records that have changed since they were signed, or that arrived later."""
    sign = report.sign_off
    if sign is not None and sign.changed_since:
        yield "records that differ from what was signed", "0", str(sign.changed_since)
    for record, count in sign.not_compared.items() if sign is not None else ():
        what = f"signed records of {record_title(record)}: not held against what is there"
        yield f"{what}, no batch of this scope brings any", f"{count} signed", "not compared"
    late = report.breaks.where("code", LATE)
    if late:
        what = "records that came after the period they are dated in was signed"
        yield what, "0", "; ".join(_late(report, late))


def _late(report: ReconciliationReport, late: Breaks) -> Iterator[str]:
    """Yield the number of late records and their money in each currency."""
    counts = late.counts("currency")
    for currency in sorted(counts, key=lambda key: (len(key), key)):
        mine = late.where("currency", currency).frame
        amounts, texts = mine["amount"].drop_nulls(), mine["amount" + BEYOND].drop_nulls()
        has_money = len(amounts) or len(texts)
        money = ungrouped(exact_sum(amounts, texts)) + " " if has_money else ""
        yield f"{counts[currency]}: {money}{currency_label(report, currency)}"


def as_signed(sign: SignOff) -> str:
    """Say whether the compared records are as they were signed."""
    if sign.approved_by is None:
        return ""
    if sign.compared is None:
        return "No signed record was compared."
    number, unheld = sign.changed_since, sign.not_compared
    if number:
        text = f"{quantity(number, 'record', spell=digits)} {agree(number, 'differs', 'differ')} "
        text += "from what was signed."
    elif sign.compared:
        text = "No record differs from what was signed."
    else:
        text = "No signed record was compared." if unheld else "No record was signed."
    counts = "; ".join(
        f"{quantity(count, 'record', spell=digits)} of {record_title(record)}"
        for record, count in unheld.items()
    )
    if counts:
        text += f" Not held against it, as no batch of this scope brings any: {counts}."
    return text


def signatures(report: ReconciliationReport) -> ReportTable:
    """The signatures under the report that this one is compared with."""
    columns = (
        ReportColumn("Signed as", WORD, 14),
        ReportColumn("By", TEXT, 28),
        ReportColumn("Account", TEXT, 34),
        ReportColumn("When (UTC)", WORD, 20),
        ReportColumn("Comment", TEXT, 40),
        ReportColumn("Accepted changes", WORD, 16),
    )
    sign = report.sign_off
    rows = [
        TableRow(
            (
                *(one.role, one.by, one.account, moment(one.at)),
                *(one.comment, one.accepted_changes[:HASH]),
            )
        )
        for one in (sign.signatures if sign else ())
    ]
    none = "No report of this scope has been signed before; this one is signed after it is written."
    before = f": {sign.report}" if rows and sign else ""
    title = f"Signatures of the report before{before}"
    return ReportTable("signatures", title, columns, rows, none=none)


def moment(at: datetime) -> str:
    """A time to the second, in UTC."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S}"


def parts(report: ReconciliationReport) -> tuple[ReportTable, ...]:
    return (
        money(report),
        *([after_cut_off(report)] if report.cover.after else []),
        top_causes(report),
        *([accepted_by(report)] if report.breaks.counts("state")[BreakState.ACCEPTED] else []),
        method(report),
        changed(report),
        signatures(report),
        words(report),
    )


def totals(report: ReconciliationReport) -> ReportTable:
    """Both sides of each amount field per currency, if there is anything to prove."""
    columns = (
        CURRENCY,
        ReportColumn("Amount", WORD, 34),
        ReportColumn("Extract", MONEY, 24),
        ReportColumn("Left out", MONEY, 24),
        ReportColumn("Target", MONEY, 24),
        ReportColumn("Difference", MONEY, 24),
        ReportColumn("Unexplained", MONEY, 24, check=True),
        ReportColumn("Not readable", COUNT, 12),
    )
    rows: list[TableRow] = []
    for one in report.proofs:
        if idle(one) or not one.lines:
            continue
        expected, found = one.lines[0], one.target
        rows.append(
            TableRow(
                (
                    currency_label(report, one.currency),
                    f"{record_title(one.record)} {one.field}",
                    amount_of(expected),
                    one.left_out,
                    amount_of(found),
                    one.difference,
                    one.unexplained,
                    expected.unreadable or None,
                ),
                bad=bool(one.unexplained),
            )
        )
    return ReportTable(
        "totals", "Totals per currency", columns, rows, none=nothing_compared(report)
    )


def words(report: ReconciliationReport) -> ReportTable:
    """The meanings of the words used in this report."""
    columns = (ReportColumn("Word", WORD, 24), ReportColumn("Means", WORD, 96))
    there = {
        *(one.status for one in report.statuses),
        *report.breaks.counts("state"),
        *report.breaks.counts("basis"),
        *(
            line.text.removeprefix("- ")
            for forward in chain.from_iterable(report.forwards.values())
            for line in forward.lines
            if line.rows
        ),
    }
    meanings = {**ALWAYS, **{word: meaning for word, meaning in GLOSSARY.items() if word in there}}
    return ReportTable(
        "words", "Words used here", columns, [TableRow(one) for one in meanings.items()]
    )
