"""Texts that a spreadsheet would take for a formula, in a CSV file or pasted."""

import re

# Both regular expression engines accept the characters themselves, but share no escape for them.
FORMULA = "^[\\s\\x00]*[=+\\-@|%\uff1d\uff0b\uff0d\uff20]|^[\\t\\r\\n\\x00]"
NUMBER = r"[+-]?[0-9]+(\.[0-9]+)?"


def is_formula(text: str) -> bool:
    """Whether a text is taken for a formula; a number is not."""
    return bool(re.match(FORMULA, text)) and not re.fullmatch(NUMBER, text)
