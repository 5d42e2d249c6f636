"""The rules of a reconciliation: one value, read strictly and written canonically; a calendar."""
