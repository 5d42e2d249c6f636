"""The functions that keep leases: who holds what, and until when by the server's clock.

A lease is a row of a table that only its owner writes, so nobody can hold anything without a
function: each kind of lease has one, granted to the roles that need it. An advisory lock alone
would not do, because any login may take any of them. But a session with a lease also keeps an
advisory lock under a number that it drew at random. Nobody ever waits for that lock: it only shows
that the session still exists, and once it is gone the lease is free.

A lease that has expired belongs to a process that is frozen, or to a machine that is gone. Its
session may be ended, which frees what it holds. Neither the caller nor the holder chooses which
session is ended: it is the one that has the lock under the number of the lease.
"""

from collections.abc import Mapping
from enum import StrEnum

from schemas.derived.sql_names import LOADER, SAFE, SCHEMA, function_statements
from schemas.guards.accounts import NOT_YOURS, refuse
from schemas.guards.tenants import is_member

MOST_SECONDS = 86_400
"""The longest that a lease lasts without renewal, whatever its taker asks for."""
WAIT_SECONDS = 5
"""How long to wait for a lease that another open transaction is taking or releasing."""
CORRECTIONS_SECONDS = 600
"""How long to wait for the corrections of a batch; those of a large one take a minute."""
DECIDED_SECONDS = 60
"""How long a decision or a run of a scope waits for another to be saved."""


class Held(StrEnum):
    """Kinds of things that one session at a time can hold."""

    BATCH = "batch"
    SCOPE = "scope"
    DECISION = "decision"
    """The turn to decide about the breaks of a scope."""
    PUSH = "push"
    """An operation of the service."""
    EPOCH = "epoch"
    """The turn to write an epoch of sending."""
    RECEIVE = "receive"
    """The turn to say which batch a delivery is."""
    JOB = "job"
    """A job that somebody ordered."""


_HAS_MARK = """EXISTS (
            SELECT FROM pg_locks k JOIN pg_database d ON d.oid = k.database
            WHERE k.locktype = 'advisory' AND k.granted AND k.objsubid = 1 AND k.pid = {session}
            AND d.datname = current_database()
            AND ((k.classid::bigint << 32) | k.objid::bigint) = {mark})"""
"""SQL for whether a session is the one with a lease, since nobody else knew its random number."""
# Found first and ended then, since a planner may call a function before it checks conditions.
# A lease of an earlier version has no number, but the time when its session began.
ENDED_SESSION = f"""
    WITH due AS MATERIALIZED (
        SELECT l.owner, a.pid FROM {SCHEMA}.lease l
        JOIN pg_stat_activity a ON a.pid = l.pid AND CASE WHEN l.mark IS NULL
            THEN a.backend_start = l.started
            ELSE {_HAS_MARK.format(session="l.pid", mark="l.mark")} END
        WHERE l.name = {{name}} AND l.expires_at < clock_timestamp() AND a.pid <> pg_backend_pid()
    )
    SELECT due.owner FROM due WHERE pg_terminate_backend(due.pid)"""
"""SQL that ends the session of an expired lease and gives its owner."""

MINE = (
    "SELECT coalesce((SELECT backend_start FROM pg_stat_get_activity(pg_backend_pid())), "
    "pg_postmaster_start_time())"
)
"""SQL for when the asking session began. The session states this itself, because PostgreSQL does
not show it to an owner who is no superuser, nor to a session acting as another role than it signed
in as. It serves only to tell which leases a session renews."""

_LASTS = f"least({{}}, {MOST_SECONDS}) * interval '1s'"
_COLUMNS = ("owner", "account", "pid", "started", "since", "expires_at", "mark")

_OF_SCOPES = (Held.SCOPE, Held.DECISION)
_NO_RUN_OF_IT = refuse(
    NOT_YOURS,
    "%s sees no run of that scope, and holds none of it",
    f"coalesce({SCHEMA}.acting_name(), 'nobody who is logged in')",
)

_KEPT = {
    "lease_lives(session integer, mark bigint)": f"""RETURNS boolean LANGUAGE sql {SAFE} AS $$
        SELECT {_HAS_MARK.format(session="$1", mark="$2")}
    $$""",
    "keep_lease(name text, owner text, seconds integer, began timestamptz)": f"""
    RETURNS TABLE (pid integer, started timestamptz) LANGUAGE plpgsql {SAFE}
    SET lock_timeout = '{WAIT_SECONDS}s' AS $$
    #variable_conflict use_column
    DECLARE
        mark bigint := ('x' || left(md5(gen_random_uuid()::text), 16))::bit(64)::bigint;
    BEGIN
        -- What killed sessions left behind; one that somebody has in hand is left to him.
        DELETE FROM {SCHEMA}.lease l WHERE l.name IN (
            SELECT g.name FROM {SCHEMA}.lease g WHERE g.name <> $1
            AND g.mark IS NOT NULL AND NOT {SCHEMA}.lease_lives(g.pid, g.mark)
            FOR UPDATE SKIP LOCKED);
        PERFORM pg_advisory_lock(mark);
        RETURN QUERY INSERT INTO {SCHEMA}.lease AS l (name, {", ".join(_COLUMNS)})
        VALUES ($1, $2, session_user, pg_backend_pid(), $4, clock_timestamp(),
            clock_timestamp() + {_LASTS.format("$3")}, mark)
        ON CONFLICT (name) DO UPDATE SET ({", ".join(_COLUMNS)}) =
            ({", ".join(f"EXCLUDED.{name}" for name in _COLUMNS)})
        WHERE NOT CASE WHEN l.mark IS NOT NULL THEN {SCHEMA}.lease_lives(l.pid, l.mark)
            -- Of an earlier version, which is only known to live by what it renews.
            ELSE l.expires_at > clock_timestamp() END
        RETURNING l.pid, l.started;
        IF NOT FOUND THEN
            PERFORM pg_advisory_unlock(mark);
        END IF;
    EXCEPTION WHEN lock_not_available THEN
        PERFORM pg_advisory_unlock(mark);
    END $$""",
    # A name that is inserted and deleted again stays locked until the transaction ends, so that
    # nobody else can take it.
    "lock_name(name text)": f"""RETURNS void LANGUAGE plpgsql {SAFE} AS $$
    BEGIN
        INSERT INTO {SCHEMA}.lease (name, owner, account, pid, started, expires_at)
        VALUES ($1, '', session_user, pg_backend_pid(), now(), now());
        DELETE FROM {SCHEMA}.lease l WHERE l.name = $1;
    END $$""",
    "require_scope(hashed text)": f"""RETURNS void LANGUAGE plpgsql STABLE {SAFE} AS $$
    BEGIN
        -- Who only decides and signs begins no scope, and keeps nobody from one of others.
        IF NOT ({SCHEMA}.sees_all() OR {is_member(LOADER)}
            OR pg_has_role(session_user, current_user, 'MEMBER')
            OR EXISTS (SELECT FROM {SCHEMA}.reconciliation r WHERE r.scope_hash = hashed
                AND r.id = ANY ({SCHEMA}.seen_runs(false))))
        THEN
            {_NO_RUN_OF_IT};
        END IF;
    END $$""",
    "lock_scope(hashed text)": f"""RETURNS void LANGUAGE plpgsql {SAFE}
    SET lock_timeout = '{DECIDED_SECONDS}s' AS $$
    BEGIN
        PERFORM {SCHEMA}.lock_name('decided ' || $1);
    EXCEPTION WHEN lock_not_available THEN
        RAISE EXCEPTION 'another session has decided about breaks of this scope, or saved a run of '
            'it, and has not ended its transaction for {DECIDED_SECONDS} seconds';
    END $$""",
}
"""Functions that only the owner's functions call."""

LEASES_OF: Mapping[str, str] = _KEPT | {
    f"keep_{kind}(whose text, owner text, seconds integer, began timestamptz)": f"""
    RETURNS TABLE (pid integer, started timestamptz) LANGUAGE sql {SAFE} AS $$
        {f"SELECT {SCHEMA}.require_scope($1);" if kind in _OF_SCOPES else ""}
        SELECT k.pid, k.started FROM {SCHEMA}.keep_lease(rtrim('{kind} ' || $1), $2, $3, $4) k
    $$"""
    for kind in Held
} | {
    # Renews all leases of a session, since one process holds them all.
    "renew_lease(name text, session integer, began timestamptz, seconds integer)": f"""
    RETURNS boolean LANGUAGE sql {SAFE} AS $$
        WITH renewed AS (
            UPDATE {SCHEMA}.lease l SET expires_at = clock_timestamp() + {_LASTS.format("$4")}
            WHERE l.pid = $2 AND l.started = $3 AND l.account = session_user
            AND {SCHEMA}.lease_lives(l.pid, l.mark) RETURNING l.name
        )
        SELECT EXISTS (SELECT FROM renewed r WHERE r.name = $1)
    $$""",
    "drop_lease(name text)": f"""RETURNS void LANGUAGE sql {SAFE} AS $$
        WITH dropped AS (
            DELETE FROM {SCHEMA}.lease l WHERE l.name = $1 AND l.pid = pg_backend_pid()
            RETURNING l.mark
        )
        SELECT pg_advisory_unlock(d.mark) FROM dropped d
    $$""",
    "end_holder(name text)": f"""RETURNS text LANGUAGE sql {SAFE} AS $$
        {ENDED_SESSION.format(name="$1")}
    $$""",
    "lock_corrections(batch_id integer)": f"""RETURNS void LANGUAGE sql {SAFE}
    SET lock_timeout = '{CORRECTIONS_SECONDS}s' AS $$
        SELECT {SCHEMA}.lock_name('corrections ' || $1)
    $$""",
}  # fmt: skip
"""Definitions of the functions, by their heads."""

LEASES = tuple(function_statements(LEASES_OF))
"""Statements that create the functions; repeating them changes nothing."""
