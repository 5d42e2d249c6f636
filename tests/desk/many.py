"""Breaks by the thousand, of every kind of money, for pages that have to stay quick and exact."""

from datetime import timedelta
from decimal import Decimal
from random import Random

import polars as pl

from flows.steps.breaks.frame import BREAK_SCHEMA, gather
from tests.governance.runs import DAY

FIELDS = {
    "AMOUNT": "PaidAmount",
    "MISSING_IN_TARGET": "",
    "REJECTED": "",
    "RATE_MISSING": "",
    "DEBT_UNDER": "",
    "INV_UNPAID": "",
}
"""Codes, and the field that breaks of each name."""
STRANGE = ('=HYPERLINK("http://x")', "<script>alert(1)</script>", "\u202egnp.exe", "a\nb")
"""Texts as somebody may have delivered them."""


def many_breaks(rows: int, seed: int = 1, causes: int = 12) -> pl.DataFrame:
    """Breaks with their cause groups; the same seed gives the same ones."""
    chance = Random(seed)
    lines = []
    for number in range(rows):
        code = chance.choices([*FIELDS], [40, 20, 10, 15, 5, 10])[0]
        money = code != "INV_UNPAID" and chance.random() > 0.02
        amount = Decimal(chance.randrange(1, 10**7)) / 100 if money else None
        told = {}
        if chance.random() < 0.001:
            amount, told = None, {"amount_beyond": "1e308"}
        strange = chance.random() < 0.01
        lines.append(
            {
                "code": code,
                "record": "invoice_file" if code == "INV_UNPAID" else "payment",
                "tenant": chance.choice([7, 8, 9, None]),
                "key": f"{number}/7",
                "field": FIELDS[code],
                "side": "D",
                "currency": chance.choice([1, 2, 3, 978, None]),
                "expected": "PAID",
                "found": chance.choice(STRANGE) if strange else "OPEN",
                "delta": amount,
                "amount": amount,
                "date": DAY - timedelta(days=chance.randrange(200)),
                "debt": number // 3,
                "file": f"payments-{number % 9}.csv",
                "line": number,
                "batch_id": number % 9 + 1,
                "note": 'PaidAmount is not readable: "12,50"' if amount is None else "",
            }
            | told
        )
    breaks = gather([pl.DataFrame(lines, schema=BREAK_SCHEMA)])
    groups = [chance.choice([None, *(f"C{one:08x}" for one in range(causes))]) for _ in lines]
    return breaks.with_columns(pl.Series("cause", groups, pl.String))
