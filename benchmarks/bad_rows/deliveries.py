"""Payments of which a share is bad in one way, beside the rates they refer to."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from data_samples.generate import HEADER

RATES = "Id,TenantsId,FromCurrenciesId,ToCurrenciesId,ExchangeRate,EffectiveDate\n"
RATE_COUNT = 1_000
TENANT, OTHER_TENANT = 7, 8
NOWHERE = 10_000_000
"""Added to the number of a rate that does not exist."""
FIRST = 10_000_000_001
AT_ONCE = 100_000


@dataclass(frozen=True, slots=True)
class Way:
    """One way in which a row is bad."""

    name: str
    line: Callable[[int], str]
    """The n-th line where it is bad."""
    by_two: bool = False
    """Whether it takes two rows for either to be bad."""
    options: tuple[str, ...] = ()
    profile: str = ""


def good(n: int, **other: object) -> str:
    """The n-th line where it is good; `other` values by field."""
    cells = {
        "Id": FIRST + n,
        "TenantsId": TENANT,
        "ActionsId": 5_700_000_000 + n // 3,
        "DebtsId": 70_000_000 + n // 2,
        "PaymentDate": f"2026-{n % 12 + 1:02}-{n % 28 + 1:02}T{n % 24:02}:{n % 60:02}:00+02:00",
        "PaidAmount": f"{n % 9_000 + 10}.{n % 100:02}",
        "DiscountAmount": "0.50",
        "CurrenciesId": n % 8 + 1,
        "CurrencyRatesId": n % RATE_COUNT + 1,
    }
    return ",".join(map(str, {**cells, **other}.values()))


def _nine(n: int) -> str:
    return ",".join(f"x{n}{'abcdefghi'[column]}" for column in range(9))


WAYS = [
    Way("ragged", lambda n: good(n).rsplit(",", 3)[0]),
    Way("stray quote", lambda n: good(n).replace("+02:00", '+02:"00')),
    Way("no number", lambda n: good(n, PaidAmount=f"{n % 9_000} EUR")),
    Way("no time", lambda n: good(n, PaymentDate=f"{n % 28 + 1}.01.2026 {n}")),
    Way("value missing", lambda n: good(n, DebtsId="")),
    Way("other tenant", lambda n: good(n, TenantsId=OTHER_TENANT), options=("--tenant", "7")),
    Way("key twice, same content", lambda n: good(n // 2 * 2), by_two=True),
    Way("key twice, other content", lambda n: good(n, Id=FIRST + n // 2 * 2), by_two=True),
    Way("one key", lambda n: good(n, Id=FIRST)),
    Way("reference flagged", lambda n: good(n, CurrencyRatesId=NOWHERE + n)),
    Way(
        "reference rejected",
        lambda n: good(n, CurrencyRatesId=NOWHERE + n),
        profile='feed = "bad-rows"\n[policy]\ncomplete = true\n',
    ),
    Way("nine reasons", _nine),
]
BY_NAME = {way.name: way for way in WAYS}


def lines(way: Way, rows: int, percent: int) -> Iterator[str]:
    """Records one after the other, the bad ones spread evenly."""
    for n in range(rows):
        of = n // 2 if way.by_two else n
        bad = (of + 1) * percent // 100 > of * percent // 100
        yield (way.line(n) if bad else good(n)) + "\n"


def write_delivery(folder: Path, way: Way, rows: int, percent: int) -> list[str]:
    """Write the files of a delivery; their paths as the commands take them."""
    folder.mkdir(parents=True, exist_ok=True)
    payments, rates = folder / "payments.csv", folder / "rates.csv"
    rates.write_text(
        RATES
        + "".join(f"{n},{TENANT},1,2,1.5,2026-01-01T00:00:00\n" for n in range(1, RATE_COUNT + 1))
    )
    with payments.open("w") as file:
        file.write(HEADER + "\n")
        file.writelines(lines(way, rows, percent))
    return [str(payments), str(rates)]
