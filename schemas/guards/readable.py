"""SQL for whether programs can read a text: what is only ever added to is read for ever.

Each answer is true or false, and never null. PostgreSQL has days and numbers that no program reads,
such as `infinity`, and functions that have no answer for them: a comparison with null refuses
nothing.
"""

MONEY = "[0-9]{1,20}([.][0-9]{1,18})?"
"""A pattern of exact amounts without a sign, as `schemas.amounts` holds them."""

DEEPEST, LARGEST = 100, "1e300"
"""Values within values that JSON may have, and the largest number: programs read no more than some
hundred of those, and no whole number of some thousand digits."""


def time_text(moment: str) -> str:
    """SQL for a time as events say it."""
    return f"to_char({moment} AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')"


def hashed(*values: str) -> str:
    """SQL for the hash of some values, as events say it."""
    return f"encode(sha256(convert_to(json_build_array({', '.join(values)})::text, 'UTF8')), 'hex')"


def is_read(json: str) -> str:
    """SQL for whether programs can read JSON, whatever is in it."""
    odd = f"strict $.** ? (@ > {LARGEST} || @ < -{LARGEST})"
    return (
        f"NOT (jsonb_path_exists({json}, 'strict $.**{{{DEEPEST}}}') "
        f"OR jsonb_path_exists({json}, '{odd}'))"
    )


def is_day(text: str) -> str:
    """SQL for whether a text is a day, as 2026-01-31."""
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
    """SQL for whether there is no value, or one that can be read."""
    return f"({value} IS NULL OR {readable})"
