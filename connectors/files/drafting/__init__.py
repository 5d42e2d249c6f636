"""Analysing an unknown text, for the draft of a profile."""
