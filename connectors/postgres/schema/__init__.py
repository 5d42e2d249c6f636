"""The schema: its revisions, its owner, and the record kinds of your own in it."""
