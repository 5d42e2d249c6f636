"""The board of batches: every one with its next step, and whose batches a visit sees."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from connectors.files.profiles.profile import DEFAULT, Profile
from flows.stages.sequence import import_delivery
from flows.stages.workspace import Workspace
from tests.accounts.people import ANNA, TESSA, add
from tests.desk.browser import Browser
from tests.stages.payments import line, write

New = Callable[[], Browser]
TIGHT = replace(DEFAULT, budget_errors=0)


def bring(workspace: Workspace, path: Path, *lines: str, terms: Profile = DEFAULT) -> int:
    return import_delivery(workspace, [write(path, *lines)], terms).batch.id


@pytest.mark.long
def test_every_batch_has_its_state_and_its_next_step(
    workspace: Workspace, browser: New, tmp_path: Path
) -> None:
    page = browser().open("/batches")
    assert (page.status, "There is no batch that you may see." in page.text) == (200, True)
    bring(workspace, tmp_path / "a.csv", line(1))
    bring(workspace, tmp_path / "b.csv", line(2), line(3, amount="x"))
    bring(workspace, tmp_path / "c.csv", line(4), line(5, amount="x"), terms=TIGHT)
    text = page.open("/batches").text
    assert "Complete 1 1 0" in text
    assert "Complete with errors 1 2 1 Correct 1 reject recon rejects 2 --out FOLDER" in text
    assert "Held 1 of 2 rows" in text
    assert "1 2 1 Release or discard it recon release 3 --reason ..." in text
    held = page.open("/batches", state="held").answer.text
    assert [f'"/batches/{number}"' in held for number in (1, 2, 3)] == [False, False, True]
    assert "No batch matches." in page.open("/batches", state="undone").text


@pytest.mark.long
def test_fifty_batches_make_a_page(workspace: Workspace, browser: New) -> None:
    with workspace.database.connect() as connection:
        connection.execute(
            "INSERT INTO batch (content_id, feed, profile, state, opened_at, lease_epoch) "
            "SELECT n::text, 'feed', '{}', 'received', now(), 0 FROM generate_series(1, 120) n"
        )
    page, seen = browser().open("/batches"), 0
    while True:
        here = page.text.count("or was stopped: run it again")
        assert here <= 50
        seen += here
        if "Earlier ones" not in page.text:
            break
        later = page.answer.text.partition('rel="next" href="')[2].partition('"')[0]
        page.open(later.replace("&amp;", "&"))
    assert seen == 120
    assert "The latest" in page.text


def test_what_cannot_be_looked_for_is_told(browser: New) -> None:
    page = browser()
    for name, value in (("state", "held'"), ("before", "x"), ("before", "9" * 30)):
        page.open("/batches", **{name: value})
        assert page.status == 400
        assert "There is no state" in page.text or "is no number of a batch" in page.text


@pytest.mark.long
def test_an_account_of_a_tenant_sees_batches_bound_to_it_alone(
    workspace: Workspace, browser: New, tmp_path: Path
) -> None:
    add(workspace, ANNA, TESSA)
    terms = [DEFAULT, *(replace(DEFAULT, tenant=tenant) for tenant in (8, 77, 7))]
    made = [
        bring(workspace, tmp_path / f"{number}.csv", line(number), terms=one)
        for number, one in enumerate(terms)
    ]
    for name, seen in (("tessa", made[-1:]), ("anna", made)):
        text = browser().log_in(name).open("/batches").answer.text
        assert [number for number in made if f'"/batches/{number}"' in text] == seen, name
