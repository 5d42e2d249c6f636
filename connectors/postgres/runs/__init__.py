"""Reconciliations in the ledger: what they read, their breaks, and what people decided."""
