"""Sides of a comparison: files and tables, read one column at a time."""
