"""A service that fails on demand, over real sockets, with a ledger of what it really applied.

    with FaultyServer(scripted([LOST, status(503), OK])) as server:
        ...  # talk to server.url
    server.effects   # [Effect(method, path, push_key, body)] in the order they were applied
    server.requests  # every request that arrived whole, applied or not

A plan is a function from the request to the `Reply` it gets; requests are counted from 1 in the
order of their arrival. A plan of `seeded` decides by its seed and the request alone, so that the
same requests meet the same faults whatever the order of their arrival.
"""

import csv
import io
import json
import random
import socket
import ssl
import struct
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from email.utils import formatdate
from enum import StrEnum
from types import TracebackType
from typing import Any, NamedTuple, Self

import h11

from schemas.derived import jsv
from tests.ports import LOOPBACK, own_port

HEALTH = "/auth"
PATIENCE_SECONDS = 20.0
"""How long a silent server stays silent, and how long it waits for anything."""


class Effect(NamedTuple):
    """One request that counted; of a batch one for every row."""

    method: str
    path: str
    push_key: str
    body: str


class Seen(NamedTuple):
    """A request that arrived whole."""

    number: int
    """From 1, over all connections."""
    attempt: int
    """From 1, among the requests of the same push key."""
    method: str
    path: str
    headers: Mapping[str, str]
    body: str

    @property
    def push_key(self) -> str:
        return self.headers.get("idempotency-key", "")


class Ending(StrEnum):
    """What happens to the connection."""

    KEEP = "keep"
    CLOSE = "close"
    """Closed behind the answer, which did not say so."""
    NOTHING = "nothing"
    """Closed instead of an answer."""
    RESET = "reset"
    """Reset instead of an answer."""
    SILENT = "silent"
    """No answer, and the connection stays open."""
    HALF_CLOSE = "half close"
    """No answer ever, but the server goes on reading."""
    CUT = "cut"
    """Half of the body, then closed."""
    CUT_HEAD = "cut head"
    """Half of the head, then closed."""
    RAW = "raw"
    """The body is all that is sent, as it stands, then the connection ends."""
    DRIP = "drip"
    """One byte of the answer at a time, `drip_seconds` apart."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What one request gets."""

    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | str | Mapping[str, Any] | None = None
    """None: the echo of what was sent for 2xx, otherwise nothing; a mapping is written as JSON."""
    applied: bool | None = None
    """Whether the request counted; None: as a 2xx says."""
    ending: Ending = Ending.KEEP
    delay: float = 0.0
    """Seconds between applying and answering."""
    hold: Callable[[], object] | None = None
    """Waited for between applying and answering."""
    drip_seconds: float = 0.05
    chunked: bool = False
    completed: int | None = None
    """Of a batch, the rows that were executed; sent as X-AutoBatch-Completed."""
    counted: bool = True
    """Whether that is said at all."""
    executed: int | None = None
    """Of a batch, the rows that really were; None: as many as are said."""
    stale: bool = False
    """What the connection carried last comes once more instead; OK where it carried nothing."""

    @property
    def counts(self) -> bool:
        return self.status < 300 if self.applied is None else self.applied


OK = Reply()
LOST = Reply(ending=Ending.NOTHING)
"""Applied, and the answer is lost."""
DROPPED = Reply(ending=Ending.NOTHING, applied=False)
"""Not applied, no answer."""
RESET = Reply(ending=Ending.RESET)
RESET_BEFORE = Reply(ending=Ending.RESET, applied=False)
SILENT = Reply(ending=Ending.SILENT)
HALF_CLOSE = Reply(ending=Ending.HALF_CLOSE)
CUT = Reply(ending=Ending.CUT)
DRIP = Reply(ending=Ending.DRIP)
CLOSE_AFTER = Reply(ending=Ending.CLOSE)
EVERY_LOSS = (LOST, DROPPED, RESET, RESET_BEFORE, CUT, Reply(ending=Ending.CUT_HEAD))


def status(
    code: int,
    *,
    applied: bool = False,
    retry_after: int | str | None = None,
    errors: Sequence[Mapping[str, Any]] = (),
    error_code: str | None = None,
    **more: Any,
) -> Reply:
    """An answer of a status; with `errors` (field errors) or `error_code` a ResponseStatus."""
    headers: tuple[tuple[str, str], ...] = tuple(more.pop("headers", ()))
    if retry_after is not None:
        headers += (("Retry-After", str(retry_after)),)
    if errors or error_code:
        first = error_code or str(errors[0]["ErrorCode"])
        told: dict[str, Any] = {"ErrorCode": first, "Message": first, "Errors": [*errors]}
        headers += (("Content-Type", "application/json"),)
        more.setdefault("body", {"ResponseStatus": told})
    return Reply(code, headers, applied=applied, **more)


def retry_date(seconds: float, now: float) -> str:
    """The text of a Retry-After date."""
    return formatdate(now + seconds, usegmt=True)


Plan = Callable[[Seen], Reply]


def always(reply: Reply) -> Plan:
    return lambda seen: reply


def scripted(replies: Iterable[Reply], then: Reply = OK) -> Plan:
    """By the number of the request."""
    listed = list(replies)
    return lambda seen: listed[seen.number - 1] if seen.number <= len(listed) else then


def attempts(replies: Iterable[Reply], then: Reply = OK) -> Plan:
    """By the number of the attempt at the same push key."""
    listed = list(replies)
    return lambda seen: listed[seen.attempt - 1] if seen.attempt <= len(listed) else then


def at(numbers: Mapping[int, Reply], then: Reply = OK) -> Plan:
    return lambda seen: numbers.get(seen.number, then)


def seeded(seed: int, faults: Sequence[Reply], share: float, then: Reply = OK) -> Plan:
    """Every request meets one of the faults with this probability."""

    def decide(seen: Seen) -> Reply:
        place = seen.push_key or str(seen.number)
        chance = random.Random(f"{seed} {place} {seen.attempt}")
        return chance.choice(faults) if chance.random() < share else then

    return decide


class Accept(StrEnum):
    """What happens to a new connection before anything is read."""

    SERVE = "serve"
    CLOSE = "close"
    RESET = "reset"
    NEVER_READ = "never read"


@dataclass
class FaultyServer:
    """Runs while its `with` block does; later nobody answers at its place."""

    plan: Plan = field(default_factory=lambda: always(OK))
    accept: Callable[[int], Accept] = lambda number: Accept.SERVE
    """By the number of the connection, from 1."""
    tls: ssl.SSLContext | None = None
    clear: bool = False
    """Plain text is taken at the same port as TLS."""
    health: Plan = field(default_factory=lambda: always(OK))
    """What is answered to those who ask how the service is; they are counted apart."""
    effects: list[Effect] = field(default_factory=list)
    requests: list[Seen] = field(default_factory=list)
    asked: list[Seen] = field(default_factory=list)
    connections: int = 0
    most_in_flight: int = 0
    most_in_flight_of_a_path: int = 0

    def __enter__(self) -> Self:
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._open: dict[threading.Thread, socket.socket] = {}
        self._in_flight: Counter[str] = Counter()
        self._attempts: Counter[str] = Counter()
        port = own_port()
        self._socket = socket.create_server((LOOPBACK, port), backlog=1024)
        self.url = f"{'https' if self.tls else 'http'}://{LOOPBACK}:{port}"
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stopping.set()
        # A connection of our own wakes up accept.
        with socket.socket() as waker:
            waker.connect_ex(self._socket.getsockname())
        self._thread.join(PATIENCE_SECONDS)
        self._socket.close()
        with self._lock:
            peers = dict(self._open)
        for peer in peers.values():
            _shut(peer, socket.SHUT_RDWR)
        for thread in peers:
            thread.join(PATIENCE_SECONDS)

    def applied(self, push_key: str) -> int:
        """How often the row of a push key took effect."""
        return sum(effect.push_key == push_key for effect in self.effects)

    def twice(self) -> list[str]:
        """The push keys that took effect more than once."""
        counted = Counter(effect.push_key for effect in self.effects)
        return sorted(key for key, times in counted.items() if times > 1)

    def wait_closed(self) -> None:
        """Until every connection that was accepted has ended on this side."""
        with self._lock:
            threads = [*self._open]
        for thread in threads:
            thread.join(PATIENCE_SECONDS)

    def _listen(self) -> None:
        while True:
            peer, _ = self._socket.accept()
            if self._stopping.is_set():
                peer.close()
                return
            self.connections += 1
            thread = threading.Thread(
                target=self._serve, args=(peer, self.accept(self.connections)), daemon=True
            )
            with self._lock:
                self._open[thread] = peer
            thread.start()

    def _serve(self, peer: socket.socket, accept: Accept) -> None:
        try:
            peer.settimeout(PATIENCE_SECONDS)
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            match accept:
                case Accept.RESET:
                    _reset(peer)
                case Accept.NEVER_READ:
                    self._stopping.wait(PATIENCE_SECONDS)
                case Accept.SERVE:
                    encrypted = self.tls
                    if self.clear and peer.recv(1, socket.MSG_PEEK) != b"\x16":
                        encrypted = None
                    self._converse(
                        encrypted.wrap_socket(peer, server_side=True) if encrypted else peer
                    )
        except (OSError, h11.RemoteProtocolError, h11.LocalProtocolError):
            pass
        finally:
            peer.close()
            with self._lock:
                self._open.pop(threading.current_thread(), None)

    def _converse(self, peer: socket.socket) -> None:
        with peer:
            http, carried = h11.Connection(h11.SERVER), bytearray()
            while (seen := self._read(peer, http)) is not None:
                if not self._answer(peer, http, seen, carried):
                    return
                http.start_next_cycle()

    def _read(self, peer: socket.socket, http: h11.Connection) -> Seen | None:
        head = _event(peer, http)
        if not isinstance(head, h11.Request):
            return None
        body = b""
        while isinstance(event := _event(peer, http), h11.Data):
            body += bytes(event.data)
        if not isinstance(event, h11.EndOfMessage):
            return None
        headers = {name.decode().lower(): value.decode() for name, value in head.headers}
        path = head.target.decode()
        with self._lock:
            listed = self.asked if path == HEALTH else self.requests
            key = headers.get("idempotency-key", f"{path} {len(listed) + 1}")
            self._attempts[key] += 1
            seen = Seen(
                len(listed) + 1,
                self._attempts[key],
                head.method.decode(),
                path,
                headers,
                body.decode(),
            )
            listed.append(seen)
            self._in_flight[path] += 1
            self.most_in_flight = max(self.most_in_flight, self._in_flight.total())
            self.most_in_flight_of_a_path = max(
                self.most_in_flight_of_a_path, self._in_flight[path]
            )
        return seen

    def _answer(
        self, peer: socket.socket, http: h11.Connection, seen: Seen, carried: bytearray
    ) -> bool:
        """Whether the connection goes on; `carried` is the last answer on it."""
        with self._lock:
            reply = (self.health if seen.path == HEALTH else self.plan)(seen)
            if reply.stale and not carried:
                reply = OK
            echo, count = self._apply(seen, reply)
        if reply.delay:
            self._stopping.wait(reply.delay)
        if reply.hold is not None:
            reply.hold()
        with self._lock:
            # The caller may hear the answer, and ask again, before this thread goes on.
            self._in_flight[seen.path] -= 1
        match reply.ending:
            case Ending.NOTHING:
                return False
            case Ending.RESET:
                _reset(peer)
                return False
            case Ending.SILENT | Ending.HALF_CLOSE:
                if reply.ending is Ending.HALF_CLOSE:
                    peer.shutdown(socket.SHUT_WR)
                while peer.recv(65536):
                    pass
                return False
            case Ending.RAW:
                assert isinstance(reply.body, bytes)
                peer.sendall(reply.body)
                return False
        if not reply.counted:
            pass
        elif reply.completed is not None or (count is not None and reply.status < 300):
            told = str(count if reply.completed is None else reply.completed)
            reply = replace(reply, headers=(*reply.headers, ("X-AutoBatch-Completed", told)))
        data, end = _rendered(http, reply, echo, seen)
        if reply.stale:
            data = bytes(carried)
        carried[:] = data
        self._send(peer, reply, data, end)
        going_on = reply.ending in (Ending.KEEP, Ending.DRIP)
        return going_on and http.our_state is h11.DONE

    def _send(self, peer: socket.socket, reply: Reply, data: bytes, end: int) -> None:
        match reply.ending:
            case Ending.CUT:
                peer.sendall(data[: end + (len(data) - end) // 2])
            case Ending.CUT_HEAD:
                peer.sendall(data[: end // 2])
            case Ending.DRIP:
                for byte in data:
                    peer.sendall(bytes([byte]))
                    if self._stopping.wait(reply.drip_seconds):
                        return
            case _:
                peer.sendall(data)

    def _apply(self, seen: Seen, reply: Reply) -> tuple[bytes, int | None]:
        """The echo; and of a batch how many rows were executed."""
        batch = seen.path.partition("?")[0].replace("%5B%5D", "[]").endswith("[]")
        if seen.method == "GET":
            return b"", None
        rows = _rows(seen)
        counted = rows
        if not reply.counts:
            done = reply.completed if reply.executed is None else reply.executed
            counted = rows[: done or 0] if batch else []
        keys = seen.push_key.split(", ")
        for number, row in enumerate(counted):
            body = json.dumps(row, separators=(",", ":")) if batch else seen.body
            key = keys[number] if batch and len(keys) == len(rows) else seen.push_key
            self.effects.append(Effect(seen.method, seen.path, key, body))
        if reply.status >= 300:
            return b"", None
        number = len(self.effects)
        named = [_answered(seen.path, row, number) for row in rows]
        if "csv" in seen.headers.get("accept", ""):
            return _csv(named), len(rows) if batch else None
        echoed: Any = named if batch else (named or [{}])[0]
        return json.dumps(echoed).encode(), len(rows) if batch else None


def _rows(seen: Seen) -> list[dict[str, Any]]:
    try:
        if "csv" in seen.headers.get("content-type", ""):
            return [dict(row) for row in csv.DictReader(io.StringIO(seen.body))]
        tree = json.loads(seen.body)
    except ValueError:
        return []
    return tree if isinstance(tree, list) else [tree]


def _answered(path: str, row: dict[str, Any], number: int) -> dict[str, Any]:
    """The record of the answer: the row itself, unless the operation answers with another."""
    lowered = path.lower()
    if "form" in lowered:
        results = {name: row[name] for name in ("Comments", "CampaignActionFiles") if row.get(name)}
        made = {"Id": number, "CampaignActionsId": 3, "ActionTimestamp": "2026-01-02T03:04:05Z"}
        return {"CampaignActionsFormResponses": {**made, "FormMetaResponses": results}}
    if "clientregister" in lowered:
        shown = {name: row.get(name) for name in ("FirstName", "LastName", "Company", "Roles")}
        return {"Id": number, "Email": row.get("EMail"), **shown}
    return row


def _csv(rows: Sequence[Mapping[str, Any]]) -> bytes:
    text = io.StringIO(newline="")
    names = [*rows[0], "ResponseStatus"] if rows else ["ResponseStatus"]
    writer = csv.DictWriter(text, names, restval="")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: _cell(value) for name, value in row.items()})
    return text.getvalue().encode()


def _cell(value: Any) -> Any:
    """What is nested stands in a cell as JSV; texts of a CSV request are JSV already."""
    return jsv.write(_plain(value)) if isinstance(value, dict | list) else value


def _plain(value: Any) -> Any:
    match value:
        case dict():
            return {name: _plain(member) for name, member in value.items()}
        case str() if value[:1] in ("[", "{"):
            return jsv.Plain(value)
    return value


def _rendered(http: h11.Connection, reply: Reply, echo: bytes, seen: Seen) -> tuple[bytes, int]:
    """The whole answer, and where its head ends."""
    body, headers = echo, [*reply.headers]
    match reply.body:
        case bytes():
            body = reply.body
        case str():
            body = reply.body.encode()
        case Mapping():
            body = json.dumps(reply.body).encode()
    named = {name.lower() for name, _ in headers}
    if "content-type" not in named:
        csv_asked = "csv" in seen.headers.get("accept", "")
        headers.append(("Content-Type", "text/csv" if csv_asked else "application/json"))
    if reply.chunked:
        headers.append(("Transfer-Encoding", "chunked"))
    else:
        headers.append(("Content-Length", str(len(body))))
    head = http.send(h11.Response(status_code=reply.status, headers=headers, reason=b"Said"))
    assert head is not None
    data = (http.send(h11.Data(data=body)) or b"") if body else b""
    return head + data + (http.send(h11.EndOfMessage()) or b""), len(head)


def _event(peer: socket.socket, http: h11.Connection) -> object:
    while (event := http.next_event()) is h11.NEED_DATA:
        http.receive_data(peer.recv(65536))
    return event


def _reset(peer: socket.socket) -> None:
    """Close so that the other side sees a reset."""
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    peer.close()


def _shut(peer: socket.socket, how: int) -> None:
    try:
        peer.shutdown(how)
    except OSError:
        return
