"""Guards of the tables that tell a restored copy from the database itself.

Roles that load and apply add rows, and nobody removes any: one epoch with a freely chosen number or
home would hold all pushes for good, and a restore that nobody declared would put rows in doubt.
`connectors.postgres.push.gate` reads these tables.
"""

from schemas.derived.sql_names import SAFE, SCHEMA
from schemas.guards.batch_states import LACKS_MERGER, RESTORED
from schemas.guards.readable import hashed

BIRTH = 0
"""Number of the epoch that a database's first batch writes; nothing is sent under it."""
EPOCH, SEALED = "push epoch", "push epoch sealed"
"""Events with the hash of an epoch or seal, so that no row is altered or added unnoticed."""
LOST_HASH = "lost_sha256"
"""Key in the event of a restore: hash of the list of contents that the database did not know."""

_LOST = f"encode(sha256(convert_to(NEW.lost, 'UTF8')), 'hex') = e.detail::jsonb ->> '{LOST_HASH}'"


def epoch_hash(row: str) -> str:
    """SQL for the hash of an epoch, without its time, since the event has its own."""
    return _of(row, "number", "token", "home", "system", "timeline", "database_oid", "xid")


def seal_hash(row: str) -> str:
    return _of(row, "number", "inode", "changed_ns")


def _of(row: str, *columns: str) -> str:
    return hashed(*(f"{row}.{column}" for column in columns))


def _tell(event: str, sha256: str) -> str:
    return f"""PERFORM {SCHEMA}.new_event(NULL, '{event}', session_user, NULL,
            json_build_object('epoch', NEW.number, 'sha256', {sha256})::text);"""


def _guard(table: str, body: str) -> tuple[str, ...]:
    name = f"{SCHEMA}.{table}_checked"
    return (
        f"""CREATE OR REPLACE FUNCTION {name}() RETURNS trigger
    LANGUAGE plpgsql {SAFE} AS $$
    DECLARE
        newest bigint := (SELECT max(p.number) FROM {SCHEMA}.push_epoch p);
    BEGIN
        {body}
        RETURN NEW;
    END $$""",
        f"REVOKE ALL ON FUNCTION {name}() FROM PUBLIC",
        f"CREATE OR REPLACE TRIGGER {table}_checked BEFORE INSERT ON {SCHEMA}.{table} "
        f"FOR EACH ROW EXECUTE FUNCTION {name}()",
    )


PUSH_GATE: tuple[str, ...] = (
    *_guard(
        "push_epoch",
        f"""IF (NEW.number <> {BIRTH} OR newest IS NOT NULL OR NEW.home <> '') AND {LACKS_MERGER}
        THEN
            RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege', MESSAGE =
                'permission denied for an epoch of pushes: the account ' || session_user
                || ' applies no rows';
        END IF;
        IF NEW.number <> coalesce(newest, {BIRTH}) + 1
            AND NOT (NEW.number = {BIRTH} AND newest IS NULL)
        THEN
            RAISE EXCEPTION 'the epoch of pushes after % is not %', newest, NEW.number;
        END IF;
        IF NEW.timeline <> substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8)
            OR NEW.database_oid <> (SELECT d.oid FROM pg_database d
                WHERE d.datname = current_database())
        THEN
            RAISE EXCEPTION 'epoch % of pushes is not of this database', NEW.number;
        END IF;
        NEW.xid := pg_current_xact_id()::text::bigint;
        NEW.at := now();
        -- Of the first one the event of its batch tells.
        IF NEW.number <> {BIRTH} THEN
            {_tell(EPOCH, epoch_hash("NEW"))}
        END IF;""",
    ),
    *_guard(
        "push_seal",
        f"""IF NEW.number NOT BETWEEN {BIRTH} + 1 AND coalesce(newest, {BIRTH}) THEN
            RAISE EXCEPTION 'there is no epoch % of pushes to seal', NEW.number;
        END IF;
        {_tell(SEALED, seal_hash("NEW"))}""",
    ),
    *_guard(
        "push_restore",
        f"""IF NOT EXISTS (SELECT FROM {SCHEMA}.event e
            WHERE e.id = NEW.event_id AND e.what = '{RESTORED}'
            AND e.detail::jsonb ->> 'unsent' = NEW.unsent
            AND e.detail::jsonb -> 'last_batch' = to_jsonb(NEW.last_batch) AND {_LOST})
        THEN
            RAISE EXCEPTION 'the restore is not what an event {RESTORED} says of it';
        END IF;
        NEW.at := now();""",
    ),
)
"""Statements that put the rules in place; repeating them changes nothing."""
