"""Logging in and out."""

from http import HTTPStatus
from urllib.parse import urlsplit

from starlette.responses import Response

from connectors.errors import LoginRefused
from connectors.postgres.accounts import LONGEST_LOGIN, log_in, log_out
from flows.desk.visit import LOGIN_COOKIE, Visit


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


def logout(visit: Visit) -> Response:
    """End the login."""
    with visit.place.database.connect() as connection:
        log_out(connection)
    response = visit.go("/")
    response.delete_cookie(LOGIN_COOKIE)
    return response


def _ours(address: str) -> str:
    """An address on this desk; any other one is the home page."""
    parts = urlsplit(address)
    ours = address.startswith("/") and not address.startswith(("//", "/\\"))
    return address if ours and not parts.netloc and address.isprintable() else "/"
