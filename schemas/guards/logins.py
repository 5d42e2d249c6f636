"""The functions that let an account log in and out.

A session of the database says who acts by setting the token of a login. Whoever logs in draws the
token, and nobody else knows it: the database keeps its hash. So no role decides or signs in the
name of another account, whatever program it runs.
"""

from collections.abc import Mapping

from schemas.accounts import HOURS, How
from schemas.derived.sql_names import SAFE, SCHEMA
from schemas.guards.accounts import (
    LOGGED_IN,
    LOGGED_OUT,
    LOGIN,
    LOGIN_HASH,
    NOT_ALLOWED,
    OWN_CHANGE,
    REFUSED_LOGIN,
    array,
    refuse,
)

TRIES = 5
"""Logins that may be refused in a row before the next one has to wait."""
LONGEST_WAIT = 900


_AT_BITS = 42
"""Low bits of a counter with the milliseconds of the last try; the number of tries is above."""
_MOST_TRIES = 1_000_000

LOGINS_OF: Mapping[str, str] = {
    # Sequences, because no rollback takes back what they count: else a statement that fails after
    # a wrong try would undo it.
    "tries(whose text, asked_for text)": f"""RETURNS text LANGUAGE sql IMMUTABLE {SAFE} AS $$
        SELECT '{SCHEMA}.tries_' || md5(asked_for || ' ' || whose)
    $$""",
    "count_tries(whose text)": f"""RETURNS void LANGUAGE plpgsql {SAFE} AS $$
    DECLARE
        asked_for text;
    BEGIN
        FOREACH asked_for IN ARRAY {array([LOGIN, OWN_CHANGE])} LOOP
            EXECUTE 'CREATE SEQUENCE IF NOT EXISTS ' || {SCHEMA}.tries(whose, asked_for);
        END LOOP;
    END $$""",
    "forget_tries(whose text, asked_for text)": f"""RETURNS void LANGUAGE sql {SAFE} AS $$
        SELECT setval({SCHEMA}.tries(whose, asked_for)::regclass, 1)
    $$""",
    "refused(whose text, asked_for text)": f"""
    RETURNS TABLE (failed integer, failed_at timestamptz) LANGUAGE plpgsql STABLE {SAFE} AS $$
    BEGIN
        IF {SCHEMA}.sees_all() OR whose = {SCHEMA}.acting_name() THEN
            RETURN QUERY SELECT * FROM {SCHEMA}.refused_tries(whose, asked_for);
        END IF;
    END $$""",
    "refused_tries(whose text, asked_for text)": f"""
    RETURNS TABLE (failed integer, failed_at timestamptz) LANGUAGE plpgsql STABLE {SAFE} AS $$
    DECLARE
        counted bigint;
    BEGIN
        EXECUTE 'SELECT last_value FROM ' || {SCHEMA}.tries(whose, asked_for) INTO counted;
        failed := (counted >> {_AT_BITS})::integer;
        failed_at := CASE WHEN failed > 0
            THEN to_timestamp((counted & ((1::bigint << {_AT_BITS}) - 1)) / 1000.0) END;
        RETURN NEXT;
    END $$""",
    "password_fits(whose text, key text, asked_for text)": f"""
    RETURNS boolean LANGUAGE plpgsql {SAFE} AS $$
    DECLARE
        one {SCHEMA}.account;
        before record;
        waits double precision;
    BEGIN
        -- One at a time, so that tries are counted.
        SELECT * INTO one FROM {SCHEMA}.account a WHERE a.name = whose FOR UPDATE;
        IF one.name IS NULL OR one.disabled OR one.verifier IS NULL THEN
            RETURN false;
        END IF;
        SELECT * INTO before FROM {SCHEMA}.refused_tries(whose, asked_for);
        waits := CASE WHEN before.failed < {TRIES} THEN 0
            ELSE least({LONGEST_WAIT}, 2 ^ least(before.failed - {TRIES}, 20))
                - extract(epoch FROM clock_timestamp() - before.failed_at) END;
        -- Said otherwise, it would say that there is such an account.
        IF waits > 0 THEN
            RETURN false;
        END IF;
        IF $2 IS NULL OR $2 !~ '^[0-9a-f]+$' OR length($2) % 2 = 1
            OR encode(sha256(decode($2, 'hex')), 'hex') <> one.verifier
        THEN
            PERFORM setval({SCHEMA}.tries(whose, asked_for)::regclass,
                (least(before.failed + 1, {_MOST_TRIES})::bigint << {_AT_BITS})
                | (extract(epoch FROM clock_timestamp()) * 1000)::bigint);
            PERFORM {SCHEMA}.new_event(NULL, '{REFUSED_LOGIN}', whose, NULL, NULL);
            RETURN false;
        END IF;
        PERFORM {SCHEMA}.forget_tries(whose, asked_for);
        RETURN true;
    END $$""",
    "log_in(whose text, key text, token_hash text, seconds integer)": f"""
    RETURNS text LANGUAGE plpgsql {SAFE} AS $$
    BEGIN
        IF NOT {SCHEMA}.password_fits(whose, $2, '{LOGIN}') THEN
            RETURN 'wrong';
        END IF;
        PERFORM {SCHEMA}.open_login(whose, '{How.PASSWORD}', $3, $4);
        RETURN 'ok';
    END $$""",
    "open_login(whose text, how text, token_hash text, seconds integer)": f"""
    RETURNS void LANGUAGE plpgsql {SAFE} AS $$
    DECLARE
        one {SCHEMA}.login;
    BEGIN
        IF $3 !~ '^[0-9a-f]{{64}}$' OR $4 NOT BETWEEN 1 AND {HOURS * 3600} THEN
            {refuse(NOT_ALLOWED, "no login is kept so")};
        END IF;
        DELETE FROM {SCHEMA}.login l WHERE l.expires_at < clock_timestamp() - interval '1 day';
        INSERT INTO {SCHEMA}.login (token_hash, account, how, opened_at, expires_at)
        VALUES ($3, whose, how, clock_timestamp(), clock_timestamp() + $4 * interval '1s')
        RETURNING * INTO one;
        PERFORM {SCHEMA}.new_event(NULL, '{LOGGED_IN}', whose, NULL,
            json_build_object('how', how, 'sha256', {LOGIN_HASH})::text);
    END $$""",
    "vouch(known_as text, how text, token_hash text, seconds integer)": f"""
    RETURNS text LANGUAGE plpgsql {SAFE} AS $$
    DECLARE
        whose text;
    BEGIN
        IF how NOT IN ('{How.OIDC}', '{How.PROXY}') THEN
            {refuse(NOT_ALLOWED, "nobody vouches for a password")};
        END IF;
        -- Whoever changes it meanwhile ends the logins that there are.
        SELECT a.name INTO whose FROM {SCHEMA}.account a
            WHERE a.subject = how || ' ' || known_as AND NOT a.disabled FOR SHARE;
        IF whose IS NOT NULL THEN
            PERFORM {SCHEMA}.open_login(whose, how, $3, $4);
        END IF;
        RETURN whose;
    END $$""",
    "log_out()": f"""RETURNS void LANGUAGE plpgsql {SAFE} AS $$
    DECLARE
        whose text := ({SCHEMA}.acting()).name;
    BEGIN
        IF whose IS NOT NULL THEN
            PERFORM {SCHEMA}.end_login(encode(sha256(convert_to(
                current_setting('recon.login', true), 'UTF8')), 'hex'), whose);
        END IF;
    END $$""",
    "end_login(hashed text, said_by text)": f"""RETURNS void LANGUAGE plpgsql {SAFE} AS $$
    DECLARE
        one {SCHEMA}.login;
    BEGIN
        SELECT * INTO one FROM {SCHEMA}.login l WHERE l.token_hash = hashed FOR UPDATE;
        IF one.ended_at IS NULL THEN
            -- Said by whoever ends it, who may be logged in by it.
            PERFORM {SCHEMA}.new_event(NULL, '{LOGGED_OUT}', said_by, NULL,
                json_build_object('name', one.account, 'sha256', {LOGIN_HASH})::text);
            UPDATE {SCHEMA}.login l SET ended_at = clock_timestamp() WHERE l.token_hash = hashed;
        END IF;
    END $$""",
}
"""Definitions of the functions, by their heads."""
