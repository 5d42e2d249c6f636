"""Alembic's entry: upgrades run on the connection handed over by `connectors.postgres.database`."""

from typing import Any

import sqlalchemy as sa
from alembic import context

from schemas.derived.sql import METADATA, SCHEMA, STORAGE
from schemas.derived.views import VIEWS
from schemas.guards.trail_rules import TRIGGERS


def run() -> None:
    """Upgrade, and derive views and triggers anew."""
    connection: sa.Connection = context.config.attributes["connection"]
    connection.execute(sa.text(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}"))
    context.configure(
        connection=connection,
        target_metadata=METADATA,
        version_table_schema=SCHEMA,
        include_schemas=True,
        include_name=_ours,
    )
    for name in reversed(VIEWS):
        connection.execute(sa.text(f"DROP VIEW IF EXISTS {SCHEMA}.{name}"))
    context.run_migrations()
    newest = context.get_context().get_current_revision() == context.get_head_revision()
    if not newest or context.config.attributes.get("tables_only"):
        return  # Tables that are not the newest, or not yet: the views name what they do not have.
    for name, parameters in STORAGE.items():
        connection.execute(sa.text(f"ALTER TABLE {SCHEMA}.{name} SET ({parameters})"))
    for name, select in VIEWS.items():
        connection.exec_driver_sql(f"CREATE VIEW {SCHEMA}.{name} AS {select}")
    # Through the driver itself: it takes a percent sign for a parameter only where there are any.
    driver: Any = connection.connection.driver_connection
    for statement in TRIGGERS:
        driver.execute(statement)


def _ours(name: str | None, kind: str, _parents: Any) -> bool:
    return name == SCHEMA if kind == "schema" else True


run()
