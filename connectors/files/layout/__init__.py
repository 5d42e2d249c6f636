"""The layout of a file: its header, the lines around its records, and its footer."""
