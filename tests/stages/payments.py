"""Small payment files for the stories, and how their cells may be written."""

from pathlib import Path

HEADER = (
    "Id,TenantsId,ActionsId,DebtsId,PaymentDate,PaidAmount,DiscountAmount,CurrenciesId,"
    "CurrencyRatesId"
)


def line(number: int, *, amount: str = "10.50", tenant: int = 7, day: int = 1) -> str:
    """One good payment."""
    return f"{number},{tenant},1,2,2026-01-{day:02}T10:00:00+01:00,{amount},0.5,1,9"


def write(path: Path, *lines: str) -> str:
    """A payments file of these records; returns its path as the commands take it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([HEADER, *lines]) + "\n")
    return str(path)


_WIDE = {sign: sign + 0xFEE0 for sign in range(0x21, 0x7F)}


def wide(text: str) -> str:
    """A text in full-width signs."""
    return text.translate(_WIDE)
