"""A login of the database that may do what the desk's people do, and owns nothing."""

import uuid
from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql

from flows.stages.workspace import Workspace
from schemas.guards.roles import CONTROLLER


@pytest.fixture
def controller(workspace: Workspace, with_roles: str) -> Iterator[str]:
    """URL of a member of recon_controller."""
    name = f"desk_{uuid.uuid4().hex[:8]}"
    with workspace.database.connect() as connection:
        connection.execute(
            sql.SQL("CREATE ROLE {} LOGIN PASSWORD 'x' IN ROLE {}").format(
                sql.Identifier(name), sql.Identifier(CONTROLLER)
            )
        )
        info = connection.info
        place = psycopg.conninfo.make_conninfo(
            host=info.host, port=info.port, dbname=info.dbname, user=name, password="x"
        )
    yield place
    with workspace.database.connect() as connection:
        connection.execute(sql.SQL("DROP OWNED BY {}").format(sql.Identifier(name)))
        connection.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(name)))
