"""What the database lets become of a delivered file: it stays what it was when it was received.

Roles that load write the table of files themselves. Reports and reconciliations leave out what a
refused file said, and read the others by what stands there. So a file comes with its batch, is
refused before the rows of the batch are staged, and nothing else of it is changed, but for the
mark of housekeeping, which counts only beside an event (`connectors.postgres.auditing.removals`).
"""

from schemas.derived.sql_names import SCHEMA
from schemas.guards.batch_states import FIRST, not_numbered

_CHANGED = "to_jsonb({0}) - 'cleared_at'"
_REFUSED = "- 'refused' - 'message'"

DELIVERED_FILES: tuple[str, ...] = (
    f"""CREATE OR REPLACE FUNCTION {SCHEMA}.extract_checked() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    BEGIN
        IF pg_has_role(session_user, current_user, 'MEMBER') THEN
            RETURN NEW;
        END IF;
        IF TG_OP = 'UPDATE' THEN
            IF {_CHANGED.format("NEW")} = {_CHANGED.format("OLD")} THEN
                RETURN NEW;
            END IF;
            IF {_CHANGED.format("NEW")} {_REFUSED} <> {_CHANGED.format("OLD")} {_REFUSED}
                OR OLD.refused IS NOT NULL
            THEN
                RAISE EXCEPTION 'file % of batch % stays as it was received', OLD.id, OLD.batch_id;
            END IF;
        END IF;
        IF TG_OP = 'INSERT' AND {not_numbered("extract")} THEN
            RAISE EXCEPTION 'a file has the number that the database gives it, not %', NEW.id;
        END IF;
        IF NOT EXISTS (SELECT FROM {SCHEMA}.batch b
            WHERE b.id = NEW.batch_id AND b.state = '{FIRST}')
        THEN
            RAISE EXCEPTION 'no file of batch % comes, or is refused, once its rows are staged',
                NEW.batch_id;
        END IF;
        RETURN NEW;
    END $$""",
    f"REVOKE ALL ON FUNCTION {SCHEMA}.extract_checked() FROM PUBLIC",
    f"CREATE OR REPLACE TRIGGER extract_checked BEFORE INSERT OR UPDATE ON {SCHEMA}.extract "
    f"FOR EACH ROW EXECUTE FUNCTION {SCHEMA}.extract_checked()",
)
"""Statements that put the rule in place; repeating them changes nothing."""
