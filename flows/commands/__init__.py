"""The commands of `recon`, one module per concern; each returns its exit code."""
