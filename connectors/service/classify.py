"""What an answer, or the lack of one, says about the rows of its request."""

import re
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import unquote
from zoneinfo import ZoneInfo

from connectors.service.connection import SPEAKS_TLS, Failed, Reply
from connectors.service.contract import CARRIED_OUT, Request, Verdict
from connectors.service.decoding import (
    STATUS,
    Ambiguous,
    Body,
    Unreadable,
    read_reply,
    read_status,
    refusal_in,
)
from connectors.service.echo import (
    EchoDifference,
    check_record,
    differing,
    echo_text,
    service_id,
    shown_record,
)
from connectors.service.encoding import Record
from connectors.service.error_entries import (
    IN_DOUBT,
    MOST_CHARACTERS,
    REDIRECTS,
    REFUSED,
    SEE_OTHERS,
    UNSENT,
    ErrorEntry,
    Redaction,
    difference_errors,
    error_entry,
    redirect,
    service_errors,
)
from schemas.counting import agree, quantity
from schemas.field import Table
from schemas.operations import Operation

COMPLETED = "x-autobatch-completed"
MOST_SESSIONS = 16
"""How many session texts are hidden: those of the current session and of a few before it."""
_NO_KEY = "ApiKey"
_BAD_TOKEN = re.compile(
    r"\b(?:token|jwt)\b.*\b(?:malformed|invalid|expired|not valid)\b|"
    r"\b(?:malformed|invalid|expired)\b.*\b(?:token|jwt)\b",
    re.IGNORECASE,
)
_NAMELESS = "errors that name neither a code nor a field"
_NOT_AS_BATCH = (404, 405, 413, 414, 415, 431)
"""Statuses that may object to the batch form itself; a lone row is sent again without it."""
_OF_CALLER = {
    403: "The service refuses the role of the caller (403).",
    407: "A proxy on the way to the service asks for credentials (407).",
    421: "The service does not answer for the host in RECON_SERVICE_URL (421).",
}
"""Messages for a status that gives no reason and is about the caller, not about a row."""
_NOT_FINISHED = (408, 499)
"""Statuses of a party that gave up waiting for the row; what became of the row is unknown."""
_UNKNOWN_PATH = (404, 405)
"""Statuses with which hosts answer a path, or a verb on it, that they do not have."""
_CLEAR_TO_TLS = re.compile(rb"plain HTTP|HTTP request to an HTTPS", re.IGNORECASE)
"""What servers say in clear text on a port meant for TLS."""


@dataclass(frozen=True, slots=True)
class ClassifiedResponse:
    """What one attempt says about one row."""

    verdict: Verdict | None = None
    """None if the attempt decides nothing. Next to a stop: the verdict if the stop is about this
    row alone."""
    errors: tuple[ErrorEntry, ...] = ()
    echo: str | None = None
    service_id: str | None = None
    in_doubt: bool = False
    """Undecided, and the row may have been carried out."""
    failure: bool = False
    """The service did not behave like a service; too many failures end the sending."""
    stop: str | None = None
    """Why nothing more is to be sent."""
    of_row: bool = False
    """The stop may be about this row alone: a gateway in front of the service may inspect rows."""
    signed_out: bool = False
    """The service does not know the caller; the session may have ended."""
    again: bool = False
    """Skipped because of another row of its batch; to be sent again at once."""
    alone: bool = False
    """To be sent in a request of its own."""


class Classifier:
    """Judges the answers of one host."""

    def __init__(
        self,
        zone: ZoneInfo,
        secrets: Sequence[str],
        *,
        shows_key: bool = False,
        shows_token: bool = False,
    ) -> None:
        self._zone = zone
        self._shows_key = shows_key
        """Whether the requests carry an API key, which the host may not know."""
        self._shows_token = shows_token
        """Whether they carry a token and the host has accepted none yet."""
        self._secrets = tuple(secrets)
        self._sessions: deque[str] = deque(maxlen=MOST_SESSIONS)
        self.counts: bool | None = None
        """Whether the host says how many rows of a batch it carried out; None: not known yet. Two
        rows share a request only after the host has said so, and never after one silence."""

    def hide_session(self, texts: Iterable[str]) -> None:
        """Hide these texts too: they give access to our session as long as it lasts."""
        bare = [text.strip('"') for text in texts]
        self._sessions.extend([*bare, *map(unquote, bare)])

    def redirect(self, reply: Reply) -> str:
        """Where an answer to a request about no record redirects us."""
        return redirect(reply, self._redaction(None))

    def reason(self, operation: Operation, reply: Reply) -> str:
        """The service's reason against a request, without secrets; empty if it gives none."""
        status = _status(reply)
        named = refusal_in(status)
        if named is None:
            return ""
        hide = self._redaction(operation.table)
        text = hide.text(named)
        message = service_errors(status, REFUSED, reply.status, hide)[0]["Message"]
        return text if message in (text, named) else f"{text}: {message}"

    def failed(self, failed: Failed) -> ClassifiedResponse:
        code = IN_DOUBT if failed.sent else UNSENT
        stop = f"No connection can be had: {failed.cause}" if failed.hopeless else None
        errors = (error_entry(code, f"{failed.cause[:1].upper()}{failed.cause[1:]}."),)
        return ClassifiedResponse(None, errors, in_doubt=failed.sent, failure=True, stop=stop)

    def single(self, request: Request, record: Record, reply: Reply) -> ClassifiedResponse:
        """Judge the answer to a request for one record."""
        if not 200 <= reply.status < 300:
            return self._error(reply, self._redaction(request.operation.table, [record]))
        try:
            body = read_reply(reply)
        except Unreadable as problem:
            return _unreadable(reply, str(problem))
        if (failed := self._failed(request, record, reply, body.status)) is not None:
            return failed
        if body.many or not body.records:
            return _unreadable(
                reply, f"{quantity(len(body.records), 'record')} where one is expected"
            )
        return self._echo(request, record, reply, body.records[0])

    def batch(
        self, rows: Sequence[tuple[Request, Record]], reply: Reply
    ) -> list[ClassifiedResponse]:
        """Judge the answer to a request for several records: one judgement for each of them."""
        table, records = rows[0][0].operation.table, [record for _, record in rows]
        hide = self._redaction(table, records)
        try:
            # First of all: no status says more about which rows were carried out.
            completed = _completed(reply, len(rows))
        except Unreadable as problem:
            return [_unreadable(reply, str(problem))] * len(rows)
        if 200 <= reply.status < 300:
            if self.counts is not False:
                self.counts = completed is not None
            return self._batch_done(rows, reply, hide, completed)
        if completed is not None:
            return self._batch_stopped(rows, reply, hide, completed)
        error = self._error(reply, hide)
        if len(rows) == 1:
            unnamed = reply.status == 400 and _named(reply, 1) is None
            if error.verdict and (unnamed or reply.status in _NOT_AS_BATCH):
                return [ClassifiedResponse(again=True, alone=True)]
            return [error]
        silent = [self._silent(error, reply, len(rows))] * len(rows)
        named = _named(reply, len(rows))
        if named is not None and not error.stop:
            # Only this row is named. Only the count could say what became of the others.
            silent[named] = error
            self.counts = False
        return silent

    def _silent(self, error: ClassifiedResponse, reply: Reply, rows: int) -> ClassifiedResponse:
        """The judgement of a row whose batch failed without a count of the rows carried out."""
        message = (
            f"The service answered {reply.status} to {quantity(rows, 'row')} in one request "
            "without saying how many it carried out."
        )
        entry = error_entry(IN_DOUBT, message, status=reply.status)
        errors = (entry, *(one for one in error.errors if one["ErrorCode"] != IN_DOUBT))
        # An objection that may be about a row alone shows when the next rows are sent alone.
        stop = None if error.verdict else error.stop
        return replace(error, verdict=None, errors=errors, in_doubt=True, failure=True, stop=stop)

    def _error(self, reply: Reply, hide: Redaction) -> ClassifiedResponse:
        status = _status(reply)

        def errors(code: str) -> tuple[ErrorEntry, ...]:
            return service_errors(status, code, reply.status, hide)

        if reply.status in REDIRECTS:
            # Hosts answer an accepted form with 301 to 303; 307 and 308 ask to send it elsewhere.
            stop = f"The service {redirect(reply, hide)}."
            in_doubt = reply.status in SEE_OTHERS
            entries = errors(IN_DOUBT if in_doubt else UNSENT)
            return ClassifiedResponse(None, entries, in_doubt=in_doubt, stop=stop, of_row=True)
        if reply.status == 401:
            stop = "The service refuses the credentials (401)."
            return ClassifiedResponse(None, errors(UNSENT), stop=stop, signed_out=True)
        if reply.status == 429:
            return ClassifiedResponse(None, errors(UNSENT), failure=True)
        if self._shows_token and reply.status == 500 and _is_token_refused(status):
            # The caller is checked before anything is done, and this token was never accepted.
            stop = "The service cannot read the token (500). Check RECON_SERVICE_TOKEN."
            return ClassifiedResponse(None, errors(UNSENT), stop=stop)
        if not 400 <= reply.status < 500 or reply.status in _NOT_FINISHED:
            return ClassifiedResponse(None, errors(IN_DOUBT), in_doubt=True, failure=True)
        says_why = refusal_in(status)
        # A refusal with a reason is about the record; the framework's own refusals give none.
        of_caller = None if says_why else _OF_CALLER.get(reply.status)
        if reply.status == 400 and status is None and _CLEAR_TO_TLS.search(reply.body):
            of_caller = f"The service {SPEAKS_TLS}."
        elif self._shows_key and _is_key_unknown(reply, status):
            of_caller = "The service does not know the API key (404)."
        if of_caller is not None:
            return ClassifiedResponse(None, errors(UNSENT), stop=of_caller, of_row=True)
        unsaid = None if says_why else _refuses_all(reply.status)
        return ClassifiedResponse(
            Verdict.REFUSED, errors(REFUSED), stop=unsaid, of_row=not says_why
        )

    def _failed(
        self, request: Request, record: Record, reply: Reply, status: Mapping[str, Any] | None
    ) -> ClassifiedResponse | None:
        """Judge a ResponseStatus beside or inside the record; None if it reports no error."""
        if status is None:
            return None
        if refusal_in(status):
            hide = self._redaction(request.operation.table, [record])
            return ClassifiedResponse(
                Verdict.REFUSED, service_errors(status, REFUSED, reply.status, hide)
            )
        return _unreadable(reply, _NAMELESS) if status["errors"] else None

    def _echo(
        self, request: Request, record: Record, reply: Reply, answered: Mapping[str, Any]
    ) -> ClassifiedResponse:
        operation = request.operation
        try:
            echoed = shown_record(operation, answered)
            inner = read_status(echoed.get(STATUS.lower()))
            if (failed := self._failed(request, record, reply, inner)) is not None:
                return failed
            found = differing(operation, record, echoed, self._zone)
            check_record(operation, record, echoed, found)
        except Unreadable as problem:
            return _unreadable(reply, str(problem))
        key = service_id(operation, echoed)
        if reply.repeated and (_shows_another(found) or key not in (None, "0")):
            return _unreadable(reply, "the very answer that it gave to the request before")
        self._shows_token = False
        if not found:
            return ClassifiedResponse(Verdict.ACKNOWLEDGED, service_id=key)
        if not reply.proof:
            return _unreadable(reply, "an answer that was cut off by the connection's end")
        hide = self._redaction(request.operation.table, [record])
        errors = difference_errors(found, record, hide)
        echo = echo_text(operation, echoed, hide, self._zone)
        return ClassifiedResponse(Verdict.DIFFERS, errors, echo, key)

    def _batch_done(
        self,
        rows: Sequence[tuple[Request, Record]],
        reply: Reply,
        hide: Redaction,
        completed: int | None,
    ) -> list[ClassifiedResponse]:
        try:
            body = read_reply(reply)
        except Unreadable as problem:
            return [_unreadable(reply, str(problem))] * len(rows)
        if body.errors and not body.refusal:
            return [_unreadable(reply, _NAMELESS)] * len(rows)
        if body.refusal:
            errors = service_errors(body.status, IN_DOUBT, reply.status, hide)
            return [ClassifiedResponse(None, errors, in_doubt=True)] * len(rows)
        if len(body.records) != len(rows) or completed not in (None, len(rows)):
            are = agree(len(rows), "is", "are")
            found = f"{quantity(len(body.records), 'record')} where {len(rows)} {are} expected"
            return [_unreadable(reply, found)] * len(rows)
        return [
            self._echo(request, record, reply, answered)
            for (request, record), answered in zip(rows, body.records, strict=True)
        ]

    def _batch_stopped(
        self, rows: Sequence[tuple[Request, Record]], reply: Reply, hide: Redaction, completed: int
    ) -> list[ClassifiedResponse]:
        """The service carried out `completed` rows, failed at the next and skipped the rest."""
        # Done, but no record is shown: a non-2xx answer is no echo.
        done = ClassifiedResponse(Verdict.ACKNOWLEDGED)
        try:
            body = _body_of(reply, ambiguous=True)
        except Ambiguous as problem:
            return [_unreadable(reply, str(problem))] * len(rows)
        if body.many and (body.refusal or body.errors):
            # The count may not say whose error it is: a row that it counts may have failed.
            return [_unreadable(reply, "an error beside one of several records")] * len(rows)
        failed = self._error(reply, hide)
        if failed.verdict:
            # Only the service itself counts rows, so it has looked at this row.
            failed = replace(failed, stop=None)
        named = _named(reply, len(rows))
        if named is not None and named != completed:
            return self._batch_named(rows, reply, failed, completed, named)
        if completed >= len(rows):
            return [done] * len(rows)
        # After a 429 the rows behind wait as long as the failed one.
        behind = failed if reply.status == 429 else ClassifiedResponse(again=True)
        return [done] * completed + [failed] + [behind] * (len(rows) - completed - 1)

    def _batch_named(
        self,
        rows: Sequence[tuple[Request, Record]],
        reply: Reply,
        failed: ClassifiedResponse,
        completed: int,
        named: int,
    ) -> list[ClassifiedResponse]:
        """The service names another row than the one after those it carried out."""
        if completed == 0:
            # The count says that it checked all rows before the first and carried out none.
            classified = [ClassifiedResponse(again=True)] * len(rows)
        else:
            behind = [self._silent(failed, reply, len(rows))] * (len(rows) - completed)
            classified = [ClassifiedResponse(Verdict.ACKNOWLEDGED)] * completed + behind
            if named < completed:
                classified[named] = behind[0] if behind else self._silent(failed, reply, len(rows))
                return classified
        classified[named] = failed
        return classified

    def _redaction(self, table: Table | None, records: Iterable[Record] = ()) -> Redaction:
        return Redaction(table, records, (*self._secrets, *self._sessions))


def shows_every_row(reply: Reply, classified: Sequence[ClassifiedResponse]) -> bool:
    """Whether an answer shows every row of its request, so it cannot belong to another request."""
    return 200 <= reply.status < 300 and all(one.verdict in CARRIED_OUT for one in classified)


def _shows_another(found: Sequence[EchoDifference]) -> bool:
    """Whether an answer has other values than were sent, instead of only leaving some out."""
    return any(difference.answered not in (None, "") for difference in found)


def _unreadable(reply: Reply, problem: str) -> ClassifiedResponse:
    message = f"The service answered {reply.status} with {problem}."
    entry = error_entry(IN_DOUBT, message, status=reply.status)
    return ClassifiedResponse(None, (entry,), in_doubt=True, failure=True)


def _body_of(reply: Reply, *, ambiguous: bool = False) -> Body:
    """Read a body that may be of any kind; an empty Body if it cannot be read.

    With `ambiguous`, raises Ambiguous.
    """
    try:
        return read_reply(reply)
    except Unreadable as problem:
        if ambiguous and isinstance(problem, Ambiguous):
            raise
        return Body()


def _status(reply: Reply) -> Mapping[str, Any] | None:
    return _body_of(reply).status


def _named(reply: Reply, rows: int) -> int | None:
    """Index of the row a 400 to a batch is about, as newer hosts give it; None if not given."""
    meta = (_status(reply) or {}).get("meta") if reply.status == 400 else None
    members = meta if isinstance(meta, Mapping) else {}
    found = [str(text) for name, text in members.items() if str(name).lower() == "autobatchindex"]
    index = found[0] if len(found) == 1 else ""
    number = int(index) if index.isascii() and index.isdigit() and len(index) <= 9 else rows
    return number if number < rows else None


def _refuses_all(status: int) -> str:
    """The reason to stop after a refusal that gives no reason and is about no row."""
    refusal = f"The service refuses without saying why ({status})"
    if status in _UNKNOWN_PATH:
        return f"{refusal}, as where it has no such path. Check RECON_SERVICE_URL."
    return f"{refusal}."


def _is_key_unknown(reply: Reply, status: Mapping[str, Any] | None) -> bool:
    """Whether a 404 is about a wrong API key, not about a missing record."""
    return reply.status == 404 and _NO_KEY in str((status or {}).get("message", ""))


def _is_token_refused(status: Mapping[str, Any] | None) -> bool:
    """Whether a 500 is an older host's answer to a malformed token."""
    message = str((status or {}).get("message", ""))
    return _BAD_TOKEN.search(message[:MOST_CHARACTERS]) is not None


def _completed(reply: Reply, rows: int) -> int | None:
    """How many rows of a batch were carried out; None if the answer does not say."""
    header = reply.headers.get(COMPLETED)
    if header is None:
        return None
    text = header.strip()
    if not text.isascii() or not text.isdigit() or len(text) > 9 or int(text) > rows:
        raise Unreadable(f"something else than 0 to {rows} for the number of rows done")
    return int(text)
