"""The embedded server: a real PostgreSQL from a wheel, started and stopped."""
