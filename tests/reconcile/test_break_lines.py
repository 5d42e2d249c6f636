"""In what order breaks are told: what is no number, differences, gross money, what has none."""

from datetime import date
from decimal import Decimal

import polars as pl

from flows.steps.breaks.acceptance import BOUND, SEEN
from flows.steps.frames.parts import held_rows
from flows.steps.reconcile.break_lines import accepted_again, again_lines, outgrown_lines
from flows.steps.reconcile.report import AgainLine
from tests.governance.runs import found, ids, with_counted

BREAKS = [
    # As they come: key, tenant, amount, text beside it
    ("c", 7, "10", None),
    ("none", 7, None, None),
    ("b", 8, "10", None),
    ("a", 7, "10", None),
    ("b", 7, "10", None),
    ("small", 7, "9.99", None),
    ("huge", 7, None, "1" + "0" * 25),
    ("large", 7, "1000", None),
    ("not readable", 7, None, None),
    ("no number", 7, None, "NaN"),
    ("gross", 7, "5000", None),
    ("huge gross", 7, None, "1" + "0" * 30),
    ("a rate", 7, "1000000", None),
]
OTHERS = {
    "not readable": {"code": "REJECTED", "note": 'PaidAmount is not readable: "12,50"'},
    "gross": {"code": "RATE_MISSING"},
    "huge gross": {"code": "RATE_MISSING"},
    "a rate": {"code": "RATE_TRIANGLE", "record": "currency_rate", "field": ""},
}
ORDER = ["no number", "not readable", "huge", "large", "a", "b", "c", "small",
         "huge gross", "gross", "a rate", "none"]  # fmt: skip
"""Nobody knows how large what is no number is: it comes first. Gross money may all be there."""


def accepted() -> pl.DataFrame:
    """Breaks that were accepted as what they are, up to 1."""
    there = pl.concat(
        found(key, tenant=tenant, amount=amount, amount_beyond=beyond, **OTHERS.get(key, {}))
        for key, tenant, amount, beyond in BREAKS
    )
    there = with_counted(there)
    terms = [pl.col(name).cast(SEEN[f"seen_{name}"]).alias(f"seen_{name}") for name in BOUND]
    return there.with_columns(
        *terms,
        seen=pl.lit(value=True),
        up_to=pl.lit(Decimal(1), dtype=SEEN["up_to"]),
        accepted_until=pl.lit(date(2026, 12, 31)),
    )


def test_what_was_accepted_again_is_told_the_largest_first() -> None:
    there = accepted()
    signed = there.select("id", pl.lit("less").alias("signed_as")).reverse()
    lines = told_again(there, signed)
    assert [one.id for one in lines] == _in_order(there)
    assert {one.signed_as for one in lines} == {"less"}
    assert lines[3].accepted_as == "amount 1000, in currency 1 up to 1 until 2026-12-31"


def test_what_is_as_it_was_signed_or_was_not_signed_is_not_told_again() -> None:
    there = accepted()
    terms = [(one.id, one.accepted_as) for one in told_again(there, _all(there, "less"))]
    signed = pl.DataFrame(terms, schema=["id", "signed_as"], orient="row")
    assert told_again(there, signed) == ()
    assert told_again(there, None) == ()
    assert told_again(there, signed.clear()) == ()
    assert told_again(there.with_columns(seen=pl.lit(value=False)), _all(there, "less")) == ()
    (one,) = told_again(there, _all(there.head(1), "less"))
    assert one.id == there["id"][0]


def test_what_outgrew_its_acceptance_is_told_the_largest_first() -> None:
    there = accepted()
    assert [one.id for one in outgrown_lines(there, {})] == _in_order(there)


def told_again(there: pl.DataFrame, signed: pl.DataFrame | None) -> tuple[AgainLine, ...]:
    return again_lines(accepted_again(held_rows(there), signed, {}))


def _in_order(there: pl.DataFrame) -> list[str]:
    """The ids in their order; those that read alike in the order of their ids."""
    told = sorted(zip(there["key"], ids(there), strict=True), key=lambda one: one[1])
    return [id_ for _, id_ in sorted(told, key=lambda one: ORDER.index(one[0]))]


def _all(there: pl.DataFrame, signed_as: str) -> pl.DataFrame:
    return there.select("id", pl.lit(signed_as).alias("signed_as"))
