"""Our service client; with a database URL behind it every row is written ahead and settled.

The write-ahead is the least there can be: a commit for every chunk before its first row is given
out, and one for every chunk of answers. The push stage does the same with more columns.
"""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks" / "import" / "cases")]

import psycopg  # noqa: E402
from clock import Clock  # noqa: E402
from payments import ROWS, asked, key, payment  # noqa: E402

from connectors.service import (  # noqa: E402
    Answer,
    Request,
    Service,
    ServiceSettings,
    Verdict,
    open_service,
)
from schemas.operations import OPERATIONS  # noqa: E402

CHUNK = 256
EDIT = next(operation for operation in OPERATIONS if operation.name == "EditPayment")


def written_ahead(
    requests: Iterable[Request], connection: psycopg.Connection[tuple[int]]
) -> Iterator[Request]:
    """The requests, each committed as `sending` before it is given out."""
    chunk: list[Request] = []
    for request in requests:
        chunk.append(request)
        if len(chunk) == CHUNK:
            _begin(connection, chunk)
            yield from chunk
            chunk = []
    if chunk:
        _begin(connection, chunk)
        yield from chunk


def _begin(connection: psycopg.Connection[tuple[int]], chunk: list[Request]) -> None:
    numbers = [request.number for request in chunk]
    keys = [request.push_key for request in chunk]
    connection.execute(
        "INSERT INTO attempt SELECT n, k, 'sending' FROM unnest(%s::bigint[], %s::text[]) a(n, k)",
        [numbers, keys],
    )
    connection.commit()


def settle(connection: psycopg.Connection[tuple[int]], answers: list[Answer]) -> None:
    connection.execute(
        "UPDATE attempt SET state = v FROM unnest(%s::bigint[], %s::text[]) a(n, v)"
        " WHERE number = n",
        [[answer.number for answer in answers], [str(answer.verdict) for answer in answers]],
    )
    connection.commit()


def push(service: Service, requests: list[Request], database: str | None) -> int:
    """Send all; gives how many were acknowledged."""
    if database is None:
        return sum(answer.verdict is Verdict.ACKNOWLEDGED for answer in service.send(requests))
    with psycopg.connect(database) as connection:
        connection.execute(
            "DROP TABLE IF EXISTS attempt;"
            "CREATE TABLE attempt (number bigint PRIMARY KEY, key text, state text)"
        )
        connection.commit()
        acknowledged, waiting = 0, []
        for answer in service.send(written_ahead(requests, connection)):
            acknowledged += answer.verdict is Verdict.ACKNOWLEDGED
            waiting.append(answer)
            if len(waiting) == CHUNK:
                settle(connection, waiting)
                waiting = []
        settle(connection, waiting)
    return acknowledged


def main() -> None:
    url, connections, count, rest = asked()
    form, *database = rest
    requests = [
        Request(number, EDIT, payment(number % ROWS), key(number)) for number in range(count)
    ]
    settings = ServiceSettings(url=url, format=form, concurrency=connections)
    with open_service(settings) as service:
        for _ in service.send(requests[:connections]):
            pass
        clock = Clock()
        acknowledged = push(service, requests, database[0] if database else None)
        clock.lap("push")
    if acknowledged != count:
        raise SystemExit(f"{acknowledged} of {count} were acknowledged")
    clock.report()


if __name__ == "__main__":
    main()
