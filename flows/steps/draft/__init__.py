"""What can be told of a foreign file by looking at it, and what cannot."""
