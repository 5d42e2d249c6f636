"""The audit trail: verified, searched, and compared with the ledger."""
