"""The cover of a reconciliation: its inputs, its sources, and what is missing."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

import polars as pl
import psycopg

from connectors.postgres.batches.ledger import batches_of, feeds_with_batches
from connectors.postgres.runs.reconciliations import Reconciliation
from flows.stages.reconcile.decision_rules import NAMED
from flows.stages.reconcile.listings import PULLED
from flows.stages.reconcile.method import method_now
from flows.stages.reconcile.scope import Asked, Scope, scope_title
from flows.stages.reconcile.sign import last_sign_off
from flows.stages.reconcile.since_signed import changes_since, signed_acceptances
from flows.stages.reconcile.sources import Gathered
from flows.stages.workspace import Workspace
from flows.steps.frames.parts import columns_of, parts_of
from flows.steps.reconcile.conclusion import Facts
from flows.steps.reconcile.cut_off import Cut
from flows.steps.reconcile.joins import JoinResult
from flows.steps.reconcile.report import InputLine, PreviousLine, RunLine, SignOff, SourceLine
from flows.steps.rules.rules import Rules
from flows.steps.totals import Totals, in_currency
from schemas.amounts import in_text
from schemas.counting import agree, first_of, quantity
from schemas.field import TENANT, Table
from schemas.operations import PUSHES
from schemas.tables import EXTRACTS, INSERT_BATCH_DATA


def gather_facts(
    workspace: Workspace,
    connection: psycopg.Connection,
    asked: Asked,
    gathered: Gathered,
    cut: Cut,
    joined: JoinResult,
    previous: Reconciliation | None,
    run: RunLine,
    *,
    restates: str,
) -> Facts:
    """The facts on a run's cover besides its verdict.

    `cut` is what is dated apart from the report's day; `restates` is what the run restates.
    """
    scope = asked.scope
    signed = last_sign_off(connection, scope.text, asked.as_of)
    method = method_now(workspace, asked.rules, gathered)
    names = method.currencies or {}
    changes = changes_since(workspace, connection, scope, asked.scope_text, method)
    return Facts(
        title=f"Reconciliation of {scope_title(scope.text)}",
        zone=method.zone,
        version=method.version,
        inputs=_inputs(gathered),
        truths=_source_lines(gathered),
        incomplete=(
            *_not_there(connection, scope),
            *_incomplete(gathered, asked.rules, asked.unread, names),
        ),
        previous=PreviousLine(previous.id, previous.as_of, previous.report_hash, previous.verdict)
        if previous
        else None,
        sign_off=_since(signed, joined),
        currencies=names,
        undated=tuple(
            record
            for record, table in EXTRACTS.items()
            if table.business_date is None
            and record in {*gathered.sources.extract, *gathered.sources.listings}
        ),
        after=cut.lines,
        restates=restates,
        run=run,
        changes=replace(
            changes,
            notes=(
                *_of_nobody(connection, scope, gathered),
                *_nameless(gathered, names),
                *_refused(gathered),
                *changes.notes,
            ),
        ),
        signed_acceptances=signed_acceptances(connection, scope.text, asked.as_of, names),
    )


def _since(signed: SignOff | None, joined: JoinResult) -> SignOff | None:
    if signed is None or signed.approved_by is None:
        return signed
    return replace(
        signed,
        changed_since=joined.changed_since,
        compared=joined.compared,
        not_compared=joined.not_compared,
    )


def _inputs(gathered: Gathered) -> tuple[InputLine, ...]:
    """The files of extracts and listings, with the number of their rows that are compared."""
    sides = (
        (gathered.extracts, _rows_of(gathered.sources.extract)),
        (gathered.listings, _rows_of(gathered.sources.listings)),
    )
    return tuple(
        InputLine(
            name=one.name,
            record=one.record or "",
            bytes=one.bytes or 0,
            sha256=one.sha256 or "",
            rows=rows[one.record or "", one.id],
            batch_id=one.batch_id,
        )
        for extracts, rows in sides
        for one in extracts
    )


def _rows_of(side: Mapping[str, pl.DataFrame]) -> Counter[tuple[str, int]]:
    """How many rows of a record kind come from each extract."""
    rows: Counter[tuple[str, int]] = Counter()
    for record in side:
        for load in parts_of(side, record):
            writers = columns_of(load, ["extract_id"]).to_series()
            for extract, count in writers.value_counts().iter_rows():
                rows[record, extract] += count
    return rows


def _source_lines(gathered: Gathered) -> tuple[SourceLine, ...]:
    """For each record kind, the sources that were compared and those that could have been."""
    sources = gathered.sources
    lines = []
    for record in EXTRACTS:
        if record not in sources.extract and record not in sources.listings:
            continue
        found = [
            letter
            for letter, there in (
                ("D", record in sources.database),
                ("A", record in sources.answers),
                ("G", record in sources.listings),
                ("P", bool(sources.signed)),
            )
            if there
        ]
        missing = []
        if record in PUSHES and record not in sources.answers:
            missing.append("A")
        if record in PULLED and record not in sources.listings:
            missing.append("G")
        brought = "E" if _is_delivered(gathered, record) else ""
        note = "" if record in PULLED else "the service has no listing of these records"
        lines.append(SourceLine(record, brought, tuple(found), tuple(missing), note))
    return tuple(lines)


def _is_delivered(gathered: Gathered, record: str) -> bool:
    """Whether any of a record kind was delivered; inside insert-batch data only rows show it."""
    loads = parts_of(gathered.sources.extract, record)
    return any(one.record == record for one in gathered.extracts) or any(
        columns_of(load, ["extract_id"]).height for load in loads
    )


def _not_there(connection: psycopg.Connection, scope: Scope) -> Iterator[str]:
    """Feeds and batches that the scope names but does not have."""
    feeds = feeds_with_batches(connection)
    for feed in scope.feeds:
        if feed not in feeds:
            yield (
                f"nothing was ever delivered of feed {feed}: import its delivery, or name the feed "
                "as recon status does"
            )
    for batch in batches_of(connection, scope.batches):
        if not scope.may_have(batch):
            bound = f", bound to tenant {batch.tenant}" if batch.tenant is not None else ""
            yield (
                f"batch {batch.id} is not looked at: it is of feed {batch.feed}{bound}, and other "
                "feeds or tenants are named beside it"
            )


def _of_nobody(connection: psycopg.Connection, scope: Scope, gathered: Gathered) -> Iterator[str]:
    """Tenants of the scope without any record: perhaps nothing is missing, or a name is wrong."""
    if not scope.tenants or scope.narrow:
        return
    bound_to = {batch.tenant for batch in batches_of(connection, gathered.batches)}
    for tenant in sorted(_unnamed({*scope.tenants}.difference(bound_to), gathered)):
        yield f"No record names tenant {tenant}, and no delivery is bound to it"


def _nameless(gathered: Gathered, currencies: Mapping[str, str]) -> Iterator[str]:
    """Rows that name no tenant, and so may belong to the tenants of the scope."""
    found: dict[str, Totals] = {}
    for (_, record), (totals, _) in gathered.nameless.items():
        found[record] = found.get(record, Totals()) + totals
    if not found:
        return
    lines = (
        f"{quantity(found[record].rows, 'row')} of {EXTRACTS[record].title.lower()}"
        f"{_money_of(EXTRACTS[record], found[record], currencies)}"
        for record in sorted(found)
    )
    yield (
        "Rows that name no tenant, of deliveries that are bound to none, are in the report of "
        f"everything alone: {', '.join(lines)}"
    )


def _refused(gathered: Gathered) -> Iterator[str]:
    """Files that were refused and not taken since, whose rows are in no figure."""
    files = gathered.sources.refused.select("file", "batch_id", "refused")
    names = [f"{name} of batch {batch} ({code})" for name, batch, code in files.iter_rows()]
    if names:
        yield (
            f"{quantity(len(names), 'delivered file')} {agree(len(names), 'was', 'were')} refused "
            f"and not taken since, so nothing of {agree(len(names), 'it', 'them')} is compared: "
            f"{first_of(names[::-1], NAMED)}"
        )


def _money_of(table: Table, totals: Totals, currencies: Mapping[str, str]) -> str:
    money = [
        f"{name} {in_text(amounts[name])} in {in_currency(currency, currencies.get(currency))}"
        for currency, amounts in sorted(
            totals.amounts.items(), key=lambda one: (len(one[0]), one[0])
        )
        for name in table.amounts
        if amounts.get(name)
    ]
    unread = [
        f"{count} without a readable {name}"
        for name in table.amounts
        if (count := totals.unreadable.get(name))
    ]
    return f" ({'; '.join((*money, *unread))})" if money or unread else ""


def _unnamed(tenants: set[int], gathered: Gathered) -> set[int]:
    """The tenants that neither a row nor a record of the target names."""
    for side in (gathered.sources.extract, gathered.sources.database):
        for record in side:
            for load in parts_of(side, record) if tenants else ():
                tenants = tenants.difference(*columns_of(load, [TENANT]))
    return tenants


def _incomplete(
    gathered: Gathered, rules: Rules, unread: Mapping[str, str], currencies: Mapping[str, str]
) -> tuple[str, ...]:
    """What prevents a verdict, in the reader's words."""
    missing = [
        f"batch {batch.id} is {batch.state.replace('_', ' ')}: what it brings is not all there"
        for batch in gathered.waiting
    ]
    missing += [
        f"what is kept cannot be proven: {why}" for why in dict.fromkeys(gathered.unproven.values())
    ]
    missing += _unshown(gathered, currencies)
    if not gathered.extracts or not (gathered.sources.extract or gathered.unproven):
        missing.append("there is no extract in this scope: nothing to hold the target against")
    missing += [
        f"{quantity(signed.height, 'record')} of {EXTRACTS[record].title.lower()} "
        f"{agree(signed.height, 'was', 'were')} signed, and no batch of this scope brings any"
        for record, signed in sorted(gathered.sources.signed.items())
        if signed.height and record not in gathered.sources.database
    ]
    missing += gathered.untied
    for record, amounts in sorted(gathered.unfit.items()):
        missing.append(
            f"{quantity(amounts, 'amount')} of {EXTRACTS[record].title.lower()} "
            f"{agree(amounts, 'is', 'are')} too large or too long to be added up exactly, or no "
            f"{agree(amounts, 'number: it is', 'numbers: they are')} shown as "
            f"{agree(amounts, 'it is', 'they are')}, and not judged"
        )
    missing += _without_listing(gathered, rules, unread)
    return tuple(missing)


def _unshown(gathered: Gathered, currencies: Mapping[str, str]) -> Iterator[str]:
    """Extracts whose rows are no evidence, and their totals."""
    names = {one.id: f"{one.name} of batch {one.batch_id}" for one in gathered.extracts}
    for (extract, record), (totals, _) in sorted(gathered.unshown.items()):
        table = EXTRACTS[record]
        yield (
            f"{names[extract]}, {table.title.lower()}: {quantity(totals.rows, 'row')} "
            f"{agree(totals.rows, 'is', 'are')} kept by reference to it and "
            f"{agree(totals.rows, 'proves', 'prove')} nothing{_money_of(table, totals, currencies)}"
        )


def _without_listing(gathered: Gathered, rules: Rules, unread: Mapping[str, str]) -> Iterator[str]:
    """The record kinds that lack a listing to compare with, one sentence each."""
    for record in sorted(PULLED.keys() & {*gathered.sources.extract, *unread}):
        name = f"the service's listing of {EXTRACTS[record].title.lower()}"
        pull = f"recon pull {PULLED[record]}, or a run of pull-listings/pull; then reconcile again"
        rows = record == INSERT_BATCH_DATA.name
        if record in unread:
            why = unread[record].rstrip(". ")
            yield f"{name} could not be pulled: {why}; mend that, then reconcile again"
        elif rows and "batches" not in rules.references:
            continue
        elif record in gathered.spoiled:
            yield f"{name} has rows that could not be read, so it counts for nothing: {pull}"
        elif record in gathered.older:
            yield f"{name} is older than what was sent: {pull}"
        elif rows and _to_be_sent(gathered) and record not in gathered.sources.listings:
            yield f"{name} was not pulled: {pull}"


def _to_be_sent(gathered: Gathered) -> bool:
    """Whether some insert-batch data of the scope was to reach the service."""
    rows = gathered.sources.extract.get(INSERT_BATCH_DATA.name)
    return rows is not None and not gathered.sources.database_alone.issuperset(rows["batch_id"])
