"""SQL for whether programs can read a text; rows that are never changed are read for ever.

Each answer is true or false, never null, since a comparison with null refuses nothing. PostgreSQL
has days and numbers that no program reads, such as `infinity`, and functions without an answer for
them.
"""

MONEY = "[0-9]{1,20}([.][0-9]{1,18})?"
"""Pattern of exact amounts without a sign, as `schemas.amounts` holds them."""

DEEPEST, LARGEST = 100, "1e300"
"""Limits for JSON: the nesting of values, and the largest number. Programs read only some hundred
levels, and no integers of thousands of digits."""


def time_text(moment: str) -> str:
    """SQL for a time as events have it."""
    return f"to_char({moment} AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')"


def hashed(*values: str) -> str:
    """SQL for the hash of values as events have it."""
    return f"encode(sha256(convert_to(json_build_array({', '.join(values)})::text, 'UTF8')), 'hex')"


def is_read(json: str) -> str:
    """SQL for whether programs can read this JSON, whatever is in it."""
    odd = f"strict $.** ? (@ > {LARGEST} || @ < -{LARGEST})"
    return (
        f"NOT (jsonb_path_exists({json}, 'strict $.**{{{DEEPEST}}}') "
        f"OR jsonb_path_exists({json}, '{odd}'))"
    )


def is_day(text: str) -> str:
    """SQL for whether a text is a day such as 2026-01-31."""
    return (
        f"(CASE WHEN {text} ~ '^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}$' "
        f"THEN {text} = to_char({text}::date, 'YYYY-MM-DD') ELSE false END)"
    )


def is_money(text: str) -> str:
    """SQL for whether a text is an exact amount without a sign."""
    return f"coalesce({text} ~ '^{MONEY}$', false)"


def is_amount(number: str) -> str:
    """SQL for whether a number is an exact amount."""
    return f"coalesce(abs({number}) < 1e20 AND scale({number}) <= 18, false)"


def or_none(value: str, readable: str) -> str:
    """SQL for whether there is no value, or a readable one."""
    return f"({value} IS NULL OR {readable})"
