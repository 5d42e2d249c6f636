"""Where data comes from and goes to: extracts, PostgreSQL, the service. All I/O, no Prefect."""
