"""Codes of currencies by ISO 4217, and the signs that stand for one of them."""

import re
from unicodedata import category

_LISTED = """
AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD
CAD CDF CHF CLP CNY COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD
GNF GTQ GYD HKD HNL HTG HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT
LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR
NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP
STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX USD UYU UZS VES VND VUV WST XAF XCD XCG
XOF XPF YER ZAR ZMW ZWG
"""
CODES = frozenset(_LISTED.split())
_OF_ONE = {
    "€": "EUR",
    "₽": "RUB",
    "₺": "TRY",
    "₴": "UAH",
    "₪": "ILS",
    "₫": "VND",
    "₹": "INR",
    "₦": "NGN",
    "₸": "KZT",
    "₾": "GEL",
    "₼": "AZN",
    "zł": "PLN",
    "Kč": "CZK",
    "R$": "BRL",
    "US$": "USD",
    "A$": "AUD",
    "AU$": "AUD",
    "CA$": "CAD",
    "HK$": "HKD",
    "NZ$": "NZD",
    "NT$": "TWD",
    "S$": "SGD",
    "SFr": "CHF",
    "CN¥": "CNY",
    "रु": "NPR",
    "د.إ": "AED",
    "د.ب": "BHD",
    "د.ج": "DZD",
    "د.ك": "KWD",
    "د.ت": "TND",
    "ج.م": "EGP",
    "ر.س": "SAR",
    "ر.ع": "OMR",
    "ر.ق": "QAR",
}
"""Signs that only one currency has, without a point at their end."""
_RUPEES = {"IN": "INR", "PK": "PKR", "LK": "LKR", "NP": "NPR", "MU": "MUR", "SC": "SCR"}
_OF_REGION = {
    "$": {
        "US": "USD",
        "CA": "CAD",
        "AU": "AUD",
        "NZ": "NZD",
        "SG": "SGD",
        "HK": "HKD",
        "TW": "TWD",
        "MX": "MXN",
        "AR": "ARS",
        "CL": "CLP",
        "CO": "COP",
    },
    "kr": {"SE": "SEK", "NO": "NOK", "DK": "DKK", "IS": "ISK"},
    "£": {"GB": "GBP"},
    "¥": {"JP": "JPY", "CN": "CNY"},
    "￥": {"JP": "JPY", "CN": "CNY"},
    "₩": {"KR": "KRW"},
    "Fr": {"CH": "CHF"},
    "fr": {"CH": "CHF"},
    "Ft": {"HU": "HUF"},
    "R": {"ZA": "ZAR"},
    "Rp": {"ID": "IDR"},
    "RM": {"MY": "MYR"},
    "lei": {"RO": "RON"},
    "лв": {"BG": "BGN"},
    "Rs": _RUPEES,
    "rs": _RUPEES,
    "₨": _RUPEES,
    "р": {"RU": "RUB", "BY": "BYN"},  # noqa: RUF001
    "руб": {"RU": "RUB", "BY": "BYN"},  # noqa: RUF001
    "din": {"RS": "RSD"},
    "дин": {"RS": "RSD"},
    "ден": {"MK": "MKD"},
    "KM": {"BA": "BAM"},
    "Lek": {"AL": "ALL"},
    "Lekë": {"AL": "ALL"},
    "Bs": {"BO": "BOB", "VE": "VES"},
    "S/": {"PE": "PEN"},
    "B/": {"PA": "PAB"},
    "Q": {"GT": "GTQ"},
    "Br": {"ET": "ETB", "BY": "BYN"},
    "DH": {"MA": "MAD", "AE": "AED"},
    "KSh": {"KE": "KES"},
    "Ksh": {"KE": "KES"},
    "CFA": {},
    "FCFA": {},
    "F CFA": {},
}
"""Signs of several currencies, or with another meaning too -> region -> currency.

Beside the sign of another currency, each of them counts as a second currency.
"""
_OTHERWISE_TOO = frozenset({"Q", "R", "KM", "Br", "Bs", "B/", "DH", "Fr", "fr", "din", "р"})  # noqa: RUF001
"""Signs among them with another meaning beside a number: kilometres, a quarter, a Friday."""
_LONGEST = 4
"""The most characters of a sign such as `Bds$`."""
# Source: Windows language code identifiers, as number formats of workbooks state them.
_REGIONS = {
    0x409: "US",
    0x809: "GB",
    0x1009: "CA",
    0xC0C: "CA",
    0xC09: "AU",
    0x1409: "NZ",
    0x1004: "SG",
    0x4809: "SG",
    0xC04: "HK",
    0x404: "TW",
    0x804: "CN",
    0x411: "JP",
    0x412: "KR",
    0x80A: "MX",
    0x2C0A: "AR",
    0x340A: "CL",
    0x240A: "CO",
    0x41D: "SE",
    0x414: "NO",
    0x814: "NO",
    0x406: "DK",
    0x40F: "IS",
    0x807: "CH",
    0x100C: "CH",
    0x810: "CH",
    0x40E: "HU",
    0x436: "ZA",
    0x1C09: "ZA",
    0x421: "ID",
    0x43E: "MY",
    0x418: "RO",
    0x402: "BG",
    0x4009: "IN",
    0x439: "IN",
    0x420: "PK",
    0x45B: "LK",
    0x461: "NP",
    0x419: "RU",
    0x423: "BY",
    0x241A: "RS",
    0x281A: "RS",
    0x42F: "MK",
    0x141A: "BA",
    0x101A: "BA",
    0x41C: "AL",
    0x400A: "BO",
    0x200A: "VE",
    0x280A: "PE",
    0x180A: "PA",
    0x100A: "GT",
    0x45E: "ET",
    0x1801: "MA",
    0x3801: "AE",
    0x441: "KE",
}
_AROUND = " \t\u00a0\u2009\u200e\u200f\u202f.,:+-()'"
"""Characters around a sign that are not part of it."""
_LANGUAGE = 0xFFFF
"""The bits of a locale that say the language; higher bits say the calendar and the digits."""


def code_of_sign(sign: str, locale: str = "") -> str | None:
    """The currency that a sign or code stands for; None if it stands for none or for several.

    `locale` is written as in a number format: a hexadecimal number (`41D`) or a tag (`sv-SE`).
    """
    sign = sign.strip(_AROUND)
    if sign in CODES:
        return sign
    return _OF_ONE.get(sign) or _OF_REGION.get(sign, {}).get(_region(locale))


def is_sign(text: str) -> bool:
    """Whether a text is or contains a sign of money, whether or not its currency is known."""
    return text.strip(_AROUND) in _OF_REGION or any(category(one) == "Sc" for one in text)


def is_money_alone(text: str) -> bool:
    """Whether a text is only a code or sign of money, and cannot mean anything else by a number."""
    sign = text.strip(_AROUND)
    if sign in CODES or sign in _OF_ONE:
        return True
    kinds = {category(one) for one in sign}
    of_money = "Sc" in kinds and all(kind == "Sc" or kind[0] in "LM" for kind in kinds)
    return (of_money and len(sign) <= _LONGEST) or (
        sign in _OF_REGION and sign not in _OTHERWISE_TOO
    )


def _region(locale: str) -> str:
    if re.fullmatch("[0-9A-Fa-f]{1,8}", locale):
        return _REGIONS.get(int(locale, 16) & _LANGUAGE, "")
    return locale.rpartition("-")[2].upper()
