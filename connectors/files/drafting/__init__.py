"""What an unknown text looks like, for the draft of a profile."""
