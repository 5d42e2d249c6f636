"""The functions that write the audit trail: nobody else can, and each stamps who and when.

They run as the owner of the schema and are granted one by one (`schemas.guards.roles`). Rows that
belong to an event (decisions, signatures, a run and its breaks) come as a draft: the caller fills a
temporary table of the owner's, so that no code of the caller ever runs with the owner's rights.

What `recon audit verify` checks of rows and events is checked here first: a name, a hash or a run
that does not fit its event is refused, since it could never be removed from the trail again.

Links are written when the transaction of an event commits. The turn at the chain is taken only
then, so that no run waits for another run's work. A session that keeps the turn holds up nobody:
after TURN_SECONDS the event is noted as waiting, and the next to get the turn links it.
"""

from collections.abc import Mapping

from schemas.derived.sql_names import SAFE, SCHEMA, function_statements, listed
from schemas.guards.acceptance_rules import ACCEPTANCE_RULES_OF, RULE_EVENTS
from schemas.guards.accounts import ACCOUNT_EVENTS, ACCOUNTS_OF
from schemas.guards.altered_rights import ALTERED_RIGHTS_OF
from schemas.guards.batch_states import (
    HELD,
    IS_LISTED,
    LACKS_MERGER,
    OF_MERGER,
    OPERATED,
    PREFIX,
    STATE_EVENTS,
)
from schemas.guards.decisions import DECIDED, DECISIONS_OF, SIGNED
from schemas.guards.held_against import HELD_AGAINST_OF
from schemas.guards.jobs import JOB_EVENTS, JOBS_OF, names_batch
from schemas.guards.ledger_digests import BEFORE, LEDGER, LEDGER_DIGESTS_OF, TABLES, TERMS
from schemas.guards.logins import LOGINS_OF
from schemas.guards.push_gate import EPOCH, SEALED
from schemas.guards.readable import is_amount, is_day, is_read, or_none, time_text
from schemas.guards.tenants import TENANTS_OF
from schemas.life import NO_CHANGE, OPEN, RECONCILED, BreakState, Choice

GENESIS = "0" * 64
"""The hash that the first link names as the one before it."""
TURN_SECONDS = 1
TURN = "chain_turn"

SAVED = "reconciled"
"""The event of a run that was saved."""
TAKEN = "reconciliation taken over"
"""The event of a scope that was taken over."""
RUN_FACTS = (
    "id", "scope_hash", "as_of", "rules_hash", "verdict", "report_hash", "chain_hash",
    "previous_id", "decided_through", "folder"
)  # fmt: skip
"""Columns of a run's row that its event states."""
DRAFTED = ("decision", "signature", "reconciliation", "break_state")


def breaks_digest(table: str) -> str:
    """SQL for the hash of all columns of breaks, the rows `b` of a table."""
    return (
        "encode(sha256(coalesce(string_agg(sha256(convert_to(b::text, 'UTF8')), ''::bytea "
        f"ORDER BY b.break_id COLLATE \"C\"), ''::bytea)), 'hex') FROM {table} b"
    )


_FACTS = ", ".join(f"'{name}', run.{name}" for name in RUN_FACTS)
_EVENT_VALUES = (
    f"place, before, one.id, one.batch_id, {time_text('one.at')}, "
    'one.what, one."by", one.reason, one.detail'
)
_READ_AGAIN = f"""{is_day("b.first_seen")}
    AND {or_none("b.accepted_until", is_day("b.accepted_until"))}
    AND {or_none("b.amount", is_amount("b.amount"))}
    AND json_typeof(b.facts::json) = 'object'"""
"""SQL for whether the next runs can read a break `b`."""
_EVENT_PARAMETERS = "batch_id integer, what text, said_by text, reason text, detail text"
_HASHED: Mapping[str, str] = {part: part for part in TABLES} | {
    before: part for part, before in BEFORE.items()
}
"""Parts of the ledger by the key under which an event has their hash."""
_WITH_ROWS = (
    *DECIDED.values(), *SIGNED.values(), SAVED, TAKEN, *ACCOUNT_EVENTS, *RULE_EVENTS, *JOB_EVENTS,
    EPOCH, SEALED,
)  # fmt: skip
"""Events that are only written together with the rows that they tell of."""
_WORDS_OF_THESE = (
    "report (approv|prepar)|breaks|reconcil|account|password|log|acceptance|job|subscription|"
    "push epoch"
)


def _acts(events: Mapping[str, str]) -> str:
    return " ".join(f"WHEN '{event}' THEN '{act}'" for event, act in events.items())


FUNCTIONS_OF: Mapping[str, str] = {
    **ACCOUNTS_OF,
    **LOGINS_OF,
    **ALTERED_RIGHTS_OF,
    **HELD_AGAINST_OF,
    **DECISIONS_OF,
    **LEDGER_DIGESTS_OF,
    **ACCEPTANCE_RULES_OF,
    **JOBS_OF,
    **TENANTS_OF,
    f"new_event({_EVENT_PARAMETERS})": f"""RETURNS bigint LANGUAGE plpgsql {SAFE} AS $$
    DECLARE
        work {SCHEMA}.job := {SCHEMA}.job_at_work();
        event bigint;
    BEGIN
        -- An older snapshot does not see which logins, roles and rules were taken away meanwhile.
        IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted')
        THEN
            RAISE EXCEPTION 'the audit trail is written in READ COMMITTED transactions, and this '
                'one is %', upper(current_setting('transaction_isolation'));
        END IF;
        -- It is read for ever, and could never be taken from the trail again.
        IF NOT (jsonb_typeof($5::jsonb) = 'object' AND {is_read("$5::jsonb")}) THEN
            RAISE EXCEPTION 'the detail of an event is a JSON object that programs can read';
        END IF;
        -- Every reconciliation misses a batch that the trail tells of; who owns it all may be all.
        IF NOT EXISTS (SELECT FROM {SCHEMA}.batch b WHERE b.id = $1)
            AND NOT pg_has_role(session_user, current_user, 'MEMBER') AND $1 IS NOT NULL
        THEN
            RAISE EXCEPTION 'there is no batch % to write of in the audit trail', $1;
        END IF;
        -- What is done for a job is done for who ordered it last.
        INSERT INTO {SCHEMA}.event (batch_id, at, what, "by", reason, detail, account, person)
        VALUES ($1, clock_timestamp(), $2,
            CASE WHEN work.id IS NULL THEN $3 ELSE {SCHEMA}.job_ordered_by(work.id) END, $4,
            CASE WHEN work.id IS NULL THEN $5 ELSE (coalesce($5, '{{}}')::jsonb
                || jsonb_build_object('job', work.id))::text END,
            session_user, ({SCHEMA}.acting()).name)
        RETURNING id INTO event;
        UPDATE {SCHEMA}.job j SET batches = btrim(j.batches || ' ' || $1)
            FROM {SCHEMA}.batch b WHERE j.id = work.id AND b.id = $1 AND {names_batch("j")}
            AND $1::text <> ALL (string_to_array(j.batches, ' '));
        RETURN event;
    END $$""",
    "require_state(number integer, told text, detail text)": f"""
    RETURNS void LANGUAGE plpgsql STABLE {SAFE} AS $$
    DECLARE
        other text;
    BEGIN
        -- Proofs read what was said last of a batch: it is what became of it.
        IF NOT EXISTS (SELECT FROM {SCHEMA}.batch b
            WHERE b.id = number AND '{PREFIX}' || b.state = told)
        THEN
            RAISE EXCEPTION 'no event % of batch %: it is %', quote_literal(told), number,
                coalesce((SELECT b.state FROM {SCHEMA}.batch b WHERE b.id = number), 'unknown');
        END IF;
        SELECT term.name INTO other FROM {SCHEMA}.batch b, unnest(
            ARRAY[{listed([*TERMS])}], ARRAY[{", ".join(TERMS.values())}]) term (name, present)
            WHERE b.id = number AND detail::jsonb ? term.name
            AND detail::jsonb ->> term.name IS DISTINCT FROM term.present LIMIT 1;
        IF FOUND THEN
            RAISE EXCEPTION 'no event % of batch %: it says another % than the batch has',
                quote_literal(told), number, other;
        END IF;
        -- A release goes by what is said here, and who applies no rows changes no ledger by it.
        IF EXISTS (SELECT FROM unnest(ARRAY[{listed(_HASHED)}], ARRAY[{listed(_HASHED.values())}])
                one (name, part)
            WHERE (told = '{PREFIX}{HELD}' AND one.name IN ({listed(LEDGER)})
                OR {LACKS_MERGER} AND detail::jsonb ? one.name)
            AND detail::jsonb ->> one.name IS DISTINCT FROM
                {SCHEMA}.ledger_digest(number, one.part))
        THEN
            RAISE EXCEPTION 'no event % of batch %: it says what the batch has by other hashes',
                quote_literal(told), number;
        END IF;
    END $$""",
    f"add_event({_EVENT_PARAMETERS})": f"""RETURNS bigint LANGUAGE plpgsql {SAFE} AS $$
    BEGIN
        IF what IN ({listed(_WITH_ROWS)}) THEN
            RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege', MESSAGE =
                'permission denied for event ' || quote_literal(what)
                || ': it is only written with what it tells of';
        END IF;
        -- No other spelling of those either, nor a second line of its own in a list of events.
        IF what !~ '^[a-z0-9_]+( [a-z0-9_]+)*$'
            OR what ~ '^({_WORDS_OF_THESE})'
        THEN
            RAISE EXCEPTION 'no event is named %', quote_literal(what);
        END IF;
        IF what IN ({listed([*OF_MERGER])}) AND {LACKS_MERGER}
            AND NOT {IS_LISTED}
        THEN
            RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege', MESSAGE =
                'permission denied for event ' || quote_literal(what) || ': the account '
                || session_user || ' applies no rows';
        END IF;
        IF what IN ({listed(STATE_EVENTS)}) THEN
            PERFORM {SCHEMA}.require_state(batch_id, what, detail);
        END IF;
        IF what IN ({listed(OPERATED)}) THEN
            PERFORM {SCHEMA}.require_operator(
                CASE what {_acts(OPERATED)} END, batch_id);
        END IF;
        RETURN {SCHEMA}.new_event(batch_id, what, said_by, reason, detail);
    END $$""",
    "took_over(said_by text, detail text)": f"""RETURNS bigint LANGUAGE sql {SAFE} AS $$
        SELECT {SCHEMA}.new_event(NULL, '{TAKEN}', $1, NULL, $2)
    $$""",
    "draft(target text)": f"""RETURNS void LANGUAGE plpgsql {SAFE} AS $$
    DECLARE
        stamped name;
    BEGIN
        IF target NOT IN ({listed([*DRAFTED])}) THEN
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
    "drafted(target text)": f"""RETURNS regclass LANGUAGE plpgsql {SAFE} AS $$
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
    "take_draft(target text, event bigint)": f"""RETURNS bigint LANGUAGE plpgsql {SAFE} AS $$
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
    "next_reconciliation()": f"""RETURNS bigint LANGUAGE sql {SAFE} AS $$
        SELECT nextval(pg_get_serial_sequence('{SCHEMA}.reconciliation', 'id'))
    $$""",
    "conclude(said_by text, detail text)": f"""RETURNS bigint LANGUAGE plpgsql {SAFE} AS $$
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
        PERFORM {SCHEMA}.lock_scope(run.scope_hash);
        SELECT * INTO before FROM {SCHEMA}.reconciliation r WHERE r.scope_hash = run.scope_hash
            ORDER BY r.id DESC LIMIT 1;
        -- Numbers are handed out, and a run acts on decisions that there are.
        IF run.id NOT BETWEEN coalesce(before.id, 0) + 1 AND coalesce(pg_sequence_last_value(
                pg_get_serial_sequence('{SCHEMA}.reconciliation', 'id')::regclass), 0)
            OR run.previous_id IS DISTINCT FROM before.id
            OR run.decided_through NOT BETWEEN coalesce(before.decided_through, 0)
                AND greatest(before.decided_through,
                    (SELECT max(d.id) FROM {SCHEMA}.decision d), 0)
            OR NOT {is_day("run.as_of")}
        THEN
            RAISE EXCEPTION 'reconciliation % does not follow the last one of its scope', run.id;
        END IF;
        IF EXISTS (SELECT FROM {SCHEMA}.decision d
            JOIN {SCHEMA}.reconciliation r ON r.id = d.reconciliation_id
            WHERE r.scope_hash = run.scope_hash AND d.id > run.decided_through)
        THEN
            RAISE EXCEPTION 'reconciliation % has not heard what was decided in its scope '
                'meanwhile: reconcile again', run.id;
        END IF;
        IF (told @> jsonb_build_object({_FACTS})) IS NOT TRUE
            OR coalesce(told -> 'version', 'null') <> coalesce(to_jsonb(run.version), 'null')
            OR run.scope_hash <> encode(sha256(convert_to(run.scope, 'UTF8')), 'hex')
            -- A run of an earlier version alone has neither.
            OR run.rules_text IS NULL AND run.version IS NOT NULL
            OR run.rules_hash <> encode(sha256(convert_to(run.rules_text, 'UTF8')), 'hex')
            OR run.chain_hash <> encode(sha256(convert_to(
                coalesce(before.chain_hash, '{GENESIS}') || run.report_hash, 'UTF8')), 'hex')
            OR told ->> 'breaks_hash' IS DISTINCT FROM (
                SELECT {breaks_digest("pg_temp.draft_break_state")})
        THEN
            RAISE EXCEPTION 'reconciliation % is not what event % says of it', run.id,
                quote_literal('{SAVED}');
        END IF;
        -- Who approves is held to what was signed after that, whoever made the run.
        IF NOT coalesce(told ->> 'signed_through' ~ '^[0-9]{{1,18}}$'
            AND jsonb_typeof(told -> 'signed_through') = 'number', false)
            OR (told ->> 'signed_through')::numeric
                > (SELECT coalesce(max(e.id), 0) FROM {SCHEMA}.event e)
        THEN
            RAISE EXCEPTION 'reconciliation % knows more of what is signed than there is', run.id;
        END IF;
        -- The next run reads them, and so does every one after it.
        IF EXISTS (SELECT FROM pg_temp.draft_break_state b WHERE NOT ({_READ_AGAIN})) THEN
            RAISE EXCEPTION 'reconciliation % has breaks that no run can read', run.id;
        END IF;
        -- An acceptance is somebody's decision, and a verdict what the breaks make of it.
        IF EXISTS (
            SELECT FROM pg_temp.draft_break_state b LEFT JOIN (
                SELECT DISTINCT ON (d.break_id) d.break_id, d.what, d."by", d.reason, d.until
                FROM {SCHEMA}.decision d
                JOIN {SCHEMA}.reconciliation r ON r.id = d.reconciliation_id
                WHERE r.scope_hash = run.scope_hash AND d.id <= run.decided_through
                AND d.what NOT IN ({listed([*NO_CHANGE])}) ORDER BY d.break_id, d.id DESC
            ) last ON last.break_id = b.break_id
            WHERE b.state = '{BreakState.ACCEPTED}' AND
                (last.what, last."by", last.reason, last.until) IS DISTINCT FROM
                ('{Choice.ACCEPT}', b.accepted_by, b.accepted_reason, b.accepted_until))
        THEN
            RAISE EXCEPTION 'reconciliation % has accepted breaks that nobody accepted so', run.id;
        END IF;
        IF EXISTS (SELECT FROM pg_temp.draft_break_state b WHERE
            (run.verdict IN ({listed([*RECONCILED])}) AND b.state IN ({listed([*OPEN])}))
            OR (run.verdict = '{RECONCILED[0]}' AND b.state = '{BreakState.ACCEPTED}'))
        THEN
            RAISE EXCEPTION 'reconciliation % says %, and its breaks do not', run.id, run.verdict;
        END IF;
        event := {SCHEMA}.new_event(NULL, '{SAVED}', said_by, NULL, detail);
        IF {SCHEMA}.take_draft('reconciliation', event) <> 1 THEN
            RAISE EXCEPTION 'one reconciliation at a time';
        END IF;
        PERFORM {SCHEMA}.take_draft('break_state', event);
        INSERT INTO {SCHEMA}.report_mail (reconciliation_id, account)
            SELECT run.id, s.account FROM {SCHEMA}.subscription s
            WHERE s.scope_hash = run.scope_hash;
        RETURN event;
    END $$""",
    "link_event(wanted bigint)": f"""RETURNS void LANGUAGE plpgsql {SAFE} AS $$
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
        said := json_build_array({_EVENT_VALUES});
        IF one.person IS NOT NULL THEN
            said := json_build_array({_EVENT_VALUES}, one.account, one.person);
        ELSIF one.account IS NOT NULL THEN
            said := json_build_array({_EVENT_VALUES}, one.account);
        END IF;
        INSERT INTO {SCHEMA}.event_chain (position, event_id, previous_hash, hash)
        VALUES (place, one.id, before,
            encode(sha256(convert_to(said::text, 'UTF8')), 'hex'));
    END $$""",
    "chain_event(wanted bigint)": f"""RETURNS void LANGUAGE plpgsql {SAFE}
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
    "chain_waiting()": f"""RETURNS void LANGUAGE sql {SAFE} AS $$
        SELECT {SCHEMA}.chain_event(NULL) WHERE EXISTS (
            SELECT FROM {SCHEMA}.{TURN} t WHERE t.event_id > 0)
    $$""",
    "chain_inserted()": f"""RETURNS trigger LANGUAGE plpgsql {SAFE} AS $$
    BEGIN
        PERFORM {SCHEMA}.chain_event(NEW.id);
        RETURN NULL;
    END $$""",
}
"""Definitions of the functions, by their heads."""

FUNCTIONS = (
    f"INSERT INTO {SCHEMA}.{TURN} (event_id) VALUES (0) ON CONFLICT DO NOTHING",
    *function_statements(FUNCTIONS_OF),
)
"""Statements that create the functions; repeating them changes nothing."""
