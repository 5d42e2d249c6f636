"""A feed profile drafted from a file: what its lines say of each column, sign and time."""
