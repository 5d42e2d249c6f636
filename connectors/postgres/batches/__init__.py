"""Batches in the ledger: their rows staged, checked, applied, repaired and taken back."""
