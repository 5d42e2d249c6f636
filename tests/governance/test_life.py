"""What becomes of a break from run to run: the whole table, then the stories it makes."""

from datetime import date
from typing import Any

import polars as pl
import pytest

from flows.steps.breaks import lifecycle as life
from flows.steps.breaks.acceptance import acceptance
from flows.steps.breaks.aside import Gone, resolved_sides, set_aside
from flows.steps.breaks.lifecycle import CARRIED, DECISIONS, carry, current_breaks, nothing_before
from flows.steps.breaks.saved import from_saved
from flows.steps.breaks.tolerated import TOLERATED_SCHEMA
from flows.steps.frames.sources import Sources
from flows.steps.rules.rules import Rules
from schemas.breaks import BREAKS
from schemas.life import STILL_THERE, BreakState, Choice, Standing
from tests.governance.runs import found, ids, to_saved

DAY = date(2026, 1, 31)
NOBODY = pl.DataFrame(schema=DECISIONS)
NOTHING = found()
NUMBERED = pl.int_range(1, pl.len() + 1, dtype=DECISIONS["id"])
SHOWN = ("key", "state_before", "state")


def changed(*lines: tuple[str, str | None]) -> pl.DataFrame:
    return pl.DataFrame(lines, schema={"id": pl.String(), "side": pl.String()}, orient="row")


FIRST = carry(found("1"), nothing_before(), NOBODY, changed(), date(2026, 1, 1))


def left(state: str | None, *, until: date | None = None, key: str = "1") -> pl.DataFrame:
    """One break as the run before left it."""
    if state is None:
        return nothing_before()
    first = FIRST.with_columns(found(key).select("id", "key"))
    accepted = state in ("ACCEPTED", "EXPIRED")
    return first.select(
        pl.lit(state).alias(name) if name == "state"
        else pl.lit(until, pl.Date).alias(name) if name == "accepted_until"
        else pl.lit("ann" if accepted else None).alias(name) if name == "accepted_by"
        else pl.col(name)
        for name in CARRIED
    )  # fmt: skip


def decided(*decisions: tuple[str, str | None], key: str = "1") -> pl.DataFrame:
    """Decisions about that break, in order: what, and until when or on which side."""
    (one,) = ids(found(key))
    return pl.DataFrame(
        [
            {
                "id": number,
                "break_id": one,
                "what": what,
                "by": "bo",
                "reason": "because",
                "until": term if what in ("accept", "propose") else None,
                "side": term if what == "resolve" else None,
                "owner": term if what == "assign" else None,
            }
            for number, (what, term) in enumerate(decisions, 1)
        ],
        schema=DECISIONS,
    )


GOOD, PAST = "2026-02-28", "2026-01-30"
OPEN_STATES = ("NEW", "OPEN", "REOPENED", "EXPIRED")

TABLE = [
    # before, decided since, is it still there -> after
    (None, [], True, "NEW"),
    ("NEW", [], True, "OPEN"),
    ("OPEN", [], True, "OPEN"),
    ("REOPENED", [], True, "OPEN"),
    ("EXPIRED", [], True, "REOPENED"),
    ("ACCEPTED", [], True, "ACCEPTED"),
    ("RESOLVED_SOURCE", [], True, "REOPENED"),
    ("RESOLVED_SERVICE", [], True, "REOPENED"),
    ("RESOLVED_NEITHER", [], True, "REOPENED"),
    ("CHANGED_INTO", [], True, "REOPENED"),
    ("NOT_LOOKED_AT", [], True, "REOPENED"),
    ("WAIVED_BY_RULE", [], True, "REOPENED"),
    ("NOT_LOOKED_AT", [("accept", GOOD)], True, "ACCEPTED"),
    ("WAIVED_BY_RULE", [("accept", PAST)], True, "EXPIRED"),
    ("NOT_LOOKED_AT", [("resolve", "source")], True, "REOPENED"),
    ("NOT_LOOKED_AT", [], False, "RESOLVED_SERVICE"),
    *((state, [("accept", GOOD)], True, "ACCEPTED") for state in (*OPEN_STATES, "ACCEPTED")),
    *((state, [("accept", PAST)], True, "EXPIRED") for state in (*OPEN_STATES, "ACCEPTED")),
    *((state, [("reopen", None)], True, "REOPENED") for state in (*OPEN_STATES, "ACCEPTED")),
    *((state, [("resolve", "source")], True, "REOPENED") for state in (*OPEN_STATES, "ACCEPTED")),
    *((state, [("resolve", "service")], True, "REOPENED") for state in (*OPEN_STATES, "ACCEPTED")),
    # The last decision counts; an owner, a comment or a proposal decides nothing.
    ("OPEN", [("accept", GOOD), ("reopen", None)], True, "REOPENED"),
    ("ACCEPTED", [("reopen", None), ("accept", GOOD)], True, "ACCEPTED"),
    ("OPEN", [("accept", GOOD), ("assign", "treasury")], True, "ACCEPTED"),
    ("OPEN", [("assign", "treasury")], True, "OPEN"),
    ("OPEN", [("accept", GOOD), ("comment", None)], True, "ACCEPTED"),
    ("OPEN", [("propose", GOOD)], True, "OPEN"),
    # What is resolved comes back by the comparison alone.
    ("RESOLVED_SOURCE", [("accept", GOOD)], True, "REOPENED"),
    # Gone: where it was resolved is what was claimed, else the side that changed.
    *((state, [], False, "RESOLVED_SERVICE") for state in (*OPEN_STATES, "ACCEPTED")),
    ("OPEN", [("accept", GOOD)], False, "RESOLVED_SERVICE"),
    ("OPEN", [("resolve", "source")], False, "RESOLVED_SOURCE"),
    ("OPEN", [("resolve", "service")], False, "RESOLVED_SERVICE"),
    ("RESOLVED_SOURCE", [], False, None),
    ("RESOLVED_SERVICE", [], False, None),
    ("RESOLVED_NEITHER", [], False, None),
    ("CHANGED_INTO", [], False, None),
]


@pytest.mark.long
def test_every_transition() -> None:
    """All of them in one run, each under a key of its own."""
    keys = [str(number) for number in range(len(TABLE))]
    cases = list(zip(keys, TABLE, strict=True))
    earlier = pl.concat(
        left(before, until=date(2026, 2, 1) if before == "ACCEPTED" else None, key=key)
        for key, (before, *_) in cases
    )
    decisions = pl.concat(decided(*one, key=key) for key, (_, one, *_) in cases)
    there = found(*(key for key, (_, _, there, _) in cases if there))
    carried = carry(there, earlier, decisions.with_columns(id=NUMBERED), changed(), DAY)
    told = {key: states for key, *states in carried.select(*SHOWN).iter_rows()}
    wanted = {key: [before, after] for key, (before, *_, after) in cases if after is not None}
    wrong = {key: told.get(key) for key in keys if told.get(key) != wanted.get(key)}
    assert [(TABLE[int(key)], states) for key, states in wrong.items()] == []
    assert carried.height == len(told)


def test_the_table_knows_every_state_and_standing() -> None:
    """A state without a transition would stop a run; one without a test would go unnoticed."""
    told = {(before, *[what for what, _ in decisions]) for before, decisions, _, _ in TABLE}
    assert {before for before, *_ in told} == {None, *BreakState}
    assert {what for _, *decisions in told for what in decisions} == {one.value for one in Choice}
    assert {standing for _, standing in STILL_THERE} == {None, *Standing}
    assert {state for state, _ in STILL_THERE} == {None, *BreakState}


@pytest.mark.parametrize(
    ("until", "state"),
    [(date(2026, 1, 30), "EXPIRED"), (DAY, "ACCEPTED"), (date(2026, 2, 1), "ACCEPTED")],
)
def test_an_acceptance_holds_through_its_last_day(until: date, state: str) -> None:
    carried = carry(found("1"), left("ACCEPTED", until=until), NOBODY, changed(), DAY)
    assert carried["state"].to_list() == [state]
    assert carried["accepted_until"].to_list() == [until]
    (text,) = acceptance(carried, {})
    assert text is None or "ann" in text


@pytest.mark.parametrize(
    ("side", "state"),
    [
        ("E", "RESOLVED_SOURCE"),
        ("D", "RESOLVED_SERVICE"),
        ("A", "RESOLVED_SERVICE"),
        ("G", "RESOLVED_SERVICE"),
        ("-", "RESOLVED_NEITHER"),
        (">", "CHANGED_INTO"),
        (None, "NOT_LOOKED_AT"),
    ],
)
def test_the_side_that_changed_resolves_and_a_side_nobody_could_see_does_not(
    side: str | None, state: str
) -> None:
    (one,) = ids(found("1"))
    carried = carry(NOTHING, left("NEW"), NOBODY, changed((one, side)), DAY)
    assert carried["state"].to_list() == [state]
    assert carried["amount"].to_list() == carried["amount_before"].to_list()


def test_a_newer_extract_row_means_the_source() -> None:
    before = carry(
        found("same", batch_id=4).vstack(found("corrected", batch_id=4)).vstack(found("late")),
        nothing_before(), NOBODY, changed(), DAY,
    )  # fmt: skip
    newest = pl.DataFrame(
        {
            "record": ["payment"] * 4,
            "key": ["same", "corrected", "corrected", "late"],
            "batch_id": [4, 6, 4, 1],
        },
        schema_overrides={"batch_id": pl.Int32},
    )
    sides = resolved_sides(before, newest).join(before, on="id").select("key", "side")
    assert dict(sides.iter_rows()) == {"same": "D", "corrected": "E", "late": "E"}


def test_a_key_that_ends_like_a_number_of_ours_is_whole() -> None:
    keys = ["7/3/tone #1", "7/3/tone", "7/3/tone#2", "7/3/other#2", "7/3/other#4:b.csv:3"]
    breaks = pl.concat(found(key, batch_id=4) for key in keys)
    before = carry(breaks, nothing_before(), NOBODY, changed(), DAY)
    newest = pl.DataFrame(
        {
            "record": ["payment"] * 4,
            "key": ["7/3/tone #1", "7/3/tone", "7/3/tone #1", "7/3/other"],
            "batch_id": [4, 4, 6, 6],
        },
        schema_overrides={"batch_id": pl.Int32},
    )
    sides = resolved_sides(before, newest).join(before, on="id").select("key", "side")
    assert dict(sides.iter_rows()) == {
        "7/3/tone #1": "E", "7/3/tone": "D", "7/3/tone#2": "D", "7/3/other#2": "E",
        "7/3/other#4:b.csv:3": "E",
    }  # fmt: skip


@pytest.mark.parametrize("code", [code for code, of in BREAKS.items() if of.together])
def test_a_debt_or_plan_is_not_the_record_whose_key_is_written_like_its_own(code: str) -> None:
    """Debt 5 in currency 7 and payment 5 of tenant 7 are both written `5/7`."""
    breaks = pl.concat([found("5/7", code=code, side=""), found("5/7", code=code, side="E")])
    before = carry(breaks, nothing_before(), NOBODY, changed(), DAY)
    newest = pl.DataFrame(
        {"record": ["payment"], "key": ["5/7"], "batch_id": [6]},
        schema_overrides={"batch_id": pl.Int32},
    )
    sides = resolved_sides(before, newest).join(before, on="id")
    told = sides.select(pl.col("side_right"), "side")
    assert dict(told.iter_rows()) == {"": "D", "E": "E"}


def test_of_a_plan_detail_to_come_a_run_has_looked_at_what_it_looks_for() -> None:
    """Else a plan that was put right would keep every report from being signed until its day."""
    later: dict[str, Any] = {"record": "payment_plan_detail", "side": "", "date": date(2026, 6, 1)}
    codes = ("PLAN_CURRENCY", "PLAN_EARLY", "PLAN_MIXED_CCY", "PLAN_UNPAID")
    breaks = pl.concat([found("1/2026-06-01", code=code, **later) for code in codes])
    before = carry(breaks, nothing_before(), NOBODY, changed(), DAY).select(list(CARRIED))
    of = dict.fromkeys(("payment", "payment_plan_detail"), NOTHING)
    aside = set_aside(
        Gone(before, later=before.select("record", "key").unique()),
        sources=Sources(extract=of, database=of),
        rules=Rules(),
        as_of=DAY,
        tolerated=pl.DataFrame(schema=TOLERATED_SCHEMA),
    )
    carried = carry(NOTHING, before, NOBODY, aside, DAY)
    assert dict(carried.select("code", "state").iter_rows()) == {
        **dict.fromkeys(codes, "RESOLVED_SERVICE"),
        "PLAN_UNPAID": "NOT_LOOKED_AT",
    }


def test_of_a_record_that_is_dated_later_now_it_is_known_what_is_signed() -> None:
    """Else an acceptance that ran out since would keep the next report from being signed."""
    codes = ("AMOUNT", "CHANGED_AFTER_SIGNOFF", "LATE_ARRIVAL")
    breaks = pl.concat([found("1/7", code=code) for code in codes])
    before = carry(breaks, nothing_before(), NOBODY, changed(), DAY).select(list(CARRIED))

    def after(*sides: str) -> list[str]:
        of = {"payment": NOTHING}
        told = pl.DataFrame({"code": codes, "side": sides}).join(before.drop("side"), on="code")
        aside = set_aside(
            Gone(before, later=before.select("record", "key").unique(),
                 sides=told.select("id", "side")),
            sources=Sources(extract=of, database=of),
            rules=Rules(),
            as_of=DAY,
            tolerated=pl.DataFrame(schema=TOLERATED_SCHEMA),
        )  # fmt: skip
        return carry(NOTHING, before, NOBODY, aside, DAY).sort("code")["state"].to_list()

    assert after("D", "-", "-") == ["NOT_LOOKED_AT", "RESOLVED_NEITHER", "RESOLVED_NEITHER"]
    assert after("D", "D", "D") == ["NOT_LOOKED_AT", "RESOLVED_SERVICE", "NOT_LOOKED_AT"]


def test_what_could_not_be_looked_at_is_not_resolved() -> None:
    """A listing that was not pulled this time says nothing about what was missing in it."""
    breaks = pl.concat([found(side, side=side) for side in ("D", "A", "G", "")])
    before = carry(breaks, nothing_before(), NOBODY, changed(), DAY).select(list(CARRIED))
    sources = Sources(extract={}, database={"payment": NOTHING}, listings={"avatar": NOTHING})
    aside = set_aside(
        Gone(before),
        sources=sources,
        rules=Rules(),
        as_of=DAY,
        tolerated=pl.DataFrame(schema=TOLERATED_SCHEMA),
    )
    carried = carry(NOTHING, before, NOBODY, aside, DAY)
    told = carried.select("key", "state", "aside_by", "aside_because").iter_rows()
    assert {key: rest for key, *rest in told} == {
        "A": ["NOT_LOOKED_AT", "source", "no answers of the service of payment in this run"],
        "G": ["NOT_LOOKED_AT", "source", "no listing of payment in this run"],
        "D": ["RESOLVED_SERVICE", None, None],
        "": ["RESOLVED_SERVICE", None, None],
    }


def test_what_a_decision_says_stays_with_the_break() -> None:
    accepted = carry(
        found("1"), left("NEW"), decided(("accept", GOOD), ("assign", "treasury")), changed(), DAY
    )
    assert accepted.select("accepted_by", "accepted_reason", "owner").rows() == [
        ("bo", "because", "treasury")
    ]
    assert acceptance(accepted, {}).to_list() == ["accepted by bo until 2026-02-28: because"]
    later = carry(found("1"), accepted, NOBODY, changed(), date(2026, 2, 10))
    assert later.row(0, named=True)["accepted_reason"] == "because"
    expired = carry(found("1"), later, NOBODY, changed(), date(2026, 3, 1))
    assert acceptance(expired, {}).to_list() == ["was accepted by bo until 2026-02-28: because"]
    again = carry(found("1"), expired, NOBODY, changed(), date(2026, 3, 2))
    assert again.select("state", "accepted_by", "owner").rows() == [("REOPENED", None, "treasury")]
    assert again["first_seen"].to_list() == [date(2026, 1, 1)]


def test_a_list_shows_decisions_before_the_next_run_acts_on_them() -> None:
    def now(state: str, *decisions: tuple[str, str | None]) -> tuple[object, ...]:
        kept = left(state, until=DAY if state == "ACCEPTED" else None)
        shown = current_breaks(kept, decided(*decisions), DAY)
        return shown.select("state", "claimed", "accepted_by", "owner").row(0)

    assert now("NEW") == ("NEW", None, None, None)
    assert now("NEW", ("accept", GOOD)) == ("ACCEPTED", None, "bo", None)
    assert now("ACCEPTED") == ("ACCEPTED", None, "ann", None)
    assert now("ACCEPTED", ("reopen", None)) == ("REOPENED", None, None, None)
    assert now("OPEN", ("resolve", "service")) == ("OPEN", "service", None, None)
    assert now("OPEN", ("assign", "treasury")) == ("OPEN", None, None, "treasury")


def test_a_break_is_remembered_exactly() -> None:
    breaks = found(
        "9007199254740993", amount="9000000000000000.01", expected='"=a\tb\\', found=None,
        date=date(2025, 12, 30), line=2**40, file="a\u2028b.csv", batch_id=3, note="",
    )  # fmt: skip
    told = breaks.with_columns(cause=pl.lit("C1"))
    carried = carry(told, nothing_before(), NOBODY, changed(), DAY)
    assert carried["cause"].to_list() == ["C1"]
    saved = to_saved(carried)
    assert '"cause":"C1"' in saved["facts"][0]
    assert from_saved(saved).equals(carried.select(list(CARRIED)))


def test_breaks_keep_their_order_whatever_the_order_of_the_past() -> None:
    breaks = found(*map(str, range(50)))
    first = carry(breaks, nothing_before(), NOBODY, changed(), DAY)
    for seed in (1, 2):
        past = first.select(list(CARRIED)).sample(fraction=1, shuffle=True, seed=seed)
        again = carry(breaks.head(40), past.sort("id"), NOBODY, changed(), DAY)
        assert again["id"].head(40).to_list() == ids(breaks.head(40)), seed
        assert set(again["state"].tail(10)) == {life.BreakState.RESOLVED_SERVICE}, seed
