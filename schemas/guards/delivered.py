"""Which changes of delivered files and corrected rows the database allows, and to whom.

Roles that load write the tables of files and outcomes themselves. Reports and reconciliations leave
out what a refused file said, and read the others by what these tables say. So a file comes with its
batch and is refused only before the rows of the batch are staged. Nothing else of it is changed
except the mark of housekeeping, which counts only together with an event
(`connectors.postgres.auditing.removals`).

What the audit trail says of a batch does not include that a row was corrected: later batches say
so, and take it back. So only roles that may apply the repair let a row in error end as corrected,
or be in error again.
"""

from schemas.derived.sql_names import SAFE, SCHEMA
from schemas.derived.views import CORRECTED
from schemas.guards.batch_states import FIRST, LACKS_MERGER, not_numbered

_CHANGED = "to_jsonb({0}) - 'cleared_at'"
_REFUSED = "- 'refused' - 'message'"

DELIVERED_FILES: tuple[str, ...] = (
    f"""CREATE OR REPLACE FUNCTION {SCHEMA}.extract_checked() RETURNS trigger
    LANGUAGE plpgsql {SAFE} AS $$
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

CORRECTED_ROWS: tuple[str, ...] = (
    f"""CREATE OR REPLACE FUNCTION {SCHEMA}.corrected_checked() RETURNS trigger
    LANGUAGE plpgsql {SAFE} AS $$
    BEGIN
        IF {LACKS_MERGER} THEN
            RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege', MESSAGE =
                'permission denied for an outcome {CORRECTED}: the account ' || session_user
                || ' applies no rows';
        END IF;
        RETURN CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END;
    END $$""",
    f"REVOKE ALL ON FUNCTION {SCHEMA}.corrected_checked() FROM PUBLIC",
    f"CREATE OR REPLACE TRIGGER corrected_checked BEFORE INSERT OR UPDATE ON {SCHEMA}.outcome "
    f"FOR EACH ROW WHEN (NEW.verdict = '{CORRECTED}') "
    f"EXECUTE FUNCTION {SCHEMA}.corrected_checked()",
    f"CREATE OR REPLACE TRIGGER corrected_kept BEFORE UPDATE OR DELETE ON {SCHEMA}.outcome "
    f"FOR EACH ROW WHEN (OLD.verdict = '{CORRECTED}') "
    f"EXECUTE FUNCTION {SCHEMA}.corrected_checked()",
)
"""Statements that put the rule in place; repeating them changes nothing."""
