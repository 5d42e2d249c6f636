"""Write payment extracts of any size with planted faults, and the truth about them.

    python data_samples/generate.py payments --rows 1000000 --bad-share 0.01 --seed 7 --out DIR

writes `payments.csv`, `truth.csv` (one line per bad record) and `truth.json` (totals of the good
ones). `currency_rates` writes the rates those payments refer to. The same arguments give the same
bytes. Every bad record has exactly one fault and stands on one physical line, so record n is line
n + 1; an unterminated quote is always followed by a good record.
"""

import argparse
import csv
import hashlib
import io
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from itertools import product
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

Positions = NDArray[np.int64]

HEADER = (
    "Id,TenantsId,ActionsId,DebtsId,PaymentDate,"
    "PaidAmount,DiscountAmount,CurrenciesId,CurrencyRatesId"
)
COLUMNS = tuple(HEADER.split(","))
BLOCK_ROWS = 250_000
TENANTS = (7, 8, 9)
CURRENCIES = (1, 2, 3, 4, 5, 6, 7, 8)
"""CurrenciesId of EUR, USD, GBP, CHF, PLN, SEK, NOK, DKK, as in currencies.csv."""
RATES_PER_EURO = ("1.1200", "0.8400", "0.9300", "4.3800", "11.0200", "10.3100", "7.4720")
"""A level for every currency but the euro; the generated days move around it."""
CURRENCY_BY_DEBT = np.array((1, 1, 1, 1, 2, 2, 2, 3, 3, 4, 4, 5, 5, 6, 7, 8), dtype=np.int64)
FIRST_DAY, DAYS = date(2026, 1, 1), 300
OFFSETS = ("Z", "+00:00", "+02:00", "-05:30")
FIRST_PAYMENT, FIRST_ACTION, FIRST_DEBT = 10_000_000_001, 20_000_000_001, 30_000_000_001
FIRST_RATE = 1_000_001
MOST_BAD = 0.5


@dataclass(frozen=True, slots=True)
class Fault:
    """One kind of planted fault and the reject it must lead to; fields and texts go in turn."""

    kind: str
    code: str
    fields: tuple[str, ...]
    texts: tuple[str, ...] = ()
    """What stands in the field instead, `{}` being its value; none: the record ends before it."""
    structural: bool = False
    """The reject is of the whole record and names no field."""

    def field(self, nth: int) -> str:
        """The field spoiled in the n-th record of this kind."""
        return self.fields[nth % len(self.fields)]

    def spoil(self, cells: Sequence[str], nth: int) -> str:
        """The n-th record of this kind as delivered."""
        place = COLUMNS.index(self.field(nth))
        if not self.texts:
            return ",".join(cells[:place])
        text = self.texts[nth % len(self.texts)].format(cells[place])
        return ",".join((*cells[:place], text, *cells[place + 1 :]))


TOO_WIDE = ("2147483648", "-2147483649", "4294967297")
TOO_WIDE_64 = ("9223372036854775808", "18446744073709551617", "-9223372036854775809")
NO_DATE = ("2026-02-30T10:00:00+02:00", "2026-06-15T25:10:00Z", "yesterday", "15.06.2026")
TOO_LONG = ("0.30000000000000000001", "9007199254740993", "1234567890123.123456")
MONEY, LAST = ("PaidAmount", "DiscountAmount"), "CurrencyRatesId"
ORIGINAL, COPY = "conflicting_key_original", "conflicting_key_copy"
UNTERMINATED = "unterminated_quote"
FAULTS = (
    Fault("integer_word", "Integer", ("TenantsId", "DebtsId"), ("seven", "n/a", "12 34")),
    Fault("int32_overflow", "IntegerRange", ("CurrenciesId", "TenantsId"), TOO_WIDE),
    Fault("int64_overflow", "IntegerRange", ("DebtsId", "ActionsId", LAST), TOO_WIDE_64),
    Fault("missing_required", "NotNull", COLUMNS, ("",)),
    Fault("bad_date", "DateTime", ("PaymentDate",), NO_DATE),
    Fault("date_without_offset", "OffsetMissing", ("PaymentDate",), ("{:.19}",)),
    Fault("currency_sign", "Number", MONEY, ("€{}", "{} EUR", "${}")),
    Fault("not_a_number", "NotFinite", MONEY, ("NaN", "nan")),
    Fault("too_many_digits", "Precision", MONEY, TOO_LONG),
    Fault("too_few_fields", "TooFewFields", (LAST, "PaymentDate"), (), structural=True),
    Fault("too_many_fields", "TooManyFields", (LAST,), ("{},0", "{},,"), structural=True),
    Fault("stray_quote", "StrayQuote", MONEY, ('12"50',), structural=True),
    Fault(UNTERMINATED, "UnterminatedQuote", MONEY, ('"12.50',), structural=True),
    Fault(ORIGINAL, "ConflictingKey", ("Id",), ("{}",)),
    Fault(COPY, "ConflictingKey", ("Id",), ("{}",)),
)
KINDS = tuple(fault.kind for fault in FAULTS)


@dataclass(frozen=True, slots=True)
class Plan:
    """Where the faults go: arrays of equal length, ordered by position (0-based)."""

    positions: Positions
    kinds: Positions
    """Index into FAULTS."""
    key_positions: Positions
    """The record whose key the record carries: its own, or for a copy the original's."""


def plan_faults(rows: int, bad_share: float, seed: int) -> Plan:
    """Spread round(rows * bad_share) bad records over the file, kinds in equal numbers."""
    if not 0 <= bad_share <= MOST_BAD:
        raise ValueError(f"--bad-share is {bad_share}; it must be from 0 to {MOST_BAD}")
    rng = np.random.default_rng([seed, 0])
    count = round(rows * bad_share)
    positions = np.sort(rng.choice(rows, size=count, replace=False).astype(np.int64))
    kinds = rng.permutation(np.arange(count, dtype=np.int64) % len(FAULTS))
    _move_unterminated(rows, positions, kinds)
    originals = np.flatnonzero(kinds == KINDS.index(ORIGINAL))
    copies = np.flatnonzero(kinds == KINDS.index(COPY))
    # A last round without its copy would leave an original that conflicts with nothing.
    kinds[originals[len(copies) :]] = 0
    key_positions = positions.copy()
    key_positions[copies] = positions[originals[: len(copies)]]
    return Plan(positions, kinds, key_positions)


def _move_unterminated(rows: int, positions: Positions, kinds: Positions) -> None:
    """Swap kinds so that a good record follows every unterminated quote."""
    open_ended = kinds == KINDS.index(UNTERMINATED)
    followed = np.append(np.diff(positions) > 1, False)
    if len(positions) and positions[-1] < rows - 1:
        followed[-1] = True
    wrong, free = np.flatnonzero(open_ended & ~followed), np.flatnonzero(~open_ended & followed)
    if len(wrong) > len(free):
        raise ValueError(f"{len(positions)} bad records do not fit {rows}; lower --bad-share")
    kinds[wrong], kinds[free[: len(wrong)]] = kinds[free[: len(wrong)]], kinds[wrong]


_HUNDREDTHS = pl.Series(
    ["", *(f".{tenth}" for tenth in range(10)), *(f".{cent:02d}" for cent in range(100))]
)
_DAYS = pl.Series([(FIRST_DAY + timedelta(days=day)).isoformat() for day in range(DAYS)])
# Between 06:00 and 18:00 the day is the same at every offset used, so "rate of the day" is clear.
_TIMES = pl.Series([f"T{s // 3600:02d}:{s // 60 % 60:02d}:{s % 60:02d}" for s in range(86_400)])
_OFFSETS = pl.Series(OFFSETS)


def _amount(rng: np.random.Generator, cents: Positions) -> tuple[Positions, pl.Series]:
    """Cut cents to 0, 1 or 2 decimals: the exact value and its text."""
    decimals = rng.integers(0, 3, size=len(cents))
    unit = np.array((100, 10, 1), dtype=np.int64)[decimals]
    exact = cents // unit * unit
    hundredths = np.where(decimals == 2, 11 + exact % 100, 0)
    place = np.where(decimals == 1, 1 + exact // 10 % 10, hundredths)
    whole = pl.Series(exact // 100).cast(pl.String)
    return exact, whole + _HUNDREDTHS.gather(pl.Series(place))


def rate_ids(tenant_index: Positions, currency: Positions, day: Positions) -> Positions:
    """Ids of the generated rates of a day; the euro itself uses the rate of the dollar."""
    pair = np.where(currency > 2, currency - 2, 0)
    return FIRST_RATE + (tenant_index * len(RATES_PER_EURO) + pair) * DAYS + day


def block(start: int, stop: int, seed: int, key_positions: Positions) -> pl.DataFrame:
    """Good payments for positions start..stop as text, with their cents for the totals."""
    rng = np.random.default_rng([seed, 1, start])
    position = np.arange(start, stop, dtype=np.int64)
    size = stop - start
    debt = position // 3
    tenant_index = key_positions // 3 % len(TENANTS)
    currency = CURRENCY_BY_DEBT[(debt * 2_654_435_761 >> 7) % len(CURRENCY_BY_DEBT)]
    day, second = rng.integers(0, DAYS, size=size), rng.integers(6 * 3600, 18 * 3600, size=size)
    offset = rng.integers(0, len(OFFSETS), size=size)
    paid, paid_text = _amount(rng, rng.integers(10_000, 10_000_000, size=size))
    given = rng.integers(0, 10_000, size=size) * (rng.integers(0, 10, size=size) < 3)
    discount, discount_text = _amount(rng, given)
    return pl.DataFrame(
        {
            "Id": FIRST_PAYMENT + key_positions,
            "TenantsId": np.array(TENANTS, dtype=np.int64)[tenant_index],
            "ActionsId": FIRST_ACTION + position,
            "DebtsId": FIRST_DEBT + debt,
            "PaymentDate": _DAYS.gather(pl.Series(day))
            + _TIMES.gather(pl.Series(second))
            + _OFFSETS.gather(pl.Series(offset)),
            "PaidAmount": paid_text,
            "DiscountAmount": discount_text,
            "CurrenciesId": currency,
            "CurrencyRatesId": rate_ids(tenant_index, currency, day),
            "paid_cents": paid,
            "discount_cents": discount,
        }
    )


@dataclass(slots=True)
class Truth:
    """What a reader of the file must find; grows block by block."""

    rows: int
    seed: int
    bad: list[tuple[int, int, int, str, str, str]] = field(default_factory=list)
    """(record number, first line, last line, kind, FieldName, ErrorCode)"""
    kinds: Counter[str] = field(default_factory=Counter)
    counts: Counter[int] = field(default_factory=Counter)
    paid: Counter[int] = field(default_factory=Counter)
    discount: Counter[int] = field(default_factory=Counter)
    hash_total: int = 0

    def add_bad(self, position: int, fault: Fault) -> int:
        """Note one fault and say the how-manieth of its kind it is, from 0."""
        nth = self.kinds[fault.kind]
        self.kinds[fault.kind] += 1
        named = "" if fault.structural else fault.field(nth)
        record, line = position + 1, position + 2
        self.bad.append((record, line, line, fault.kind, named, fault.code))
        return nth

    def add_good(self, good: pl.DataFrame) -> None:
        """Add good payments to the totals, in whole cents."""
        self.hash_total += int(good["Id"].sum())
        totals = good.group_by("CurrenciesId").agg(
            pl.len(), pl.col("paid_cents").sum(), pl.col("discount_cents").sum()
        )
        for currency, count, paid, discount in totals.iter_rows():
            self.counts[currency] += count
            self.paid[currency] += paid
            self.discount[currency] += discount

    def summary(self) -> dict[str, object]:
        """The content of truth.json: money as exact decimal texts by CurrenciesId."""
        return {
            "seed": self.seed,
            "rows": self.rows,
            "bad_rows": len(self.bad),
            "good_rows": self.rows - len(self.bad),
            "bad_rows_by_kind": dict(sorted(self.kinds.items())),
            "good_by_currency": {
                str(currency): {
                    "count": self.counts[currency],
                    "PaidAmount": str(Decimal(self.paid[currency]).scaleb(-2)),
                    "DiscountAmount": str(Decimal(self.discount[currency]).scaleb(-2)),
                }
                for currency in sorted(self.counts)
            },
            "hash_total_of_good_ids": str(self.hash_total),
        }


def payment_blocks(plan: Plan, truth: Truth) -> Iterator[bytes]:
    """The file block by block, header first, so that memory does not grow with the rows."""
    yield (HEADER + "\n").encode()
    for start in range(0, truth.rows, BLOCK_ROWS):
        stop = min(start + BLOCK_ROWS, truth.rows)
        low, high = np.searchsorted(plan.positions, (start, stop))
        inside = plan.positions[low:high] - start
        keys = np.arange(start, stop, dtype=np.int64)
        keys[inside] = plan.key_positions[low:high]
        frame = block(start, stop, truth.seed, keys)
        good = np.ones(stop - start, dtype=np.bool_)
        good[inside] = False
        truth.add_good(frame.filter(pl.Series(good)))
        lines = frame.select(pl.concat_str(*COLUMNS, separator=",").alias("line"))
        cells = frame.select(pl.col(COLUMNS).cast(pl.String))[inside].rows()
        spoiled = [
            FAULTS[kind].spoil(row, truth.add_bad(start + int(position), FAULTS[kind]))
            for row, position, kind in zip(cells, inside, plan.kinds[low:high], strict=True)
        ]
        yield _text(lines["line"].scatter(inside.tolist(), spoiled))


def _text(lines: pl.Series) -> bytes:
    buffer = io.BytesIO()
    lines.to_frame().write_csv(buffer, include_header=False, quote_style="never")
    return buffer.getvalue()


def write_payments(folder: Path, rows: int, bad_share: float, seed: int) -> Truth:
    """Write payments.csv with its truth.csv and truth.json into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    truth = Truth(rows, seed)
    digest, size = hashlib.sha256(), 0
    with (folder / "payments.csv").open("wb") as file:
        for part in payment_blocks(plan_faults(rows, bad_share, seed), truth):
            digest.update(part)
            size += file.write(part)
    with (folder / "truth.csv").open("w", encoding="utf-8", newline="") as text:
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(
            ("record_number", "first_line", "last_line", "kind", "FieldName", "ErrorCode")
        )
        writer.writerows(truth.bad)
    about = {"file": "payments.csv", "bytes": size, "sha256": digest.hexdigest()}
    summary = json.dumps(about | truth.summary(), indent=1)
    (folder / "truth.json").write_text(summary + "\n", encoding="utf-8")
    return truth


def write_currency_rates(folder: Path) -> int:
    """Write currency_rates.csv with every rate the generated payments refer to, in Id order."""
    lines = ["Id,TenantsId,FromCurrenciesId,ToCurrenciesId,ExchangeRate,EffectiveDate"]
    pairs = list(zip(CURRENCIES[1:], RATES_PER_EURO, strict=True))
    # The order of this walk is the one in which `rate_ids` counts.
    for tenant, (currency, level), day in product(TENANTS, pairs, range(DAYS)):
        moved = Decimal(level) * (10_000 + (day * 37 + currency * 11) % 101 - 50) / 10_000
        rate, when = moved.quantize(Decimal("0.0001")), FIRST_DAY + timedelta(days=day)
        lines.append(f"{FIRST_RATE + len(lines) - 1},{tenant},1,{currency},{rate},{when}")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "currency_rates.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return len(lines) - 1


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line and write what it asks for."""
    parser = argparse.ArgumentParser(description="Write sample extracts of any size.")
    records = parser.add_subparsers(dest="record", required=True)
    payments = records.add_parser("payments", help="payments.csv, truth.csv and truth.json")
    payments.add_argument("--rows", type=int, default=1_000_000, help="records to write")
    payments.add_argument("--bad-share", type=float, default=0.01, help="0 to 0.5")
    payments.add_argument("--clean", action="store_true", help="plant no faults")
    payments.add_argument("--seed", type=int, default=7)
    rates = records.add_parser("currency_rates", help="the rates generated payments refer to")
    for each in (payments, rates):
        each.add_argument("--out", type=Path, required=True, metavar="DIR")
    asked = parser.parse_args(arguments)
    if asked.record == "currency_rates":
        print(f"{write_currency_rates(asked.out)} currency rates in {asked.out}")
        return
    share = 0.0 if asked.clean else asked.bad_share
    truth = write_payments(asked.out, asked.rows, share, asked.seed)
    print(f"{truth.rows} payments, {len(truth.bad)} of them bad, in {asked.out}")


if __name__ == "__main__":
    main()
