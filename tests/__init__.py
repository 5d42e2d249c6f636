"""Tests of recon; a package, so that no installed one called `tests` is taken for it."""
