"""What was recorded of a host: each exchange by its name."""

import json
from pathlib import Path
from typing import Any

from connectors.service.connection import Reply

LINES = (Path(__file__).parent / "transcripts.jsonl").read_text(encoding="utf-8").splitlines()
EXCHANGES: dict[str, dict[str, Any]] = {one["name"]: one for one in map(json.loads, LINES)}


def recorded_reply(name: str) -> Reply:
    """The answer of an exchange, as the client classifies it."""
    response = EXCHANGES[name]["response"]
    return Reply(response["status"], response["headers"], response["body"].encode(), "said")
