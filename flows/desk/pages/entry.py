"""Logging in and out."""

from http import HTTPStatus

from starlette.responses import Response

from connectors.desk_settings import DeskSettings
from connectors.errors import LoginRefused
from connectors.oidc import Provider
from connectors.postgres.accounts import LONGEST_LOGIN, log_in, log_out, vouch
from flows.desk.visit import LOGIN_COOKIE, VISIT_COOKIE, Visit
from schemas.accounts import How


def login(visit: Visit) -> Response:
    """Ask for name and password; whoever has shown them goes on to where they wanted."""
    there = visit.typed("next") or visit.asked.get("next", "/")
    if visit.request.method == "GET":
        if visit.person or not visit.accounts:
            return visit.go("/")
        return visit.page("login.html.jinja", said="", name="", there=there)
    name = visit.typed("name")
    try:
        with visit.place.database.connect() as connection:
            token = log_in(connection, name, str(visit.form.get("password", "")))
    except LoginRefused as error:
        status = HTTPStatus.UNAUTHORIZED
        return visit.page("login.html.jinja", status, said=str(error), name=name, there=there)
    response = visit.go(_ours(there))
    visit.keep(response, LOGIN_COOKIE, token, LONGEST_LOGIN)
    return response


def to_provider(visit: Visit) -> Response:
    """Send whoever asks to the provider, which shows who they are."""
    there = _ours(visit.asked.get("next", "/"))
    provider: Provider | None = visit.desk.provider
    if provider is None:
        return visit.go("/login")
    response = visit.go(provider.begin(visit.key, there, _back(visit)))
    if visit.new:
        visit.keep(response, VISIT_COOKIE, visit.key)
    return response


def from_provider(visit: Visit) -> Response:
    """Take the provider's word for who came back."""
    provider: Provider | None = visit.desk.provider
    if provider is None:
        return visit.go("/login")
    asked = visit.asked
    try:
        shown = provider.end(visit.key, asked.get("state", ""), asked.get("code", ""))
        with visit.place.database.connect() as connection:
            token = vouch(connection, shown.known_as, How.OIDC)
        if token is None:
            raise LoginRefused(
                "The provider knows you, and no account here does, or it is disabled. An "
                f'administrator adds one with the subject "{How.OIDC} {shown.known_as}".'
            )
    except LoginRefused as error:
        status = HTTPStatus.UNAUTHORIZED
        return visit.page("login.html.jinja", status, said=str(error), name="", there="/")
    response = visit.go(shown.there)
    visit.keep(response, LOGIN_COOKIE, token, LONGEST_LOGIN)
    return response


def _back(visit: Visit) -> str:
    """Where the provider sends people back to."""
    settings: DeskSettings = visit.desk.settings
    return f"{settings.url or str(visit.request.base_url).rstrip('/')}/login/back"


def logout(visit: Visit) -> Response:
    """End the login."""
    with visit.place.database.connect() as connection:
        log_out(connection)
    response = visit.go("/")
    response.delete_cookie(LOGIN_COOKIE)
    return response


def _ours(address: str) -> str:
    """An address on this desk; any other one is the home page."""
    ours = address.startswith("/") and not address.startswith(("//", "/\\"))
    return address if ours and address.isprintable() else "/"
