"""Rows that the service has not settled: the evidence beside each, and one decision for many."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flows.stages.undo import undo_batch
from flows.stages.workspace import Workspace
from tests.accounts.people import ANNA, OTTO, TESSA, add
from tests.conftest import Once
from tests.desk.browser import Browser
from tests.push.conftest import deliver, towards
from tests.push.deliveries import by_row, tones
from tests.service.faulty_server import DROPPED, FaultyServer, status

New = Callable[[], Browser]
Rows = Callable[..., list[tuple[Any, ...]]]
PAGE = "/batches/1/sends"
COMPLAINT = {"ErrorCode": "NotEmpty", "FieldName": "Name", "Message": "is empty", "Meta": {}}


@pytest.fixture
def pushed(workspace: Workspace, tmp_path: Path, once: Once) -> Workspace:
    """Every other tone up to 109 is in doubt, 110 is refused, the others are there."""

    def build() -> None:
        faults = dict.fromkeys(range(1, 110, 2), DROPPED) | {110: status(400, errors=[COMPLAINT])}
        with FaultyServer(by_row(faults)) as server:
            deliver(towards(workspace, server.url), tones(tmp_path / "tones.csv", 110))
        add(workspace, ANNA, OTTO, TESSA)

    return once(build)


def settled(rows: Rows) -> dict[str, int]:
    return dict(rows("SELECT state, count(*) FROM send GROUP BY 1"))


@pytest.mark.long
def test_rows_in_doubt_are_read_with_what_was_sent_and_settled_together(
    pushed: Workspace, browser: New, rows: Rows
) -> None:
    otto = browser().log_in("otto").open("/batches/1")
    assert f'href="{PAGE}?state=in_doubt"' in otto.answer.text
    otto.open(PAGE, state="in_doubt")
    assert "AddMessageTone: 55 in doubt AddMessageTone: 1 refused" in otto.text
    assert 'tones.csv, line 2 record 1 {"TenantsId":7,"AvatarsId":3,"Name":"tone 1"}' in otto.text
    assert "no answer, 1 attempt" in otto.text
    assert otto.answer.text.count('name="row"') == 50
    otto.open(
        otto.answer.text.partition('rel="next" href="')[2].partition('"')[0].replace("&amp;", "&")
    )
    assert otto.answer.text.count('name="row"') == 5
    otto.send(PAGE, what="resend", reason="not there", row=["1:101", "1:109"])
    assert (otto.status, "2 rows of batch 1: resend" in otto.text) == (200, True), otto.text
    assert settled(rows) == {"acknowledged": 54, "in_doubt": 53, "refused": 1, "unsent": 2}
    otto.open(PAGE).send(PAGE, what="confirm", reason="seen there", all="1")
    assert "53 rows of batch 1: confirm" in otto.text
    assert settled(rows) == {"acknowledged": 107, "refused": 1, "unsent": 2}
    told = rows("SELECT \"by\", reason FROM event WHERE what = 'resolve' ORDER BY id")
    assert told == [("otto", "not there"), ("otto", "seen there")]


@pytest.mark.long
def test_why_the_service_refused_a_row_stands_beside_it(pushed: Workspace, browser: New) -> None:
    page = browser().log_in("anna").open(PAGE, state="refused")
    assert "HTTP 400, 1 attempt" in page.text
    assert "NotEmpty is empty" in page.text
    assert 'name="what"' not in page.answer.text, "a preparer settles nothing"


def test_what_a_row_had_come_to_stands_beside_it_when_it_is_sent_again(
    pushed: Workspace, browser: New
) -> None:
    otto = browser().log_in("otto").open(PAGE, state="refused")
    otto.send(PAGE, what="resend", reason="it was put right", row=["1:110"])
    page = browser().log_in("anna").open(PAGE, state="unsent")
    assert "decided: resend by otto on" in page.text
    assert "Before: refused, 1 attempt, HTTP 400; until resend by otto on" in page.text
    assert "it was put right" in page.text
    assert "NotEmpty is empty" in page.text


@pytest.mark.long
def test_only_what_can_be_decided_is_offered(pushed: Workspace, browser: New, rows: Rows) -> None:
    """The service cannot have what it refused and nobody sent again: nobody confirms that."""
    otto = browser().log_in("otto").open(PAGE, state="refused")
    otto.send(PAGE, what="resend", reason="put right", row=["1:110"])
    otto.open(PAGE, state="in_doubt").send(PAGE, what="resend", reason="gone", row=["1:1"])
    otto.open(PAGE, state="unsent")
    assert "Only 1 of the 2" in otto.text
    otto.send(PAGE, what="confirm", reason="seen", all="1")
    assert "1 row of batch 1: confirm" in otto.text
    otto.open(PAGE, state="unsent")
    assert ("Abandon." in otto.text, "Confirm." in otto.text) == (True, False)


@pytest.mark.parametrize("undone", [False, True], ids=["operation gone", "undone"])
def test_rows_about_which_nothing_can_be_decided_say_why(
    pushed: Workspace, browser: New, undone: bool
) -> None:
    if undone:
        undo_batch(pushed, 1, by="otto", reason="wrong month")
    else:
        with pushed.database.connect() as connection:
            connection.execute("SET session_replication_role = replica")
            connection.execute("UPDATE send SET operation = 'AddRefund'")
    otto = browser().log_in("otto").open(PAGE)
    assert "55 in doubt" in otto.text
    why = "Batch 1 is undone." if undone else "an operation that no record kind has any more"
    assert why in otto.text
    assert ('name="what"' in otto.answer.text, 'name="row"' in otto.answer.text) == (False, False)


@pytest.mark.long
def test_what_moved_since_is_not_settled(pushed: Workspace, browser: New, rows: Rows) -> None:
    one, other = browser().log_in("otto"), browser().log_in("otto")
    for page in (one, other):
        page.open(PAGE)
    one.send(PAGE, what="abandon", reason="typo", row=["1:1"])
    other.send(PAGE, what="confirm", reason="seen", all="1")
    assert "54 rows of batch 1 would be settled, and 55 were looked at" in other.text
    other.open(PAGE).send(PAGE, what="confirm", reason="seen", row=["1:1", "1:3"])
    assert "1 row of batch 1 would be settled, and 2 were looked at" in other.text
    assert settled(rows) == {"acknowledged": 54, "abandoned": 1, "in_doubt": 54, "refused": 1}


@pytest.mark.long
def test_what_is_refused_keeps_what_was_typed(pushed: Workspace, browser: New, rows: Rows) -> None:
    otto = browser().log_in("otto").open(PAGE)
    before = settled(rows)
    for typed, told in (
        ({"reason": "seen", "row": ["1:3"]}, "Say what the rows are"),
        ({"what": "abandon", "row": ["1:3"]}, "Fill in Reason"),
        ({"what": "confirm", "reason": "seen"}, "Choose rows"),
        ({"what": "confirm", "reason": "seen", "row": ["x", "1:y", "9999999999:1"]}, "Choose rows"),
        (
            {"what": "confirm", "reason": "seen", "all": "1", "count_confirm": "many"},
            "Load the page again",
        ),
        ({"what": "confirm", "reason": "seen", "state": "refused", "row": ["1:110"]}, "Say what"),
    ):
        otto.open(PAGE).send(PAGE, **typed)
        assert (otto.status, told in otto.text) == (400, True), (typed, otto.text)
        if typed.get("row") == ["1:3"]:
            assert 'value="1:3" checked' in otto.answer.text
    anna = browser().log_in("anna").open(PAGE)
    token = anna.answer.text.partition('name="csrf" value="')[2].partition('"')[0]
    refused = anna.client.post(
        PAGE,
        data={"csrf": token, "what": "confirm", "reason": "x", "state": "in_doubt", "row": "1:1"},
    )
    assert refused.status_code == 403
    assert browser().log_in("tessa").open(PAGE).status == 404, "it is of all tenants"
    assert settled(rows) == before
