"""The audit trail: proven, searched, and held against what the ledger says."""
