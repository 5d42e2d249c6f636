"""A feed profile drafted from a file: what its lines say about each column, sign and time."""
