"""The self-test finds every planted fault, and says so when a judgement misses one."""

import re
from pathlib import Path

import polars as pl
import pytest

from flows.steps.reconcile.self_test import (
    PLANTED,
    PLANTED_BATCHES,
    SelfTest,
    planted_breaks,
    self_test,
    verdict,
)
from flows.steps.rules.rules import Budget, Plans, Rates, Rules
from schemas.break_classes import CLASSES, BreakClass
from schemas.breaks import BREAKS

ALL = Rules(rates=Rates(daily=True), plans=Plans(early_days=5), budget=Budget(count=0))
OTHERS = {"RATE_DUPLICATE", "INV_DUPLICATE", "CHANGED_AFTER_SIGNOFF", "LATE_ARRIVAL"}
"""Codes that matching and sign-off tell, as they tell all of OF_MATCHING."""
OF_MATCHING = {
    BreakClass.COMPLETENESS,
    BreakClass.ACCURACY,
    BreakClass.REFERENCE,
    BreakClass.DUPLICATE,
    BreakClass.PRECISION,
}


@pytest.mark.long
def test_every_planted_fault_is_found_whatever_the_rules_switch_off() -> None:
    expected = SelfTest(len(PLANTED) + len(PLANTED_BATCHES), len(PLANTED) + len(PLANTED_BATCHES))
    off = Rates(stale_days=None, jump_percent=None, inverse_tolerance=None)
    assert self_test(Rules()) == expected
    assert self_test(Rules(rates=off, calendar="DE")) == expected


def test_every_code_of_the_joins_is_planted() -> None:
    planted = {code for code, _ in PLANTED} | set(PLANTED_BATCHES)
    asked = {code for code, told in BREAKS.items() if told.group not in OF_MATCHING} - OTHERS
    assert planted == asked, "plant it in flows/steps/reconcile/self_test.py, or name it in OTHERS"


@pytest.mark.long
def test_a_fault_that_is_missed_is_named() -> None:
    found = planted_breaks(ALL)
    result = verdict(found.filter(~found["code"].is_in(["RATE_STALE", "BATCH_COUNT"])))
    assert result.planted - result.found == 2
    assert result.missed == ("RATE_STALE at 6/1", "BATCH_COUNT")


@pytest.mark.long
def test_a_fault_that_was_not_planted_is_named() -> None:
    found = planted_breaks(ALL)
    stray = found.filter(code="PLAN_UNDER").with_columns(pl.lit("5/5").alias("key"))
    result = verdict(pl.concat([found, stray, found.filter(code="BATCH_COUNT")]))
    assert result.found == result.planted
    assert result.missed == ("not planted: PLAN_UNDER at 5/5", "not planted: BATCH_COUNT")


def test_every_class_of_breaks_says_what_it_decides() -> None:
    assert [*CLASSES] == [*BreakClass], "a new one is a line in schemas/break_classes.py"


def test_a_page_says_which_classes_are_severe_whatever_their_money() -> None:
    page = (Path(__file__).parents[2] / "docs" / "governance.md").read_text()
    told = re.search("breaks of the classes ([A-Z, and]+) are always high", page)
    assert told
    assert {*re.findall("[A-Z]+", told[1])} == {name for name, of in CLASSES.items() if of.grave}
