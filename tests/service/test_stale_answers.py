"""The answer to an earlier request comes once more, when the next one is under way.

Proxies that repeat, and servers that lose their place, do it; HTTP/1.1 has nothing that tells whose
answer it is. So an answer is trusted only where it shows its row, or where no other can be meant.
"""

from collections import Counter

import pytest

from connectors.service import Credentials, Scheme, Verdict
from tests.service.faulty_server import OK, FaultyServer, Reply, Seen, at, status
from tests.service.outbox import by_number, client, request, requests
from tests.service.test_batches import names

TONE = "AddMessageTone"
SHOWN = (Verdict.ACKNOWLEDGED, Verdict.DIFFERS)

FIRST = {
    **{f"{code}": status(code) for code in (404, 409, 415, 422, 429)},
    **{f"{code} that says why": status(code, error_code="C") for code in (400, 403, 409, 429)},
    **{f"{code} behind {done}": status(code, error_code="C", completed=done)
       for code in (400, 403, 409, 413, 429) for done in (0, 1, 2)},
    "200 that is a refusal": Reply(body={"ResponseStatus": {"ErrorCode": "C"}}, applied=False),
    "200": OK,
}  # fmt: skip


@pytest.mark.parametrize("batch", [1, 2, 8])
@pytest.mark.parametrize("first", FIRST.values(), ids=FIRST.keys())
@pytest.mark.parametrize("applied", [True, False])
def test_an_answer_that_comes_again_is_taken_for_no_other_row(
    first: Reply, batch: int, applied: bool
) -> None:
    plan = at({1: first, 2: Reply(stale=True, applied=applied)})
    with FaultyServer(plan) as server:
        left = requests(TONE, 12)
        for _ in range(2):
            with client(server.url, batch=batch, concurrency=1) as service:
                answers = by_number(service.send(left))
            done = names(server)
            for answer in answers:
                taken = f"tone {answer.number}" in done
                if answer.verdict in SHOWN:
                    assert taken, answer
                if answer.verdict is Verdict.REFUSED:
                    assert not taken, answer
            unsent = {one.number for one in answers if one.verdict is Verdict.UNSENT}
            left = [one for one in left if one.number in unsent]
    assert max(Counter(names(server)).values()) == 1


def test_what_is_not_about_rows_is_on_no_connection_that_rows_use() -> None:
    """The answers of a health question and of a sign-in are not taken for those of a POST."""
    session = (("Set-Cookie", "ss-id=1"),)

    def plan(seen: Seen) -> Reply:
        if seen.path.endswith("credentials"):
            return Reply(headers=session, body="{}")
        return at({2: Reply(503, applied=True)}, Reply(stale=True))(seen)

    cookies = Credentials(Scheme.CREDENTIALS, "client", "p@ss")
    with (
        FaultyServer(plan, health=lambda seen: Reply(401)) as server,
        client(server.url, cookies, concurrency=1) as service,
    ):
        answers = by_number(service.send(requests(TONE, 6)))
    verdicts = [answer.verdict for answer in answers]
    rows = Counter(effect.body for effect in server.effects if "Name" in effect.body)
    assert max(rows.values()) == 1
    assert verdicts.count(Verdict.IN_DOUBT) >= 1
    assert Verdict.REFUSED not in verdicts


def test_the_id_of_another_record_acknowledges_nothing() -> None:
    """A reply to a form shows its id and comments, and many replies have the same comments."""
    plan = at({2: Reply(stale=True, applied=False)})
    with FaultyServer(plan) as server, client(server.url, concurrency=1) as service:
        answers = by_number(service.send(requests("SaveCampaignActionClientForm", 3)))
    assert [answer.verdict for answer in answers] == [
        Verdict.ACKNOWLEDGED, Verdict.IN_DOUBT, Verdict.ACKNOWLEDGED
    ]  # fmt: skip
    assert "request before" in answers[1].errors[0]["Message"]


def test_a_put_that_meets_the_answer_of_another_record_is_sent_again() -> None:
    rows = requests("EditPayment", 3)
    plan = at({2: Reply(stale=True, applied=False)})
    with FaultyServer(plan) as server, client(server.url, concurrency=1) as service:
        answers = by_number(service.send(rows))
    assert {answer.verdict for answer in answers} == {Verdict.ACKNOWLEDGED}
    assert [answer.attempts for answer in answers] == [1, 2, 1]


def test_equal_answers_that_are_true_are_believed() -> None:
    """The same record twice in a row; and a host that shows of each row what all of them share."""
    twice = [request("EditPayment", number, {"Id": 7}) for number in (1, 2, 3)]
    with FaultyServer() as server, client(server.url, concurrency=1) as service:
        assert {one.verdict for one in service.send(twice)} == {Verdict.ACKNOWLEDGED}
    shared = at({}, Reply(body={"TenantsId": 1, "AvatarsId": 2, "Name": None}))
    with FaultyServer(shared) as server, client(server.url, concurrency=1) as service:
        assert {one.verdict for one in service.send(requests(TONE, 4))} == {Verdict.DIFFERS}
