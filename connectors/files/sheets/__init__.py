"""Sheets of workbooks as CSV."""
