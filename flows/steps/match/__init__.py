"""One engine of matching: keys, pairs, and the cells in which they differ."""
