"""The disk: files that appear whole, scratch and spool, and what its errors mean."""
