"""Binding (400), then authentication (401), then the role (403), then validation (400)."""

import pytest

from tests.sandbox.caller import basic
from tests.sandbox.conftest import Host

BAD_QUERY, BAD_BODY = "?PartnerUserID=abc", "nonsense"
CHECKS = [
    # query, body, user, status, reason
    (BAD_QUERY, BAD_BODY, None, 400, "Bad Request"),
    (BAD_QUERY, "{}", None, 400, "Bad Request"),
    ("", BAD_BODY, None, 400, "Bad Request"),
    ("", BAD_BODY, "client", 400, "Bad Request"),
    ("", "{}", None, 401, "Unauthorized"),
    ("", "{}", "wrong", 401, "Invalid UserName or Password"),
    ("", "{}", "client", 403, "Invalid Role"),
    ("", "{}", "admin", 403, "Invalid Role"),
    ("", "{}", "partner", 400, "NotNull"),
]


@pytest.mark.parametrize(("query", "body", "user", "status", "reason"), CHECKS)
def test_the_first_check_that_fails_answers(
    pascal: Host, query: str, body: str, user: str | None, status: int, reason: str
) -> None:
    headers = {"Accept": "application/json", "Content-Type": "application/json"}
    if user:
        headers["Authorization"] = basic(user, "p@ss" if user != "wrong" else "no")
    answer = pascal.caller.send("POST", f"/clientregister{query}", body, headers)
    assert (answer.status, answer.reason) == (status, reason)


def test_the_verb_of_a_predefined_path_is_checked_last(host: Host) -> None:
    invalid = host.caller.as_client("POST", "/json/reply/EditPayment", {})
    assert (invalid.status, invalid.reason) == (400, "NotNull")
    listed = host.caller.as_client("POST", "/json/reply/ListAvatars", {})
    assert (listed.status, listed.reason) == (405, "NotImplementedException")
    message = listed.json()["ResponseStatus"]["Message"]
    assert message.startswith("Could not find method named Post(ListAvatars) or Any(ListAvatars)")
    for verb in ("DELETE", "PATCH"):
        tone = {"TenantsId": 1, "AvatarsId": 2, "Name": "x"}
        unknown = host.caller.as_client(verb, "/json/reply/AddMessageTone", tone)
        assert (unknown.status, unknown.reason) == (405, "NotImplementedException")
        anonymous = host.caller.send(verb, "/json/reply/AddMessageTone")
        assert (anonymous.status, anonymous.reason) == (401, "Unauthorized")


ROLES = [
    ("POST", "/clientregister", {"partner"}),
    ("POST", "/payment_gateways", {"client", "admin", "partner"}),
    ("PUT", "/payments/1", {"client", "admin", "partner"}),
    ("PUT", "/currency_rates/1", {"client", "admin", "partner"}),
    ("PUT", "/invoice_files/1", {"client", "admin", "partner"}),
    ("GET", "/avatars", {"client", "admin", "partner"}),
    ("GET", "/payment_plan_details", {"client", "admin", "partner"}),
    ("POST", "/message_tones", {"client", "admin", "partner"}),
    ("GET", "/insert_batch_data", {"client", "admin", "partner"}),
    ("POST", "/action_documents", {"client", "admin", "partner"}),
]


@pytest.mark.parametrize(("method", "path", "allowed"), ROLES)
def test_roles(pascal: Host, method: str, path: str, allowed: set[str]) -> None:
    body: dict[str, object] | None = {} if method != "GET" else None
    statuses = {
        user: pascal.caller.as_client(method, path, body, user=user).status
        for user in ("client", "admin", "partner", "nobody")
    }
    assert {user for user, status in statuses.items() if status != 403} == allowed


def test_the_form_asks_for_no_account(host: Host) -> None:
    headers = {"Accept": "application/json", "Content-Type": "application/json"}
    assert host.caller.send("PUT", "/campaign/inbox/form", "{}", headers).status == 200
