"""Number formats of workbooks: the currency that one shows beside the number."""

import re
from collections.abc import Iterator
from functools import lru_cache

from schemas.currency_codes import code_of_sign

_TOKEN = re.compile(
    r"""\[\$(?P<sign>[^\]-]*)(?:-(?P<locale>[^\]]*))?\]
    | "(?P<quoted>[^"]*)" | \\(?P<escaped>.)
    | (?P<other>\[[^\]]*\] | [_*]. | [0-9\#?;@%.,])
    | (?P<bare>.)""",
    re.VERBOSE | re.DOTALL,
)


@lru_cache(maxsize=1024)
def currency_of(number_format: str) -> str | None:
    """The code of the one currency that a format names; None: it names none, or several.

    `$` and its like are those of several, unless a locale says which (`[$$-409]`).
    """
    found = {*_currencies(number_format)}
    return found.pop() if len(found) == 1 else None


def _currencies(number_format: str) -> Iterator[str]:
    text = ""
    for token in _TOKEN.finditer(f"{number_format};"):
        text += token["quoted"] or token["escaped"] or token["bare"] or ""
        if token["sign"] is not None and (
            code := code_of_sign(token["sign"], token["locale"] or "")
        ):
            yield code
        if token["sign"] is not None or token["other"]:
            # What is written between two numbers is the sign as a whole: `"TOTAL EUR"` is none.
            if code := code_of_sign(text):
                yield code
            text = ""
