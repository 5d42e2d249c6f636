"""Columns of our own, which any extract may have beside its record's fields."""

PARENT_COLUMN = "ReconRow"
"""The extract and record that a corrected row replaces."""
ROW_NAME = r"^0*([0-9]{1,9}):0*([0-9]{1,18})$"
"""The form of a ReconRow; spreadsheets take it for a time of day and add leading zeros."""
BREAK_COLUMN = "BreakId"
"""The breaks that a corrected row is meant to close, for the person correcting it."""
QUOTED_COLUMN = "ReconQuoted"
"""Says that a sign was put before a cell of the row that a spreadsheet would run."""
QUOTED = "yes"
OWN_COLUMNS = (PARENT_COLUMN, BREAK_COLUMN, QUOTED_COLUMN)
