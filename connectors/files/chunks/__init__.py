"""Chunks: the records of an extract with their places, a bounded number at a time."""
