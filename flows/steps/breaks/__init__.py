"""Breaks: made, numbered, priced, aged and carried from run to run."""
