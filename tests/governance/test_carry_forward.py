"""Breaks are carried, counted and explained part by part as all of them would be at once."""

from datetime import date
from decimal import Decimal
from functools import partial
from random import Random

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from flows.stages.reconcile.put_aside import kept_parts
from flows.steps.breaks.ageing import with_ages
from flows.steps.breaks.aside import Gone, set_aside
from flows.steps.breaks.carry_forward import carry_forward, explained
from flows.steps.breaks.causes import find_causes
from flows.steps.breaks.frame import BREAK_SCHEMA, gather, gather_parts
from flows.steps.breaks.lifecycle import CHANGED, DECISIONS, carry, nothing_before
from flows.steps.breaks.saved import facts_of, from_saved
from flows.steps.breaks.severity import severities
from flows.steps.breaks.tolerated import TOLERATED_SCHEMA
from flows.steps.frames.parts import PartedRows, held, held_rows
from flows.steps.frames.sources import Sources
from flows.steps.rules.canonical import rules_hash
from flows.steps.rules.rules import Rules
from schemas.life import ASIDE, RESOLVED
from tests.examples import examples
from tests.governance.runs import to_saved, with_counts

DAY, NEXT = date(2026, 1, 31), date(2026, 2, 1)
RULES = Rules()
SOURCES = Sources(extract={}, database={"payment": pl.DataFrame()})
KEYS = [f"{number}/7" for number in range(12)]


def breaks(seed: int) -> pl.DataFrame:
    """Some breaks about payments and their debts, some without an amount."""
    chance = Random(seed)
    rows = [
        {"code": code, "record": "payment", "tenant": 7, "key": key, "field": field, "side": "D",
         "currency": chance.choice([1, 2, None]), "amount": chance.choice([None, Decimal(5)]),
         "expected": chance.choice(["1", "2"]), "found": chance.choice([None, "20"]),
         "debt": chance.choice([1, 2, None]), "note": chance.choice(["", "late"])}
        for key in KEYS
        for code, field in (("AMOUNT", "PaidAmount"), ("REJECTED", ""), ("DEBT_UNDER", ""))
        if chance.random() < 0.6
    ]  # fmt: skip
    return gather([pl.DataFrame(rows, schema=BREAK_SCHEMA)])


def decisions(before: pl.DataFrame, chance: Random) -> pl.DataFrame:
    """An acceptance, a claim or nothing of each break there was, some with two."""
    rows = [
        {"reconciliation_id": 1, "break_id": one, "what": what, "by": "bo", "reason": "known",
         "until": "2026-02-28" if what == "accept" else None,
         "side": "service" if what == "resolve" else None}
        for one in before["id"]
        for what in chance.sample(["accept", "resolve", "reopen"], chance.choice([0, 1, 2]))
    ]  # fmt: skip
    numbered = [row | {"id": number} for number, row in enumerate(rows, 1)]
    return pl.DataFrame(numbered, schema=DECISIONS)


def in_parts(frame: pl.DataFrame, rows: int) -> PartedRows:
    return kept_parts(frame.iter_slices(rows) if frame.height else [frame])


def at_once(
    found: pl.DataFrame, before: pl.DataFrame, decided: pl.DataFrame, gone: Gone, day: date
) -> pl.DataFrame:
    """What is said of all breaks as one frame."""
    aside = partial(set_aside, sources=SOURCES, rules=RULES, as_of=day, tolerated=TOLERATED)
    changed = aside(gone) if gone.breaks.height else pl.DataFrame(schema=CHANGED)
    carried = carry(found, before, decided, changed, day, rules_hash(RULES))
    aged = with_ages(carried.with_columns(severities(carried, RULES, day)), day, RULES.calendar)
    counted = with_counts(aged)
    there = counted.filter(~pl.col("state").is_in((*RESOLVED, *ASIDE)))
    causes = find_causes(held_rows(there))
    return counted.join(causes.of, on="id", how="left", maintain_order="left")


TOLERATED = pl.DataFrame(schema=TOLERATED_SCHEMA)


@pytest.mark.long
@settings(deadline=None, max_examples=examples(30, 2))
@given(st.integers(0, 10_000), st.sampled_from([1, 3, 7, 100]))
def test_parts_say_what_is_said_at_once(seed: int, rows: int) -> None:
    chance, nobody = Random(seed), pl.DataFrame(schema=DECISIONS)
    nothing = Gone(nothing_before())
    first = at_once(breaks(seed), nothing_before(), nobody, nothing, DAY)
    before, found = from_saved(to_saved(first)).sort("id"), breaks(seed + 1)
    decided = decisions(before, chance)
    gone = Gone(before.join(found, on="id", how="anti", maintain_order="left"))
    lives = carry_forward(
        in_parts(found, rows),
        lambda ids: before.filter(pl.col("id").is_in(ids.implode())),
        decided,
        gone,
        sources=SOURCES,
        rules=RULES,
        as_of=NEXT,
        tolerated=TOLERATED,
    )
    told, _ = explained(kept_parts(lives), None, None, {})
    carried = kept_parts(told)
    whole = at_once(found, before, decided, gone, NEXT)
    assert_frame_equal(pl.concat(carried), whole, check_column_order=False)
    assert sorted(facts_of(carried)) == sorted(facts_of(held_rows(whole)))


@pytest.mark.parametrize("rows", [1, 5, 1000])
def test_breaks_are_in_one_order_whatever_parts_they_come_in(rows: int) -> None:
    ordered = breaks(1)
    shuffled = ordered.select(*BREAK_SCHEMA).sample(fraction=1, shuffle=True, seed=rows)
    parts = [held(part) for part in shuffled.iter_slices(rows)]
    assert_frame_equal(gather_parts([*parts, parts[0]]), ordered)


def test_rows_in_a_file_are_read_by_columns_and_with_others_beside_them() -> None:
    frame = pl.DataFrame({"a": range(10), "b": list("abcdefghij"), "none": [None] * 10})
    rows = in_parts(frame, 3)
    assert [part.height for part in rows] == [3, 3, 3, 1]
    assert rows.names == frame.columns
    assert_frame_equal(rows.select("b", "none"), frame.select("b", "none"))
    some = pl.col("a") > 6
    assert_frame_equal(rows.filter(some).whole(), frame.filter(some))
    assert_frame_equal(rows.filter(some).select("b"), frame.filter(some).select("b"))
    more = pl.DataFrame({"more": range(10, 20)})
    assert_frame_equal(rows.hstack(more).whole(), frame.hstack(more))
    assert_frame_equal(rows.hstack(more).select("more"), more)
    late = rows.hstack(more).filter(some).select("more")
    assert_frame_equal(late, more.filter(pl.col("more") > 16))
    assert in_parts(frame.clear(), 3).select("a").height == 0
