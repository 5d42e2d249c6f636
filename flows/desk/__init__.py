"""The desk: pages on which finance reviews and signs, and operators repair batches."""
