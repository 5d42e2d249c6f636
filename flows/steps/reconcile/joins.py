"""All joins over all truth sources: every record's status, every break, every annex."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date

import polars as pl

from flows.steps.breaks.frame import gather, no_breaks
from flows.steps.breaks.make import Annex, together
from flows.steps.breaks.money import of_debts
from flows.steps.breaks.tolerated import TOLERATED_SCHEMA, ToleranceLine, reconcile_tolerated
from flows.steps.frames.sources import Sources, no_records, record_schema
from flows.steps.frames.statuses import STATUS
from flows.steps.reconcile.allotment import PlanAnnex
from flows.steps.reconcile.batches import BatchLine, reconcile_batches
from flows.steps.reconcile.cut_off import Cut
from flows.steps.reconcile.debts import DebtLine, debt_lines, reconcile_debts, roll_up
from flows.steps.reconcile.documents import reconcile_documents
from flows.steps.reconcile.order import in_order
from flows.steps.reconcile.plans import reconcile_plans
from flows.steps.reconcile.rates import RateLine, reconcile_rates
from flows.steps.reconcile.records import Matched, match
from flows.steps.reconcile.signed import changed_after_signoff, late_arrivals
from flows.steps.rules.rules import Rules
from schemas.breaks import Status
from schemas.field import Table
from schemas.frame_types import WORD
from schemas.tables import (
    CURRENCY_RATE,
    EXTRACTS,
    INSERT_BATCH_DATA,
    INVOICE_FILE,
    PAYMENT,
    PAYMENT_PLAN_DETAIL,
)


@dataclass(frozen=True)
class JoinResult:
    """What the truth sources say together."""

    matched: Mapping[str, Matched]
    """By record kind."""
    breaks: pl.DataFrame
    """Every break with its id, as `frame.gather` gives them."""
    rates: Annex[RateLine]
    plans: PlanAnnex
    debts: Annex[DebtLine]
    batches: Annex[BatchLine]
    tolerances: Annex[ToleranceLine]
    changed_since: int
    """Records that differ from what was signed."""


def reconcile_sources(
    sources: Sources, rules: Rules, as_of: date, *, service: bool, cut: Cut | None = None
) -> JoinResult:
    """Join everything with everything it belongs to; `service`: whether sending was asked for.

    `cut` has what is dated after `as_of`: records refer to it, and nothing is said of it.
    """
    cut = cut or Cut(sources)
    records = [record for record in EXTRACTS if record in {*sources.extract, *sources.database}]
    compared = _by_data(sources)
    matched = {
        record: match(EXTRACTS[record], compared, rules, as_of, service) for record in records
    }
    if INSERT_BATCH_DATA.name in matched and INSERT_BATCH_DATA.name not in sources.listings:
        matched[INSERT_BATCH_DATA.name] = _not_listed(matched[INSERT_BATCH_DATA.name])
    rated, planned, debts = _between(sources, rules, as_of, cut)
    asked = rules.references
    batches: Annex[BatchLine] = Annex()
    sent = sources.extract.get(INSERT_BATCH_DATA.name)
    if "batches" in asked and sent is not None:
        batches = reconcile_batches(sent, sources.listings.get(INSERT_BATCH_DATA.name))
    tolerances = reconcile_tolerated(
        pl.concat(
            [
                pl.DataFrame(schema=TOLERATED_SCHEMA),
                *(each.tolerated for each in matched.values()),
            ]
        ),
        rules,
    )
    changed = _changed(sources, cut)
    late = [
        late_arrivals(EXTRACTS[record], signed, sources.database[record], sources.approved)
        for record, signed in sources.signed.items()
        if record in sources.database
    ]
    breaks = gather(
        [
            *(each.breaks for each in matched.values()),
            *(annex.breaks for annex in (rated, planned, debts, batches, tolerances)),
            changed,
            *late,
        ]
    )
    named = [of[PAYMENT.name] for of in (sources.database, sources.extract) if PAYMENT.name in of]
    breaks = of_debts(breaks, named)
    since = changed.select("record", "tenant", "key").n_unique()
    # The breaks of each are among all of them, and may be a million.
    nothing = no_breaks()
    return JoinResult(
        {record: replace(each, breaks=nothing) for record, each in matched.items()},
        breaks,
        replace(rated, breaks=nothing),
        replace(planned, breaks=nothing),
        replace(debts, breaks=nothing),
        replace(batches, breaks=nothing),
        replace(tolerances, breaks=nothing),
        since,
    )


def joined_break_ids(sources: Sources, rules: Rules, as_of: date, cut: Cut) -> pl.Series:
    """The ids of the breaks of records that are held against others: rates, plans and documents."""
    return gather([annex.breaks for annex in _between(sources, rules, as_of, cut)])["id"]


def _between(
    sources: Sources, rules: Rules, as_of: date, cut: Cut
) -> tuple[Annex[RateLine], PlanAnnex, Annex[DebtLine]]:
    payments = _target(PAYMENT, sources)
    places = sources.extract
    asked = rules.references
    rated: Annex[RateLine] = Annex()
    if "rates" in asked:
        rates, later = (_target(CURRENCY_RATE, of) for of in (sources, cut.after))
        rated = reconcile_rates(
            payments,
            in_order(CURRENCY_RATE, rates),
            rules,
            as_of,
            places,
            in_order(CURRENCY_RATE, later) if later.height else None,
        )
    planned = PlanAnnex()
    details, later_ones = (_target(_DETAIL, of) for of in (sources, cut.after))
    if "plans" in asked and details.height + later_ones.height:
        paid_later = _target(PAYMENT, cut.after)
        planned = reconcile_plans(
            in_order(_DETAIL, details),
            payments,
            rules,
            as_of,
            places,
            later_details=in_order(_DETAIL, later_ones) if later_ones.height else None,
            later_payments=paid_later if paid_later.height else None,
        )
    return rated, planned, _reconcile_debts(payments, sources, planned, rules)


_DETAIL = PAYMENT_PLAN_DETAIL


def _by_data(sources: Sources) -> Sources:
    """The sources with insert-batch data by its BatchId and Data alone.

    The service sets the other fields as it goes on; `batches` judges what they say.
    """
    name = INSERT_BATCH_DATA.name
    if name not in sources.extract or name not in sources.listings:
        return sources
    told = [field for field in INSERT_BATCH_DATA.columns if field not in ("BatchId", "Data")]
    empty = [pl.lit(None).cast(record_schema(INSERT_BATCH_DATA)[one]).alias(one) for one in told]
    return replace(
        sources,
        extract={**sources.extract, name: sources.extract[name].with_columns(empty)},
        listings={**sources.listings, name: sources.listings[name].with_columns(empty)},
    )


def _not_listed(matched: Matched) -> Matched:
    """Insert-batch data without a listing: the records inside are compared, the rows are not."""
    status = pl.lit(Status.EXCLUDED.value, STATUS).alias("status")
    rule = pl.lit("no listing", WORD).alias("rule")
    lines = replace(matched.lines, frame=matched.lines.frame.with_columns(status, rule))
    return replace(matched, lines=lines)


def _target(table: Table, sources: Sources) -> pl.DataFrame:
    """The records as they stand in the target, each with the number of the row that wrote it."""
    found = sources.database.get(table.name)
    if found is None:
        found = sources.listings.get(table.name)
    return no_records(table) if found is None else found


def _reconcile_debts(
    payments: pl.DataFrame, sources: Sources, planned: PlanAnnex, rules: Rules
) -> Annex[DebtLine]:
    """J8 and J9: every debt by its payments, its plan and its invoice files."""
    rolled = roll_up(payments)
    asks = planned.planned if "plans" in rules.references else PlanAnnex().planned
    owed = reconcile_debts(rolled, asks, rules) if "plans" in rules.references else together([])
    invoices = _target(INVOICE_FILE, sources)
    filed: Annex[DebtLine] = reconcile_documents(rolled, invoices, sources.extract)
    breaks = together([owed, filed.breaks] if "documents" in rules.references else [owed])
    return Annex(breaks, debt_lines(rolled, asks, filed.rows, breaks), rolled)


def _changed(sources: Sources, cut: Cut) -> pl.DataFrame:
    """What differs from the records that were signed; one that is dated later now is among them."""
    return together(
        [
            changed_after_signoff(EXTRACTS[record], signed, now)
            for record, signed in sources.signed.items()
            if signed.height and (now := cut.whole("database", record)) is not None
        ]
    )
