"""Texts that PostgreSQL or UTF-8 has no place for are taken, echoed as sent, and never a 500."""

import json
from urllib.parse import quote, urlencode

import psycopg
import pytest

from tests.sandbox.caller import basic
from tests.sandbox.conftest import Host
from tests.sandbox.records import PAYMENT, REGISTRATION, TONE

JSON = {"Accept": "application/json", "Content-Type": "application/json"}
ODD = [
    # what is sent, what is kept
    ("a\x00b", "a\ufffdb"),
    ("\x00", "\ufffd"),
    ("\x01\x7f", "\x01\x7f"),
    ("\U0001f600\u2028", "\U0001f600\u2028"),
]


@pytest.mark.parametrize(("sent", "kept"), ODD)
def test_a_text_is_echoed_and_kept(host: Host, database_url: str, sent: str, kept: str) -> None:
    answer = host.caller.as_client("POST", "/message_tones", {**TONE, "Name": sent})
    assert (answer.status, answer.json()["Name"]) == (200, sent)
    with psycopg.connect(database_url) as connection:
        assert connection.execute('SELECT "Name" FROM sandbox.message_tone').fetchall() == [(kept,)]


def test_half_a_character_is_replaced(host: Host) -> None:
    answer = host.caller.as_client(
        "POST", "/message_tones", '{"TenantsId":1,"AvatarsId":2,"Name":"\\ud800"}'
    )
    assert (answer.status, answer.json()["Name"]) == (200, "\ufffd")


def test_inside_lists_and_maps(host: Host) -> None:
    body = {"CommsGuid": "\x00", "CampaignActionFiles": [{"Name": "\x00"}, None]}
    answer = host.caller.send("POST", "/campaign/inbox/form", json.dumps(body), JSON)
    files = answer.json()["CampaignActionsFormResponses"]["FormMetaFilesResponses"]
    assert files == [{"Name": "\x00"}, None]


def test_a_registration(host: Host) -> None:
    body = {**REGISTRATION, "EMail": None, "FirstName": "\x00", "Password": "\x00"}
    for mail, status in (("\x00@b.co", 400), (None, 200)):
        answer = host.caller.as_client(
            "POST", "/clientregister", {**body, "EMail": mail}, user="partner"
        )
        assert answer.status == status


def test_a_newer_host_takes_an_address_once(camel: Host) -> None:
    body = {**REGISTRATION, "EMail": "\x00@b.co"}
    statuses = [
        camel.caller.as_client("POST", "/clientregister", body, user="partner").status
        for _ in range(2)
    ]
    assert statuses == [200, 409]


@pytest.mark.parametrize("name", ["\x00", "a\x00b", "\ufffd"])
def test_an_unheard_of_name_is_refused(pascal: Host, name: str) -> None:
    headers = {"Accept": "application/json", "Authorization": basic(name)}
    assert pascal.caller.send("PUT", "/payments/1", None, headers).status == 401
    form = {"Accept": "application/json", "Content-Type": "application/x-www-form-urlencoded"}
    given = urlencode({"UserName": name, "Password": "x"})
    assert pascal.caller.send("POST", "/auth/credentials", given, form).status == 401


def test_a_filter_finds_nothing(pascal: Host) -> None:
    answer = pascal.caller.as_client("GET", f"/avatars?Name={quote('a' + chr(0))}")
    assert (answer.status, answer.json()) == (200, [])


DEEP = [
    # opening, closing, content type, levels, status
    ("[", "]", "application/json", 50, 200),
    ("[", "]", "application/json", 400, 200),
    ("[", "]", "application/json", 2000, 400),
    ("[", "]", "application/json", 100_000, 400),
    ('{"a":', "}", "application/json", 100_000, 400),
    ("[", "]", "application/jsv", 50, 400),
    ("[", "]", "application/jsv", 100_000, 400),
]


@pytest.mark.parametrize(("opening", "closing", "content_type", "levels", "status"), DEEP)
def test_deep_nesting(
    host: Host, opening: str, closing: str, content_type: str, levels: int, status: int
) -> None:
    deep = opening * levels + "1" + closing * levels
    names = ("TenantsId", "AvatarsId", "Name")
    quoted = [f'"{name}"' if "json" in content_type else name for name in names]
    body = "{" + f"{quoted[0]}:1,{quoted[1]}:2,{quoted[2]}:{deep}" + "}"
    answer = host.caller.as_client("POST", "/message_tones", body, content_type=content_type)
    assert answer.status == status
    if status == 200:
        assert answer.json()["Name"] == deep


TARGETS = [
    # target, status
    ("/payments/%00", 400),
    ("/payments/%ff", 400),
    ("/payments/%zz", 400),
    ("/payments/1?Id=%00", 400),
    ("/payments/1?%00=%00&&&=", 200),
    ("/payments/" + "9" * 5000, 400),
    ("/payments/1%2F2", 404),
    ("//payments/1", 404),
    ("/nothing://host/payments/1", 404),
]


@pytest.mark.parametrize(("target", "status"), TARGETS, ids=lambda value: str(value)[:25])
def test_odd_targets(host: Host, target: str, status: int) -> None:
    assert host.caller.as_client("PUT", target, PAYMENT).status == status


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
@pytest.mark.parametrize(
    "content_type",
    ["application/json", "application/jsv", "text/csv", "application/x-www-form-urlencoded"],
)
def test_what_cannot_be_decompressed(pascal: Host, content_type: str, encoding: str) -> None:
    headers = {**JSON, "Content-Type": content_type, "Content-Encoding": encoding}
    answer = pascal.caller.send("POST", "/campaign/inbox/form", b"no such thing", headers)
    assert (answer.status, answer.reason) == (400, "Bad Request")
