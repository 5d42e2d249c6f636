"""The verdict on every row: read, normalised, checked, with keys and references."""
