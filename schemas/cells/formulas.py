"""Texts that a spreadsheet would take for a formula: in a CSV file that it opens, or pasted."""

import re

# Both readers of regular expressions take the signs themselves, and no one escape for them.
FORMULA = "^[\\s\\x00]*[=+\\-@|%\uff1d\uff0b\uff0d\uff20]|^[\\t\\r\\n\\x00]"
NUMBER = r"[+-]?[0-9]+(\.[0-9]+)?"


def is_formula(text: str) -> bool:
    """Whether a text is taken for a formula; a number is none."""
    return bool(re.match(FORMULA, text)) and not re.fullmatch(NUMBER, text)
