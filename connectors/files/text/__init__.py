"""Text: proven and decoded content, its dialect, its lines and records."""
