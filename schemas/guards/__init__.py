"""Rules that the database itself enforces: roles, leases, batch states, the audit trail."""
