"""Batches in the ledger: their rows staged, judged, applied, repaired and taken back."""
