"""Who lets a row in error end as corrected, and be in error again: those who take its repair in.

That a row was corrected is no part of what the audit trail says of its batch: the batches behind it
say so, and take it back. So roles that load, which write outcomes of rows, neither write this one
nor take it away.
"""

from schemas.derived.sql_names import SCHEMA
from schemas.derived.views import CORRECTED
from schemas.guards.batch_states import lacks_merger

CORRECTED_ROWS: tuple[str, ...] = (
    f"""CREATE OR REPLACE FUNCTION {SCHEMA}.corrected_checked() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    BEGIN
        IF {lacks_merger()} THEN
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
