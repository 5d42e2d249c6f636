"""Questions about delivered rows: where one is, what it said, how it is repaired."""
