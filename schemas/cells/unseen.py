"""A text as people see it: every blank is an ordinary one, and invisible characters are gone."""

import polars as pl

from schemas.life import UNSEEN


def as_seen(text: pl.Expr) -> pl.Expr:
    """A text without blanks around it, with ordinary blanks inside, and nothing invisible."""
    visible = text.str.replace_all(f"[{UNSEEN}]", "").str.replace_all(r"\s", " ")
    return visible.str.strip_chars(" ")
