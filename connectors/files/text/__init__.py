"""Text: a content that is proven and decoded, its dialect, its lines and records."""
