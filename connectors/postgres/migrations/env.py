"""Alembic's entry: upgrades run on the connection of `connectors.postgres.schema.upgrade`."""

from typing import Any

import sqlalchemy as sa
from alembic import context

from connectors.postgres.migrations import DERIVED, DERIVED_HASH
from connectors.postgres.schema.follow_kinds import follow_definitions
from connectors.postgres.schema.revisions import MARK, VERSION_TABLE
from schemas.derived.sql import METADATA
from schemas.derived.sql_names import SCHEMA, SHOWN_SCHEMA
from schemas.derived.views import VIEWS


def run() -> None:
    """Upgrade an existing schema, and create derived views and triggers again."""
    connection: sa.Connection = context.config.attributes["connection"]
    context.configure(
        connection=connection,
        target_metadata=METADATA,
        version_table_schema=SCHEMA,
        include_schemas=True,
        include_name=_ours,
        template_args={"derived": DERIVED_HASH},
    )
    # Views would block steps, and cannot be replaced by views with other columns.
    connection.execute(sa.text(f"DROP VIEW IF EXISTS {', '.join(_views(connection))}"))
    context.run_migrations()
    newest = context.get_context().get_current_revision() == context.get_head_revision()
    if not newest or context.config.attributes.get("tables_only"):
        return  # The views would name columns that these tables do not have, or not yet.
    for statement in DERIVED:
        # Without this, a percent sign would be taken for a parameter.
        connection.exec_driver_sql(statement, execution_options={"no_parameters": True})
    connection.execute(
        sa.text(f"COMMENT ON TABLE {SCHEMA}.{VERSION_TABLE} IS '{MARK}{DERIVED_HASH}'")
    )
    follow_definitions(connection, asked=context.config.attributes.get("asked", False))


def _views(connection: sa.Connection) -> list[str]:
    """Our views, to drop in one statement, so that the server names anything others built on them.

    What others have put into the schema of shown rows stays.
    """
    shown = connection.execute(
        sa.text(
            "SELECT quote_ident(v.relname) FROM pg_class v JOIN pg_class t USING (relname) "
            "WHERE v.relnamespace = to_regnamespace(:shown) AND v.relkind = 'v' "
            "AND t.relnamespace = to_regnamespace(:schema) AND v.relname LIKE :staged"
        ),
        {"shown": SHOWN_SCHEMA, "schema": SCHEMA, "staged": r"staged\_%"},
    ).scalars()
    return [*(f"{SHOWN_SCHEMA}.{name}" for name in shown), *(f"{SCHEMA}.{name}" for name in VIEWS)]


def _ours(name: str | None, kind: str, _parents: Any) -> bool:
    return name == SCHEMA if kind == "schema" else True


run()
