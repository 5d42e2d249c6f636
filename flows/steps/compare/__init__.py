"""Comparing two tables of any columns: pure judgements over one column of both sides at a time.

readings  what the values of a column are, and which of them can be the same across types
keys      which row of one side is which row of the other
cells     where two columns differ, exactly, with both values and the difference between them
"""
