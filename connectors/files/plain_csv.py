"""Plain CSV: what a reader that knows a delimiter and a quote alone reads as the feed means it.

Asked of all records that a dialect can write, and of one text; `plain_records` asks it of a block.
Such a reader knows neither delimiters of several signs, nor escapes, nor blanks beside a quote.
"""

import re

from connectors.files.dialect import Dialect


def is_csv(dialect: Dialect) -> bool:
    """Whether every record of a dialect is plain."""
    return len(dialect.delimiter) == 1 and not dialect.escape and not dialect.blanks


def is_plain_text(text: str, dialect: Dialect) -> bool:
    """Whether one record is plain."""
    if len(dialect.delimiter) > 1 or (dialect.escape and "\\" in text):
        return False
    quote = re.escape(dialect.quote.decode())
    return not (dialect.blanks and re.search(rf"[ \t]{quote}|{quote}[ \t]", text))
