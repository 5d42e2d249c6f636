"""The sandbox answers every recorded exchange as the recorded host did.

What only that host had (its data, its code, one operation without validators) is in the tables
here; a text of the recording that is replaced must be in it.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from connectors.sandbox import User
from tests.sandbox.conftest import Host, running
from tests.service.transcripts import EXCHANGES

COMPARED = (
    "content-type",
    "content-disposition",
    "vary",
    "www-authenticate",
    "x-autobatch-completed",
)

USERS = (
    User("client", "p@ss", ("Client",)),
    User("partner", "p@ss", ("Partner",)),
    User("nobody", "p@ss"),
    # The recorded host had six accounts, so that the next one is number 7.
    *(User(f"other{number}", "p@ss") for number in range(3)),
)
UNVALIDATED = frozenset({"EditCurrencyRate"})
LISTINGS = {
    "insert_batch_data": (
        "Data,HasError,Merged,BatchId,Jsondata,ErrorData\r\n"
        '"a,b",True,False,1,"{""a"":1}",\r\n'
        '"",,,,"[1,2]","line1\nline2 ""q"""\r\n'
        " pad ,,,,\"x{y}\",'single'\r\n"
        '"""both""",,,,été €,a;b|c:d\t=1+1\r\n'
    ),
    "payment_plan_detail": (
        "PaymentPlansId,PlannedDate,PlannedAmount\r\n"
        "1,2026-01-02T00:00:00Z,10\r\n"
        ",2026-01-02T03:04:05Z,0.30000000000000004\r\n"
        ",2026-01-02T03:04:05.678Z,1E+16\r\n"
        ",2026-01-02T03:04:05,0.00001\r\n"
        ",2026-01-02T03:04:05+00:00,-1.5\r\n"
        ",,\r\n"
        ",,\r\n"
    ),
}

SAID_JSON, SAID_CSV = r"he said \"hi\"", 'he said """"hi""""'
DIFFERENT: dict[str, list[tuple[str, str]]] = {
    # That host's account had an own Meta and no date of modification.
    "reg-ok-json": [
        (r"\/Date(-62135596800000-0000)\/", r"\/Date(1767323045000)\/"),
        (',"Meta":{"k":"v,w"}', ""),
    ],
    # That host made the comments and the custom responses up.
    "form-json": [
        (SAID_JSON, r"a, \"b\""),
        ('"CampaignActionsId":2', '"CampaignActionsId":0'),
        ('"FormMetaCustomResponses":{"a":"x,y"},', ""),
    ],
    "form-csv": [
        (SAID_CSV, 'a, """"b""""'),
        ("CampaignActionsId:2", "CampaignActionsId:0"),
        ('FormMetaCustomResponses:{a:""x,y""},', ""),
    ],
    "form-jsv": [
        ('he said ""hi""', 'a, ""b""'),
        ("CampaignActionsId:2", "CampaignActionsId:0"),
        ('FormMetaCustomResponses:{a:"x,y"},', ""),
    ],
}


@pytest.fixture(scope="module")
def recorded_host(database_url: str) -> Iterator[Host]:
    with running(database_url, users=USERS, unvalidated=UNVALIDATED) as host:
        yield host


@pytest.mark.parametrize("exchange", EXCHANGES.values(), ids=[*EXCHANGES])
def test_answers_as_recorded(exchange: dict[str, Any], recorded_host: Host, tmp_path: Path) -> None:
    recorded_host.sandbox.clear()
    for record, text in LISTINGS.items():
        listing = tmp_path / f"{record}.csv"
        listing.write_bytes(text.encode())
        recorded_host.sandbox.load(record, listing)
    request, response = exchange["request"], exchange["response"]

    answer = recorded_host.caller.send(
        request["method"], request["path"], request["body"], request["headers"]
    )

    expected = response["body"]
    for recorded, ours in DIFFERENT.get(exchange["name"], []):
        assert expected.count(recorded) == 1, f"{recorded!r} is not in the recording once"
        expected = expected.replace(recorded, ours)
    assert answer.body == expected
    assert (answer.status, answer.reason) == (response["status"], response["reason"])
    compared = {name: answer.headers.get(name) for name in COMPARED}
    assert compared == {name: response["headers"].get(name) for name in COMPARED}
    assert int(answer.headers["content-length"]) == len(answer.body.encode())


def test_every_difference_is_of_a_recorded_exchange() -> None:
    assert DIFFERENT.keys() <= EXCHANGES.keys()
