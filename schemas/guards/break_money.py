"""SQL for the money of a break: compared with ceilings, and with the limit for two people."""

from schemas.amounts import BEYOND
from schemas.derived.sql_names import SCHEMA

NO_AMOUNT = (
    f"(b.facts::json ->> 'amount{BEYOND}' IS NOT NULL "
    "OR b.code = 'REJECTED' AND coalesce(b.facts::json ->> 'note', '') <> '')"
)
"""SQL for whether an amount of a break `b` exceeds what a column holds, or is no number.

For rejected rows the note says which of their amounts are no numbers; readable ones may be beside.
"""
_EACH = "regexp_matches(b.facts::json ->> 'amounts', '(?:^|, )[^ ]+ ([^ ,]+)', 'g')"
LARGEST = f"""greatest(abs(b.amount), CASE
    WHEN b.amount IS NULL OR coalesce(b.facts::json ->> 'field', '') = ''
    THEN (SELECT max(abs(m[1]::numeric)) FROM {_EACH} AS m) END)"""
"""SQL for the largest amount of a break `b`; if it is about a whole record, of all its amounts.

The amount column of such a break has the first amount of its record, or none; `amounts` has all. So
it has those of a debt paid in several currencies, whose break has no amount. NaN, stored for what
is no number, is larger than any amount.
"""
LIMIT = f"""(SELECT a.above::numeric FROM {SCHEMA}.acceptance_limit a
    -- Money of a currency that cannot be read is held to the least limit there is.
    WHERE b.currency IS NULL OR a.currency IN (b.currency::text, '*')
    ORDER BY b.currency IS NOT NULL AND a.currency = '*', a.above::numeric LIMIT 1)"""
"""SQL for the amount above which accepting the break `b` takes two people; null for never."""
