"""SQL for what the money of a break is held against: a ceiling, and the limit for two people."""

from schemas.amounts import BEYOND
from schemas.derived.sql_names import SCHEMA

NO_AMOUNT = (
    f"(b.facts::json ->> 'amount{BEYOND}' IS NOT NULL "
    "OR b.code = 'REJECTED' AND coalesce(b.facts::json ->> 'note', '') <> '')"
)
"""SQL: whether an amount of a break `b` is more than a column holds, or is no number.

Of rejected rows the note says which of their amounts are none; one that can be read may be beside.
"""
_EACH = "regexp_matches(b.facts::json ->> 'amounts', '(?:^|, )[^ ]+ ([^ ,]+)', 'g')"
LARGEST = f"""greatest(abs(b.amount), CASE
    WHEN b.amount IS NULL OR coalesce(b.facts::json ->> 'field', '') = ''
    THEN (SELECT max(abs(m[1]::numeric)) FROM {_EACH} AS m) END)"""
"""SQL: the largest amount of a break `b`; of a whole record, of all it has.

The amount of such a break is the first one of its record, or is not there; `amounts` has them all.
So it has those of a debt that was paid in several currencies, whose break has no amount. What is
stored as no number (NaN) is larger than any.
"""
LIMIT = f"""(SELECT a.above::numeric FROM {SCHEMA}.acceptance_limit a
    -- Money of a currency that cannot be read is held to the least limit there is.
    WHERE b.currency IS NULL OR a.currency IN (b.currency::text, '*')
    ORDER BY b.currency IS NOT NULL AND a.currency = '*', a.above::numeric LIMIT 1)"""
"""SQL: above which amount an acceptance of the break `b` takes two people; null: never."""
