"""httpx.AsyncClient, as its documentation has it, or over httpx-aiohttp's transport."""

import asyncio

import httpx
from clock import Clock
from payments import asked, check, puts


async def main() -> None:
    url, connections, count, rest = asked()
    limits = httpx.Limits(max_connections=connections, max_keepalive_connections=connections)
    if "aiohttp" in rest:
        # Not there in the environment of httpx alone.
        from httpx_aiohttp import AiohttpTransport  # noqa: PLC0415

        client = httpx.AsyncClient(
            base_url=url, trust_env=False, transport=AiohttpTransport(limits=limits)
        )
    else:
        client = httpx.AsyncClient(base_url=url, trust_env=False, limits=limits, timeout=60)
    async with client:
        waiting = iter(puts(count))

        async def work() -> None:
            for path, key, body in waiting:
                answer = await client.put(
                    path,
                    content=body,
                    headers={
                        "Accept": "application/json",
                        "Content-Type": "application/json",
                        "Idempotency-Key": key,
                    },
                )
                check(answer.status_code, body, answer.content)

        await client.put("/payments/1", content=b"{}")
        clock = Clock()
        await asyncio.gather(*(work() for _ in range(connections)))
        clock.lap("push")
    clock.report()


if __name__ == "__main__":
    asyncio.run(main())
