"""A file of a report is sent as it was proven, whatever happens to its name meanwhile."""

import asyncio
from hashlib import sha256
from pathlib import Path

import pytest
from httpx import ASGITransport, AsyncClient
from httpx import Response as Told
from starlette.responses import Response

from connectors.errors import SignatureRefused
from flows.desk.pages.files import proven_file

CONTENT = b"as written" * 100_000


async def sent(answer: Response) -> Told:
    async with AsyncClient(transport=ASGITransport(answer), base_url="http://desk") as client:
        return await client.get("/")


@pytest.mark.parametrize("becomes", [b"altered", None])
def test_what_is_sent_is_what_was_proven(tmp_path: Path, becomes: bytes | None) -> None:
    """It was opened again to be sent: another file went out unproven, a removed one was a 500."""
    (tmp_path / "report.html").write_bytes(CONTENT)
    answer = proven_file(tmp_path, "report.html", sha256(CONTENT).hexdigest(), "batch 1")
    (tmp_path / "report.html").unlink()
    if becomes is not None:
        (tmp_path / "report.html").write_bytes(becomes)
    told = asyncio.run(sent(answer))
    assert (told.status_code, told.content) == (200, CONTENT)
    assert told.headers["content-disposition"] == 'inline; filename="batch-1-report.html"'


def test_a_file_that_is_away_is_not_called_altered(tmp_path: Path) -> None:
    with pytest.raises(SignatureRefused, match="written again") as refused:
        proven_file(tmp_path, "report.txt", "0", "batch 1")
    assert "report.txt of batch 1 cannot be read: No such file" in str(refused.value)
