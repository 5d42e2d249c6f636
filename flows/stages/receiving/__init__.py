"""A delivery becomes a batch: opened, recognised if known, kept, with its terms."""
