"""The witness of the audit trail: its key, the places it is given to, and what waits for them."""
