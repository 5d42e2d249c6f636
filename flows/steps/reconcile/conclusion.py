"""The value of the report from the results: totals, breaks as finance reads them, the verdict."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta

import polars as pl

from flows.steps.breaks.acceptance import outgrown
from flows.steps.breaks.carried_states import is_open
from flows.steps.breaks.causes import Causes
from flows.steps.breaks.changed_into import accepted_among, changed_into
from flows.steps.breaks.make import about_one_record, left_of
from flows.steps.breaks.match_breaks import line_key
from flows.steps.frames.light import flags
from flows.steps.frames.parts import Load, PartedRows
from flows.steps.frames.sources import Sources, are_among, record_schema
from flows.steps.frames.statuses import STATUS
from flows.steps.reconcile.break_lines import (
    BreakFigures,
    accepted_again,
    again_lines,
    break_figures,
    outgrown_lines,
    replaced_lines,
    reported,
)
from flows.steps.reconcile.changes import accepted_by
from flows.steps.reconcile.cut_off import AfterLine
from flows.steps.reconcile.joins import JoinResult
from flows.steps.reconcile.report import (
    Changes,
    Cover,
    InputLine,
    PreviousLine,
    ReconciliationReport,
    RunLine,
    SignOff,
    SourceLine,
)
from flows.steps.reconcile.self_test import SelfTest
from flows.steps.reconcile.sums import Sides, add_up, together
from flows.steps.reconcile.totals import (
    ExcludedLine,
    StatusLine,
    chain_lines,
    control_lines,
    excluded_lines,
    proofs,
    status_counts,
    status_lines,
)
from flows.steps.reconcile.verdict import Opinion, reached, untied
from flows.steps.rules.calendar import unknown_years
from flows.steps.rules.canonical import rules_hash, rules_text
from flows.steps.rules.rules import Rules
from schemas.breaks import Status
from schemas.field import Table
from schemas.frame_types import WORD
from schemas.life import BreakState
from schemas.operations import PUSHES
from schemas.tables import EXTRACTS

ACCEPTABLE = (Status.MISMATCH, Status.MISSING_IN_TARGET, Status.MISSING_IN_EXTRACT)
"""Statuses that become MATCHED_MANUAL once every break of the record is accepted."""
_NO_DAYS = pl.DataFrame(schema={"first": pl.Date, "last": pl.Date})
_NO_TENANTS = pl.Series("tenant", [], pl.Int32)


@dataclass(frozen=True)
class KindFigures:
    """The outcome of one record kind, counted and added up over all of its parts."""

    sides: Sides
    statuses: tuple[StatusLine, ...]
    excluded: tuple[ExcludedLine, ...]
    days: pl.DataFrame
    """The first and last business date of each part."""
    tenants: pl.Series


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts for the cover that are not reconciled."""

    title: str
    version: str
    inputs: tuple[InputLine, ...]
    truths: tuple[SourceLine, ...]
    incomplete: tuple[str, ...]
    """What is missing for a verdict, in the reader's words."""
    previous: PreviousLine | None
    sign_off: SignOff | None
    currencies: Mapping[str, str]
    undated: tuple[str, ...] = ()
    after: tuple[AfterLine, ...] = ()
    restates: str = ""
    zone: str = "UTC"
    run: RunLine | None = None
    changes: Changes | None = None
    """Changes since the last signed run, as far as they are not reconciled."""
    signed_acceptances: pl.DataFrame | None = None
    """Breaks that were accepted when that run was approved: id, and their terms then, signed_as."""


def conclude(
    *,
    sources: Sources,
    result: JoinResult,
    carried: PartedRows,
    causes: Causes,
    self_test: SelfTest,
    rules: Rules,
    as_of: date,
    service: bool,
    facts: Facts,
) -> ReconciliationReport:
    """Assemble the report.

    `carried` are the breaks from `carry_forward.explained`, of which a few columns are read at a
    time.
    """
    others = changed_into(carried, facts.currencies)
    breaks = break_figures(carried, others)
    other = carried.filter(outgrown()).whole()
    replaced = accepted_among(others)
    left = (*outgrown_lines(other, facts.currencies), *replaced_lines(replaced))
    again = accepted_again(carried, facts.signed_acceptances, facts.currencies)
    of_kinds = kinds(sources, result.statuses, carried, rules)
    sides = [kind.sides for kind in of_kinds]
    controls = tuple(line for one in sides for line in control_lines(one))
    chain = tuple(
        line
        for one in sides
        for line in chain_lines(one, service=service and one.table.name in PUSHES)
    )
    proven = tuple(proof for one in sides if one.table.amounts for proof in proofs(one))
    opinion = reached(
        incomplete=(*facts.incomplete, *_nothing_by_then(of_kinds, facts.after, as_of)),
        unexplained=untied(proven, controls, chain, breaks, self_test, facts.currencies),
        breaks=breaks,
        proven=proven,
        previous=facts.previous,
        currencies=facts.currencies,
    )
    cover = _cover(of_kinds, rules, as_of, facts, opinion)
    return ReconciliationReport(
        cover=cover,
        statuses=tuple(line for kind in of_kinds for line in kind.statuses),
        chain=chain,
        controls=controls,
        proofs=proven,
        breaks=reported(carried, facts.currencies),
        ageing=breaks.ageing,
        roll_forward=breaks.roll_forward,
        rates=result.rates,
        plans=result.plans,
        debts=result.debts,
        batches=result.batches,
        tolerances=result.tolerances,
        causes=causes.lines,
        sign_off=facts.sign_off,
        excluded=tuple(line for kind in of_kinds for line in kind.excluded),
        self_test=self_test,
        currencies=facts.currencies,
        accepted_forward=breaks.accepted_forward,
        aside_forward=breaks.aside_forward,
        run=facts.run,
        changes=facts.changes
        and accepted_by(
            replace(
                facts.changes,
                aside=breaks.aside,
                outgrown=left,
                again=again_lines(again),
                notes=(*_not_counted(cover, breaks, rules), *facts.changes.notes),
            ),
            rules_hash(rules),
        ),
        left_out=result.left_out | _left_out(causes, other, replaced, again),
    )


def _nothing_by_then(
    of_kinds: Sequence[KindFigures], after: Sequence[AfterLine], as_of: date
) -> Iterator[str]:
    """Say so if every record is dated after the day, for instance because its year is mistyped."""
    if after and not any(line.rows for kind in of_kinds for line in kind.statuses):
        first = min(line.first for line in after)
        yield f"no record is dated by {as_of}, and the first on {first}: nothing was compared"


def _not_counted(cover: Cover, breaks: BreakFigures, rules: Rules) -> Iterator[str]:
    """Say for which years holidays may have been counted as business days."""
    first = cover.as_of - timedelta(breaks.oldest)
    if rules.rates.daily or any(window.business for window in rules.windows):
        first = min(first, cover.period[0] or first)
    years = unknown_years(first, cover.as_of, rules.calendar)
    if years:
        yield (
            f"Calendar {rules.calendar}: not all of its holidays are known in {_spans(years)}, so "
            "holidays of these years may count as business days"
        )


def _spans(years: Sequence[int]) -> str:
    """Years in order, with consecutive ones written as first and last."""
    firsts = [year for year in years if year - 1 not in years]
    lasts = [year for year in years if year + 1 not in years]
    spans = zip(firsts, lasts, strict=True)
    return ", ".join(f"{one}" if one == other else f"{one} to {other}" for one, other in spans)


def _left_out(
    causes: Causes, outgrown: pl.DataFrame, replaced: pl.DataFrame, again: pl.DataFrame
) -> dict[str, int]:
    left = {
        "causes": causes.left,
        "outgrown": left_of(outgrown.height) + left_of(replaced.height),
        "again": left_of(again.height),
    }
    return {name: lines for name, lines in left.items() if lines}


def _cover(
    of_kinds: Sequence[KindFigures], rules: Rules, as_of: date, facts: Facts, opinion: Opinion
) -> Cover:
    days = pl.concat([_NO_DAYS, *(kind.days for kind in of_kinds)])
    tenants = pl.concat([_NO_TENANTS, *(kind.tenants for kind in of_kinds)]).unique().sort()
    return Cover(
        title=facts.title,
        as_of=as_of,
        period=(days["first"].min(), days["last"].max()),  # type: ignore[arg-type]
        tenants=tuple(tenants),
        truths=facts.truths,
        inputs=facts.inputs,
        rules_name=rules.name,
        rules_hash=rules_hash(rules),
        rules_text=rules_text(rules),
        version=facts.version,
        previous=facts.previous,
        verdict=opinion.verdict,
        because=opinion.because,
        undated=facts.undated,
        after=facts.after,
        restates=facts.restates,
        zone=facts.zone,
    )


def kinds(
    sources: Sources, statuses: Mapping[str, Sequence[Load]], carried: PartedRows, rules: Rules
) -> list[KindFigures]:
    """The figures of each record kind; `statuses` come in the same parts as the sources."""
    accepted = accepted_keys(carried)
    return [
        _kind(EXTRACTS[record], sources, each, accepted.filter(pl.col("record") == record), rules)
        for record, each in statuses.items()
    ]


def _kind(
    table: Table, sources: Sources, statuses: Sequence[Load], accepted: pl.DataFrame, rules: Rules
) -> KindFigures:
    """The figures of one record kind; `accepted` is the result of `accepted_keys` for it."""
    sides, days, tenants = [], [], []
    counts = pl.DataFrame(schema={"status": STATUS, "rule": WORD, "len": pl.UInt32})
    unproven = sources.unproven.get(table.name)
    added = {*table.identity, *table.amounts, table.tenant, table.currency}
    names = {name for name in added if name is not None}
    numbers = range(sources.number_of_parts(table.name))
    for number, load in zip(numbers, statuses, strict=True):
        part = sources.part(table.name, number, names)
        lines = with_accepted(table, load(), accepted, unproven)
        nothing = pl.DataFrame(schema=record_schema(table))
        extract = part.extract.get(table.name, nothing)
        target = part.database.get(table.name, part.listings.get(table.name, nothing))
        sides.append(add_up(table, extract, target, lines))
        counts.extend(status_counts(lines))
        days.append(
            lines.select(pl.col("date").min().alias("first"), pl.col("date").max().alias("last"))
        )
        tenants.append(lines["tenant"].drop_nulls().unique())
        del part, lines  # Freed before the next part is read.
    return KindFigures(
        together(sides),
        status_lines(table, counts),
        excluded_lines(table, counts, rules),
        pl.concat(days),
        pl.concat(tenants),
    )


def accepted_keys(carried: PartedRows) -> pl.DataFrame:
    """`record`, `tenant` and `key` of the records of which every break is accepted.

    Breaks about several records are left out: the key of a debt may read like that of a payment.
    """
    on = ["record", "tenant", "key"]
    carried = carried.filter(about_one_record())
    accepted = carried.filter(pl.col("state") == BreakState.ACCEPTED).select(*on).unique()
    if accepted.is_empty():
        return accepted
    return accepted.join(carried.filter(is_open()).select(*on), on=on, how="anti", nulls_equal=True)


def with_accepted(
    table: Table, statuses: pl.DataFrame, accepted: pl.DataFrame, unproven: pl.DataFrame | None
) -> pl.DataFrame:
    """Set the status of accepted records, by `tenant` and `key`, to MATCHED_MANUAL.

    `unproven` records keep theirs: their text cannot be proven, so anyone may have changed it.
    """
    if accepted.is_empty():
        return statuses
    manual = statuses["status"].is_in(ACCEPTABLE)
    if unproven is not None:
        manual &= ~are_among(statuses, unproven)
    rows = manual.arg_true()
    lines = statuses[rows]
    named = lines.select("tenant", line_key(table, lines), rows.alias("at"))
    on = ["tenant", "key"]
    there = named.join(accepted.select(on), on=on, how="semi", nulls_equal=True)
    accepted_one = pl.lit(Status.MATCHED_MANUAL.value, STATUS)
    status = pl.when(flags(statuses.height, there["at"])).then(accepted_one).otherwise("status")
    return statuses.with_columns(status.alias("status"))
