"""Long-term upkeep: proving, restoring and removing what is kept."""
