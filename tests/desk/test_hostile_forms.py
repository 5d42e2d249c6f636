"""Files and forms of whatever content: text stays text, and too much of it is not kept."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import httpx
import pytest

from flows.stages.workspace import Workspace
from tests.desk.browser import NO_AUTHORITIES, Browser, desk_of, forms
from tests.desk.test_attacks import uploads
from tests.governance.conftest import recon as recon  # noqa: PLC0414 -- the fixture.
from tests.stages.payments import line, write

New = Callable[[], Browser]
HOSTILE = ("<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "{{ 7*7 }}", "=1+1")


@pytest.mark.long
def test_delivered_text_is_only_ever_text(
    workspace: Workspace, browser: New, recon: Callable[..., Any], tmp_path: Any
) -> None:
    rows = [line(number, amount=text.replace('"', '""')) for number, text in enumerate(HOSTILE)]
    recon("import", write(tmp_path / "a<b>.csv", *rows))
    recon("reconcile", "--as-of", "2026-07-01")
    page = browser()
    seen = [page.open(path).answer.text for path in ("/", "/batches", "/runs/1/breaks?state=open")]
    links = {
        part.partition('"')[0] for text in seen for part in text.split('href="') if "/" in part[:1]
    }
    assert len(links) > 8
    for link in sorted(links):
        text = page.open(link.replace("&amp;", "&")).answer.text
        if "text/html" in page.answer.headers["content-type"] and "/files/" not in link:
            seen.append(text)
    assert not any(bad in text for text in seen for bad in ("<script>alert", "<img src=x", "a<b>"))
    assert any("&lt;script&gt;alert" in text for text in seen)
    assert not any(">49<" in text for text in seen)


@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "multipart/form-data"])
def test_more_than_a_form_is_not_read_from_anybody(desk: str, kind: str) -> None:
    """Nobody has to be logged in to send; what is sent is dropped before it fills anything."""

    def long() -> Iterator[bytes]:
        if "multipart" in kind:
            yield b'--x\r\nContent-Disposition: form-data; name="a"; filename="b"\r\n\r\n'
        yield from [b"&a=" + b"x" * 60_000] * 50

    headers = {"Content-Type": f"{kind}; boundary=x"}
    with httpx.Client(base_url=desk, verify=NO_AUTHORITIES) as client:
        told = client.post("/login", content=long(), headers=headers)
    assert told.status_code in (400, 413)
    assert "at most" in told.text or "Too many files" in told.text


def test_more_than_a_delivery_can_have_is_not_kept(workspace: Workspace, tmp_path: Any) -> None:
    limits = replace(workspace.settings.limits, file_bytes=1_000)
    small = replace(workspace, settings=replace(workspace.settings, limits=limits))
    with desk_of(small) as url:
        page = Browser(url)
        mark = str(forms(page.open("/batches/upload").answer.text)[0]["fields"]["csrf"])
        fields = [("csrf", (None, mark)), ("by", (None, "Otto"))]
        for size in (2_000, 10_000_000):
            told = page.client.post(
                "/batches/upload", files=[*fields, ("files", ("a.csv", b"x" * size))]
            )
            assert told.status_code in (400, 413)
            assert "larger than 1,000 bytes" in told.text or "at once" in told.text
        page.client.close()
    assert uploads(small) == []


def test_a_name_that_no_file_can_have_is_refused_before_anything_is_ordered(
    workspace: Workspace, browser: New, rows: Any
) -> None:
    """No browser sends it; what it was kept as named places of the machine, in every later try."""
    page = browser().open("/batches/upload")
    mark = str(forms(page.answer.text)[-1]["fields"]["csrf"])
    whole = (
        f'--x\r\nContent-Disposition: form-data; name="csrf"\r\n\r\n{mark}\r\n--x\r\n'
        'Content-Disposition: form-data; name="by"\r\n\r\nOtto\r\n--x\r\n'
        'Content-Disposition: form-data; name="files"; filename="a\0b.csv"\r\n\r\nx\r\n--x--\r\n'
    )
    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    page.answer = page.client.post("/batches/upload", content=whole, headers=headers)
    assert (page.status, "a\\x00b.csv: this cannot be the name of a file" in page.text) == (
        400,
        True,
    )
    assert uploads(workspace) == []
    assert rows("SELECT count(*) FROM job") == [(0,)]
