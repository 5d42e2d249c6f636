"""The function that compares who may do what with the audit trail.

It runs as the owner, so that it checks everything for whoever asks: an account limited to tenants
sees no other account, and yet signs under the same rights. Such an account is told only that rights
differ from the trail, not whose.
"""

from collections.abc import Mapping

from schemas.derived.sql_names import SAFE, SCHEMA, listed
from schemas.guards.accounts import (
    ACCOUNT_FACTS,
    ACCOUNT_KEPT,
    LIMIT,
    LOGGED_IN,
    LOGGED_OUT,
    LOGIN_HASH,
)

_IN_PART = "an account, a login or a limit of acceptances is not what the trail says of it"
_PRESENT = {name: f"a.{name}" for name in ACCOUNT_FACTS} | {
    "password": f"{SCHEMA}.password_hash(a.name)"
}
_STATED = {name: f"l.said -> '{name}'" for name in _PRESENT}


def _last(of: str, *events: str) -> str:
    """SQL for the last of these events about each subject, which a member of the detail names."""
    return f"""(SELECT DISTINCT ON (s.said ->> '{of}') s.* FROM (
            SELECT e.id, c.position, e.detail::jsonb AS said FROM {SCHEMA}.event e
            LEFT JOIN {SCHEMA}.event_chain c ON c.event_id = e.id
            WHERE e.what IN ({listed(events)})) s
        ORDER BY s.said ->> '{of}', s.id DESC)"""


def _facts(values: Mapping[str, str]) -> str:
    """SQL for the facts of an account as JSON; events of earlier versions leave out nulls."""
    pairs = ", ".join(f"'{name}', {value}" for name, value in values.items())
    return f"jsonb_strip_nulls(jsonb_build_object({pairs}))"


def _says(event: str) -> str:
    """SQL for whether an event of this name has the hash of the login `o`."""
    return f"""EXISTS (SELECT FROM {SCHEMA}.event e
        WHERE e.what = '{event}' AND e.detail::jsonb ->> 'sha256' = o.told)"""


ALTERED_RIGHTS_OF: Mapping[str, str] = {
    "altered_rights()": f"""RETURNS TABLE (fault text) LANGUAGE plpgsql STABLE {SAFE} AS $$
    BEGIN
        RETURN QUERY WITH faults (fault) AS (
            SELECT CASE WHEN a.name IS NULL
                THEN format('the account %L that event %s tells of was removed',
                    l.said ->> 'name', l.id)
                ELSE format('the account %L is not what %s says of it', a.name,
                    coalesce('link ' || l.position, 'any event')) END
            FROM {SCHEMA}.account a FULL JOIN {_last("name", *ACCOUNT_KEPT)} l
                ON a.name = l.said ->> 'name'
            WHERE a.name IS NULL OR a.event_id <> l.id OR {_facts(_PRESENT)} <> {_facts(_STATED)}
            UNION ALL
            SELECT format('the limit of acceptances of the currency %L is not what %s says of it',
                coalesce(a.currency, l.said ->> 'currency'),
                coalesce('link ' || l.position, 'any event'))
            FROM {SCHEMA}.acceptance_limit a FULL JOIN {_last("currency", LIMIT)} l
                ON a.currency = l.said ->> 'currency'
            WHERE a.above IS DISTINCT FROM l.said ->> 'above' OR a.event_id <> l.id
            UNION ALL
            -- Who is logged in is who an event says, until one says that it has ended. Whoever
            -- ends all of them past the program gives nobody a right.
            SELECT format('the login of %L of %s is not what any event says of it', o.account,
                o.opened_at)
            FROM (SELECT one.account, one.opened_at, one.ended_at, {LOGIN_HASH} AS told
                FROM {SCHEMA}.login one) o
            WHERE NOT {_says(LOGGED_IN)}
                OR o.ended_at IS NULL AND {_says(LOGGED_OUT)})
        SELECT DISTINCT CASE WHEN {SCHEMA}.sees_all() THEN f.fault ELSE '{_IN_PART}' END
        FROM faults f ORDER BY 1;
    END $$""",
}
"""Definitions of the functions, by their heads."""
