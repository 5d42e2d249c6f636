"""Records of the target that an exclusion of the rules leaves out: known, but never reconciled.

Others may refer to them, so a rate that is left out is not missing. A payment that is left out
takes along the details of its plan, and the invoice files of its debt if there is no other payment.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import polars as pl

from flows.steps.breaks.aside import with_own
from flows.steps.breaks.match_breaks import line_key
from flows.steps.frames.parts import Load, columns_of, filtered, parts_of
from flows.steps.frames.sources import DELIVERED, LINEAGE, Sources, complete, record_schema
from flows.steps.match.pairing import keyless, pair_records
from flows.steps.reconcile.batches import counts, with_pair_numbers
from flows.steps.reconcile.countable import among
from flows.steps.reconcile.eligibility import eligibility, excluded, unsettled
from flows.steps.reconcile.signed import as_defined
from flows.steps.rules.rules import Rules
from schemas.field import Table
from schemas.tables import EXTRACTS, INSERT_BATCH_DATA, PAYMENT

LEFT_OUT = "left_out"
"""Column that marks records that are left out: they exist, but are not reconciled."""
AROUND = "around"
"""Column that marks records around the scope: they are counted, but not reconciled."""
_DEBT = ["TenantsId", "DebtsId"]


@dataclass(frozen=True)
class LeftOut:
    rows: Mapping[str, Sequence[pl.Series]] = field(default_factory=dict)
    """Which rows of each part are left out, by record kind; kinds without any are not in it."""
    keys: pl.DataFrame = field(
        default_factory=lambda: pl.DataFrame(schema={"record": pl.String, "key": pl.String})
    )
    """The records that are left out, as breaks name them."""

    def without(self, record: str, loads: Sequence[Load]) -> Sequence[Load]:
        return self._each(record, loads, lambda load, rows: filtered(load, ~rows))

    def only(self, record: str, loads: Sequence[Load]) -> Sequence[Load]:
        """The parts of a kind with only the records left out; empty if there are none."""
        return self._each(record, loads, filtered) if record in self.rows else ()

    def marked(self, record: str, loads: Sequence[Load]) -> Sequence[Load]:
        """The parts of a kind with the column `LEFT_OUT`, if any of its records is left out."""
        return self._each(
            record, loads, lambda load, rows: lambda: load().with_columns(rows.alias(LEFT_OUT))
        )

    def _each(
        self, record: str, loads: Sequence[Load], changed: Callable[[Load, pl.Series], Load]
    ) -> Sequence[Load]:
        if record not in self.rows:
            return loads
        return [changed(*one) for one in zip(loads, self.rows[record], strict=True)]

    def unrelated(self, breaks: pl.DataFrame) -> pl.DataFrame:
        """Breaks without those about records that are left out."""
        if not self.rows or breaks.is_empty():
            return breaks
        own = self.keys.rename({"key": "own"})
        named = with_own(breaks, self.keys)
        return named.join(own, on=["record", "own"], how="anti", maintain_order="left").drop("own")

    def payments(
        self, loads: Sequence[Load], names: Sequence[str], others: Sequence[Load]
    ) -> pl.DataFrame | None:
        """Values of `names` that only payments left out have, and no other of `loads` or `others`.

        None if no payment is left out.
        """
        out = self.only(PAYMENT.name, loads)
        if not out:
            return None
        named = pl.concat(columns_of(load, names).select(names) for load in out).unique()
        for load in (*self.without(PAYMENT.name, loads), *others):
            named = named.join(columns_of(load, names), on=names, how="anti", nulls_equal=True)
        return named.drop_nulls()

    def files(
        self, invoices: Sequence[Load], payments: Sequence[Load], others: Sequence[Load]
    ) -> Sequence[Load]:
        """Invoice files without those of debts that have only payments left out."""
        debts = self.payments(payments, _DEBT, others)
        if debts is None or debts.is_empty():
            return invoices
        return [partial(_but, load, debts) for load in invoices]

    def details(
        self, details: pl.DataFrame, payments: Sequence[Load], others: Sequence[Load]
    ) -> pl.DataFrame:
        """Plan details without those that name a payment that is left out."""
        numbers = self.payments(payments, ["Id"], others)
        if numbers is None:
            return details
        out = pl.col("PaymentsId").cast(pl.Int64).is_in(numbers["Id"].implode())
        return details.filter(~out.fill_null(value=False))


def left_out(sources: Sources, rules: Rules) -> LeftOut:
    """The records that the exclusions leave out, for each kind that they name."""
    asked = {exclusion.record for exclusion in rules.exclusions} & EXTRACTS.keys()
    rows, keys = {}, [LeftOut().keys]
    for record in sorted(asked - {INSERT_BATCH_DATA.name}):
        table, masks = EXTRACTS[record], []
        if not any(parts_of(side, record) for side in (sources.database, sources.listings)):
            continue
        for part in sources.parts(record):
            found, wire = _found(table, part)
            masks.append(_rows(table, part, found, wire, rules))
            some = found.filter(masks[-1]).with_columns(pl.lit("").alias("file"))
            keys.append(some.select(pl.lit(record).alias("record"), line_key(table, some)))
        if any(mask.any() for mask in masks):
            rows[record] = masks
    return LeftOut(rows, pl.concat(keys).unique())


def left_out_as_signed(
    table: Table, signed: pl.DataFrame, now: pl.DataFrame, rows: Iterable[Load], rules: Rules
) -> pl.Series:
    """Which signed records the rules leave out with their signed values and with those of `now`.

    A record that an exclusion names only with its present values has changed since it was signed.
    One that is gone has its signed values alone. `rows` are those of the extracts.
    """
    signed = as_defined(table, signed)
    named = _by_values(table, signed, rules)
    if not named.any():
        return named
    records = signed.filter(named)
    there = pair_records(table, records, now).partner
    out = _by_values(table, now, rules).gather(there).fill_null(value=True)
    for load in rows:
        extract = complete(load(), record_schema(table) | DELIVERED)
        mine = extract.filter(among(table, extract, records))
        out = _as_delivered(table, mine, records, None, rules, out)
    return named.scatter(named.arg_true(), out)


def included_batches(
    sent: pl.DataFrame, listed: pl.DataFrame | None, rules: Rules
) -> tuple[pl.DataFrame, pl.DataFrame | None]:
    """Insert-batch data without rows left out; a sent row decides about its listed partner."""
    if not any(exclusion.record == INSERT_BATCH_DATA.name for exclusion in rules.exclusions):
        return sent, listed
    out = _by_values(INSERT_BATCH_DATA, sent, rules)
    if listed is None:
        return sent.filter(~out), None
    mine, theirs = (side["Jsondata"] for side in with_pair_numbers(sent, listed))
    counting = mine.filter(sent.select(counts()).to_series())
    listed_out = _by_values(INSERT_BATCH_DATA, listed, rules) & ~theirs.is_in(counting.implode())
    return sent.filter(~out), listed.filter(
        ~(listed_out | theirs.is_in(mine.filter(out).implode()))
    )


def _by_values(table: Table, records: pl.DataFrame, rules: Rules) -> pl.Series:
    """Which records an exclusion names, whatever their state."""
    return excluded(table, records, unsettled(records.height), rules)["status"].is_not_null()


def _found(table: Table, part: Sources) -> tuple[pl.DataFrame, str | None]:
    """The target as in matching: the database, or else a listing and its server's time zone."""
    listing = table.name not in part.database
    frame = (part.listings if listing else part.database).get(table.name)
    zone = part.zones.get(table.name, "UTC") if listing else None
    return complete(frame, record_schema(table) | LINEAGE), zone


def _rows(
    table: Table, part: Sources, found: pl.DataFrame, wire: str | None, rules: Rules
) -> pl.Series:
    """Which records are left out; as in matching, a delivered row decides about its partner."""
    out = _by_values(table, found, rules)
    if table.name not in part.extract:
        return out
    extract = complete(part.extract[table.name], record_schema(table) | DELIVERED)
    return _as_delivered(table, extract, found, wire, rules, out)


def _as_delivered(
    table: Table,
    extract: pl.DataFrame,
    found: pl.DataFrame,
    wire: str | None,
    rules: Rules,
    out: pl.Series,
) -> pl.Series:
    """Which records are left out, where a delivered row that counts decides about some of them."""
    own = eligibility(table, extract, rules)
    asked = (own["status"].is_null() | own["by_rule"]) & ~keyless(table, extract)
    partner = pair_records(table, extract.filter(asked), found, wire=wire).partner
    by_rule = own["by_rule"].filter(asked)
    counting, taken = (partner.filter(of).drop_nulls() for of in (~by_rule, by_rule))
    return out.scatter(counting, False).scatter(taken, True)


def _but(load: Load, debts: pl.DataFrame) -> pl.DataFrame:
    return load().join(debts, on=_DEBT, how="anti", maintain_order="left")
