"""Addresses: one service by two spellings, and what no notice can be posted to."""

from pathlib import Path
from typing import Any

import pytest

from connectors.addresses import check_notice_address, service_address
from connectors.errors import BatchStateError, SettingsError
from connectors.files.profiles.profile import DEFAULT
from flows.stages.sequence import import_delivery, push_batch, waiting_to_push
from flows.stages.workspace import Workspace
from tests.push.conftest import deliver, towards
from tests.push.deliveries import tones
from tests.service.faulty_server import FaultyServer


@pytest.mark.parametrize(
    ("url", "spelled"),
    [
        ("https://pay.example", "https://pay.example"),
        ("https://pay.example/", "https://pay.example"),
        ("HTTPS://Pay.Example:443/Base/", "https://pay.example/Base"),
        ("http://pay.example:80", "http://pay.example"),
        ("http://pay.example:443", "http://pay.example:443"),
        ("https://pay.example:80/a", "https://pay.example:80/a"),
        ("http://[2001:DB8::1]:80/", "http://[2001:db8::1]"),
        ("http://[::1]:8080", "http://[::1]:8080"),
    ],
)
def test_the_spelling_of_an_address(url: str, spelled: str) -> None:
    assert service_address(url) == spelled
    assert service_address(spelled) == spelled


@pytest.mark.parametrize(
    "address",
    [
        *("https://", "https:///hook", "https://chat.example:99999/x", "https://chat.example:0/x"),
        *("https://chat.example:hook/x", "https://[chat/x", "chat.example/x", "ftp://chat/x"),
        *("https://chat.example/a b", "https://chat.example/secret\n"),
    ],
)
def test_an_address_that_no_notice_can_reach_is_refused(address: str) -> None:
    for taken in ("http://127.0.0.1:9/hook", "https://chat.example/v1?key=a&token=b%3D"):
        check_notice_address(taken)
    with pytest.raises(SettingsError, match="RECON_NOTIFY_URL is no address") as refused:
        check_notice_address(address)
    assert "secret" not in str(refused.value)


@pytest.mark.long
@pytest.mark.parametrize("kept", ["http://localhost", "http://LOCALHOST"])
def test_another_spelling_names_the_same_service(
    workspace: Workspace, rows: Any, sent: Any, tmp_path: Path, kept: str
) -> None:
    """Also where an earlier version kept the address as it was set."""
    with FaultyServer() as server:
        port = server.url.rpartition(":")[2]
        place = towards(workspace, f"http://LocalHost:{port}/")
        deliver(place, tones(tmp_path / "a.csv", 2))
        rows("UPDATE batch SET service = %s RETURNING 1", [f"{kept}:{port}"])
        import_delivery(workspace, [tones(tmp_path / "b.csv", 3)], DEFAULT)
        push_batch(towards(workspace, f"HTTP://localhost:{port}"), 2)
        assert sent(2) == dict.fromkeys((1, 2, 3), "acknowledged")
        assert len(server.effects) == 3
        rows("UPDATE send SET state = 'unsent' WHERE batch_id = 1 RETURNING 1")
        assert waiting_to_push(place) == [1]
        push_batch(place, 1)
        assert rows("SELECT DISTINCT service FROM batch") == [(f"{kept}:{port}",)]
        rows("UPDATE send SET state = 'unsent' WHERE batch_id = 1 RETURNING 1")
        other = towards(workspace, f"http://localhost:{port}/Base")
        with pytest.raises(BatchStateError, match="RECON_SERVICE_URL names"):
            push_batch(other, 1)
