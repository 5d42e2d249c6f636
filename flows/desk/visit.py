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
from connectors.desk_settings import PROOF, ProxySettings
from connectors.errors import LoginRefused, ReconError
from connectors.files.incoming.uploads import Upload
from connectors.postgres.accounts import LONGEST_LOGIN, Person, acting, has_accounts, vouch
from flows.desk.templates import page
from flows.stages.workspace import Workspace
from schemas.accounts import MAY_DECIDE, AccountRole, How
from schemas.life import Choice
from schemas.show_as import AS_EVER, ShowAs

LOGIN_COOKIE, VISIT_COOKIE = "recon_login", "recon_visit"
"""Cookies: the token of a login, and the browser's own key where nobody is logged in."""


class Page(Protocol):
    def __call__(self, visit: "Visit") -> Response: ...


@dataclass(frozen=True, slots=True)
class Visit:
    """A request; `form` is empty if nothing was sent."""

    request: Request
    place: Workspace
    """The workspace, which acts by the visitor's login."""
    person: Person | None
    accounts: bool
    """Whether there are accounts; without any, visitors are who they say."""
    key: str
    """A key that only this browser has."""
    new: bool
    """Whether it was given the key just now."""
    form: FormData
    opened: str | None = None
    """The token of a login that this request began, for the cookie."""
    message: str = ""
    """Why the request was refused, for its page to show."""
    status: HTTPStatus = HTTPStatus.OK
    upload: Upload | ReconError | None = None
    """Files that came with the form, or why they are not kept."""
    desk: Any = None
    """The desk that is visited (`flows.desk.app.Desk`)."""

    @property
    def is_bound(self) -> bool:
        """Whether the visitor acts for some tenants only."""
        return bool(self.person and self.person.tenants)

    @property
    def has_to_log_in(self) -> bool:
        """Whether there are accounts and the visitor is unknown."""
        return self.accounts and self.person is None

    @property
    def csrf(self) -> str:
        """The mark that our own forms carry and another site's cannot."""
        return hmac.new(self.key.encode(), b"a form of the desk", hashlib.sha256).hexdigest()

    @property
    def is_marked(self) -> bool:
        """Whether the request carries the mark."""
        return self.is_mark(self.typed("csrf") or self.request.headers.get("X-CSRF", ""))

    def is_mark(self, sent: str) -> bool:
        return hmac.compare_digest(sent.encode(), self.csrf.encode())

    @property
    def is_from_here(self) -> bool:
        """Whether the browser says that a page of this desk sent it."""
        return self.is_ours(self.request.headers.get("origin", ""))

    def is_ours(self, address: str) -> bool:
        """Whether an address given by the browser belongs to this desk.

        A proxy may forward to another address than people open the desk by.
        """
        host = self.request.headers.get("host")
        return self._is_public(address) or (bool(host) and _netloc(address) == host)

    def _is_public(self, address: str) -> bool:
        """Whether an address is the public one in the settings."""
        return bool(self.desk.settings.url) and _origin(address) == _origin(self.desk.settings.url)

    @property
    def show(self) -> ShowAs:
        """How dates and numbers are written for this visitor, and by them."""
        return self.person.show_as if self.person else AS_EVER

    @property
    def now(self) -> datetime:
        """The time the page is made, which printed pages show."""
        return datetime.now(UTC)

    @property
    def path(self) -> Mapping[str, Any]:
        """The parts of the address that a route names."""
        return self.request.path_params

    @property
    def asked(self) -> Mapping[str, str]:
        """The query parameters."""
        return self.request.query_params

    @property
    def sent(self) -> bool:
        """Whether a form was sent; any other request asks for a page, HEAD as well as GET."""
        return self.request.method == "POST"

    def may(self, *roles: AccountRole) -> bool:
        """Whether pages offer something to this visitor; without accounts, to everybody."""
        return self.person.has(*roles) if self.person else not self.accounts

    def decisions(self) -> list[Choice]:
        """The decisions about breaks that pages offer to this visitor."""
        return [one for one in Choice if self.may(*MAY_DECIDE[one])]

    def typed(self, name: str) -> str:
        """A field of the form as text; empty if it was not sent."""
        value = self.form.get(name, "")
        return value.strip() if isinstance(value, str) else ""

    @property
    def by(self) -> str | None:
        """The name that a visitor without a login gave; None beside a login."""
        return None if self.person else self.typed("by") or None

    def as_login(self, token: str) -> "Visit":
        """The same visit with the given login."""
        place = self.place.as_login(token)
        with place.database.connect() as connection:
            person = acting(connection)
        return replace(self, place=place, person=person, key=token, new=False)

    @property
    def from_htmx(self) -> bool:
        """Whether only part of a page is asked for."""
        return self.request.headers.get("HX-Request") == "true"

    @property
    def _by_tls(self) -> bool:
        """Whether the browser used TLS, according to the proxy or the settings."""
        public = urlsplit(self.desk.settings.url or "")
        asked = self.request.url
        known = public.hostname == asked.hostname or self._is_public(
            self.request.headers.get("origin", "")
        )
        return (known and public.scheme == "https") or asked.scheme == "https"

    def refusing(self, message: str, status: HTTPStatus = HTTPStatus.BAD_REQUEST) -> "Visit":
        """The same visit with a refusal that every page shows."""
        return replace(self, message=message, status=status)

    def page(self, template: str, **values: Any) -> Response:
        """A template filled in; every template knows the visit."""
        response = HTMLResponse(page(template, self.show).render(visit=self, **values), self.status)
        if self.new:
            self.keep(response, VISIT_COOKIE, self.key)
        return response

    def nothing_here(self, message: str) -> Response:
        """The page for something that does not exist."""
        refused = self.refusing(message, HTTPStatus.NOT_FOUND)
        return refused.page("refused.html.jinja", title="Nothing here")

    def keep_login(self, response: Response) -> None:
        """Give the browser the login that this request began."""
        if self.opened:
            self.keep(response, LOGIN_COOKIE, self.opened, LONGEST_LOGIN)

    def go(self, address: str) -> Response:
        return RedirectResponse(address, HTTPStatus.SEE_OTHER)

    def keep(self, response: Response, name: str, value: str, seconds: int | None = None) -> None:
        """Give the browser a cookie that no script and no other site can read."""
        response.set_cookie(
            name, value, max_age=seconds, httponly=True, samesite="lax", secure=self._by_tls
        )


def _netloc(address: str) -> str:
    try:
        return urlsplit(address).netloc
    except ValueError:
        return ""


def _origin(address: str) -> tuple[str, str | None, int | None] | None:
    """The origin of an address, for comparison; None if it has none."""
    try:
        parts = urlsplit(address)
        return parts.scheme, parts.hostname, parts.port or DEFAULT_PORTS.get(parts.scheme)
    except ValueError:
        return None


def known_by_proxy(visit: Visit, proxy: ProxySettings) -> Visit:
    """The visit as the person the proxy names; raises LoginRefused if nobody has that name.

    A request that does not prove to come from the proxy gets no login.
    """
    headers = visit.request.headers
    names = headers.getlist(proxy.header)
    given = headers.get(PROOF, "")
    if not any(names) or not hmac.compare_digest(given.encode(), proxy.secret.encode()):
        return visit
    if len(names) > 1:  # One of them may come from the visitor.
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
    """The visit, with the person whom the database knows by the cookie."""
    token = request.cookies.get(LOGIN_COOKIE)
    if token and not token.isprintable():  # Not a text the database can hold, so nobody's token.
        token = None
    place = workspace.as_login(token)
    with place.database.connect() as connection:
        person, accounts = acting(connection), has_accounts(connection)
    key = token if person and token else request.cookies.get(VISIT_COOKIE)
    return Visit(
        request, place, person, accounts, key or secrets.token_urlsafe(32), not key, form, desk=desk
    )
