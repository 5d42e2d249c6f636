"""Acting as the owner of the schema, whoever upgrades it.

What a superuser created in it would belong to the superuser, and the schema's owner could neither
use nor change it.
"""

import re

import sqlalchemy as sa

from connectors.errors import DatabaseUnusable
from connectors.postgres.migrations import DERIVED
from connectors.postgres.schema.revisions import VERSION_TABLE
from schemas.derived.sql import METADATA
from schemas.derived.sql_names import SCHEMA, SHOWN_SCHEMA
from schemas.derived.views import VIEWS

OURS = {
    *(table.name for table in METADATA.tables.values()),
    *VIEWS,
    VERSION_TABLE,
    *re.findall(rf"FUNCTION {SCHEMA}\.(\w+)", "\n".join(DERIVED)),
    SHOWN_SCHEMA,
}
"""What this version creates in the schema or beside it; anything else may be anybody's."""
_OWNER = """SELECT quote_ident(pg_get_userbyid(nspowner)), nspowner = current_user::regrole,
        CASE WHEN current_setting('server_version_num')::int < 160000
        THEN pg_has_role(nspowner, 'MEMBER') ELSE pg_has_role(nspowner, 'SET') END
    FROM pg_namespace WHERE nspname = :schema"""
_OF_OTHERS = """SELECT one.name, one.called, quote_ident(pg_get_userbyid(n.nspowner))
    FROM pg_namespace n CROSS JOIN LATERAL (
        SELECT relname, relowner, format('TABLE %s', oid::regclass) FROM pg_class
        WHERE relnamespace = n.oid AND relkind IN ('r', 'v')
        UNION ALL SELECT proname, proowner, format('ROUTINE %s', oid::regprocedure) FROM pg_proc
        WHERE pronamespace = n.oid
        UNION ALL SELECT nspname, nspowner, format('SCHEMA %I', nspname) FROM pg_namespace
        WHERE nspname = :shown) one (name, owner, called)
    WHERE n.nspname = :schema AND one.owner <> n.nspowner AND pg_has_role(one.owner, 'USAGE')"""


def act_as_owner(connection: sa.Connection) -> bool:
    """Act as the owner of the schema until this transaction ends; False if this account may not.

    The owner is given what an earlier version created as another account, if this one may do so.
    Call it inside a transaction that locks the schema.
    """
    asked = {"schema": SCHEMA}
    owner, is_owner, may_be = connection.execute(sa.text(_OWNER), asked).one()
    if not is_owner:
        if not may_be:
            return False
        names = {"schema": SCHEMA, "shown": SHOWN_SCHEMA}
        found = connection.execute(sa.text(_OF_OTHERS), names).fetchall()
        for name, called, of_schema in found:
            if name in OURS:
                connection.exec_driver_sql(f"ALTER {called} OWNER TO {of_schema}")
        connection.exec_driver_sql(f"SET LOCAL ROLE {owner}")
    _refuse_shown_of_others(connection)
    return True


def _refuse_shown_of_others(connection: sa.Connection) -> None:
    """Raise DatabaseUnusable, naming its owner, if ours may not change the schema of shown rows."""
    found = connection.execute(
        sa.text(
            "SELECT quote_ident(pg_get_userbyid(nspowner)), quote_ident(current_user) "
            "FROM pg_namespace WHERE nspname = :shown AND NOT pg_has_role(nspowner, 'USAGE')"
        ),
        {"shown": SHOWN_SCHEMA},
    ).one_or_none()
    if found:
        theirs, ours = found
        raise DatabaseUnusable(
            f"The schema {SHOWN_SCHEMA!r} has to be changed for this version and belongs to "
            f"{theirs}: the roles were granted as that account. Run `ALTER SCHEMA {SHOWN_SCHEMA} "
            f"OWNER TO {ours}` as {theirs} or a superuser, and the same command again. Nothing was "
            "changed."
        )
