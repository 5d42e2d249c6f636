"""What a row is once it was validated.

Stages that only count rows have these names without what validates them, which is far more to load.
"""

READY, REJECTED, SUPERSEDED, EXCLUDED = "ready", "rejected", "superseded", "excluded"
