"""The files of a run's report, and who is given which."""

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from connectors.files.profiles.profile import DEFAULT
from flows.stages.reconcile.run import Asked, reconcile
from flows.stages.reconcile.scope import Scope
from flows.stages.sequence import import_delivery
from flows.stages.workspace import Workspace
from flows.steps.rules.rules import Rules
from tests.accounts.people import ANNA, TESSA, add
from tests.desk.browser import Browser
from tests.stages.payments import line, write


@pytest.mark.long
def test_delivered_text_is_not_given_to_an_account_of_one_tenant(
    workspace: Workspace, browser: Callable[[], Browser], tmp_path: Path
) -> None:
    add(workspace, ANNA, TESSA)
    path = write(tmp_path / "a.csv", line(1), line(2, amount="x"))
    import_delivery(workspace, [path], replace(DEFAULT, tenant=7))
    run = reconcile(workspace, Asked(Scope(tenants=(7,)), date(2026, 1, 31), Rules())).run
    (text,) = (workspace.settings.reports / run.folder / "corrections").iterdir()
    address = f"/runs/{run.id}/files"
    for account, given in ((ANNA, True), (TESSA, False)):
        page = browser().log_in(account.name).open(f"/runs/{run.id}/sign")
        assert f"corrections/{text.name}" in page.text, "it is signed with the others"
        assert (f'href="{address}/corrections/{text.name}"' in page.answer.text) is given
        told = page.open(f"{address}/corrections/{text.name}").status
        assert told == (200 if given else 404)
        assert page.open(f"{address}/breaks.csv").status == 200
