"""The functions that keep accounts, and say who is acting.

No password comes here. A client derives a key from the password (Argon2id, with the salt kept with
the account) and sends that; the database keeps the key's hash and compares. Nobody can log in with
what the table contains.

Refusals carry a SQLSTATE of our own class RC and a message for people.
"""

from collections.abc import Iterable, Mapping

from schemas.accounts import ADDRESS, FULL_NAME, LONGEST_ADDRESS, NAME, AccountRole, How
from schemas.derived.sql_names import SAFE, SCHEMA, listed
from schemas.guards.readable import hashed, is_money, or_none, time_text
from schemas.life import RESTATED
from schemas.show_as import PATTERN

REFUSED = "RC"
"""The SQLSTATE class of what an account may not do."""
NOBODY, NOT_YOURS, NOT_ALLOWED, NOT_THERE = "RC001", "RC002", "RC003", "RC004"
"""Nobody is logged in; the role or tenant is missing; a rule forbids it; no such thing exists."""
ARGON2 = "argon2id$v=19$m=19456,t=2,p=1$"
"""How keys are derived from new passwords; 16 bytes of salt in hex follow."""
ADDED, CHANGED, PASSWORD = "account added", "account changed", "password set"
LOGGED_IN, LOGGED_OUT, REFUSED_LOGIN = "logged in", "logged out", "login refused"
LOGIN, OWN_CHANGE = "login", "change"
"""What passwords are tried for. Tries are counted separately, so that guessing at the login does
not keep a person who is logged in from setting another password."""
ACCOUNT_KEPT = (ADDED, CHANGED, PASSWORD)
"""Events that say what an account is from then on."""
LIMIT = "acceptance limit set"
SUBSCRIBED, UNSUBSCRIBED = "subscription added", "subscription removed"
ACCOUNT_EVENTS = (
    *ACCOUNT_KEPT,
    LIMIT,
    SUBSCRIBED,
    UNSUBSCRIBED,
    LOGGED_IN,
    LOGGED_OUT,
    REFUSED_LOGIN,
)
"""Events that only these functions write."""
ACCOUNT_FACTS = ("name", "full_name", "roles", "tenants", "subject", "disabled")
"""Columns in the event of a changed account, besides the hash of salt and verifier."""


LOGIN_HASH = hashed(
    "one.token_hash", "one.account", "one.how",
    time_text("one.opened_at"), time_text("one.expires_at"),
)  # fmt: skip
"""SQL for the hash of a login `one`, as in the events that open and end it."""

BATCH_SCOPE = "'tenants ' || (b.profile::json ->> 'tenant')"
"""SQL for the scope that a batch `b` belongs to; null if it is bound to no tenant."""


def array(words: Iterable[str]) -> str:
    return f"ARRAY[{listed(words)}]"


def tenants_of(scope: str) -> str:
    """SQL for the tenants that a scope is about; null if it may be about any.

    In restatements of earlier versions, text typed by people names no tenants.
    """
    return (
        f"string_to_array(substring({scope} FROM "
        "'^(?:(?:batches|feeds) [^;, ]+(?:, [^;, ]+)*; )*"
        f"tenants (-?[0-9]+(?:, -?[0-9]+)*)(?:$|{RESTATED})'), ', ')"
    )


def scope_within(scope: str) -> str:
    """SQL for whether a scope is about no other tenants than those of the account `a`."""
    return f"coalesce({tenants_of(scope)} <@ string_to_array(a.tenants, ' '), false)"


def require(roles: Iterable[AccountRole], what: str) -> str:
    """SQL for the name of the acting user, null if there are no accounts; `what` is SQL too."""
    return f"{SCHEMA}.require_role({array(roles)}, {what})"


def refuse(state: str, message: str, values: str = "") -> str:
    """SQL that raises a refusal; each %s of the message stands for one of the SQL values."""
    text = f"format('{message}', {values})" if values else f"'{message}'"
    return f"RAISE EXCEPTION USING ERRCODE = '{state}', MESSAGE = {text}"


_WITHIN = scope_within("scope")
NAMES_NO_LOGIN = (
    f"(coalesce(current_setting('recon.login', true), '') = '' OR NOT {SCHEMA}.has_accounts())"
)
"""SQL for whether a session that acts by no login names no login either.

One that names a login had one that has ended meanwhile, and sees nothing.
"""
_OWNER = f"(pg_has_role(session_user, current_user, 'MEMBER') AND {NAMES_NO_LOGIN})"
"""SQL for whether the owner of the schema acts. People who are or were logged in are held to their
roles even so, since a desk may connect as the owner."""
IS_FOR_ALL = f"CASE WHEN a.name IS NULL THEN {NAMES_NO_LOGIN} ELSE coalesce(a.tenants, '') = '' END"
"""SQL for whether the acting user, the row `a` of `acting`, is bound to no tenants."""
_NO_ROLE = refuse(
    NOT_YOURS,
    "%s is %s, and %s takes %s",
    "person.name, replace(person.roles, ' ', ', '), what, array_to_string(wanted, ' or ')",
)
_NOT_THEIRS = refuse(
    NOT_YOURS,
    "%s acts for the tenants %s alone, and %s",
    "person.name, replace(person.tenants, ' ', ', '), CASE WHEN number IS NULL "
    "THEN what || ' is for all' ELSE 'batch ' || number || ' is bound to no such tenant' END",
)
_NO_ACCOUNT = refuse(
    NOT_ALLOWED, "no account can be %L, called %L, with the roles %L and the tenants %L",
    "$1, $2, $3, $4"
)  # fmt: skip

_CHANGED_SINCE = refuse(
    NOT_ALLOWED,
    "somebody else has changed the account %L since it was read, so nothing was changed: look at "
    "it again",
    "$1",
)

_FACTS = ", ".join(f"'{name}', one.{name}" for name in ACCOUNT_FACTS)

ACCOUNTS_OF: Mapping[str, str] = {
    "acting()": f"""RETURNS {SCHEMA}.account LANGUAGE sql STABLE {SAFE} AS $$
        SELECT a.* FROM {SCHEMA}.login l JOIN {SCHEMA}.account a ON a.name = l.account
        WHERE l.token_hash = encode(sha256(convert_to(
            current_setting('recon.login', true), 'UTF8')), 'hex')
        AND l.ended_at IS NULL AND l.expires_at > clock_timestamp() AND NOT a.disabled
    $$""",
    "acting_as()": f"""RETURNS json LANGUAGE sql STABLE {SAFE} AS $$
        SELECT json_build_object('name', a.name, 'full_name', a.full_name, 'roles', a.roles,
            'tenants', a.tenants, 'subject', a.subject, 'show_as', a.show_as,
            'own_password', a.verifier IS NOT NULL)
        FROM {SCHEMA}.acting() a WHERE a.name IS NOT NULL
    $$""",
    "has_accounts()": f"""RETURNS boolean LANGUAGE sql STABLE {SAFE} AS $$
        SELECT EXISTS (SELECT FROM {SCHEMA}.account)
    $$""",
    "sees_scope(scope text)": f"""RETURNS boolean LANGUAGE sql STABLE {SAFE} AS $$
        SELECT {IS_FOR_ALL} OR {_WITHIN} FROM {SCHEMA}.acting() a
    $$""",
    "account_sees(whose text, scope text)": f"""RETURNS boolean LANGUAGE sql STABLE {SAFE} AS $$
        SELECT EXISTS (SELECT FROM {SCHEMA}.account a
            WHERE a.name = $1 AND NOT a.disabled
            AND (coalesce(a.tenants, '') = '' OR {_WITHIN}))
    $$""",
    "account_may(whose text, wanted text[], tenant text)": f"""
    RETURNS boolean LANGUAGE sql STABLE {SAFE} AS $$
        -- What somebody proposed counts while they may propose it.
        SELECT EXISTS (SELECT FROM {SCHEMA}.account a WHERE a.name = $1 AND NOT a.disabled
            AND string_to_array(a.roles, ' ') && $2
            AND (coalesce(a.tenants, '') = '' OR $3 = ANY (string_to_array(a.tenants, ' '))))
    $$""",
    "sees_batch(number integer)": f"""RETURNS boolean LANGUAGE sql STABLE {SAFE} AS $$
        -- A batch that is bound to no tenant may hold rows of any; what is about none is about all.
        SELECT coalesce((SELECT {SCHEMA}.sees_scope({BATCH_SCOPE}) FROM {SCHEMA}.batch b
            WHERE b.id = $1), {SCHEMA}.sees_scope(NULL))
    $$""",
    "require_operator(what text, number integer)": f"""
    RETURNS void LANGUAGE plpgsql STABLE {SAFE} AS $$
    DECLARE
        person {SCHEMA}.account := {SCHEMA}.acting();
    BEGIN
        -- A worker is nobody, and goes on by the rules of a batch.
        IF person.name IS NOT NULL THEN
            PERFORM {require([AccountRole.OPERATOR], "what")};
            IF NOT {SCHEMA}.sees_batch(number) THEN
                {_NOT_THEIRS};
            END IF;
        END IF;
    END $$""",
    "require_role(wanted text[], what text)": f"""RETURNS text LANGUAGE plpgsql STABLE {SAFE} AS $$
    DECLARE
        person {SCHEMA}.account := {SCHEMA}.acting();
    BEGIN
        IF person.name IS NULL THEN
            IF {SCHEMA}.has_accounts() THEN
                {refuse(NOBODY, "nobody is logged in, and %s takes an account", "what")};
            END IF;
            RETURN NULL;
        END IF;
        IF NOT string_to_array(person.roles, ' ') && wanted THEN
            {_NO_ROLE};
        END IF;
        RETURN person.name;
    END $$""",
    "require_administrator(what text)": f"""RETURNS void LANGUAGE plpgsql STABLE {SAFE} AS $$
    DECLARE
        person {SCHEMA}.account := {SCHEMA}.acting();
        number integer;
    BEGIN
        IF {_OWNER} THEN
            RETURN;
        END IF;
        PERFORM {require([AccountRole.ADMINISTRATOR], "what")};
        IF person.name IS NULL THEN
            {refuse(NOT_YOURS, "the first account is added by the owner of the schema")};
        END IF;
        -- Whoever keeps accounts gives rights, and is bound to none of them.
        IF person.tenants <> '' THEN
            {_NOT_THEIRS};
        END IF;
    END $$""",
    "password_hash(whose text)": f"""RETURNS text LANGUAGE sql STABLE {SAFE} AS $$
        -- What an event says of a password: that it is the same one, and nothing to guess it by.
        SELECT encode(sha256(convert_to(
            concat_ws('|', a.pepper, a.salt || '|' || a.verifier), 'UTF8')), 'hex')
        FROM {SCHEMA}.account a WHERE a.name = $1 AND a.verifier IS NOT NULL
    $$""",
    "account_event(what text, said_by text, whose text)": f"""
    RETURNS bigint LANGUAGE plpgsql {SAFE} AS $$
    DECLARE
        event bigint;
        one {SCHEMA}.account;
    BEGIN
        SELECT * INTO STRICT one FROM {SCHEMA}.account a WHERE a.name = whose;
        event := {SCHEMA}.new_event(NULL, what, said_by, NULL, json_build_object({_FACTS},
            'password', {SCHEMA}.password_hash(whose))::text);
        UPDATE {SCHEMA}.account a SET event_id = event WHERE a.name = whose;
        RETURN event;
    END $$""",
    "keep_account(name text, full_name text, roles text, tenants text, subject text, "
    "disabled boolean, said_by text, seen bigint)": f"""
    RETURNS bigint LANGUAGE plpgsql {SAFE} AS $$
    DECLARE
        there boolean;
        known_as text;
        known_anew boolean;
        last bigint;
    BEGIN
        PERFORM {SCHEMA}.require_administrator('keeping accounts');
        IF $1 !~ '^{NAME}$' OR length(btrim($2)) NOT BETWEEN 1 AND {FULL_NAME}
            OR $3 = '' OR NOT string_to_array($3, ' ') <@ {array(AccountRole)}
            OR $4 !~ '^-?[0-9]{{1,10}}( -?[0-9]{{1,10}})*$'
        THEN
            {_NO_ACCOUNT};
        END IF;
        -- Nothing else keeps two that are added at once from having one name, or one subject.
        LOCK TABLE {SCHEMA}.account IN SHARE ROW EXCLUSIVE MODE;
        IF EXISTS (SELECT FROM {SCHEMA}.account a WHERE a.subject = $5 AND a.name <> $1) THEN
            {refuse(NOT_ALLOWED, "%L is another account already", "$5")};
        END IF;
        SELECT a.subject, a.event_id INTO known_as, last FROM {SCHEMA}.account a
            WHERE a.name = $1 FOR UPDATE;
        there := FOUND;
        -- Who read it before says by which event it was; null: however it is, 0: it is a new one.
        IF $8 <> coalesce(last, 0) THEN
            {_CHANGED_SINCE};
        END IF;
        INSERT INTO {SCHEMA}.account AS a (name, full_name, roles, tenants, subject, disabled,
            event_id) VALUES ($1, btrim($2), $3, $4, $5, $6, 0)
        ON CONFLICT ON CONSTRAINT account_pkey DO UPDATE SET (full_name, roles, tenants, subject,
            disabled) = (EXCLUDED.full_name, EXCLUDED.roles, EXCLUDED.tenants, EXCLUDED.subject,
            EXCLUDED.disabled);
        -- Whom somebody else shows from now on shows nothing here.
        known_anew := known_as IS NULL AND $5 IS NOT NULL;
        IF known_anew THEN
            UPDATE {SCHEMA}.account a SET (salt, verifier, pepper) = (NULL, NULL, NULL)
                WHERE a.name = $1;
        END IF;
        PERFORM {SCHEMA}.count_tries($1);
        IF $4 <> '' THEN
            PERFORM {SCHEMA}.shut_targets();
        END IF;
        -- Whoever was shown to be it by another name is somebody else now.
        IF $6 OR $5 IS DISTINCT FROM known_as THEN
            PERFORM {SCHEMA}.end_login(l.token_hash, $7) FROM {SCHEMA}.login l
                WHERE l.account = $1 AND l.ended_at IS NULL
                AND ($6 OR known_anew OR l.how <> '{How.PASSWORD}');
        END IF;
        RETURN {SCHEMA}.account_event(
            CASE WHEN there THEN '{CHANGED}' ELSE '{ADDED}' END, $7, $1);
    END $$""",
    "keep_subscription(whose text, scope text, address text, said_by text)": f"""
    RETURNS bigint LANGUAGE plpgsql {SAFE} AS $$
    DECLARE
        person {SCHEMA}.account := {SCHEMA}.acting();
        hashed text := encode(sha256(convert_to($2, 'UTF8')), 'hex');
        event bigint;
    BEGIN
        IF whose IS DISTINCT FROM person.name THEN
            PERFORM {SCHEMA}.require_administrator('subscribing for another');
        END IF;
        IF NOT EXISTS (SELECT FROM {SCHEMA}.account a WHERE a.name = whose) THEN
            {refuse(NOT_THERE, "there is no account %L", "whose")};
        END IF;
        IF $3 IS NULL THEN
            DELETE FROM {SCHEMA}.subscription s WHERE s.account = whose AND s.scope_hash = hashed;
            IF NOT FOUND THEN
                {refuse(NOT_ALLOWED, "%s is not subscribed to the scope %L", "whose, $2")};
            END IF;
            RETURN {SCHEMA}.new_event(NULL, '{UNSUBSCRIBED}', $4, NULL,
                json_build_object('name', whose, 'scope', $2)::text);
        END IF;
        IF $3 !~ '^{ADDRESS.replace("'", "''")}$' OR length($3) > {LONGEST_ADDRESS} THEN
            {refuse(NOT_ALLOWED, "%L is no address of e-mail, such as anna@example.com", "$3")};
        END IF;
        IF NOT {SCHEMA}.account_sees(whose, $2) OR NOT EXISTS (
            SELECT FROM {SCHEMA}.reconciliation r WHERE r.scope_hash = hashed)
        THEN
            {
        refuse(NOT_THERE, "there is no reconciliation of a scope %L that %s sees", "$2, whose")
    };
        END IF;
        event := {SCHEMA}.new_event(NULL, '{SUBSCRIBED}', $4, NULL,
            json_build_object('name', whose, 'scope', $2, 'address', $3)::text);
        INSERT INTO {SCHEMA}.subscription AS s (account, scope_hash, scope, address, event_id)
        VALUES (whose, hashed, $2, $3, event)
        ON CONFLICT ON CONSTRAINT subscription_pkey DO UPDATE
            SET (address, event_id) = (EXCLUDED.address, EXCLUDED.event_id);
        RETURN event;
    END $$""",
    "claim_mail(number integer, tried text[])": f"""
    RETURNS TABLE (account text, address text) LANGUAGE plpgsql {SAFE} AS $$
    BEGIN
        -- Whoever claims it has it until the transaction ends; who may see the run is asked now.
        RETURN QUERY SELECT m.account::text, s.address::text FROM {SCHEMA}.report_mail m
            JOIN {SCHEMA}.reconciliation r ON r.id = m.reconciliation_id
            JOIN {SCHEMA}.subscription s ON s.account = m.account AND s.scope_hash = r.scope_hash
            WHERE m.reconciliation_id = number AND m.sent_at IS NULL
            AND m.account <> ALL (tried) AND {SCHEMA}.account_sees(m.account, r.scope)
            ORDER BY m.account LIMIT 1 FOR UPDATE OF m SKIP LOCKED;
    END $$""",
    "mail_sent(number integer, whose text)": f"""RETURNS void LANGUAGE sql {SAFE} AS $$
        UPDATE {SCHEMA}.report_mail m SET sent_at = clock_timestamp()
            WHERE m.reconciliation_id = $1 AND m.account = $2 AND m.sent_at IS NULL
    $$""",
    "choose_show_as(whose text, chosen text)": f"""
    RETURNS void LANGUAGE plpgsql {SAFE} AS $$
    DECLARE
        person {SCHEMA}.account := {SCHEMA}.acting();
    BEGIN
        -- It is no right of anybody, so the trail says nothing of it.
        IF whose IS DISTINCT FROM person.name THEN
            PERFORM {SCHEMA}.require_administrator('choosing for another account');
        END IF;
        IF $2 !~ '^{PATTERN}$' THEN
            {refuse(NOT_ALLOWED, "nothing is shown as %L", "$2")};
        END IF;
        UPDATE {SCHEMA}.account a SET show_as = $2 WHERE a.name = whose;
        IF NOT FOUND THEN
            {refuse(NOT_THERE, "there is no account %L", "whose")};
        END IF;
    END $$""",
    "set_password(whose text, salt text, verifier text, old_key text, said_by text)": f"""
    RETURNS bigint LANGUAGE plpgsql {SAFE} AS $$
    DECLARE
        person {SCHEMA}.account := {SCHEMA}.acting();
    BEGIN
        IF whose = person.name THEN
            -- A login that somebody left open is not enough to keep it.
            IF NOT {SCHEMA}.password_fits(whose, old_key, '{OWN_CHANGE}') THEN
                RETURN NULL;  -- An error would take back the event of it.
            END IF;
        ELSE
            PERFORM {SCHEMA}.require_administrator('setting the password of another');
        END IF;
        IF NOT coalesce($2 ~ '^argon2id[$]v=19[$]m=[0-9]+,t=[0-9]+,p=[0-9]+[$][0-9a-f]{{32}}$'
            AND $3 ~ '^[0-9a-f]{{64}}$', false)
        THEN
            {refuse(NOT_ALLOWED, "this is no key of a password")};
        END IF;
        UPDATE {SCHEMA}.account a SET salt = $2, verifier = $3,
            pepper = gen_random_uuid()::text || gen_random_uuid()::text WHERE a.name = whose;
        IF NOT FOUND THEN
            {refuse(NOT_THERE, "there is no account %L", "whose")};
        END IF;
        PERFORM {SCHEMA}.forget_tries(whose, '{LOGIN}');
        -- Whoever had the password before is out, but for who is setting it.
        PERFORM {SCHEMA}.end_login(l.token_hash, said_by) FROM {SCHEMA}.login l
            WHERE l.account = whose AND l.ended_at IS NULL
            AND l.token_hash IS DISTINCT FROM encode(sha256(convert_to(
                current_setting('recon.login', true), 'UTF8')), 'hex');
        RETURN {SCHEMA}.account_event('{PASSWORD}', said_by, whose);
    END $$""",
    "login_salt(whose text)": f"""RETURNS text LANGUAGE sql STABLE {SAFE} AS $$
        -- Of a name that nobody has as well, and always the same: it does not tell who there is.
        SELECT coalesce((SELECT a.salt FROM {SCHEMA}.account a WHERE a.name = $1),
            '{ARGON2}' || left(encode(sha256(convert_to($1 || coalesce((
                SELECT c.hash FROM {SCHEMA}.event_chain c WHERE c.position = 1), ''), 'UTF8')),
            'hex'), 32))
    $$""",
    "keep_limit(currency text, above text, said_by text)": f"""
    RETURNS bigint LANGUAGE plpgsql {SAFE} AS $$
    DECLARE
        event bigint;
    BEGIN
        PERFORM {SCHEMA}.require_administrator('setting a limit');
        IF NOT coalesce($1 ~ '^([*]|-?[0-9]{{1,10}})$', false)
            OR NOT {or_none("$2", is_money("$2"))}
        THEN
            {refuse(NOT_ALLOWED, "%L is no limit of the currency %L", "$2, $1")};
        END IF;
        LOCK TABLE {SCHEMA}.acceptance_limit IN SHARE ROW EXCLUSIVE MODE;
        event := {SCHEMA}.new_event(NULL, '{LIMIT}', $3, NULL,
            json_build_object('currency', $1, 'above', $2)::text);
        DELETE FROM {SCHEMA}.acceptance_limit l WHERE l.currency = $1;
        IF $2 IS NOT NULL THEN
            INSERT INTO {SCHEMA}.acceptance_limit VALUES ($1, $2, event);
        END IF;
        RETURN event;
    END $$""",
}
"""Definitions of the functions, by their heads."""
