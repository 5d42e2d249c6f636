"""The functions that keep jobs: work that an account asks for and another process does.

The login tells who asks. Whoever does a job holds its lease, so that one process at a time does it,
and a job whose process is gone can be started again. What a process writes to the trail during a
job carries the name of who ordered the job last, and the number of the job.
"""

from collections.abc import Mapping, Sequence

from schemas.derived.sql_names import SAFE, SCHEMA, listed
from schemas.guards.accounts import (
    BATCH_SCOPE,
    IS_FOR_ALL,
    NOT_ALLOWED,
    NOT_THERE,
    NOT_YOURS,
    refuse,
    require,
    scope_within,
)
from schemas.guards.batch_states import LACKS_MERGER
from schemas.guards.decisions import as_the_person
from schemas.guards.readable import hashed
from schemas.jobs import (
    ARGUMENTS_LENGTH,
    COULD_NOT_RUN,
    MAY_ORDER,
    MESSAGE_LENGTH,
    OF_MERGER_JOBS,
    ORDERING,
    JobKind,
    JobState,
)

JOB_ORDERED, JOB_AGAIN = "job ordered", "job ordered again"
JOB_REFUSED = "job refused"
"""The event of a job whose orderer may no longer order it when it is taken."""
JOB_ENDED = "job ended"
JOB_EVENTS = (JOB_ORDERED, JOB_AGAIN, JOB_REFUSED, JOB_ENDED)
JOB_FACTS = ("kind", "arguments", "asked_by", "person")
"""Facts of a job that nobody changes; the event of its order has their hash."""
JOB_END = ("state", "exit_code", "said", "batches", "reconciliation_id")
"""The result of a job, kept until it is ordered again; the event of its end has their hash."""

_PERSON = require(MAY_ORDER, f"'{ORDERING}'")
_NO_JOB = refuse(NOT_THERE, "there is no job %s that you may start", "number")
_NO_WORK = refuse(NOT_ALLOWED, "%L is no work that can be ordered so", "$1")
_NO_BATCH = refuse(NOT_THERE, "there is no batch %s", "told ->> 'batch'")
_OTHER_TENANTS = refuse(
    NOT_YOURS, "%s orders work for the tenants %s alone", "person, ({}).tenants"
).format(f"{SCHEMA}.acting()")
_NOT_STOPPED = refuse(NOT_ALLOWED, "job %s is %s, and is not started again", "number, one.state")


def job_hash(job: str, names: Sequence[str] = JOB_FACTS) -> str:
    """SQL for the hash of a job's unchanging facts, or of its result."""
    return hashed(*(f"{job}.{name}" for name in ("id", *names)))


def names_batch(job: str) -> str:
    """SQL for whether what is said of a job may name the batch `b`.

    It may not if the job was ordered by an account limited to tenants, and the batch is of others.
    """
    return (
        f"NOT EXISTS (SELECT FROM {SCHEMA}.account a WHERE a.name = {job}.person "
        f"AND a.tenants <> '' AND NOT {scope_within(BATCH_SCOPE)})"
    )


def _batch_of(arguments: str) -> str:
    """SQL for the batch that a job is about; null if it names none, or one that does not exist.

    A job about a batch that never existed ends like any other; the trail does not name the batch.
    """
    return (
        f"(SELECT b.id FROM {SCHEMA}.batch b "
        f"WHERE b.id = ({arguments}::jsonb ->> 'batch')::integer)"
    )


JOBS_OF: Mapping[str, str] = {
    "sees_job(asked text)": f"""RETURNS boolean LANGUAGE sql STABLE {SAFE} AS $$
        -- An account of some tenants sees what it asked for itself.
        SELECT {IS_FOR_ALL} OR coalesce(a.name = $1, false) FROM {SCHEMA}.acting() a
    $$""",
    "job_lives(number integer)": f"""RETURNS boolean LANGUAGE plpgsql STABLE {SAFE} AS $$
    BEGIN
        RETURN EXISTS (SELECT FROM {SCHEMA}.lease l WHERE l.name = 'job ' || number
            AND l.expires_at > clock_timestamp() AND {SCHEMA}.lease_lives(l.pid, l.mark));
    END $$""",
    "job_order(number text, through bigint)": f"""RETURNS {SCHEMA}.event
    LANGUAGE sql STABLE {SAFE} AS $$
        -- Whoever ordered a job last answers for what it does; null: by now, else by that event.
        SELECT e.* FROM {SCHEMA}.job j JOIN {SCHEMA}.event e ON e.id = j.event_id
            OR e.id > j.event_id AND e.what = '{JOB_AGAIN}' AND e.detail::jsonb ->> 'job' = $1
        WHERE j.id::text = $1 AND ($2 IS NULL OR e.id <= $2) ORDER BY e.id DESC LIMIT 1
    $$""",
    "job_ordered_by(number integer)": f"""RETURNS text LANGUAGE sql STABLE {SAFE} AS $$
        SELECT o."by" FROM {SCHEMA}.job_order($1::text, NULL) o
    $$""",
    "job_at_work()": f"""RETURNS {SCHEMA}.job LANGUAGE sql STABLE {SAFE} AS $$
        -- A session says which job it works for; only the account that took it is believed.
        SELECT j.* FROM {SCHEMA}.job j WHERE j.id::text = current_setting('recon.job', true)
        AND j.state = '{JobState.RUNNING}' AND j.account = session_user
        AND ({SCHEMA}.acting()).name IS NULL
    $$""",
    "job_within(whose text, kind text, told jsonb)": f"""
    RETURNS boolean LANGUAGE sql STABLE {SAFE} AS $$
        -- Whether an account is for all tenants, or a job about its own alone.
        SELECT {SCHEMA}.account_sees($1, NULL) OR {SCHEMA}.account_sees($1, CASE
            WHEN $2 = '{JobKind.IMPORT}' THEN 'tenants ' || ($3 ->> 'tenant')
            WHEN $2 = '{JobKind.RECONCILE}' THEN (SELECT r.scope
                FROM {SCHEMA}.reconciliation r WHERE r.id = ($3 ->> 'run')::integer)
            ELSE (SELECT {BATCH_SCOPE} FROM {SCHEMA}.batch b
                WHERE b.id = ($3 ->> 'batch')::integer)
        END)
    $$""",
    "job_refused(number integer)": f"""RETURNS text LANGUAGE plpgsql STABLE {SAFE} AS $$
    DECLARE
        one {SCHEMA}.job;
        orderer text;
        account {SCHEMA}.account;
        why text;
    BEGIN
        SELECT * INTO STRICT one FROM {SCHEMA}.job j WHERE j.id = number;
        orderer := ({SCHEMA}.job_order(number::text, NULL)).person;
        SELECT * INTO account FROM {SCHEMA}.account a WHERE a.name = orderer;
        why := CASE
            WHEN orderer IS NULL THEN CASE WHEN {SCHEMA}.has_accounts()
                THEN 'it was ordered by nobody who was logged in, and there are accounts now' END
            WHEN account.disabled IS DISTINCT FROM false
                THEN format('%s ordered it, and is disabled now', orderer)
            WHEN NOT string_to_array(account.roles, ' ') && ARRAY[{listed(MAY_ORDER)}]
                THEN format('%s ordered it, and may not order work any more', orderer)
            WHEN NOT {SCHEMA}.job_within(orderer, one.kind, one.arguments::jsonb)
                THEN format('%s ordered it, and acts for the tenants %s alone now', orderer,
                    replace(account.tenants, ' ', ', '))
        END;
        RETURN 'Nothing was done: ' || why || '. Whoever may order it starts it again.';
    END $$""",
    "order_job(kind text, arguments text, said_by text)": f"""
    RETURNS integer LANGUAGE plpgsql {SAFE} AS $$
    DECLARE
        person text := {_PERSON};
        told jsonb := arguments;
        one {SCHEMA}.job;
        event bigint;
    BEGIN
        {as_the_person("said_by")}
        IF kind NOT IN ({listed([*JobKind])}) OR jsonb_typeof(told) <> 'object'
            OR length(arguments) > {ARGUMENTS_LENGTH}
        THEN
            {_NO_WORK};
        END IF;
        IF ({SCHEMA}.acting()).tenants <> '' AND NOT {SCHEMA}.job_within(person, $1, told)
        THEN
            {_OTHER_TENANTS};
        END IF;
        -- A page may be older than the database that was restored behind it.
        IF told ->> 'batch' IS NOT NULL AND {_batch_of("$2")} IS NULL THEN
            {_NO_BATCH};
        END IF;
        INSERT INTO {SCHEMA}.job (kind, arguments, asked_by, person, asked_at, state, batches,
            event_id) VALUES ($1, $2, $3, person, clock_timestamp(), '{JobState.ORDERED}', '', 0)
        RETURNING * INTO one;
        event := {SCHEMA}.new_event({_batch_of("$2")}, '{JOB_ORDERED}', said_by,
            told ->> 'reason', json_build_object('job', one.id, 'kind', kind,
            'sha256', {job_hash("one")})::text);
        UPDATE {SCHEMA}.job j SET event_id = event WHERE j.id = one.id;
        RETURN one.id;
    END $$""",
    "order_again(number integer, said_by text)": f"""
    RETURNS void LANGUAGE plpgsql {SAFE} AS $$
    DECLARE
        person text := {_PERSON};
        one {SCHEMA}.job;
    BEGIN
        {as_the_person("said_by")}
        SELECT * INTO one FROM {SCHEMA}.job j WHERE j.id = number FOR UPDATE;
        IF one.id IS NULL OR NOT {SCHEMA}.sees_job(one.person) THEN
            {_NO_JOB};
        END IF;
        -- Its tenants may be others than when it was ordered.
        IF ({SCHEMA}.acting()).tenants <> ''
            AND NOT {SCHEMA}.job_within(person, one.kind, one.arguments::jsonb)
        THEN
            {_OTHER_TENANTS};
        END IF;
        IF one.state = '{JobState.ORDERED}' OR {SCHEMA}.job_lives(number)
            OR (one.state = '{JobState.ENDED}' AND one.exit_code < {COULD_NOT_RUN})
        THEN
            {_NOT_STOPPED};
        END IF;
        UPDATE {SCHEMA}.job j SET state = '{JobState.ORDERED}', ended_at = NULL, exit_code = NULL,
            said = NULL WHERE j.id = number;
        PERFORM {SCHEMA}.new_event(NULL, '{JOB_AGAIN}', said_by, NULL,
            json_build_object('job', number, 'kind', one.kind)::text);
    END $$""",
    "take_job(number integer, flow_run text)": f"""
    RETURNS boolean LANGUAGE plpgsql {SAFE} AS $$
    DECLARE
        one {SCHEMA}.job;
        refused text;
    BEGIN
        IF NOT EXISTS (SELECT FROM {SCHEMA}.lease l WHERE l.name = 'job ' || number
            AND l.pid = pg_backend_pid() AND {SCHEMA}.lease_lives(l.pid, l.mark))
        THEN
            RAISE EXCEPTION 'job % is not held by this session', number;
        END IF;
        IF {LACKS_MERGER} AND EXISTS (SELECT FROM {SCHEMA}.job j WHERE j.id = number
            AND j.kind IN ({listed(OF_MERGER_JOBS)}))
        THEN
            RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege', MESSAGE =
                'permission denied for job ' || number || ': the account ' || session_user
                || ' applies no rows';
        END IF;
        UPDATE {SCHEMA}.job j SET state = '{JobState.RUNNING}', started_at = clock_timestamp(),
            account = session_user, flow_run = $2
            WHERE j.id = number AND j.state <> '{JobState.ENDED}' RETURNING * INTO one;
        refused := CASE WHEN one.id IS NOT NULL THEN {SCHEMA}.job_refused(number) END;
        IF refused IS NULL THEN
            RETURN one.id IS NOT NULL;
        END IF;
        UPDATE {SCHEMA}.job j SET state = '{JobState.ENDED}', ended_at = clock_timestamp(),
            exit_code = {COULD_NOT_RUN}, said = refused WHERE j.id = number RETURNING * INTO one;
        PERFORM {SCHEMA}.new_event({_batch_of("one.arguments")}, '{JOB_REFUSED}',
            session_user, refused, json_build_object('job', number, 'kind', one.kind,
            'sha256', {job_hash("one", JOB_END)})::text);
        RETURN false;
    END $$""",
    "end_job(number integer, exit_code integer, said text, named text, "
    "reconciliation integer)": f"""
    RETURNS boolean LANGUAGE plpgsql {SAFE} AS $$
    DECLARE
        ended {SCHEMA}.job;
    BEGIN
        IF $5 IS NOT NULL AND NOT EXISTS (SELECT FROM {SCHEMA}.reconciliation r
            JOIN {SCHEMA}.event e ON e.id = r.event_id
            WHERE r.id = $5 AND e.detail::jsonb -> 'job' = to_jsonb(number))
        THEN
            RAISE EXCEPTION 'reconciliation % was not made for job %', $5, number;
        END IF;
        -- Batches that it names and did not work on: what it brought was there.
        UPDATE {SCHEMA}.job j SET state = '{JobState.ENDED}', ended_at = clock_timestamp(),
            exit_code = $2, said = left($3, {MESSAGE_LENGTH}), reconciliation_id = $5,
            batches = (SELECT coalesce(string_agg(b.id::text, ' ' ORDER BY b.id), '')
                FROM {SCHEMA}.batch b WHERE {names_batch("j")}
                AND b.id = ANY (string_to_array(btrim(j.batches || ' ' || $4), ' ')::integer[]))
            WHERE j.id = number AND j.state = '{JobState.RUNNING}' AND j.account = session_user
            -- Somebody else may have taken it over meanwhile.
            AND NOT EXISTS (SELECT FROM {SCHEMA}.lease l WHERE l.name = 'job ' || number
                AND l.pid <> pg_backend_pid() AND {SCHEMA}.lease_lives(l.pid, l.mark))
            RETURNING * INTO ended;
        IF ended.id IS NULL THEN
            RETURN false;
        END IF;
        PERFORM {SCHEMA}.new_event({_batch_of("ended.arguments")}, '{JOB_ENDED}',
            session_user, NULL, json_build_object('job', number, 'kind', ended.kind,
            'exit_code', $2, 'sha256', {job_hash("ended", JOB_END)})::text);
        RETURN true;
    END $$""",
}
"""Definitions of the functions, by their heads."""
