"""The schema: its revisions, its owner, and the record kinds of one's own in it."""
