"""Sends: planned, claimed and answered in the database, through one gate."""
