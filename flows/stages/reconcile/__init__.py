"""A reconciliation, and people's decisions about it."""
