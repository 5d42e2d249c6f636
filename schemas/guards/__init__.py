"""What the database itself holds everybody to: roles, leases, batch states, the audit trail."""
