"""What was delivered becomes a batch: opened, known, kept, with its terms."""
