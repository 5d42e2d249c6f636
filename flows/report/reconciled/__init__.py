"""Renderings of a reconciliation: a page, a workbook, texts and data files, all pure."""
