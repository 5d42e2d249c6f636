"""Rows of tenants: PostgreSQL shows an account limited to tenants only theirs, whatever it asks.

The policies are part of the roles (`schemas.guards.roles`). They apply to all who read as members
of recon_reader: people, their desk, and their programs. The token of a login tells who acts; the
database keeps its hash, and a forged session setting is nobody's login.

| if nobody is logged in | a session reads |
|---|---|
| and there is no account | everything |
| and no account is bound to tenants | everything; a member of recon_desk: nothing |
| and one is | nothing of what is listed here |

Each policy asks who is acting once per statement, not per row.
"""

from collections.abc import Collection, Iterator, Mapping

from schemas.derived.sql_names import DESK, LOADER, READER, SAFE, SCHEMA, TARGET_NAMES, listed
from schemas.derived.views import SHOWN, VIEWS, quoted
from schemas.field import TENANT
from schemas.guards.accounts import NAMES_NO_LOGIN, NOT_ALLOWED, refuse, scope_within
from schemas.own_definition import CHANGED, MADE, REMOVED
from schemas.tables import EXTRACTS

_BUSY = (
    "the first account that is bound to tenants shuts the rows of the targets for everybody else, "
    "and somebody is reading or writing these: do it again when no batch is being applied"
)
_MINE = f"(SELECT {SCHEMA}.seen_tenants())"


def is_member(role: str) -> str:
    """SQL for whether the account signed in is a member of a role; false if there is none."""
    return (
        f"to_regrole('{role}') IS NOT NULL AND pg_has_role(session_user, to_regrole('{role}'), "
        "'MEMBER')"
    )


TENANTS_OF: Mapping[str, str] = {
    "sees_all()": f"""RETURNS boolean LANGUAGE sql STABLE {SAFE} AS $$
        SELECT CASE WHEN a.name IS NOT NULL THEN coalesce(a.tenants, '') = ''
            WHEN NOT {NAMES_NO_LOGIN} THEN false
            WHEN pg_has_role(session_user, current_user, 'MEMBER') THEN true
            WHEN {is_member(LOADER)} THEN true
            WHEN {is_member(DESK)} THEN NOT {SCHEMA}.has_accounts()
            ELSE NOT EXISTS (SELECT FROM {SCHEMA}.account o WHERE o.tenants <> '') END
        FROM {SCHEMA}.acting() a
    $$""",
    "seen_tenants()": f"""RETURNS bigint[] LANGUAGE sql STABLE {SAFE} AS $$
        SELECT coalesce(string_to_array(a.tenants, ' ')::bigint[], '{{}}') FROM {SCHEMA}.acting() a
    $$""",
    "seen_batches()": f"""RETURNS integer[] LANGUAGE sql STABLE {SAFE} AS $$
        -- A batch that is bound to no tenant may hold rows of any.
        SELECT coalesce(array_agg(b.id), '{{}}') FROM {SCHEMA}.batch b
        WHERE (b.profile::json ->> 'tenant')::bigint = ANY ({_MINE}::bigint[])
    $$""",
    "seen_runs(bound boolean)": f"""RETURNS integer[] LANGUAGE sql STABLE {SAFE} AS $$
        -- Those of these tenants alone; and where it is asked for, those that are bound to none.
        SELECT coalesce(array_agg(r.id), '{{}}') FROM {SCHEMA}.reconciliation r
        CROSS JOIN {SCHEMA}.acting() a
        WHERE a.tenants <> '' AND ({scope_within("r.scope")}
            OR NOT $1 AND r.scope !~ '(^|; )tenants ')
    $$""",
    "shut_targets()": f"""RETURNS void LANGUAGE plpgsql {SAFE} SET lock_timeout = '3s' AS $$
    DECLARE
        target text;
    BEGIN
        FOR target IN SELECT c.relname FROM pg_class c
            JOIN pg_policy p ON p.polrelid = c.oid AND p.polname = 'seen'
            WHERE c.relnamespace = '{SCHEMA}'::regnamespace AND NOT c.relrowsecurity
        LOOP
            EXECUTE format('ALTER TABLE {SCHEMA}.%I ENABLE ROW LEVEL SECURITY', target);
        END LOOP;
    EXCEPTION WHEN lock_not_available THEN
        {refuse(NOT_ALLOWED, _BUSY)};
    END $$""",
    "acting_name()": f"""RETURNS text LANGUAGE sql STABLE {SAFE} AS $$
        SELECT a.name FROM {SCHEMA}.acting() a
    $$""",
}
"""Definitions of the functions, by their heads."""

RUN_OF_EVENT = (
    "CASE WHEN {0}.batch_id IS NULL THEN substring({0}.detail FROM CASE {0}.what "
    "WHEN 'reconciled' THEN '\"id\" ?: ?([0-9]+)' ELSE '\"reconciliation\" ?: ?([0-9]+)' END) END"
)
"""SQL for the number, as text, of the run that an event is about."""
_BATCHES = f"ANY ((SELECT {SCHEMA}.seen_batches())::integer[])"


def _sees(rows: str) -> str:
    """SQL for whether the acting user sees a row: it is one of `rows`, or they see all."""
    return f"((SELECT {SCHEMA}.sees_all()) OR {rows})"


SEES_BATCH = _sees(f"batch_id = {_BATCHES}")
"""SQL for whether the acting user sees rows of a batch."""
_RUNS = f"ANY ((SELECT {SCHEMA}.seen_runs(true))::integer[])"
_TENANTS = f"ANY ({_MINE}::bigint[])"
_ME = f"(SELECT {SCHEMA}.acting_name())"
_OF_BATCH = (
    "extract", "receipt", "outcome", "before_image", "note", "send", "earlier_send",
    "secret_constant",
)  # fmt: skip


def _events(event: str) -> str:
    run = RUN_OF_EVENT.format(event)
    # How a kind is defined belongs to no tenant, and is in the rules of every report.
    defined = f"{event}.what IN ({listed((MADE, CHANGED, REMOVED))}) AND {_ME} IS NOT NULL"
    # One's own events count only without a batch: an undo also writes events of others' batches.
    return (
        f"{event}.batch_id IS NULL AND {event}.person = {_ME} OR {event}.batch_id = {_BATCHES} "
        f"OR {run} = ANY ((SELECT {SCHEMA}.seen_runs(true))::text[]) "
        f"OR {event}.id = ANY ((SELECT {SCHEMA}.seen_rules())::bigint[]) OR {defined}"
    )


def sees_event(event: str) -> str:
    """SQL for whether the acting user sees an event, also in sessions without a policy."""
    return _sees(_events(event))


_ACCOUNT = f"name = {_ME}"
SEES_ACCOUNT = _sees(_ACCOUNT)
"""SQL for whether the acting user sees an account, also in sessions without a policy."""
SHOWN_VIEW = (
    # The view reads as the owner, to whom no policy applies, so it has the condition itself.
    f"CREATE OR REPLACE VIEW {SCHEMA}.{SHOWN} WITH (security_barrier) AS {VIEWS[SHOWN]} "
    f"WHERE {SEES_BATCH}"
)
SEEN: Mapping[str, str] = {
    "batch": f"id = {_BATCHES}",
    **dict.fromkeys(_OF_BATCH, f"batch_id = {_BATCHES}"),
    # A run over all tenants does not say what it found of each; its breaks and decisions do.
    "reconciliation": f"id = ANY ((SELECT {SCHEMA}.seen_runs(false))::integer[])",
    "break_state": f"reconciliation_id = {_RUNS} OR tenant = {_TENANTS}",
    "decision": f"reconciliation_id = {_RUNS} OR break_id IN (SELECT b.break_id FROM "
    f"{SCHEMA}.break_state b WHERE b.tenant = {_TENANTS})",
    "signature": f"reconciliation_id = {_RUNS}",
    "event": _events("event"),
    "job": f"person = {_ME}",
    "look": f"account = {_ME}",
    # Administrators of accounts are bound to no tenants, and see all.
    "account": _ACCOUNT,
    "login": f"account = {_ME}",
    "subscription": f"account = {_ME}",
    "report_mail": f"account = {_ME}",
}
"""SQL for the rows that an account limited to tenants sees, by table."""


def _of_target(name: str, row: str = "") -> str:
    if TENANT in EXTRACTS[name].columns:
        return f"{row}{quoted(TENANT)} = {_TENANTS}"
    return f"{row}batch_id = {_BATCHES}"


SEEN_OF_TARGETS: Mapping[str, str] = {name: _of_target(name) for name in TARGET_NAMES}
"""The same for targets: rows that name its tenants, or else rows that batches of these wrote."""


def sees_target(name: str, row: str) -> str:
    """SQL for whether the acting user sees a row of a target, also in sessions without a policy."""
    return _sees(_of_target(name, f"{row}."))


def policies() -> Iterator[str]:
    """The statements that create the policies; each may be run again.

    The policy of a target is enforced only once an account is bound to tenants, because PostgreSQL
    then lets only the owner COPY into the table, and inserts take longer. The first such account
    enforces it (`shut_targets`).
    """
    yield from policies_of((*SEEN, *SEEN_OF_TARGETS))
    yield SHOWN_VIEW


def policies_of(names: Collection[str]) -> Iterator[str]:
    for name in names:
        rows = {**SEEN, **SEEN_OF_TARGETS}[name]
        table = f"{SCHEMA}.{name}"
        for policy, terms in {
            "loaded": f"TO {LOADER} USING (true) WITH CHECK (true)",
            "seen": f"FOR SELECT TO {READER} USING {_sees(rows)}",
            # Roles that have a right from somebody else keep it.
            "granted": f"USING ((SELECT NOT pg_has_role(current_user, '{READER}', 'MEMBER')))",
        }.items():
            yield f"DROP POLICY IF EXISTS {policy} ON {table}"
            yield f"CREATE POLICY {policy} ON {table} {terms}"
        if name in SEEN:
            yield f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY"
    turned = "; ".join(
        f"EXECUTE format('ALTER TABLE {SCHEMA}.{name} %s ROW LEVEL SECURITY', turned)"
        for name in names
        if name in SEEN_OF_TARGETS
    )
    yield (
        "DO $$ DECLARE turned text := CASE WHEN EXISTS (SELECT FROM "
        f"{SCHEMA}.account a WHERE a.tenants <> '') THEN 'ENABLE' ELSE 'DISABLE' END; "
        f"BEGIN {turned}; END $$"
    )
