"""One request in, one response out: the order of all checks is here.

Binding (400) comes before authentication (401), then the role (403), then validation (400), then
the operation itself.
"""

import logging
import time
from collections.abc import Mapping
from http import HTTPStatus
from traceback import format_tb

from connectors.sandbox.accounts import ServiceAccount
from connectors.sandbox.authentication import Authentication
from connectors.sandbox.binding import Binder
from connectors.sandbox.description import PATH, Description
from connectors.sandbox.failures import NO_CREDENTIALS, NO_ROLE, Failure, Refusal, thrown
from connectors.sandbox.faults import Fault, FaultKind, FaultSchedule, retry_after, wrong
from connectors.sandbox.messages import Reset, Response, ServedRequest
from connectors.sandbox.options import SandboxOptions
from connectors.sandbox.rendering import RESPONSE_STATUS, Format, Result, writer
from connectors.sandbox.routes import AUTHENTICATE, COMPLETED, Route, Routes, response_format
from connectors.sandbox.service import SandboxService, carries_status, response_columns
from connectors.sandbox.signing import COLUMNS, Signing
from connectors.sandbox.validation import validate
from connectors.sandbox.values import Record
from schemas.operations import Operation

_log = logging.getLogger(__name__)


class Exchange:
    """Answers requests as one host does."""

    def __init__(
        self,
        options: SandboxOptions,
        service: SandboxService,
        authentication: Authentication,
        signing: Signing,
    ) -> None:
        self._options = options
        self._routes = Routes(options)
        self._binder = Binder(options)
        self._service = service
        self._authentication = authentication
        self._signing = signing
        self._faults = FaultSchedule(options.faults)
        self._description = Description(options)

    def answer(self, request: ServedRequest) -> Response | Reset:
        if (request.verb, request.path) == ("GET", PATH):
            return self._description.response()
        route = self._routes.find(request.verb, request.path)
        if route is None:
            headers = [("Content-Type", "text/plain; charset=utf-8")]
            return Response(404, "Not Found", headers, b"404")
        form = response_format(request, route)
        if route.operation is None:
            return self._sign(request, route, form)
        if self._options.faults.latency_seconds:
            time.sleep(self._options.faults.latency_seconds)
        fault = self._faults.due()
        early = self._instead(fault) if fault and not fault.applied else None
        if early:
            return early
        response = self._operate(request, route, route.operation, form, fault)
        late = self._instead(fault) if fault and fault.applied else None
        return late or response

    def _operate(
        self,
        request: ServedRequest,
        route: Route,
        operation: Operation,
        form: Format,
        fault: Fault | None,
    ) -> Response:
        try:
            done, completed = self._checked(request, route, operation)
            if isinstance(done, Result) and fault and fault.kind is FaultKind.WRONG_ECHO:
                done = Result(done.columns, [_spoilt(row) for row in done.rows], done.many)
            response = self._response(request, route, operation, form, done)
        except Exception as error:  # noqa: BLE001 -- whatever goes wrong inside is an answer too.
            broken, completed = _broken(request, error), None
            response = self._response(request, route, operation, form, broken)
        if completed is not None:
            response.headers.append((COMPLETED, str(completed)))
        response.cut_short = fault is not None and fault.kind is FaultKind.TRUNCATED_BODY
        return response

    def _checked(
        self, request: ServedRequest, route: Route, operation: Operation
    ) -> tuple[Result | Failure | Refusal, int | None]:
        """Outcome of all checks and the operation, and how many of a batch were carried out."""
        bound = self._bound(request, route, operation)
        if isinstance(bound, Failure):
            return bound, None
        if refused := self._refused(request, operation):
            return refused, None
        if invalid := self._invalid(route, operation, bound):
            return invalid, None
        if route.batch:
            return self._batch(operation, request.verb, bound)
        return self._service.carry_out(operation, request.verb, bound[0]), None

    def _bound(
        self, request: ServedRequest, route: Route, operation: Operation
    ) -> list[Record] | Failure:
        name = self._options.name_of(operation)
        if route.batch:
            return self._binder.many(request, route, operation.table, f"{name}[]")
        bound = self._binder.one(request, route, operation.table, name)
        return bound if isinstance(bound, Failure) else [bound]

    def _refused(self, request: ServedRequest, operation: Operation) -> Failure | Refusal | None:
        if not operation.roles:
            return None
        caller: ServiceAccount | Failure | None = self._authentication.caller(request)
        if isinstance(caller, Failure):
            return caller
        if caller is None:
            return NO_CREDENTIALS
        return NO_ROLE if {*caller.roles}.isdisjoint(operation.roles) else None

    def _invalid(self, route: Route, operation: Operation, records: list[Record]) -> Failure | None:
        if operation.name in self._options.unvalidated:
            return None
        for index, record in enumerate(records):
            if invalid := validate(self._options.traits, operation.table, record):
                return self._named(invalid, index) if route.batch else invalid
        return None

    def _named(self, failure: Failure, index: int) -> Failure:
        return failure.at(index) if self._options.traits.batch_index else failure

    def _batch(
        self, operation: Operation, verb: str, records: list[Record]
    ) -> tuple[Result | Failure, int | None]:
        """Carry records out in order until the first failure; the earlier ones stay done."""
        rows: list[Mapping[str, object]] = []
        for completed, record in enumerate(records):
            done = self._service.carry_out(operation, verb, record)
            if isinstance(done, Failure):
                return self._named(done, completed), completed
            rows.extend(done.rows)
        columns = response_columns(operation)
        return Result(columns, rows, many=True), len(records) if records else None

    def _response(
        self,
        request: ServedRequest,
        route: Route,
        operation: Operation,
        form: Format,
        done: Result | Failure | Refusal,
    ) -> Response:
        if isinstance(done, Refusal):
            return Response(done.status, done.reason, list(done.headers))
        name = self._options.name_of(operation) + ("[]" if route.batch else "")
        columns = response_columns(operation) if carries_status(operation) else ()
        if route.batch and isinstance(done, Result) and not done.rows and form is Format.CSV:
            return Response(200, "OK", [*self._headers(form, name)])
        return self._rendered(request, form, name, columns, done)

    def _sign(self, request: ServedRequest, route: Route, form: Format) -> Response:
        try:
            signed = self._signing.answer(request, route)
            done = signed if isinstance(signed, Failure) else signed.result
            response = self._rendered(request, form, AUTHENTICATE, COLUMNS, done)
        except Exception as error:  # noqa: BLE001 -- whatever goes wrong inside is an answer too.
            broken = _broken(request, error)
            return self._rendered(request, form, AUTHENTICATE, COLUMNS, broken)
        if not isinstance(signed, Failure):
            response.headers.extend(signed.headers)
        return response

    def _rendered(
        self,
        request: ServedRequest,
        form: Format,
        name: str,
        columns: tuple[str, ...],
        done: Result | Failure,
    ) -> Response:
        written = writer(self._options.traits, request.query.get("jsconfig", ""))
        if isinstance(done, Result):
            return Response(200, "OK", self._headers(form, name), written.result(form, done))
        failure_columns = (columns if done.all_columns else ()) or (RESPONSE_STATUS,)
        headers = self._headers(form, name if done.thrown else None)
        body = written.failure(form, failure_columns, done.tree())
        return Response(done.status, done.reason, headers, body)

    def _headers(self, form: Format, name: str | None) -> list[tuple[str, str]]:
        headers = [("Content-Type", form.value)]
        if form is Format.CSV and name:
            filename = f'"{name}.csv"' if self._options.traits.quoted_filename else f"{name}.csv"
            headers.append(("Content-Disposition", f"attachment;filename={filename}"))
        return headers

    def _instead(self, fault: Fault) -> Response | Reset | None:
        match fault.kind:
            case FaultKind.RESET:
                return Reset()
            case FaultKind.STATUS:
                after = retry_after(fault, self._options.clock())
                headers = [("Retry-After", after)] if after else []
                known = fault.status in set(HTTPStatus)
                phrase = HTTPStatus(fault.status).phrase if known else ""
                return Response(fault.status, phrase, headers)
        return None


def _broken(request: ServedRequest, error: Exception) -> Failure:
    # The traceback is for the operator of the sandbox; the error's own text may hold secrets.
    name, places = type(error).__name__, "".join(format_tb(error.__traceback__))
    _log.error("%s %s failed: %s\n%s", request.verb, request.path, name, places)
    return thrown(500, name, "Internal error")


def _spoilt(row: Mapping[str, object]) -> Mapping[str, object]:
    """The row with its last value changed."""
    for name in reversed(list(row)):
        value = row[name]
        changed = _spoilt(value) if isinstance(value, Mapping) else wrong(value)
        if changed != value:
            return {**row, name: changed}
    return row
