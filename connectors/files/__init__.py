"""CSV extracts as delivered: archives, encodings, dialects, records and their positions."""
