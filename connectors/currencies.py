"""Currency codes by CurrenciesId, from a small table of the user: the API document has none."""

import csv
from pathlib import Path

from connectors.errors import SettingsError
from connectors.printable import shown
from schemas.cells.reading import read_integer
from schemas.field import Kind

HEADER = ("CurrenciesId", "Code")
TODO = (
    "Correct RECON_CURRENCIES or that file, or unset it: currencies are shown as numbers then. "
    "Run the same command again."
)


def read_currencies(path: Path | None) -> dict[str, str]:
    """The codes of a CSV file `CurrenciesId,Code`, by number; empty without a file.

    Raises SettingsError with file and line for an unusable table.
    """
    if path is None:
        return {}
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.reader(file, strict=True))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise SettingsError(f"RECON_CURRENCIES={path} cannot be read: {error}. {TODO}") from error
    if not rows or tuple(rows[0]) != HEADER:
        raise SettingsError(f"{path}: the first line must be {','.join(HEADER)}. {TODO}")
    codes: dict[str, str] = {}
    for line, row in enumerate(rows[1:], start=2):
        number = currency_number(row[0]) if len(row) == len(HEADER) else None
        if number is None or not row[1].strip():
            content = shown(str(row))
            raise SettingsError(
                f"{path}, line {line}: {content} is not a CurrenciesId and its code."
            )
        if str(number) in codes:
            raise SettingsError(f"{path}, line {line}: CurrenciesId {number} is named twice.")
        codes[str(number)] = row[1].strip()
    return codes


def currency_number(text: str) -> int | None:
    """The CurrenciesId written in digits; None for any other text or beyond its range."""
    value = read_integer(Kind.INTEGER, text) if text.isdecimal() else None
    return value if isinstance(value, int) else None
