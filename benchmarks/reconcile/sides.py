"""Two sides of payments: the right one shuffled, with planted differences that are known."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import polars as pl

SEED = 20260102
FIRST_ID = 2**53 + 1
"""Ids no double can hold, so that a comparison by doubles would show."""


@dataclass(frozen=True, slots=True)
class Planted:
    """What a comparison has to find."""

    left_rows: int
    right_rows: int
    different: int
    only_left: int
    only_right: int


def make_sides(folder: Path, rows: int) -> Planted:
    """Write both sides as Parquet and CSV; 0.5 % differ by a cent, 0.2 % are on one side only."""
    note = folder / f"planted-{rows}.json"
    if note.exists():
        return Planted(**json.loads(note.read_text()))
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(SEED)
    alone = random.choice(rows, 2 * (rows // 500), replace=False)
    numbers = np.arange(rows, dtype=np.int64)
    left = _payments(np.setdiff1d(numbers, alone[: rows // 500]))
    right = _payments(random.permutation(np.setdiff1d(numbers, alone[rows // 500 :])))
    changed = pl.Series(random.random(right.height) < 0.005)
    cents = pl.when(changed).then(pl.col("cents") + 1).otherwise("cents")
    right = right.with_columns(cents.alias("cents"))
    both = pl.Series(~np.isin(right["number"].to_numpy(), alone))
    planted = Planted(
        left.height, right.height, int((changed & both).sum()), rows // 500, rows // 500
    )
    for name, side in (("left", left), ("right", right)):
        payments = side.drop("number", "cents").with_columns(
            (side["cents"] / 100).alias("PaidAmount")
        ).select(COLUMNS)  # fmt: skip
        payments.write_parquet(folder / f"{name}-{rows}.parquet")
        payments.with_columns(
            pl.col("PaymentDate").dt.to_string("%Y-%m-%dT%H:%M:%S+00:00")
        ).write_csv(folder / f"{name}-{rows}.csv", float_precision=2)
    note.write_text(json.dumps(asdict(planted)))
    return planted


COLUMNS = ("Id", "TenantsId", "ActionsId", "DebtsId", "PaymentDate", "PaidAmount",
           "DiscountAmount", "CurrenciesId", "CurrencyRatesId")  # fmt: skip


def _payments(numbers: np.ndarray) -> pl.DataFrame:
    seconds = pl.Series(1_700_000_000 + numbers % 31_536_000) * 1_000_000
    return pl.DataFrame(
        {
            "number": numbers,
            "Id": numbers + FIRST_ID,
            "TenantsId": (numbers % 7 + 1).astype(np.int32),
            "ActionsId": numbers * 3 + 1,
            "DebtsId": numbers // 3,
            "PaymentDate": seconds.cast(pl.Datetime("us", "UTC")),
            "cents": numbers * 7919 % 10_000_000,
            "DiscountAmount": (numbers % 3).astype(np.float64),
            "CurrenciesId": (numbers % 5 + 1).astype(np.int32),
            "CurrencyRatesId": numbers % 6300,
        }
    )
