"""The functions that keep rules of acceptance, and accept breaks by them.

A rule says which breaks of a scope are accepted without being looked at one by one: code, currency
and more, each break up to one ceiling, all together up to another. One person proposes it, another
approves it, and either withdraws it. It exists only in the audit trail; its number is that of the
event that proposed it.

An acceptance by a rule is a decision like any other, named after the rule. The database holds each
of them to the rule's own terms, whatever program asks.
"""

from collections.abc import Mapping

from schemas.accounts import MAY_DECIDE, MAY_SIGN
from schemas.derived.sql_names import SAFE, SCHEMA, listed
from schemas.guards.accounts import NOT_ALLOWED, NOT_THERE, NOT_YOURS, array, refuse, require
from schemas.guards.break_money import LARGEST, NO_AMOUNT
from schemas.guards.decisions import BY_RULE, DECIDED, RULE_APPROVED, RULE_PROPOSED, plain_name
from schemas.guards.readable import is_day, is_money
from schemas.life import NO_CHANGE, BreakState, Choice, Role

RULE_WITHDRAWN = "acceptance rule withdrawn"
RULE_EVENTS = (RULE_PROPOSED, RULE_APPROVED, RULE_WITHDRAWN)
"""Events that only these functions write."""
COVERED = (BreakState.NEW, BreakState.OPEN)
"""States of breaks that a rule may accept; breaks that came back are left to people."""

TERMS = ("scope", "code", "currency", "each", "total", "until", "record", "tenant")
"""The terms of a rule, besides its reason."""
_NUMBER = "^-?[0-9]{1,19}$"

_COVERS = f"""b.state IN ({listed(COVERED)}) AND b.code = terms ->> 'code'
    AND b.currency::text = terms ->> 'currency'
    AND (terms ->> 'record' IS NULL OR b.record = terms ->> 'record')
    AND (terms ->> 'tenant' IS NULL OR b.tenant::text = terms ->> 'tenant')
    AND b.amount IS NOT NULL AND {LARGEST} <= (terms ->> 'each')::numeric AND NOT {NO_AMOUNT}
    -- What people have decided about is theirs; what another rule has accepted is decided.
    AND NOT EXISTS (SELECT FROM {SCHEMA}.decision e
        JOIN {SCHEMA}.reconciliation r ON r.id = e.reconciliation_id
        WHERE e.break_id = b.break_id AND r.scope_hash = run.scope_hash
        AND e.what NOT IN ({listed(NO_CHANGE)}) AND (e."by" !~ '^{BY_RULE}$' OR r.id = run.id))"""
"""SQL for whether a rule of these `terms` covers a break `b` as the run `run` left it."""

_STILL = f"""{SCHEMA}.account_sees(one.person, one.detail::jsonb ->> 'scope')
    AND {SCHEMA}.account_may(one.person, {array(MAY_DECIDE[Choice.PROPOSE])},
        one.detail::jsonb ->> 'tenant')"""
"""SQL for whether the proposer of a rule, in the event `one`, may still propose it."""
_NO_LONGER = (
    "%s may not propose rule %s any more, or was not logged in: whoever may proposes it anew"
)

ACCEPTANCE_RULES_OF: Mapping[str, str] = {
    "rule_terms(rule bigint)": f"""RETURNS jsonb LANGUAGE sql STABLE {SAFE} AS $$
        -- What a rule says that is in force; null where it is not.
        SELECT e.detail::jsonb || jsonb_build_object('reason', e.reason)
        FROM {SCHEMA}.event e WHERE e.id = $1 AND e.what = '{RULE_PROPOSED}'
        AND EXISTS (SELECT FROM {SCHEMA}.event a WHERE a.what = '{RULE_APPROVED}'
            AND a.detail::jsonb -> 'rule' = to_jsonb($1)
            -- Where people log in, nobody's word accepts anything anew.
            AND (a.person IS NOT NULL OR NOT {SCHEMA}.has_accounts()))
        AND NOT EXISTS (SELECT FROM {SCHEMA}.event w WHERE w.what = '{RULE_WITHDRAWN}'
            AND w.detail::jsonb -> 'rule' = to_jsonb($1))
    $$""",
    "seen_rules()": f"""RETURNS bigint[] LANGUAGE sql STABLE {SAFE} AS $$
        -- What was done with the rules of these tenants, whoever did it; nobody has none.
        SELECT coalesce(array_agg(e.id), '{{}}') FROM {SCHEMA}.event e
        JOIN {SCHEMA}.event p ON p.what = '{RULE_PROPOSED}' AND p.id = CASE
            WHEN e.what = '{RULE_PROPOSED}' THEN e.id
            WHEN e.what IN ({listed(RULE_EVENTS)}) THEN (e.detail::jsonb ->> 'rule')::bigint END
        WHERE ({SCHEMA}.acting()).name IS NOT NULL AND e.what IN ({listed(RULE_EVENTS)})
        AND {SCHEMA}.sees_scope(p.detail::jsonb ->> 'scope')
    $$""",
    "propose_rule(said_by text, reason text, detail text)": f"""
    RETURNS bigint LANGUAGE plpgsql {SAFE} AS $$
    DECLARE
        terms jsonb := detail;
        person text := {require(MAY_DECIDE[Choice.PROPOSE], "'proposing a rule of acceptance'")};
        tenants text := ({SCHEMA}.acting()).tenants;
    BEGIN
        IF person <> said_by THEN
            {refuse(NOT_ALLOWED, "%s is logged in, and cannot act as %L", "person, said_by")};
        END IF;
        IF NOT {SCHEMA}.sees_scope(terms ->> 'scope') OR tenants <> '' AND (
            terms ->> 'tenant' = ANY (string_to_array(tenants, ' '))) IS NOT TRUE
        THEN
            {refuse(NOT_YOURS, "%s decides about the tenants %s alone", "person, tenants")};
        END IF;
        -- Every page of rules reads it for ever: nothing is kept that no rule says.
        IF terms - {array(TERMS)} <> '{{}}' OR NOT coalesce(
            jsonb_typeof(terms -> 'scope') = 'string'
            AND coalesce(jsonb_typeof(terms -> 'record'), 'string') = 'string'
            AND terms ->> 'scope' <> '' AND terms ->> 'code' ~ '^[A-Z_]{{1,60}}$'
            AND terms ->> 'currency' ~ '{_NUMBER}'
            AND coalesce(terms ->> 'tenant', '0') ~ '{_NUMBER}'
            AND {is_money("(terms ->> 'each')")} AND {is_money("(terms ->> 'total')")}
            AND (terms ->> 'each')::numeric <= (terms ->> 'total')::numeric
            AND {is_day("(terms ->> 'until')")}
            AND btrim($2) <> '', FALSE)
        THEN
            RAISE EXCEPTION 'these are no terms of a rule of acceptance';
        END IF;
        -- As it was judged: a text may name a term twice.
        RETURN {SCHEMA}.new_event(NULL, '{RULE_PROPOSED}', $1, $2, terms::text);
    END $$""",
    "approve_rule(rule bigint, said_by text, reason text)": f"""
    RETURNS bigint LANGUAGE plpgsql {SAFE} AS $$
    DECLARE
        one {SCHEMA}.event;
        person text := {require(MAY_SIGN[Role.APPROVED], "'approving a rule of acceptance'")};
    BEGIN
        IF person <> said_by THEN
            {refuse(NOT_ALLOWED, "%s is logged in, and cannot act as %L", "person, said_by")};
        END IF;
        PERFORM FROM {SCHEMA}.chain_turn t WHERE t.event_id = 0 FOR UPDATE;
        SELECT * INTO one FROM {SCHEMA}.event e WHERE e.id = rule AND e.what = '{RULE_PROPOSED}';
        IF one.id IS NULL OR NOT {SCHEMA}.sees_scope(one.detail::jsonb ->> 'scope') THEN
            {refuse(NOT_THERE, "there is no rule of acceptance %s", "rule")};
        END IF;
        IF person IN (one.person, one."by")
            OR {plain_name('one."by"')} = {plain_name("said_by")}
        THEN
            {
        refuse(
            NOT_ALLOWED,
            "nobody approves a rule of acceptance that they proposed: %s proposed rule %s",
            'one."by", rule',
        )
    };
        END IF;
        IF person IS NOT NULL AND NOT ({_STILL}) THEN
            {refuse(NOT_ALLOWED, _NO_LONGER, 'one."by", rule')};
        END IF;
        IF EXISTS (SELECT FROM {SCHEMA}.event e WHERE e.what IN ('{RULE_APPROVED}', '{
        RULE_WITHDRAWN
    }')
            AND e.detail::jsonb -> 'rule' = to_jsonb(rule))
        THEN
            {refuse(NOT_ALLOWED, "rule %s was approved or withdrawn already", "rule")};
        END IF;
        RETURN {SCHEMA}.new_event(NULL, '{RULE_APPROVED}', said_by, reason,
            json_build_object('rule', rule)::text);
    END $$""",
    "withdraw_rule(rule bigint, said_by text, reason text)": f"""
    RETURNS bigint LANGUAGE plpgsql {SAFE} AS $$
    DECLARE
        person text := {require(MAY_DECIDE[Choice.REOPEN], "'withdrawing a rule of acceptance'")};
    BEGIN
        IF person <> said_by THEN
            {refuse(NOT_ALLOWED, "%s is logged in, and cannot act as %L", "person, said_by")};
        END IF;
        PERFORM FROM {SCHEMA}.chain_turn t WHERE t.event_id = 0 FOR UPDATE;
        IF NOT EXISTS (SELECT FROM {SCHEMA}.event e WHERE e.id = rule AND e.what = '{RULE_PROPOSED}'
            AND {SCHEMA}.sees_scope(e.detail::jsonb ->> 'scope'))
        THEN
            {refuse(NOT_THERE, "there is no rule of acceptance %s", "rule")};
        END IF;
        IF EXISTS (SELECT FROM {SCHEMA}.event e WHERE e.what = '{RULE_WITHDRAWN}'
            AND e.detail::jsonb -> 'rule' = to_jsonb(rule))
        THEN
            {refuse(NOT_ALLOWED, "rule %s was withdrawn already", "rule")};
        END IF;
        RETURN {SCHEMA}.new_event(NULL, '{RULE_WITHDRAWN}', said_by, reason,
            json_build_object('rule', rule)::text);
    END $$""",
    "accept_by_rules(number integer)": f"""RETURNS json LANGUAGE plpgsql {SAFE} AS $$
    DECLARE
        run {SCHEMA}.reconciliation := {SCHEMA}.lock_last_run(number);
        rule bigint;
        terms jsonb;
        held numeric;
        meant bigint;
        told json[] := ARRAY[]::json[];
    BEGIN
        FOR rule IN SELECT e.id FROM {SCHEMA}.event e
            WHERE e.what = '{RULE_PROPOSED}' AND e.detail::jsonb ->> 'scope' = run.scope
            ORDER BY e.id
        LOOP
            terms := {SCHEMA}.rule_terms(rule);
            CONTINUE WHEN terms IS NULL OR run.as_of > terms ->> 'until';
            PERFORM {SCHEMA}.draft('decision');
            INSERT INTO pg_temp.draft_decision (reconciliation_id, break_id, what, "by", reason,
                until)
            SELECT number, b.break_id, '{Choice.ACCEPT}', 'rule ' || rule, terms ->> 'reason',
                terms ->> 'until'
            FROM {SCHEMA}.break_state b WHERE b.reconciliation_id = number AND {_COVERS};
            GET DIAGNOSTICS meant = ROW_COUNT;
            SELECT coalesce(sum({LARGEST}), 0) INTO held FROM {SCHEMA}.break_state b
                WHERE b.reconciliation_id = number AND b.currency::text = terms ->> 'currency'
                AND (b.state = '{BreakState.ACCEPTED}' AND b.accepted_by = 'rule ' || rule
                    OR b.break_id IN (SELECT d.break_id FROM pg_temp.draft_decision d));
            IF meant > 0 AND held <= (terms ->> 'total')::numeric THEN
                PERFORM {SCHEMA}.write_decisions('{DECIDED[Choice.ACCEPT]}', 'rule ' || rule,
                    terms ->> 'reason', json_build_object('reconciliation', number,
                    'breaks', meant, 'rule', rule, 'until', terms ->> 'until',
                    'sha256', {SCHEMA}.drafted_digest())::text);
            ELSE
                DROP TABLE pg_temp.draft_decision;
            END IF;
            told := told || json_build_object('rule', rule, 'breaks', meant,
                'amount', held::text, 'total', terms ->> 'total',
                'accepted', held <= (terms ->> 'total')::numeric);
        END LOOP;
        RETURN array_to_json(told);
    END $$""",
}
"""Definitions of the functions, by their heads."""
