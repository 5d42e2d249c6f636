"""Logging in and out."""

from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import urlsplit

from starlette.responses import Response

from connectors.desk_settings import DeskSettings
from connectors.errors import LoginRefused
from connectors.oidc import Provider
from connectors.postgres.accounts import LONGEST_LOGIN, log_in, log_out, vouch
from connectors.postgres.push.sends import SendDecision
from flows.desk.visit import LOGIN_COOKIE, VISIT_COOKIE, Visit
from schemas.accounts import How

ENDED = (
    "Your login has ended, so nothing was changed. Log in again: what you typed is kept, and sent "
    "when you say so."
)
ENDED_EMPTY = "Your login has ended, so nothing was changed. Log in, and do it again."
SECRETS = ("password", "old", "new", "again", "csrf")
"""Fields whose values appear on no page."""
UNTYPED = (
    *("digest", "through", "step", "seen", "report_hash", "after"),
    *(f"count_{decision}" for decision in SendDecision),
)
"""Fields that record what a page showed: they are sent again, but mean nothing to people."""
MOST_FIELDS, MOST_SIGNS = 500, 200_000
"""The most fields and characters of a kept form, which a login page has to carry."""
PREFIX = "unsent."


@dataclass(frozen=True, slots=True)
class UnsentForm:
    """A form that was filled in but whose login ended before it was sent."""

    action: str
    fields: Sequence[tuple[str, str]]

    @property
    def carried(self) -> list[tuple[str, str]]:
        """The form as fields of the login page."""
        named = [(PREFIX + name, text) for name, text in self.fields]
        return [("unsent", self.action), *named]

    @property
    def read(self) -> list[tuple[str, str]]:
        """Its contents, each field once, for people to read."""
        texts: dict[str, list[str]] = {}
        for name, text in self.fields:
            if text and name not in UNTYPED:
                texts.setdefault(name, []).append(text)
        return [(name, ", ".join(of)) for name, of in texts.items()]


def ended(visit: Visit) -> Response:
    """Answer a form whose login has ended: ask for a login, and keep what was typed."""
    unsent = _unsent(visit)
    message = ENDED if unsent else ENDED_EMPTY
    return _ask(visit, message, there=_page_before(visit), unsent=unsent)


def offered(visit: Visit) -> Response | None:
    """Show a form of an earlier login after a new login; None if none of it is kept.

    A proxy logs the visitor in with the form itself, and a provider beside the page that has it.
    """
    unsent = _unsent(visit) if visit.person else None
    return _offer(visit, unsent, _page_before(visit)) if unsent else None


def _unsent(visit: Visit) -> UnsentForm | None:
    """The form that was sent, if the browser says that a page of ours sent it.

    Otherwise another site could fill in a form for somebody who has just logged in.
    """
    fields = _texts(visit)
    if not visit.is_from_here or not 0 < len(fields) <= MOST_FIELDS:
        return None
    if sum(len(name) + len(text) for name, text in fields) > MOST_SIGNS:
        return None
    return UnsentForm(visit.request.url.path, fields)


def _texts(visit: Visit, prefix: str = "") -> list[tuple[str, str]]:
    """The fields of a form with this prefix, without those that no page shows."""
    return [
        (name.removeprefix(prefix), text)
        for name, text in visit.form.multi_items()
        if name.startswith(prefix)
        and name.removeprefix(prefix) not in SECRETS
        and isinstance(text, str)
    ]


def _page_before(visit: Visit) -> str:
    """The page of this desk that had the form; else the home page."""
    referer = visit.request.headers.get("referer", "")
    if not visit.is_ours(referer):
        return "/"
    there = urlsplit(referer)
    return _ours(f"{there.path}?{there.query}" if there.query else there.path)


def _ask(
    visit: Visit, why: str, *, name: str = "", there: str = "/", unsent: UnsentForm | None = None
) -> Response:
    """The login page, with why a login is needed."""
    asked = visit.refusing(why, HTTPStatus.UNAUTHORIZED) if why else visit
    return asked.page("login.html.jinja", name=name, there=there, unsent=unsent)


def login(visit: Visit) -> Response:
    """Ask for name and password; after a login, go on to the wanted page."""
    there = visit.typed("next") or visit.asked.get("next", "/")
    if not visit.sent:
        if not visit.has_to_log_in:
            return visit.go(_ours(there))
        return _ask(visit, "", there=there)
    name = visit.typed("name")
    action = visit.typed("unsent")
    unsent = UnsentForm(_ours(action), _texts(visit, PREFIX)) if action else None
    try:
        with visit.place.database.connect() as connection:
            token = log_in(connection, name, str(visit.form.get("password", "")))
    except LoginRefused as error:
        return _ask(visit, str(error), name=name, there=there, unsent=unsent)
    response = visit.go(_ours(there))
    if unsent:
        response = _offer(visit.as_login(token), unsent, _ours(there))
    visit.keep(response, LOGIN_COOKIE, token, LONGEST_LOGIN)
    return response


def _offer(visit: Visit, unsent: UnsentForm, there: str) -> Response:
    """Show a form that is not sent yet after a login, to be sent or dropped."""
    return visit.page("unsent.html.jinja", unsent=unsent, there=there)


def to_provider(visit: Visit) -> Response:
    """Send the visitor to the provider, which identifies them."""
    there = _ours(visit.asked.get("next", "/"))
    provider: Provider | None = visit.desk.provider
    if provider is None:
        return visit.go("/login")
    response = visit.go(provider.begin(visit.key, there, _back(visit)))
    if visit.new:
        visit.keep(response, VISIT_COOKIE, visit.key)
    return response


def from_provider(visit: Visit) -> Response:
    """Accept the provider's word for who has come back."""
    provider: Provider | None = visit.desk.provider
    if provider is None:
        return visit.go("/login")
    asked = visit.asked
    try:
        state, code = asked.get("state", ""), asked.get("code", "")
        identity = provider.end(visit.key, state, code, _back(visit))
        with visit.place.database.connect() as connection:
            token = vouch(connection, identity.known_as, How.OIDC)
        if token is None:
            raise LoginRefused(
                "The provider knows you, and no account here does, or it is disabled. An "
                f'administrator adds one with the subject "{How.OIDC} {identity.known_as}".'
            )
    except LoginRefused as error:
        return _ask(visit, str(error))
    response = visit.go(identity.there)
    visit.keep(response, LOGIN_COOKIE, token, LONGEST_LOGIN)
    return response


def _back(visit: Visit) -> str:
    settings: DeskSettings = visit.desk.settings
    return f"{settings.url or str(visit.request.base_url).rstrip('/')}/login/back"


def logout(visit: Visit) -> Response:
    with visit.place.database.connect() as connection:
        log_out(connection)
    response = visit.go("/")
    response.delete_cookie(LOGIN_COOKIE)
    return response


def _ours(address: str) -> str:
    """An address on this desk; any other gives the home page."""
    ours = address.startswith("/") and not address.startswith(("//", "/\\"))
    return address if ours and address.isprintable() else "/"
