"""Two sides compared, row by row."""
