"""What lists and reports have to say of breaks, in plain Python: severities and roll-forwards."""

from collections import Counter, defaultdict
from datetime import date
from decimal import Decimal
from typing import Any

from schemas.breaks import BREAKS
from tests.governance.period_facts import ASIDE, GONE, OPEN, Break, Rules, Run

BUCKETS = (1, 3, 7, 30, 60, 90)
LINES = {
    "open": {"NEW": "+ new", "REOPENED": "+ reopened", "EXPIRED": "+ expired"},
    "accepted": {"ACCEPTED": "+ accepted"},
    "set aside": {"NOT_LOOKED_AT": "+ not looked", "WAIVED_BY_RULE": "+ waived"},
}
LEAVES = {
    "open": {"ACCEPTED": "- accepted", "NOT_LOOKED_AT": "- not looked",
             "WAIVED_BY_RULE": "- waived"},
    "accepted": {"EXPIRED": "- expired", "REOPENED": "- reopened", "NOT_LOOKED_AT": "- not looked",
                 "WAIVED_BY_RULE": "- waived"},
    "set aside": {"ACCEPTED": "- looked at again, and accepted",
                  **dict.fromkeys(OPEN, "- looked at again, and open")},
}  # fmt: skip
NAMES = ("opening", "closing", "+/- amounts", "+ reopened", "- looked at again, and open",
         *GONE.values(), *(name for of in (LINES, LEAVES) for each in of.values()
                           for name in each.values()))  # fmt: skip


def severity(one: Break, as_of: date, rules: Rules) -> str:
    if BREAKS[one.code].of_class.grave:
        return "high"
    if one.code == "OFFSET":
        return "low"
    age = (as_of - one.begin()).days
    sizes = [one.amount or Decimal(0), *(one.more if not one.field else ())]
    if one.basis == "not readable":
        return "high"
    for name, least, days in (("high", rules.high, 30), ("medium", rules.medium, 7)):
        if max(sizes) >= least or age >= days:
            return name
    return "low"


def pool(state: str | None) -> str:
    return ("open" if state in OPEN else "accepted" if state == "ACCEPTED"
            else "set aside" if state in ASIDE else "")  # fmt: skip


def forward(run: Run, of: str) -> dict[str, dict[str, tuple[int, Decimal, Decimal]]]:
    """By currency, of each line that has any break: how many, their differences and gross money."""
    found: dict[str, dict[str, list[Any]]] = defaultdict(
        lambda: defaultdict(lambda: [0, Decimal(0), Decimal(0)])
    )

    def add(line: str, one: Break, sign: int, rows: int = 1) -> None:
        cell = found[str(one.currency or "")][line]
        cell[0] += sign * rows
        if one.basis in ("difference", "gross"):
            cell[1 if one.basis == "difference" else 2] += sign * (one.counted or Decimal(0))

    for one in run.breaks:
        before, now = pool(one.before), pool(one.state)
        was = one.was
        if before == of and was is not None:
            add("opening", was, 1)
            if one.state in GONE:
                add(GONE[one.state], was, -1)
            elif now:
                add("+/- amounts", was, -1)
                add("+/- amounts", one, 1)
                if now != of:
                    add(LEAVES[of][one.state], one, -1)
        if now == of:
            add("closing", one, 1)
            if before != of:
                line = LINES[of].get(one.state) or "+ reopened"
                add(line, one, 1)
    return {currency: {line: tuple(cell) for line, cell in lines.items() if any(cell)}
            for currency, lines in found.items()}  # fmt: skip


def compare_sides(run: Run, totals: Any, where: str) -> None:
    for name, side in (("expected", run.delivered), ("found", run.found)):
        found = {
            (one["tenant"], one["currency"]): (
                one[f"{name}_rows"], *(Decimal(one[name][of]) for of in
                                       ("PaidAmount", "DiscountAmount"))
            )
            for one in totals["controls"] if one[f"{name}_rows"]
        }  # fmt: skip
        assert found == side, (name, where)
    for one in totals["proofs"]:
        assert Decimal(one["unexplained"]) == 0, where
        place = 1 if one["field"] == "PaidAmount" else 2
        for line, side in ((one["lines"][0], run.delivered), (one["lines"][-1], run.found)):
            own = [cell for (_, currency), cell in side.items() if currency == one["currency"]]
            assert line["rows"] == sum(cell[0] for cell in own), where
            assert Decimal(line["amount"]) == sum(cell[place] for cell in own), where


def compare_ages(run: Run, totals: Any, there: list[Break], where: str) -> None:
    ours: Counter[Any] = Counter()
    money: Counter[Any] = Counter()
    for one in there:
        if one.state in OPEN:
            age = max((run.as_of - one.begin()).days, 0)
            place = sum(age > upper for upper in BUCKETS)
            cell = one.code, str(one.currency or ""), one.basis, place
            ours[cell] += 1
            money[cell] += one.counted or Decimal(0)
    found: Counter[Any] = Counter()
    amounts: Counter[Any] = Counter()
    for line in totals["ageing"]:
        for place, (rows, amount) in enumerate(zip(line["counts"], line["amounts"], strict=True)):
            cell = line["code"], line["currency"], line["basis"], place
            found[cell] += rows
            amounts[cell] += Decimal(amount)
    assert +found == +ours, where
    assert {of: amounts[of] for of in ours} == dict(money), where


def compare_changes(run: Run, told: Any, where: str) -> None:
    """Every key of the rules that differs, since the run that it is held against."""
    number, changes = run.changes
    assert told["since"].startswith(f"reconciliation {number} as of" if number else ""), where
    assert bool(told["since"]) == bool(number), where
    assert {one["key"]: (one["old"], one["new"]) for one in told["rules"]} == changes, where


def forwards(told: Any) -> Any:
    found = {}
    for one in told:
        assert (one["residual_rows"], Decimal(one["residual"])) == (0, 0)
        assert Decimal(one["residual_gross"]) == 0
        found[one["currency"]] = {
            _word(line["text"]): (line["rows"], Decimal(line["amount"]), Decimal(line["gross"]))
            for line in one["lines"]
            if line["rows"] or Decimal(line["amount"]) or Decimal(line["gross"])
        }
    return {currency: lines for currency, lines in found.items() if lines}


def _word(text: str) -> str:
    return max((name for name in NAMES if text.startswith(name)), key=len)
