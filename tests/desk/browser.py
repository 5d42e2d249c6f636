"""A browser without a screen: follows links, fills in forms, keeps cookies, over a real socket."""

import html
import re
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from typing import Any

import httpx

from connectors.desk_settings import DeskSettings
from connectors.oidc import Provider
from flows.desk.app import NOTHING_SET, Desk
from flows.desk.server import serving
from flows.stages.jobs.work import do_job
from flows.stages.workspace import Workspace
from tests.accounts.people import PASSWORD

NO_AUTHORITIES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Each client would read those of the machine, which takes longer than all that a test asks."""


class Browser:
    """One browser; a page is kept as `text` until the next one."""

    def __init__(self, url: str) -> None:
        self.client = httpx.Client(
            base_url=url, follow_redirects=True, timeout=60, verify=NO_AUTHORITIES
        )
        self.answer: httpx.Response | None = None

    @property
    def text(self) -> str:
        """The words of the page, as they are read on a screen."""
        assert self.answer is not None
        body = re.sub(r"(?s)<(script|style|footer)\b.*?</\1>", "", self.answer.text)
        return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", body)).split())

    @property
    def status(self) -> int:
        assert self.answer is not None
        return self.answer.status_code

    def open(self, path: str, **asked: Any) -> "Browser":
        self.answer = self.client.get(path, params=asked or None)
        return self

    def send(self, action: str, **typed: Any) -> "Browser":
        """Fill in the form of this page that goes to `action`, and send it."""
        assert self.answer is not None
        form = next(one for one in forms(self.answer.text) if one["action"] == action)
        files = {name: value for name, value in typed.items() if isinstance(value, tuple)}
        fields: dict[str, Any] = form["fields"] | {
            name: value for name, value in typed.items() if name not in files
        }
        self.answer = self.client.post(action, data=fields, files=files or None)
        return self

    def log_in(self, name: str, password: str = PASSWORD) -> "Browser":
        return self.open("/login").send("/login", name=name, password=password)


TEXTS = (None, "text", "search", "number", "date")
"""Types of a field that text is typed into."""


class _Forms(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[dict[str, Any]] = []
        self.select: str | None = None
        self.area: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "form":
            method = given.get("method") or "get"
            form = {"action": given.get("action"), "method": method.lower(), "fields": {}}
            self.found.append(form | {"choices": {}, "typed": set()})
        if not self.found:
            return
        fields, name = self.found[-1]["fields"], given.get("name")
        self._note(tag, name, given)
        if tag == "input" and name:
            if given.get("type") in ("checkbox", "radio") and "checked" not in given:
                return
            fields[name] = given.get("value") or ""
        elif tag == "select":
            self.select = name
        elif tag == "option" and self.select and "selected" in given:
            fields[self.select] = given.get("value") or ""
        elif tag == "textarea" and name:
            self.area, fields[name] = name, ""

    def _note(self, tag: str, name: str | None, given: dict[str, str | None]) -> None:
        """What a form can send, and which fields of it somebody types text into."""
        choices, typed = self.found[-1]["choices"], self.found[-1]["typed"]
        if tag in ("input", "button", "select", "textarea") and name:
            choices.setdefault(name, [])
        if tag in ("input", "button") and name:
            choices[name].append(given.get("value") or "")
        elif tag == "option" and self.select:
            choices[self.select].append(given.get("value") or "")
        if name and (tag == "textarea" or (tag == "input" and given.get("type") in TEXTS)):
            typed.add(name)

    def handle_data(self, data: str) -> None:
        if self.area:
            self.found[-1]["fields"][self.area] += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "select":
            self.select = None
        elif tag == "textarea":
            self.area = None


def forms(page: str) -> list[dict[str, Any]]:
    """The forms of a page: where each goes and how, what is filled in, and what else can be."""
    parser = _Forms()
    parser.feed(page)
    return parser.found


Start = Callable[[Workspace, int], None]


def done_at_once(workspace: Workspace, number: int) -> None:
    """What is ordered is done before the next page, and not by another process."""
    do_job(workspace.as_login(None), number)


@contextmanager
def desk_of(
    workspace: Workspace, settings: DeskSettings = NOTHING_SET, start: Start = done_at_once
) -> Iterator[str]:
    """The address of a desk over a workspace."""
    provider = Provider(settings.provider) if settings.provider else None
    desk = Desk(workspace, settings, provider, start=start)
    with serving(desk, "127.0.0.1", 0) as url:
        yield url
