"""The text of one cell and the value it means, strictly and in whole columns."""
