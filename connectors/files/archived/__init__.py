"""The archive: delivered contents kept by their hash, and read in blocks."""
