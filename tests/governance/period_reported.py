"""What lists and reports have to say of breaks, in plain Python: severities and roll-forwards."""

from collections import defaultdict
from datetime import date
from decimal import Decimal
from typing import Any

from schemas.breaks import BREAKS
from tests.governance.period_model import ASIDE, GONE, OPEN, Break, Run

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


def severity(one: Break, as_of: date) -> str:
    if BREAKS[one.code].of_class.grave:
        return "high"
    if one.code == "OFFSET":
        return "low"
    age = (as_of - one.begin()).days
    sizes = [one.amount or Decimal(0), *(one.more if not one.field else ())]
    if one.basis == "not readable":
        return "high"
    for name, least, days in (("high", 10_000, 30), ("medium", 100, 7)):
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
