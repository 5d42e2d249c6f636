"""What is kept for years: proven, restored and removed."""
