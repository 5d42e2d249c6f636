"""The report value from what was judged: totals, breaks as finance reads them, the verdict."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date

import polars as pl

from flows.steps.breaks.acceptance import outgrown
from flows.steps.breaks.ageing import ageing
from flows.steps.breaks.carried_states import is_open, is_unseen
from flows.steps.breaks.causes import Causes
from flows.steps.breaks.make import left_of
from flows.steps.breaks.match_breaks import line_key
from flows.steps.frames.light import without
from flows.steps.frames.parts import Load
from flows.steps.frames.sources import Sources, are_among, record_schema
from flows.steps.frames.statuses import STATUS
from flows.steps.reconcile.break_lines import (
    accepted_again,
    again_lines,
    aside_lines,
    outgrown_lines,
    reported,
)
from flows.steps.reconcile.changes import accepted_by
from flows.steps.reconcile.cut_off import AfterLine
from flows.steps.reconcile.joins import JoinResult
from flows.steps.reconcile.report import (
    AsideLine,
    Changes,
    Cover,
    InputLine,
    PreviousLine,
    ReconciliationReport,
    RunLine,
    SignOff,
    SourceLine,
)
from flows.steps.reconcile.roll_forward import (
    RollForward,
    accepted_forward,
    aside_forward,
    roll_forward,
)
from flows.steps.reconcile.self_test import SelfTest
from flows.steps.reconcile.sums import Sides, add_up, together
from flows.steps.reconcile.totals import (
    PROOF_TEXTS,
    ChainLine,
    ControlLine,
    ExcludedLine,
    Proof,
    StatusLine,
    chain_lines,
    control_lines,
    excluded_lines,
    proofs,
    status_counts,
    status_lines,
)
from flows.steps.rules.canonical import rules_hash, rules_text
from flows.steps.rules.rules import Rules
from schemas.breaks import Status
from schemas.counting import agree, quantity
from schemas.field import Table
from schemas.frame_types import WORD
from schemas.life import RESOLVED, BreakState
from schemas.operations import PUSHES
from schemas.tables import EXTRACTS, title_of

ACCEPTABLE = (Status.MISMATCH, Status.MISSING_IN_TARGET, Status.MISSING_IN_EXTRACT)
"""Statuses that become MATCHED_MANUAL when every break of the record is accepted."""
_NO_DAYS = pl.DataFrame(schema={"first": pl.Date, "last": pl.Date})
_NO_TENANTS = pl.Series("tenant", [], pl.Int32)


@dataclass(frozen=True, slots=True)
class Facts:
    """What is told on the cover and not judged."""

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
    """What is other than in the last signed run, as far as it is not judged."""
    signed_acceptances: pl.DataFrame | None = None
    """Breaks that were accepted when it was approved: id, and signed_as, what they were then."""


@dataclass(frozen=True)
class _Kind:
    """What became of the records of one kind, counted and added up over all of its parts."""

    sides: Sides
    statuses: tuple[StatusLine, ...]
    excluded: tuple[ExcludedLine, ...]
    days: pl.DataFrame
    """Of each part the first and the last business date."""
    tenants: pl.Series


def _kind(
    table: Table, sources: Sources, statuses: Sequence[Load], accepted: pl.DataFrame, rules: Rules
) -> _Kind:
    """`accepted` are the records whose breaks are all accepted, as `accepted_keys` gives them."""
    sides, days, tenants = [], [], []
    counts = pl.DataFrame(schema={"status": STATUS, "rule": WORD, "len": pl.UInt32})
    unproven = sources.unproven.get(table.name)
    added = {*table.identity, *table.amounts, table.tenant, table.currency}
    names = {name for name in added if name is not None}
    numbers = range(sources.number_of_parts(table.name))
    for number, load in zip(numbers, statuses, strict=True):
        part = sources.part(table.name, number, names)
        lines = with_accepted(table, load(), accepted, unproven)
        sides.append(_sides(table, part, lines))
        counts.extend(status_counts(lines))
        days.append(
            lines.select(pl.col("date").min().alias("first"), pl.col("date").max().alias("last"))
        )
        tenants.append(lines["tenant"].drop_nulls().unique())
        del part, lines  # Before the next are read.
    return _Kind(
        together(sides),
        status_lines(table, counts),
        excluded_lines(table, counts, rules),
        pl.concat(days),
        pl.concat(tenants),
    )


def accepted_keys(carried: pl.DataFrame) -> pl.DataFrame:
    """`record`, `tenant` and `key` of the records of which every break is accepted.

    Breaks of a debt are about payments too, and told by what may be the key of another tenant's.
    """
    there = carried.filter(~pl.col("state").is_in(RESOLVED))
    accepted = there.filter(pl.col("state") == BreakState.ACCEPTED)
    settled = accepted.join(
        there.filter(is_open()), on=["record", "tenant", "key"], how="anti", nulls_equal=True
    )
    return settled.select("record", "tenant", "key").unique()


def with_accepted(
    table: Table, statuses: pl.DataFrame, accepted: pl.DataFrame, unproven: pl.DataFrame | None
) -> pl.DataFrame:
    """Statuses in which a record that is accepted, by `tenant` and `key`, is MATCHED_MANUAL.

    An `unproven` one is not: nothing is known of it but what somebody may have written there.
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
    none = pl.Series([False]).new_from_index(0, statuses.height)
    accepted_one = pl.lit(Status.MATCHED_MANUAL.value, STATUS)
    status = pl.when(none.scatter(there["at"], True)).then(accepted_one).otherwise("status")
    return statuses.with_columns(status.alias("status"))


def conclude(
    *,
    sources: Sources,
    judgement: JoinResult,
    carried: pl.DataFrame,
    causes: Causes,
    self_test: SelfTest,
    rules: Rules,
    as_of: date,
    service: bool,
    facts: Facts,
) -> ReconciliationReport:
    """Everything the report shows.

    `carried` are the breaks as `lifecycle.carry` left them, with `severity`, `cause` and ages.
    """
    accepted_ones = accepted_keys(carried)
    kinds = [
        _kind(
            EXTRACTS[record],
            sources,
            each,
            accepted_ones.filter(pl.col("record") == record),
            rules,
        )
        for record, each in judgement.statuses.items()
    ]
    sides = [kind.sides for kind in kinds]
    money_sides = [one for one in sides if one.table.amounts]
    controls = tuple(line for one in sides for line in control_lines(one))
    chain = tuple(
        line
        for one in sides
        for line in chain_lines(one, service=service and one.table.name in PUSHES)
    )
    proven = tuple(proof for one in money_sides for proof in proofs(one))
    there = without(carried, pl.col("state").is_in(RESOLVED))
    forward, of_accepted = roll_forward(carried), accepted_forward(carried)
    of_aside = aside_forward(carried)
    every = (*forward, *of_accepted, *of_aside)
    unexplained = [
        *(
            f"{title_of(p.record)} {p.field}: {p.unexplained} unexplained"
            for p in proven
            if p.unexplained
        ),
        *(
            f"{title_of(c.record)}: a residual in the control totals"
            for c in controls
            if _leaves(c)
        ),
        *(f"{title_of(c.record)}, {c.stage}: a residual in the chain" for c in chain if _leaves(c)),
        *("the roll-forward does not tie" for one in every if _off(one)),
        *_missed(self_test),
    ]
    open_ones = int(there.select(is_open().sum()).item())
    accepted = int((there["state"] == BreakState.ACCEPTED).sum())
    aside = aside_lines(there)
    other = there.filter(outgrown())
    again = accepted_again(there, facts.signed_acceptances)
    incomplete = (*facts.incomplete, *_not_looked_at(there))
    because = (
        *incomplete,
        *dict.fromkeys(unexplained),
        *((quantity(open_ones, "open break"),) if open_ones else ()),
        *_unreadable(proven),
        *(_told_outgrown(other.height) if other.height else ()),
        *((_told_accepted(accepted),) if accepted else ()),
        *_waived(aside),
    )
    verdict = _verdict(
        complete=not incomplete,
        sound=not (open_ones or unexplained),
        reserved=bool(accepted or aside),
    )
    return ReconciliationReport(
        cover=_cover(kinds, rules, as_of, facts, verdict, because),
        statuses=tuple(line for kind in kinds for line in kind.statuses),
        chain=chain,
        controls=controls,
        proofs=proven,
        breaks=reported(there),
        ageing=ageing(there),
        roll_forward=forward,
        rates=judgement.rates,
        plans=judgement.plans,
        debts=judgement.debts,
        batches=judgement.batches,
        tolerances=judgement.tolerances,
        causes=causes.lines,
        sign_off=facts.sign_off,
        excluded=tuple(line for kind in kinds for line in kind.excluded),
        self_test=self_test,
        currencies=facts.currencies,
        accepted_forward=of_accepted,
        aside_forward=of_aside,
        run=facts.run,
        changes=facts.changes
        and accepted_by(
            replace(
                facts.changes,
                aside=aside,
                outgrown=outgrown_lines(other),
                again=again_lines(again),
            ),
            rules_hash(rules),
        ),
        left_out=judgement.left_out | _left_out(causes, other, again),
    )


def _left_out(causes: Causes, outgrown: pl.DataFrame, again: pl.DataFrame) -> dict[str, int]:
    left = {
        "causes": causes.left,
        "outgrown": left_of(outgrown.height),
        "again": left_of(again.height),
    }
    return {name: lines for name, lines in left.items() if lines}


def _verdict(*, complete: bool, sound: bool, reserved: bool) -> str:
    """One of `report.VERDICTS`; `reserved`: some breaks are accepted or set aside."""
    if not complete:
        return "INCOMPLETE"
    if not sound:
        return "NOT_RECONCILED"
    return "RECONCILED_WITH_ACCEPTED" if reserved else "RECONCILED"


def _missed(self_test: SelfTest) -> Iterator[str]:
    if self_test.missed or self_test.found != self_test.planted:
        yield f"the self-test missed {', '.join(self_test.missed)}"


def _not_looked_at(there: pl.DataFrame) -> Iterator[str]:
    for one in aside_lines(there.filter(is_unseen())):
        was = agree(one.breaks, "was", "were")
        yield f"{quantity(one.breaks, 'break')} of runs before {was} not looked at: {one.because}"


def _waived(aside: Iterable[AsideLine]) -> Iterator[str]:
    for one in aside:
        if one.by_rules:
            are = agree(one.breaks, "is", "are")
            yield f"{quantity(one.breaks, 'break')} of before {are} {one.state}: {one.because}"


def _unreadable(proven: Iterable[Proof]) -> Iterator[str]:
    """Which amounts of rejected rows are in no sum, because they cannot be read."""
    counts: dict[tuple[str, str], int] = {}
    for one in proven:
        for line in one.lines:
            if line.unreadable and line.text == PROOF_TEXTS[Status.REJECTED]:
                of = one.record, one.field
                counts[of] = counts.get(of, 0) + line.unreadable
    for (record, field), rows in counts.items():
        have = agree(rows, "has", "have")
        yield (
            f"{title_of(record)}: {quantity(rows, 'rejected row')} {have} no readable {field}, "
            "so that no total holds what was delivered there"
        )


def _told_accepted(breaks: int) -> str:
    return f"{quantity(breaks, 'break')} {agree(breaks, 'is', 'are')} accepted"


def _told_outgrown(breaks: int) -> tuple[str]:
    are = agree(breaks, "is", "are")
    return (f"{quantity(breaks, 'accepted break')} {are} not what was accepted",)


def _sides(table: Table, sources: Sources, statuses: pl.DataFrame) -> Sides:
    nothing = pl.DataFrame(schema=record_schema(table))
    extract = sources.extract.get(table.name, nothing)
    target = sources.database.get(table.name, sources.listings.get(table.name, extract.clear()))
    return add_up(table, extract, target, statuses)


def _off(forward: RollForward) -> bool:
    return bool(forward.residual_rows or forward.residual or forward.residual_gross)


def _leaves(line: ControlLine | ChainLine) -> bool:
    return bool(line.residual_rows) or any(line.residual.values())


def _cover(
    kinds: Sequence[_Kind],
    rules: Rules,
    as_of: date,
    facts: Facts,
    verdict: str,
    because: tuple[str, ...],
) -> Cover:
    days = pl.concat([_NO_DAYS, *(kind.days for kind in kinds)])
    tenants = pl.concat([_NO_TENANTS, *(kind.tenants for kind in kinds)]).unique().sort()
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
        verdict=verdict,
        because=because,
        undated=facts.undated,
        after=facts.after,
        restates=facts.restates,
        zone=facts.zone,
    )
