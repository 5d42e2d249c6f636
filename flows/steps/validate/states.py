"""What a row is once it was validated, and what tells of lines that are no record.

Stages that only count rows have these names without what validates them, which is far more to load.
"""

READY, REJECTED, SUPERSEDED, EXCLUDED = "ready", "rejected", "superseded", "excluded"
COMMENTS = "comments"
"""What tells of lines that are no record, as the feed says of them."""
VALUELESS = "valueless"
"""What tells of lines that become no record."""
