"""The cases: which client, how many connections, how slow a server."""

from dataclasses import dataclass

LATENCY = 0.02
"""Seconds a slow server takes for an answer."""


@dataclass(frozen=True, slots=True)
class Case:
    """One client at one number of connections."""

    client: str
    connections: int
    latency: float = 0.0
    share: float = 1.0
    """How much of the requests it gets; a slow client needs no more for its rate."""

    @property
    def name(self) -> str:
        """As the command line knows it."""
        slow = f"-{self.latency * 1000:.0f}ms" if self.latency else ""
        return f"{self.client}-{self.connections}{slow}"


CASES = (
    Case("ours", 1),
    Case("ours", 8),
    Case("ours", 32),
    Case("ours_csv", 32),
    Case("ours_written_ahead", 32),
    Case("ours_lane", 32),
    Case("httpx", 1, share=0.25),
    Case("httpx", 8, share=0.25),
    Case("httpx", 32, share=0.15),
    Case("httpx_aiohttp", 32, share=0.5),
    Case("aiohttp", 8),
    Case("aiohttp", 32),
    Case("wrk", 1),
    Case("wrk", 8),
    Case("wrk", 32),
    Case("ours", 32, LATENCY),
    Case("ours", 128, LATENCY),
    Case("ours_written_ahead", 128, LATENCY),
    Case("httpx", 32, LATENCY, share=0.15),
    Case("httpx", 128, LATENCY, share=0.05),
    Case("aiohttp", 128, LATENCY),
    Case("wrk", 128, LATENCY),
)

RATIOS = (
    ("ours at 32 / httpx.AsyncClient at 32", "ours-32", "httpx-32"),
    ("ours at 32, written ahead / httpx.AsyncClient at 32", "ours_written_ahead-32", "httpx-32"),
    ("ours at 32, the whole lane / httpx.AsyncClient at 32", "ours_lane-32", "httpx-32"),
    ("ours at 32 / aiohttp at 32", "ours-32", "aiohttp-32"),
    ("ours at 32 / wrk at 32", "ours-32", "wrk-32"),
    ("ours at 128, 20 ms / wrk at 128, 20 ms", "ours-128-20ms", "wrk-128-20ms"),
    (
        "ours at 128, 20 ms, written ahead / ours at 128, 20 ms",
        "ours_written_ahead-128-20ms",
        "ours-128-20ms",
    ),
)
