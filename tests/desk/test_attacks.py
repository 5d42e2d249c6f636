"""Every address of the desk, as somebody would try it who may not: refused, and nothing changes."""

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from connectors.files.incoming.uploads import uploads_folder
from flows.desk.app import ADDRESSES, Address
from flows.stages.workspace import Workspace
from tests.accounts.people import ADA, ANNA, CLEO, OTTO, TESSA, add
from tests.desk.browser import Browser, forms
from tests.governance.conftest import recon as recon  # noqa: PLC0414 -- the fixture.
from tests.governance.runs import found, ids, reconcile

New = Callable[[], Browser]
OPEN = {"/login", "/login/provider", "/login/back"}
"""What somebody who is not logged in may ask."""
GETS = [one for one in ADDRESSES if "GET" in one.methods]
POSTS = [one for one in ADDRESSES if "POST" in one.methods and one.path not in OPEN]


def path_of(address: Address, run: int = 1) -> str:
    """The address with a run, break, batch and file in it."""
    (there,) = ids(found("4711"))
    parts = {"{number:int}": run, "{id}": there, "{name:path}": "report.html", "{name}": "a"}
    path = address.path
    for name, value in parts.items():
        path = path.replace(name, str(value))
    assert "{" not in path, f"say what to try for {path}"
    return path


def name(address: Address) -> str:
    return address.path


@pytest.fixture(scope="module")
def workspace(still: Workspace) -> Workspace:
    """Of what is tried here, nothing may change anything."""
    return still


@pytest.fixture(scope="module")
def place(workspace: Workspace) -> Workspace:
    """A run with a break of tenant 7, and one of tenant 8; accounts of all kinds."""
    reconcile(workspace, found("4711"), scope="tenants 7")
    reconcile(workspace, found("4711", tenant=8), scope="tenants 8")
    add(workspace, ADA, ANNA, CLEO, OTTO, TESSA)
    return workspace


def count(rows: Any) -> list[tuple[object, ...]]:
    """What there is of decisions, signatures and accounts."""
    return list(
        rows(
            "SELECT (SELECT count(*) FROM decision), (SELECT count(*) FROM signature), "
            "(SELECT string_agg(a::text, ' ' ORDER BY name) FROM account a), "
            "(SELECT count(*) FROM event WHERE what <> 'logged in'), (SELECT count(*) FROM job)"
        )
    )


def test_nobody_sees_anything_without_a_login(place: Workspace, browser: New, rows: Any) -> None:
    before, client = count(rows), browser().client
    client.follow_redirects = False
    for address in ADDRESSES:
        for method in address.methods:
            for headers in ({}, {"HX-Request": "true"}):
                told = client.request(method, path_of(address), headers=headers)
                asked = (method, address.path, told.status_code)
                if address.open_to_all:
                    assert address.path in OPEN, asked
                    continue
                if method == "POST" and not headers:
                    assert told.status_code == 401, asked
                    assert "Your login has ended, so nothing was changed." in told.text, asked
                elif headers:
                    assert told.status_code == 401, asked
                    assert told.headers["hx-redirect"].startswith("/login?next="), asked
                else:
                    assert told.status_code == 303, asked
                    assert told.headers["location"].startswith("/login?next="), asked
                assert "4711" not in told.text, asked
    assert count(rows) == before


@pytest.mark.parametrize("who", [None, "anna"])
def test_who_asks_for_the_head_of_a_page_is_answered_as_for_the_page(
    place: Workspace, browser: New, who: str | None
) -> None:
    """Whatever looks whether the desk is there asks so; taken for a form, it tried a login."""
    client = (browser().log_in(who) if who else browser()).client
    client.follow_redirects = False
    for path in [*map(path_of, POSTS), *map(path_of, GETS), "/nothing"]:
        page, head = client.get(path), client.head(path)
        told = [(one.status_code, one.headers.get("location")) for one in (page, head)]
        assert told[0] == told[1], path


@pytest.mark.long
@pytest.mark.parametrize("address", POSTS, ids=name)
def test_a_form_without_the_mark_changes_nothing(
    place: Workspace, browser: New, rows: Any, address: Address
) -> None:
    anna = browser().log_in("otto" if address.files else "anna")
    before = count(rows)
    for headers in ({}, {"X-CSRF": "0" * 64}, {"Origin": "http://evil.example.com"}):
        for data in ({}, {"csrf": "0" * 64}, {"csrf": ""}):
            for files in (None, [("files", ("a.csv", b"x"))]) if address.files else (None,):
                told = anna.client.post(path_of(address), data=data, files=files, headers=headers)
                assert told.status_code == 403, (headers, data)
    assert count(rows) == before


@pytest.mark.long
def test_the_address_of_a_form_leads_to_the_page_that_has_it(
    place: Workspace, browser: New
) -> None:
    """A browser has it after a refusal, and loads it again once a login has ended."""
    page, pages = browser().log_in("anna"), {one.path for one in GETS}
    page.client.follow_redirects = False
    for address in POSTS:
        if address.path not in pages:
            answer = page.open(path_of(address)).answer
            around = address.path.rpartition("/")[0] or "/"
            assert answer is not None
            assert (answer.status_code, around in pages) == (303, True), address.path
            assert answer.headers["location"] == path_of(Address(around, address.page))
    answer = page.client.put("/logout")
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


DECISION = {"what": "accept", "reason": "x", "until": "2026-12-31", "step": "done"}
FILLED = {
    "/runs/{number:int}/decide": {"break": ids(found("4711")), **DECISION},
    "/runs/{number:int}/sign": {"role": "prepared"},
    "/jobs": {"kind": "push"},
    "/jobs/{number:int}": {},
    "/batches/{number:int}/undo": {"reason": "x", "seen": "0"},
    "/people": {"what": "add", "name": "eve", "full_name": "Eve", "role": ["administrator"]},
}


@pytest.mark.long(but=("/runs/{number:int}/sign", "/jobs"))
@pytest.mark.parametrize("path", FILLED)
def test_a_viewer_changes_nothing_with_a_form_that_is_filled_in(
    place: Workspace, browser: New, rows: Any, path: str
) -> None:
    cleo = browser().log_in("cleo")
    mark = str(forms(cleo.open("/trail").answer.text)[0]["fields"]["csrf"])
    (address,) = (one for one in POSTS if one.path == path)
    report = rows("SELECT report_hash FROM reconciliation WHERE id = 1")[0][0]
    before = count(rows)
    filled = {"csrf": mark, "report_hash": report} | FILLED[path]
    told = cleo.client.post(path_of(address), data=filled)
    assert told.status_code in (400, 403, 404, 409), told.text
    assert count(rows) == before


@pytest.mark.long
@pytest.mark.parametrize("address", [one for one in GETS if "{number" in one.path], ids=name)
def test_a_run_of_another_tenant_is_answered_like_one_that_is_not_there(
    place: Workspace, browser: New, address: Address
) -> None:
    tessa = browser().log_in("tessa")
    other = tessa.open(path_of(address, 2))
    assert other.status == 404, address.path
    nothing = browser().log_in("tessa").open(path_of(address, 999))
    assert nothing.status == 404
    assert other.text.replace(" 2 ", " N ") == nothing.text.replace(" 999 ", " N ")


FORGED = ["", "x", "' OR '1'='1", "0" * 64, "../../etc/passwd", "a" * 4000, "%00", '"\\000"']


@pytest.mark.long
def test_a_forged_cookie_is_nobody(place: Workspace, desk: str) -> None:
    forged = Browser(desk)
    for token in FORGED:
        forged.client.headers["Cookie"] = f"recon_login={token}"
        forged.open("/")
        assert "Password" in forged.text, token
        told = forged.client.post("/people", data={"what": "add"})
        assert told.status_code == 401, token
    forged.client.close()


UPLOADS = [one for one in POSTS if one.files]


def uploads(place: Workspace) -> list[str]:
    folder = uploads_folder(place.settings)
    return [str(one) for one in folder.iterdir()] if folder.is_dir() else []


@pytest.mark.long
@pytest.mark.parametrize("address", UPLOADS, ids=name)
@pytest.mark.parametrize("person", [None, "anna", "cleo", "ada", "tessa"])
def test_nothing_of_a_file_is_read_from_somebody_who_may_not_send_it(
    place: Workspace, desk: str, address: Address, person: str | None
) -> None:
    """The answer comes while the body is still on its way."""
    page = Browser(desk)
    page.client.follow_redirects = False
    if person:
        page.log_in(person)
    read = 0

    def endless() -> Iterator[bytes]:
        nonlocal read
        yield b'--x\r\nContent-Disposition: form-data; name="csrf"\r\n\r\n'
        while read < 200:
            read += 1
            yield b"0" * 1_000_000

    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    try:
        told = page.client.post(path_of(address), content=endless(), headers=headers)
        assert told.status_code == (403 if person else 401), told.text
    except httpx.TransportError:
        pass  # Nobody listens any more, which is an answer as well.
    assert read < 200
    assert uploads(place) == []
    page.client.close()


@pytest.mark.long(but=("files",))
@pytest.mark.parametrize("first", ["files", "tenant", "nothing"])
def test_the_mark_comes_before_anything_else_of_a_form_with_files(
    place: Workspace, browser: New, rows: Any, first: str
) -> None:
    otto = browser().log_in("otto")
    mark = str(forms(otto.open("/batches/upload").answer.text)[0]["fields"]["csrf"])
    parts: dict[str, Any] = {
        "files": ("files", ("a.csv", b"x")), "tenant": ("tenant", (None, "7"))
    }  # fmt: skip
    before = count(rows)
    late = [parts[first]] if first in parts else []
    sent = [*late, *([("csrf", (None, mark))] if late else []), parts["files"]]
    told = otto.client.post("/batches/upload", files=sent)
    assert told.status_code == 403
    assert (count(rows), uploads(place)) == (before, [])


@pytest.mark.long
@pytest.mark.parametrize("cut", [0, 40, 200, 330])
def test_a_form_with_files_that_is_cut_short_leaves_nothing(
    place: Workspace, browser: New, cut: int
) -> None:
    otto = browser().log_in("otto")
    mark = str(forms(otto.open("/batches/upload").answer.text)[0]["fields"]["csrf"])
    whole = (
        f'--x\r\nContent-Disposition: form-data; name="csrf"\r\n\r\n{mark}\r\n--x\r\n'
        'Content-Disposition: form-data; name="files"; filename="a.csv"\r\n\r\n'
        f"{'x' * 500}\r\n--x--\r\n"
    )
    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    told = otto.client.post("/batches/upload", content=whole[:cut], headers=headers)
    assert told.status_code in (400, 403)
    assert uploads(place) == []
