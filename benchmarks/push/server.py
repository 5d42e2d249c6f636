"""The least a service can be: a PUT is answered with its own body, after a set latency.

    python server.py LATENCY_SECONDS [CORE]

Prints its port. Run with uvloop where that is installed.
"""

import asyncio
import os
import sys

import httptools


class Exchange(asyncio.Protocol):
    """One connection."""

    latency = 0.0

    def connection_made(self, transport):
        self.transport = transport
        self.parser = httptools.HttpRequestParser(self)
        self.body = b""

    def data_received(self, data):
        self.parser.feed_data(data)

    def on_body(self, body):
        self.body += body

    def on_message_complete(self):
        kind = b"application/json; charset=utf-8" if self.body[:1] == b"{" else b"text/csv"
        head = (
            b"HTTP/1.1 200 OK\r\nVary: Accept\r\nContent-Type: %b\r\nContent-Length: %d\r\n\r\n"
            % (kind, len(self.body))
        )
        answer, self.body = head + self.body, b""
        if self.latency:
            asyncio.get_running_loop().call_later(self.latency, self.transport.write, answer)
        else:
            self.transport.write(answer)


async def main():
    Exchange.latency = float(sys.argv[1])
    if len(sys.argv) > 2:
        os.sched_setaffinity(0, {int(sys.argv[2])})
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Exchange, "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    try:
        from uvloop import run
    except ImportError:
        from asyncio import run
    run(main())
