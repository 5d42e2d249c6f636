"""Sides of a comparison: files and tables, read a column at a time."""
