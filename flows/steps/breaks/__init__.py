"""Breaks: made, numbered, valued, aged and carried from run to run."""
