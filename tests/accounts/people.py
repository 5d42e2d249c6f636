"""Accounts for the stories: who there is, and a workspace in which somebody is logged in."""

from connectors.postgres.accounts import Account, keep_account, log_in, set_password
from flows.stages.workspace import Workspace
from schemas.accounts import AccountRole

PASSWORD = "correct horse battery"
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
            set_password(connection, account.name, PASSWORD)


def logged_in(workspace: Workspace, account: Account) -> Workspace:
    """The workspace of somebody who has logged in."""
    with workspace.database.connect() as connection:
        token = log_in(connection, account.name, PASSWORD)
    return workspace.as_login(token)
