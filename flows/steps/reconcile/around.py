"""The surroundings of a scope: joins use the whole database, but breaks are the scope's own.

A scope covers the records of its batches or of its tenants. Whether a rate exists and whose it is,
what was planned for a payment, what else was paid for its debt and who has its invoice file are
questions to the whole database.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property, partial

import polars as pl

from flows.steps.breaks.aside import with_own
from flows.steps.breaks.match_breaks import line_key
from flows.steps.breaks.money import OF_DEBT
from flows.steps.frames.parts import Load, columns_of, held, parts_of, whole
from flows.steps.frames.sources import Sources, are_among, no_records
from flows.steps.reconcile.allotment import PlanAnnex
from flows.steps.reconcile.cut_off import Cut, cut_off
from flows.steps.reconcile.left_out import AROUND, LEFT_OUT, LeftOut, left_out
from flows.steps.reconcile.own import Own
from flows.steps.reconcile.second_keys import SECOND_KEYS
from flows.steps.rules.own_kinds import tables_by
from flows.steps.rules.rules import Rules
from schemas.field import Table
from schemas.tables import EXTRACTS, INVOICE_FILE, PAYMENT, PAYMENT_PLAN_DETAIL

_DEBT = ["TenantsId", "DebtsId"]
_PLAN = "PaymentPlansId"


@dataclass(frozen=True)
class SomeRecords:
    """Records of one group: inside or around the scope, up to or after the day."""

    sources: Sources
    out: LeftOut

    def every(self, table: Table) -> Sequence[Load]:
        """The records as in the target, with the numbers of the rows that wrote them."""
        mappings = (self.sources.database, self.sources.listings)
        sides = (parts_of(side, table.name) for side in mappings)
        return next((loads for loads in sides if loads), (held(no_records(table)),))

    def included(self, table: Table) -> Sequence[Load]:
        return self.out.without(table.name, self.every(table))

    def excluded(self, table: Table) -> Sequence[Load]:
        return self.out.only(table.name, self.every(table))


@dataclass(frozen=True)
class KnownRecords:
    """All records: the scope's own and those around them, each up to and after the day."""

    own: SomeRecords
    later: SomeRecords
    near: SomeRecords
    near_later: SomeRecords
    keys: LeftOut = field(default_factory=LeftOut)
    """The records around, as breaks name them, without those in `alike`."""
    alike: pl.DataFrame = field(default_factory=lambda: _keys({}))
    """Records around with the name of one of the scope, told apart by the batch that wrote them."""

    @property
    def every(self) -> tuple[SomeRecords, ...]:
        return self.own, self.near, self.later, self.near_later

    def payments(self) -> Sequence[Load]:
        """The payments that plans are compared with."""
        return [*self.own.included(PAYMENT), *self._near(PAYMENT)]

    def paid_for_debts(self) -> Sequence[Load]:
        """All payments for the debts of the scope's payments and invoice files."""
        own, near = self.own.included(PAYMENT), self._near(PAYMENT)
        if not near:
            return own
        about = (*own, *self.own.every(INVOICE_FILE))
        debts = pl.concat(columns_of(load, ["DebtsId"])["DebtsId"] for load in about).unique()
        of_these = pl.col("DebtsId").is_in(debts.implode())
        return [*own, *(held(load().filter(of_these)) for load in near)]

    def of_debts(self, planned: PlanAnnex) -> PlanAnnex:
        """The planned amounts of the debts of the scope's payments and invoice files."""
        return replace(planned, planned=self.scope.of_debts(planned.planned))

    def details(self, *several: SomeRecords) -> pl.DataFrame:
        """Plan details of several groups, without those of payments that are left out."""
        each = [whole(place.included(PAYMENT_PLAN_DETAIL)) for place in several]
        some = [one for one in each if one.height] or each[:1]
        rows = some[0] if len(some) == 1 else pl.concat(some, how="diagonal")
        for place in self.every:
            rows = place.out.details(rows, place.every(PAYMENT), self._others(place))
        return rows

    def files(self) -> Sequence[Load]:
        """Invoice files, marked `LEFT_OUT` if not reconciled and `AROUND` if not the scope's."""
        name = INVOICE_FILE.name
        loads = self.own.out.marked(name, self.own.every(INVOICE_FILE))
        if name in self.near.sources.database:
            near = self.near.out.marked(name, self.near.every(INVOICE_FILE))
            sides = ((loads, False), (near, True))
            loads = [partial(_marked, load, near=of) for some, of in sides for load in some]
        for place in self.every:
            loads = place.out.files(loads, place.every(PAYMENT), self._others(place))
        return loads

    def _others(self, place: SomeRecords) -> Sequence[Load]:
        return [load for one in self.every if one is not place for load in one.included(PAYMENT)]

    def with_second_keys(self, table: Table) -> pl.DataFrame | None:
        """Records around whose second keys the scope's records must not repeat; None if none."""
        near = self._near(table) if table.name in SECOND_KEYS else ()
        return whole(near) if near else None

    def _near(self, table: Table) -> Sequence[Load]:
        return self.near.included(table) if table.name in self.near.sources.database else ()

    @cached_property
    def scope(self) -> Own:
        """A filter of breaks and lines for those about records of the scope or their debts."""
        if not self.keys.rows:
            return Own()
        paid = debts = None
        if self._near(PAYMENT):
            paid = _debts(self.own.included(PAYMENT))
            debts = pl.concat([paid, _debts(self.own.every(INVOICE_FILE))]).unique()
        # A plan in several currencies is reported even if it begins after the day.
        details = (*self.own.every(PAYMENT_PLAN_DETAIL), *self.later.every(PAYMENT_PLAN_DETAIL))
        plans = pl.concat(columns_of(one, [_PLAN])[_PLAN] for one in details).unique()
        breaks = partial(_own, self.keys, self.alike, paid, plans.cast(pl.String).fill_null(""))
        return Own(breaks, plans, debts)


def _debts(loads: Sequence[Load]) -> pl.DataFrame:
    parts = (columns_of(load, _DEBT) for load in loads)
    return pl.concat(part.select(tenant="TenantsId", debt="DebtsId") for part in parts).unique()


def known_records(
    sources: Sources, cut: Cut, rules: Rules, as_of: date, out: LeftOut
) -> KnownRecords:
    """Divide all records into groups; `out` is what the rules leave out of `sources`."""
    near = cut_off(Sources(sources.around_extract, sources.around), as_of, tables_by(rules))
    later, around, after = (
        SomeRecords(some, left_out(some, rules)) for some in (cut.after, near.kept, near.after)
    )
    own = SomeRecords(sources, out)
    if not sources.around:
        return KnownRecords(own, later, around, after)
    keys = _keys({name: (held(frame),) for name, frame in sources.around.items()})
    of_scope = _keys(
        {name: own.every(EXTRACTS[name]) for name in sources.around if not EXTRACTS[name].key}
    )
    about = ["record", "key"]
    alike = keys.join(of_scope, on=about, how="semi")
    others = LeftOut(
        dict.fromkeys(sources.around, ()),
        keys.join(of_scope, on=about, how="anti").select(about).unique(),
    )
    by_writer = alike.join(of_scope, on=[*about, "batch_id"], how="anti", nulls_equal=True)
    return KnownRecords(own, later, around, after, others, by_writer)


def _keys(kinds: Mapping[str, Sequence[Load]]) -> pl.DataFrame:
    """Records as breaks name them, with the batch that wrote each."""
    keys = [pl.DataFrame(schema={"record": pl.String, "key": pl.String, "batch_id": pl.Int32})]
    for name, loads in kinds.items():
        for load in loads:
            rows = load().with_columns(pl.lit("").alias("file"))
            key = line_key(EXTRACTS[name], rows)
            keys.append(rows.select(pl.lit(name).alias("record"), key, "batch_id"))
    return pl.concat(keys).unique()


def _own(
    near: LeftOut,
    alike: pl.DataFrame,
    debts: pl.DataFrame | None,
    plans: pl.Series,
    breaks: pl.DataFrame,
) -> pl.DataFrame:
    found = near.unrelated(breaks)
    if not alike.is_empty():
        on, theirs = ["record", "own", "batch_id"], alike.rename({"key": "own"})
        found = with_own(found, alike)
        found = found.join(theirs, on=on, how="anti", nulls_equal=True, maintain_order="left")
        found = found.drop("own")
    if debts is not None:
        number = pl.col("key").str.extract(r"^(-?[0-9]+)")
        named = found.select(
            pl.col("tenant").cast(debts.schema["tenant"]),
            number.cast(debts.schema["debt"], strict=False).alias("debt"),
        )
        among = are_among(named, debts, nulls_equal=True)
        found = found.filter(~pl.col("code").is_in(OF_DEBT) | among)
    of_plan = (pl.col("record") == PAYMENT_PLAN_DETAIL.name) & ~pl.col("key").str.contains("/")
    return found.filter(~of_plan | pl.col("key").is_in(plans.implode()))


def _marked(load: Load, *, near: bool) -> pl.DataFrame:
    rows = load()
    out = pl.col(LEFT_OUT) if LEFT_OUT in rows.columns else pl.lit(value=False)
    return rows.with_columns(out.alias(LEFT_OUT), pl.lit(near).alias(AROUND))
