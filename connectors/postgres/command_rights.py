"""Whether the database account may run a command, asked before the command does anything."""

import psycopg

from connectors.errors import StatementRefused
from connectors.postgres.query import one_value
from schemas.derived.sql_names import READER, SCHEMA
from schemas.guards.commands import BEGUN, ROLE_OF, marking_function


def refuse_without_right(connection: psycopg.Connection, command: str) -> None:
    """Raise StatementRefused if the command takes a role that this account lacks.

    A command that only reads is never refused here; the database refuses those who cannot read.
    """
    if may_run(connection, command):
        return
    whole = ROLE_OF[command]
    role = BEGUN.get(command, whole)
    checked = f", or of {role} to take rows as far as the check" if role != whole else ""
    raise StatementRefused(
        f"The role {connection.info.user} lacks a right: `recon {command}` takes {whole}. Connect "
        f"as a member of {whole}{checked}; docs/production.md lists what each role may. Nothing "
        "was changed."
    )


def may_run(connection: psycopg.Connection, command: str) -> bool:
    """Whether this account has the rights of the role that a command takes, or may begin it.

    This asks about rights, not membership: the owner of the schema has the rights of all roles and
    is a member of none.
    """
    role = BEGUN.get(command, ROLE_OF[command])
    if role == READER:
        return True
    found = connection.execute(
        "SELECT bool_or(has_function_privilege(oid, 'EXECUTE')) FROM pg_proc "
        "WHERE pronamespace = to_regnamespace(%s) AND proname = %s",
        [SCHEMA, marking_function(role)],
    )
    return bool(one_value(found))
