"""Chunks: the records of an extract with their places, some of them at a time."""
