"""All joins over all sources: the status of every record, every break, every annex."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

import polars as pl

from flows.steps.breaks.frame import gather, gather_parts
from flows.steps.breaks.make import Annex, together
from flows.steps.breaks.money import of_debts
from flows.steps.breaks.tolerated import TOLERATED_SCHEMA, ToleranceLine, reconcile_tolerated
from flows.steps.frames.parts import Keep, Load, held, parts_of, whole, with_rows_of
from flows.steps.frames.sources import Sources, in_order, record_schema
from flows.steps.frames.statuses import STATUS, in_state
from flows.steps.reconcile.allotment import PlanAnnex, PlanLine
from flows.steps.reconcile.around import KnownRecords, known_records
from flows.steps.reconcile.batches import (
    OF_USE,
    BatchLine,
    reconcile_batches,
    with_pair_numbers,
)
from flows.steps.reconcile.cut_off import Cut
from flows.steps.reconcile.debt_ranges import reconcile_all_debts
from flows.steps.reconcile.debts import DebtLine
from flows.steps.reconcile.left_out import included_batches, left_out, left_out_as_signed
from flows.steps.reconcile.plans import of_plans, reconcile_plans
from flows.steps.reconcile.rates import reconcile_rates
from flows.steps.reconcile.records import Matched, match
from flows.steps.reconcile.refused_files import refused_files
from flows.steps.reconcile.signed import changed_after_signoff, late_arrivals
from flows.steps.reconcile.used_rates import RateLine
from flows.steps.rules.own_kinds import tables_by
from flows.steps.rules.rules import Rules
from schemas.breaks import Status
from schemas.derived.left_out import NO_LISTING
from schemas.field import Table
from schemas.frame_types import WORD
from schemas.tables import CURRENCY_RATE, EXTRACTS, INSERT_BATCH_DATA, PAYMENT, PAYMENT_PLAN_DETAIL


@dataclass(frozen=True)
class JoinResult:
    statuses: Mapping[str, Sequence[Load]]
    """The statuses of each kind's records (`records.Matched`), in the parts of its sources."""
    breaks: pl.DataFrame
    """Every break with its id, as returned by `frame.gather`."""
    rates: tuple[RateLine, ...]
    plans: tuple[PlanLine, ...]
    debts: tuple[DebtLine, ...]
    batches: tuple[BatchLine, ...]
    tolerances: tuple[ToleranceLine, ...]
    tolerated: pl.DataFrame
    """Every difference that the rules tolerate, as `TOLERATED_SCHEMA`."""
    changed_since: int
    """Number of records that differ from what was signed."""
    compared: int | None
    """Number of signed records that were compared; None if none were read."""
    not_compared: Mapping[str, int]
    """Number of signed records of kinds of which the target has no records in the scope."""
    left_out: dict[str, int]
    """How many lines of an annex are not shown, by annex; annexes shown whole are not in it."""


def reconcile_sources(
    sources: Sources,
    rules: Rules,
    as_of: date,
    *,
    service: bool,
    cut: Cut | None = None,
    keep: Keep | None = None,
) -> JoinResult:
    """Run all joins; `service` says whether sending was asked for.

    `cut` has the records dated after `as_of`: others may refer to them, but they are not compared.
    `keep` puts the statuses of records aside; without it they are made when they are asked for.
    """
    cut = cut or Cut(sources)
    records = [record for record in EXTRACTS if record in {*sources.extract, *sources.database}]
    out = left_out(sources, rules)
    known = known_records(sources, cut, rules, as_of, out)
    tables = tables_by(rules)
    matched = [
        _match(tables[record], sources, rules, as_of, known, service=service, keep=keep)
        for record in records
    ]
    rated, planned, debts = _between(sources, rules, as_of, known, keep)
    batches: Annex[BatchLine] = Annex()
    sent = sources.extract.get(INSERT_BATCH_DATA.name)
    if "batches" in rules.references and sent is not None:
        listed = sources.listings.get(INSERT_BATCH_DATA.name)
        batches = reconcile_batches(*included_batches(sent, listed, rules))
    tolerances = reconcile_tolerated(
        pl.concat([pl.DataFrame(schema=TOLERATED_SCHEMA), *(each.tolerated for each in matched)]),
        rules,
    )
    changed, unheld = _changed(sources, cut, rules)
    late = [
        late_arrivals(tables[record], signed, load(), sources.approved)
        for record, signed in sources.signed.items()
        for load in (parts_of(sources.database, record) if sources.approved else ())
    ]
    annexes: Mapping[str, Annex[Any]] = {
        "rates": rated,
        "plans": planned,
        "debts": debts,
        "batches": batches,
        "tolerances": tolerances,
    }
    found = (refused_files(sources.refused), *(one.breaks for one in annexes.values()), *late)
    others = (*(out.unrelated(one) for one in found), changed)
    breaks = gather_parts(
        [
            *(load for each in matched for load in each.breaks),
            *(load for annex in annexes.values() for load in annex.aside),
            *(held(_with_debts(one, sources)) for one in others),
        ]
    )
    # Only the lines of annexes are kept: their frames may have a row per debt or repeat all breaks.
    return JoinResult(
        statuses={record: each.statuses for record, each in zip(records, matched, strict=True)},
        breaks=breaks,
        rates=rated.lines,
        plans=planned.lines,
        debts=debts.lines,
        batches=batches.lines,
        tolerances=tolerances.lines,
        tolerated=tolerances.rows,
        changed_since=changed.select("record", "tenant", "key").n_unique(),
        compared=sum(signed.height for signed in sources.signed.values()) - sum(unheld.values())
        if sources.signed
        else None,
        not_compared=unheld,
        left_out={name: annex.left for name, annex in annexes.items() if annex.left},
    )


@dataclass(frozen=True)
class _Matched:
    statuses: Sequence[Load]
    breaks: Sequence[Load]
    tolerated: pl.DataFrame


def _match(
    table: Table,
    sources: Sources,
    rules: Rules,
    as_of: date,
    known: KnownRecords,
    *,
    service: bool,
    keep: Keep | None,
) -> _Matched:
    near = known.with_second_keys(table)
    statuses: list[Load] = []
    breaks: list[Load] = []
    tolerated = []
    for part in sources.parts(table.name):
        matched = match(table, _by_data(table, part), rules, as_of, service, near)
        if table is INSERT_BATCH_DATA and table.name not in sources.listings:
            matched = _not_listed(matched)
        statuses.append(matched.lines.whole if keep is None else keep(matched.statuses))
        breaks.append((keep or held)(_with_debts(matched.breaks, part)))
        tolerated.append(matched.tolerated)
        del part, matched  # Freed before the next part is read.
    return _Matched(statuses, breaks, pl.concat(tolerated))


def _with_debts(breaks: pl.DataFrame, sources: Sources) -> pl.DataFrame:
    """Breaks with the debts of their payments, from the target first and then from the extracts."""
    sides = (sources.database, sources.extract)
    return of_debts(breaks, [load for side in sides for load in parts_of(side, PAYMENT.name)])


def joined_break_ids(sources: Sources, rules: Rules, as_of: date, cut: Cut) -> pl.Series:
    """The ids of the breaks of joins between record kinds: rates, plans, debts and documents."""
    out = left_out(sources, rules)
    annexes = _between(sources, rules, as_of, known_records(sources, cut, rules, as_of, out))
    return gather([out.unrelated(annex.every_break()) for annex in annexes])["id"]


def _between(
    sources: Sources, rules: Rules, as_of: date, known: KnownRecords, keep: Keep | None = None
) -> tuple[Annex[RateLine], PlanAnnex, Annex[DebtLine]]:
    files, asked = sources.extract, rules.references
    rated: Annex[RateLine] = Annex()
    if "rates" in asked:
        rates, near, *others = (whole(some.included(CURRENCY_RATE)) for some in known.every)
        excluded = [load() for some in known.every for load in some.excluded(CURRENCY_RATE)]
        rated = reconcile_rates(
            known.own.included(PAYMENT),
            in_order(CURRENCY_RATE, rates),
            rules,
            as_of,
            files,
            later=in_order(CURRENCY_RATE, with_rows_of(*others)),
            left_out=in_order(CURRENCY_RATE, with_rows_of(rates.clear(), *excluded)),
            near=in_order(CURRENCY_RATE, near),
            own=known.scope,
        )
    planned = PlanAnnex()
    details = known.details(known.own, known.near)
    later_ones = known.details(known.later, known.near_later)
    if "plans" in asked and details.height + later_ones.height:
        to_come = (whole(some.included(PAYMENT)) for some in (known.later, known.near_later))
        named = pl.concat([details["PaymentsId"], later_ones["PaymentsId"]])
        planned = reconcile_plans(
            in_order(PAYMENT_PLAN_DETAIL, details),
            of_plans(known.payments(), named),
            rules,
            as_of,
            files,
            later_details=in_order(PAYMENT_PLAN_DETAIL, later_ones),
            later_payments=with_rows_of(*to_come),
            own=known.scope,
        )
    debts = reconcile_all_debts(
        known.paid_for_debts(),
        known.of_debts(planned),
        known.files(),
        rules,
        files,
        keep or held,
        known.scope,
        as_of,
    )
    return rated, planned, debts


def _by_data(table: Table, sources: Sources) -> Sources:
    """The sources of a kind; insert-batch data with the pairs and shared fields of `batches`.

    The service changes the other fields over time; `batches` judges them.
    """
    name = INSERT_BATCH_DATA.name
    if table.name != name or name not in sources.extract or name not in sources.listings:
        return sources
    kept, schema = ("BatchId", "Data", "Jsondata"), record_schema(INSERT_BATCH_DATA)
    others = (field for field in INSERT_BATCH_DATA.columns if field not in kept)
    empty = [pl.lit(None, schema[one]).alias(one) for one in others]
    sides = with_pair_numbers(sources.extract[name], sources.listings[name])
    sent, listed = (side.with_columns(empty) for side in sides)
    sent = sent.with_columns(pl.when(~in_state(OF_USE)).then("state").alias("state"))
    return replace(
        sources,
        extract={**sources.extract, name: sent},
        listings={**sources.listings, name: listed},
    )


def _not_listed(matched: Matched) -> Matched:
    """Exclude insert-batch rows without a listing: only the records inside are compared."""
    frame = matched.lines.frame.with_columns(
        status=pl.lit(Status.EXCLUDED.value, STATUS), rule=pl.lit(NO_LISTING, WORD)
    )
    return replace(matched, lines=replace(matched.lines, frame=frame))


def _changed(sources: Sources, cut: Cut, rules: Rules) -> tuple[pl.DataFrame, dict[str, int]]:
    """Breaks of signed records that have changed, including those that are dated later now.

    Also the number of signed records by kind for kinds that the target does not have.
    """
    parts, unheld = [], {}
    for record, signed in sources.signed.items():
        if signed.is_empty():
            continue
        now = cut.whole("database", record)
        if now is None:
            unheld[record] = signed.height
        else:
            table, rows = EXTRACTS[record], parts_of(sources.extract, record)
            every = (*rows, *parts_of(cut.after.extract, record))
            out = left_out_as_signed(table, signed, now, every, rules)
            parts.append(changed_after_signoff(table, signed.filter(~out), now, rows))
    return together(parts), unheld
