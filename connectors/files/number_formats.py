"""Number formats of workbooks: the currency that one shows beside the number."""

import re
from collections.abc import Iterator
from functools import lru_cache

from schemas.currency_codes import code_of_sign, is_sign

MOST_SIGNS = 255
"""No number format of a spreadsheet is longer."""

_TOKEN = re.compile(
    r"""\[\$(?P<sign>[^\]-]*)(?:-(?P<locale>[^\]]*))?\]
    | "(?P<quoted>[^"]*)" | \\(?P<escaped>.)
    | (?P<other>\[[^\]]*\] | [_*]. | [0-9\#?;@%.,] | (?i:General))
    | (?P<bare>.)""",
    re.VERBOSE | re.DOTALL,
)


@lru_cache(maxsize=1024)
def currency_of(number_format: str) -> str | None:
    """The code of the one currency that a format names; None: it names none, or several.

    `$` and its like are those of several, unless a locale says which (`[$$-409]`); beside the sign
    of another currency they are a second one.
    """
    if len(number_format) > MOST_SIGNS:
        return None
    found = {*_currencies(number_format)}
    return found.pop() if len(found) == 1 else None


def _currencies(number_format: str) -> Iterator[str | None]:
    """The currencies of a format, None for a sign of which nobody knows whose it is."""
    text = ""
    for token in _TOKEN.finditer(f"{number_format};"):
        text += token["quoted"] or token["escaped"] or token["bare"] or ""
        if (token["sign"] or "").strip():
            yield code_of_sign(token["sign"], token["locale"] or "")
        if token["sign"] is not None or token["other"]:
            # What is written between two numbers is the sign as a whole: `"TOTAL EUR"` is none.
            code = code_of_sign(text)
            if code or is_sign(text):
                yield code
            text = ""
