"""The list of breaks: filtered, page by page, chosen for a decision, downloaded."""

import csv
import io
import re
from collections.abc import Callable
from html import unescape

import polars as pl
import pytest

from flows.stages.workspace import Workspace
from tests.accounts.people import ANNA, CLEO, TESSA, add
from tests.desk.browser import Browser, forms
from tests.desk.many import STRANGE, many_breaks
from tests.governance.runs import found, reconcile

New = Callable[[], Browser]


def ids(page: Browser) -> list[str]:
    return re.findall(r'name="break" value="([0-9a-f]{16})"', page.answer.text)


def link(page: Browser, words: str) -> str | None:
    there = re.search(rf'href="([^"]+)"[^>]*>{words}</a>', page.answer.text)
    return unescape(there[1]) if there else None


@pytest.mark.long
def test_pages_have_every_break_once_and_keep_the_filter(
    workspace: Workspace, browser: New
) -> None:
    breaks = many_breaks(230)
    run = reconcile(workspace, breaks)
    page = browser().open(f"/runs/{run.id}/breaks", code="AMOUNT", sort="code", tenant="7")
    seen = ids(page)
    while to := link(page, "Next"):
        assert "code=AMOUNT" in to
        assert "tenant=7" in to
        assert len(ids(page)) == 50
        seen += ids(page.open(to))
    asked = breaks.filter(code="AMOUNT", tenant=7)
    assert f"{asked.height} breaks of 230" in page.text
    assert sorted(seen) == sorted(asked["id"])
    for number in ("99", "0", "-1", "x", "9" * 30):
        assert page.open(f"/runs/{run.id}/breaks", page=number).status == 200


@pytest.mark.long
def test_breaks_are_sorted_as_asked(workspace: Workspace, browser: New) -> None:
    run = reconcile(workspace, many_breaks(40))
    page = browser()

    def column(sort: str, pattern: str) -> list[str]:
        page.open(f"/runs/{run.id}/breaks", sort=sort)
        return re.findall(pattern, page.answer.text)

    codes = column("code", r'/breaks/[0-9a-f]{16}">([A-Z_]+)<')
    assert codes == sorted(codes)
    ages = [int(told) for told in column("age", r'data-of="Days">(\d+)<')]
    assert ages == sorted(ages, reverse=True)
    assert len(codes) == len(ages) == 40


@pytest.mark.long
def test_the_form_of_a_decision_has_the_filter_and_what_is_ticked(
    workspace: Workspace, browser: New
) -> None:
    run = reconcile(workspace, found("1", "2"))
    page = browser().open(f"/runs/{run.id}/breaks", code="AMOUNT", amount="5", text="paid")
    form = next(one for one in forms(page.answer.text) if one["action"] == f"/runs/{run.id}/decide")
    assert form["fields"].pop("csrf")
    assert form["fields"] == {"code": "AMOUNT", "amount": "5", "text": "paid"}
    assert 'name="all" value="1">Decide about all 2 that match' in page.answer.text
    assert len(ids(page)) == 2


@pytest.mark.long
def test_a_decision_is_offered_on_the_last_run_to_whoever_may_take_it(
    workspace: Workspace, browser: New
) -> None:
    add(workspace, ANNA, CLEO)
    first, last = (reconcile(workspace, found("1")) for _ in range(2))
    offered = [
        (name, run.id, "Decide about the selected" in page.text, len(ids(page)))
        for name in ("anna", "cleo")
        for run in (first, last)
        for page in [browser().log_in(name).open(f"/runs/{run.id}/breaks?code=AMOUNT")]
    ]
    assert offered == [
        ("anna", first.id, False, 0), ("anna", last.id, True, 1),
        ("cleo", first.id, False, 0), ("cleo", last.id, False, 0),
    ]  # fmt: skip
    old = browser().log_in("anna").open(f"/runs/{first.id}/breaks?code=AMOUNT")
    assert (
        f'/runs/{last.id}/breaks?code=AMOUNT">these breaks in run {last.id}</a>' in old.answer.text
    )


@pytest.mark.long
def test_what_cannot_be_looked_for_is_said_and_kept(workspace: Workspace, browser: New) -> None:
    run = reconcile(workspace, found("1"))
    page = browser().open(f"/runs/{run.id}/breaks", amount="12,50", code="AMOUNT")
    assert (page.status, "'12,50' is no amount to look for" in page.text) == (400, True)
    form = forms(page.answer.text)
    kept = next(one["fields"] for one in form if one["action"] == f"/runs/{run.id}/breaks")
    assert (kept["amount"], kept["code"]) == ("12,50", "AMOUNT")
    told = page.open(f"/runs/{run.id}/breaks.csv", age="{x}")
    assert (told.status, "'{x}' is no age to look for" in told.text) == (400, True)


def test_delivered_text_is_text_wherever_it_is_shown(workspace: Workspace, browser: New) -> None:
    told = [found(str(place), found=text, note=text) for place, text in enumerate(STRANGE)]
    run = reconcile(workspace, told[0].vstack(told[1]).vstack(told[2]).vstack(told[3]))
    page = browser().open(f"/runs/{run.id}/breaks", text="<script>")
    assert len(ids(page)) == 1
    page.open(f"/runs/{run.id}/breaks")
    assert "<script>alert" not in page.answer.text
    assert "\u202e" not in page.answer.text
    assert r"\u202egnp.exe" in page.text
    csv_text = page.open(f"/runs/{run.id}/breaks.csv").answer.text
    assert page.answer.headers["content-disposition"].startswith("attachment")
    lines = list(csv.DictReader(io.StringIO(csv_text, newline="")))
    formula = next(one for one in lines if "HYPERLINK" in one["found"])
    assert formula["found"].startswith("'=")
    assert formula["quoted"] == "found note"


@pytest.mark.long
def test_nobody_lists_the_breaks_of_a_run_that_is_not_theirs(
    workspace: Workspace, browser: New
) -> None:
    add(workspace, TESSA)
    run = reconcile(workspace, found("1"), scope="everything")
    tessa = browser().log_in("tessa")
    for path in ("breaks", "breaks.csv"):
        assert tessa.open(f"/runs/{run.id}/{path}").status == 404


def test_breaks_of_no_record_are_found_as_such(workspace: Workspace, browser: New) -> None:
    """A file that was refused before anybody knew its record kind."""
    refused = found("3/a.zip", code="FILE_REFUSED", record="", field="", amount=None, tenant=None)
    reconcile(workspace, pl.concat([found("4711"), refused]))
    page = browser().open("/runs/1/breaks")
    choices = page.answer.text.partition('<select name="record">')[2].partition("</select>")[0]
    told = re.findall(r'<option value="(.*?)"( selected)?>(.*?)</option>', choices)
    assert told == [("", "", "any"), ("-", "", "none (1)"), ("payment", "", "Payment (1)")]
    assert "1 break of 2" in page.open("/runs/1/breaks", record="-").text
    assert "3/a.zip" in page.text
    assert "1 break of 2" in page.open("/runs/1/breaks", record="payment").text
