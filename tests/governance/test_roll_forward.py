"""The roll-forward ties: opening, what happened, closing, in every currency, over any history."""

from datetime import date, timedelta
from decimal import Decimal, localcontext
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flows.stages.reconcile.put_aside import kept_parts
from flows.steps.breaks.aside import Gone
from flows.steps.breaks.carried_states import is_open
from flows.steps.breaks.carry_forward import carry_forward
from flows.steps.breaks.changed_into import about, changed_into, known_as_long, replacements
from flows.steps.breaks.frame import BREAK_SCHEMA, gather
from flows.steps.breaks.lifecycle import CARRIED, DECISIONS, carry
from flows.steps.breaks.saved import from_saved
from flows.steps.breaks.tolerated import TOLERATED_SCHEMA
from flows.steps.frames.parts import held_rows
from flows.steps.frames.sources import Sources
from flows.steps.reconcile.roll_forward import RollForward, roll_forward
from flows.steps.rules.rules import Rules
from schemas.life import RESOLVED, UNRESOLVED, BreakState
from tests.examples import examples
from tests.governance.runs import found, ids, to_saved, with_counts

FIRST = date(2026, 1, 1)
KEYS = [str(number) for number in range(8)]

AMOUNTS = st.decimals("-99999999999999999999", "99999999999999999999", places=18) | st.none()
SIGHTING = st.tuples(st.sampled_from(["1", "2", None]), AMOUNTS)
DECISION = st.tuples(
    st.sampled_from(KEYS),
    st.sampled_from(["accept", "reopen", "resolve", "assign"]),
    st.integers(0, 4),
    st.sampled_from(["source", "service"]),
)
RUN = st.tuples(
    st.dictionaries(st.sampled_from(KEYS), SIGHTING),
    st.lists(DECISION, max_size=4),
    st.dictionaries(st.sampled_from(KEYS), st.sampled_from(["E", "D", None])),
    st.integers(0, 3),
)


@pytest.mark.long
@settings(deadline=None, max_examples=examples(100, 4))
@given(st.lists(RUN, min_size=1, max_size=6))
def test_nothing_is_left_over_in_any_history(history: list[Any]) -> None:
    name = {key: ids(found(key))[0] for key in KEYS}
    before = pl.DataFrame(schema=CARRIED)
    closing: dict[str, dict[str, tuple[int, Decimal]]] = {"open": {}, "accepted": {}}
    as_of = FIRST
    for seen, decisions, sides, days in history:
        as_of += timedelta(days)
        carried = with_counts(
            carry(
                _breaks(seen),
                before,
                _decisions(decisions, name, as_of),
                _changed(sides, name),
                as_of,
            )
        )
        for pool, forward, states in (
            ("open", roll_forward(carried), is_open()),
            ("accepted", roll_forward(carried, "accepted"), pl.col("state") == BreakState.ACCEPTED),
        ):
            _ties(forward)
            opening = {one.currency: _amounts(one, 0) for one in forward}
            assert _real(opening) == _real(closing[pool]), "a run begins where the last one ended"
            closing[pool] = {one.currency: _amounts(one, -1) for one in forward}
            assert _real(closing[pool]) == _counted(carried.filter(states))
        assert set(ids(_breaks(seen))) <= set(carried["id"])
        before = from_saved(to_saved(carried))


def _breaks(seen: dict[str, tuple[str | None, Decimal | None]]) -> pl.DataFrame:
    rows = [
        {"code": "AMOUNT", "record": "payment", "tenant": 7, "key": key, "field": "PaidAmount",
         "side": "D", "currency": currency and int(currency), "amount": amount}
        for key, (currency, amount) in seen.items()
    ]  # fmt: skip
    return gather([pl.DataFrame(rows, schema=BREAK_SCHEMA)])


def _decisions(decisions: list[Any], name: dict[str, str], as_of: date) -> pl.DataFrame:
    rows = [
        {
            "id": number,
            "break_id": name[key],
            "what": what,
            "by": "ann",
            "reason": "why",
            "until": str(as_of + timedelta(days - 1)) if what == "accept" else None,
            "side": side if what == "resolve" else None,
            "owner": "bo" if what == "assign" else None,
        }
        for number, (key, what, days, side) in enumerate(decisions)
    ]
    return pl.DataFrame(rows, schema=DECISIONS)


def _changed(sides: dict[str, str | None], name: dict[str, str]) -> pl.DataFrame:
    rows = [(name[key], side) for key, side in sides.items()]
    return pl.DataFrame(rows, schema={"id": pl.String(), "side": pl.String()}, orient="row")


def _ties(forward: tuple[RollForward, ...]) -> None:
    for one in forward:
        assert (one.residual_rows, one.residual) == (0, Decimal(0)), one
        opening, *steps, closing = one.lines
        assert opening.total
        assert closing.total
        assert opening.rows + sum(step.rows for step in steps) == closing.rows
        assert not any(step.total for step in steps)


def _amounts(one: RollForward, line: int) -> tuple[int, Decimal]:
    return one.lines[line].rows, one.lines[line].amount


def _real(sums: dict[str, tuple[int, Decimal]]) -> dict[str, tuple[int, Decimal]]:
    return {currency: told for currency, told in sums.items() if told[0]}


def _counted(breaks: pl.DataFrame) -> dict[str, tuple[int, Decimal]]:
    sums: dict[str, tuple[int, Decimal]] = {}
    for currency, amount in breaks.select("currency", "amount").iter_rows():
        name = "" if currency is None else str(currency)
        rows, total = sums.get(name, (0, Decimal(0)))
        # Python's own arithmetic keeps 28 digits unless it is told otherwise.
        with localcontext(prec=60):
            sums[name] = (rows + 1, total + (amount or Decimal(0)))
    return sums


def run(breaks: pl.DataFrame, before: pl.DataFrame | None = None, *decisions: Any) -> pl.DataFrame:
    name = {key: ids(found(key))[0] for key in KEYS}
    past = pl.DataFrame(schema=CARRIED) if before is None else before.select(list(CARRIED))
    return with_counts(
        carry(breaks, past, _decisions(list(decisions), name, FIRST), _changed({}, name), FIRST)
    )


def lines(one: RollForward) -> dict[str, tuple[int, str]]:
    return {
        line.text.split(":")[0]: (line.rows, f"{line.amount.normalize():f}")
        for line in one.lines
        if line.rows or line.amount
    }


MONEYED = [
    # breaks of a run, breaks of the next one, whether there is money to add up
    ([{"amount": None, "currency": None}], [], False),
    ([{"code": "RATE_GAP", "record": "currency_rate", "field": "", "amount": None}], None, False),
    ([{"amount": "0"}], [], True),
    ([{"amount": "10"}], [{"amount": None}], True),
    ([{"amount": None}], [{"amount": "10"}], True),
    ([{"amount": None}], [{"amount": None}], False),
]


@pytest.mark.long(but=("first0-second0-False",))
@pytest.mark.parametrize(("first", "second", "money"), MONEYED)
def test_sums_of_nothing_are_told_apart_from_sums_of_zero(
    first: list[dict[str, Any]], second: list[dict[str, Any]] | None, *, money: bool
) -> None:
    carried = run(pl.concat(found("1", **one) for one in first))
    if second is not None:
        later = [found("1", **one) for one in second]
        carried = run(pl.concat(later) if later else found("1").clear(), carried)
    assert [one.money for one in roll_forward(carried)] == [money]


def test_a_month_told_line_by_line() -> None:
    first = run(found("0", "1", "2", amount="10").vstack(found("3", amount="7", currency=2)))
    euro, dollar = roll_forward(first)
    assert lines(euro) == {"+ new": (3, "30"), "closing": (3, "30")}
    assert lines(dollar) == {"+ new": (1, "7"), "closing": (1, "7")}
    # 0 stays with another amount, 1 is accepted, 2 is gone, 4 is new; 3 comes in another currency.
    now = found("0", amount="12.5").vstack(found("1", "4", amount="10"))
    second = run(now.vstack(found("3", amount="7")), first, ("1", "accept", 4, "source"))
    euro, dollar = roll_forward(second)
    assert lines(euro) == {
        "opening": (3, "30"),
        "+ new": (1, "10"),
        "- resolved at the target (database or service)": (-1, "-10"),
        "- accepted": (-1, "-10"),
        "+/- amounts that changed while open": (1, "9.5"),
        "closing": (3, "29.5"),
    }
    assert lines(dollar) == {
        "opening": (1, "7"),
        "+/- amounts that changed while open": (-1, "-7"),
    }
    assert [lines(one) for one in roll_forward(second, "accepted")] == [
        {"+ accepted": (1, "10"), "closing": (1, "10")}
    ]


ROW: dict[str, Any] = {
    "code": "REJECTED", "field": "", "side": "E", "batch_id": 1, "file": "a.csv", "line": 2,
}  # fmt: skip
OTHERS: list[tuple[dict[str, Any], list[dict[str, Any]], bool]] = [
    # what is gone; what is there in its place; whether the one has changed into the other
    ({}, [{"code": "VALUE"}], True),
    ({}, [{"code": "VALUE"}, {"code": "ECHO", "side": "A"}], True),
    ({}, [{"code": "VALUE", "field": "DiscountAmount"}], False),
    ({}, [{"code": "VALUE", "tenant": 8}], False),
    ({"tenant": None}, [{"code": "VALUE", "tenant": None}], True),
    ({"code": "MISSING_IN_TARGET", "field": ""}, [{"code": "DUPLICATE", "field": ""}], False),
    ({}, [], False),
    # Extract and database differ still, and since the service has answered it did so there.
    ({}, [{"side": "A"}], True),
    ({"code": "PRECISION", "side": "E"}, [{}], True),
    ({"code": "REFERENCE_MISSING"}, [{"code": "REFERENCE_TENANT"}], True),
    # Other sources differ now.
    ({}, [{"code": "CHANGED_AFTER_SIGNOFF"}], False),
    ({"code": "CHANGED_AFTER_SIGNOFF"}, [{}], False),
    ({}, [{"code": "ECHO", "side": "A"}], False),
    ({"code": "ECHO", "side": "A"}, [{}], False),
    ({"code": "ECHO", "side": "A"}, [{"code": "CHANGED_AFTER_SIGNOFF"}], False),
    # The same row, which is no longer the only one with its key, or is so again.
    (ROW, [ROW | {"key": "0#1:a.csv:1"}, ROW | {"key": "0#2:a.csv:1", "batch_id": 2}], True),
    (ROW | {"key": "0#1:a.csv:1"}, [ROW], True),
    (ROW, [ROW | {"key": "0#2:a.csv:1", "batch_id": 2}], False),
    (ROW, [ROW | {"key": "1"}], False),
    (ROW, [ROW | {"key": "0#1:a.csv:1", "code": "KEY_MISSING"}], False),
    (ROW | {"line": None}, [ROW | {"line": None, "key": "0#2"}], False),
]


@pytest.mark.parametrize(("gone", "there", "into"), OTHERS)
def test_a_break_whose_field_has_another_one_is_not_resolved(
    gone: dict[str, Any], there: list[dict[str, Any]], *, into: bool
) -> None:
    first = run(found("0", **gone)).select(list(CARRIED))
    of = {"payment": pl.DataFrame()}
    now = pl.concat([found("0").clear(), *(found("0", **one) for one in there)])
    lives = carry_forward(
        kept_parts(now.iter_slices(1) if now.height else [now]),
        lambda _: first.clear(),
        _decisions([], {}, FIRST),
        Gone(first, batches={1}),
        sources=Sources(extract=of, database=of, answers=of),
        rules=Rules(),
        as_of=FIRST,
        tolerated=pl.DataFrame(schema=TOLERATED_SCHEMA),
    )
    second = with_counts(pl.concat(lives))
    (state,) = second.filter(pl.col("id").is_in(first["id"].implode()))["state"]
    assert state == ("CHANGED_INTO" if into else "RESOLVED_SERVICE")
    others = changed_into(held_rows(second), {})
    assert others["id"].to_list() == (ids(first) if into else [])
    (forward,) = roll_forward(second)
    assert ("- changed into another break of the same field or row" in lines(forward)) is into
    assert ("- resolved at the target (database or service)" in lines(forward)) is not into
    assert lines(forward).get("closing", (0, ""))[0] == len(there)


def test_a_row_that_is_known_under_another_key_is_known_as_long() -> None:
    first = run(found("0", **ROW, date=None)).select(list(CARRIED))
    beside = found("0#2:a.csv:1", **(ROW | {"batch_id": 2}))
    now = pl.concat([found("0#1:a.csv:1", **ROW), beside])
    there = carry(now, first.clear(), _decisions([], {}, FIRST), _changed({}, {}),
                  FIRST + timedelta(9))  # fmt: skip
    gone = about(first)
    seen = known_as_long(replacements(gone, there).of_row, gone, there).select("key", "first_seen")
    told = dict(seen.iter_rows())
    assert told == {"0#1:a.csv:1": FIRST, "0#2:a.csv:1": FIRST + timedelta(9)}


CAME = [
    # how the run before left the break that is there beside one that is gone; whether it came
    (None, True),
    *((state, True) for state in RESOLVED),
    *((state, False) for state in UNRESOLVED),
]


@pytest.mark.long(
    but=(
        "None-True",
        "RESOLVED_SOURCE-True",
        "RESOLVED_NEITHER-True",
        "OPEN-False",
    )
)
@pytest.mark.parametrize(("left", "came"), CAME)
def test_a_break_that_was_there_all_the_time_is_not_what_another_has_changed_into(
    left: str | None, *, came: bool
) -> None:
    gone = run(found("0"))
    beside = run(found("0", code="VALUE")).with_columns(pl.lit(left, pl.String).alias("state"))
    there = run(found("0", code="VALUE"), beside.filter(pl.col("state").is_not_null()))
    assert replacements(about(gone), there).ids.to_list() == (ids(gone) if came else [])


def test_an_acceptance_that_runs_out_is_open_again_under_its_own_line() -> None:
    first = run(found("0"))
    accepted = run(found("0"), first, ("0", "accept", 1, "source"))
    later = with_counts(carry(
        found("0"), accepted.select(list(CARRIED)), _decisions([], {}, FIRST), _changed({}, {}),
        FIRST + timedelta(1),
    ))  # fmt: skip
    assert later["state"].to_list() == ["EXPIRED"]
    assert [lines(one) for one in roll_forward(later)] == [
        {"+ expired": (1, "10"), "closing": (1, "10")}
    ]
    assert [lines(one) for one in roll_forward(later, "accepted")] == [
        {"opening": (1, "10"), "- expired": (-1, "-10")}
    ]


def test_currencies_are_ordered_as_numbers_and_none_is_first() -> None:
    breaks = pl.concat(
        [found(str(n), currency=n) for n in (10, 2, 1)] + [found("9", currency=None)]
    )
    assert [one.currency for one in roll_forward(run(breaks))] == ["", "1", "2", "10"]
    assert roll_forward(run(found())) == ()


@pytest.mark.parametrize("amount", ["9000000000000000.01", "0.000000000000000001"])
def test_amounts_are_added_exactly(amount: str) -> None:
    (one,) = roll_forward(run(found(*map(str, range(3)), amount=amount)))
    assert one.lines[-1].amount == Decimal(amount) * 3
