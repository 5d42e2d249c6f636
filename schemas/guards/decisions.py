"""The functions that decide about breaks and sign reports, and the rules of maker and checker.

They hold everybody to their roles and tenants, and to what they did before: nobody approves what
they prepared or accepted, and a large acceptance takes two people. Without accounts the names are
as stated. `schemas.guards.trail_functions` explains drafts and events.

Databases contain the text of these functions, so changing it takes a migration. In their bodies
`person` is the account that acts, null if there are no accounts; `told` is the detail of the event
as JSON; `drafted` is declared only to refuse if there is no draft; `$1`, `$2` are the arguments in
order, used where a column could have an argument's name.
"""

from collections.abc import Mapping
from typing import Any

from schemas.accounts import ACTS, MAY_DECIDE, MAY_SIGN
from schemas.derived.sql_names import SAFE, SCHEMA, listed
from schemas.guards.accounts import (
    NOT_ALLOWED,
    NOT_THERE,
    NOT_YOURS,
    array,
    refuse,
    require,
    tenants_of,
)
from schemas.guards.break_money import LARGEST, LIMIT, NO_AMOUNT
from schemas.guards.readable import is_day, is_money, or_none
from schemas.life import NO_CHANGE, RECONCILED, SIDES, UNSEEN, BreakState, Choice, Look, Role

DECIDED: Mapping[str, str] = {
    Choice.ACCEPT: "breaks accepted",
    Choice.REOPEN: "breaks reopened",
    Choice.RESOLVE: "breaks resolved",
    Choice.ASSIGN: "breaks assigned",
    Choice.COMMENT: "breaks commented",
    Choice.PROPOSE: "breaks proposed",
}
"""The event of each kind of decision."""
SIGNED: Mapping[str, str] = {Role.PREPARED: "report prepared", Role.APPROVED: "report approved"}
"""The event of each kind of signature."""

RULE_PROPOSED, RULE_APPROVED = "acceptance rule proposed", "acceptance rule approved"
"""The events of a rule of acceptance (`schemas.guards.acceptance_rules`)."""
BY_RULE = "rule [0-9]+"
"""Pattern of the name that acceptances by a rule carry; no person may have such a name."""


def plain_name(name: str) -> str:
    """SQL for one form of a name, however typed: characters unified, single blanks, lower case."""
    seen = f"regexp_replace(normalize({name}, NFKC), '[{UNSEEN}]', '', 'g')"
    return f"lower(btrim(regexp_replace({seen}, '\\s+', ' ', 'g')))"


def _event(column: str, pairs: Mapping[str, str]) -> str:
    """SQL for the event of a drafted row, chosen by a column."""
    return " ".join(
        [f"CASE {column}", *(f"WHEN '{one}' THEN '{event}'" for one, event in pairs.items()), "END"]
    )


_TERMS = f"""btrim(d.reason) <> '' AND CASE
        WHEN d.what IN ('{Choice.ACCEPT}', '{Choice.PROPOSE}') THEN {is_day("d.until")}
        WHEN d.what = '{Choice.RESOLVE}' THEN d.side IS NOT NULL
        WHEN d.what = '{Choice.ASSIGN}' THEN btrim(d.owner) <> ''
        ELSE true END
    AND {or_none("d.until", is_day("d.until"))}
    AND {or_none("d.side", f"d.side IN ({listed([*SIDES])})")}
    AND {or_none("d.up_to", is_money("d.up_to"))}"""
"""SQL for whether a draft `d` has the terms that its kind of decision takes, all readable."""
_COLUMNS = "d.reconciliation_id, d.break_id, d.what, d.by, d.reason, d.until, d.side, d.owner"
"""Columns of a draft `d` that the hash of decisions covers, followed by a ceiling if any."""


def _account_by_event(events: Mapping[Any, str], may: Mapping[Any, Any]) -> str:
    """SQL branches of a CASE by event: the account that acts, refused if it lacks the roles."""
    accounts = {event: require(may[one], f"'{ACTS[one]}'") for one, event in events.items()}
    return " ".join(f"WHEN '{event}' THEN {account}" for event, account in accounts.items())


def as_the_person(name: str) -> str:
    """SQL that refuses a name other than that in the variable `person`, the account that acts."""
    message = "%s is logged in, and cannot act as %L"
    return f"IF person <> {name} THEN {refuse(NOT_ALLOWED, message, f'person, {name}')}; END IF;"


_SIGNED_THROUGH = "coalesce((saved.detail::jsonb ->> 'signed_through')::bigint, saved.id)"
"""SQL for the last event whose signatures page one knows, from the event `saved` of its run.

Events of earlier versions do not say it.
"""

_PREPARED_IT = "nobody approves what they prepared: %s prepared the report of reconciliation %s"
_ACCEPTED_IN_IT = (
    "nobody approves a run in which they accepted a break: %s accepted %s of reconciliation %s"
)
_PROPOSED_IT = (
    "nobody approves a run in which breaks were accepted by a rule they proposed: %s proposed %s, "
    "which accepted breaks of reconciliation %s"
)
_APPROVED_IT = (
    "nobody approves a run in which a rule they approved accepted more than takes two people: "
    "%s approved %s, which accepted such breaks of reconciliation %s"
)
_ONE_ALONE = (
    "an acceptance of more than %s takes two people, and %s of these are larger, or their money "
    "cannot be read, the first %s: "
    "propose it, and somebody else accepts it with the same last day and ceiling"
)
_CHANGED_RULES = (
    "nobody approves a run if they changed the rules since the last approved one: %s made or "
    "ordered reconciliation %s by other rules than those before"
)
_SIGNED_SINCE = (
    "a report that shows other tenants as well was approved after page one of reconciliation %s "
    "was written, which was not held against it: reconcile the scope again, and approve that run"
)
"""Messages of refusals, with %s for the values."""

_TAKEN_BACK = f"""SELECT FROM {SCHEMA}.break_state b
    JOIN {SCHEMA}.decision d ON d.break_id = b.break_id AND d.what = '{Choice.REOPEN}'
        AND d.id > run.decided_through
    JOIN {SCHEMA}.reconciliation r ON r.id = d.reconciliation_id AND r.scope_hash = run.scope_hash
    WHERE b.reconciliation_id = run.id AND b.state = '{BreakState.ACCEPTED}' AND NOT EXISTS (
        SELECT FROM {SCHEMA}.decision a
        JOIN {SCHEMA}.reconciliation o ON o.id = a.reconciliation_id
            AND o.scope_hash = run.scope_hash
        WHERE a.break_id = d.break_id AND a.what = '{Choice.ACCEPT}' AND a.id > d.id
        AND a."by" = b.accepted_by)"""
"""SQL for breaks that a `run` has as accepted, but that were reopened since and not accepted again
by the same person. `recon sign` checks whether the terms are those that the run shows."""

DECISIONS_OF: Mapping[str, str] = {
    # `whose` approves no run that they prepared, accepted breaks in, or changed the rules of.
    "refuse_interested(whose text, number integer)": f"""
    RETURNS void LANGUAGE plpgsql STABLE {SAFE} AS $$
    DECLARE
        run {SCHEMA}.reconciliation;
        accepted bigint;
        by_rule text;
        approved integer;
        changed integer;
    BEGIN
        -- A refusal says who did what about it, and whoever reads asks what would be refused.
        IF NOT ({SCHEMA}.sees_all() OR number = ANY ({SCHEMA}.seen_runs(true))) THEN
            {refuse(NOT_THERE, "there is no reconciliation %s", "number")};
        END IF;
        SELECT * INTO STRICT run FROM {SCHEMA}.reconciliation r WHERE r.id = number;
        IF EXISTS (SELECT FROM {SCHEMA}.signature s JOIN {SCHEMA}.event e ON e.id = s.event_id
            WHERE s.reconciliation_id = number AND s.role = '{Role.PREPARED}'
            AND whose IN (s."by", e.person))
        THEN
            {refuse(NOT_ALLOWED, _PREPARED_IT, "whose, number")};
        END IF;
        SELECT min(b.accepted_by) INTO by_rule FROM {SCHEMA}.break_state b
            JOIN {SCHEMA}.event p ON p.what = '{RULE_PROPOSED}' AND b.accepted_by = 'rule ' || p.id
            WHERE b.reconciliation_id = number AND b.state = '{BreakState.ACCEPTED}'
            AND whose IN (p."by", p.person);
        IF by_rule IS NOT NULL THEN
            {refuse(NOT_ALLOWED, _PROPOSED_IT, "whose, by_rule, number")};
        END IF;
        -- Of two people one approved the rule: it is they who accepted by it.
        SELECT min(b.accepted_by) INTO by_rule FROM {SCHEMA}.break_state b
            JOIN {SCHEMA}.event a ON a.what = '{RULE_APPROVED}'
                AND b.accepted_by = 'rule ' || (a.detail::jsonb ->> 'rule')
            WHERE b.reconciliation_id = number AND b.state = '{BreakState.ACCEPTED}'
            AND whose IN (a."by", a.person) AND {LARGEST} > {LIMIT};
        IF by_rule IS NOT NULL THEN
            {refuse(NOT_ALLOWED, _APPROVED_IT, "whose, by_rule, number")};
        END IF;
        SELECT count(*) INTO accepted FROM {SCHEMA}.break_state b
            WHERE b.reconciliation_id = number AND b.state = '{BreakState.ACCEPTED}'
            AND (b.accepted_by = whose OR EXISTS (
                SELECT FROM {SCHEMA}.decision d JOIN {SCHEMA}.event e ON e.id = d.event_id
                JOIN {SCHEMA}.reconciliation r ON r.id = d.reconciliation_id
                WHERE d.break_id = b.break_id AND d.what = '{Choice.PROPOSE}' AND e.person = whose
                AND d.id <= run.decided_through AND r.scope_hash = run.scope_hash));
        IF accepted > 0 THEN
            {refuse(NOT_ALLOWED, _ACCEPTED_IN_IT, "whose, accepted, number")};
        END IF;
        SELECT max(s.reconciliation_id) INTO approved FROM {SCHEMA}.signature s
            JOIN {SCHEMA}.reconciliation r ON r.id = s.reconciliation_id
            WHERE s.role = '{Role.APPROVED}' AND r.scope_hash = run.scope_hash AND r.id < run.id;
        -- Run once more by the same rules, they are as new to who approves as they were before.
        SELECT min(r.id) INTO changed FROM {SCHEMA}.reconciliation r
            LEFT JOIN {SCHEMA}.reconciliation b ON b.id = r.previous_id
            JOIN {SCHEMA}.event e ON e.id = r.event_id
            WHERE r.scope_hash = run.scope_hash AND r.id > coalesce(approved, 0) AND r.id <= run.id
            -- A worker is nobody: a job's run was made by who had ordered it by then.
            AND coalesce(e.person, ({SCHEMA}.job_order(e.detail::jsonb ->> 'job', e.id)).person)
                = $1
            -- The first one of a scope has the rules before it that the run is held against by now.
            AND r.rules_hash <> coalesce(b.rules_hash, {SCHEMA}.rules_against(run.id));
        IF changed IS NOT NULL THEN
            {refuse(NOT_ALLOWED, _CHANGED_RULES, "whose, changed")};
        END IF;
    END $$""",
    # Refuses approval if a report of these and other tenants was approved after page one.
    "refuse_signed_since(number integer)": f"""
    RETURNS void LANGUAGE plpgsql STABLE {SAFE} AS $$
    BEGIN
        -- What is signed of the scope itself is what counts, and whoever signs here sees that.
        IF EXISTS (SELECT FROM {SCHEMA}.reconciliation run
            JOIN {SCHEMA}.event saved ON saved.id = run.event_id
            JOIN {SCHEMA}.reconciliation w ON w.id <> run.id
            JOIN {SCHEMA}.signature s ON s.reconciliation_id = w.id
                AND s.role = '{Role.APPROVED}' AND s.event_id > {_SIGNED_THROUGH}
            WHERE run.id = $1 AND NOT {SCHEMA}.sees_scope(w.scope)
            AND ({tenants_of("w.scope")} && {tenants_of("run.scope")}) IS NOT FALSE
            AND NOT EXISTS (SELECT FROM {SCHEMA}.reconciliation o
                JOIN {SCHEMA}.signature p ON p.reconciliation_id = o.id
                    AND p.role = '{Role.APPROVED}'
                WHERE o.scope_hash = run.scope_hash AND o.id < run.id))
        THEN
            {refuse(NOT_ALLOWED, _SIGNED_SINCE, "$1")};
        END IF;
    END $$""",
    # Notes that whoever is logged in has looked at a page or a break of a run.
    "look_at(number integer, what text)": f"""RETURNS void LANGUAGE sql {SAFE} AS $$
        INSERT INTO {SCHEMA}.look (account, reconciliation_id, what, at)
        SELECT a.name, r.id, $2, clock_timestamp()
        FROM {SCHEMA}.acting() a, {SCHEMA}.reconciliation r
        WHERE a.name IS NOT NULL AND r.id = $1 AND {SCHEMA}.sees_scope(r.scope)
        AND ($2 IN ({listed([*Look])}) OR EXISTS (SELECT FROM {SCHEMA}.break_state b
            WHERE b.reconciliation_id = $1 AND b.break_id = $2))
        ON CONFLICT DO NOTHING
    $$""",
    # Refuses an acceptance that takes two people unless another proposed it in the same terms.
    "refuse_alone(person text)": f"""RETURNS void LANGUAGE plpgsql STABLE {SAFE} AS $$
    DECLARE
        least text;
        larger bigint;
        first text;
    BEGIN
        SELECT min(l.above), count(*), min(d.break_id) INTO least, larger, first
        FROM pg_temp.draft_decision d
        JOIN {SCHEMA}.break_state b USING (reconciliation_id, break_id)
        CROSS JOIN LATERAL {LIMIT} l
        WHERE ({LARGEST} > l.above OR d.up_to::numeric > l.above OR {NO_AMOUNT})
        AND NOT EXISTS (SELECT FROM {SCHEMA}.decision p JOIN {SCHEMA}.event e ON e.id = p.event_id
            WHERE (p.reconciliation_id, p.break_id, p.what) =
                (d.reconciliation_id, d.break_id, '{Choice.PROPOSE}')
            AND (p.until, p.up_to::numeric) IS NOT DISTINCT FROM (d.until, d.up_to::numeric)
            -- What was decided after it has answered it, whatever that was.
            AND NOT EXISTS (SELECT FROM {SCHEMA}.decision n
                WHERE (n.reconciliation_id, n.break_id) = (p.reconciliation_id, p.break_id)
                AND n.id > p.id AND n.what NOT IN ({listed(NO_CHANGE)}))
            AND e.person <> $1 AND {SCHEMA}.account_may(
                e.person, {array(MAY_DECIDE[Choice.PROPOSE])}, b.tenant::text));
        IF larger > 0 THEN
            {refuse(NOT_ALLOWED, _ONE_ALONE, "least, larger, first")};
        END IF;
    END $$""",
    # Writes the drafted decisions of the acting user, if they may decide so.
    "decide(what text, said_by text, reason text, detail text)": f"""
    RETURNS bigint LANGUAGE plpgsql {SAFE} AS $$
    DECLARE
        drafted regclass := {SCHEMA}.drafted('decision');
        person text := CASE what {_account_by_event(DECIDED, MAY_DECIDE)} END;
        tenants text := ({SCHEMA}.acting()).tenants;
    BEGIN
        {as_the_person("said_by")}
        PERFORM {SCHEMA}.lock_last_run((detail::jsonb ->> 'reconciliation')::integer);
        IF tenants <> '' AND EXISTS (SELECT FROM pg_temp.draft_decision d
            JOIN {SCHEMA}.break_state b USING (reconciliation_id, break_id)
            WHERE b.tenant IS NULL OR b.tenant::text <> ALL (string_to_array(tenants, ' ')))
        THEN
            {refuse(NOT_YOURS, "%s decides about the tenants %s alone", "person, tenants")};
        END IF;
        IF said_by ~ '^{BY_RULE}$' THEN
            {refuse(NOT_ALLOWED, "nobody is called %L: rules of acceptance are", "said_by")};
        END IF;
        IF what = '{DECIDED[Choice.ACCEPT]}' AND person IS NOT NULL THEN
            PERFORM {SCHEMA}.refuse_alone(person);
        END IF;
        RETURN {SCHEMA}.write_decisions(what, said_by, reason, detail);
    END $$""",
    # Gives the run and locks its scope; no other run may have followed it.
    "lock_last_run(number integer)": f"""RETURNS {SCHEMA}.reconciliation
    LANGUAGE plpgsql {SAFE} AS $$
    DECLARE
        run {SCHEMA}.reconciliation;
    BEGIN
        -- Until the transaction ends nobody else decides about its breaks or follows it.
        SELECT * INTO STRICT run FROM {SCHEMA}.reconciliation r WHERE r.id = number;
        PERFORM {SCHEMA}.lock_scope(run.scope_hash);
        IF EXISTS (SELECT FROM {SCHEMA}.reconciliation r
            WHERE r.scope_hash = run.scope_hash AND r.id > run.id)
        THEN
            RAISE EXCEPTION 'another reconciliation has followed reconciliation %', number;
        END IF;
        RETURN run;
    END $$""",
    # The hash of the drafted decisions, as in the detail of their event.
    "drafted_digest()": f"""RETURNS text LANGUAGE plpgsql STABLE {SAFE} AS $$
    DECLARE
        drafted regclass := {SCHEMA}.drafted('decision');
    BEGIN
        RETURN (SELECT encode(sha256(convert_to(string_agg(
            CASE WHEN d.up_to IS NULL THEN json_build_array({_COLUMNS})
            ELSE json_build_array({_COLUMNS}, d.up_to) END::text || chr(10), ''
            ORDER BY d.break_id COLLATE "C"), 'UTF8')), 'hex') FROM pg_temp.draft_decision d);
    END $$""",
    # Writes the drafted decisions, of people or a rule, if they are what their event says.
    "write_decisions(what text, said_by text, reason text, detail text)": f"""
    RETURNS bigint LANGUAGE plpgsql {SAFE} AS $$
    DECLARE
        event bigint;
        told jsonb := detail;
        drafted regclass := {SCHEMA}.drafted('decision');
    BEGIN
        IF what NOT IN ({listed([*DECIDED.values()])}) THEN
            RAISE EXCEPTION '% is no decision', quote_literal(what);
        END IF;
        IF NOT EXISTS (SELECT FROM pg_temp.draft_decision) OR EXISTS (
            SELECT FROM pg_temp.draft_decision d WHERE
            ({_event("d.what", DECIDED)}, d.by, d.reason, to_jsonb(d.reconciliation_id))
                IS DISTINCT FROM ($1, $2, $3, told -> 'reconciliation')
            OR NOT coalesce({_TERMS}, false))
        OR EXISTS (
            SELECT FROM pg_temp.draft_decision d GROUP BY d.break_id HAVING count(*) > 1)
        OR EXISTS (
            SELECT d.reconciliation_id, d.break_id FROM pg_temp.draft_decision d EXCEPT
            SELECT b.reconciliation_id, b.break_id FROM {SCHEMA}.break_state b
            WHERE b.reconciliation_id = (told ->> 'reconciliation')::integer)
        OR told ->> 'sha256' IS DISTINCT FROM {SCHEMA}.drafted_digest()
        THEN
            RAISE EXCEPTION 'the decisions are not what event % says of them', quote_literal(what);
        END IF;
        event := {SCHEMA}.new_event(NULL, what, said_by, reason, detail);
        PERFORM {SCHEMA}.take_draft('decision', event);
        RETURN event;
    END $$""",
    # Writes the drafted signature, if it is what its event says and may be given.
    "sign(what text, said_by text, reason text, detail text)": f"""
    RETURNS bigint LANGUAGE plpgsql {SAFE} AS $$
    DECLARE
        event bigint;
        told jsonb := detail;
        drafted regclass := {SCHEMA}.drafted('signature');
        one {SCHEMA}.signature;
        run {SCHEMA}.reconciliation;
        prepared {SCHEMA}.signature;
        person text := CASE what {_account_by_event(SIGNED, MAY_SIGN)} END;
    BEGIN
        IF what NOT IN ({listed([*SIGNED.values()])}) THEN
            RAISE EXCEPTION '% is no signature', quote_literal(what);
        END IF;
        SELECT * INTO one FROM pg_temp.draft_signature;
        SELECT * INTO run FROM {SCHEMA}.reconciliation r WHERE r.id = one.reconciliation_id;
        IF run.id IS NULL OR ({_event("one.role", SIGNED)}, one."by", one.comment, one.report_hash,
            told -> 'reconciliation', told ->> 'role', told ->> 'report_hash') IS DISTINCT FROM
            ($1, $2, $3, run.report_hash, to_jsonb(run.id), one.role, run.report_hash)
        THEN
            RAISE EXCEPTION 'the signature is not what event % says of it', quote_literal(what);
        END IF;
        {as_the_person('one."by"')}
        IF NOT {SCHEMA}.sees_scope(run.scope) THEN
            {refuse(NOT_YOURS, "%s has no right to %L", "person, run.scope")};
        END IF;
        SELECT * INTO prepared FROM {SCHEMA}.signature p
            WHERE p.reconciliation_id = run.id AND p.role = '{Role.PREPARED}';
        IF one.role = '{Role.APPROVED}' AND person IS NOT NULL THEN
            PERFORM {SCHEMA}.refuse_interested(person, run.id);
            PERFORM {SCHEMA}.refuse_signed_since(run.id);
        END IF;
        -- The one who prepared is held against the one who approves, so it is there before.
        IF one.role = '{Role.APPROVED}' AND (prepared.role IS NULL
            OR {plain_name('prepared."by"')} = {plain_name('one."by"')}
            OR run.verdict NOT IN ({listed([*RECONCILED])}))
        THEN
            RAISE EXCEPTION 'reconciliation % is not to be approved by %: it says %, prepared by %',
                run.id, quote_literal(one."by"), run.verdict, coalesce(prepared."by", 'nobody');
        END IF;
        -- Its verdict is of when it was saved.
        IF one.role = '{Role.APPROVED}' AND EXISTS ({_TAKEN_BACK}) THEN
            RAISE EXCEPTION 'reconciliation % is not to be approved: a break that it shows as '
                'accepted was reopened since', run.id;
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
        -- Where people log in, the account of the database is that of their desk.
        IF person IS NULL AND NOT pg_has_role(session_user, current_user, 'MEMBER') AND EXISTS (
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
}
"""Definitions of the functions, by their heads."""
