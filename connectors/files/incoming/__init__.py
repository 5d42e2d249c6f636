"""Incoming files: finding, completeness, unpacking, and what manifests state about them."""
