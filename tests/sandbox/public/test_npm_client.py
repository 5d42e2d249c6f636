"""The framework's public JavaScript client against the sandbox.

It is skipped where Node.js or the package is missing. Install the package beside its lock file by
`npm ci --ignore-scripts` in tests/sandbox/public/node, or let the test do it: RECON_TEST_NPM=1.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from connectors.sandbox.rendering import camel as camel_case
from schemas.operations import OPERATIONS
from tests.sandbox.conftest import Host
from tests.sandbox.records import PAYMENT, REGISTRATION, TONE

FOLDER = Path(__file__).parent / "node"
METHODS = {operation.name: operation.method for operation in OPERATIONS} | {"Authenticate": "POST"}
PARTNER = {"userName": "partner", "password": "p@ss"}
INSTALL = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]

Told = list[dict[str, Any]]


@pytest.fixture(scope="module")
def node() -> str:
    """The path of Node.js, the package being there."""
    found = shutil.which("node")
    if found is None:
        pytest.skip("Node.js is not installed")
    if os.environ.get("RECON_TEST_NPM") == "1":
        subprocess.run(INSTALL, cwd=FOLDER, check=True, capture_output=True, timeout=300)
    if not (FOLDER / "node_modules" / "@servicestack" / "client").is_dir():
        pytest.skip("@servicestack/client is not installed; RECON_TEST_NPM=1 installs it")
    return found


@pytest.fixture
def tell(node: str) -> Callable[..., Told]:
    """Tell a story to a host: what the client made of every step."""

    def told(
        host: Host,
        *steps: dict[str, Any],
        base_path: str = "api",
        credentials: dict[str, str] | None = None,
    ) -> Told:
        story = {
            "baseUrl": host.caller.base_url,
            "basePath": base_path,
            "credentials": PARTNER if credentials is None else credentials,
            "methods": METHODS,
            "steps": steps,
        }
        run = subprocess.run(
            [node, "story.mjs"],
            cwd=FOLDER,
            input=json.dumps(story),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert run.returncode == 0, run.stderr
        outcomes: Told = json.loads(run.stdout)
        return outcomes

    return told


@pytest.fixture(params=["pascal", "camel"])
def side(request: pytest.FixtureRequest) -> Host:
    """Each style of host; this client reads names as they are written."""
    host: Host = request.getfixturevalue(request.param)
    host.sandbox.clear()
    return host


@pytest.fixture
def current(camel: Host) -> Host:
    camel.sandbox.clear()
    return camel


def named(host: Host, record: dict[str, Any]) -> dict[str, Any]:
    """The record with its members called as the host writes them."""
    camels = host.sandbox.options.style == "camel-core"
    return {camel_case(name) if camels else name: value for name, value in record.items()}


def step(call: str, operation: str, record: Any = None, **more: Any) -> dict[str, Any]:
    plural = isinstance(record, list)
    return {"call": call, "operation": operation, "records" if plural else "record": record, **more}


PATHS = pytest.mark.parametrize("base_path", ["api", ""])


@PATHS
def test_create_and_edit(tell: Callable[..., Told], side: Host, base_path: str) -> None:
    created, edited = tell(
        side,
        step("post", "AddMessageTone", TONE),
        step("put", "EditPayment", PAYMENT),
        base_path=base_path,
    )
    assert created["answer"] == named(side, TONE)
    times = {"camel-core": PAYMENT["PaymentDate"], "pascal-5": "/Date(1767323045000+0200)/"}
    payment = {**PAYMENT, "PaymentDate": times[side.sandbox.options.style]}
    assert edited["answer"] == named(side, payment)


def test_by_the_documented_paths(tell: Callable[..., Told], side: Host) -> None:
    created, edited, listed = tell(
        side,
        step("postToUrl", "AddMessageTone", TONE, url="/message_tones"),
        step("putToUrl", "EditPayment", PAYMENT, url="/payments/77"),
        {"call": "get", "url": "/avatars"},
    )
    assert created["answer"] == named(side, TONE)
    assert edited["answer"][next(iter(named(side, {"Id": 0})))] == 77
    # It asks for */* with a JSON Content-Type even where there is no body, and so gets JSON.
    assert (listed["answer"], listed["status"]) == ([], 200)


def test_numbers_beyond_its_doubles_lose_digits(tell: Callable[..., Told], side: Host) -> None:
    number = 2**53 + 1
    (edited,) = tell(side, step("putToUrl", "EditPayment", PAYMENT, url=f"/payments/{number}"))
    assert edited["answer"] == {**edited["answer"], **named(side, {"Id": number - 1})}


@PATHS
def test_list_with_a_filter(
    tell: Callable[..., Told], side: Host, tmp_path: Path, base_path: str
) -> None:
    listing = tmp_path / "avatars.csv"
    listing.write_text("TenantsId,Name\n1,Ann\n1,Bob & Co\n2,Ann\n")
    side.sandbox.load("avatar", listing)
    everything, one = tell(
        side,
        step("get", "ListAvatars", {}),
        step("send", "ListAvatars", {"Name": "Bob & Co"}),
        base_path=base_path,
    )
    assert len(everything["answer"]) == 3
    assert one["answer"] == [named(side, {"TenantsId": 1, "Name": "Bob & Co"})]


@PATHS
def test_batches(tell: Callable[..., Told], side: Host, base_path: str) -> None:
    tones = [{**TONE, "Name": name} for name in "xyz"]
    batch, oneway = tell(
        side,
        step("sendAll", "AddMessageTone", tones),
        step("sendAllOneWay", "AddMessageTone", tones[:2]),
        base_path=base_path,
    )
    assert batch["answer"] == [named(side, tone) for tone in tones]
    assert batch["headers"]["x-autobatch-completed"] == "3"
    assert (oneway["answer"], oneway["headers"]["x-autobatch-completed"]) == (None, "2")


def test_a_batch_stops_at_the_invalid_record(tell: Callable[..., Told], current: Host) -> None:
    (failed,) = tell(current, step("sendAll", "AddMessageTone", [TONE, TONE, {"TenantsId": 1}]))
    assert failed["error"]["meta"] == {"AutoBatchIndex": "2"}
    assert [error["fieldName"] for error in failed["error"]["errors"]] == ["AvatarsId", "Name"]


def test_a_batch_of_edits_cannot_be_posted(tell: Callable[..., Told], side: Host) -> None:
    (failed,) = tell(side, step("sendAll", "EditPayment", [PAYMENT]))
    assert failed["status"] == 405
    assert failed["error"]["errorCode"] == "NotImplementedException"


def test_a_failed_validation(tell: Callable[..., Told], side: Host) -> None:
    (failed,) = tell(side, step("post", "ClientRegister", {**REGISTRATION, "EMail": "bad"}))
    assert (failed["status"], failed["reason"]) == (400, "Email")
    status = failed["error"]
    assert status["message"] == "'E Mail' is not a valid email address."
    assert [(error["errorCode"], error["fieldName"]) for error in status["errors"]] == [
        ("Email", "EMail")
    ]


def test_the_account_is_a_record_of_its_own(tell: Callable[..., Told], side: Host) -> None:
    made, again = tell(side, *[step("post", "ClientRegister", REGISTRATION)] * 2)
    assert named(side, {"Email": "a@b.co"}).items() <= made["answer"].items()
    assert (again["status"], again["error"]["errorCode"]) == (409, "Conflict")


REFUSALS = [
    # credentials, status, error code; that of an empty body is the client's own
    ({}, 401, "401"),
    ({"userName": "nobody", "password": "p@ss"}, 403, "403"),
    ({"userName": "client", "password": "no"}, 401, "Unauthorized"),
    ({"bearerToken": "unknown-key"}, 404, "NotFound"),
]


@pytest.mark.parametrize(("credentials", "status", "code"), REFUSALS)
def test_refusals(
    tell: Callable[..., Told], side: Host, credentials: dict[str, str], status: int, code: str
) -> None:
    (failed,) = tell(side, step("get", "ListAvatars", {}), credentials=credentials)
    assert (failed["status"], failed["error"]["errorCode"]) == (status, code)


@PATHS
def test_sign_in_use_the_session_sign_out(
    tell: Callable[..., Told], side: Host, base_path: str
) -> None:
    given = {"provider": "credentials", "userName": "client", "password": "p@ss"}
    signed, listed, gone, refused = tell(
        side,
        step("post", "Authenticate", given),
        step("get", "ListAvatars", {}),
        step("post", "Authenticate", {"provider": "logout"}),
        step("get", "ListAvatars", {}),
        base_path=base_path,
        credentials={},
    )
    assert named(side, {"UserName": "client"}).items() <= signed["answer"].items()
    assert [each["status"] for each in (listed, gone, refused)] == [200, 200, 401]


@pytest.mark.parametrize("token", ["key-of-client", None], ids=["API key", "token"])
def test_bearers(tell: Callable[..., Told], side: Host, token: str | None) -> None:
    if token is None:
        (signed,) = tell(side, step("post", "Authenticate", PARTNER), credentials={})
        token = signed["answer"][next(iter(named(side, {"BearerToken": 0})))]
    (listed,) = tell(side, step("get", "ListAvatars", {}), credentials={"bearerToken": token})
    assert listed["answer"] == []


def test_the_lock_file_names_no_place_to_fetch_from() -> None:
    locked = (FOLDER / "package-lock.json").read_text()
    assert "integrity" in locked
    assert "resolved" not in locked
    assert "://" not in locked
