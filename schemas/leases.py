"""The functions that keep leases: who holds what, and until when by the server's clock.

A lease that ran out belongs to a process that is frozen, or to a machine that is gone: its session
may be ended, so that what it holds is free. They run as the owner of the schema, because nobody
else writes the table; whose session is ended is never for the caller to say. When a session began
it has to say itself: an owner who is no superuser is not shown that of others.
"""

from collections.abc import Iterator, Mapping

from schemas.sql import SCHEMA

_SAFE = "SECURITY DEFINER SET search_path = pg_catalog, pg_temp"

# Found first and ended then: a planner is free to call a function before it looks at the rest.
ENDED_SESSION = f"""
    WITH due AS MATERIALIZED (
        SELECT l.owner, a.pid FROM {SCHEMA}.lease l
        JOIN pg_stat_activity a ON a.pid = l.pid AND a.backend_start = l.started
        WHERE l.name = {{name}} AND l.expires_at < clock_timestamp() AND a.pid <> pg_backend_pid()
    )
    SELECT due.owner FROM due WHERE pg_terminate_backend(due.pid)"""
"""Ends the session of a lease that ran out, and names its owner."""

MINE = "SELECT backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()"
"""When the session that asks began. One that says another time only keeps itself from being ended:
no session of its number began then."""

# Who names a lock does not hold it: only its session keeps the lease that is named after it.
_NAMED = "'^(batch [0-9]{1,9}|scope .*)$'"
_HOLDS = f"""($1 !~ {_NAMED} OR EXISTS (
            SELECT FROM pg_locks k JOIN pg_database d ON d.oid = k.database
            WHERE k.locktype = 'advisory' AND k.granted AND k.pid = pg_backend_pid()
            AND d.datname = current_database() AND k.objsubid = 2
            AND k.classid::bigint =
                hashtext('recon ' || split_part($1, ' ', 1))::bigint & 4294967295
            AND k.objid::bigint = CASE WHEN $1 ~ '^batch' THEN split_part($1, ' ', 2)::bigint
                ELSE hashtext(substr($1, 7))::bigint & 4294967295 END))"""

LEASES_OF: Mapping[str, str] = {
    "keep_lease(name text, owner text, seconds integer, began timestamptz)": f"""
    RETURNS TABLE (pid integer, started timestamptz) LANGUAGE sql {_SAFE} AS $$
        INSERT INTO {SCHEMA}.lease AS l (name, owner, account, pid, started, expires_at)
        SELECT $1, $2, session_user, pg_backend_pid(), $4, clock_timestamp() + $3 * interval '1s'
        WHERE {_HOLDS}
        ON CONFLICT (name) DO UPDATE SET owner = EXCLUDED.owner, account = EXCLUDED.account,
            pid = EXCLUDED.pid, started = EXCLUDED.started, expires_at = EXCLUDED.expires_at
        WHERE $1 ~ {_NAMED} OR (l.pid, l.started) = (EXCLUDED.pid, EXCLUDED.started)
        RETURNING l.pid, l.started
    $$""",
    "renew_lease(name text, session integer, began timestamptz, seconds integer)": f"""
    RETURNS boolean LANGUAGE sql {_SAFE} AS $$
        WITH renewed AS (
            UPDATE {SCHEMA}.lease l SET expires_at = clock_timestamp() + $4 * interval '1s'
            WHERE l.name = $1 AND l.pid = $2 AND l.started = $3 AND l.account = session_user
            RETURNING 1
        )
        SELECT EXISTS (SELECT FROM renewed)
    $$""",
    "drop_lease(name text)": f"""RETURNS void LANGUAGE sql {_SAFE} AS $$
        DELETE FROM {SCHEMA}.lease l WHERE l.name = $1 AND l.pid = pg_backend_pid()
    $$""",
    "end_holder(name text)": f"""RETURNS text LANGUAGE sql {_SAFE} AS $$
        {ENDED_SESSION.format(name="$1")}
    $$""",
}
"""Head -> rest of the definition."""


def _statements() -> Iterator[str]:
    for head, rest in LEASES_OF.items():
        yield f"CREATE OR REPLACE FUNCTION {SCHEMA}.{head} {rest}"
        yield f"REVOKE ALL ON FUNCTION {SCHEMA}.{head} FROM PUBLIC"


LEASES = tuple(_statements())
"""Statements that put the functions in place; repeating them changes nothing."""
