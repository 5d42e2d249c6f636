"""The rules of a reconciliation: one value, read strictly, written canonically; their calendar."""
