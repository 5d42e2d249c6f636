"""The breaks of a report, line by line: those that are there, set aside, or other than accepted."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import polars as pl

from flows.steps.breaks.acceptance import (
    acceptance,
    accepted_terms,
    both_values,
    name_of,
)
from flows.steps.breaks.lifecycle import RULES, is_aside
from flows.steps.breaks.make import LINES, money
from flows.steps.breaks.money import BASIS, COUNTED
from flows.steps.reconcile.beyond import largest_first, whole
from flows.steps.reconcile.report import AgainLine, AsideLine, BreakLine, OutgrownLine
from schemas.amounts import BEYOND
from schemas.breaks import BREAKS, Severity

RANK = {Severity.HIGH: 0, Severity.MEDIUM: 1, Severity.LOW: 2}


def break_lines(there: pl.DataFrame) -> tuple[BreakLine, ...]:
    """Open, accepted and expired breaks: most severe first, then the largest."""
    told = there.with_columns(acceptance(there).alias("acceptance"))
    ordered = told.sort(
        pl.col("severity").replace_strict({key.value: rank for key, rank in RANK.items()}),
        largest_first(),
        "code",
        "record",
        "key",
        "field",
        "id",
        descending=[False, True, *[False] * 5],
        nulls_last=True,
    )
    return tuple(
        BreakLine(
            id=row["id"],
            group=BREAKS[row["code"]].group.value,
            code=row["code"],
            severity=row["severity"],
            record=row["record"],
            tenant=row["tenant"],
            key=row["key"],
            field=row["field"] or "",
            side=row["side"] or "",
            expected=row["expected"],
            found=row["found"],
            delta=_money(row, "delta"),
            amount=_money(row, "amount"),
            basis=row[BASIS],
            counted=_money(row, COUNTED),
            currency="" if row["currency"] is None else str(row["currency"]),
            file=row["file"],
            line=row["line"],
            batch_id=row["batch_id"],
            state=row["state"],
            first_seen=row["first_seen"],
            age_days=row["age_days"],
            age_business_days=row["age_business_days"],
            cause=row["cause"] or "",
            action=BREAKS[row["code"]].action,
            owner=row["owner"] or "",
            note="; ".join(filter(None, (row["aside_because"], row["acceptance"], row["note"]))),
        )
        for row in ordered.iter_rows(named=True)
    )


def _money(row: Mapping[str, Any], name: str) -> Decimal | None:
    amount = whole(row[name], row[name + BEYOND])
    return None if amount is None else money(amount)


def aside_lines(there: pl.DataFrame) -> tuple[AsideLine, ...]:
    """Breaks that are set aside by reason, the most first."""
    groups = (
        there.filter(is_aside())
        .group_by("state", "aside_because", (pl.col("aside_by") == RULES).alias("by_rules"))
        .len()
        .sort("len", "state", "aside_because", descending=[True, False, False])
    )
    return tuple(
        AsideLine(state, because or "its source is not there", bool(by_rules), rows)
        for state, because, by_rules, rows in groups.iter_rows()
    )


def outgrown_lines(there: pl.DataFrame) -> tuple[OutgrownLine, ...]:
    """Breaks that are not what was accepted any more, the largest first."""
    ordered = there.with_columns(name_of(), *both_values()).sort(
        largest_first(), "what", "id", descending=[True, False, False], nulls_last=True
    )
    told = ordered.select("id", "what", "accepted_as", "is_now").head(LINES)
    return tuple(OutgrownLine(*row) for row in told.iter_rows())


def again_lines(there: pl.DataFrame, signed: pl.DataFrame | None) -> tuple[AgainLine, ...]:
    """Breaks that were accepted as something else when the last report was approved."""
    if signed is None or signed.is_empty():
        return ()
    accepted = there.filter(pl.col("seen")).with_columns(
        name_of(), accepted_terms().alias("accepted_as")
    )
    other = (
        accepted.join(signed, on="id")
        .filter(pl.col("signed_as") != pl.col("accepted_as"))
        .sort(largest_first(), "what", "id", descending=[True, False, False], nulls_last=True)
    )
    told = other.select("id", "what", "signed_as", "accepted_as").head(LINES)
    return tuple(AgainLine(*row) for row in told.iter_rows())
