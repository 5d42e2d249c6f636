"""The functions that write the audit trail: nobody else can, and each stamps who and when.

They run as the owner of the schema and are granted one by one (`schemas.guards.roles`). Rows that
belong to an event (decisions, signatures, a run and its breaks) come as a draft: a temporary table
of the owner's that the caller fills, so that nothing of the caller's ever runs with the owner's
rights.

What `recon audit verify` holds rows and events to is held here first: a name, a hash or a run that
does not fit its event is refused, since it could never be taken from the trail again.

Links are written when the transaction of the event commits: only then is the turn at the chain
taken, so that no run waits for another run's work. A session that keeps the turn holds up nobody:
after TURN_SECONDS the event is noted as waiting, and the next one to get the turn links it.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from schemas.accounts import ACTS, MAY_DECIDE, MAY_SIGN
from schemas.derived.sql import SCHEMA
from schemas.guards.accounts import (
    ACCOUNT_EVENTS,
    ACCOUNTS_OF,
    NOT_ALLOWED,
    NOT_YOURS,
    refuse,
    require,
)
from schemas.guards.batch_states import OF_MERGER, is_listed, lacks_merger
from schemas.life import BESIDE, OPEN, RECONCILED, SIDES, BreakState, Choice, Role

GENESIS = "0" * 64
"""What the first link names as the hash before it."""
TURN_SECONDS = 1
TURN = "chain_turn"

DECIDED: Mapping[str, str] = {
    Choice.ACCEPT: "breaks accepted",
    Choice.REOPEN: "breaks reopened",
    Choice.RESOLVE: "breaks resolved",
    Choice.ASSIGN: "breaks assigned",
    Choice.COMMENT: "breaks commented",
}
"""The event of each kind of decision."""
SIGNED: Mapping[str, str] = {
    Role.PREPARED: "report prepared",
    Role.APPROVED: "report approved",
}
"""The event of each kind of signature."""
SAVED = "reconciled"
"""The event of a run that was saved."""
TAKEN = "reconciliation taken over"
"""The event of a scope that was taken over."""
RUN_FACTS = (
    "id", "scope_hash", "as_of", "rules_hash", "verdict", "report_hash", "chain_hash",
    "previous_id", "decided_through", "folder"
)  # fmt: skip
"""What the event of a run says of its row."""
DRAFTED = ("decision", "signature", "reconciliation", "break_state")


def breaks_digest(table: str) -> str:
    """SQL for the hash of everything that is kept of breaks, rows `b` of a table."""
    return (
        "encode(sha256(coalesce(string_agg(sha256(convert_to(b::text, 'UTF8')), ''::bytea "
        f"ORDER BY b.break_id COLLATE \"C\"), ''::bytea)), 'hex') FROM {table} b"
    )


def _texts(words: Iterator[str] | list[str]) -> str:
    return ", ".join(f"'{word}'" for word in words)


def _fits(column: str, pairs: Mapping[str, str]) -> str:
    """SQL for the event that fits what a drafted row says."""
    return " ".join(
        [f"CASE {column}", *(f"WHEN '{one}' THEN '{event}'" for one, event in pairs.items()), "END"]
    )


_FACTS = ", ".join(f"'{name}', run.{name}" for name in RUN_FACTS)
_LINE = "d.reconciliation_id, d.break_id, d.what, d.by, d.reason, d.until, d.side, d.owner"
_PERSON = "lower(regexp_replace(btrim({}), '\\s+', ' ', 'g'))"
_SAFE = "SECURITY DEFINER SET search_path = pg_catalog, pg_temp"
_SAID = (
    "place, before, one.id, one.batch_id, "
    "to_char(one.at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"'), "
    'one.what, one."by", one.reason, one.detail'
)
_TOLD = "batch_id integer, what text, said_by text, reason text, detail text"


def _roles_asked(events: Mapping[Any, str], may: Mapping[Any, Any]) -> str:
    """SQL branches: of an event, the account that acts, refused where its roles do not do."""
    asked = {event: require(may[one], f"'{ACTS[one]}'") for one, event in events.items()}
    return " ".join(f"WHEN '{event}' THEN {person}" for event, person in asked.items())


def _as_the_person(said: str) -> str:
    """SQL that refuses a name which is not that of the account that acts."""
    message = "%s is logged in, and cannot act as %L"
    return f"IF person <> {said} THEN {refuse(NOT_ALLOWED, message, f'person, {said}')}; END IF;"


_PREPARED_IT = refuse(
    NOT_ALLOWED,
    "nobody approves what they prepared: %s prepared the report of reconciliation %s",
    "whose, number",
)
_ACCEPTED_IN_IT = refuse(
    NOT_ALLOWED,
    "nobody approves a run in which they accepted a break: %s accepted %s of reconciliation %s",
    "whose, accepted, number",
)
_CHANGED_RULES = refuse(
    NOT_ALLOWED,
    "nobody approves a run whose rules they changed: %s made reconciliation %s by other rules "
    "than the one before",
    "whose, number",
)

FUNCTIONS_OF: Mapping[str, str] = {
    **ACCOUNTS_OF,
    f"new_event({_TOLD})": f"""RETURNS bigint LANGUAGE sql {_SAFE} AS $$
        INSERT INTO {SCHEMA}.event (batch_id, at, what, "by", reason, detail, account, person)
        VALUES ($1, clock_timestamp(), $2, $3, $4, $5, session_user, ({SCHEMA}.acting()).name)
        RETURNING id
    $$""",
    f"add_event({_TOLD})": f"""RETURNS bigint LANGUAGE plpgsql {_SAFE} AS $$
    BEGIN
        IF what IN ({
        _texts([*DECIDED.values(), *SIGNED.values(), SAVED, TAKEN, *ACCOUNT_EVENTS])
    }) THEN
            RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege', MESSAGE =
                'permission denied for event ' || quote_literal(what)
                || ': it is only written with what it tells of';
        END IF;
        -- No other spelling of those either, nor a second line of its own in a list of events.
        IF what !~ '^[a-z0-9_]+( [a-z0-9_]+)*$'
            OR what ~ '^(report (approv|prepar)|breaks|reconcil|account|password|log)'
        THEN
            RAISE EXCEPTION 'no event is named %', quote_literal(what);
        END IF;
        IF what IN ({_texts([*OF_MERGER])}) AND {lacks_merger()}
            AND NOT {is_listed("what", "batch_id")}
        THEN
            RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege', MESSAGE =
                'permission denied for event ' || quote_literal(what) || ': the account '
                || session_user || ' applies no rows';
        END IF;
        RETURN {SCHEMA}.new_event(batch_id, what, said_by, reason, detail);
    END $$""",
    "took_over(said_by text, detail text)": f"""RETURNS bigint LANGUAGE sql {_SAFE} AS $$
        SELECT {SCHEMA}.new_event(NULL, '{TAKEN}', $1, NULL, $2)
    $$""",
    "draft(target text)": f"""RETURNS void LANGUAGE plpgsql {_SAFE} AS $$
    DECLARE
        stamped name;
    BEGIN
        IF target NOT IN ({_texts([*DRAFTED])}) THEN
            RAISE EXCEPTION 'there is no draft of %', target;
        END IF;
        EXECUTE format('CREATE TEMP TABLE %I (LIKE {SCHEMA}.%I) ON COMMIT DROP',
            'draft_' || target, target);
        FOR stamped IN SELECT a.attname FROM pg_attribute a
            WHERE a.attrelid = format('pg_temp.%I', 'draft_' || target)::regclass
            AND a.attnum > 0 AND (a.attname IN ('event_id', 'at', 'opened_at')
                OR (target = 'decision' AND a.attname = 'id'))
        LOOP
            EXECUTE format('ALTER TABLE pg_temp.%I ALTER COLUMN %I DROP NOT NULL',
                'draft_' || target, stamped);
        END LOOP;
        EXECUTE format('GRANT SELECT, INSERT ON pg_temp.%I TO PUBLIC', 'draft_' || target);
    END $$""",
    "drafted(target text)": f"""RETURNS regclass LANGUAGE plpgsql {_SAFE} AS $$
    DECLARE
        found regclass := to_regclass(format('pg_temp.%I', 'draft_' || target));
    BEGIN
        -- What the caller made itself could run the caller's code as the owner.
        IF found IS NULL OR NOT EXISTS (SELECT FROM pg_class c WHERE c.oid = found
            AND c.relkind = 'r'
            AND c.relowner = (SELECT oid FROM pg_roles WHERE rolname = current_user))
        THEN
            RAISE EXCEPTION 'there is no draft of %', target;
        END IF;
        RETURN found;
    END $$""",
    "take_draft(target text, event bigint)": f"""RETURNS bigint LANGUAGE plpgsql {_SAFE} AS $$
    DECLARE
        drafted regclass := {SCHEMA}.drafted(target);
        names text;
        stamped text;
        taken bigint;
    BEGIN
        SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum),
            string_agg(CASE WHEN a.attname = 'event_id' THEN '$1'
                WHEN a.attname IN ('at', 'opened_at') THEN 'clock_timestamp()'
                ELSE 'd.' || quote_ident(a.attname) END, ', ' ORDER BY a.attnum)
            INTO names, stamped FROM pg_attribute a
            WHERE a.attrelid = format('{SCHEMA}.%I', target)::regclass AND a.attnum > 0
            AND NOT a.attisdropped AND NOT (target = 'decision' AND a.attname = 'id');
        EXECUTE format('INSERT INTO {SCHEMA}.%I (%s) SELECT %s FROM %s d',
            target, names, stamped, drafted) USING event;
        GET DIAGNOSTICS taken = ROW_COUNT;
        EXECUTE format('DROP TABLE %s', drafted);
        RETURN taken;
    END $$""",
    "refuse_interested(whose text, number integer)": f"""
    RETURNS void LANGUAGE plpgsql STABLE {_SAFE} AS $$
    DECLARE
        run {SCHEMA}.reconciliation;
        accepted bigint;
    BEGIN
        SELECT * INTO STRICT run FROM {SCHEMA}.reconciliation r WHERE r.id = number;
        IF EXISTS (SELECT FROM {SCHEMA}.signature s JOIN {SCHEMA}.event e ON e.id = s.event_id
            WHERE s.reconciliation_id = number AND s.role = '{Role.PREPARED}'
            AND whose IN (s."by", e.person))
        THEN
            {_PREPARED_IT};
        END IF;
        SELECT count(*) INTO accepted FROM {SCHEMA}.break_state b
            WHERE b.reconciliation_id = number AND b.state = '{BreakState.ACCEPTED}'
            AND b.accepted_by = whose;
        IF accepted > 0 THEN
            {_ACCEPTED_IN_IT};
        END IF;
        IF EXISTS (SELECT FROM {SCHEMA}.event e WHERE e.id = run.event_id AND e.person = $1)
            AND run.rules_hash IS DISTINCT FROM (
                SELECT b.rules_hash FROM {SCHEMA}.reconciliation b WHERE b.id = run.previous_id)
            AND run.previous_id IS NOT NULL
        THEN
            {_CHANGED_RULES};
        END IF;
    END $$""",
    "decide(what text, said_by text, reason text, detail text)": f"""
    RETURNS bigint LANGUAGE plpgsql {_SAFE} AS $$
    DECLARE
        event bigint;
        told jsonb := detail;
        drafted regclass := {SCHEMA}.drafted('decision');
        person text := CASE what {_roles_asked(DECIDED, MAY_DECIDE)} END;
        tenants text := ({SCHEMA}.acting()).tenants;
    BEGIN
        {_as_the_person("said_by")}
        IF tenants <> '' AND EXISTS (SELECT FROM pg_temp.draft_decision d
            JOIN {SCHEMA}.break_state b USING (reconciliation_id, break_id)
            WHERE b.tenant IS NULL OR b.tenant::text <> ALL (string_to_array(tenants, ' ')))
        THEN
            {refuse(NOT_YOURS, "%s decides about the tenants %s alone", "person, tenants")};
        END IF;
        IF what NOT IN ({_texts([*DECIDED.values()])}) THEN
            RAISE EXCEPTION '% is no decision', quote_literal(what);
        END IF;
        IF NOT EXISTS (SELECT FROM pg_temp.draft_decision) OR EXISTS (
            SELECT FROM pg_temp.draft_decision d WHERE
            ({_fits("d.what", DECIDED)}, d.by, d.reason, to_jsonb(d.reconciliation_id))
                IS DISTINCT FROM ($1, $2, $3, told -> 'reconciliation')
            OR d.until <> to_char(d.until::date, 'YYYY-MM-DD')
            OR d.side NOT IN ({_texts([*SIDES])}) OR d.up_to !~ '^[0-9]+([.][0-9]+)?$')
        OR EXISTS (
            SELECT FROM pg_temp.draft_decision d GROUP BY d.break_id HAVING count(*) > 1)
        OR EXISTS (
            SELECT d.reconciliation_id, d.break_id FROM pg_temp.draft_decision d EXCEPT
            SELECT b.reconciliation_id, b.break_id FROM {SCHEMA}.break_state b
            WHERE b.reconciliation_id = (told ->> 'reconciliation')::integer)
        OR told ->> 'sha256' IS DISTINCT FROM (
            SELECT encode(sha256(convert_to(string_agg(
                CASE WHEN d.up_to IS NULL THEN json_build_array({_LINE})
                ELSE json_build_array({_LINE}, d.up_to) END::text || chr(10), ''
                ORDER BY d.break_id COLLATE "C"), 'UTF8')), 'hex') FROM pg_temp.draft_decision d)
        THEN
            RAISE EXCEPTION 'the decisions are not what event % says of them', quote_literal(what);
        END IF;
        event := {SCHEMA}.new_event(NULL, what, said_by, reason, detail);
        PERFORM {SCHEMA}.take_draft('decision', event);
        RETURN event;
    END $$""",
    "sign(what text, said_by text, reason text, detail text)": f"""
    RETURNS bigint LANGUAGE plpgsql {_SAFE} AS $$
    DECLARE
        event bigint;
        told jsonb := detail;
        drafted regclass := {SCHEMA}.drafted('signature');
        one {SCHEMA}.signature;
        run {SCHEMA}.reconciliation;
        prepared {SCHEMA}.signature;
        person text := CASE what {_roles_asked(SIGNED, MAY_SIGN)} END;
    BEGIN
        IF what NOT IN ({_texts([*SIGNED.values()])}) THEN
            RAISE EXCEPTION '% is no signature', quote_literal(what);
        END IF;
        SELECT * INTO one FROM pg_temp.draft_signature;
        SELECT * INTO run FROM {SCHEMA}.reconciliation r WHERE r.id = one.reconciliation_id;
        IF run.id IS NULL OR ({_fits("one.role", SIGNED)}, one."by", one.comment, one.report_hash,
            told -> 'reconciliation', told ->> 'role', told ->> 'report_hash') IS DISTINCT FROM
            ($1, $2, $3, run.report_hash, to_jsonb(run.id), one.role, run.report_hash)
        THEN
            RAISE EXCEPTION 'the signature is not what event % says of it', quote_literal(what);
        END IF;
        {_as_the_person('one."by"')}
        IF NOT {SCHEMA}.sees_scope(run.scope) THEN
            {refuse(NOT_YOURS, "%s has no right to %L", "person, run.scope")};
        END IF;
        SELECT * INTO prepared FROM {SCHEMA}.signature p
            WHERE p.reconciliation_id = run.id AND p.role = '{Role.PREPARED}';
        IF one.role = '{Role.APPROVED}' AND person IS NOT NULL THEN
            PERFORM {SCHEMA}.refuse_interested(person, run.id);
        END IF;
        -- The one who prepared is held against the one who approves, so it is there before.
        IF one.role = '{Role.APPROVED}' AND (prepared.role IS NULL
            OR {_PERSON.format('prepared."by"')} = {_PERSON.format('one."by"')}
            OR run.verdict NOT IN ({_texts([*RECONCILED])}))
        THEN
            RAISE EXCEPTION 'reconciliation % is not to be approved by %: it says %, prepared by %',
                run.id, quote_literal(one."by"), run.verdict, coalesce(prepared."by", 'nobody');
        END IF;
        IF one.role = '{Role.PREPARED}' AND EXISTS (SELECT FROM {SCHEMA}.signature s
            WHERE s.reconciliation_id = run.id)
        THEN
            RAISE EXCEPTION 'reconciliation % is signed already', run.id;
        END IF;
        event := {SCHEMA}.new_event(NULL, what, said_by, reason, detail);
        IF {SCHEMA}.take_draft('signature', event) <> 1 THEN
            RAISE EXCEPTION 'one signature at a time';
        END IF;
        -- Whoever owns the schema may be everybody, and says so by signing as its owner.
        IF NOT pg_has_role(session_user, current_user, 'MEMBER') AND EXISTS (
            SELECT FROM {SCHEMA}.signature s
            JOIN {SCHEMA}.signature p ON p.reconciliation_id = s.reconciliation_id
                AND p.role = '{Role.PREPARED}'
            JOIN {SCHEMA}.event e ON e.id = p.event_id
            WHERE s.event_id = event AND s.role = '{Role.APPROVED}' AND e.account = session_user)
        THEN
            RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege', MESSAGE =
                'permission denied for event ' || quote_literal(what) || ': the account '
                || session_user || ' prepared this report';
        END IF;
        RETURN event;
    END $$""",
    "next_reconciliation()": f"""RETURNS bigint LANGUAGE sql {_SAFE} AS $$
        SELECT nextval(pg_get_serial_sequence('{SCHEMA}.reconciliation', 'id'))
    $$""",
    "conclude(said_by text, detail text)": f"""RETURNS bigint LANGUAGE plpgsql {_SAFE} AS $$
    DECLARE
        event bigint;
        told jsonb := detail;
        drafted regclass[] := ARRAY[{SCHEMA}.drafted('reconciliation'),
            {SCHEMA}.drafted('break_state')];
        run {SCHEMA}.reconciliation;
        before {SCHEMA}.reconciliation;
    BEGIN
        SELECT * INTO run FROM pg_temp.draft_reconciliation;
        IF EXISTS (SELECT FROM pg_temp.draft_break_state b WHERE b.reconciliation_id <> run.id) THEN
            RAISE EXCEPTION 'a break is of another reconciliation';
        END IF;
        SELECT * INTO before FROM {SCHEMA}.reconciliation r WHERE r.scope_hash = run.scope_hash
            ORDER BY r.id DESC LIMIT 1;
        -- Numbers are handed out, and a run acts on decisions that there are.
        IF run.id NOT BETWEEN coalesce(before.id, 0) + 1 AND coalesce(pg_sequence_last_value(
                pg_get_serial_sequence('{SCHEMA}.reconciliation', 'id')::regclass), 0)
            OR run.previous_id IS DISTINCT FROM before.id
            OR run.decided_through NOT BETWEEN coalesce(before.decided_through, 0)
                AND greatest(before.decided_through,
                    (SELECT max(d.id) FROM {SCHEMA}.decision d), 0)
            OR run.as_of <> to_char(run.as_of::date, 'YYYY-MM-DD')
        THEN
            RAISE EXCEPTION 'reconciliation % does not follow the last one of its scope', run.id;
        END IF;
        IF (told @> jsonb_build_object({_FACTS})) IS NOT TRUE
            OR told ->> 'version' IS DISTINCT FROM run.version
            OR run.scope_hash <> encode(sha256(convert_to(run.scope, 'UTF8')), 'hex')
            OR run.rules_hash <> encode(sha256(convert_to(run.rules_text, 'UTF8')), 'hex')
            OR run.chain_hash <> encode(sha256(convert_to(
                coalesce(before.chain_hash, '{GENESIS}') || run.report_hash, 'UTF8')), 'hex')
            OR told ->> 'breaks_hash' IS DISTINCT FROM (
                SELECT {breaks_digest("pg_temp.draft_break_state")})
        THEN
            RAISE EXCEPTION 'reconciliation % is not what event % says of it', run.id,
                quote_literal('{SAVED}');
        END IF;
        -- An acceptance is somebody's decision, and a verdict what the breaks make of it.
        IF EXISTS (
            SELECT FROM pg_temp.draft_break_state b LEFT JOIN (
                SELECT DISTINCT ON (d.break_id) d.break_id, d.what, d."by", d.reason, d.until
                FROM {SCHEMA}.decision d
                JOIN {SCHEMA}.reconciliation r ON r.id = d.reconciliation_id
                WHERE r.scope_hash = run.scope_hash AND d.id <= run.decided_through
                AND d.what NOT IN ({_texts([*BESIDE])}) ORDER BY d.break_id, d.id DESC
            ) last ON last.break_id = b.break_id
            WHERE b.state = '{BreakState.ACCEPTED}' AND
                (last.what, last."by", last.reason, last.until) IS DISTINCT FROM
                ('{Choice.ACCEPT}', b.accepted_by, b.accepted_reason, b.accepted_until))
        THEN
            RAISE EXCEPTION 'reconciliation % has accepted breaks that nobody accepted so', run.id;
        END IF;
        IF EXISTS (SELECT FROM pg_temp.draft_break_state b WHERE
            (run.verdict IN ({_texts([*RECONCILED])}) AND b.state IN ({_texts([*OPEN])}))
            OR (run.verdict = '{RECONCILED[0]}' AND b.state = '{BreakState.ACCEPTED}'))
        THEN
            RAISE EXCEPTION 'reconciliation % says %, and its breaks do not', run.id, run.verdict;
        END IF;
        event := {SCHEMA}.new_event(NULL, '{SAVED}', said_by, NULL, detail);
        IF {SCHEMA}.take_draft('reconciliation', event) <> 1 THEN
            RAISE EXCEPTION 'one reconciliation at a time';
        END IF;
        PERFORM {SCHEMA}.take_draft('break_state', event);
        RETURN event;
    END $$""",
    "link_event(wanted bigint)": f"""RETURNS void LANGUAGE plpgsql {_SAFE} AS $$
    DECLARE
        one {SCHEMA}.event;
        place bigint;
        before text;
        said json;
    BEGIN
        SELECT * INTO STRICT one FROM {SCHEMA}.event e WHERE e.id = wanted;
        SELECT c.position + 1, c.hash INTO place, before
            FROM {SCHEMA}.event_chain c ORDER BY c.position DESC LIMIT 1;
        IF NOT FOUND THEN
            place := 1;
            before := '{GENESIS}';
        END IF;
        said := json_build_array({_SAID});
        IF one.person IS NOT NULL THEN
            said := json_build_array({_SAID}, one.account, one.person);
        ELSIF one.account IS NOT NULL THEN
            said := json_build_array({_SAID}, one.account);
        END IF;
        INSERT INTO {SCHEMA}.event_chain (position, event_id, previous_hash, hash)
        VALUES (place, one.id, before,
            encode(sha256(convert_to(said::text, 'UTF8')), 'hex'));
    END $$""",
    "chain_event(wanted bigint)": f"""RETURNS void LANGUAGE plpgsql {_SAFE}
    SET lock_timeout = '{TURN_SECONDS}s' AS $$
    DECLARE
        waiting bigint;
    BEGIN
        BEGIN
            PERFORM FROM {SCHEMA}.{TURN} t WHERE t.event_id = 0 FOR UPDATE;
        EXCEPTION WHEN lock_not_available THEN
            INSERT INTO {SCHEMA}.{TURN} (event_id)
            SELECT wanted WHERE wanted IS NOT NULL;
            RETURN;
        END;
        FOR waiting IN SELECT t.event_id FROM {SCHEMA}.{TURN} t WHERE t.event_id > 0 ORDER BY 1
        LOOP
            PERFORM {SCHEMA}.link_event(waiting);
            DELETE FROM {SCHEMA}.{TURN} t WHERE t.event_id = waiting;
        END LOOP;
        IF wanted IS NOT NULL THEN
            PERFORM {SCHEMA}.link_event(wanted);
        END IF;
    END $$""",
    "chain_waiting()": f"""RETURNS void LANGUAGE sql {_SAFE} AS $$
        SELECT {SCHEMA}.chain_event(NULL) WHERE EXISTS (
            SELECT FROM {SCHEMA}.{TURN} t WHERE t.event_id > 0)
    $$""",
    "chain_inserted()": f"""RETURNS trigger LANGUAGE plpgsql {_SAFE} AS $$
    BEGIN
        PERFORM {SCHEMA}.chain_event(NEW.id);
        RETURN NULL;
    END $$""",
}
"""Head -> rest of the definition."""


def _statements() -> Iterator[str]:
    yield f"INSERT INTO {SCHEMA}.{TURN} (event_id) VALUES (0) ON CONFLICT DO NOTHING"
    for head, rest in FUNCTIONS_OF.items():
        yield f"CREATE OR REPLACE FUNCTION {SCHEMA}.{head} {rest}"
        yield f"REVOKE ALL ON FUNCTION {SCHEMA}.{head} FROM PUBLIC"


FUNCTIONS = tuple(_statements())
"""Statements that put the functions in place; repeating them changes nothing."""
