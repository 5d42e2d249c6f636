"""Files examined without a database."""
