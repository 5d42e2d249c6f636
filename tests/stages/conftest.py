"""Users of the database roles."""

import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace

import psycopg
import pytest
from psycopg import sql

from flows.stages.workspace import Workspace
from tests.conftest import workspace_of

As = Callable[[str], Workspace]


@pytest.fixture
def acting(workspace: Workspace, with_roles: str) -> Iterator[As]:
    """The workspace as a user who is a member of one role."""
    users: list[str] = []
    with psycopg.connect(str(workspace.settings.database_url), autocommit=True) as owner:

        def of(role: str) -> Workspace:
            user = f"user_{uuid.uuid4().hex[:8]}"
            users.append(user)
            owner.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(user)))
            owner.execute(
                sql.SQL("GRANT {} TO {}").format(sql.Identifier(role), sql.Identifier(user))
            )
            url = str(workspace.settings.database_url).replace("//postgres:@", f"//{user}@")
            assert user in url
            return workspace_of(replace(workspace.settings, database_url=url))

        yield of
        for user in users:
            owner.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(user)))
