"""Which representation comes back: suffix over `format` over Accept, weights ignored."""

import json
import re

import pytest

from connectors.sandbox import SandboxOptions
from connectors.sandbox.routes import Routes
from schemas.operations import Operation
from tests.sandbox.caller import basic
from tests.sandbox.conftest import Host
from tests.sandbox.records import PAYMENT

JSON, CSV, JSV = "application/json; charset=utf-8", "text/csv", "application/jsv"
HTML = "text/html; charset=utf-8"
AS_JSON = "application/json"

LISTING = [
    # path, Accept, Content-Type that comes back
    ("/insert_batch_data", "application/json", JSON),
    ("/insert_batch_data", "text/csv", CSV),
    ("/insert_batch_data", "application/jsv", JSV),
    ("/insert_batch_data", "text/jsv", HTML),
    ("/insert_batch_data", "text/html", HTML),
    ("/insert_batch_data", "application/pdf", HTML),
    ("/insert_batch_data", None, HTML),
    ("/insert_batch_data", "*/*", HTML),
    ("/insert_batch_data", "text/csv, application/json", JSON),
    ("/insert_batch_data", "text/csv;q=1.0, application/json;q=0.1", JSON),
    ("/insert_batch_data", "application/jsv, application/json", JSON),
    ("/insert_batch_data", "text/csv, text/html", HTML),
    ("/insert_batch_data", "text/csv, */*", HTML),
    ("/insert_batch_data?format=csv", "application/json", CSV),
    ("/insert_batch_data?FORMAT=jsv", "application/json", JSV),
    ("/insert_batch_data?format=pdf", "text/csv", CSV),
    ("/insert_batch_data.csv", "application/json", CSV),
    ("/insert_batch_data.json", "text/csv", JSON),
    ("/insert_batch_data.json?format=csv", "text/csv", JSON),
    ("/insert_batch_data.csv?format=json", "application/json", CSV),
    ("/INSERT_Batch_data/", "text/csv", CSV),
    ("/json/reply/ListInsertBatchData", "text/csv", JSON),
    ("/csv/reply/listinsertbatchdata", "application/json", CSV),
    ("/jsv/reply/ListInsertBatchData", "application/json", JSV),
    ("/csv/reply/ListInsertBatchData?format=json", "text/csv", JSON),
    ("/json/oneway/ListInsertBatchData", "text/csv", JSON),
    ("/csv/oneway/ListInsertBatchData", "application/json", CSV),
    ("/api/ListInsertBatchData", "text/csv", JSON),
    ("/api/ListInsertBatchData.csv", "application/json", CSV),
]


@pytest.mark.parametrize(("path", "accept", "expected"), LISTING)
def test_listing(pascal: Host, path: str, accept: str | None, expected: str) -> None:
    headers = {"Authorization": basic("client")} | ({"Accept": accept} if accept else {})
    answer = pascal.caller.send("GET", path, None, headers)
    assert (answer.status, answer.headers["content-type"]) == (200, expected)
    assert answer.headers["vary"] == "Accept"
    assert ("content-disposition" in answer.headers) == (expected == CSV)


BODIES = [
    # path, Accept, Content-Type sent, Content-Type that comes back
    ("/payments/12", "*/*", "application/json", JSON),
    ("/payments/12", "*/*", "application/json; charset=utf-8", JSON),
    ("/payments/12", "application/json, text/html", "application/json", JSON),
    ("/payments/12", "application/json, text/html", "application/jsv", HTML),
    ("/payments/12.csv", "application/json", "application/json", CSV),
    ("/payments/12.json?format=csv", "text/csv", "application/json", JSON),
]


@pytest.mark.parametrize(("path", "accept", "sent", "expected"), BODIES)
def test_answer_to_a_body(pascal: Host, path: str, accept: str, sent: str, expected: str) -> None:
    body = json.dumps(PAYMENT) if "json" in sent else "{Id:1}"
    answer = pascal.caller.as_client("PUT", path, body, accept, sent)
    assert answer.headers["content-type"] == expected


def test_any_csv_goes_with_a_csv_body(pascal: Host) -> None:
    body = "TenantsId,AvatarsId,Name\r\n1,2,x\r\n"
    answer = pascal.caller.as_client("POST", "/message_tones", body, "*/*", "text/csv")
    assert (answer.headers["content-type"], answer.status) == (CSV, 200)


def test_a_page_shows_the_answer_escaped(host: Host) -> None:
    body = {"TenantsId": 1, "AvatarsId": 2, "Name": "<b>"}
    answer = host.caller.as_client("POST", "/message_tones", body, "text/html")
    assert re.search("&lt;b&gt;", answer.body)
    assert "<b>" not in answer.body


NOWHERE = [
    ("GET", "/payments/12"),
    ("POST", "/payments/12"),
    ("PUT", "/payments"),
    ("PUT", "/payments/12/more"),
    ("DELETE", "/payments/12"),
    ("DELETE", "/auth"),
    ("DELETE", "/json/reply/Authenticate"),
    ("HEAD", "/json/reply/ListAvatars"),
    ("POST", "/avatars"),
    ("GET", "/nothing"),
    ("GET", "/"),
    ("HEAD", "/avatars"),
    ("OPTIONS", "/avatars"),
    ("GET", "/json/reply/Nothing"),
    ("GET", "/json/oneway/Nothing"),
    ("POST", "/openapi.json"),
    ("GET", "/api/Nothing[]"),
]


@pytest.mark.parametrize(("method", "path"), NOWHERE)
def test_unknown_path_or_verb_is_404(pascal: Host, method: str, path: str) -> None:
    answer = pascal.caller.as_client(method, path)
    assert (answer.status, answer.reason) == (404, "Not Found")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.body == ("" if method == "HEAD" else "404")


def test_a_post_can_stand_for_a_put(host: Host) -> None:
    headers = {"Accept": AS_JSON, "Content-Type": AS_JSON, "Authorization": basic("client")}
    overridden = {**headers, "X-Http-Method-Override": "PUT"}
    answer = host.caller.send("POST", "/payments/12", json.dumps(PAYMENT), overridden)
    assert (answer.status, answer.json()["Id"]) == (200, 12)


def test_only_a_post_can_stand_for_another_verb(pascal: Host) -> None:
    headers = {"Accept": AS_JSON, "Authorization": basic("client")}
    overridden = {**headers, "X-Http-Method-Override": "DELETE"}
    assert pascal.caller.send("GET", "/avatars", None, overridden).status == 200


def test_a_form_reply_is_taken_by_both_verbs(host: Host) -> None:
    for number, verb in enumerate(("POST", "PUT"), 1):
        answer = host.caller.send(
            verb,
            "/campaign/inbox/form",
            '{"CommsGuid":"g"}',
            {"Accept": AS_JSON, "Content-Type": AS_JSON},
        )
        assert answer.json()["CampaignActionsFormResponses"]["Id"] == number


def test_a_path_that_names_more_is_found_first() -> None:
    """Those of one's own may fit one request: a placeholder takes whatever stands there."""
    paths = ("/{A}/{B}", "/books/{Id}", "/{A}/pages/{B}", "/books/pages/{Id}", "/books/all")
    given = [Operation(path, "PUT", path, "payment", "payment") for path in paths]
    routes = Routes(SandboxOptions(), given)
    for asked, path in (("/1/2", 0), ("/books/5", 1), ("/books/all", 4), ("/books/pages/5", 3)):
        route = routes.find("PUT", asked)
        assert route is not None
        assert route.operation is given[path], asked


WISHES = [
    ("DateHandler:Unknown", '"PaymentDate":"\\/Date(1767323045000+0200)\\/"'),
    ("EmitCamelCaseNames", '"paymentDate":"\\/Date(1767323045000+0200)\\/"'),
    ("DateHandler:ISO8601", '"PaymentDate":"2026-01-02T03:04:05.0000000+02:00"'),
    ("eccn,dh:iso8601", '"paymentDate":"2026-01-02T03:04:05.0000000+02:00"'),
]


@pytest.mark.parametrize(("wish", "expected"), WISHES)
def test_jsconfig_changes_one_answer(host: Host, wish: str, expected: str) -> None:
    answer = host.caller.as_client("PUT", f"/payments/12?jsconfig={wish}", PAYMENT)
    assert expected in answer.body
