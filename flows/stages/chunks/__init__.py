"""Chunks of an extract on their way into PostgreSQL: split, validated, written."""
