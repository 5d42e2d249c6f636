"""A reconciliation and what people decide about it."""
