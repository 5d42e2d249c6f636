"""Listings: whole and typed, or not at all."""

import hashlib
import json
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from connectors.errors import ServiceUnusable
from connectors.service import Credentials, Scheme
from schemas.cells.reading import Moment, Number
from schemas.derived.json_text import canonical_json, datetime_text
from tests.sandbox.conftest import Host
from tests.service.faulty_server import (
    LOST,
    OK,
    Ending,
    FaultyServer,
    Reply,
    always,
    scripted,
    status,
)
from tests.service.outbox import BY_NAME, CLIENT, client

PLANS, AVATARS = BY_NAME["ListPaymentPlanDetails"], BY_NAME["ListAvatars"]
BATCHES = BY_NAME["ListInsertBatchData"]
FORMATS = pytest.mark.parametrize("form", ["csv", "json"])
CSV = (("Content-Type", "text/csv"),)

PLAN_FILE = """PaymentPlansId,PlannedDate,PlannedAmount,PlannedCurrenciesId,PaymentsId,StatusCodesId
1,2026-01-02T03:04:05Z,10.5,2,3,4
2,2026-01-02,-0.1,2,,
,,,,,
"""
BATCH_FILE = """Data,HasError,Merged,BatchId,Jsondata,ErrorData
"a,""b""
c",True,False,1,"{""a"":1}",
,,,2,"[1,2]",é
"""


def loaded(host: Host, record: str, text: str, folder: Path) -> None:
    host.sandbox.clear()
    path = folder / "listing.csv"
    path.write_text(text, encoding="utf-8")
    host.sandbox.load(record, path)


def number(text: str) -> Number:
    return Number(float(text), Decimal(text))


@FORMATS
def test_payment_plan_details(host: Host, form: str, tmp_path: Path) -> None:
    loaded(host, "payment_plan_detail", PLAN_FILE, tmp_path)
    with client(host.caller.base_url, format=form, zone="America/New_York") as service:
        listing = service.listing(PLANS)
        one = service.listing(PLANS, {"PaymentPlansId": 2})
        none = service.listing(PLANS, {"PaymentPlansId": 77})
    first, second, third = listing.rows
    date = first.pop("PlannedDate")
    assert first == {
        "PaymentPlansId": 1,
        "PlannedAmount": number("10.5"),
        "PlannedCurrenciesId": 2,
        "PaymentsId": 3,
        "StatusCodesId": 4,
    }
    assert isinstance(date, Moment)
    assert date.instant.replace(tzinfo=None) == datetime(2026, 1, 2, 3, 4, 5)  # noqa: DTZ001
    assert second["PlannedAmount"] == number("-0.1")
    assert third == {}
    assert [row["PaymentPlansId"] for row in one.rows] == [2]
    assert none.rows == []
    assert listing.sha256 == hashlib.sha256(listing.body).hexdigest()
    assert listing.proof == f"Content-Length {len(listing.body)} read"
    assert canonical_json(PLANS.table, second).startswith('{"PaymentPlansId":2,"PlannedDate":"2026')


@FORMATS
def test_insert_batch_data(host: Host, form: str, tmp_path: Path) -> None:
    loaded(host, "insert_batch_data", BATCH_FILE, tmp_path)
    with client(host.caller.base_url, format=form) as service:
        listing = service.listing(BATCHES)
        errors = service.listing(BATCHES, {"HasError": True})
    assert listing.rows == [
        {
            "Data": 'a,"b"\nc',
            "HasError": True,
            "Merged": False,
            "BatchId": 1,
            "Jsondata": '{"a":1}',
        },
        {"BatchId": 2, "Jsondata": "[1,2]", "ErrorData": "é"},
    ]
    assert len(errors.rows) == 1


@FORMATS
def test_avatars(host: Host, form: str, tmp_path: Path) -> None:
    loaded(host, "avatar", "TenantsId,Name,Style\n1,Ann & Bo?,x\n1, pad ,\n", tmp_path)
    with client(host.caller.base_url, format=form) as service:
        assert service.listing(AVATARS).rows == [
            {"TenantsId": 1, "Name": "Ann & Bo?", "Style": "x"},
            {"TenantsId": 1, "Name": " pad "},
        ]
        named = service.listing(AVATARS, {"Name": "Ann & Bo?"})
        assert [row["Name"] for row in named.rows] == ["Ann & Bo?"]


PLANNED = [
    # a DateTime as a server in New York writes it in JSON, the time it is; None: none
    ("/Date(1767315845000)/", "2026-01-02T01:04:05+00:00"),
    ("/Date(1767315845000-0500)/", "2026-01-01T20:04:05-05:00"),
    ("/Date(1767315845000+0200)/", "2026-01-02T03:04:05+02:00"),
    ("/Date(1767330000000-0000)/", "2026-01-02T00:00:00"),
    ("/Date(1782964800000-0000)/", "2026-07-02T00:00:00"),
    ("/Date(-62135596800000-0000)/", "0001-01-01T00:00:00"),
    ("/Date(253402300799999+0200)/", None),
    ("2026-01-02", "2026-01-02T00:00:00"),
    ("2026-01-01T20:04:05-05:00", "2026-01-01T20:04:05-05:00"),
]


@pytest.mark.parametrize(("told", "time"), PLANNED)
def test_the_time_of_a_listing_is_that_of_the_server(told: str, time: str | None) -> None:
    reply = Reply(body=json.dumps([{"PlannedDate": told}]))
    with (
        FaultyServer(always(reply)) as server,
        client(server.url, zone="America/New_York") as service,
    ):
        if time is None:
            with pytest.raises(ServiceUnusable, match="PlannedDate of row 1 is no datetime"):
                service.listing(PLANS)
            return
        ((date,),) = (row.values() for row in service.listing(PLANS).rows)
    assert datetime_text(date.wall, date.offset) == time


def test_a_text_that_no_file_holds_costs_its_characters_alone() -> None:
    replies = [
        Reply(body='[{"Data":"a\\ud83db\\u0000c"}]'),
        Reply(body='[{"ResponseStatus":{"ErrorCode":"a\\ud83db"}}]'),
    ]
    with FaultyServer(scripted(replies)) as server, client(server.url) as service:
        assert service.listing(BATCHES).rows == [{"Data": "a\ufffdb\ufffdc"}]
        with pytest.raises(ServiceUnusable, match=r"a\\ud83db"):
            service.listing(BATCHES)


def test_wrong_credentials(host: Host) -> None:
    wrong = Credentials(Scheme.BASIC, "client", "wrong-one")
    with (
        client(host.caller.base_url, wrong) as service,
        pytest.raises(ServiceUnusable, match=r"/avatars cannot be read.*401") as problem,
    ):
        service.listing(AVATARS)
    assert "wrong-one" not in str(problem.value)


ROWS = '[{"TenantsId":1,"Name":"a"}]'
HEADER = ",".join(AVATARS.table.columns)
CSV_ROWS = f"{HEADER}\r\n1,a,,,,,\r\n"
WITH_STATUS = f"\ufeff{HEADER.lower()},Other,ResponseStatus\r\n1,a,,,,,,x,\r\n"
JSON = ("Content-Type", "application/json")
CUT_ROWS = Reply(ending=Ending.CUT, body=ROWS)
WHOLE: list[tuple[list[Reply], str]] = [
    # answers, proof
    ([Reply(body=ROWS)], "Content-Length 28 read"),
    ([Reply(body=ROWS, chunked=True)], "chunked end read"),
    ([status(503, retry_after=0), LOST, CUT_ROWS, Reply(body=ROWS)], "Content-Length 28 read"),
    ([status(429), Reply(headers=CSV, body=CSV_ROWS)], "Content-Length 69 read"),
    ([Reply(headers=CSV, body=WITH_STATUS)], "Content-Length 96 read"),
    ([Reply(body="\ufeff" + ROWS)], "Content-Length 31 read"),
    *(
        ([Reply(headers=(JSON, header), body=ROWS)], "Content-Length 28 read")
        for header in (
            ("X-Total-Count", "1"),
            ("X-Total-Count", "many"),
            ("Content-Range", "items 0-0/1"),
            ("Content-Range", "bytes 0-27/28"),
            ("Link", '</avatars>; rel="self", </next>; rel=first; title="next"'),
        )
    ),
]


@pytest.mark.parametrize(("replies", "proof"), WHOLE, ids=range(len(WHOLE)))
def test_a_whole_listing(replies: list[Reply], proof: str) -> None:
    with FaultyServer(scripted(replies)) as server, client(server.url, CLIENT) as service:
        listing = service.listing(AVATARS)
    assert (listing.rows, listing.proof) == ([{"TenantsId": 1, "Name": "a"}], proof)


def test_a_listing_is_asked_for_as_often_as_is_set() -> None:
    replies = scripted([status(503, retry_after=0)] * 2, Reply(body=ROWS))
    with FaultyServer(replies) as server, client(server.url, CLIENT, attempts=3) as service:
        assert service.listing(AVATARS).rows == [{"TenantsId": 1, "Name": "a"}]
    with (
        FaultyServer(replies) as server,
        client(server.url, CLIENT, attempts=2) as service,
        pytest.raises(ServiceUnusable, match="503"),
    ):
        service.listing(AVATARS)
    assert len(server.requests) == 2


def test_a_listing_that_is_too_large_is_read_once() -> None:
    reply = Reply(body=f"[{' ' * 2_000_000}]")
    with (
        FaultyServer(always(reply)) as server,
        client(server.url, listing_bytes=1000, attempts=3) as service,
        pytest.raises(ServiceUnusable, match="bytes, which is RECON_SERVICE_LISTING_BYTES"),
    ):
        service.listing(AVATARS)
    assert len(server.requests) == 1


SAID = {"ResponseStatus": {"ErrorCode": "S", "Message": "Unable to bind p@ss\nat Host.Get()"}}
NOT_WHOLE: list[tuple[Reply, str]] = [
    (LOST, "closed before the answer was complete"),
    (CUT_ROWS, "closed before the answer was complete"),
    (
        Reply(
            body=b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n" + ROWS.encode(),
            ending=Ending.RAW,
        ),
        "without saying how long",
    ),
    (Reply(ending=Ending.CUT, body=ROWS, chunked=True), "before the answer was complete"),
    (OK, "an empty body"),
    (Reply(body=ROWS[:-1]), "no JSON"),
    (Reply(body='{"Results":[]}'), "one object"),
    (Reply(body="[1,null]"), "other things than objects"),
    (Reply(body='{"ResponseStatus":{"ErrorCode":"X"}}'), "X"),
    (
        Reply(body='[{"Name":"a"},{"Name":"b","ResponseStatus":{"Errors":[{"FieldName":"X"}]}}]'),
        "answered an error of X",
    ),
    (Reply(body='[{"Name":"a","ResponseStatus":{"Errors":[1]}}]'), "neither a code nor a field"),
    (Reply(body='[{"TenantsId":"a"}]'), "TenantsId of row 1 is no integer"),
    (Reply(body='[{"TenantsId":true}]'), "TenantsId of row 1 is no integer"),
    (Reply(body='[{"Name":5}]'), "Name of row 1 is no string"),
    (Reply(headers=CSV, body="TenantsId,Name\r\n1,a\r\n1,b"), "breaks off"),
    (Reply(headers=CSV, body="TenantsId,Name\r\n1,a\r\n1\r\n"), "differ in length"),
    (Reply(headers=CSV, body='TenantsId,Name\r\n1,"a\r\n'), "quote out of place"),
    (
        Reply(headers=CSV, body="temporarily unavailable\r\n"),
        "does not name TenantsId, Name, .*",
    ),
    (Reply(headers=CSV, body="[]\r\n"), "does not name TenantsId, Name, .*"),
    (Reply(headers=CSV, body="error\r\nmaintenance\r\n"), "does not name TenantsId, .*"),
    (Reply(headers=CSV, body=CSV_ROWS.replace(",", ";")), "does not name TenantsId, Name, .*"),
    (Reply(headers=CSV, body=CSV_ROWS.replace("Name", "name_")), "does not name Name"),
    (Reply(headers=CSV, body=f"{HEADER},NAME\r\n1,a,,,,,,b\r\n"), "names a column twice"),
    (
        Reply(body='[{"TenantsId":1},{"error":"x"}]'),
        "at most half of the fields of row 2 are fields of avatar",
    ),
    (Reply(headers=(("Content-Type", "text/html"),), body="<p>"), "text/html"),
    *(
        (Reply(headers=(JSON, header), body=ROWS), "one page of several")
        for header in (
            ("X-Total-Count", "900"),
            ("X-Total", "0"),
            ("Content-Range", "items 0-0/900"),
            ("Content-Range", "items 1-1/2"),
            ("Content-Range", "items 0-0/*"),
            ("Link", '</avatars?page=2>; rel="next"'),
            ("Link", "</avatars>; rel=self, </avatars?page=2> ; REL = next"),
            ("Link", '</avatars?page=2>; title="2"; rel="last next"'),
        )
    ),
    (Reply(headers=(JSON, ("X-Total-Count", "2")), body="[]"), "x-total-count: 2"),
    (status(404, body="404"), "404"),
    (status(400, body=SAID, headers=(JSON,)), r"answered 400 \(S: Unable to bind \*\*\*\)"),
    (status(401, body=SAID, headers=(JSON,)), r"answered 401 \(S: Unable to bind \*\*\*\), so"),
    (status(500, body=SAID, headers=(JSON,)), r"answered 500 \(S: Unable to bind \*\*\*\)"),
    (Reply(body=SAID), r"answered S: Unable to bind \*\*\*"),
    (status(302), "302"),
    (status(429, retry_after=9999), "pause of 9999 s"),
    (status(503), "503"),
]


@pytest.mark.parametrize(("reply", "problem"), NOT_WHOLE, ids=range(len(NOT_WHOLE)))
def test_a_listing_that_is_not_whole_is_none(reply: Reply, problem: str) -> None:
    with (
        FaultyServer(always(reply)) as server,
        client(server.url, attempts=2) as service,
        pytest.raises(ServiceUnusable, match=problem),
    ):
        service.listing(AVATARS)


@pytest.mark.parametrize(
    ("operation", "filters"), [("ListAvatars", {"Nope": 1}), ("EditPayment", {})]
)
def test_a_listing_that_is_not_there(operation: str, filters: dict[str, Any]) -> None:
    with (
        FaultyServer() as server,
        client(server.url) as service,
        pytest.raises(ValueError, match="lists nothing"),
    ):
        service.listing(BY_NAME[operation], filters)
    assert server.requests == []
