"""Pure renderings of a reconciliation: a page, a workbook, texts and data files."""
