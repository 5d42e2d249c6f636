"""The disk: files that appear whole, scratch and spool folders, and what its errors mean."""
