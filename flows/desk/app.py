"""The desk as an application: its routes, and the rules for every request.

If there are accounts, nothing is shown before a login. A form without the mark of this browser's
own pages is refused, and so is a host name that is not the desk's.
"""

import logging
from asyncio import timeout
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from http import HTTPStatus
from importlib.resources import files as packaged
from typing import Any
from urllib.parse import quote, urlsplit

from anyio import CapacityLimiter, WouldBlock
from anyio.to_thread import run_sync
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.convertors import IntegerConvertor, register_url_convertor
from starlette.datastructures import FormData, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Message, Receive

from connectors.desk_settings import DeskSettings
from connectors.errors import AccountRefused, DatabaseUnusable, ReconError
from connectors.oidc import Provider
from flows.desk.forms import status_of
from flows.desk.jobs import start_here
from flows.desk.kept import Kept
from flows.desk.pages import (
    acceptance,
    batches,
    breaks,
    decide,
    entry,
    files,
    home,
    jobs,
    one_batch,
    one_break,
    people,
    rejects,
    run,
    sends,
    sign,
    trail,
    undo,
    upload,
)
from flows.desk.uploading import FormNotOurs, receive_files
from flows.desk.visit import Page, Visit, known_by_proxy, visit_of
from flows.stages.workspace import Workspace
from schemas.accounts import AccountRole, takes_role
from schemas.jobs import MAY_ORDER

log = logging.getLogger("recon.desk")

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
NOT_OURS = (
    "This form did not come from a page of this desk that is still open. Go back, load the page "
    "again and send it once more."
)
NO_DATABASE = (
    "The desk cannot use its database now, so nothing was shown or changed. Try again in a moment; "
    "if it stays so, tell whoever runs the desk: its log says why.\n"
)
NOTHING_SET = DeskSettings()
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
FORM_SECONDS = 30.0
"""How long a form without files may take to arrive."""
LOGINS_AT_ONCE, PROVIDER_LOGINS_AT_ONCE, UPLOADS_AT_ONCE = 4, 16, 16
"""A login takes memory and time, refused or not; a provider's login takes as long as its answer; an
upload takes a connection."""
BUSY = (
    f"{UPLOADS_AT_ONCE} uploads are under way already. Nothing was read of this one; send it again "
    "in a moment.\n"
)
FORM_FIELDS, FIELD_BYTES, FORM_BYTES = 2_000, 64 * 1024, 1024 * 1024


@dataclass(frozen=True, slots=True)
class Desk:
    """What all visits share."""

    workspace: Workspace
    settings: DeskSettings = NOTHING_SET
    provider: Provider | None = None
    kept: Kept = field(default_factory=Kept)
    """The data that pages about runs are made from."""
    start: Callable[[Workspace, int], None] = start_here
    """Starts the work of an ordered job."""
    logins: CapacityLimiter = field(default_factory=partial(CapacityLimiter, LOGINS_AT_ONCE))
    provider_logins: CapacityLimiter = field(
        default_factory=partial(CapacityLimiter, PROVIDER_LOGINS_AT_ONCE)
    )
    uploads: CapacityLimiter = field(default_factory=partial(CapacityLimiter, UPLOADS_AT_ONCE))

    def turn(self, page: Page, method: str) -> CapacityLimiter | None:
        """What a login waits for, which only other logins of its kind hold up; else None."""
        if page in (entry.to_provider, entry.from_provider):
            return self.provider_logins
        return self.logins if page is entry.login and method == "POST" else None

    @property
    def hosts(self) -> Sequence[str]:
        """The desk's host names; requests to others are refused."""
        public = urlsplit(self.settings.url or "").hostname
        return [*LOOPBACK, *([public] if public else [])]


@dataclass(frozen=True, slots=True)
class Address:
    path: str
    page: Page
    methods: tuple[str, ...] = ("GET",)
    open_to_all: bool = False
    """Whether it needs no login."""
    files: tuple[AccountRole, ...] = ()
    """The roles that may send files there; others are refused before any file is read."""


class _Number(IntegerConvertor):
    """A number in an address; more digits than any row's number give no address of ours."""

    regex = "[0-9]{1,40}"


register_url_convertor("int", _Number())

ADDRESSES = (
    Address("/", home.show),
    Address("/runs/{number:int}", run.show),
    Address("/runs/{number:int}/breaks", breaks.show),
    Address("/runs/{number:int}/breaks.csv", breaks.download),
    Address("/runs/{number:int}/breaks/{id}", one_break.show),
    Address("/runs/{number:int}/decide", decide.decide, ("GET", "POST")),
    Address("/runs/{number:int}/decided", decide.show_decided),
    Address("/runs/{number:int}/sign", sign.show),
    Address("/runs/{number:int}/sign", sign.send, ("POST",)),
    Address("/runs/{number:int}/files/{name:path}", files.give),
    Address("/acceptance", acceptance.show),
    Address("/acceptance", acceptance.decide, ("POST",)),
    Address("/batches", batches.show),
    Address("/batches/upload", upload.show),
    Address("/batches/upload", upload.send, ("POST",), files=MAY_ORDER),
    Address("/batches/{number:int}", one_batch.show),
    Address("/batches/{number:int}/decide", one_batch.decide, ("POST",)),
    Address("/batches/{number:int}/rejects", rejects.show),
    Address("/batches/{number:int}/correct", upload.show_correction),
    Address("/batches/{number:int}/correct", upload.send_correction, ("POST",), files=MAY_ORDER),
    Address("/batches/{number:int}/undo", undo.show),
    Address("/batches/{number:int}/undo", undo.send, ("POST",)),
    Address("/batches/{number:int}/rejects.zip", rejects.download),
    Address("/batches/{number:int}/rejects.xlsx", rejects.workbook),
    Address("/jobs", jobs.show),
    Address("/jobs", jobs.ask, ("POST",)),
    Address("/jobs/{number:int}", jobs.show_one),
    Address("/jobs/{number:int}", jobs.start, ("POST",)),
    Address("/batches/{number:int}/files/{name:path}", files.give_of_batch),
    Address("/batches/{number:int}/sends", sends.show),
    Address("/batches/{number:int}/sends", sends.settle, ("POST",)),
    Address("/trail", trail.show),
    Address("/trail/verify", trail.prove, ("POST",)),
    Address("/trail.csv", trail.export),
    Address("/people", people.show),
    Address("/people", people.keep, ("POST",)),
    Address("/account", people.own),
    Address("/account/password", people.change_password, ("POST",)),
    Address("/account/reports", people.subscribe, ("POST",)),
    Address("/account/show-as", people.show_as, ("POST",)),
    Address("/login", entry.login, ("GET", "POST"), open_to_all=True),
    Address("/login/provider", entry.to_provider, open_to_all=True),
    Address("/login/back", entry.from_provider, open_to_all=True),
    Address("/logout", entry.logout, ("POST",)),
)


def build(desk: Desk) -> Starlette:
    """The application; `ADDRESSES` are its pages."""
    static = StaticFiles(directory=str(packaged("flows.desk") / "static"))
    return Starlette(
        routes=[
            *(
                Route(one.path, partial(_answer, desk, one), methods=[*one.methods])
                for one in ADDRESSES
            ),
            Mount("/static", static),
        ],
        middleware=[
            Middleware(_Headers),
            Middleware(TrustedHostMiddleware, allowed_hosts=[*desk.hosts]),
        ],
        exception_handlers={
            HTTPStatus.NOT_FOUND: partial(_missing, desk),
            HTTPStatus.METHOD_NOT_ALLOWED: _page_around,
        },
    )


class _TooLarge(Exception):
    """Somebody who may not be logged in sent more than any form can have."""


def _bounded(receive: Receive) -> Receive:
    """Receive a request until it is larger than any form can be."""
    left = FORM_BYTES

    async def received() -> Message:
        nonlocal left
        message = await receive()
        left -= len(message.get("body", b""))
        if left < 0:
            raise _TooLarge
        return message

    return received


async def _answer(desk: Desk, place: Address, request: Request) -> Response:
    if place.files:
        return await _answer_files(desk, place, request)
    form = FormData()
    if request.method == "POST":
        try:
            bounded = Request(request.scope, _bounded(request.receive))
            async with timeout(FORM_SECONDS):
                form = await bounded.form(
                    max_files=0, max_fields=FORM_FIELDS, max_part_size=FIELD_BYTES
                )
        except TimeoutError:
            return _closing(
                PlainTextResponse("The form did not arrive in time.\n", HTTPStatus.REQUEST_TIMEOUT)
            )
        except _TooLarge:
            return PlainTextResponse(
                f"A form has at most {FORM_BYTES} bytes.\n",
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                {"Connection": "close"},
            )
        except MultiPartException as error:
            return PlainTextResponse(f"{error.message}\n", HTTPStatus.BAD_REQUEST)
    try:
        turn = desk.turn(place.page, request.method)
        return await run_sync(_page, desk, place, request, form, limiter=turn)
    finally:
        await form.close()


async def _answer_files(desk: Desk, place: Address, request: Request) -> Response:
    """Answer a form with files, whose sender is known before a byte of it is read."""
    visits: list[Visit] = []

    def sender(visit: Visit) -> Response:
        if not visit.may(*place.files):
            raise AccountRefused(f"{takes_role('uploading', place.files)} Nothing was read.")
        visits.append(visit)
        return Response()

    before = await run_in_threadpool(
        _page, desk, replace(place, page=sender), request, FormData(), marked=False
    )
    if not visits:
        return _closing(before)
    try:
        desk.uploads.acquire_on_behalf_of_nowait(request)
    except WouldBlock:
        return _closing(PlainTextResponse(BUSY, HTTPStatus.SERVICE_UNAVAILABLE))
    try:
        form, upload = await receive_files(request, desk.workspace.settings, visits[0].is_mark)
    except FormNotOurs:
        return _closing(await run_in_threadpool(_page, desk, place, request, FormData()))
    finally:
        desk.uploads.release_on_behalf_of(request)

    def with_files(visit: Visit) -> Response:
        return place.page(replace(visit, upload=upload))

    answer = await run_in_threadpool(
        _page, desk, replace(place, page=with_files), request, form, marked=False
    )
    if isinstance(upload, ReconError):
        return _closing(answer)
    if not upload.is_kept:
        await run_in_threadpool(upload.drop)
    return answer


def _closing(answer: Response) -> Response:
    """The same answer, after which the rest of what is being sent is ignored."""
    answer.headers["Connection"] = "close"
    return answer


def _page(
    desk: Desk, place: Address, request: Request, form: FormData, *, marked: bool = True
) -> Response:
    """Answer with a page; the mark is in `form` if `marked`, or else was checked before."""
    visit: Visit | None = None
    try:
        visit = visit_of(request, desk.workspace, form, desk)
        if desk.settings.proxy:
            visit = known_by_proxy(visit, desk.settings.proxy)
        if visit.sent and _is_of_another_site(visit):
            return _not_sent(visit)
        if visit.has_to_log_in and not place.open_to_all:
            return _to_login(visit)
        if visit.sent and marked and not visit.is_marked:
            left = None if place.open_to_all else entry.offered(visit)
            response = left or _not_sent(visit)
        else:
            response = place.page(visit)
        visit.keep_login(response)
        return response
    except ReconError as error:
        status = status_of(error)
        if visit is None or (isinstance(error, DatabaseUnusable) and visit.has_to_log_in):
            # The error names what the desk connects to.
            log.warning("%s %s: %s", request.method, request.url.path, error)
            return PlainTextResponse(NO_DATABASE, status)
        return visit.refusing(str(error), status).page("refused.html.jinja", title="Not done")
    except Exception:  # For all errors that nothing above handles.
        log.exception("%s %s", request.method, request.url.path)
        return PlainTextResponse(
            "The program has a fault; its log says where. Load the page before to see what was "
            "changed.\n",
            HTTPStatus.INTERNAL_SERVER_ERROR,
        )


def _to_login(visit: Visit) -> Response:
    there = visit.request.url.path
    if visit.request.url.query:
        there += f"?{visit.request.url.query}"
    address = f"/login?next={quote(there)}"
    if visit.from_htmx:  # The login would appear inside part of a page.
        return Response(status_code=HTTPStatus.UNAUTHORIZED, headers={"HX-Redirect": address})
    # A form sent after its login ended has that login's mark, which proves nothing now.
    return entry.ended(visit) if visit.sent else visit.go(address)


def _is_of_another_site(visit: Visit) -> bool:
    """Whether the browser says that another site's page sent the form."""
    return bool(visit.request.headers.get("origin")) and not visit.is_from_here


def _not_sent(visit: Visit) -> Response:
    refused = visit.refusing(NOT_OURS, HTTPStatus.FORBIDDEN)
    return refused.page("refused.html.jinja", title="Not sent")


async def _missing(desk: Desk, request: Request, _error: Exception) -> Response:
    place = Address(request.url.path, _nothing_here)
    return await run_in_threadpool(_page, desk, place, request, FormData())


def _page_around(request: Request, error: Exception) -> Response:
    """Redirect a visitor who reloads the address of a refused form to the page with that form."""
    if request.method in ("GET", "HEAD"):
        return RedirectResponse(request.url.path.rpartition("/")[0] or "/", HTTPStatus.SEE_OTHER)
    assert isinstance(error, HTTPException)
    return PlainTextResponse(f"{error}\n", error.status_code, error.headers)


def _nothing_here(visit: Visit) -> Response:
    return visit.nothing_here("There is no such page. The address may be of another version.")


class _Headers:
    """Adds headers to every answer that protect the browser from misuse."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def sent(message: Any) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    if name != "Cache-Control" or not scope["path"].startswith("/static/"):
                        headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, sent if scope["type"] == "http" else send)
