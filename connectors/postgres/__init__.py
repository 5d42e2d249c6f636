"""PostgreSQL: the ledger, staged rows, targets, and all that is written in it."""
