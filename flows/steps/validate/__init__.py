"""The verdict on every row: cells are read, normalised and checked, with keys and references."""
