"""aiohttp's session."""

import asyncio

import aiohttp
from clock import Clock
from payments import asked, check, puts


async def main() -> None:
    url, connections, count, _ = asked()
    connector = aiohttp.TCPConnector(limit=connections)
    async with aiohttp.ClientSession(url, connector=connector) as session:
        waiting = iter(puts(count))

        async def work() -> None:
            for path, key, body in waiting:
                headers = {
                    "Accept": "application/json",
                    "Content-Type": "application/json",
                    "Idempotency-Key": key,
                }
                async with session.put(path, data=body, headers=headers) as answer:
                    check(answer.status, body, await answer.read())

        async with session.put("/payments/1", data=b"{}") as answer:
            await answer.read()
        clock = Clock()
        await asyncio.gather(*(work() for _ in range(connections)))
        clock.lap("push")
    clock.report()


if __name__ == "__main__":
    asyncio.run(main())
