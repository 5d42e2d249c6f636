"""Files examined without any database."""
