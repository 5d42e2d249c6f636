"""A text as people see it: whichever blank it has counts as a usual one, what shows nothing not."""

import polars as pl

from schemas.life import UNSEEN


def as_seen(text: pl.Expr) -> pl.Expr:
    """A text without blanks around it, with each blank in it a usual one, and nothing invisible."""
    visible = text.str.replace_all(f"[{UNSEEN}]", "").str.replace_all(r"\s", " ")
    return visible.str.strip_chars(" ")
