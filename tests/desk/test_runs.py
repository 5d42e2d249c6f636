"""Whose runs a visit sees."""

from collections.abc import Callable

import pytest

from flows.stages.workspace import Workspace
from tests.accounts.people import ANNA, TESSA, add
from tests.desk.browser import Browser
from tests.governance.runs import found, reconcile

New = Callable[[], Browser]
NOT_THERE = "There is no reconciliation {} that you may see."


@pytest.mark.long
def test_an_account_of_one_tenant_sees_runs_of_that_tenant_alone(
    workspace: Workspace, browser: New
) -> None:
    add(workspace, ANNA, TESSA)
    hers = reconcile(workspace, found(), scope="tenants 7")
    scopes = ("everything", "tenants 7, 8", "tenants 77", "feeds tenants")
    others = [reconcile(workspace, found(), scope=scope) for scope in scopes]
    tessa, anna = browser().log_in("tessa"), browser().log_in("anna")
    for run in others:
        tessa.open(f"/runs/{run.id}")
        assert (tessa.status, NOT_THERE.format(run.id) in tessa.text) == (404, True)
        assert run.scope not in tessa.text.replace(hers.scope, "")
        assert anna.open(f"/runs/{run.id}").status == 200
    assert tessa.open(f"/runs/{hers.id}").status == 200
    home = tessa.open("/").answer.text
    assert [f"/runs/{run.id}" in home for run in (hers, *others)] == [True, *[False] * len(others)]


def test_a_run_that_is_not_there_reads_like_one_that_is_not_seen(
    workspace: Workspace, browser: New
) -> None:
    page = browser()
    for number in (99, 2**31, 10**30):
        page.open(f"/runs/{number}")
        assert (page.status, NOT_THERE.format(number) in page.text) == (404, True)
    assert page.open("/runs/-1").status == 404
    assert page.open("/runs/one").status == 404
