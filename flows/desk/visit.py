"""One request to the desk: who asks, by which login, and the workspace they act in."""

import hashlib
import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, Protocol
from urllib.parse import urlsplit

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from connectors.addresses import DEFAULT_PORTS
from connectors.desk_settings import ProxySettings
from connectors.errors import LoginRefused, ReconError
from connectors.files.incoming.uploads import Upload
from connectors.postgres.accounts import LONGEST_LOGIN, Person, acting, has_accounts, vouch
from flows.desk.templates import page
from flows.stages.workspace import Workspace
from schemas.accounts import AccountRole, How
from schemas.show_as import AS_EVER, ShowAs

LOGIN_COOKIE, VISIT_COOKIE = "recon_login", "recon_visit"
"""The token of a login; what stands for a browser where nobody is logged in."""


class Page(Protocol):
    def __call__(self, visit: "Visit") -> Response: ...


@dataclass(frozen=True, slots=True)
class Visit:
    """One request; `form` is empty where nothing was sent."""

    request: Request
    place: Workspace
    """Acts by the login of whoever asks."""
    person: Person | None
    accounts: bool
    """Whether there are any: without, everybody is who they say."""
    key: str
    """What only this browser has."""
    new: bool
    """Whether it got the key just now."""
    form: FormData
    opened: str | None = None
    """The token of a login that this request began, for the cookie."""
    message: str = ""
    """Why what was asked for or sent is refused, as its page says."""
    status: HTTPStatus = HTTPStatus.OK
    upload: Upload | ReconError | None = None
    """Files that came with the form, or why they are not kept."""
    desk: Any = None
    """The desk that is visited (`flows.desk.app.Desk`)."""

    @property
    def is_bound(self) -> bool:
        """Whether whoever asks acts for some tenants alone."""
        return bool(self.person and self.person.tenants)

    @property
    def has_to_log_in(self) -> bool:
        """Whether nobody is known to ask, where there are accounts."""
        return self.accounts and self.person is None

    @property
    def csrf(self) -> str:
        """What a form of ours carries, and a form of another site cannot."""
        return hmac.new(self.key.encode(), b"a form of the desk", hashlib.sha256).hexdigest()

    @property
    def is_marked(self) -> bool:
        """Whether what was sent carries it."""
        return self.is_mark(self.typed("csrf") or self.request.headers.get("X-CSRF", ""))

    def is_mark(self, sent: str) -> bool:
        return hmac.compare_digest(sent.encode(), self.csrf.encode())

    @property
    def is_from_here(self) -> bool:
        """Whether the browser says that a page of this desk sent it."""
        return self.is_ours(self.request.headers.get("origin", ""))

    def is_ours(self, address: str) -> bool:
        """Whether an address that the browser names is of this desk.

        A proxy may ask by another one than people open the desk by.
        """
        host = self.request.headers.get("host")
        return self._is_public(address) or (bool(host) and _netloc(address) == host)

    def _is_public(self, address: str) -> bool:
        """Whether it is of the one that people open the desk by, as that is set."""
        return bool(self.desk.settings.url) and _origin(address) == _origin(self.desk.settings.url)

    @property
    def show(self) -> ShowAs:
        """How dates and numbers are written for whoever asks, and by them."""
        return self.person.show_as if self.person else AS_EVER

    @property
    def now(self) -> datetime:
        """When the page is made: on paper it says so."""
        return datetime.now(UTC)

    @property
    def path(self) -> Mapping[str, Any]:
        """The parts of the address that a route names."""
        return self.request.path_params

    @property
    def asked(self) -> Mapping[str, str]:
        """What stands behind the question mark."""
        return self.request.query_params

    def may(self, *roles: AccountRole) -> bool:
        """Whether a page offers something: where there are no accounts, to everybody."""
        return self.person.has(*roles) if self.person else not self.accounts

    def typed(self, name: str) -> str:
        """A field of the form as text; empty where it was not sent."""
        value = self.form.get(name, "")
        return value.strip() if isinstance(value, str) else ""

    @property
    def by(self) -> str | None:
        """The name somebody gave; beside a login it is none."""
        return None if self.person else self.typed("by") or None

    def as_login(self, token: str) -> "Visit":
        """The same visit as whoever this login is of."""
        place = self.place.as_login(token)
        with place.database.connect() as connection:
            person = acting(connection)
        return replace(self, place=place, person=person, key=token, new=False)

    @property
    def from_htmx(self) -> bool:
        """Whether a part of a page is asked for, not a whole one."""
        return self.request.headers.get("HX-Request") == "true"

    @property
    def _by_tls(self) -> bool:
        """Whether the browser came by TLS, by the word of the proxy or of the settings."""
        public = urlsplit(self.desk.settings.url or "")
        asked = self.request.url
        known = public.hostname == asked.hostname or self._is_public(
            self.request.headers.get("origin", "")
        )
        return (known and public.scheme == "https") or asked.scheme == "https"

    def refusing(self, message: str, status: HTTPStatus = HTTPStatus.BAD_REQUEST) -> "Visit":
        """The same visit, of which every page says so."""
        return replace(self, message=message, status=status)

    def page(self, template: str, **values: Any) -> Response:
        """A template filled in; every one knows who is visiting."""
        response = HTMLResponse(page(template, self.show).render(visit=self, **values), self.status)
        if self.new:
            self.keep(response, VISIT_COOKIE, self.key)
        return response

    def nothing_here(self, message: str) -> Response:
        """The page in place of what is not there."""
        refused = self.refusing(message, HTTPStatus.NOT_FOUND)
        return refused.page("refused.html.jinja", title="Nothing here")

    def keep_login(self, response: Response) -> None:
        """Give the browser the login that this request began."""
        if self.opened:
            self.keep(response, LOGIN_COOKIE, self.opened, LONGEST_LOGIN)

    def go(self, address: str) -> Response:
        return RedirectResponse(address, HTTPStatus.SEE_OTHER)

    def keep(self, response: Response, name: str, value: str, seconds: int | None = None) -> None:
        """Give the browser a cookie that no script and no other site reads."""
        response.set_cookie(
            name, value, max_age=seconds, httponly=True, samesite="lax", secure=self._by_tls
        )


def _netloc(address: str) -> str:
    try:
        return urlsplit(address).netloc
    except ValueError:
        return ""


def _origin(address: str) -> tuple[str, str | None, int | None] | None:
    """What is the same of two addresses of one origin; None: it is none."""
    try:
        parts = urlsplit(address)
        return parts.scheme, parts.hostname, parts.port or DEFAULT_PORTS.get(parts.scheme)
    except ValueError:
        return None


def known_by_proxy(visit: Visit, proxy: ProxySettings) -> Visit:
    """The same visit as whoever the proxy says it is; raises LoginRefused where nobody is.

    Whoever cannot show that they are the proxy is not listened to.
    """
    headers = visit.request.headers
    names = headers.getlist(proxy.header)
    given = headers.get("X-Recon-Proxy", "")
    if not any(names) or not hmac.compare_digest(given.encode(), proxy.secret.encode()):
        return visit
    if len(names) > 1:  # One of them may be the visitor's own.
        raise LoginRefused(
            f"The proxy sends {proxy.header} more than once, so nobody can tell who you are. "
            "It has to replace what a browser sends: ask who runs it."
        )
    (known_as,) = names
    if visit.person and visit.person.subject == f"{How.PROXY} {known_as}":
        return visit
    with visit.place.database.connect() as connection:
        token = vouch(connection, known_as, How.PROXY)
    if token is None:
        raise LoginRefused(
            f"No account is known as {known_as!r}, or it is disabled. An administrator adds one "
            f'with the subject "{How.PROXY} {known_as}".'
        )
    return replace(visit.as_login(token), opened=token)


def visit_of(request: Request, workspace: Workspace, form: FormData, desk: Any) -> Visit:
    """Who asks, as the database knows them by the cookie."""
    token = request.cookies.get(LOGIN_COOKIE)
    if token and not token.isprintable():  # No text of a database, so nobody's token.
        token = None
    place = workspace.as_login(token)
    with place.database.connect() as connection:
        person, accounts = acting(connection), has_accounts(connection)
    key = token if person and token else request.cookies.get(VISIT_COOKIE)
    return Visit(
        request, place, person, accounts, key or secrets.token_urlsafe(32), not key, form, desk=desk
    )
