"""Whoever opens connections and sends slowly, or without end, keeps nobody else from the desk."""

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from urllib.parse import urlsplit

import pytest

from connectors import oidc
from connectors.desk_settings import DeskSettings
from connectors.oidc import ProviderSettings
from flows.desk import app, server, uploading
from flows.stages.workspace import Workspace
from tests.desk.browser import Browser, desk_of, forms
from tests.desk.test_attacks import uploads

New = Callable[[], Browser]
ASKED = b"GET /login HTTP/1.1\r\nHost: localhost\r\n"
FORM = (
    b"POST /login HTTP/1.1\r\nHost: localhost\r\n"
    b"Content-Type: application/x-www-form-urlencoded\r\n"
)


@pytest.fixture(scope="module")
def workspace(still: Workspace) -> Workspace:
    """Nothing that is cut off here changes anything."""
    return still


def connected(desk: str, held: ExitStack) -> socket.socket:
    """A connection to the desk, for as long as the stack holds it."""
    place = urlsplit(desk)
    assert place.hostname
    there = socket.create_connection((place.hostname, place.port or 0), timeout=10)
    return held.enter_context(there)


@pytest.fixture
def opened(desk: str) -> Iterator[Callable[[], socket.socket]]:
    """Opens a connection to the desk; one that nobody ends is a failure."""
    with ExitStack() as held:
        yield lambda: connected(desk, held)


def all_of(connection: socket.socket) -> bytes:
    """What is answered until the desk closes."""
    answer = b""
    try:
        while block := connection.recv(65_536):
            answer += block
    except ConnectionResetError:
        pass
    return answer


@pytest.mark.long
@pytest.mark.parametrize("sent", [b"", ASKED[:20], ASKED], ids=["nothing", "a word", "no end"])
@pytest.mark.parametrize("answered", [False, True])
def test_a_connection_that_asks_nothing_ends(
    opened: Callable[[], socket.socket],
    monkeypatch: pytest.MonkeyPatch,
    answered: bool,
    sent: bytes,
) -> None:
    monkeypatch.setattr(server, "HEAD_SECONDS", 0.3)
    connection = opened()
    if answered:
        connection.sendall(ASKED + b"\r\n")
        assert connection.recv(4096).startswith(b"HTTP/1.1 303")
    connection.sendall(sent or b"\r\n" * answered)
    assert all_of(connection) == b""


@pytest.mark.long
@pytest.mark.parametrize(
    ("begun", "more"),
    [
        (b"GET /", b"a" * 1000),
        (ASKED + b"X: ", b"a" * 1000),
        (ASKED, b"X: a\r\n" * 100),
        (FORM + b"Transfer-Encoding: chunked\r\n\r\n0\r\n", b"X: a\r\n" * 100),
    ],
    ids=["address", "header", "headers", "trailers"],
)
def test_a_head_without_end_is_not_kept(
    opened: Callable[[], socket.socket], begun: bytes, more: bytes
) -> None:
    connection = opened()
    connection.sendall(begun)
    with pytest.raises(OSError):  # noqa: PT011 -- nobody listens, however the system says so.
        connection.sendall(more * (100 * server.HEAD_BYTES // len(more)))


@pytest.mark.long
def test_a_form_that_does_not_arrive_is_not_waited_for(
    opened: Callable[[], socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "FORM_SECONDS", 0.3)
    connection = opened()
    connection.sendall(FORM + b"Content-Length: 1000\r\n\r\na")
    assert b"408" in all_of(connection).partition(b"\r\n")[0]


def begun(connection: socket.socket, page: Browser) -> None:
    """Send all of an upload but its end."""
    page.open("/batches/upload")
    assert page.answer is not None
    mark = forms(page.answer.text)[0]["fields"]["csrf"]
    cookies = "; ".join(f"{name}={value}" for name, value in page.client.cookies.items())
    connection.sendall(
        (
            "POST /batches/upload HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n"
            f"Content-Type: multipart/form-data; boundary=b\r\nCookie: {cookies}\r\n\r\n"
            f'--b\r\nContent-Disposition: form-data; name="csrf"\r\n\r\n{mark}\r\n--b\r\n'
            'Content-Disposition: form-data; name="files"; filename="a.csv"\r\n\r\nx'
        ).encode()
    )


@pytest.mark.long
def test_a_provider_that_does_not_answer_keeps_nobody_from_the_rest(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(oidc, "ANSWER_SECONDS", 600)
    silent = socket.create_server(("127.0.0.1", 0), backlog=100)
    issuer = f"http://127.0.0.1:{silent.getsockname()[1]}"
    settings = DeskSettings(provider=ProviderSettings(issuer, "desk"))
    with desk_of(workspace, settings) as url, silent, ExitStack() as held:
        for _ in range(60):
            connected(url, held).sendall(ASKED.replace(b"/login", b"/login/provider") + b"\r\n")
        page = Browser(url).open("/")
        assert page.status == 200
        page.client.close()


@pytest.mark.long
def test_an_upload_comes_at_a_pace_or_leaves_nothing(
    workspace: Workspace,
    browser: New,
    opened: Callable[[], socket.socket],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(uploading, "PACE_SECONDS", 0.5)
    connection = opened()
    begun(connection, browser())
    connection.settimeout(0.05)
    for _ in range(100):  # Something arrives all the time, and never enough.
        connection.sendall(b"x")
        try:
            answer = connection.recv(4096)
        except TimeoutError:
            continue
        break
    assert b"400" in answer.partition(b"\r\n")[0]
    assert uploads(workspace) == []


@pytest.mark.long
def test_uploads_leave_room_for_others(browser: New, opened: Callable[[], socket.socket]) -> None:
    page, held = browser(), []
    for _ in range(app.UPLOADS_AT_ONCE):
        held.append(opened())
        begun(held[-1], page)
    one_more = opened()
    begun(one_more, page)
    assert b"uploads are under way already" in all_of(one_more)
    assert page.open("/batches").status == 200


@pytest.mark.parametrize("part", ['name="a"', 'name="files"; filename=""'])
def test_parts_with_nothing_in_them_count(workspace: Workspace, browser: New, part: str) -> None:
    page = browser().open("/batches/upload")
    mark = forms(page.answer.text)[0]["fields"]["csrf"]
    head = f'--b\r\nContent-Disposition: form-data; name="csrf"\r\n\r\n{mark}\r\n'
    empty = f"--b\r\nContent-Disposition: form-data; {part}\r\n\r\n\r\n"
    kind = {"Content-Type": "multipart/form-data; boundary=b"}
    content = (head + empty * 1000 + "--b--\r\n").encode()
    told = page.client.post("/batches/upload", content=content, headers=kind)
    assert (told.status_code, "more in it than it can" in told.text) == (413, True)
    assert uploads(workspace) == []
