"""What stands for a sheet's cell that is not read: its value, and why it is not read."""

import re

TOO_LARGE = "a workbook does not hold whole numbers of this size exactly"
TOO_EARLY = "spreadsheets disagree about days before 1900-03-01"
NO_DAY = "no day of a calendar, or at midnight and nobody knows of which day"
NOT_READ = "this sort of cell is not read"
_WHYS = "|".join(map(re.escape, (TOO_LARGE, TOO_EARLY, NO_DAY, NOT_READ)))
REMARK = rf" \((?:{_WHYS})\)"
"""The remark within a cell that is not read."""
ERROR_VALUE = r"^\s*#+\s*$|#\xa1?\pL[\pL\d/_]*[!?]|#\pL/\pL|#NV\b|#GETTING_DATA\b|Err:\d"
"""Found in a cell whose formula has no value, in any spreadsheet's words: `#N/A`, `#BEZUG!`."""


def remarked(value: object, why: str) -> str:
    """A value that is not read, and why: a text that every field rejects."""
    return f"{value} ({why})"
