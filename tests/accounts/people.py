"""Accounts for the stories: who there is, and a workspace in which somebody is logged in."""

import hashlib

from argon2.low_level import Type, hash_secret_raw

from connectors.postgres.accounts import Account, keep_account, log_in
from flows.stages.workspace import Workspace
from schemas.accounts import AccountRole
from schemas.derived.sql_names import SCHEMA

PASSWORD = "correct horse battery"
SALT = f"argon2id$v=19$m=8,t=1,p=1${'5a' * 16}"
"""Quick to make keys with; accounts of people take 19 MiB, as `test_accounts` has it."""
VERIFIER = hashlib.sha256(
    hash_secret_raw(PASSWORD.encode(), bytes.fromhex("5a" * 16), 1, 8, 1, 32, Type.ID)
).hexdigest()
ANNA = Account("anna", "Anna Meyer", (AccountRole.PREPARER,))
BO = Account("bo", "Bo Osei", (AccountRole.APPROVER,))
CLEO = Account("cleo", "Cleo Dumas", (AccountRole.VIEWER,))
OTTO = Account("otto", "Otto Berg", (AccountRole.OPERATOR,))
ADA = Account("ada", "Ada Lind", (AccountRole.ADMINISTRATOR,))
TESSA = Account("tessa", "Tessa Ito", (AccountRole.PREPARER, AccountRole.APPROVER), tenants=(7,))


def add(workspace: Workspace, *accounts: Account) -> None:
    """Add accounts, all with the same password."""
    with workspace.database.connect() as connection:
        for account in accounts:
            keep_account(connection, account)
            connection.execute(
                f"SELECT {SCHEMA}.set_password(%s, %s, %s, NULL, 'tests')",
                [account.name, SALT, VERIFIER],
            )


def logged_in(workspace: Workspace, account: Account) -> Workspace:
    """The workspace of somebody who has logged in."""
    with workspace.database.connect() as connection:
        token = log_in(connection, account.name, PASSWORD)
    return workspace.as_login(token)
