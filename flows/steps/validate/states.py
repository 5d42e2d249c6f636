"""The states of rows after validation.

A module of its own, so that stages that only count rows need not load the validation.
"""

READY, REJECTED, SUPERSEDED, EXCLUDED = "ready", "rejected", "superseded", "excluded"
