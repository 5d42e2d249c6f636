"""What the number formats of workbooks name: one currency, or nothing that can be told."""

import pytest

from connectors.files.sheets.number_formats import currency_of
from schemas.currency_codes import code_of_sign

FORMATS = [
    # a number format, the currency that it names
    ("General", None),
    ("0.00", None),
    ("0.0%", None),
    ("0.00E+00", None),
    ("yyyy-mm-dd", None),
    ("€ #,##0.00", "EUR"),
    ("#,##0.00 €;[Red]-#,##0.00 €", "EUR"),
    ('#,##0.00\\ "€"', "EUR"),
    ("#,##0.00\\ \\€", "EUR"),
    ("[$€-407] #,##0.00", "EUR"),
    ("[$€-2] #,##0.00", "EUR"),
    ("[$€-x-euro2]\\ #,##0.00", "EUR"),
    ("[$USD] #,##0.00", "USD"),
    ("[$USD-409]\\ #,##0.00", "USD"),
    ("[$ CHF-807] #,##0.00", "CHF"),
    ('#,##0.00 "EUR"', "EUR"),
    ('"EUR "0', "EUR"),
    ("EUR 0.00", "EUR"),
    ("\\E\\U\\R 0.00", "EUR"),
    ('(0.00 "GBP")', "GBP"),
    ("[$$-409]#,##0.00", "USD"),
    ("[$$-10409]#,##0.00", "USD"),
    ("[$$-en-CA]#,##0.00", "CAD"),
    ("[$$-407]#,##0.00", None),
    ("[$$-zzz]0", None),
    ("[$$]0", None),
    ("$#,##0.00", None),
    ('"$"#,##0.00_);\\("$"#,##0.00\\)', None),
    ("[$kr-41D] 0", "SEK"),
    ("#,##0.00 [$kr.-406]", "DKK"),
    ("#,##0.00 [$kr-sv-SE]", "SEK"),
    ('#,##0.00 "kr"', None),
    ("[$£-809]0", "GBP"),
    ("£0", None),
    ("[$¥-411]0", "JPY"),
    ("[$¥-804]0", "CNY"),
    ("¥0", None),
    ("[$-407]0.00", None),
    ("#,##0.00 [$zł-415]", "PLN"),
    # Accounting: a sign, blanks to fill, the number; and what stands for nothing, and for a text.
    ('_-* #,##0.00\\ "€"_-;\\-* #,##0.00\\ "€"_-;_-* "-"??\\ "€"_-;_-@_-', "EUR"),
    ('_([$$-409]* #,##0.00_);_([$$-409]* (#,##0.00);_([$$-409]* "-"??_);_(@_)', "USD"),
    ('_("$"* #,##0.00_);_("$"* (#,##0.00);_("$"* "-"??_);_(@_)', None),
    ("[$EUR] 0;[$USD] -0", None),
    ('0.0000 "EUR/USD"', None),
    ('"TOTAL EUR" 0', None),
    ('"TOP 10" 0', None),
    ('0 "pcs"', None),
    # A sign of several, or of none that is known, is a second currency.
    ('"$"#,##0.00;"€"#,##0.00', None),
    ('"€"#,##0.00;"$"#,##0.00', None),
    ('[>1000]"$"0;"€"0', None),
    ("[$$-407]0;[$€-407]0", None),
    ('0 \\€ "/" "$"', None),
    ('0 \\€ ; 0 "kr"', None),
    ("€0;₱0", None),
    ("[$DEM] 0;[$EUR] 0", None),
    ('"€"0 "of US $"', None),
    # So is one that is written in letters.
    ('"Rs" 0;"€" 0', None),
    ('"Rs." 0;"€" 0', None),
    ("€0 \\R\\s", None),
    ("[$EUR] 0;[$Rs-420] 0", None),
    ('"₨" 0;"€" 0', None),
    ('0 "FCFA";0 "€"', None),
    ('0 "руб.";0 "€"', None),  # noqa: RUF001
    ("[$Rs-420] #,##0.00", "PKR"),
    ("[$Rs.-4009] #,##0.00", "INR"),
    ("[$₨-ne-NP] 0", "NPR"),
    ("[$रु-461] 0", "NPR"),
    ("[$Rs-407] 0", None),
    ('"Rs" 0', None),
    ("#,##0.00[$р.-419]", "RUB"),  # noqa: RUF001
    ("#,##0.00 [$din.-241A]", "RSD"),
    ("#,##0.00 [$KM-141A]", "BAM"),
    ("[$S/-280A] 0", "PEN"),
    ("[$Bs.-400A] 0", "BOB"),
    ("[$Q-100A] 0", "GTQ"),
    ('0 "KM"', None),
    ("[$د.إ.\u200f-3801] 0", "AED"),
    ('0 "ر.س."', "SAR"),
    ("[$€-407] 0;[$-407]0", "EUR"),
    ("[$€-407] 0;[$ -407]0", "EUR"),
    ('General "€"', "EUR"),
    ('General\\ "EUR"', "EUR"),
    ('General" EUR"', "EUR"),
    ("[$€-407] GENERAL", "EUR"),
    ('"General EUR" 0', None),
    (f'0 "EUR"{"?" * 248}', "EUR"),
    (f'0 "EUR"{"?" * 249}', None),
    ("", None),
    ('"€', None),
    ("[$€-407", None),
]


@pytest.mark.parametrize(("number_format", "code"), FORMATS)
def test_what_a_number_format_names(number_format: str, code: str | None) -> None:
    assert currency_of(number_format) == code


@pytest.mark.parametrize(
    ("sign", "code"), [("EUR", "EUR"), ("Kč", "CZK"), ("eur", None), ("", None), ("XXX", None)]
)
def test_what_a_sign_stands_for(sign: str, code: str | None) -> None:
    assert code_of_sign(sign) == code
