"""Columns of our own, which any extract may have beside the fields of its record."""

PARENT_COLUMN = "ReconRow"
"""The extract and record a corrected row stands for."""
ROW_NAME = r"^0*([0-9]{1,9}):0*([0-9]{1,18})$"
"""What a ReconRow looks like; a spreadsheet takes it for a time of day and puts zeros before it."""
BREAK_COLUMN = "BreakId"
"""The breaks a corrected row is to close, for whoever corrects it."""
QUOTED_COLUMN = "ReconQuoted"
"""Says of a row that a sign was put before what a spreadsheet would run."""
QUOTED = "yes"
OWN_COLUMNS = (PARENT_COLUMN, BREAK_COLUMN, QUOTED_COLUMN)
